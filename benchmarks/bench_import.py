"""Import of a large snapshot against a raw floor, the next snapshot, and peak memory."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import orjson

from benchmarks.generate import make_log
from benchmarks.measuring import Line, peak_megabytes, temporary_store, timed
from learning_core import schemas
from learning_core.canonical import parse_json
from learning_core.identifiers import IMPORTER
from learning_core.provider import STREAMS, Query
from learning_core.records import STREAM_KINDS


def run(comments: int) -> Iterator[Line]:
    """Each number of the import, in its own process, so that the peak memory is the import's."""
    with tempfile.TemporaryDirectory(prefix="hub-learning-bench-") as directory:
        log, later = Path(directory) / "log.json", Path(directory) / "later.json"
        log.write_bytes(make_log(comments))
        later.write_bytes(make_log(comments, edited=0.01, snapshot="bench-changed"))
        command = [sys.executable, "-m", "benchmarks.bench_import", str(log), str(later)]
        result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    first, floor, second = result["first"], result["floor"], result["second"]
    ratio = first / floor
    yield Line(
        f"import of {comments:,} comments into a new store",
        f"{ratio:.2f} x floor ({first:.1f} s, floor {floor:.1f} s)",
        "<= 2.5 x",
        ratio <= 2.5,
    )
    yield Line(
        "the next snapshot, 1% changed", f"{second / first:.0%} ({second:.1f} s)", "<= 35%", second / first <= 0.35
    )
    memory = result["megabytes"] / result["log_megabytes"]
    yield Line(
        "peak memory of the import", f"{memory:.1f} x the log ({result['log_megabytes']:.0f} MB)", "<= 6 x", memory <= 6
    )


def _floor(log: Path, rows: list[tuple[str, bytes]]) -> float:
    """Seconds for: strict parse of the log; parse, validate, digest and insert each record that the import stores."""

    def work() -> None:
        parse_json(log.read_bytes())
        with tempfile.TemporaryDirectory() as directory:
            connection = apsw.Connection(str(Path(directory) / "floor.sqlite"))
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute("CREATE TABLE records (position INTEGER PRIMARY KEY, id TEXT, record BLOB) STRICT")
            with connection:
                connection.executemany("INSERT INTO records (id, record) VALUES (?, ?)", (_pass(*row) for row in rows))
            connection.close()

    return timed(work)[0]


def _pass(kind: str, raw: bytes) -> tuple[str, bytes]:
    data = orjson.loads(raw)
    if not schemas.is_valid(kind, data):
        raise ValueError("a stored record is not valid")
    hashlib.sha256(orjson.dumps(data, option=orjson.OPT_SORT_KEYS)).hexdigest()
    return data["id"], raw


def main(log: Path, later: Path) -> None:
    """Measure in this process and print JSON."""
    with temporary_store() as (store, provider, _):
        first, _ = timed(lambda: store.import_comments(IMPORTER, log))
        megabytes = peak_megabytes()
        second, _ = timed(lambda: store.import_comments(IMPORTER, later))
        rows = [
            (STREAM_KINDS[stream], row.canonical)
            for stream in STREAMS
            for row in provider.read_records(store.scope, stream, Query())
        ]
    result = {"first": first, "second": second, "floor": _floor(log, rows), "megabytes": megabytes}
    print(json.dumps({**result, "log_megabytes": log.stat().st_size / 1e6}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

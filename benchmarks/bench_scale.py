"""Recall, decisions and redaction must cost what they read, not what the store holds; verify must stay flat."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from benchmarks.measuring import (
    PERSON,
    Line,
    add_learnings,
    add_proposals,
    fill,
    peak_megabytes,
    percentile,
    temporary_store,
    timed,
)
from learning_core.identifiers import IMPORTER
from learning_core.provider import STREAMS, Query
from learning_core.records import STREAM_KINDS, check
from learning_core.store import LearningStore
from learning_core.timestamps import system_clock
from providers.storage.sqlite import SqliteProvider

LEARNINGS, EVIDENCE, ROUNDS = 200, 6, 30
TASK = "Build the checkout page: labels, buttons and error messages of the form."


class CountingProvider(SqliteProvider):
    """Counts the rows that are read."""

    rows = 0

    def read_records(self, *arguments: Any) -> Any:
        """The rows, counted."""
        return self._count(super().read_records(*arguments))

    def read_memory_versions(self, *arguments: Any) -> Any:
        """The rows, counted."""
        return self._count(super().read_memory_versions(*arguments))

    def _count(self, rows: Any) -> Iterator[Any]:
        for row in rows:
            self.rows += 1
            yield row


def run(small: int, large: int) -> Iterator[Line]:
    """The numbers at both sizes, side by side."""
    one, other = _measure(small), _measure(large)
    for name, limit in (("recall", 40), ("reject", 50), ("accept", 50), ("redact", 50)):
        before, after = one[name], other[name]
        ratio = after["p95"] / before["p95"]
        same = before["rows"] == after["rows"]
        yield Line(
            f"{name} at {large:,} events against {small:,}",
            f"{ratio:.2f} x, p95 {after['p95'] * 1000:.1f} ms, rows {after['rows']} / {before['rows']}",
            f"equal rows, <= 1.3 x, <= {limit} ms",
            same and ratio <= 1.3 and after["p95"] * 1000 <= limit,
        )
    ratio, first = other["verify"] / other["floor"], other["first"] * 1000
    yield Line("first recall in a process", f"{first:.1f} ms", "<= 40 ms", first <= 40)
    yield Line(
        f"verify at {large:,} events", f"{ratio:.2f} x floor ({other['verify']:.1f} s)", "<= 2.5 x", ratio <= 2.5
    )
    grown = other["megabytes"]
    yield Line("memory of verify", f"{grown:.0f} MB at {large:,} events", "<= 150 MB", grown <= 150)


def _measure(events: int) -> Mapping[str, Any]:
    command = [sys.executable, "-m", "benchmarks.bench_scale", str(events)]
    result: Mapping[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


def main(events: int) -> None:
    """Measure in this process and print JSON."""
    with temporary_store() as (store, _, data):
        fill(store, events)
        add_learnings(store, LEARNINGS, EVIDENCE)
        counting = CountingProvider(data)
        counted = LearningStore(counting, store.scope, clock=system_clock)
        first, _ = timed(lambda: counted.recall(IMPORTER, TASK))
        results: dict[str, Any] = {"first": first}
        results["recall"] = _repeat(counting, lambda _: counted.recall(IMPORTER, TASK))
        victims = [str(1_000_000 + 4 * ((LEARNINGS + 2 * ROUNDS) * EVIDENCE + number)) for number in range(ROUNDS)]
        results["redact"] = _repeat(counting, lambda number: counted.redact_comment(PERSON, victims[number]))
        proposals = add_proposals(store, 2 * ROUNDS, EVIDENCE, first=LEARNINGS)
        half = iter(proposals[:ROUNDS])
        results["reject"] = _repeat(counting, lambda _: _decide(counted.reject, next(half), reason="no"))
        rest = iter(proposals[ROUNDS:])
        results["accept"] = _repeat(counting, lambda _: _decide(counted.accept, next(rest)))
        process = subprocess.run(
            [sys.executable, "-m", "benchmarks.bench_scale", "verify", str(data)],
            check=True,
            capture_output=True,
            text=True,
        )
        print(json.dumps({**results, **json.loads(process.stdout)}))


def _decide(decide: Callable[..., Any], row: Mapping[str, Any], **reason: str) -> None:
    decide(PERSON, row["id"], review_digest=row["reviewDigest"], **reason)


def _repeat(counting: CountingProvider, work: Callable[[int], Any]) -> dict[str, Any]:
    counting.rows = 0
    times = [timed(partial(work, number))[0] for number in range(ROUNDS)]
    return {"p95": percentile(times), "rows": counting.rows}


def verify(directory: str) -> None:
    """Verify a store in a process of its own, and the floor: read, parse, validate and digest each record."""
    from pathlib import Path

    from benchmarks.measuring import SCOPE

    provider = SqliteProvider(Path(directory))
    store = LearningStore(provider, SCOPE)
    seconds, result = timed(lambda: store.verify(by=IMPORTER))
    megabytes = peak_megabytes()
    if not result["ok"]:
        raise SystemExit("verify found a problem")

    def read() -> None:
        for stream in STREAMS:
            for row in provider.read_records(SCOPE, stream, Query()):
                check(STREAM_KINDS[stream], row.canonical, SCOPE)

    print(json.dumps({"verify": seconds, "megabytes": megabytes, "floor": timed(read)[0]}))


if __name__ == "__main__":
    if sys.argv[1] == "verify":
        verify(sys.argv[2])
    else:
        main(int(sys.argv[1]))

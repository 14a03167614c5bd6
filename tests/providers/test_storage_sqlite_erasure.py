"""Redacted text is in no file of the store: shown by searching their raw bytes, with positive controls."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from learning_core.records import CheckedRecord
from providers.conformance.samples import Samples
from providers.storage.sqlite import SqliteProvider, connection
from providers.storage.sqlite.files import DATABASE

SAMPLES = Samples()
EPISODE = SAMPLES.episode(1)
SENTINEL = b"sentinel-3f9c"


def comments(sizes: list[int]) -> list[CheckedRecord]:
    """Comments with the sentinel in front, in the middle and at the end of a body of each size."""
    made = []
    for n, size in enumerate(sizes):
        mark = f"{SENTINEL.decode()}-{n} "
        made.append(SAMPLES.comment(EPISODE, n, body=mark + "x" * (size // 2) + mark + "y" * (size // 2) + mark))
    return made


def store(provider: SqliteProvider, events: list[CheckedRecord]) -> None:
    provider.append_batch(SAMPLES.scope, {"episodes": [EPISODE], "events": events}, [SAMPLES.audit("import", 1)])


def redact(provider: SqliteProvider, event: CheckedRecord, n: int = 1) -> None:
    provider.redact_record(SAMPLES.scope, SAMPLES.redacted(event), [SAMPLES.audit("evidence.redact", n)])


def files_with_text(data: Path, mark: str = "") -> list[str]:
    """The store's files that hold the sentinel. No connection of this process may be open: see `files`."""
    return sorted(path.name for path in data.iterdir() if SENTINEL + mark.encode() in path.read_bytes())


@contextmanager
def other_process(data: Path, statement: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the store open, in a read transaction if it says BEGIN, until the block ends."""
    program = f"""
import apsw
connection = apsw.Connection({str(data / DATABASE)!r})
connection.execute({statement!r})
connection.execute("SELECT count(*) FROM rows").fetchall()
print("open", flush=True)
input()
connection.close()
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        try:
            yield other
        finally:
            other.communicate("\n", timeout=30)


def reader(data: Path) -> AbstractContextManager[subprocess.Popen[str]]:
    return other_process(data, "BEGIN")


def bystander(data: Path) -> AbstractContextManager[subprocess.Popen[str]]:
    """It reads nothing now, and keeps the write-ahead log from being removed when others close."""
    return other_process(data, "SELECT 1")


def is_waiting(provider: SqliteProvider) -> bool:
    return "waits to be purged" in provider.health()["detail"]


def test_no_file_holds_redacted_text(tmp_path: Path) -> None:
    """Of bodies within a page and over several, removed in any order."""
    provider = SqliteProvider(tmp_path / "data")
    sizes = [10, 200, 900, 3_000, 8_000, 20_000, 60_000, 500, 1, 7_900] * 4
    events = comments(sizes)
    store(provider, events)
    assert files_with_text(tmp_path / "data") == [DATABASE]
    shuffled = list(enumerate(events))
    random.Random(7).shuffle(shuffled)
    for n, event in shuffled:
        redact(provider, event, n)
        assert files_with_text(tmp_path / "data", f"-{n} ") == []
    assert files_with_text(tmp_path / "data") == []


def test_secure_delete_is_what_erases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = connection._SETTINGS.replace("secure_delete = ON", "secure_delete = OFF")
    assert settings != connection._SETTINGS
    monkeypatch.setattr(connection, "_SETTINGS", settings)
    provider = SqliteProvider(tmp_path / "data")
    events = comments([200, 20_000])
    store(provider, events)
    for n, event in enumerate(events):
        redact(provider, event, n)
    assert files_with_text(tmp_path / "data") == [DATABASE]


def test_a_reader_delays_erasure_until_the_sweep(tmp_path: Path) -> None:
    provider = SqliteProvider(tmp_path / "data")
    events = comments([200, 20_000])
    store(provider, events)
    with bystander(tmp_path / "data"):
        with reader(tmp_path / "data"):
            redact(provider, events[0])
            # The checkpoint could not empty the write-ahead log, and the database still has the page as it was.
            assert files_with_text(tmp_path / "data", "-0 ") == [DATABASE]
            assert is_waiting(provider)
            assert provider.sweep() is False
        assert is_waiting(SqliteProvider(tmp_path / "data"))
        assert SqliteProvider(tmp_path / "data").sweep() is True
        assert not is_waiting(provider)
        assert files_with_text(tmp_path / "data", "-0 ") == []
        redact(provider, events[1], 2)
        assert files_with_text(tmp_path / "data") == []
    assert provider.sweep() is True


def test_a_later_write_finishes_erasure(tmp_path: Path) -> None:
    provider = SqliteProvider(tmp_path / "data")
    (event,) = comments([200])
    store(provider, [event])
    with bystander(tmp_path / "data"):
        with reader(tmp_path / "data"):
            redact(provider, event)
            provider.append_records(SAMPLES.scope, "audit", [], [SAMPLES.audit("recall", 1)])
            assert files_with_text(tmp_path / "data") != []
        assert is_waiting(provider)
        provider.append_records(SAMPLES.scope, "audit", [], [SAMPLES.audit("recall", 2)])
        assert files_with_text(tmp_path / "data") == []
        assert not is_waiting(provider)
        provider.append_records(SAMPLES.scope, "audit", [], [SAMPLES.audit("recall", 3)])
        # The mark is cleared: a log that is filled again holds nothing that was removed.
        assert (tmp_path / "data" / f"{DATABASE}-wal").stat().st_size > 0
        assert not is_waiting(provider)


def test_a_reader_that_was_killed_leaves_the_mark(tmp_path: Path) -> None:
    provider = SqliteProvider(tmp_path / "data")
    (event,) = comments([200])
    store(provider, [event])
    with reader(tmp_path / "data") as other:
        redact(provider, event)
        other.kill()
    assert files_with_text(tmp_path / "data") != []
    assert is_waiting(provider)
    assert provider.sweep() is True
    assert files_with_text(tmp_path / "data") == []


def test_the_write_ahead_log_is_emptied_while_another_connection_stays_open(tmp_path: Path) -> None:
    """What the checkpoint itself does: the last connection to close would remove the file anyway."""
    provider = SqliteProvider(tmp_path / "data")
    events = comments([200, 300])
    store(provider, events[:1])
    with bystander(tmp_path / "data"):
        provider.append_records(SAMPLES.scope, "events", events, [])
        assert f"{DATABASE}-wal" in files_with_text(tmp_path / "data")
        for n, event in enumerate(events):
            redact(provider, event, n)
        assert files_with_text(tmp_path / "data") == []


def test_a_backup_keeps_its_own_text(tmp_path: Path) -> None:
    provider = SqliteProvider(tmp_path / "data")
    (event,) = comments([200])
    store(provider, [event])
    (tmp_path / "backups").mkdir()
    provider.backup(tmp_path / "backups" / "store.sqlite")
    redact(provider, event)
    assert files_with_text(tmp_path / "data") == []
    assert files_with_text(tmp_path / "backups") == ["store.sqlite"]

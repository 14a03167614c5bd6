"""Processes that die, race or wait while they write a SQLite store, and disks that fail."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

import apsw
import pytest

from learning_core.errors import Busy, StorageFailed, StorageOutcomeUnknown
from learning_core.provider import MemoryQuery, Query
from providers.conformance.samples import Samples
from providers.conformance.storage.suite import check_numbered, compute_heads, read_everything
from providers.storage.sqlite import SqliteProvider
from providers.storage.sqlite.connection import storage_errors, writing
from providers.storage.sqlite.files import DATABASE, StoreFiles

SAMPLES = Samples()
STRIDES = [("create", 9), ("append", 5), ("redact", 3)]
"""Of some 90, 50 and 40 disk accesses."""

ROOT = Path(__file__).parents[2]


def write(provider: SqliteProvider, n: int = 1) -> None:
    provider.append_records(SAMPLES.scope, "grants", [SAMPLES.grant(n)], [SAMPLES.audit("grant.add", n)])


def start(program: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def findings(tmp_path: Path, scenario: str, fault: str, stride: int) -> list[dict[str, object]]:
    """What `storage_faults` found, a fault each; the last fault of a run is one that was not reached."""
    command = [sys.executable, "-m", "tests.providers.storage_faults", str(tmp_path), scenario, fault, str(stride)]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found: list[dict[str, object]] = [json.loads(line) for line in output.splitlines()]
    assert found[-1]["answer"] == "not reached"
    assert len(found) > 5
    return found[:-1]


@pytest.mark.parametrize(("scenario", "stride"), STRIDES)
def test_a_process_killed_at_any_disk_access_leaves_the_write_whole_or_not_at_all(
    tmp_path: Path, scenario: str, stride: int
) -> None:
    found = findings(tmp_path, scenario, "kill", stride)
    assert {finding["answer"] for finding in found} == {"killed"}
    assert {finding["state"] for finding in found} == {"before", "after"}
    check_retried(scenario, found)


@pytest.mark.parametrize(("scenario", "stride"), STRIDES)
def test_a_disk_error_at_any_access_is_reported_as_what_happened(tmp_path: Path, scenario: str, stride: int) -> None:
    found = findings(tmp_path, scenario, "io", stride)
    outcomes = {(finding["answer"], finding["state"]) for finding in found}
    assert outcomes <= {
        ("stored", "after"),
        ("storage_failed", "before"),
        ("storage_outcome_unknown", "before"),
        ("storage_outcome_unknown", "after"),
    }
    assert len(outcomes) > 1
    check_retried(scenario, found)


def check_retried(scenario: str, found: list[dict[str, object]]) -> None:
    """The same write succeeds afterwards, and then no redacted text is left."""
    assert all(finding["retried"] and finding["swept"] for finding in found)
    if scenario == "redact":
        assert [finding["text"] for finding in found if finding["text"]] == []


def test_acknowledged_writes_survive_a_kill(tmp_path: Path) -> None:
    """At moments that nobody chose: while a child writes as fast as it can."""
    data = tmp_path / "data"
    program = f"""
import itertools
from pathlib import Path
from providers.conformance.samples import Samples
from providers.storage.sqlite import SqliteProvider
samples, provider = Samples(), SqliteProvider(Path({str(data)!r}))
episode = samples.episode(1)
first = int(input())
for n in itertools.count(first):
    events = [samples.comment(episode, n * 10 + part, comment_id="a") for part in range(3)]
    provider.append_records(samples.scope, "events", events, [samples.audit("import", n)])
    print(n, flush=True)
"""
    acknowledged = 0
    for kill_after in (1, 4, 9):
        with start(program) as writer:
            assert writer.stdin is not None
            assert writer.stdout is not None
            writer.stdin.write(f"{acknowledged + 1}\n")
            writer.stdin.flush()
            for _ in range(kill_after):
                acknowledged = int(writer.stdout.readline())
            writer.kill()
            acknowledged = int((writer.stdout.read().split() or [str(acknowledged)])[-1])
        provider = SqliteProvider(data)
        entries = list(provider.read_records(SAMPLES.scope, "audit", Query()))
        # The write that was under way may have been committed and not been acknowledged any more.
        assert len(entries) in {acknowledged, acknowledged + 1}
        acknowledged = len(entries)
        check_numbered(provider, SAMPLES.scope, 4 * acknowledged)
        computed = compute_heads(provider, SAMPLES.scope)
        assert dict(provider.read_heads(SAMPLES.scope, list(computed))) == computed


def test_of_two_processes_one_wins(tmp_path: Path) -> None:
    """Both have read the same latest version; neither has a lock to hold on to."""
    data = tmp_path / "data"
    first = SAMPLES.memory(1)
    SqliteProvider(data).append_memory_version(SAMPLES.scope, first, None, [])
    program = f"""
from pathlib import Path
from learning_core.errors import Conflict
from providers.conformance.samples import Samples
from providers.storage.sqlite import SqliteProvider
samples, provider = Samples(), SqliteProvider(Path({str(data)!r}))
latest = samples.memory(1)
won = 0
state = input()
for _ in range(30):
    version = samples.memory(1, after=latest, theme=state)
    try:
        provider.append_memory_version(samples.scope, version, latest.digest, [])
        won += 1
    except Conflict:
        pass
    from learning_core.provider import MemoryQuery
    from learning_core.records import check
    (row,) = provider.read_memory_versions(samples.scope, MemoryQuery(latest=True))
    latest = check("memory-record", row.canonical, samples.scope)
print(won)
"""
    with start(program) as one, start(program) as two:
        for name, writer in (("one", one), ("two", two)):
            assert writer.stdin is not None
            writer.stdin.write(f"{name}\n")
            writer.stdin.flush()
        won = [int(writer.communicate(timeout=60)[0]) for writer in (one, two)]
    provider = SqliteProvider(data)
    versions = [json.loads(row.canonical) for row in provider.read_memory_versions(SAMPLES.scope, MemoryQuery())]
    assert [version["version"] for version in versions] == list(range(1, sum(won) + 2))
    for earlier, later in pairwise(versions):
        assert later["previousDigest"] == earlier["digest"]


def test_processes_that_create_one_store_at_once_all_write(tmp_path: Path) -> None:
    data = tmp_path / "data"
    program = f"""
from pathlib import Path
from providers.conformance.samples import Samples
from providers.storage.sqlite import SqliteProvider
samples = Samples()
n = int(input())
SqliteProvider(Path({str(data)!r})).append_records(samples.scope, "grants", [samples.grant(n)], [])
"""
    writers = [start(program) for _ in range(4)]
    for n, writer in enumerate(writers):
        assert writer.stdin is not None
        writer.stdin.write(f"{n}\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    check_numbered(SqliteProvider(data), SAMPLES.scope, 4)


def test_a_writer_that_waits_too_long_is_told_that_the_store_is_busy(tmp_path: Path) -> None:
    write(SqliteProvider(tmp_path / "data"))
    with writing(StoreFiles(tmp_path / "data"), 1000), pytest.raises(Busy):
        write(SqliteProvider(tmp_path / "data", busy_timeout_ms=10), 2)
    check_numbered(SqliteProvider(tmp_path / "data"), SAMPLES.scope, 2)


@contextmanager
def locked_new_database(data: Path) -> Iterator[apsw.Connection]:
    """An empty database that another connection has locked, for which SQLite would not wait."""
    data.mkdir(mode=0o700)
    (data / DATABASE).touch(mode=0o600)
    with closing(apsw.Connection(str(data / DATABASE))) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


def test_a_new_database_that_somebody_has_locked_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with locked_new_database(tmp_path / "data") as other:
        monkeypatch.setattr("providers.storage.sqlite.connection.time.sleep", lambda seconds: other.execute("COMMIT"))
        write(SqliteProvider(tmp_path / "data"))
    check_numbered(SqliteProvider(tmp_path / "data"), SAMPLES.scope, 2)


def test_a_new_database_that_stays_locked_is_busy(tmp_path: Path) -> None:
    with locked_new_database(tmp_path / "data"), pytest.raises(Busy):
        write(SqliteProvider(tmp_path / "data", busy_timeout_ms=20))


def test_readers_do_not_wait_for_a_writer(tmp_path: Path) -> None:
    write(SqliteProvider(tmp_path / "data"))
    impatient = SqliteProvider(tmp_path / "data", busy_timeout_ms=0)
    with writing(StoreFiles(tmp_path / "data"), 1000) as connection:
        connection.execute("UPDATE scopes SET last_position = 99")
        assert len(read_everything(impatient, SAMPLES.scope)) == 2


def test_a_file_that_is_no_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / DATABASE).write_bytes(b"no database " * 1000)
    (tmp_path / "data" / DATABASE).chmod(0o600)
    provider = SqliteProvider(tmp_path / "data")
    with pytest.raises(StorageFailed, match="restore it from a backup"):
        write(provider)
    with pytest.raises(StorageFailed, match="restore it from a backup"):
        list(provider.read_records(SAMPLES.scope, "grants", Query()))
    assert provider.health()["ok"] is False


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (apsw.FullError(), StorageFailed, "the disk is full"),
        (apsw.ReadOnlyError(), StorageFailed, "read-only"),
        (apsw.CorruptError(), StorageFailed, "backup"),
        (apsw.CantOpenError(), StorageFailed, "cannot be opened"),
        (apsw.IOError(), StorageFailed, "the disk reported an error"),
        (apsw.NoMemError(), StorageFailed, "NoMem"),
        (apsw.BusyError(), Busy, "Another process"),
        (PermissionError(13, "Permission denied", "/x"), StorageFailed, "Permission denied"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_errors_say_what_happened(error: Exception, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text), storage_errors("Nothing was stored"):
        raise error


def test_a_commit_that_fails_has_an_unknown_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = apsw.Connection

    class Failing(real):  # type: ignore[valid-type, misc]
        def execute(self, statement: str, *arguments: object) -> object:
            if statement == "COMMIT":
                raise apsw.IOError
            return super().execute(statement, *arguments)

    write(SqliteProvider(tmp_path / "data"))
    monkeypatch.setattr(apsw, "Connection", Failing)
    with pytest.raises(StorageOutcomeUnknown):
        write(SqliteProvider(tmp_path / "data"), 2)
    monkeypatch.undo()
    check_numbered(SqliteProvider(tmp_path / "data"), SAMPLES.scope, 2)


def test_a_thousand_calls_leave_no_file_open(tmp_path: Path) -> None:
    provider = SqliteProvider(tmp_path / "data")
    write(provider)
    before = len(list(Path("/dev/fd").iterdir()))
    for n in range(330):
        list(provider.read_records(SAMPLES.scope, "grants", Query()))
        provider.read_heads(SAMPLES.scope, ["audit"])
        next(iter(provider.read_records(SAMPLES.scope, "audit", Query())))
        if n % 15 == 0:
            write(provider, n)
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_a_provider_may_be_used_on_both_sides_of_a_fork(tmp_path: Path) -> None:
    """Even with a read half consumed, because no connection outlives a page."""
    program = f"""
import os
from pathlib import Path
from learning_core.provider import Query
from providers.conformance.samples import Samples
from providers.storage.sqlite import SqliteProvider
samples, provider = Samples(), SqliteProvider(Path({str(tmp_path / "data")!r}))
provider.append_records(samples.scope, "grants", [samples.grant(n) for n in range(1500)], [])
rows = iter(provider.read_records(samples.scope, "grants", Query()))
next(rows)
child = os.fork()
rest = len(list(rows))
provider.append_records(samples.scope, "grants", [samples.grant(2000 + bool(child))], [])
assert rest == 1499, rest
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(len(list(provider.read_records(samples.scope, "grants", Query()))))
"""
    found = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    assert found.stdout == "1502\n"

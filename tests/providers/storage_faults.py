"""Writes to a SQLite store that are cut off, or fail, at every single disk access; run as a program of its own.

    python -m tests.providers.storage_faults <directory> <scenario> <fault> <stride>

Strikes at every <stride>-th access. Prints one JSON object a fault: what the call answered, and what a new process
finds afterwards. A layer under SQLite counts its writes and syncs, and at the chosen one tears the write in two and
kills the process, or reports an error. The layer leaves out the sync itself, which only a power failure needs.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import apsw

from learning_core.errors import LearningError
from providers.conformance.samples import Samples
from providers.conformance.storage.suite import compute_heads, read_everything
from providers.storage.sqlite import SqliteProvider

SAMPLES = Samples()
SENTINEL = "sentinel-77aa"
SYSTEM = apsw.vfs_names()[0]


@dataclass
class Fault:
    """What happens at the `at`-th disk access; nothing happens at the zeroth."""

    kind: str = ""
    at: int = 0
    seen: int = 0

    def is_due(self) -> bool:
        self.seen += 1
        return self.seen == self.at

    def strike(self) -> None:
        if self.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise apsw.FullError if self.kind == "full" else apsw.IOError


class FaultyFile(apsw.VFSFile):
    def __init__(self, fault: Fault, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self.fault = fault
        super().__init__(SYSTEM, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if self.fault.is_due():
            super().xWrite(data[: len(data) // 2], offset)
            self.fault.strike()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        if self.fault.is_due():
            self.fault.strike()


class FaultySystem(apsw.VFS):
    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__("faulty", SYSTEM, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> FaultyFile:  # noqa: N802
        return FaultyFile(self.fault, name, flags)


def prepare(provider: SqliteProvider) -> None:
    """A store with a comment that carries the sentinel, and another."""
    episode = SAMPLES.episode(1)
    events = [SAMPLES.comment(episode, 1, body=SENTINEL), SAMPLES.comment(episode, 2)]
    provider.append_batch(SAMPLES.scope, {"episodes": [episode], "events": events}, [SAMPLES.audit("import", 1)])


def append(provider: SqliteProvider) -> None:
    episode = SAMPLES.episode(2)
    events = [SAMPLES.comment(episode, n) for n in range(10, 40)]
    provider.append_batch(SAMPLES.scope, {"episodes": [episode], "events": events}, [SAMPLES.audit("import", 2)])


def redact(provider: SqliteProvider) -> None:
    copy = SAMPLES.redacted(SAMPLES.comment(SAMPLES.episode(1), 1, body=SENTINEL))
    provider.redact_record(SAMPLES.scope, copy, [SAMPLES.audit("evidence.redact", 1)])


SCENARIOS: dict[str, Callable[[SqliteProvider], None]] = {"create": append, "append": append, "redact": redact}


def main(root: Path, scenario: str, kind: str, stride: int) -> None:
    write = SCENARIOS[scenario]
    system = FaultySystem(Fault())
    original = root / "original"
    if scenario != "create":
        prepare(SqliteProvider(original))
    before = snapshot(original)
    wanted = root / "wanted"
    copy_store(original, wanted)
    write(SqliteProvider(wanted))
    after = snapshot(wanted)
    for at in range(1, 1000, stride):
        data = root / f"{kind}-{at}"
        copy_store(original, data)
        answer = answer_under_fault(system, data, write, Fault(kind, at))
        found = snapshot(data)
        state = "after" if found == after else "before" if found == before else "neither"
        write(SqliteProvider(data))
        swept = SqliteProvider(data).sweep()
        text = [path.name for path in data.iterdir() if SENTINEL.encode() in path.read_bytes()]
        retried = snapshot(data) == after
        finding = {"answer": answer, "state": state, "retried": retried, "swept": swept, "text": text}
        sys.stdout.write(json.dumps(finding) + "\n")
        shutil.rmtree(data)
        if answer == "not reached":
            return


def copy_store(source: Path, target: Path) -> None:
    if source.exists():
        shutil.copytree(source, target)


def answer_under_fault(system: FaultySystem, data: Path, write: Callable[[SqliteProvider], None], fault: Fault) -> str:
    """Write in a child process; what it answered: `stored`, an error's code, `killed`, or `not reached`."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        system.fault = fault
        try:
            write(SqliteProvider(data))
            answer = "stored" if fault.seen >= fault.at else "not reached"
        except LearningError as error:
            answer = error.code
        os.write(write_end, answer.encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    return "killed" if os.WIFSIGNALED(status) else answer


def snapshot(data: Path) -> object:
    """Everything that the store answers; its heads must be what its rows add up to."""
    provider = SqliteProvider(data)
    computed = compute_heads(provider, SAMPLES.scope)
    if dict(provider.read_heads(SAMPLES.scope, list(computed))) != computed:
        return "heads differ from rows"
    return read_everything(provider, SAMPLES.scope)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))

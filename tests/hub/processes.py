"""Real processes of a Hub on a data directory of a test's own, and what is left of them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MANAGE = str(ROOT / "manage.py")
LEFT_OUT = ("HUB_", "PYTHONUNBUFFERED")
"""What a Hub of a test must not find in its environment: settings, and what would hide a missing flush."""
PATIENCE = 60.0
"""How long a test waits for something that must happen. It is reached only when it does not."""


@dataclass(frozen=True)
class Hub:
    """Where a test's Hub is."""

    directory: Path
    bind: str

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(LEFT_OUT)}
        settings = {"DJANGO_SETTINGS_MODULE": "hub_learning.settings", "PYTHONPATH": str(ROOT)}
        return kept | settings | {"HUB_DATA_DIR": str(self.directory), "HUB_BIND": self.bind}

    def start(self, *command: str, **options: Any) -> subprocess.Popen[str]:
        """A Python process with the Hub's environment. It works in the directory that tells the Hub's processes."""
        return subprocess.Popen(
            [sys.executable, *command], env=self.environment, cwd=self.directory.parent, text=True, **options
        )

    def start_module(self, name: str, **options: Any) -> subprocess.Popen[str]:
        """A process that runs a module's `main` with Django set up."""
        code = f"import django; django.setup(); from {name} import main; main()"
        return self.start("-c", code, **options)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A `manage.py` command, to its end."""
        process = self.start(MANAGE, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def processes(self) -> dict[int, str]:
        """The Hub's processes that live, by ID: their command lines. They are told by where they work."""
        found: dict[int, str] = {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if (path / "cwd").readlink().is_relative_to(self.directory.parent):
                    found[int(path.name)] = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
        return found

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of the Hub's database."""
        database = sqlite3.connect(f"file:{self.directory / 'hub.sqlite'}?mode=ro", uri=True, timeout=30)
        try:
            return database.execute(sql).fetchall()
        finally:
            database.close()

    def holders(self, text: str) -> list[str]:
        """The files that hold a text, plain or compressed as RQ does it, relative to the data directory."""
        wanted = text.encode()
        paths = [path for path in self.directory.rglob("*") if path.is_file() and not path.is_symlink()]
        return sorted(str(path.relative_to(self.directory)) for path in paths if wanted in expand(path.read_bytes()))


def expand(content: bytes) -> bytes:
    """The content of a file, and after it what its zlib streams hold."""
    parts = [content]
    for match in re.finditer(b"\x78[\x01\x5e\x9c\xda]", content):
        with suppress(zlib.error):
            parts.append(zlib.decompressobj().decompress(content[match.start() :]))
    return b"\n".join(parts)


def make_hub(directory: Path) -> Hub:
    """A Hub in a new directory, with a port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return Hub(directory / "data", f"127.0.0.1:{server.getsockname()[1]}")


def wait_for(what: str, is_so: Callable[[], bool]) -> None:
    """Wait until something is so. Fails when it never is."""
    ends = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < ends, f"never: {what}"
        time.sleep(0.02)


@contextmanager
def running(hub: Hub, *, until: str = "Ctrl-C stops it.") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`manage.py run`, once it has said that it runs, with what it said. Whatever it leaves behind is killed."""
    process = hub.start(MANAGE, "run", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = ""
    # Reading has no time limit of its own: a Hub that never says it is there is ended, which ends its output.
    impatience = threading.Timer(2 * PATIENCE, process.kill)
    impatience.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            said += line
            if until in line:
                break
        impatience.cancel()
        yield process, said
    finally:
        impatience.cancel()
        for number in hub.processes():
            os.kill(number, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


class Agent:
    """A process that speaks for a review tool and its administrator: see `tests.hub.agent`."""

    def __init__(self, hub: Hub) -> None:
        self._process = hub.start_module("tests.hub.agent", stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, verb: str, value: Any = None) -> Any:
        """Have it do one thing; the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([verb, value]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

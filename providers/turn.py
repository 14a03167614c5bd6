"""The repository's turn: an exclusive lock on a file, at most one holder, that cannot expire.

1. The lock is an `flock`; it ends with the process that holds it, however that ends.
2. The file is never removed. After locking, its inode is compared with what the name refers to now; if somebody
   replaced the file, the lock means nothing and is taken again.

Source: design.md, decision 7.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from learning_core.errors import Busy, UnsafeStorage

WAIT_SECONDS = 0.05
"""How often a caller that may wait tries again."""


@contextmanager
def take_turn(path: Path, *, wait_seconds: float = 0.0) -> Iterator[None]:
    """Hold the lock on a file in an existing private directory. Raises `Busy` after `wait_seconds`."""
    deadline = time.monotonic() + wait_seconds
    while (descriptor := _try_lock(path)) is None:
        if time.monotonic() >= deadline:
            raise Busy("The repository is being worked on; try again in a moment.")
        time.sleep(WAIT_SECONDS)
    try:
        yield
    finally:
        os.close(descriptor)


def _try_lock(path: Path) -> int | None:
    """A descriptor that holds the lock, or None when another process holds it. Closing it lets go."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise UnsafeStorage(f"The lock file {path} cannot be opened: {error.strerror}.") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_named(descriptor, path):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_named(descriptor: int, path: Path) -> bool:
    """Whether the path still names the open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False

"""The repository's turn: at any time at most one process works on a repository's learning store through the Hub.

1. The turn is an exclusive `flock` on `turns/<repository id>.lock` in the data directory. It cannot expire, and it
   ends with the process that holds it, however that ends.
2. The file is never removed. After locking, its inode is compared with what the name refers to now; if somebody
   replaced the file, the lock means nothing and is taken again.
3. A job takes the turn without waiting. If it is taken, whoever holds it looks at the queue after letting go, so a
   step that was asked for before a job found the turn taken is not lost.
4. After letting go, look again and wake a successor. If the process dies in between, the sweep does.

Steps are idempotent, so a step that was interrupted simply runs again.

Source: design.md, decision 7.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from hub_learning import steps, wakeups
from hub_learning.models import Step
from learning_core.errors import Busy

TURN_SECONDS = 20.0
"""A turn that has taken so long lets others have the worker. A step that has begun is finished first."""
WAIT_SECONDS = 0.05
"""How often a command that may wait tries again."""


@contextmanager
def take_turn(repository_id: int, *, wait_seconds: float = 0.0) -> Iterator[None]:
    """Hold the repository's turn. Raises `Busy` when another process holds it longer than `wait_seconds`."""
    deadline = time.monotonic() + wait_seconds
    while True:
        descriptor = _try_lock(_lock_path(repository_id))
        if descriptor is not None:
            break
        if time.monotonic() >= deadline:
            raise Busy("The repository is being worked on. Try again in a moment.", repository=repository_id)
        time.sleep(WAIT_SECONDS)
    try:
        yield
    finally:
        os.close(descriptor)


def run_turn(repository_id: int, run_step: Callable[[Step], None], *, seconds: float = TURN_SECONDS) -> None:
    """Take the turn and run due steps in order of urgency until none is due or the time is up. `Busy` ends it at once.

    `run_step` marks the step done or failed and does not raise for a failure of the step.
    """
    ends = time.monotonic() + seconds
    try:
        with take_turn(repository_id):
            while time.monotonic() < ends:
                step = steps.next_step(repository_id, timezone.now())
                if step is None:
                    break
                run_step(step)
    except Busy:
        return
    if steps.has_due_steps(repository_id, timezone.now()):
        wakeups.send_wakeup(repository_id)


def _lock_path(repository_id: int) -> Path:
    directory: Path = settings.HUB.data_directory / "turns"
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory / f"{repository_id}.lock"


def _try_lock(path: Path) -> int | None:
    """A descriptor that holds the lock, or None when another process holds it. Closing it lets go."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
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

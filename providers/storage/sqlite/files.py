"""Which files a store may consist of, and their creation.

Somebody who can write the data directory, such as a coding agent in a checkout, could plant a link there that sends the
store's reads and writes to another file. So everything is refused that is not plainly this user's own private file.

Files are only ever looked at with `lstat`. Opening and closing the database, its -wal or its -shm drops the locks that
this process holds on it through SQLite, and acknowledged commits can be lost.

Source: the learning guide, "Local storage"; design.md, decision 4.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from learning_core.errors import UnsafeStorage

DATABASE = "learning.sqlite"
SIDE_FILES = ("-wal", "-shm", "-journal")


class StoreFiles:
    """The files of one store. Links above the data directory are followed; the directory itself must not be one."""

    def __init__(self, data_directory: Path) -> None:
        # SQLite refuses a link anywhere in the path, and a system may have one above (/var on macOS).
        self.directory = data_directory.parent.resolve() / data_directory.name
        self.database = self.directory / DATABASE
        self._names = [f"{self.database}{suffix}" for suffix in ("", *SIDE_FILES)]

    def exist(self) -> bool:
        """Whether there is a database. Raises `UnsafeStorage` when anything in its place may not be used.

        1. The directory is a real directory, ours, and no one else can read it.
        2. The database and each side file is a regular file, ours, with one name, that no one else can read.
        """
        directory = look_at(self.directory)
        if directory is None:
            return False
        _check_directory(self.directory, directory)
        found = [look_at(name) for name in self._names]
        for name, status in zip(self._names, found, strict=True):
            if status is not None:
                _check_file(name, status)
        return found[0] is not None

    def create_directory(self) -> None:
        """Make the data directory and what is missing above it, each with mode 0700 whatever the umask is."""
        missing = []
        path = self.directory
        while look_at(path) is None:
            missing.append(path)
            path = path.parent
        for path in reversed(missing):
            try:
                path.mkdir(mode=0o700)
            except FileExistsError:
                continue
            path.chmod(0o700)


@contextmanager
def mode_reference(directory: Path) -> Iterator[str]:
    """A short-lived file with mode 0600: SQLite gives a file that it creates exactly the mode of the one named."""
    with tempfile.NamedTemporaryFile(dir=directory, prefix=".mode-") as file:
        os.fchmod(file.fileno(), 0o600)
        yield file.name


def look_at(path: Path | str) -> os.stat_result | None:
    """What stands at a path, a link not followed; None when nothing does."""
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def _check_directory(path: Path, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise _refusal(path, "is a symbolic link", "Name the real directory.")
    if not stat.S_ISDIR(status.st_mode):
        raise _refusal(path, "is not a directory", "Move it away, or choose another data directory.")
    _check_private(path, status, "chmod 700")


def _check_file(path: str, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise _refusal(path, "is a symbolic link", "Find out who placed it, then remove it.")
    if not stat.S_ISREG(status.st_mode):
        raise _refusal(path, "is not a regular file", "Find out who placed it, then remove it.")
    if status.st_nlink != 1:
        raise _refusal(path, "has a second name (a hard link)", "Find out who placed it, then remove the other name.")
    _check_private(path, status, "chmod 600")


def _check_private(path: Path | str, status: os.stat_result, command: str) -> None:
    if status.st_uid != os.geteuid():
        raise _refusal(path, "belongs to another user", "Run as that user, or choose another data directory.")
    if status.st_mode & 0o077:
        raise _refusal(path, "can be read or written by other users", f"Run: {command} '{path}'")


def _refusal(path: Path | str, what: str, remedy: str) -> UnsafeStorage:
    return UnsafeStorage(f"The store is refused, because {path} {what}. {remedy}", path=str(path))

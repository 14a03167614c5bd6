"""Which files the SQLite provider accepts, and with which modes it makes its own."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import apsw
import pytest

from learning_core.errors import StorageFailed, UnsafeStorage
from learning_core.provider import MemoryQuery, Query
from providers.conformance.samples import Samples
from providers.storage.sqlite import SqliteProvider
from providers.storage.sqlite.files import DATABASE

SAMPLES = Samples()
NAMES = [DATABASE + suffix for suffix in ("", "-wal", "-shm", "-journal")]


def write(provider: SqliteProvider, n: int = 1) -> None:
    provider.append_records(SAMPLES.scope, "grants", [SAMPLES.grant(n)], [SAMPLES.audit("grant.add", n)])


def read(provider: SqliteProvider) -> int:
    return len(list(provider.read_records(SAMPLES.scope, "grants", Query())))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with a store in it."""
    write(SqliteProvider(tmp_path / "data"))
    return tmp_path / "data"


# Creation -------------------------------------------------------------------------------------------------------------


def test_reading_creates_nothing(tmp_path: Path) -> None:
    provider = SqliteProvider(tmp_path / "a" / "data")
    assert read(provider) == 0
    assert list(provider.read_memory_versions(SAMPLES.scope, MemoryQuery(latest=True))) == []
    assert provider.read_heads(SAMPLES.scope, ["audit"])["audit"].count == 0
    assert provider.health()["ok"] is True
    assert provider.sweep() is True
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "data").mkdir(mode=0o700)
    assert read(provider) == 0
    assert list((tmp_path / "a" / "data").iterdir()) == []


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277], ids=oct)
def test_modes_do_not_depend_on_the_umask(tmp_path: Path, umask: int) -> None:
    program = f"""
import os
from pathlib import Path
from providers.storage.sqlite.connection import writing
from providers.storage.sqlite.files import StoreFiles
data = Path({str(tmp_path / "a" / "data")!r})
os.umask({umask})
with writing(StoreFiles(data), 1000) as connection:
    connection.execute("INSERT INTO scopes VALUES (1, 'x', 0, 0)")
    print(*(f"{{entry.name}}={{entry.lstat().st_mode & 0o7777:o}}" for entry in sorted(data.iterdir())))
"""
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert found.split() == [f"{DATABASE}=600", f"{DATABASE}-shm=600", f"{DATABASE}-wal=600"]
    assert [mode(path) for path in (tmp_path / "a", tmp_path / "a" / "data")] == [0o700, 0o700]


def test_a_write_leaves_only_the_database_and_a_read_an_empty_log(data: Path) -> None:
    assert [path.name for path in data.iterdir()] == [DATABASE]
    assert read(SqliteProvider(data)) == 1
    assert {path.name for path in data.iterdir()} <= {DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"}
    assert (data / f"{DATABASE}-wal").stat().st_size == 0


# Planted files --------------------------------------------------------------------------------------------------------


def symbolic_link(path: Path, elsewhere: Path) -> None:
    elsewhere.touch(mode=0o600)
    path.symlink_to(elsewhere)


def dangling_link(path: Path, elsewhere: Path) -> None:
    path.symlink_to(elsewhere)


def hard_link(path: Path, elsewhere: Path) -> None:
    elsewhere.touch(mode=0o600)
    path.hardlink_to(elsewhere)


def pipe(path: Path, _elsewhere: Path) -> None:
    os.mkfifo(path, 0o600)


def directory(path: Path, _elsewhere: Path) -> None:
    path.mkdir(mode=0o700)


def unix_socket(path: Path, _elsewhere: Path) -> None:
    # Bound by its name alone, because a socket's path may have 107 bytes at most.
    with chdir(path.parent), socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    path.chmod(0o600)


def readable_by_all(path: Path, _elsewhere: Path) -> None:
    path.touch()
    path.chmod(0o644)


def writable_by_the_group(path: Path, _elsewhere: Path) -> None:
    path.touch()
    path.chmod(0o620)


PLANTS = [
    (symbolic_link, "is a symbolic link"),
    (dangling_link, "is a symbolic link"),
    (hard_link, "second name"),
    (pipe, "not a regular file"),
    (directory, "not a regular file"),
    (unix_socket, "not a regular file"),
    (readable_by_all, "chmod 600"),
    (writable_by_the_group, "chmod 600"),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("plant", "reason"), PLANTS, ids=[plant.__name__ for plant, _ in PLANTS])
def test_a_planted_file_is_refused(
    tmp_path: Path, data: Path, name: str, plant: Callable[[Path, Path], None], reason: str
) -> None:
    if name == DATABASE:
        (data / name).unlink()
    plant(data / name, tmp_path / "elsewhere")
    check_refused(SqliteProvider(data), data / name, reason)
    elsewhere = tmp_path / "elsewhere"
    assert not elsewhere.exists() or elsewhere.read_bytes() == b""


@pytest.mark.parametrize("name", NAMES)
def test_another_owners_file_is_refused(data: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (data / name).touch(mode=0o600)
    with another_owner(data / name, monkeypatch):
        check_refused(SqliteProvider(data), data / name, "another user")


def test_another_owners_directory_is_refused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with another_owner(data, monkeypatch):
        check_refused(SqliteProvider(data), data, "another user")


@pytest.mark.parametrize("bits", [0o750, 0o705, 0o770, 0o701], ids=oct)
def test_a_directory_that_others_can_use_is_refused(data: Path, bits: int) -> None:
    data.chmod(bits)
    check_refused(SqliteProvider(data), data, "chmod 700")
    data.chmod(0o700)
    assert read(SqliteProvider(data)) == 1


def test_a_linked_directory_is_refused(tmp_path: Path, data: Path) -> None:
    (tmp_path / "link").symlink_to(data)
    check_refused(SqliteProvider(tmp_path / "link"), tmp_path / "link", "is a symbolic link")


def test_a_file_in_the_directorys_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").touch(mode=0o600)
    check_refused(SqliteProvider(tmp_path / "data"), tmp_path / "data", "not a directory")


def test_a_link_above_the_directory_is_followed(tmp_path: Path, data: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert read(SqliteProvider(tmp_path / "link" / "data")) == 1


def test_sqlite_itself_follows_no_link(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that is placed after the check is refused when the file is opened."""
    (data / DATABASE).rename(tmp_path / "elsewhere")
    (data / DATABASE).symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr("providers.storage.sqlite.files._check_file", lambda path, status: None)
    with pytest.raises(StorageFailed, match="cannot be opened"):
        read(SqliteProvider(data))


def test_a_file_planted_while_the_store_is_opened_is_refused(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are looked at again once they are open, so a second name is found before anything is written."""
    real = apsw.Connection

    def open_and_link(*arguments: object, **options: object) -> apsw.Connection:
        (tmp_path / "second name").hardlink_to(data / DATABASE)
        return real(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(apsw, "Connection", open_and_link)
    with pytest.raises(UnsafeStorage, match="second name"):
        write(SqliteProvider(data), 2)
    monkeypatch.undo()
    (tmp_path / "second name").unlink()
    assert read(SqliteProvider(data)) == 1


def check_refused(provider: SqliteProvider, path: Path, reason: str) -> None:
    """Reading, writing and a health check refuse, and say which file and what to do."""
    for call in (read, write):
        with pytest.raises(UnsafeStorage) as refusal:
            call(provider)
        assert refusal.value.details["path"] == str(path)
        assert str(path) in refusal.value.message
        assert reason in refusal.value.message
        assert provider.health() == {"ok": False, "detail": refusal.value.message}


@contextmanager
def another_owner(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As the superuser the file really changes hands; otherwise its owner only looks different."""
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
        yield
        return
    real = os.lstat

    def lstat(name: str | Path) -> os.stat_result:
        status = real(name)
        return os.stat_result((*status[:4], status.st_uid + 1, *status[5:])) if str(name) == str(path) else status

    with monkeypatch.context() as patch:
        patch.setattr(os, "lstat", lstat)
        yield

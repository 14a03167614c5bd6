"""Connections to a store: opened for one operation and closed after it, never pooled, never carried across a fork."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

import apsw

from learning_core.errors import Busy, InvalidArgument, StorageFailed, StorageOutcomeUnknown
from providers.storage.sqlite.files import StoreFiles, look_at, mode_reference
from providers.storage.sqlite.schema import PAGE_SIZE, current_version, migrate, read_version

PURGE_WAIT: Final = 0.05
"""How long, in seconds, the checkpoint after a redaction waits for readers."""

_FLAGS: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
_CACHE_KIB: Final = 64 * 1024
_SETTINGS: Final = f"""
    PRAGMA synchronous = FULL;
    PRAGMA secure_delete = ON;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -{_CACHE_KIB};
"""


@contextmanager
def reading(files: StoreFiles, busy_timeout_ms: int) -> Iterator[apsw.Connection | None]:
    """A connection for one read, or None when there is no store yet. It creates nothing."""
    with storage_errors("The store could not be read"):
        if not files.exist():
            yield None
            return
        with closing(_open(files, busy_timeout_ms, create=False)) as connection:
            # A reader that happens to be the last to leave need not tidy up the write-ahead log, which would be a sync
            # or two each time: whoever writes does.
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            version = read_version(connection)
            if 0 < version < current_version():
                migrate(connection)
            files.exist()
            yield connection if version else None


@contextmanager
def writing(files: StoreFiles, busy_timeout_ms: int) -> Iterator[apsw.Connection]:
    """A connection inside one write transaction, which commits at the end. Tries a purge that is still pending.

    An error leaves the transaction open, and closing the connection undoes it.
    """
    with storage_errors("Nothing was stored"):
        existed = files.exist()
        if not existed:
            files.create_directory()
            files.exist()
        with closing(_open(files, busy_timeout_ms, create=not existed)) as connection:
            if read_version(connection) < current_version():
                _use_write_ahead_log(connection, busy_timeout_ms)
                migrate(connection)
            connection.execute("BEGIN IMMEDIATE")
            files.exist()
            _clear_mark(connection)
            yield connection
            marked = _is_marked(connection)
            _commit(connection)
            if marked:
                purge(connection)
            # The write is stored, whatever closing meets.
            with suppress(apsw.Error):
                connection.close()


@contextmanager
def storage_errors(outcome: str) -> Iterator[None]:
    """Turn what SQLite and the system raise into `Busy` and `StorageFailed`. `outcome` begins the latter's sentence."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise Busy("Another process is writing to the store. Try again in a minute.") from error
    except apsw.Error as error:
        raise StorageFailed(f"{outcome}: {_explain(error)}.") from error
    except OSError as error:
        raise StorageFailed(f"{outcome}: {error.strerror or type(error).__name__} ({error.filename}).") from error


def is_purge_pending(connection: apsw.Connection) -> bool:
    """Whether text that a redaction removed may still stand in the write-ahead log: there is a mark, and a log."""
    return _is_marked(connection) and not _is_log_empty(connection)


def request_purge(connection: apsw.Connection) -> None:
    """Leave the durable mark, inside the transaction that removes text."""
    connection.execute("UPDATE purge SET requested = requested + 1")


def purge(connection: apsw.Connection) -> bool:
    """Write everything back to the database and empty the write-ahead log, waiting at most `PURGE_WAIT`.

    False when a reader or the disk prevents it. The mark stays in any case; the next write clears it.
    """
    try:
        connection.set_busy_handler(_wait_until(time.monotonic() + PURGE_WAIT))
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.Error:
        return False
    return True


def _clear_mark(connection: apsw.Connection) -> None:
    """Clear the mark where it has become void. Inside a write transaction nobody else can fill an empty log again."""
    if _is_marked(connection) and _is_log_empty(connection):
        connection.execute("UPDATE purge SET done = requested")


def _is_marked(connection: apsw.Connection) -> bool:
    return bool(connection.execute("SELECT requested > done FROM purge").get)


def _is_log_empty(connection: apsw.Connection) -> bool:
    status = look_at(connection.filename_wal)
    return status is None or status.st_size == 0


def copy_database(source: apsw.Connection, target: Path) -> None:
    """Copy a store, as it is at one moment, to a new file with mode 0600. It appears under its name only when whole."""
    place = target.parent.resolve() / target.name
    if look_at(place) is not None:
        raise InvalidArgument(f"{place} exists already. Name a new file for the backup.")
    partial = place.with_name(f".{place.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        with closing(_create(partial)) as copy, copy.backup("main", source, "main") as backup:
            backup.step()
        partial.rename(place)
    finally:
        partial.unlink(missing_ok=True)


def _wait_until(deadline: float) -> Callable[[int], bool]:
    def wait(_calls: int) -> bool:
        time.sleep(0.001)
        return time.monotonic() < deadline

    return wait


def _open(files: StoreFiles, busy_timeout_ms: int, *, create: bool) -> apsw.Connection:
    connection = _create(files.database) if create else apsw.Connection(str(files.database), flags=_FLAGS)
    try:
        connection.set_busy_timeout(busy_timeout_ms)
        # A planted database could bring code along: no triggers, no views, no unsafe functions in its schema.
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)
        connection.execute(_SETTINGS).fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _create(database: Path) -> apsw.Connection:
    """Open a database that may not exist yet, which then gets mode 0600 whatever the umask is."""
    with mode_reference(database.parent) as reference:
        uri = f"file:{quote(str(database))}?modeof={quote(reference)}"
        return apsw.Connection(uri, flags=_FLAGS | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI)


def _use_write_ahead_log(connection: apsw.Connection, busy_timeout_ms: int) -> None:
    """Switch a new database to its write-ahead log. SQLite does not wait for another process here, so this does."""
    deadline = time.monotonic() + busy_timeout_ms / 1000
    while True:
        try:
            connection.pragma("page_size", PAGE_SIZE)
            connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.005)
        else:
            return


def _commit(connection: apsw.Connection) -> None:
    try:
        connection.execute("COMMIT")
    except apsw.BusyError:
        raise
    except apsw.Error as error:
        raise StorageOutcomeUnknown(
            f"The storage failed while a write committed: {_explain(error)}. "
            "The write may or may not be stored, though never in part. Read again before you retry."
        ) from error


def _explain(error: apsw.Error) -> str:
    if isinstance(error, apsw.FullError):
        return "the disk is full"
    if isinstance(error, (apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError)):
        return "it is read-only"
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return "the database file is damaged; restore it from a backup"
    if isinstance(error, apsw.CantOpenError):
        return "a file cannot be opened"
    if isinstance(error, apsw.IOError):
        return "the disk reported an error"
    return f"SQLite reported {type(error).__name__.removesuffix('Error')}"

"""The provider over one SQLite file. It keeps no connection and no state between calls, so it may be forked."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from learning_core.errors import Conflict, InvalidArgument, LearningError, NotFound
from learning_core.provider import (
    EMPTY_HEAD,
    HEADS,
    INDEX,
    MEMORIES,
    REDACTION,
    REPAIR,
    REQUIRED_CAPABILITIES,
    STREAMS,
    Head,
    MemoryQuery,
    Query,
    Record,
    Row,
    Stream,
    check_redacted_copy,
)
from providers.storage.fields import read_fields
from providers.storage.sqlite.checking import find_misplaced
from providers.storage.sqlite.connection import copy_database, is_purge_pending, purge, reading, request_purge, writing
from providers.storage.sqlite.files import StoreFiles
from providers.storage.sqlite.queries import KEYS_AT_ONCE, find_keys, read_page, scope_key
from providers.storage.sqlite.schema import POSITION_MASK
from providers.storage.sqlite.writing import (
    append,
    check_latest_version,
    count_redaction,
    find_row,
    load_heads,
    open_scope,
    prepare,
    read_data,
    replace_row,
)

BUSY_TIMEOUT_MS: Final = 60_000
"""How long a call waits for another writer: longer than the longest import's transaction."""

NOTHING_EXPECTED: Final[Mapping[str, Head]] = MappingProxyType({})


class SqliteProvider:
    """A `MemoryProvider` with every optional capability, over `learning.sqlite` in a private directory.

    Reading a store that does not exist gives nothing and creates nothing. Rows are read as the result is consumed, in
    short transactions, so a long read holds nothing up. Errors: `UnsafeStorage`, `NewerStore`, `Busy`, `StorageFailed`,
    `StorageOutcomeUnknown`, `Damaged` beside those of the protocol.
    """

    def __init__(self, data_directory: Path, *, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> None:
        self._files = StoreFiles(data_directory)
        self._busy_timeout_ms = busy_timeout_ms

    def manifest(self) -> Mapping[str, Any]:
        """A `replica.provider-manifest/v1` object."""
        return {
            "schemaVersion": "replica.provider-manifest/v1",
            "name": "sqlite",
            "version": "1",
            "contracts": ["v1"],
            "capabilities": [*REQUIRED_CAPABILITIES, REDACTION, HEADS, REPAIR, INDEX],
            "storage": {"kind": "file", "erasure": "overwritten", "location": str(self._files.database)},
            "sendsTo": [],
        }

    def health(self) -> Mapping[str, Any]:
        """`{"ok": bool, "detail": text}`: whether the store can be opened, and whether removed text is purged."""
        try:
            with reading(self._files, self._busy_timeout_ms) as connection:
                if connection is None:
                    return {"ok": True, "detail": "There is no store yet."}
                if is_purge_pending(connection):
                    return {"ok": True, "detail": "Removed text waits to be purged: another process is reading."}
        except LearningError as error:
            return {"ok": False, "detail": error.message}
        return {"ok": True, "detail": "The store can be read."}

    # Reading ----------------------------------------------------------------------------------------------------------

    def read_records(self, scope: str, stream: Stream, query: Query) -> Iterator[Row]:
        """The stream's rows that match, by position."""
        _check_stream(stream)
        return self._read(scope, stream, query)

    def read_memory_versions(self, scope: str, query: MemoryQuery) -> Iterator[Row]:
        """The memory versions that match, by position."""
        return self._read(scope, MEMORIES, query)

    def read_heads(self, scope: str, groups: Sequence[str]) -> Mapping[str, Head]:
        """The named groups' heads, all of one moment."""
        with reading(self._files, self._busy_timeout_ms) as connection:
            key = None if connection is None else scope_key(connection, scope)
            if connection is None or key is None:
                return dict.fromkeys(groups, EMPTY_HEAD)
            found = load_heads(connection, key, groups)
        return {group: found[group][1] if group in found else EMPTY_HEAD for group in groups}

    def _read(self, scope: str, stream: str, query: Query | MemoryQuery) -> Iterator[Row]:
        """Each turn opens a connection, finds more keys if there are none left, reads one page, and closes it."""
        after, left = query.after or 0, query.limit
        keys = array("q")
        more = True
        while more or keys:
            with reading(self._files, self._busy_timeout_ms) as connection:
                if connection is None:
                    return
                if not keys:
                    wanted = KEYS_AT_ONCE if left is None else min(KEYS_AT_ONCE, left)
                    keys = find_keys(connection, scope, stream, query, after, wanted)
                    left = None if left is None else left - len(keys)
                    more = len(keys) == wanted and left != 0
                    after = keys[-1] & POSITION_MASK if keys else after
                page, taken = read_page(connection, keys)
            keys = keys[taken:]
            yield from page

    def check_index(self, scope: str) -> Iterator[tuple[str, str]]:
        """The stream and record ID of each row that a query would not find where its bytes belong."""
        after: int | None = 0
        while after is not None:
            with reading(self._files, self._busy_timeout_ms) as connection:
                key = None if connection is None else scope_key(connection, scope)
                if connection is None or key is None:
                    return
                misplaced, after = find_misplaced(connection, key, after)
            yield from misplaced

    # Writing ----------------------------------------------------------------------------------------------------------

    def append_records(
        self,
        scope: str,
        stream: Stream,
        records: Sequence[Record],
        audit: Sequence[Record],
        *,
        expected: Mapping[str, Head] = NOTHING_EXPECTED,
    ) -> None:
        """Store records of one stream and the audit entries that record them, in one atomic write."""
        self.append_batch(scope, {stream: records}, audit, expected=expected)

    def append_batch(
        self,
        scope: str,
        records: Mapping[Stream, Sequence[Record]],
        audit: Sequence[Record],
        *,
        expected: Mapping[str, Head] = NOTHING_EXPECTED,
    ) -> None:
        """The same over several streams; rows are numbered in the order of `records`, the audit entries last."""
        for stream in records:
            _check_stream(stream)
        entries = [entry for stream, group in records.items() for entry in prepare(stream, group)]
        entries += prepare("audit", audit)
        with writing(self._files, self._busy_timeout_ms) as connection:
            key = open_scope(connection, scope, expected)
            append(connection, key, entries)

    def append_memory_version(
        self,
        scope: str,
        record: Record,
        previous_digest: str | None,
        audit: Sequence[Record],
        *,
        expected: Mapping[str, Head] = NOTHING_EXPECTED,
    ) -> None:
        """Append a version if the latest one has `previous_digest` (`None`: the memory must not exist yet)."""
        entries = prepare(MEMORIES, [record]) + prepare("audit", audit)
        with writing(self._files, self._busy_timeout_ms) as connection:
            key = open_scope(connection, scope, expected)
            check_latest_version(connection, key, record, previous_digest)
            append(connection, key, entries)

    def redact_record(
        self,
        scope: str,
        record: Record,
        audit: Sequence[Record],
        *,
        expected: Mapping[str, Head] = NOTHING_EXPECTED,
    ) -> None:
        """Replace a stored event, at its position, with its redacted copy; then empty the write-ahead log.

        If a reader prevents the latter for 50 ms, a durable mark stays: `sweep`, or a later write, finishes it.
        """
        entries = prepare("audit", audit)
        with writing(self._files, self._busy_timeout_ms) as connection:
            key = open_scope(connection, scope, expected)
            row = find_row(connection, key, "events", record.id, 0)
            if row.canonical != record.canonical:
                stored, copy = (read_data(record.id, canonical) for canonical in (row.canonical, record.canonical))
                reason = check_redacted_copy(stored, copy)
                if reason is not None:
                    raise Conflict(f"The event {record.id} is not redacted: {reason}.", record_id=record.id)
                fields = read_fields("events", record.data)
                replace_row(connection, row.key, record, fields)
                count_redaction(connection, key, fields.groups[0], record.digest)
                request_purge(connection)
            append(connection, key, entries)

    def restore_record(
        self,
        scope: str,
        stream: Stream | Literal["memories"],
        record: Record,
        audit: Sequence[Record],
        *,
        expected: Mapping[str, Head] = NOTHING_EXPECTED,
    ) -> None:
        """Put an intact record in the place of the damaged row with the same ID (and, for a memory, version).

        Raises `Conflict` when there is no such row, and when an event's row lost its payload and the record has one, or
        the other way round: a repair neither brings removed text back nor removes any.
        """
        fields = read_fields(stream, record.data)
        entries = prepare("audit", audit)
        with writing(self._files, self._busy_timeout_ms) as connection:
            key = open_scope(connection, scope, expected)
            row = find_row(connection, key, stream, record.id, fields.version)
            if row.redacted != fields.redacted:
                raise Conflict(f"The record {record.id} was redacted in one place only.", record_id=record.id)
            replace_row(connection, row.key, record, fields)
            append(connection, key, entries)

    # Upkeep -----------------------------------------------------------------------------------------------------------

    def sweep(self) -> bool:
        """Finish a purge that a reader prevented. True when no removed text is left in the store's files."""
        with reading(self._files, self._busy_timeout_ms) as connection:
            return connection is None or not is_purge_pending(connection) or purge(connection)

    def backup(self, target: Path) -> None:
        """Copy the store, as it is at one moment, to a new file with mode 0600. Backups keep the text they hold.

        Raises `InvalidArgument` when the target exists, `NotFound` when there is no store.
        """
        with reading(self._files, self._busy_timeout_ms) as connection:
            if connection is None:
                raise NotFound("There is no store to back up.")
            copy_database(connection, target)


def _check_stream(stream: str) -> None:
    if stream not in STREAMS:
        raise InvalidArgument(f"{stream} is no stream of records.", stream=stream)

"""The provider in process memory, for tests: every optional capability, the same answers, and nothing is kept.

Redaction replaces the only copy that the provider holds; the interpreter reuses the memory when it likes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from learning_core.errors import Conflict, HeadMoved, InvalidArgument
from learning_core.provider import (
    EMPTY_HEAD,
    HEADS,
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
    advance,
    advance_redacted,
    check_redacted_copy,
)
from providers.storage.fields import Fields, matches_memory_query, matches_query, read_fields

NOTHING_EXPECTED: Final[Mapping[str, Head]] = MappingProxyType({})


class _Stored(NamedTuple):
    stream: str
    id: str
    digest: str
    fields: Fields
    canonical: bytes


@dataclass(slots=True)
class _Scope:
    """One scope's rows, where each stands, each memory's latest version, and the heads."""

    rows: list[_Stored] = field(default_factory=list)
    places: dict[tuple[str, str, int], int] = field(default_factory=dict)
    latest: dict[str, int] = field(default_factory=dict)
    heads: dict[str, Head] = field(default_factory=dict)


class InMemoryProvider:
    """A `MemoryProvider` whose records end with the process. Threads may share it; each call is one step."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._scopes: dict[str, _Scope] = {}

    def manifest(self) -> Mapping[str, Any]:
        """A `replica.provider-manifest/v1` object."""
        return {
            "schemaVersion": "replica.provider-manifest/v1",
            "name": "in-memory",
            "version": "1",
            "contracts": ["v1"],
            "capabilities": [*REQUIRED_CAPABILITIES, REDACTION, HEADS, REPAIR],
            "storage": {"kind": "memory", "erasure": "released"},
            "sendsTo": [],
        }

    def health(self) -> Mapping[str, Any]:
        """Always well."""
        return {"ok": True, "detail": "Records are kept in this process only, and end with it."}

    def read_records(self, scope: str, stream: Stream, query: Query) -> Iterator[Row]:
        """The stream's rows that match, by position."""
        _check_stream(stream)
        with self._lock:
            found = [
                Row(position, row.canonical)
                for position, row in enumerate(self._scopes.get(scope, _Scope()).rows, 1)
                if row.stream == stream and matches_query(query, row.id, row.fields)
            ]
        return _page(found, query)

    def read_memory_versions(self, scope: str, query: MemoryQuery) -> Iterator[Row]:
        """The memory versions that match, by position."""
        with self._lock:
            kept = self._scopes.get(scope, _Scope())
            found = [
                Row(position, row.canonical)
                for position, row in enumerate(kept.rows, 1)
                if row.stream == MEMORIES
                and matches_memory_query(query, row.id, row.fields)
                and not (query.latest and row.fields.version < kept.latest[row.id])
            ]
        return _page(found, query)

    def read_heads(self, scope: str, groups: Sequence[str]) -> Mapping[str, Head]:
        """The named groups' heads, all of one moment."""
        with self._lock:
            heads = self._scopes.get(scope, _Scope()).heads
            return {group: heads.get(group, EMPTY_HEAD) for group in groups}

    def append_records(
        self,
        scope: str,
        stream: Stream,
        records: Sequence[Record],
        audit: Sequence[Record],
        *,
        expected: Mapping[str, Head] = NOTHING_EXPECTED,
    ) -> None:
        """Store records of one stream and the audit entries that record them, whole or not at all."""
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
        rows = [row for stream, group in records.items() for row in _rows(stream, group)] + _rows("audit", audit)
        with self._lock:
            kept = self._open(scope, expected)
            self._append(kept, _leave_out_stored(kept, rows))

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
        rows = _rows(MEMORIES, [record]) + _rows("audit", audit)
        with self._lock:
            kept = self._open(scope, expected)
            version = kept.latest.get(record.id, 0)
            digest = kept.rows[kept.places[MEMORIES, record.id, version]].digest if version else None
            if digest != previous_digest:
                raise Conflict(f"The latest version of {record.id} is not the expected one.", record_id=record.id)
            if record.data["version"] != version + 1:
                raise Conflict(f"The next version of {record.id} is {version + 1}.", record_id=record.id)
            self._append(kept, _leave_out_stored(kept, rows))

    def redact_record(
        self,
        scope: str,
        record: Record,
        audit: Sequence[Record],
        *,
        expected: Mapping[str, Head] = NOTHING_EXPECTED,
    ) -> None:
        """Replace a stored event, at its position, with its redacted copy."""
        receipts = _rows("audit", audit)
        with self._lock:
            kept = self._open(scope, expected)
            place = _find_place(kept, "events", record.id, 0)
            stored = kept.rows[place].canonical
            redacts = stored != record.canonical
            reason = check_redacted_copy(json.loads(stored), json.loads(record.canonical)) if redacts else None
            if reason is not None:
                raise Conflict(f"The event {record.id} is not redacted: {reason}.", record_id=record.id)
            new = _leave_out_stored(kept, receipts)
            if redacts:
                (copy,) = _rows("events", [record])
                kept.rows[place] = copy
                group = copy.fields.groups[0]
                kept.heads[group] = advance_redacted(kept.heads[group], copy.digest)
            self._append(kept, new)

    def restore_record(
        self,
        scope: str,
        stream: Stream | Literal["memories"],
        record: Record,
        audit: Sequence[Record],
        *,
        expected: Mapping[str, Head] = NOTHING_EXPECTED,
    ) -> None:
        """Put an intact record in the place of the row with the same ID (and, for a memory, version).

        Raises `Conflict` when there is no such row, and when only one of the two was redacted.
        """
        (intact,) = _rows(stream, [record])
        receipts = _rows("audit", audit)
        with self._lock:
            kept = self._open(scope, expected)
            place = _find_place(kept, stream, record.id, intact.fields.version)
            if kept.rows[place].fields.redacted != intact.fields.redacted:
                raise Conflict(f"The record {record.id} was redacted in one place only.", record_id=record.id)
            new = _leave_out_stored(kept, receipts)
            kept.rows[place] = intact
            self._append(kept, new)

    def _open(self, scope: str, expected: Mapping[str, Head]) -> _Scope:
        kept = self._scopes.setdefault(scope, _Scope())
        for group, head in expected.items():
            if head != kept.heads.get(group, EMPTY_HEAD):
                raise HeadMoved(f"The group {group} changed since it was read.", group=group)
        return kept

    def _append(self, kept: _Scope, rows: Sequence[_Stored]) -> None:
        """Nothing here can fail, so a call is stored whole or, refused earlier, not at all."""
        for row in rows:
            kept.places[row.stream, row.id, row.fields.version] = len(kept.rows)
            kept.rows.append(row)
            if row.stream == MEMORIES:
                kept.latest[row.id] = row.fields.version
            for group in row.fields.groups:
                head = kept.heads.get(group, EMPTY_HEAD)
                kept.heads[group] = advance(head, row.digest, redacted=row.fields.redacted)


def _rows(stream: str, records: Sequence[Record]) -> list[_Stored]:
    return [
        _Stored(
            stream,
            record.id,
            record.digest,
            read_fields(stream, record.data),
            record.canonical,
        )
        for record in records
    ]


def _leave_out_stored(kept: _Scope, rows: Sequence[_Stored]) -> list[_Stored]:
    """The rows that are new, each once. Raises `Conflict` for an ID with another digest."""
    new: dict[tuple[str, str, int], _Stored] = {}
    for row in rows:
        name = (row.stream, row.id, row.fields.version)
        place = kept.places.get(name)
        known = new.get(name) if place is None else kept.rows[place]
        if known is None:
            new[name] = row
        elif known.digest != row.digest:
            raise Conflict(f"The store holds a different record under the ID {row.id}.", record_id=row.id)
    return list(new.values())


def _find_place(kept: _Scope, stream: str, record_id: str, version: int) -> int:
    place = kept.places.get((stream, record_id, version))
    if place is None:
        raise Conflict(f"No record {record_id} is stored.", record_id=record_id)
    return place


def _page(rows: Sequence[Row], query: Query | MemoryQuery) -> Iterator[Row]:
    behind = [row for row in rows if row.position > (query.after or 0)]
    return iter(behind if query.limit is None else behind[: query.limit])


def _check_stream(stream: str) -> None:
    if stream not in STREAMS:
        raise InvalidArgument(f"{stream} is no stream of records.", stream=stream)

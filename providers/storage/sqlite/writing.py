"""What happens inside a write transaction: what is stored already is found, the rest is numbered, heads advance.

Everything about a record that does not depend on the store is worked out before the transaction begins (`Entry`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import apsw
import orjson

from learning_core.errors import Conflict, Damaged, HeadMoved
from learning_core.provider import EMPTY_HEAD, MEMORIES, Head, Record, advance, advance_redacted
from providers.storage.fields import Fields, read_fields
from providers.storage.sqlite.queries import scope_key
from providers.storage.sqlite.schema import POSITION_BITS, STREAM_NUMBERS

_NAMES_AT_ONCE: Final = 10_000


class Entry(NamedTuple):
    """A record that is to be stored, with what its row needs."""

    stream: str
    record: Record
    fields: Fields


class StoredRow(NamedTuple):
    """A row as it stands: its key, whether it lost its payload, and its bytes."""

    key: int
    redacted: bool
    canonical: bytes


def prepare(stream: str, records: Iterable[Record]) -> list[Entry]:
    """The entries for records of one stream."""
    return [Entry(stream, record, read_fields(stream, record.data)) for record in records]


def open_scope(connection: apsw.Connection, scope: str, expected: Mapping[str, Head]) -> int:
    """The scope's key, made where it is new. Raises `HeadMoved` unless the expected heads are the current ones."""
    key = scope_key(connection, scope)
    if key is None:
        key = connection.execute(
            "INSERT INTO scopes (name, last_position, last_head) VALUES (?, 0, 0) RETURNING key", (scope,)
        ).get
    found = load_heads(connection, key, expected)
    for group, head in expected.items():
        if head != (found[group][1] if group in found else EMPTY_HEAD):
            raise HeadMoved(f"The group {group} changed since it was read.", group=group)
    return int(key)


def append(connection: apsw.Connection, scope: int, entries: Sequence[Entry]) -> None:
    """Store the entries that are not stored yet, in order. Raises `Conflict` for an ID with another digest."""
    new = _leave_out_stored(connection, scope, entries)
    if not new:
        return
    position, last_head = connection.execute(_LAST, (scope,)).get
    numbers = _advance_heads(connection, scope, last_head, new)
    first = (scope << POSITION_BITS | position) + 1
    connection.executemany(_INSERT, _rows(scope, first, numbers, new))
    connection.execute(_SAVE_LAST, (position + len(new), max(last_head, *numbers.values()), scope))


def check_latest_version(connection: apsw.Connection, scope: int, record: Record, previous_digest: str | None) -> None:
    """Raise `Conflict` unless the memory's latest version has this digest and the record is the version after it."""
    latest = connection.execute(_LATEST_VERSION, (scope, STREAM_NUMBERS[MEMORIES], record.id)).fetchone()
    version, digest = (0, None) if latest is None else (latest[0], read_data(record.id, latest[1])["digest"])
    if digest != previous_digest:
        raise Conflict(f"The latest version of {record.id} is not the expected one.", record_id=record.id)
    if record.data["version"] != version + 1:
        raise Conflict(f"The next version of {record.id} is {version + 1}.", record_id=record.id)


def find_row(connection: apsw.Connection, scope: int, stream: str, record_id: str, version: int) -> StoredRow:
    """The stored row of a record. Raises `Conflict` when there is none."""
    found = connection.execute(_ROW, (scope, STREAM_NUMBERS[stream], record_id, version)).fetchone()
    if found is None:
        raise Conflict(f"No record {record_id} is stored.", record_id=record_id)
    return StoredRow(found[0], bool(found[1]), found[2])


def replace_row(connection: apsw.Connection, key: int, record: Record, fields: Fields) -> None:
    """Put another copy of a record in its row; the position, the ID and the group stay."""
    connection.execute(_REPLACE, (*fields[2:9], fields.redacted, record.canonical, key))


def load_heads(connection: apsw.Connection, scope: int, groups: Iterable[str]) -> dict[str, tuple[int, Head]]:
    """The number and head of each named group that has rows."""
    found = {}
    for names in _chunks(groups):
        for number, name, count, chain, redacted, redacted_xor in connection.execute(
            _HEADS, (scope, json.dumps(names))
        ):
            found[name] = (number, Head(count, chain.hex(), redacted, redacted_xor.hex()))
    return found


def count_redaction(connection: apsw.Connection, scope: int, group: str, digest: str) -> None:
    """Advance a group's head for one of its events that loses its payload."""
    number, head = load_heads(connection, scope, [group])[group]
    after = advance_redacted(head, digest)
    connection.execute(_SAVE_HEAD, (scope, group, number, *_head_columns(after)))


def read_data(record_id: str, canonical: bytes) -> Any:
    """A stored row's JSON object. Raises `Damaged` when it is none."""
    try:
        data = orjson.loads(canonical)
    except orjson.JSONDecodeError:
        data = None
    if not isinstance(data, dict) or "digest" not in data:
        raise Damaged(f"The stored record {record_id} is damaged. Restore it from a backup.", record_id=record_id)
    return data


def _leave_out_stored(connection: apsw.Connection, scope: int, entries: Sequence[Entry]) -> list[Entry]:
    """The entries whose record is new, each once. A memory version is always new: its memory was checked."""
    given: dict[str, dict[str, Entry]] = {}
    for entry in entries:
        first = given.setdefault(entry.stream, {}).setdefault(entry.record.id, entry)
        if first is not entry and first.record.digest != entry.record.digest:
            raise _other_digest(entry.record.id)
    for stream, group in given.items():
        if stream != MEMORIES:
            for record_id in list(_find_stored(connection, scope, stream, group)):
                del group[record_id]
    return [entry for entry in entries if given[entry.stream].get(entry.record.id) is entry]


def _find_stored(connection: apsw.Connection, scope: int, stream: str, entries: Mapping[str, Entry]) -> Iterator[str]:
    for names in _chunks(entries):
        for record_id, canonical in connection.execute(_STORED, (scope, STREAM_NUMBERS[stream], json.dumps(names))):
            if read_data(record_id, canonical)["digest"] != entries[record_id].record.digest:
                raise _other_digest(record_id)
            yield record_id


def _other_digest(record_id: str) -> Conflict:
    return Conflict(f"The store holds a different record under the ID {record_id}.", record_id=record_id)


def _advance_heads(connection: apsw.Connection, scope: int, last: int, entries: Sequence[Entry]) -> dict[str, int]:
    """Advance the heads of all groups of these rows, numbering new ones behind `last`; returns the groups' numbers."""
    names = {group for entry in entries for group in entry.fields.groups}
    found = load_heads(connection, scope, names)
    numbers = {name: number for name, (number, _) in found.items()}
    heads = {name: head for name, (_, head) in found.items()}
    for _, record, fields in entries:
        for group in fields.groups:
            heads[group] = advance(heads.get(group, EMPTY_HEAD), record.digest, redacted=fields.redacted)
            if group not in numbers:
                last += 1
                numbers[group] = last
    rows = ((scope, name, numbers[name], *_head_columns(head)) for name, head in heads.items())
    connection.executemany(_SAVE_HEAD, rows)
    return numbers


def _rows(scope: int, first: int, numbers: Mapping[str, int], entries: Sequence[Entry]) -> Iterator[tuple[Any, ...]]:
    for key, (stream, record, fields) in enumerate(entries, first):
        yield (
            key,
            scope,
            STREAM_NUMBERS[stream],
            record.id,
            fields.version,
            numbers[fields.groups[0]],
            *fields[2:9],
            fields.redacted,
            record.canonical,
        )


def _head_columns(head: Head) -> tuple[int, bytes, int, bytes]:
    return head.count, bytes.fromhex(head.chain), head.redacted, bytes.fromhex(head.redacted_xor)


def _chunks(names: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(names)
    while chunk := list(islice(remaining, _NAMES_AT_ONCE)):
        yield chunk


_INSERT: Final = "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_REPLACE: Final = """
    UPDATE rows SET time = ?, type = ?, parent = ?, comment_id = ?, operation = ?, state = ?, theme = ?, redacted = ?,
    canonical = ? WHERE key = ?"""
_ROW: Final = """
    SELECT key, redacted, canonical FROM rows
    WHERE scope = ? AND stream = ? AND id = ? AND version = ?"""
_LATEST_VERSION: Final = """
    SELECT version, canonical FROM rows WHERE scope = ? AND stream = ? AND id = ? ORDER BY version DESC LIMIT 1"""
_STORED: Final = """
    SELECT id, canonical FROM rows INDEXED BY rows_by_id
    WHERE scope = ? AND stream = ? AND id IN (SELECT value FROM json_each(?))"""
_HEADS: Final = """
    SELECT number, name, count, chain, redacted, redacted_xor FROM heads
    WHERE scope = ? AND name IN (SELECT value FROM json_each(?))"""
_SAVE_HEAD: Final = """
    INSERT INTO heads VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (scope, name) DO UPDATE SET count = excluded.count, chain = excluded.chain,
    redacted = excluded.redacted, redacted_xor = excluded.redacted_xor"""
_LAST: Final = "SELECT last_position, last_head FROM scopes WHERE key = ?"
_SAVE_LAST: Final = "UPDATE scopes SET last_position = ?, last_head = ? WHERE key = ?"

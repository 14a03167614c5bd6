"""How rows are found: one index for each query, named in the statement, so that none ever scans the store.

A query first finds the keys that match, in order, then reads the rows behind them a page at a time.
"""

from __future__ import annotations

import json
from array import array
from typing import Any, Final, NamedTuple

import apsw

from learning_core.provider import MEMORIES, MemoryQuery, Query, Row
from providers.storage.sqlite.schema import POSITION_BITS, POSITION_MASK, STREAM_NUMBERS

KEYS_AT_ONCE: Final = 50_000
"""How many keys are found at a time, 8 bytes each: a read of everything stays flat in memory."""

PAGE_ROWS: Final = 1000
PAGE_BYTES: Final = 4 << 20
"""A page of rows ends with whichever comes first."""

_PAGE: Final = "SELECT key, canonical FROM rows WHERE key IN (SELECT value FROM json_each(?)) ORDER BY key"


class _Filter(NamedTuple):
    """A filter of a query: its column, the index that starts with it (`path`), and the only stream that has it."""

    member: str
    column: str
    path: str
    stream: str | None = None
    with_path: str = ""


# In the order of how few rows they leave: the first that is set names the index.
_FILTERS: Final = (
    _Filter("ids", "id", "rows_by_id", None, "scope = :scope AND stream = :stream"),
    _Filter("parents", "parent", "rows_by_parent", "events"),
    _Filter("comment_ids", "comment_id", "rows_by_comment_id", "events"),
    _Filter("groups", "head", "rows_by_head", None, "stream = :stream"),
    _Filter("themes", "theme", "rows_by_theme", MEMORIES),
    _Filter("states", "state", "rows_by_state", MEMORIES),
    _Filter("operations", "operation", "rows_by_operation", "audit"),
    _Filter("types", "type", "rows_by_type", "events"),
)
_NO_FILTER: Final = _Filter("", "", "rows_by_stream", None, "stream = :stream")
_IS_LATEST: Final = """NOT EXISTS (
    SELECT 1 FROM rows AS newer INDEXED BY rows_by_id
    WHERE newer.scope = rows.scope AND newer.stream = rows.stream AND newer.id = rows.id
    AND newer.version > rows.version
)"""


def scope_key(connection: apsw.Connection, scope: str) -> int | None:
    """The scope's number in this store, or None when nothing was stored in it."""
    found = connection.execute("SELECT key FROM scopes WHERE name = ?", (scope,)).fetchone()
    return None if found is None else int(found[0])


def select_keys(scope: int, stream: str, query: Query | MemoryQuery) -> tuple[str, dict[str, Any]] | None:
    """The statement for a query and its bindings but `after` and `limit`; None when nothing can match."""
    filters = [item for item in _FILTERS if getattr(query, item.member, None) is not None]
    first = filters[0] if filters else _NO_FILTER
    conditions = ["key > :after", "key <= :end"]
    bindings: dict[str, Any] = {"scope": scope, "stream": STREAM_NUMBERS[stream]}
    bindings["end"] = scope << POSITION_BITS | POSITION_MASK
    if first.with_path:
        conditions.append(first.with_path)
    for item in filters:
        values = getattr(query, item.member)
        if item.stream not in (None, stream):
            return None
        conditions.append(_condition(item.column, one=len(values) == 1))
        bindings[item.column] = values[0] if len(values) == 1 else json.dumps(values)
    if isinstance(query, MemoryQuery):
        conditions += [_IS_LATEST] if query.latest else []
    else:
        conditions += ["time >= :time_from"] if query.time_from is not None else []
        conditions += ["time < :time_to"] if query.time_to is not None else []
        bindings |= {"time_from": query.time_from, "time_to": query.time_to}
    # Only names of this module stand in the text; every value is bound.
    where = " AND ".join(conditions)
    return f"SELECT key FROM rows INDEXED BY {first.path} WHERE {where} ORDER BY key LIMIT :limit", bindings  # noqa: S608


def _condition(column: str, *, one: bool) -> str:
    """With one value an index gives its keys in order, and a limit ends the search; with several they are sorted."""
    values = f"= :{column}" if one else f"IN (SELECT value FROM json_each(:{column}))"  # noqa: S608
    if column != "head":
        return f"{column} {values}"
    return f"head {'=' if one else 'IN'} (SELECT number FROM heads WHERE scope = :scope AND name {values})"  # noqa: S608


def find_keys(
    connection: apsw.Connection, scope: str, stream: str, query: Query | MemoryQuery, after: int, limit: int
) -> array[int]:
    """The first `limit` keys behind position `after` that match, in order."""
    number = scope_key(connection, scope)
    selection = None if number is None else select_keys(number, stream, query)
    if number is None or selection is None:
        return array("q")
    statement, bindings = selection
    bindings |= {"after": number << POSITION_BITS | after, "limit": limit}
    return array("q", (key for (key,) in connection.execute(statement, bindings)))


def read_page(connection: apsw.Connection, keys: array[int]) -> tuple[list[Row], int]:
    """The rows behind the first keys, as many as a page holds, and how many keys were dealt with.

    A key whose row is gone has no row here: the store finds that out from the head.
    """
    rows: list[Row] = []
    size = 0
    wanted = keys[:PAGE_ROWS]
    for key, canonical in connection.execute(_PAGE, (json.dumps(wanted.tolist()),)):
        rows.append(Row(key & POSITION_MASK, canonical))
        size += len(canonical)
        if size >= PAGE_BYTES:
            return rows, wanted.index(key) + 1
    return rows, len(wanted)

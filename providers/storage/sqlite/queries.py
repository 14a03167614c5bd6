"""How rows are found: one index for each query, named in the statement, so that none ever scans the store.

A query first finds the keys that match, in order, then reads the rows behind them a page at a time.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import apsw

from learning_core.provider import MemoryQuery, Query, Row
from providers.storage.sqlite.schema import POSITION_BITS, POSITION_MASK, STREAM_NUMBERS

KEYS_AT_ONCE: Final = 50_000
"""How many keys are found at a time, 8 bytes each: a read of everything stays flat in memory."""

PAGE_ROWS: Final = 1000
PAGE_BYTES: Final = 4 << 20
"""A page of rows ends with whichever comes first."""

_LIST: Final = "(SELECT value FROM json_each({}))"
_GROUPS: Final = f"(SELECT key FROM heads WHERE scope = :scope AND name IN {_LIST.format(':head')})"  # noqa: S608

# The filters in the order of how few rows they leave: the first that is set names the index.
_PATHS: Final = (
    ("ids", "id", "rows_by_id"),
    ("parents", "parent", "rows_by_parent"),
    ("comment_ids", "comment_id", "rows_by_comment_id"),
    ("groups", "head", "rows_by_head"),
    ("themes", "theme", "rows_by_theme"),
    ("states", "state", "rows_by_state"),
    ("operations", "operation", "rows_by_operation"),
    ("types", "type", "rows_by_type"),
)

_IS_LATEST: Final = """NOT EXISTS (
    SELECT 1 FROM rows AS newer INDEXED BY rows_by_id
    WHERE newer.scope = rows.scope AND newer.stream = rows.stream AND newer.id = rows.id
    AND newer.version > rows.version
)"""


class Selection(NamedTuple):
    """A statement that finds keys, and its bindings but `after` and `limit`."""

    statement: str
    bindings: dict[str, Any]


def scope_key(connection: apsw.Connection, scope: str) -> int | None:
    """The scope's number in this store, or None when nothing was stored in it."""
    found = connection.execute("SELECT key FROM scopes WHERE name = ?", (scope,)).fetchone()
    return None if found is None else int(found[0])


def select_keys(scope: int, stream: str, query: Query | MemoryQuery) -> Selection | None:
    """The statement for a query, or None when an empty filter means that nothing matches."""
    index = "rows_by_stream"
    conditions = ["scope = :scope", "stream = :stream", "key > :after", "key <= :end"]
    bindings: dict[str, Any] = {
        "scope": scope,
        "stream": STREAM_NUMBERS[stream],
        "end": scope << POSITION_BITS | POSITION_MASK,
    }
    for member, column, path in reversed(_PATHS):
        values: tuple[str, ...] | None = getattr(query, member, None)
        if values is None:
            continue
        if not values:
            return None
        index = path
        conditions.append(f"{column} IN {_GROUPS if column == 'head' else _LIST.format(':' + column)}")
        bindings[column] = json.dumps(values)
    if isinstance(query, MemoryQuery):
        if query.latest:
            conditions.append(_IS_LATEST)
    else:
        for bound, comparison in ((query.time_from, "time >= :time_from"), (query.time_to, "time < :time_to")):
            if bound is not None:
                conditions.append(comparison)
                bindings[comparison.rsplit(":", 1)[1]] = bound
    where = " AND ".join(conditions)
    # Only names of this module stand in the text; every value is bound.
    statement = f"SELECT key FROM rows INDEXED BY {index} WHERE {where} ORDER BY key LIMIT :limit"  # noqa: S608
    return Selection(statement, bindings)


def find_keys(
    connection: apsw.Connection, scope: str, stream: str, query: Query | MemoryQuery, after: int, limit: int
) -> array[int]:
    """The first `limit` keys behind position `after` that match, in order."""
    number = scope_key(connection, scope)
    selection = None if number is None else select_keys(number, stream, query)
    if number is None or selection is None:
        return array("q")
    bindings = {**selection.bindings, "after": number << POSITION_BITS | after, "limit": limit}
    return array("q", (key for (key,) in connection.execute(selection.statement, bindings)))


def read_page(connection: apsw.Connection, keys: Sequence[int]) -> tuple[int, list[Row]]:
    """The rows behind the first keys, as many as a page holds, and how many keys that were."""
    rows: list[Row] = []
    size = taken = 0
    for taken, key in enumerate(keys[:PAGE_ROWS], 1):  # noqa: B007
        found = connection.execute("SELECT canonical FROM rows WHERE key = ?", (key,)).fetchone()
        if found is not None:
            rows.append(Row(key & POSITION_MASK, found[0]))
            size += len(found[0])
            if size >= PAGE_BYTES:
                break
    return taken, rows

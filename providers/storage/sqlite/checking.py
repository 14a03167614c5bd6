"""Whether each row stands where queries look for it: its columns and its group against its bytes."""

from __future__ import annotations

from typing import Any, Final

import apsw
import orjson

from providers.storage.fields import Fields, read_fields
from providers.storage.sqlite.schema import POSITION_BITS, POSITION_MASK, STREAM_NUMBERS
from providers.storage.sqlite.writing import load_heads

PAGE_ROWS: Final = 1000

_STREAMS: Final = {number: stream for stream, number in STREAM_NUMBERS.items()}
_ROWS: Final = """
    SELECT key, scope, stream, id, canonical, head, version, time, type, parent, comment_id, operation, state, theme,
    redacted FROM rows WHERE key > ? AND key <= ? ORDER BY key LIMIT ?"""


def find_misplaced(connection: apsw.Connection, scope: int, after: int) -> tuple[list[tuple[str, str]], int | None]:
    """The stream and record ID of each misplaced row of a page behind a position; the page's last position, or None.

    A row whose bytes cannot be read is left out: its record is damaged, which the reader of the record finds.
    """
    first, end = scope << POSITION_BITS | after, scope << POSITION_BITS | POSITION_MASK
    rows = list(connection.execute(_ROWS, (first, end, PAGE_ROWS)))
    read = [(row, *found) for row in rows if (found := _read(row[2], row[4])) is not None]
    heads = load_heads(connection, scope, {fields.groups[0] for _, _, fields in read})
    misplaced = []
    for (_, own, stream, name, _, head, *columns), record_id, fields in read:
        number = heads[fields.groups[0]][0] if fields.groups[0] in heads else None
        wanted = [scope, record_id, number, fields.version, *fields[2:9], fields.redacted]
        if [own, name, head, *columns] != wanted:
            misplaced.append((_STREAMS[stream], record_id))
    return misplaced, rows[-1][0] & POSITION_MASK if rows else None


def _read(stream: int, canonical: bytes) -> tuple[str, Fields] | None:
    try:
        data: Any = orjson.loads(canonical)
        return str(data["id"]), read_fields(_STREAMS[stream], data)
    except (ValueError, LookupError, TypeError, AttributeError):
        return None

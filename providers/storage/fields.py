"""What a query may filter by, read from a record once when it is stored.

Both providers here read a record through these functions, so that a filter means the same in each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from learning_core.provider import MEMORIES, MemoryQuery, Query, hub_comment_id, is_redacted, record_groups, record_time


class Fields(NamedTuple):
    """A stored row's filterable members. A member that its kind of record does not have is None, and matches nothing.

    `version` is 0 for every record but a memory version. `groups` are those the row advances, its primary group first;
    `time` is UTC text.
    """

    version: int
    groups: tuple[str, ...]
    time: str
    type: str | None = None
    parent: str | None = None
    comment_id: str | None = None
    operation: str | None = None
    state: str | None = None
    theme: str | None = None
    redacted: bool = False


def read_fields(stream: str, data: Mapping[str, Any]) -> Fields:
    """The fields of a record of this stream."""
    groups, time = record_groups(stream, data), record_time(stream, data)
    if stream == "events":
        comment_id = hub_comment_id(data)
        parent = data.get("parentEventId")
        return Fields(0, groups, time, data["type"], parent, comment_id, redacted=is_redacted(data))
    if stream == "audit":
        return Fields(0, groups, time, operation=data["operation"])
    if stream == MEMORIES:
        return Fields(data["version"], groups, time, state=data["state"], theme=data["content"]["theme"])
    return Fields(0, groups, time)


def matches_query(query: Query, record_id: str, fields: Fields) -> bool:
    """Whether a row of the queried stream satisfies every filter that is set; paging is the caller's."""
    return (
        _among(record_id, query.ids)
        and _among(fields.groups[0], query.groups)
        and _among(fields.type, query.types)
        and _among(fields.parent, query.parents)
        and _among(fields.comment_id, query.comment_ids)
        and _among(fields.operation, query.operations)
        and (query.time_from is None or fields.time >= query.time_from)
        and (query.time_to is None or fields.time < query.time_to)
    )


def matches_memory_query(query: MemoryQuery, record_id: str, fields: Fields) -> bool:
    """The same for a memory version; `latest` and paging are the caller's."""
    return _among(record_id, query.ids) and _among(fields.state, query.states) and _among(fields.theme, query.themes)


def _among(value: str | None, allowed: tuple[str, ...] | None) -> bool:
    return allowed is None or value in allowed

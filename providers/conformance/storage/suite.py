"""What all parts of the suite share: the fixtures, and readings of a whole store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, TypeAlias

import pytest

from learning_core.provider import (
    EMPTY_HEAD,
    MEMORIES,
    STREAMS,
    Head,
    MemoryProvider,
    MemoryQuery,
    Query,
    Record,
    Row,
    Stream,
    advance,
    is_redacted,
    record_groups,
)
from providers.conformance.samples import Samples

Batch: TypeAlias = dict[Stream, Sequence[Record]]
"""What `append_batch` is given."""

ANOTHER_HOST = Samples("ghe.example.com/acme/checkout")
"""The same owner and name as the default samples, on another host."""


class StorageSuite:
    """The base of every part. `capability` is the optional capability that a part is for."""

    capability: ClassVar[str | None] = None

    @pytest.fixture
    def open_provider(self) -> Callable[[], Any]:
        """Override this: a function that opens the provider over the test's own, at first empty, storage.

        Each call opens the same storage anew. A provider that keeps records in memory returns one object every time.
        """
        raise NotImplementedError("Override the fixture open_provider.")

    @pytest.fixture
    def provider(self, open_provider: Callable[[], Any]) -> Any:
        return open_provider()

    @pytest.fixture
    def samples(self) -> Samples:
        return Samples()


def read_ids(rows: Iterable[Row]) -> list[str]:
    """The IDs of rows, in the order in which they come."""
    return [json.loads(row.canonical)["id"] for row in rows]


def read_everything(provider: MemoryProvider, scope: str) -> list[tuple[int, str, bytes]]:
    """All rows of a scope as (position, stream, bytes), by position."""
    rows: list[tuple[int, str, bytes]] = [
        (row.position, stream, row.canonical)
        for stream in STREAMS
        for row in provider.read_records(scope, stream, Query())
    ]
    rows += [(row.position, MEMORIES, row.canonical) for row in provider.read_memory_versions(scope, MemoryQuery())]
    return sorted(rows)


def compute_heads(provider: MemoryProvider, scope: str) -> dict[str, Head]:
    """What the heads of a scope's groups must be, from the rows alone."""
    heads: dict[str, Head] = {}
    for _, stream, canonical in read_everything(provider, scope):
        data = json.loads(canonical)
        for group in record_groups(stream, data):
            head = heads.get(group, EMPTY_HEAD)
            heads[group] = advance(head, data["digest"], redacted=stream == "events" and is_redacted(data))
    return heads


def check_numbered(provider: MemoryProvider, scope: str, count: int) -> None:
    """The rows of all streams of a scope are numbered 1, 2, 3 … and there are this many."""
    assert [position for position, _, _ in read_everything(provider, scope)] == list(range(1, count + 1))

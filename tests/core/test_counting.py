"""What an operation reads depends on what its answer depends on, not on how much the store holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from learning_core.provider import MemoryProvider
from learning_core.store import LearningStore
from providers.storage.in_memory import InMemoryProvider
from providers.storage.sqlite import SqliteProvider
from tests.core.builders import AGENT, MONA, THEME, Delegate, World


class Counting(Delegate):
    """A provider that counts the rows that it returns."""

    rows = 0

    def read_records(self, *arguments: Any) -> Iterator[Any]:
        return self._count(self.inner.read_records(*arguments))

    def read_memory_versions(self, *arguments: Any) -> Iterator[Any]:
        return self._count(self.inner.read_memory_versions(*arguments))

    def _count(self, rows: Iterator[Any]) -> Iterator[Any]:
        for row in rows:
            self.rows += 1
            yield row


ACTS: dict[str, Callable[[LearningStore, dict[str, str]], object]] = {
    "recall": lambda store, _: store.recall(AGENT, "Mind it."),
    "show": lambda store, names: store.show(names["learning"]),
    "accept": lambda store, names: store.accept(MONA, names["proposal"], review_digest=names["review"]),
    "redact a comment": lambda store, _: store.redact_comment(MONA, f"{THEME}-1"),
    "redact an event": lambda store, names: store.redact_event(MONA, names["event"], reason="R."),
    "retire": lambda store, names: store.retire(MONA, names["learning"], reason="R."),
    "withdraw": lambda store, names: store.withdraw_grant(MONA, names["grant"], reason="R."),
}


def count_rows(provider: Any, events: int) -> dict[str, int]:
    """The rows that each act reads in a store of about so many events, all else equal."""
    world = World(cast("MemoryProvider", provider))
    world.consent()
    for number in range(events):
        world.hub.comment(f"c{number}", "ada", at="2026-10-01T00:00:00Z")
    world.collect()
    world.hub.roots.clear()  # What a log does not list stays stored.
    names = {
        "learning": world.learning(),
        "proposal": world.proposal("tone"),
        "grant": world.records("grants")[0]["id"],
    }
    names |= {"review": world.latest(names["proposal"])["reviewDigest"], "event": world.event(f"{THEME}-2")}
    counter = world.store.provider = cast("Any", Counting(provider))
    read = {}
    for name, act in ACTS.items():
        counter.rows = 0
        act(world.store, names)
        read[name] = counter.rows
    return read


@pytest.mark.parametrize(("kind", "sizes"), [("sqlite", (1_000, 10_000)), ("in-memory", (100, 1_000))])
def test_rows_read_do_not_grow_with_the_store(directory: Path, kind: str, sizes: tuple[int, int]) -> None:
    small, large = (
        count_rows(SqliteProvider(directory / str(events)) if kind == "sqlite" else InMemoryProvider(), events)
        for events in sizes
    )
    assert small == large
    assert set(small) == set(ACTS)
    assert all(0 < rows < 100 for rows in small.values()), small

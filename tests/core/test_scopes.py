"""Two repositories never share records, not even in one provider."""

from __future__ import annotations

from typing import Any, cast

from learning_core.provider import HEADS, MEMORIES, MemoryProvider
from learning_core.store import LearningStore
from providers.storage.in_memory import InMemoryProvider
from tests.core.builders import AGENT, MONA, SCOPE, Delegate, Without, World, refused

OTHER = "ghe.example.com/acme/checkout-prototypes"
STREAMS = ("episodes", "events", "grants", "collections", "audit", MEMORIES)


def test_the_same_repository_on_two_hosts_shares_nothing(world: World) -> None:
    other = World(world.provider, scope=OTHER)
    world.consent()
    with other.nothing_stored():
        with refused("not_permitted"):
            other.collect()
        with refused("not_permitted"):
            other.recall()
    other.consent()
    learnings = [world.learning(), other.learning()]
    assert len(set(learnings)) == 2
    for own, learning in zip((world, other), learnings, strict=True):
        assert own.recalled() == [learning]
        assert {record["scope"] for stream in STREAMS for record in own.records(stream)} == {own.scope}
    ids = [{record["id"] for stream in STREAMS for record in own.records(stream)} for own in (world, other)]
    assert not ids[0] & ids[1]


def test_what_one_repository_removes_or_withdraws_stays_in_the_other(world: World) -> None:
    other = World(world.provider, scope=OTHER)
    for own in (world, other):
        own.consent()
        own.learning()
    rows = other.rows()
    world.store.redact_comment(MONA, "color-contrast-1")
    world.store.withdraw_grant(MONA, world.records("grants")[0]["id"], reason="Over.")
    assert other.rows() == rows
    assert len(other.recalled()) == 1
    with other.nothing_stored(), refused("not_found"):
        other.store.show(world.records(MEMORIES)[0]["id"])
    assert all(own.store.verify(by=MONA)["ok"] for own in (world, other))


class Mixing(Delegate):
    """A provider that answers with the other repository's rows."""

    def read_records(self, _scope: str, *arguments: Any) -> Any:
        return self.inner.read_records(OTHER, *arguments)


def test_a_row_of_another_repository_is_refused() -> None:
    provider = Without(InMemoryProvider(), HEADS)
    world, other = World(cast("MemoryProvider", provider)), World(cast("MemoryProvider", provider), scope=OTHER)
    for own in (world, other):
        own.consent()
        own.learning()
    world.store.provider = cast("MemoryProvider", Mixing(provider))
    with refused("damaged"):
        world.store.recall(AGENT, "Mind it.", preview=False)


def test_a_scope_is_the_same_in_any_case(world: World) -> None:
    world.consent()
    learning = world.learning()
    store = LearningStore(world.provider, SCOPE.upper().replace("GITHUB.COM", "GitHub.com"), clock=world.clock)
    assert store.recall(AGENT, "Mind it.")["learnings"] == [learning]
    for name in ("github.com/acme", "github.com/acme/x/y", "acme/x", "github.com/../x", "https://github.com/acme/x"):
        with refused("invalid_identifier"):
            LearningStore(world.provider, name)

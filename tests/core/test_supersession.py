"""Which learning replaces which, and how replacements that race are settled."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any, cast

import pytest

from learning_core.lifecycle import Claim, derive_supersession
from learning_core.provider import HEADS, MemoryProvider
from providers.storage.in_memory import InMemoryProvider
from tests.core.builders import MONA, Json, Without, World, at_call, refused


@pytest.fixture
def said(loop: World) -> World:
    """Comments that many learnings can cite."""
    loop.discuss()
    return loop


@pytest.fixture
def racing() -> World:
    """The same over a provider without heads, where racing replacements can both be written."""
    world = World(cast("MemoryProvider", Without(InMemoryProvider(), HEADS)))
    world.consent()
    world.discuss()
    return world


def proposal(world: World, theme: str, *replaces: str, **lifecycle: Any) -> str:
    life = {"replaces": list(replaces), "validFrom": None, "validUntil": None, **lifecycle}
    return world.propose("color-contrast-1", "color-contrast-2", theme=theme, text=f"Mind {theme}.", lifecycle=life)


def learning(world: World, theme: str, *replaces: str, **lifecycle: Any) -> str:
    memory = proposal(world, theme, *replaces, **lifecycle)
    world.accept(memory)
    return memory


def row(world: World, memory: str) -> Json:
    return next(row for row in world.store.memories()["memories"] if row["id"] == memory)


def in_use(world: World) -> set[str]:
    used = {row["id"] for row in world.store.memories()["memories"] if row.get("inUse")}
    assert set(world.recalled()) == used
    return used


def test_a_replacement_names_what_it_replaces_and_the_replaced_keeps_its_state(said: World) -> None:
    old = learning(said, "old")
    before = said.latest(old)
    new = learning(said, "new", old)
    assert said.latest(new)["supersedes"] == [old]
    assert said.latest(old) == before
    assert (row(said, old)["state"], row(said, old)["superseded"]) == ("accepted", True)
    assert said.store.show(old)["memory"]["supersededBy"] == new
    assert in_use(said) == {new}


def test_a_proposal_replaces_nothing(said: World) -> None:
    old = learning(said, "old")
    new = proposal(said, "new", old)
    assert "supersedes" not in said.latest(new)
    assert in_use(said) == {old}


def test_a_learning_records_once_later_what_it_replaces(said: World) -> None:
    first, second, third = (learning(said, theme) for theme in ("one", "two", "three"))
    said.store.supersede(MONA, first, replaces=[second])
    assert said.latest(first)["supersession"]["by"] == {**MONA.data}
    assert in_use(said) == {first, third}
    with said.nothing_stored(), refused("invalid_transition"):
        said.store.supersede(MONA, first, replaces=[third])
    merged = learning(said, "new", third)
    with said.nothing_stored(), refused("invalid_transition"):
        said.store.supersede(MONA, merged, replaces=[first])


def test_a_claimed_learning_cannot_be_replaced_again(said: World) -> None:
    old, other = learning(said, "old"), learning(said, "other")
    learning(said, "new", old)
    again = proposal(said, "again", old)
    with said.nothing_stored(), refused("invalid_transition"):
        said.accept(again)
    with said.nothing_stored(), refused("invalid_transition"):
        said.store.supersede(MONA, other, replaces=[old])


TARGETS: dict[str, Callable[[World, str], str]] = {
    "itself": lambda w, new: new,
    "a proposal": lambda w, new: proposal(w, "target"),
    "a rejected one": lambda w, new: w.reject(proposal(w, "target"))["id"],
    "nothing": lambda w, new: "memory_" + "0" * 64,
}


@pytest.mark.parametrize("target", TARGETS)
def test_only_a_decided_learning_is_replaced(said: World, target: str) -> None:
    new = learning(said, "new")
    name = TARGETS[target](said, new)
    with said.nothing_stored(), refused("invalid_transition"):
        said.store.supersede(MONA, new, replaces=[name])
    if target != "itself":
        merge = proposal(said, "merge", name)
        with said.nothing_stored(), refused("invalid_transition"):
            said.accept(merge)


def test_a_retired_learning_may_be_replaced(said: World) -> None:
    old = learning(said, "old")
    said.store.retire(MONA, old, reason="R.")
    new = learning(said, "new", old)
    assert (row(said, old)["superseded"], in_use(said)) == (True, {new})


@pytest.mark.parametrize("why", ["expired", "not yet valid", "replaced", "evidence gone"])
def test_a_replacement_must_be_in_use_itself(said: World, why: str) -> None:
    said.discuss("tone")
    old = learning(said, "old")
    new = said.propose(
        "tone-1",
        "tone-2",
        theme="new",
        lifecycle={
            "replaces": [],
            "validFrom": "2030-01-01T00:00:00.000000Z" if why == "not yet valid" else None,
            "validUntil": said.clock.wait(minutes=1) if why == "expired" else None,
        },
    )
    said.accept(new)
    if why == "expired":
        said.clock.wait(hours=1)
    elif why == "replaced":
        said.accept(said.propose("tone-1", "tone-2", theme="newest", replaces=[new]))
    elif why == "evidence gone":
        said.hub.delete("tone-1")
        said.collect()
    with said.nothing_stored(), refused("evidence_unavailable"):
        said.store.supersede(MONA, new, replaces=[old])
    assert old in in_use(said)


@pytest.mark.parametrize("member", ["validUntil", "validFrom"])
def test_a_proposal_outside_its_dates_cannot_replace(said: World, member: str) -> None:
    old = learning(said, "old")
    at = "2030-01-01T00:00:00.000000Z" if member == "validFrom" else said.clock()
    new = proposal(said, "new", old, **{member: at})
    with said.nothing_stored(), refused("evidence_unavailable"):
        said.accept(new)
    assert in_use(said) == {old}


def test_retiring_a_replacement_restores_nothing(said: World) -> None:
    old = learning(said, "old")
    new = learning(said, "new", old)
    said.store.retire(MONA, new, reason="R.")
    assert (in_use(said), row(said, old)["superseded"]) == (set(), True)
    after = proposal(said, "after", old)
    with said.nothing_stored(), refused("invalid_transition"):
        said.accept(after)
    fresh = learning(said, "fresh")
    assert in_use(said) == {fresh}
    assert said.store.verify(by=MONA)["ok"]


def test_damaging_a_replacement_restores_nothing(said: World) -> None:
    old = learning(said, "old")
    new = learning(said, "new", old)
    said.forge(new, at=said.clock())
    assert row(said, new)["damaged"]
    assert (in_use(said), row(said, old)["superseded"]) == (set(), True)


def test_a_claim_that_its_history_refutes_replaces_nothing(said: World) -> None:
    old, new = learning(said, "old"), learning(said, "new")
    by = {"by": {**MONA.data}, "at": said.clock()}
    said.forge(new, at=said.clock(), rationale="Forged.", supersedes=[old], supersession=by)
    assert row(said, new)["damaged"]
    assert (in_use(said), row(said, old)["superseded"]) == ({old}, False)


def race(world: World, first: str, second: str) -> None:
    """Accept both, planned at the same time, the first written first."""
    digests = {memory: world.latest(memory)["reviewDigest"] for memory in (first, second)}
    other = world.other_store()
    with world.meddling(at_call(1, lambda: other.accept(MONA, first, review_digest=digests[first]))):
        world.accept(second)


@pytest.mark.parametrize("swap", [False, True])
def test_of_two_racing_acceptances_the_first_written_wins(racing: World, swap: bool) -> None:
    old = learning(racing, "old")
    first, second = (proposal(racing, theme, old) for theme in (("b", "a") if swap else ("a", "b")))
    race(racing, first, second)
    assert {racing.latest(memory)["state"] for memory in (first, second)} == {"accepted"}
    assert in_use(racing) == {first}
    assert (row(racing, first)["conflicted"], row(racing, second)["conflicted"]) == (False, True)
    assert {"code": "conflicted", "memoryId": second} in racing.store.status()["attention"]
    assert racing.store.show(old)["memory"]["supersededBy"] == first


def test_with_heads_the_second_of_two_racing_replacements_is_refused(said: World) -> None:
    old = learning(said, "old")
    first, second = proposal(said, "a", old), proposal(said, "b", old)
    with refused("invalid_transition"):
        race(said, first, second)
    assert said.latest(second)["state"] == "proposed"
    assert in_use(said) == {first}


def test_a_losing_merge_removes_nothing_it_did_not_win(racing: World) -> None:
    one, two = learning(racing, "one"), learning(racing, "two")
    winner, merge = proposal(racing, "winner", one), proposal(racing, "merge", one, two)
    race(racing, winner, merge)
    assert in_use(racing) == {winner, two}
    assert row(racing, merge)["conflicted"]


def test_a_losing_later_step_leaves_the_learning_in_use(racing: World) -> None:
    old, extended = learning(racing, "old"), learning(racing, "extended")
    winner = proposal(racing, "winner", old)
    digest = racing.latest(winner)["reviewDigest"]
    other = racing.other_store()
    with racing.meddling(at_call(1, lambda: other.accept(MONA, winner, review_digest=digest))):
        racing.store.supersede(MONA, extended, replaces=[old])
    assert in_use(racing) == {winner, extended}
    assert row(racing, extended)["conflicted"]


@pytest.mark.parametrize("swap", [False, True])
def test_reciprocal_replacements_never_hide_both(racing: World, swap: bool) -> None:
    pair = [learning(racing, "one"), learning(racing, "two")]
    first, second = pair[::-1] if swap else pair
    other = racing.other_store()
    with racing.meddling(at_call(1, lambda: other.supersede(MONA, first, replaces=[second]))):
        racing.store.supersede(MONA, second, replaces=[first])
    assert in_use(racing) == {first}
    assert (row(racing, second)["superseded"], row(racing, second)["conflicted"]) == (True, True)


def test_a_replacement_that_was_replaced_first_replaces_nothing(racing: World) -> None:
    old, middle, new = (learning(racing, theme) for theme in ("old", "middle", "new"))
    other = racing.other_store()
    with racing.meddling(at_call(1, lambda: other.supersede(MONA, new, replaces=[middle]))):
        racing.store.supersede(MONA, middle, replaces=[old])
    assert in_use(racing) == {old, new}


def test_a_winner_that_is_retired_does_not_let_the_loser_in(racing: World) -> None:
    old = learning(racing, "old")
    first, second = proposal(racing, "a", old), proposal(racing, "b", old)
    race(racing, first, second)
    racing.store.retire(MONA, first, reason="R.")
    assert in_use(racing) == set()
    with racing.nothing_stored(), refused("invalid_transition"):
        racing.store.supersede(MONA, second, replaces=[old])


# Settling, without a store -----------------------------------------------------------------------------------------

A, B, C, T, U = "ABCTU"


def settle(*claims: Claim) -> tuple[dict[str, str], set[str], set[str]]:
    settled = derive_supersession(claims)
    return dict(settled.replaced), set(settled.conflicted), set(settled.void)


def test_claims_settle_in_their_order_each_whole_or_not_at_all() -> None:
    small, merge, later = Claim(A, (T,), True), Claim(B, (T, U), True), Claim(C, (U,), False)
    assert settle(small, merge, later) == ({T: A, U: C}, {B}, {B})
    assert settle(merge, small, later) == ({T: B, U: B}, {A, C}, {A})
    assert settle(later, small, merge) == ({T: A, U: C}, {B}, {B})


@pytest.mark.parametrize("order", list(permutations("ABC")))
def test_in_every_order_nothing_is_replaced_twice_and_nobody_replaced_replaces(order: tuple[str, ...]) -> None:
    wanted = {A: (B, T), B: (C,), C: (A, U)}
    replaced, conflicted, void = settle(*(Claim(by, wanted[by], by == B) for by in order))
    won = [by for by in order if by not in conflicted]
    assert replaced == {target: by for by in won for target in wanted[by]}
    assert order[0] in won
    assert not set(won) & {target for by in won[: won.index(won[-1])] for target in wanted[by]}
    assert void == conflicted & {B}
    assert set(wanted) - set(replaced) - void

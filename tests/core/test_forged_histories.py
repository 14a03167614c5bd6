"""Records that are sealed and stored, and yet no rule allowed: they are damage, never used and never shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from learning_core.errors import InvalidRecord
from learning_core.lifecycle import find_history_fault, refuted_part
from learning_core.provider import HEADS, MemoryProvider
from learning_core.records import CheckedRecord, content_digest
from providers.storage.in_memory import InMemoryProvider
from tests.core.builders import MONA, THEME, Delegate, Json, Without, World, refused

PERSON: Json = {**MONA.data}
EARLY = "2026-10-01T00:00:00.000000Z"
OTHER_DIGEST = "sha256:" + "0" * 64
OTHER_MEMORY = "memory_" + "0" * 64


def approve(world: World, memory: str, **members: Any) -> CheckedRecord:
    """Append an acceptance; `approval` and other members say what it gets wrong."""
    stored = world.latest(memory)
    changed = {**stored, **members}
    at = members.get("at") or world.clock()
    approval = {
        "by": PERSON,
        "at": at,
        "reviewDigest": stored["reviewDigest"],
        "contentDigest": content_digest(changed),
        "edited": False,
        "reason": None,
        **members.pop("approval", {}),
    }
    return world.forge(memory, **{"state": "accepted", "at": at, "approval": approval, **members})


def content_of(world: World, memory: str, **members: Any) -> Json:
    return {**world.latest(memory)["content"], **members}


def reject(world: World, memory: str, **members: Any) -> CheckedRecord:
    review = members.pop("reviewDigest", world.latest(memory)["reviewDigest"])
    rejection = {"by": PERSON, "at": world.clock(), "reviewDigest": review, "reason": "R."}
    return world.forge(memory, **{"state": "rejected", "at": world.clock(), "rejection": rejection, **members})


def retire(world: World, memory: str, **members: Any) -> CheckedRecord:
    retirement = {"by": PERSON, "at": world.clock(), "reason": "R."}
    return world.forge(memory, **{"state": "retired", "at": world.clock(), "retirement": retirement, **members})


def replace(world: World, memory: str, **members: Any) -> CheckedRecord:
    step = {"supersedes": [OTHER_MEMORY], "supersession": {"by": PERSON, "at": world.clock()}}
    return world.forge(memory, **{"at": world.clock(), **step, **members})


# What is wrong with an acceptance of a proposal.
ACCEPTANCES: dict[str, Callable[[World, str], Any]] = {
    "evidence dropped": lambda w, m: approve(w, m, evidence=w.latest(m)["evidence"][:1]),
    "evidence made counterevidence": lambda w, m: approve(
        w, m, evidence=w.latest(m)["evidence"][:1], counterevidence=w.latest(m)["evidence"][1:]
    ),
    "an edit not recorded": lambda w, m: approve(w, m, content=content_of(w, m, text="Sentinel edit.")),
    "an edit that was none": lambda w, m: approve(w, m, approval={"edited": True}),
    "another category": lambda w, m: approve(w, m, content=content_of(w, m, category="security")),
    "another theme": lambda w, m: approve(w, m, content=content_of(w, m, theme="tone"), approval={"edited": True}),
    "another review": lambda w, m: approve(w, m, approval={"reviewDigest": OTHER_DIGEST}),
    "another content": lambda w, m: approve(w, m, approval={"contentDigest": OTHER_DIGEST}),
    "a replacement nobody reviewed": lambda w, m: approve(w, m, supersedes=[OTHER_MEMORY]),
    "another lifecycle": lambda w, m: approve(
        w, m, lifecycle={"replaces": [], "validFrom": None, "validUntil": "2030-01-01T00:00:00.000000Z"}
    ),
    "other support": lambda w, m: approve(w, m, support={**w.latest(m)["support"], "reviewers": 9}),
    "another rationale": lambda w, m: approve(w, m, rationale="Sentinel rationale."),
    "another confidence": lambda w, m: approve(w, m, confidence=1),
    "other targets": lambda w, m: approve(w, m, targets=[{"kind": "path", "pattern": "*"}]),
    "another proposer": lambda w, m: approve(w, m, proposer={"kind": "agent", "id": "agent:other"}),
    "an earlier time": lambda w, m: approve(w, m, at=EARLY),
    "another predecessor": lambda w, m: approve(w, m, previousDigest=OTHER_DIGEST),
    "a later replacement with it": lambda w, m: approve(
        w, m, supersedes=[OTHER_MEMORY], supersession={"by": PERSON, "at": w.clock()}
    ),
}

# What is wrong with a step that follows an acceptance.
LATER_STEPS: dict[str, Callable[[World, str], Any]] = {
    "a retirement with another text": lambda w, m: retire(w, m, content=content_of(w, m, text="Sentinel text.")),
    "a retirement of another approval": lambda w, m: retire(w, m, approval={**w.latest(m)["approval"], "edited": True}),
    "a second acceptance": approve,
    "an acceptance that says nothing": lambda w, m: w.forge(m, at=w.clock()),
    "a proposal after it": lambda w, m: w.forge(m, state="proposed", approval=None, at=w.clock()),
    "a rejection after it": lambda w, m: reject(w, m, approval=None),
    "a replacement with another text": lambda w, m: replace(w, m, content=content_of(w, m, text="Sentinel text.")),
    "a replacement by nobody": lambda w, m: replace(w, m, supersession=None),
    "a second replacement": lambda w, m: [replace(w, m), replace(w, m, supersedes=["memory_" + "1" * 64])],
    "an acceptance after retirement": lambda w, m: [retire(w, m), approve(w, m, retirement=None)],
    "a change after retirement": lambda w, m: [retire(w, m), w.forge(m, at=w.clock())],
}

REJECTIONS: dict[str, Callable[[World, str], Any]] = {
    "a rejection of another review": lambda w, m: reject(w, m, reviewDigest=OTHER_DIGEST),
    "a rejection with another text": lambda w, m: reject(w, m, content=content_of(w, m, text="Sentinel text.")),
    "an acceptance after rejection": lambda w, m: [reject(w, m), approve(w, m, rejection=None)],
    "a proposal after rejection": lambda w, m: [
        reject(w, m),
        w.forge(m, state="proposed", rejection=None, at=w.clock()),
    ],
    "a retirement of a proposal": lambda w, m: retire(
        w,
        m,
        approval={
            "by": PERSON,
            "at": w.clock(),
            "reviewDigest": w.latest(m)["reviewDigest"],
            "contentDigest": w.latest(m)["contentDigest"],
            "edited": False,
            "reason": None,
        },
    ),
    "a proposal of another theme": lambda w, m: w.forge(m, content=content_of(w, m, theme="tone"), at=w.clock()),
}

SHOWN = {"id", "state", "kind", "theme", "contentDigest", "reviewDigest", "damaged", "withheld", "history"}


def check_damaged(world: World, memory: str, other: str) -> None:
    """A damaged learning is never used and shows nothing but identifiers and digests; the others go on."""
    assert world.recalled() == [other]
    row = next(row for row in world.store.memories()["memories"] if row["id"] == memory)
    shown = world.store.show(memory, history=True)["memory"]
    assert (row["damaged"], shown["damaged"], row["withheld"], shown["withheld"]) == (True,) * 4
    assert set(row) | set(shown) <= SHOWN
    for version in shown["history"]:
        assert set(version) <= {*SHOWN, "version"}, version
    assert f"Mind the {THEME}" not in str(shown)
    assert "Sentinel" not in str(shown)
    assert {"code": "damaged", "memoryId": memory} in world.store.status()["attention"]
    problems = world.store.verify(by=MONA)["problems"]
    assert [(p["code"], p["recordId"]) for p in problems] == [("invalid_history", memory)]
    for decide in (world.accept, world.reject):
        with world.nothing_stored(), refused("damaged"):
            decide(memory)
    with world.nothing_stored(), refused("damaged"):
        world.store.retire(MONA, memory, reason="R.")
    with world.nothing_stored(), refused("damaged"):
        world.store.supersede(MONA, memory, replaces=[other])
    assert world.recalled() == [other]


@pytest.mark.parametrize("flaw", ACCEPTANCES)
def test_a_forged_acceptance_is_damage(loop: World, flaw: str) -> None:
    other, memory = loop.learning("tone"), loop.proposal()
    ACCEPTANCES[flaw](loop, memory)
    check_damaged(loop, memory, other)


def test_an_acceptance_that_breaks_no_rule_is_none(loop: World) -> None:
    memory = loop.proposal()
    approve(loop, memory, content=content_of(loop, memory, text="Another text."), approval={"edited": True})
    assert loop.recalled() == [memory]
    assert loop.store.verify(by=MONA)["ok"]


@pytest.mark.parametrize("flaw", LATER_STEPS)
def test_a_forged_step_after_an_acceptance_is_damage(loop: World, flaw: str) -> None:
    other, memory = loop.learning("tone"), loop.learning()
    LATER_STEPS[flaw](loop, memory)
    check_damaged(loop, memory, other)


@pytest.mark.parametrize("flaw", REJECTIONS)
def test_a_forged_step_after_a_proposal_is_damage(loop: World, flaw: str) -> None:
    other, memory = loop.learning("tone"), loop.proposal()
    REJECTIONS[flaw](loop, memory)
    check_damaged(loop, memory, other)


def test_a_learning_starts_as_a_proposal(loop: World) -> None:
    first = loop.learning()
    data = {**loop.latest(first), "id": OTHER_MEMORY, "version": 1, "previousDigest": None}
    with loop.nothing_stored(), pytest.raises(InvalidRecord):
        loop.append_version(data, None)


def test_a_consolidator_sees_no_damaged_learning_and_its_theme_waits(loop: World) -> None:
    memory = loop.proposal()
    ACCEPTANCES["evidence dropped"](loop, memory)
    result = loop.consolidate()
    assert result["stored"] == []
    assert [(item["reason"], item["theme"]) for item in result["diagnostics"]] == [("damaged", THEME)]


class Losing(Delegate):
    """A provider that loses one version of a learning, or returns one twice, or two in another order."""

    def __init__(self, inner: Any, memory: str, change: Callable[[list[Any]], list[Any]]) -> None:
        super().__init__(inner)
        self._memory = f'"id":"{memory}"'.encode()
        self._change = change

    def read_memory_versions(self, scope: str, query: Any) -> Iterator[Any]:
        rows = list(self.inner.read_memory_versions(scope, query))
        if query.ids is None:
            return iter(rows)
        own = [row for row in rows if self._memory in row.canonical]
        return iter([*(row for row in rows if row not in own), *(self._change(own) if own else [])])


GAPS: dict[str, Callable[[list[Any]], list[Any]]] = {
    "the first lost": lambda rows: rows[1:],
    "one lost in between": lambda rows: [rows[0], rows[2]],
    "the last lost": lambda rows: rows[:2],
    "one doubled": lambda rows: [*rows, rows[-1]],
    "two exchanged": lambda rows: [rows[0], rows[2], rows[1]],
}


@pytest.mark.parametrize("gap", GAPS)
def test_a_history_with_a_gap_is_damage(loop: World, gap: str) -> None:
    memory = loop.learning()
    other = loop.learning("tone")
    loop.store.supersede(MONA, memory, replaces=[other])
    loop.store.provider = cast("MemoryProvider", Losing(loop.provider, memory, GAPS[gap]))
    assert loop.store.show(memory)["memory"]["damaged"]
    assert loop.recalled() == []  # Nor is what it replaced restored.


@pytest.mark.parametrize("gap", [gap for gap in GAPS if gap != "the last lost"])
def test_a_gap_is_seen_without_heads_too(gap: str) -> None:
    world = World(cast("MemoryProvider", Without(InMemoryProvider(), HEADS)))
    world.consent()
    memory = world.learning()
    other = world.learning("tone")
    world.store.supersede(MONA, memory, replaces=[other])
    versions = [r for r in world.checked("memory-record", "memories") if r.id == memory]
    assert find_history_fault(versions) is None
    assert find_history_fault(GAPS[gap](versions)) is not None
    refuted = versions[1:2] if gap == "two exchanged" else []
    assert refuted_part(GAPS[gap](versions)) == refuted
    world.store.provider = cast("MemoryProvider", Losing(world.provider, memory, GAPS[gap]))
    assert world.store.show(memory)["memory"]["damaged"]


def test_an_approval_is_of_a_person(loop: World) -> None:
    memory = loop.proposal()
    for by in ({"kind": "agent", "id": "agent:builder", "assurance": "asserted"}, {**PERSON, "id": "agent:builder"}):
        with loop.nothing_stored(), pytest.raises(InvalidRecord):
            approve(loop, memory, approval={"by": by})

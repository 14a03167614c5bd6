"""What a person decides about a learning, and which step follows which."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.core.builders import MONA, OCTO, THEME, Json, Scripted, World, propose, refused

VERSIONED = ("version", "previousDigest", "state", "at", "digest")


def without(record: Json, *members: str) -> Json:
    return {name: value for name, value in record.items() if name not in (*VERSIONED, *members)}


def test_nothing_is_accepted_by_itself(loop: World) -> None:
    proposal = loop.proposal()
    assert loop.latest(proposal)["state"] == "proposed"
    assert loop.recalled() == []


def test_an_acceptance_changes_nothing_but_the_state(loop: World) -> None:
    memory = loop.proposal()
    before = loop.latest(memory)
    shown = loop.accept(memory, by=OCTO, reason=" Yes. ")
    after = loop.latest(memory)
    assert without(after, "approval") == without(before)
    assert (after["state"], after["version"], after["previousDigest"]) == ("accepted", 2, before["digest"])
    assert after["approval"] == {
        "by": {**OCTO.data},
        "at": after["at"],
        "reviewDigest": before["reviewDigest"],
        "contentDigest": before["contentDigest"],
        "edited": False,
        "reason": "Yes.",
    }
    assert (shown["id"], shown["state"], shown["inUse"]) == (memory, "accepted", True)
    assert loop.recalled() == [memory]


def test_an_edit_binds_the_approval_to_the_new_content(loop: World) -> None:
    memory = loop.proposal()
    before = loop.latest(memory)
    loop.accept(memory, text="Mind it well.")
    after = loop.latest(memory)
    assert after["content"] == {**before["content"], "text": "Mind it well."}
    assert without(after, "approval", "content", "contentDigest", "reviewDigest") == without(
        before, "content", "contentDigest", "reviewDigest"
    )
    approval = after["approval"]
    assert approval["edited"]
    assert approval["reviewDigest"] == before["reviewDigest"] != after["reviewDigest"]
    assert approval["contentDigest"] == after["contentDigest"] != before["contentDigest"]
    assert "Mind it well." in loop.recall()["text"]


def test_accepting_the_same_text_is_no_edit(loop: World) -> None:
    memory = loop.proposal()
    loop.accept(memory, text=loop.latest(memory)["content"]["text"])
    assert loop.latest(memory)["approval"]["edited"] is False


@pytest.mark.parametrize("text", ["", " \u200b", "x" * 2001], ids=["empty", "invisible", "long"])
def test_an_edit_has_words_and_an_end(loop: World, text: str) -> None:
    memory = loop.proposal()
    with loop.nothing_stored(), refused("invalid_record"):
        loop.accept(memory, text=text)


def test_a_rejection_names_the_review_and_a_reason(loop: World) -> None:
    memory = loop.proposal()
    before = loop.latest(memory)
    loop.reject(memory, by=OCTO, reason=" Taste. ")
    after = loop.latest(memory)
    assert without(after, "rejection") == without(before)
    rejection = {"by": {**OCTO.data}, "at": after["at"], "reviewDigest": before["reviewDigest"], "reason": "Taste."}
    assert (after["state"], after["rejection"]) == ("rejected", rejection)
    assert loop.recalled() == []


def test_a_retirement_ends_a_learning(loop: World) -> None:
    memory = loop.learning()
    before = loop.latest(memory)
    loop.store.retire(OCTO, memory, reason="It is over.")
    after = loop.latest(memory)
    assert without(after, "retirement") == without(before)
    assert after["retirement"] == {"by": {**OCTO.data}, "at": after["at"], "reason": "It is over."}
    assert loop.recalled() == []


STATES: dict[str, Callable[[World], str]] = {
    "proposed": lambda w: w.proposal(),
    "accepted": lambda w: w.learning(),
    "rejected": lambda w: w.reject(w.proposal())["id"],
    "retired": lambda w: w.store.retire(MONA, w.learning(), reason="R.")["memory"]["id"],
}
STEPS: dict[str, Callable[[World, str, str], Any]] = {
    "accept": lambda w, memory, _: w.accept(memory),
    "reject": lambda w, memory, _: w.reject(memory),
    "retire": lambda w, memory, _: w.store.retire(MONA, memory, reason="R."),
    "supersede": lambda w, memory, other: w.store.supersede(MONA, memory, replaces=[other]),
}
ALLOWED = {
    ("proposed", "accept"): "accepted",
    ("proposed", "reject"): "rejected",
    ("accepted", "retire"): "retired",
    ("accepted", "supersede"): "accepted",
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("state", STATES)
def test_a_step_is_allowed_or_refused(loop: World, state: str, step: str) -> None:
    other = loop.learning("tone")
    memory = STATES[state](loop)
    after = ALLOWED.get((state, step))
    if after is None:
        with loop.nothing_stored(), refused("invalid_transition"):
            STEPS[step](loop, memory, other)
    else:
        versions = loop.latest(memory)["version"]
        STEPS[step](loop, memory, other)
        assert (loop.latest(memory)["state"], loop.latest(memory)["version"]) == (after, versions + 1)
        assert loop.store.verify(by=MONA)["ok"]


def test_each_step_has_one_receipt(loop: World) -> None:
    memory, other = loop.learning(), loop.learning("tone")
    loop.store.supersede(MONA, memory, replaces=[other])
    loop.store.retire(MONA, memory, reason="R.")
    rejected = loop.proposal("wording")
    loop.reject(rejected)
    receipts = {
        (entry["operation"], item["id"], item["digest"]): entry
        for name in ("propose", "accept", "supersede", "retire", "reject")
        for entry in loop.audit(f"memory.{name}")
        for item in entry["records"]
    }
    versions = loop.records("memories")
    assert sorted((item[1], item[2]) for item in receipts) == sorted((r["id"], r["digest"]) for r in versions)
    steps = [operation for operation, name, _ in receipts if name == memory]
    assert steps == ["memory.propose", "memory.accept", "memory.supersede", "memory.retire"]


def test_a_review_of_an_older_version_is_stale(loop: World) -> None:
    memory = loop.proposal()
    reviewed = loop.latest(memory)
    loop.hub.comment("more", "ada", prototype="p3")
    loop.collect()
    loop.label("more", summary=f"Mind the {THEME}.")
    loop.consolidate()
    current = loop.latest(memory)
    assert (current["version"], current["state"]) == (2, "proposed")
    for decide in (loop.store.accept, loop.store.reject):
        with loop.nothing_stored(), refused("stale_review") as caught:
            decide(MONA, memory, review_digest=reviewed["reviewDigest"], reason="R.")
        assert caught.value.details["current"] == current["reviewDigest"]
    loop.accept(memory, review_digest=current["reviewDigest"])
    assert loop.recalled() == [memory]


CHANGES: dict[str, tuple[Json, bool]] = {
    "text": ({"text": "Another text."}, True),
    "targets": ({"targets": [{"kind": "path", "pattern": "*.css"}]}, True),
    "validity": ({"lifecycle": {"replaces": [], "validFrom": None, "validUntil": "2027-01-01T00:00:00.000000Z"}}, True),
    "rationale": ({"rationale": "Another reason."}, False),
    "proposer": ({"proposer": {"kind": "agent", "id": "agent:scripted", "version": "2"}}, False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_each_digest_covers(loop: World, change: str) -> None:
    names = loop.discuss()
    memory = loop.propose(*names)
    before = loop.latest(memory)
    members, content = CHANGES[change]
    loop.propose(*names, **members)
    after = loop.latest(memory)
    assert (after["contentDigest"] != before["contentDigest"]) is content
    assert after["reviewDigest"] != before["reviewDigest"]
    with loop.nothing_stored(), refused("stale_review"):
        loop.accept(memory, review_digest=before["reviewDigest"])


def test_new_support_and_new_dissent_change_the_review(loop: World) -> None:
    first, second, third = loop.discuss(authors=["mona", "octo", "ada"])
    memory = loop.propose(first, second)
    digests = [loop.latest(memory)["reviewDigest"]]
    loop.propose(first, second, third)
    digests.append(loop.latest(memory)["reviewDigest"])
    loop.propose(first, second, counter=[third])
    digests.append(loop.latest(memory)["reviewDigest"])
    assert len(set(digests)) == 3


def test_a_proposal_that_changes_while_it_is_decided_is_not_accepted(loop: World) -> None:
    names = loop.discuss()
    memory = loop.propose(*names)
    cited = [loop.event(name) for name in names]

    def change(method: str) -> None:
        if loop.latest(memory)["version"] == 1:
            changed = Scripted(lambda view: [propose(view, cited, text="Changed.")])
            loop.other_store().consolidate(MONA, changed, time_from="2026-01-01", time_to="2027-01-01")

    with loop.meddling(change), refused("stale_review"):
        loop.accept(memory)
    assert [(r["version"], r["state"]) for r in loop.records("memories")] == [(1, "proposed"), (2, "proposed")]


def test_two_decisions_at_once_make_one(loop: World) -> None:
    memory = loop.proposal()
    digest = loop.latest(memory)["reviewDigest"]

    def reject(method: str) -> None:
        if loop.latest(memory)["state"] == "proposed":
            loop.other_store().reject(OCTO, memory, review_digest=digest, reason="No.")

    with loop.meddling(reject), refused("invalid_transition"):
        loop.accept(memory)
    assert loop.latest(memory)["state"] == "rejected"


def test_a_decision_that_never_gets_its_turn_is_busy(loop: World) -> None:
    memory = loop.proposal()

    def be_first(method: str) -> None:
        loop.other_store().add_grant(OCTO, purposes=["review"], reason="R.")

    with loop.meddling(be_first), refused("busy"):
        loop.accept(memory)
    assert loop.latest(memory)["state"] == "proposed"
    loop.accept(memory)


def test_accepting_what_somebody_contests_needs_a_reason(loop: World) -> None:
    first, second, third = loop.discuss(authors=["mona", "octo", "ada"])
    memory = loop.propose(first, second, counter=[third])
    for reason in (None, " "):
        with loop.nothing_stored(), refused("reason_required"):
            loop.accept(memory, reason=reason)
    loop.accept(memory, reason="Two of three agree.")
    assert loop.latest(memory)["approval"]["reason"] == "Two of three agree."


def test_evidence_that_changed_after_the_proposal_cannot_be_accepted(loop: World) -> None:
    memory = loop.proposal()
    loop.hub.edit(f"{THEME}-1", "I meant something else.")
    loop.collect()
    with loop.nothing_stored(), refused("evidence_unavailable") as caught:
        loop.accept(memory)
    assert caught.value.details["refusals"] == ["edited"]


def test_evidence_that_changed_after_the_acceptance_stops_recall(loop: World) -> None:
    memory = loop.learning()
    loop.hub.edit(f"{THEME}-2", "I meant something else.")
    loop.collect()
    assert loop.recalled() == []
    assert loop.latest(memory)["state"] == "accepted"


def test_validity_dates_are_half_open(loop: World) -> None:
    names = loop.discuss()
    start, end = loop.clock.wait(days=1), loop.clock.wait(days=1)
    lifecycle = {"replaces": [], "validFrom": start, "validUntil": end}
    memory = loop.propose(*names, lifecycle=lifecycle)
    loop.accept(memory)
    for at, expected in ((start, [memory]), (end, [])):
        loop.clock.now = loop.clock.now.fromisoformat(at) - timedelta(seconds=2)
        assert loop.recalled() == ([memory] if at == end else [])
        assert loop.recalled() == expected
    assert loop.store.show(memory)["memory"]["inUse"] is False


def test_time_never_runs_backwards_in_a_history(loop: World) -> None:
    memory = loop.proposal()
    proposed_at = loop.latest(memory)["at"]
    loop.clock.wait(days=-1)
    loop.accept(memory)
    assert loop.latest(memory)["at"] == proposed_at
    assert loop.recalled() == [memory]
    assert loop.store.verify(by=MONA)["ok"]


def test_a_decided_learning_is_not_changed_by_consolidation(loop: World) -> None:
    names = loop.discuss(authors=["mona", "octo", "ada"])
    first = loop.propose(*names[:2])
    loop.accept(first)
    second = loop.propose(*names)
    assert second != first
    loop.reject(second)
    third = loop.propose(*names, text="Changed.")
    assert third not in (first, second)
    assert [loop.latest(memory)["state"] for memory in (first, second, third)] == ["accepted", "rejected", "proposed"]

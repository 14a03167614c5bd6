"""What a grant permits, to what, from when to when, and what its withdrawal stops."""

from __future__ import annotations

import pytest

from learning_core.policy import PURPOSES
from tests.core.builders import AGENT, MONA, OCTO, THEME, ScriptedLabeler, World, refused


def test_a_grant_names_its_purposes_sources_and_range(world: World) -> None:
    grant = world.store.add_grant(
        MONA,
        purposes=["training", "review"],
        sources=["hub-comments"],
        time_from="2026-11-01",
        time_to="2026-12-01T12:00:00+02:00",
        reason=" The team agreed. ",
    )["grant"]
    assert grant["purposes"] == ["review", "training"]
    assert grant["sources"] == ["hub-comments"]
    assert grant["range"] == {"from": "2026-11-01T00:00:00.000000Z", "to": "2026-12-01T10:00:00.000000Z"}
    assert (grant["reason"], grant["grantedBy"]) == ("The team agreed.", {**MONA.data})
    (listed,) = world.store.list_grants()["grants"]
    assert listed == {**grant, "active": ["review", "training"], "withdrawn": []}
    (entry,) = world.audit("grant.add")
    assert [item["id"] for item in entry["records"]] == [grant["id"]]


def test_two_alike_grants_are_two(world: World) -> None:
    assert world.consent() != world.consent()


@pytest.mark.parametrize("missing", ["review", "instruction"])
def test_permission_for_other_purposes_implies_nothing(world: World, missing: str) -> None:
    world.consent()
    learning, proposal = world.learning(), world.proposal("tone")
    (grant,) = world.store.list_grants()["grants"]
    world.consent(*(purpose for purpose in PURPOSES if purpose != missing))
    world.store.withdraw_grant(MONA, grant["id"], reason="Over.")
    review = missing == "review"
    with refused("not_permitted"):
        world.accept(proposal)
    if review:
        assert world.recalled() == [learning]
        with refused("not_permitted"):
            world.store.memories()
        with refused("not_permitted"):
            world.store.show(learning)
        with refused("not_permitted"):
            world.collect()
        with refused("not_permitted"):
            world.label(f"{THEME}-1", theme="other")
        with refused("not_permitted"):
            world.store.label(MONA, ScriptedLabeler(lambda request: []))
    else:
        world.collect()
        assert world.store.show(learning)["memory"]["text"] == f"Mind the {THEME}."
        with refused("not_permitted"):
            world.recall()
        with refused("not_permitted"):
            world.consolidate()


def write_at(world: World, *times: str) -> None:
    for number, time in enumerate(times, start=1):
        world.hub.comment(f"c{number}", ("mona", "octo", "ada")[number - 1], prototype=f"p{number}", at=time)


def test_a_range_is_half_open(world: World) -> None:
    world.consent("review")
    world.consent("instruction", time_from="2026-10-02", time_to="2026-10-03")
    write_at(world, "2026-10-01T23:59:59.999999Z", "2026-10-02T00:00:00Z", "2026-10-02T23:59:59.999999Z")
    world.collect()
    world.label("c1", "c2", "c3")
    (stored,) = world.consolidate()["stored"]
    assert len(world.latest(stored["id"])["evidence"]) == 2
    world.hub.comment("c4", "lin", prototype="p4", at="2026-10-03T00:00:00Z")
    world.collect()
    world.label("c4")
    assert world.consolidate()["stored"] == []


def test_a_reply_after_the_end_of_a_range_is_not_covered(world: World) -> None:
    world.consent("review")
    world.consent("instruction", time_to="2026-10-03")
    world.hub.comment("101", "mona", at="2026-10-01T00:00:00Z")
    world.hub.reply("102", "101", "octo", at="2026-10-04T00:00:00Z")
    world.hub.reply("103", "101", "ada", at="2026-10-02T00:00:00Z")
    world.collect()
    world.label("101", "102", "103")
    (stored,) = world.consolidate(minThreads=1, minPrototypes=1)["stored"]
    cited = [reference["eventIds"][0] for reference in world.latest(stored["id"])["evidence"]]
    assert cited == [world.event("101"), world.event("103")]


def test_an_edit_after_the_end_of_a_range_is_not_covered(world: World) -> None:
    world.consent("review")
    world.consent("instruction", time_to="2026-10-03")
    write_at(world, "2026-10-01T00:00:00Z", "2026-10-02T00:00:00Z")
    world.hub.edit("c1", "Edited.", at="2026-10-03T00:00:00Z")
    world.collect()
    world.label("c1", "c2")
    assert world.consolidate()["stored"] == []


def test_a_labels_time_is_that_of_its_comment(world: World) -> None:
    world.consent("review")
    world.consent("instruction", time_to="2026-10-03")
    write_at(world, "2026-10-01T00:00:00Z", "2026-10-02T00:00:00Z")
    world.collect()
    world.label("c1", "c2")
    assert world.events("label")[0]["occurredAt"] > "2026-10-03"
    assert len(world.consolidate()["stored"]) == 1


def test_a_later_grant_covers_earlier_evidence_when_its_range_says_so(world: World) -> None:
    world.consent("review")
    names = world.discuss()
    with refused("not_permitted"):
        world.consolidate()
    world.consent("instruction", time_from="2026-12-01")
    assert world.consolidate()["stored"] == []
    world.consent("instruction", time_from="2026-01-01")
    (stored,) = world.consolidate()["stored"]
    assert len(world.latest(stored["id"])["evidence"]) == len(names)


def test_several_grants_cover_together(world: World) -> None:
    world.consent("review")
    world.consent("instruction", time_to="2026-10-02")
    world.consent("instruction", time_from="2026-10-02")
    write_at(world, "2026-10-01T00:00:00Z", "2026-10-02T00:00:00Z")
    world.collect()
    world.label("c1", "c2")
    assert len(world.consolidate()["stored"]) == 1


def test_review_outside_a_range_is_withheld_from_labelers_and_readers(world: World) -> None:
    world.consent("review", time_from="2026-10-02")
    write_at(world, "2026-10-01T00:00:00Z", "2026-10-02T00:00:00Z")
    world.collect()
    labeler = ScriptedLabeler(lambda request: [])
    world.store.label(MONA, labeler)
    assert labeler.asked == ["Words of comment c2."]
    with world.nothing_stored(), refused("not_permitted"):
        world.label("c1")


def test_a_withdrawal_takes_effect_at_once(loop: World) -> None:
    learning = loop.learning()
    other = loop.store.add_grant(MONA, purposes=["review"], reason="Still.")["grant"]
    (first, _) = loop.store.list_grants()["grants"]
    result = loop.store.withdraw_grant(OCTO, first["id"], reason="Over.")
    assert (result["grant"]["active"], result["grant"]["withdrawn"]) == ([], ["review", "instruction"])
    assert result["exports"] == []
    with refused("not_permitted"):
        loop.recall()
    with refused("not_permitted"):
        loop.consolidate()
    shown = loop.store.show(learning)["memory"]
    assert (shown["withheld"], shown["inUse"], shown["usable"]) == (False, False, False)
    assert {"code": "needs_rebuild", "memoryId": learning} in loop.store.status()["attention"]
    loop.store.withdraw_grant(OCTO, other["id"], reason="Over.")
    with refused("not_permitted"):
        loop.store.show(learning)


def test_a_withdrawn_range_withholds_what_is_read(world: World) -> None:
    early = world.consent(time_to="2026-10-02")
    world.consent(time_from="2026-10-02")
    write_at(world, "2026-10-01T00:00:00Z", "2026-10-02T00:00:00Z", "2026-10-03T00:00:00Z")
    world.collect()
    world.label("c1", "c2", "c3")
    learning = world.propose("c2", "c1")
    other = world.propose("c2", "c3", theme="tone")
    world.accept(learning)
    world.accept(other)
    world.store.withdraw_grant(MONA, early, reason="Over.")
    assert world.recalled() == [other]
    shown = world.store.show(learning)["memory"]
    assert (shown["text"], shown["refusals"]) == (None, ["consent"])
    assert {"evidence", "rationale", "support"}.isdisjoint(shown)
    row = next(row for row in world.store.memories()["memories"] if row["id"] == learning)
    assert (row["text"], row["withheld"], row["inUse"]) == (None, True, False)


def test_a_learning_depends_on_its_counterevidence_too(world: World) -> None:
    early = world.consent(time_to="2026-10-02")
    world.consent(time_from="2026-10-02")
    write_at(world, "2026-10-01T00:00:00Z", "2026-10-02T00:00:00Z", "2026-10-03T00:00:00Z")
    world.collect()
    world.label("c2", "c3")
    world.label("c1", observation="disagreement")
    learning = world.propose("c2", "c3", counter=["c1"])
    world.accept(learning, reason="It still holds.")
    assert world.recalled() == [learning]
    world.store.withdraw_grant(MONA, early, reason="Over.")
    assert world.recalled() == []
    assert world.store.show(learning)["memory"]["withheld"]


def test_one_purpose_can_be_withdrawn(loop: World) -> None:
    learning = loop.learning()
    (grant,) = loop.store.list_grants()["grants"]
    result = loop.store.withdraw_grant(MONA, grant["id"], purposes=["instruction"], reason="Over.")
    assert (result["grant"]["active"], result["grant"]["withdrawn"]) == (["review"], ["instruction"])
    with refused("not_permitted"):
        loop.recall()
    assert loop.store.show(learning)["memory"]["text"] == f"Mind the {THEME}."
    with loop.nothing_stored(), refused("invalid_transition"):
        loop.store.withdraw_grant(MONA, grant["id"], purposes=["instruction"], reason="Again.")
    with loop.nothing_stored(), refused("invalid_transition"):
        loop.store.withdraw_grant(MONA, grant["id"], purposes=["training"], reason="Never granted.")
    loop.store.withdraw_grant(MONA, grant["id"], reason="The rest.")
    with loop.nothing_stored(), refused("invalid_transition"):
        loop.store.withdraw_grant(MONA, grant["id"], reason="Nothing left.")
    assert [record["purposes"] for record in loop.records("withdrawals")] == [["instruction"], ["review"]]


def test_a_withdrawal_ends_one_grant_only(loop: World) -> None:
    learning = loop.learning()
    loop.consent("instruction")
    first = loop.store.list_grants()["grants"][0]["id"]
    loop.store.withdraw_grant(MONA, first, purposes=["instruction"], reason="Over.")
    assert loop.recalled() == [learning]


def test_a_withdrawal_needs_no_consent_and_is_audited(loop: World) -> None:
    (grant,) = loop.store.list_grants()["grants"]
    loop.store.withdraw_grant(MONA, grant["id"], reason="Over.")
    (withdrawal,) = loop.records("withdrawals")
    assert (withdrawal["grantId"], withdrawal["reason"]) == (grant["id"], "Over.")
    (entry,) = loop.audit("grant.withdraw")
    assert [item["id"] for item in entry["records"]] == [withdrawal["id"]]


def test_an_episode_records_the_grants_it_was_collected_under(world: World) -> None:
    review = world.consent("review")
    other = world.consent("review", time_to="2026-01-01")
    world.consent("instruction")
    world.hub.comment("101", "mona")
    collection = world.collect()["collection"]
    assert world.records("episodes")[0]["grantIds"] == collection["grantIds"] == [review, other]


def test_new_consent_restores_what_a_withdrawal_stopped(loop: World) -> None:
    learning = loop.learning()
    (grant,) = loop.store.list_grants()["grants"]
    loop.store.withdraw_grant(MONA, grant["id"], reason="Over.")
    loop.consent()
    assert loop.recalled(by=AGENT) == [learning]


def test_a_withdrawal_that_comes_first_stops_an_acceptance(loop: World) -> None:
    proposal = loop.proposal()
    (grant,) = loop.store.list_grants()["grants"]

    def withdraw(method: str) -> None:
        if method == "append_memory_version" and not loop.records("withdrawals"):
            loop.other_store().withdraw_grant(OCTO, grant["id"], reason="Over.")

    with loop.meddling(withdraw), refused("not_permitted"):
        loop.accept(proposal)
    assert loop.latest(proposal)["state"] == "proposed"

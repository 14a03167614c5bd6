"""What leaves the store: exports, their manifests and follow-ups, and reading single events for a purpose."""

from __future__ import annotations

import pytest

from learning_core.policy import PURPOSES
from tests.core.builders import AGENT, MONA, OCTO, World, refused


@pytest.fixture
def shared(world: World) -> World:
    """A world with a learning, and consent to every purpose."""
    world.consent(*PURPOSES)
    world.learning()
    return world


def ids(records: list[dict[str, object]]) -> set[object]:
    return {record["id"] for record in records}


def test_an_export_names_every_record_it_copied(shared: World) -> None:
    result = shared.store.export(MONA, purpose="training")
    bundle, manifest = result["bundle"], result["manifest"]
    assert bundle["manifest"] == manifest
    copied = [*bundle["episodes"], *bundle["events"], *bundle["learnings"]]
    named = {(record["id"], record["digest"]) for record in copied}
    assert {(item["id"], item["digest"]) for item in manifest["records"]} == named
    assert {event["type"] for event in bundle["events"]} == {"comment", "label"}
    assert (manifest["purpose"], manifest["learningsOnly"], manifest["exportedBy"]) == ("training", False, MONA.data)
    (entry,) = shared.audit("export")
    assert [item["id"] for item in entry["records"]] == [manifest["id"]]
    assert shared.store.verify(by=MONA)["ok"]


def test_an_export_may_hold_learnings_alone(shared: World) -> None:
    bundle = shared.store.export(MONA, purpose="publication", learnings_only=True)["bundle"]
    assert (bundle["episodes"], bundle["events"], len(bundle["learnings"])) == ([], [], 1)
    assert bundle["manifest"]["grantIds"] != []


def test_an_export_needs_a_person_and_a_grant_for_the_purpose(world: World) -> None:
    world.consent("review", "instruction")
    world.learning()
    with refused("person_required"):
        world.store.export(AGENT, purpose="review")
    with refused("invalid_argument"):
        world.store.export(MONA, purpose="marketing")
    for purpose in ("evaluation", "analytics", "training", "publication"):
        with refused("not_permitted"):
            world.store.export(MONA, purpose=purpose)
    assert world.audit("export") == []


def test_an_export_holds_back_what_the_purpose_may_not_use(world: World) -> None:
    world.consent("review", "instruction")
    world.consent("training", time_to="2026-11-02")
    world.hub.comment("early", "mona", at="2026-11-01T09:00:00.000000Z")
    world.hub.comment("late", "octo", at="2026-11-03T09:00:00.000000Z")
    world.hub.reply("reply", "early", "octo", at="2026-11-04T09:00:00.000000Z")
    world.collect()
    result = world.store.export(MONA, purpose="training")
    bodies = {event["payload"]["commentId"] for event in result["bundle"]["events"]}
    assert bodies == {"early"}
    assert result["manifest"]["withheld"] == {"episodes": 1, "events": 2, "learnings": 0}


def test_an_export_records_just_the_grants_that_permitted_it(world: World) -> None:
    world.consent("review", "instruction")
    first = world.consent("training", time_to="2026-11-02")
    second = world.consent("training", time_from="2026-11-02", time_to="2026-11-10")
    world.consent("training", time_from="2027-01-01")
    world.hub.comment("early", "mona", at="2026-11-01T09:00:00.000000Z")
    world.collect()
    assert world.store.export(MONA, purpose="training")["manifest"]["grantIds"] == [first]
    world.hub.comment("late", "octo", at="2026-11-03T09:00:00.000000Z")
    world.collect()
    manifest = world.store.export(MONA, purpose="training")["manifest"]
    assert set(manifest["grantIds"]) == {first, second}


def test_a_withdrawal_lists_the_exports_that_its_grant_allowed(shared: World) -> None:
    (grant,) = shared.store.list_grants()["grants"]
    training = shared.store.export(MONA, purpose="training")["manifest"]["id"]
    shared.store.export(MONA, purpose="publication", learnings_only=True)
    result = shared.store.withdraw_grant(OCTO, grant["id"], purposes=["training"], reason="Not for that.")
    assert [export["id"] for export in result["exports"]] == [training]
    with refused("not_permitted"):
        shared.store.export(MONA, purpose="training")


def test_a_removal_lists_the_exports_that_copied_the_comment_or_its_learning(shared: World) -> None:
    shared.hub.comment("apart", "octo", prototype="p9")
    shared.collect()
    whole = shared.store.export(MONA, purpose="training")["manifest"]["id"]
    learned = shared.store.export(MONA, purpose="publication", learnings_only=True)["manifest"]["id"]
    cited = shared.store.observations(purpose="review", types=["label"])["events"][0]["parentEventId"]
    result = shared.store.redact_event(MONA, cited, reason="Please.")
    assert {export["id"] for export in result["exports"]} == {whole, learned}
    assert [export["id"] for export in shared.store.redact_comment(MONA, "apart")["exports"]] == [whole]


def test_a_learning_that_is_not_in_use_is_not_exported(shared: World) -> None:
    (learning,) = shared.store.memories(states=["accepted"])["memories"]
    assert len(shared.store.export(MONA, purpose="publication")["bundle"]["learnings"]) == 1
    shared.store.retire(MONA, learning["id"], reason="Old.")
    result = shared.store.export(MONA, purpose="publication")
    assert result["bundle"]["learnings"] == []


def test_a_removed_text_is_never_exported(shared: World) -> None:
    cited = shared.store.observations(purpose="review", types=["label"])["events"][0]["parentEventId"]
    shared.store.redact_event(MONA, cited, reason="Please.")
    result = shared.store.export(MONA, purpose="training")
    assert cited not in ids(result["bundle"]["events"])
    assert result["bundle"]["learnings"] == []
    assert result["manifest"]["withheld"]["learnings"] == 1


# Observations --------------------------------------------------------------------------------------------------------


def test_observations_read_only_the_named_events_and_their_episodes(shared: World) -> None:
    everything = shared.store.observations(purpose="review")
    assert len(everything["episodes"]) == 2
    named = [event["id"] for event in everything["events"] if event["type"] == "comment"][:1]
    result = shared.store.observations(purpose="review", event_ids=[*named, "event_unknown"])
    assert [event["id"] for event in result["events"]] == named
    assert [episode["id"] for episode in result["episodes"]] == [result["events"][0]["episodeId"]]


def test_no_event_named_is_not_the_same_as_none(shared: World) -> None:
    assert shared.store.observations(purpose="review", event_ids=[]) == {"episodes": [], "events": []}
    assert shared.store.observations(purpose="review", event_ids=None)["events"] != []


def test_at_most_100_events_are_named(shared: World) -> None:
    shared.store.observations(purpose="review", event_ids=["event_unknown"] * 100)
    with refused("invalid_argument"):
        shared.store.observations(purpose="review", event_ids=["event_unknown"] * 101)


def test_other_filters_intersect_the_selection(shared: World) -> None:
    everything = shared.store.observations(purpose="review")["events"]
    named = [event["id"] for event in everything]
    first = everything[0]["episodeId"]
    labels = shared.store.observations(purpose="review", event_ids=named, episode_ids=[first], types=["label"])[
        "events"
    ]
    assert ids(labels) == {e["id"] for e in everything if e["type"] == "label" and e["episodeId"] == first}
    assert shared.store.observations(purpose="review", time_to="2020-01-01")["events"] == []


def test_observations_withhold_what_the_purpose_may_not_use(shared: World) -> None:
    (grant,) = shared.store.list_grants()["grants"]
    shared.store.withdraw_grant(MONA, grant["id"], purposes=["analytics"], reason="No.")
    with refused("not_permitted"):
        shared.store.observations(purpose="analytics")
    before = shared.store.observations(purpose="review")["events"]
    gone = next(event for event in before if event["type"] == "comment")
    shared.hub.delete(gone["payload"]["commentId"])
    shared.collect()
    after = shared.store.observations(purpose="review", event_ids=[event["id"] for event in before])["events"]
    assert ids(before) - ids(after) == {e["id"] for e in before if gone["id"] in (e["id"], e.get("parentEventId"))}

"""Taking a comment's text out of the store, and only that."""

from __future__ import annotations

from typing import Any

import pytest

from learning_core.audit import receipt
from learning_core.canonical import derive_id
from learning_core.errors import StorageFailed
from learning_core.identifiers import IMPORTER
from learning_core.provider import REDACTION
from learning_core.records import redacted_copy, seal
from providers.storage.in_memory import InMemoryProvider
from tests.core.builders import AGENT, MONA, OCTO, THEME, Json, ScriptedLabeler, Without, World, at_call, refused

NAME = f"{THEME}-1"


@pytest.fixture
def said(loop: World) -> World:
    """A thread: a root of two versions, labelled twice, and a labelled reply."""
    loop.hub.comment("101", "mona", "Sentinel one.")
    loop.hub.reply("102", "101", "octo", "A reply stays.")
    loop.collect()
    loop.label("101", "102", summary="Sentinel label.")
    loop.label("102", theme="tone", by="github:octo")
    loop.hub.edit("101", "Sentinel two.")
    loop.collect()
    loop.label("101", theme="tone", by="agent:labeler", summary="Sentinel label too.", explanation="Sentinel why.")
    return loop


def holds(world: World, text: str) -> int:
    """How many stored rows hold a text."""
    return sum(text.encode() in raw for _, _, raw in world.rows())


def test_every_version_and_label_loses_its_text_and_keeps_its_identity(said: World) -> None:
    before = {event["id"]: event for event in said.records("events")}
    assert said.store.redact_comment(OCTO, "101", reason=" She asked. ") == {"removed": 4, "rebuild": [], "exports": []}
    after = {event["id"]: event for event in said.records("events")}
    assert list(after) == list(before)
    removed = [event for event in after.values() if "redaction" in event]
    assert [event["type"] for event in removed] == ["comment", "label", "comment", "label"]
    for event in removed:
        original = before[event["id"]]
        assert "payload" not in event
        assert all(event[name] == original[name] for name in event if name != "redaction")
        note = {"by": {**OCTO.data}, "at": event["redaction"]["at"], "reason": "She asked."}
        assert event["redaction"] == (note | {"commentId": "101"} if event["type"] == "comment" else note)


def test_no_text_of_the_comment_is_left_and_others_keep_theirs(said: World) -> None:
    assert (holds(said, "Sentinel"), holds(said, "A reply stays.")) == (5, 1)
    said.store.redact_comment(MONA, "101")
    assert holds(said, "A reply stays.") == 1
    left = [event["payload"] for event in said.records("events") if "payload" in event]
    assert "Sentinel one." not in str(left)
    assert [p.get("summary") for p in left if "theme" in p] == ["Sentinel label.", "Keep text readable."]


def test_each_removal_has_one_receipt_made_from_its_note(said: World) -> None:
    said.store.redact_comment(OCTO, "101", reason="She asked.")
    entries = said.audit("evidence.redact")
    removed = [event for event in said.records("events") if "redaction" in event]
    assert [entry["subject"] for entry in entries] == [event["id"] for event in removed]
    for entry, event in zip(entries, removed, strict=True):
        assert entry["records"] == [{"stream": "events", "id": event["id"], "digest": event["digest"]}]
        assert (entry["at"], entry["actor"]) == (event["redaction"]["at"], event["redaction"]["by"])
        assert "She asked" not in str(entry)
    assert said.store.verify(by=MONA)["ok"]


def test_what_holds_no_words_stays(said: World) -> None:
    said.hub.comment("105", "ada")
    said.collect()
    said.label_file([{"commentId": "105", "none": True}])
    marker = said.events("no_annotation")
    assert said.store.redact_comment(MONA, "105")["removed"] == 1
    assert said.events("no_annotation") == marker


@pytest.mark.parametrize("which", ["first version", "newest version", "label"])
def test_a_comment_is_named_by_any_event_of_it(said: World, which: str) -> None:
    versions, labels = said.events("comment", "101"), said.events("label")
    event = {"first version": versions[0], "newest version": versions[-1], "label": labels[-1]}[which]
    assert said.store.redact_event(MONA, event["id"], reason="She asked.")["removed"] == 4


def test_a_reply_loses_its_text_alone(said: World) -> None:
    assert said.store.redact_comment(MONA, "102")["removed"] == 3
    assert holds(said, "A reply stays.") == 0
    assert holds(said, "Sentinel one.") == holds(said, "Sentinel two.") == 1


def test_the_reason_of_a_comment_deleted_at_its_source_is_given(said: World) -> None:
    said.store.redact_comment(MONA, "101")
    notes = {event["redaction"]["reason"] for event in said.records("events") if "redaction" in event}
    assert notes == {"The comment was deleted at its source."}


def test_a_comment_that_was_never_collected_is_removed_already(loop: World) -> None:
    with loop.nothing_stored():
        assert loop.store.redact_comment(MONA, "999") == {"removed": 0, "rebuild": [], "exports": []}


def test_a_removal_needs_no_consent(said: World) -> None:
    (grant,) = said.store.list_grants()["grants"]
    said.store.withdraw_grant(MONA, grant["id"], reason="Over.")
    assert said.store.redact_comment(MONA, "101")["removed"] == 4
    assert said.store.redact_event(MONA, said.event("102"), reason="Too.")["removed"] == 3


def test_a_redacted_event_is_never_evidence(loop: World) -> None:
    learning, proposal = loop.learning(), loop.proposal("tone")
    loop.consent("evaluation", "analytics", "training", "publication")
    loop.store.redact_comment(MONA, NAME)
    loop.store.redact_comment(MONA, "tone-1")
    assert loop.recalled() == []
    shown = loop.store.show(learning)["memory"]
    assert (shown["text"], shown["refusals"]) == (None, ["redacted"])
    with refused("evidence_unavailable"):
        loop.accept(proposal)
    assert loop.consolidate()["stored"] == []
    with refused("not_found"):
        loop.label(NAME)


def test_what_needs_rebuilding_is_reported_and_its_stored_text_stays(loop: World) -> None:
    learning = loop.learning()
    loop.proposal("tone")
    before = loop.rows("memories")
    assert loop.store.redact_comment(MONA, NAME)["rebuild"] == [learning]
    assert loop.store.redact_comment(MONA, "tone-1")["rebuild"] == []
    assert loop.rows("memories") == before
    assert {"code": "needs_rebuild", "memoryId": learning} in loop.store.status()["attention"]


def test_running_it_again_reports_the_same_and_stores_nothing(loop: World) -> None:
    learning = loop.learning()
    first = loop.store.redact_comment(MONA, NAME, reason="She asked.")
    assert (first["removed"], first["rebuild"]) == (2, [learning])
    with loop.nothing_stored():
        again = loop.store.redact_comment(OCTO, NAME, reason="Another reason.")
    assert again == {**first, "removed": 0}


def test_a_learning_that_cites_it_as_counterevidence_needs_rebuilding(loop: World) -> None:
    loop.discuss(authors=["mona", "octo", "ada"])
    loop.label(f"{THEME}-3", observation="disagreement")
    learning = loop.propose(NAME, f"{THEME}-2", counter=[f"{THEME}-3"])
    loop.accept(learning, reason="It holds.")
    assert loop.store.redact_comment(MONA, f"{THEME}-3")["rebuild"] == [learning]
    assert loop.recalled() == []


def append_export(world: World, name: str, records: list[Json], grants: list[str], purpose: str = "training") -> str:
    """An export manifest, as an export would store it."""
    manifest = seal(
        "export-manifest",
        {
            "id": derive_id("export", name),
            "scope": world.scope,
            "purpose": purpose,
            "learningsOnly": False,
            "exportedBy": {**MONA.data},
            "exportedAt": world.clock(),
            "grantIds": grants,
            "records": records,
            "withheld": {"episodes": 0, "events": 0, "learnings": 0},
        },
    )
    entry = world.entry("export", manifest.id, 0, [receipt("exports", manifest)])
    world.provider.append_records(world.scope, "exports", [manifest], [entry])
    return manifest.id


def test_exports_to_follow_up_are_reported(loop: World) -> None:
    learning, unrelated = loop.learning(), loop.learning("tone")
    grant, training = loop.records("grants")[0]["id"], loop.consent("training", "publication")
    copied = [("events", loop.records("events")[0]), ("memories", loop.latest(learning))]
    copied.append(("memories", loop.latest(unrelated)))
    named = [{"stream": stream, "id": r["id"], "digest": r["digest"]} for stream, r in copied]
    with_comment = append_export(loop, "a", named[:1], [training])
    learnings_only = append_export(loop, "b", named[1:2], [training])
    other = append_export(loop, "c", named[2:], [training], purpose="publication")
    reported = loop.store.redact_comment(MONA, NAME)["exports"]
    assert [item["id"] for item in reported] == [with_comment, learnings_only]
    assert set(reported[0]) == {"id", "purpose", "exportedAt"}
    assert loop.store.redact_comment(MONA, NAME)["exports"] == reported
    assert loop.store.withdraw_grant(MONA, grant, reason="Over.")["exports"] == []
    reported = loop.store.withdraw_grant(MONA, training, purposes=["training"], reason="Over.")["exports"]
    assert [item["id"] for item in reported] == [with_comment, learnings_only]
    reported = loop.store.withdraw_grant(MONA, training, reason="The rest.")["exports"]
    assert [item["id"] for item in reported] == [other]


def fail() -> None:
    raise StorageFailed("The disk is full.")


@pytest.mark.parametrize("number", [1, 2, 4])
def test_a_removal_that_fails_part_way_is_finished_by_the_next(said: World, number: int) -> None:
    with said.meddling(at_call(number, fail)), refused("storage_failed"):
        said.store.redact_comment(MONA, "101", reason="She asked.")
    assert len(said.audit("evidence.redact")) == number - 1
    assert said.store.verify(by=MONA)["ok"]
    assert said.store.redact_comment(MONA, "101", reason="She asked.")["removed"] == 5 - number
    assert len(said.audit("evidence.redact")) == 4
    assert said.store.verify(by=MONA)["ok"]


def test_a_missing_receipt_is_reported_and_added_from_the_note(said: World) -> None:
    (event, *_) = [e for e in said.checked("event", "events") if e["type"] == "comment"]
    copy = redacted_copy(event, {"by": {**OCTO.data}, "at": said.clock(), "reason": "She asked."})
    said.provider.redact_record(said.scope, copy, [])  # type: ignore[attr-defined]
    (problem,) = said.store.verify(by=MONA)["problems"]
    assert (problem["code"], problem["recordId"]) == ("missing_removal_receipt", event.id)
    assert said.store.redact_comment(MONA, "101")["removed"] == 3
    assert said.audit("evidence.redact")[0]["actor"] == {**OCTO.data}
    assert said.store.verify(by=MONA)["ok"]


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_two_people_removing_it_at_once_remove_and_audit_each_event_once(said: World, number: int) -> None:
    results: list[Any] = []
    race = at_call(number, lambda: results.append(said.other_store().redact_comment(OCTO, "101", reason="Octo asked.")))
    with said.meddling(race):
        results.append(said.store.redact_comment(MONA, "101", reason="Mona asked."))
    assert [result["removed"] for result in results] == [5 - number, number - 1]
    by = [event["redaction"]["by"]["id"] for event in said.records("events") if "redaction" in event]
    assert sorted(by) == ["github:mona"] * (number - 1) + ["github:octo"] * (5 - number)
    entries = said.audit("evidence.redact")
    assert len(entries) == len({entry["subject"] for entry in entries}) == 4
    assert said.store.verify(by=MONA)["ok"]


def stray_version(world: World, episode: str, comment_id: str, parent: str | None) -> None:
    payload = {"commentId": comment_id, "replyTo": None, "body": "Sentinel stray.", "target": None}
    times = {"createdAt": world.clock(), "editedAt": None}
    members = {
        "id": derive_id("event", "stray", comment_id, parent),
        "episodeId": episode,
        "type": "comment",
        "occurredAt": world.clock(),
        "actor": {"kind": "unknown"},
        "payload": payload | times,
    }
    world.append_event(members if parent is None else members | {"parentEventId": parent})


def stray_label(world: World, episode: str, target: str) -> None:
    said = {"category": "accessibility", "theme": THEME, "observation": "problem", "summary": "Sentinel stray."}
    world.append_event(
        {
            "id": derive_id("event", "stray"),
            "episodeId": episode,
            "type": "label",
            "occurredAt": world.clock(),
            "actor": {**AGENT.data},
            "parentEventId": target,
            "payload": {"targetEventId": target, **said},
        }
    )


STRAYS: dict[str, Any] = {
    "an edit of another comment": lambda w, own, other: stray_version(w, own, "102", w.event("101")),
    "an edit that leaves the thread": lambda w, own, other: stray_version(w, other, "101", w.event("101")),
    "another comment's edit from another thread": lambda w, own, other: stray_version(w, other, "103", w.event("101")),
    "a version in another thread": lambda w, own, other: stray_version(w, other, "101", None),
    "a label in another thread": lambda w, own, other: stray_label(w, other, w.event("101")),
}


@pytest.mark.parametrize("stray", STRAYS)
def test_a_history_that_reaches_elsewhere_is_refused_with_nothing_removed(said: World, stray: str) -> None:
    said.hub.comment("103", "ada", "Somebody else's words.")
    said.collect()
    own, other = (episode["id"] for episode in said.records("episodes"))
    STRAYS[stray](said, own, other)
    with said.nothing_stored(), refused("invalid_history"):
        said.store.redact_comment(MONA, "101")


def test_a_thread_with_a_label_on_what_it_does_not_hold_is_refused(said: World) -> None:
    said.hub.comment("103", "ada", "Somebody else's words.")
    said.collect()
    stray_label(said, said.records("episodes")[1]["id"], said.event("101"))
    with said.nothing_stored(), refused("invalid_history"):
        said.store.redact_comment(MONA, "103")
    with said.nothing_stored(), refused("invalid_history"):
        said.store.label(MONA, ScriptedLabeler(lambda request: []))
    codes = [problem["code"] for problem in said.store.verify(by=MONA)["problems"]]
    assert "invalid_history" in codes


def test_importing_the_snapshot_again_does_not_bring_the_text_back(said: World) -> None:
    log = said.hub.log()
    said.load(log)
    said.store.redact_comment(MONA, "101")
    rows = said.rows("events")
    said.load(log)
    assert said.collect()["imported"]["events"] == 0
    assert said.rows("events") == rows


def test_an_edit_after_the_removal_arrives_as_new_text(said: World) -> None:
    said.store.redact_comment(MONA, "101")
    said.hub.edit("101", "Something else.")
    assert said.collect()["imported"]["events"] == 1
    newest = said.events("comment", "101")[-1]
    assert newest["payload"]["body"] == "Something else."
    said.label("101")
    assert said.store.redact_comment(MONA, "101")["removed"] == 2


def test_a_deleted_comment_keeps_its_text_unless_the_host_asks(said: World) -> None:
    said.hub.delete("101")
    assert said.collect()["redacted"] == 0
    assert holds(said, "Sentinel two.") == 1


def test_a_host_that_erases_deleted_comments_asks_with_the_import(loop: World) -> None:
    learning = loop.learning()
    loop.hub.delete(NAME)
    result = loop.load(loop.hub.log(), by=IMPORTER, redact_deleted=True)
    assert (result["redacted"], result["rebuild"], result["exports"]) == (2, [learning], [])
    assert holds(loop, "says mona") == 0
    notes = [event["redaction"]["by"]["id"] for event in loop.records("events") if "redaction" in event]
    assert notes == ["agent:replica-learning"] * 2
    again = loop.collect(redact_deleted=True)
    assert (again["redacted"], again["rebuild"]) == (0, [learning])


def test_an_import_that_erases_needs_consent_and_removes_nothing_without(said: World) -> None:
    said.hub.delete("101")
    (grant,) = said.store.list_grants()["grants"]
    said.store.withdraw_grant(MONA, grant["id"], reason="Over.")
    with said.nothing_stored(), refused("not_permitted"):
        said.collect(redact_deleted=True)
    assert said.store.redact_comment(MONA, "101")["removed"] == 4


@pytest.mark.parametrize("same", [True, False], ids=["the same snapshot", "the next snapshot"])
def test_the_next_import_finishes_a_removal_that_failed_part_way(said: World, same: bool) -> None:
    said.hub.delete("101")
    said.hub.delete("102")
    log = said.hub.log()
    with said.meddling(at_call(4, fail)), refused("storage_failed"):
        said.load(log, redact_deleted=True)
    assert len(said.audit("evidence.redact")) == 2
    assert len(said.records("collections")) == 3
    assert said.load(log if same else said.hub.log(), redact_deleted=True)["redacted"] == 5
    assert len(said.audit("evidence.redact")) == 7
    assert said.store.verify(by=MONA)["ok"]


def test_text_of_a_deleted_comment_that_stayed_goes_with_the_next_import(said: World) -> None:
    said.hub.delete("101")
    said.collect(redact_deleted=True)
    stray_label(said, said.records("episodes")[0]["id"], said.event("101"))
    assert said.collect(redact_deleted=True)["redacted"] == 1


def test_one_comment_that_cannot_be_removed_does_not_keep_the_others(said: World) -> None:
    said.hub.comment("103", "ada", "Somebody else's words.")
    said.collect()
    stray_version(said, said.records("episodes")[1]["id"], "101", None)
    said.hub.delete("101")
    said.hub.delete("103")
    with refused("invalid_history"):
        said.collect(redact_deleted=True)
    assert "redaction" in said.events("comment", "103")[0]
    assert "redaction" not in said.events("comment", "101")[0]


def test_a_provider_that_cannot_remove_text_refuses(loop: World) -> None:
    loop.hub.comment("101", "mona")
    loop.collect()
    loop.store = World(Without(InMemoryProvider(), REDACTION)).store
    with refused("unsupported"):
        loop.store.redact_comment(MONA, "101")


def test_a_provider_that_cannot_remove_text_refuses_to_erase_with_an_import() -> None:
    world = World(Without(InMemoryProvider(), REDACTION))
    world.consent()
    world.hub.comment("101", "mona")
    world.collect()
    world.hub.delete("101")
    with world.nothing_stored(), refused("unsupported"):
        world.collect(redact_deleted=True)
    with world.nothing_stored(), refused("unsupported"):
        world.store.redact_event(MONA, world.event("101"), reason="R.")
    assert world.load(world.hub.log(), by=AGENT)["redacted"] == 0

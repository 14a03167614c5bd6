"""The examples tell one story: their digests and derived IDs are true, and what they name is there."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from learning_core import identifiers, lifecycle
from learning_core.canonical import canonical_bytes
from learning_core.comment_log import LoggedComment, read_snapshot
from learning_core.errors import Damaged
from learning_core.provider import Query, Stream, check_redacted_copy
from learning_core.records import STREAM_KINDS, CheckedRecord, check, check_valid, record_digest, seal
from learning_core.store import LearningStore
from providers.storage.in_memory import InMemoryProvider
from tests.core.contract_files import Case, example, examples, validators

STORED = [case for case in examples() if case.kind in STREAM_KINDS.values()]
SCOPE = "github.com/acme/checkout-prototypes"


def name_case(case: Case) -> str:
    return case.id


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [case.data for case in examples() if case.kind == kind]


def by_id(kind: str) -> dict[str, dict[str, Any]]:
    return {record["id"]: record for record in of_kind(kind)}


def read_checked(case: Case) -> CheckedRecord:
    return check(case.kind, canonical_bytes(case.data), SCOPE)


@pytest.mark.parametrize("case", STORED, ids=name_case)
def test_a_stored_record_checks(case: Case) -> None:
    record = read_checked(case)
    assert (record.kind, record.id, record.digest) == (case.kind, case.data["id"], case.data["digest"])
    assert record.data == case.data


@pytest.mark.parametrize("case", STORED, ids=name_case)
def test_sealing_its_members_again_makes_the_same_record(case: Case) -> None:
    computed = {"digest", "contentDigest", "reviewDigest", "schemaVersion"}
    if "payload" in case.data:
        computed.add("payloadDigest")
    members = {name: value for name, value in case.data.items() if name not in computed}
    assert seal(case.kind, members).data == case.data


@pytest.mark.parametrize("case", STORED, ids=name_case)
def test_it_stands_in_one_scope_and_in_its_exact_bytes(case: Case) -> None:
    raw = canonical_bytes(case.data)
    for damaged, scope in ((raw, "github.com/acme/other"), (raw + b"\n", SCOPE), (raw.replace(b",", b", ", 1), SCOPE)):
        with pytest.raises(Damaged):
            check(case.kind, damaged, scope)


@pytest.mark.parametrize("case", STORED, ids=name_case)
def test_no_text_of_it_can_be_changed(case: Case) -> None:
    """Every text but a redaction note's, which the digest does not cover, so that the text can be removed later."""
    covered = {name: value for name, value in case.data.items() if name != "redaction"}
    changed = 0
    for variant in with_one_text_changed(covered):
        record = {**variant, **{name: case.data[name] for name in case.data if name == "redaction"}}
        with pytest.raises(Damaged):
            check(case.kind, canonical_bytes(record), SCOPE)
        changed += 1
    assert changed >= 10


def with_one_text_changed(value: Any) -> list[Any]:
    if isinstance(value, str):
        last = value[-1:]
        return [value[:-1] + ("0" if last != "0" else "1")]
    if isinstance(value, dict):
        return [{**value, key: v} for key, child in value.items() for v in with_one_text_changed(child)]
    if isinstance(value, list):
        return [[*value[:i], v, *value[i + 1 :]] for i, child in enumerate(value) for v in with_one_text_changed(child)]
    return []


OTHER_DIGEST = "sha256:" + "0" * 64
OTHER_EVENT = "event_" + "0" * 64
FORGERIES: dict[str, tuple[str, dict[str, Any], str]] = {
    "a learning with another content digest": (
        "memory-record.accepted",
        {"contentDigest": OTHER_DIGEST},
        "contentDigest",
    ),
    "a learning with another review digest": ("memory-record.proposed", {"reviewDigest": OTHER_DIGEST}, "reviewDigest"),
    "a label moved to another comment": ("event.label", {"parentEventId": OTHER_EVENT}, "parentEventId"),
    "a retraction moved to another comment": ("event.retraction", {"parentEventId": OTHER_EVENT}, "parentEventId"),
    "a marker moved to another comment": ("event.no_annotation", {"parentEventId": OTHER_EVENT}, "parentEventId"),
    "a grant whose range ends where it begins": (
        "consent-grant",
        {"range": {"from": "2026-01-01T00:00:00.000000Z", "to": "2026-01-01T00:00:00.000000Z"}},
        "range",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forger_who_makes_the_digest_right_is_still_refused(name: str) -> None:
    example_name, members, reason = FORGERIES[name]
    kind = example_name.split(".")[0]
    forged = {**example(example_name), **members}
    forged["digest"] = record_digest(kind, forged)
    assert validators(kind).verdicts(forged) == (True, True)
    with pytest.raises(Damaged, match=reason):
        check(kind, canonical_bytes(forged), SCOPE)


# Derived IDs ---------------------------------------------------------------------------------------------------------


def derive_event_id(event: dict[str, Any]) -> str:
    actor, time, payload_digest = event["actor"], event["occurredAt"], event["payloadDigest"]
    pin = by_id("episode")[event["episodeId"]]["pin"]
    if event["type"] == "comment":
        comment = (event.get("payload") or event["redaction"])["commentId"]
        return identifiers.comment_event_id(SCOPE, pin["hubOrigin"], comment, time, actor.get("id"), payload_digest)
    if event["type"] in ("label", "no_annotation"):
        return identifiers.label_event_id(event["parentEventId"], actor["id"], time, payload_digest)
    if event["type"] == "status_change":
        return identifiers.status_event_id(event["episodeId"], event["payload"]["status"], time, actor.get("id"))
    return identifiers.retraction_event_id(event["parentEventId"], event["payload"]["reason"])


def derive_memory_id(record: dict[str, Any]) -> str:
    content = record["content"]
    decided_before = {
        other["id"]
        for other in of_kind("memory-record")
        if other["state"] != "proposed" and other["at"] < record["at"] and other["id"] != record["id"]
    }
    return identifiers.memory_id(SCOPE, record["kind"], content["category"], content["theme"], len(decided_before))


DERIVATIONS: dict[str, Callable[[dict[str, Any]], str]] = {
    "episode": lambda r: identifiers.episode_id(SCOPE, r["pin"]["hubOrigin"], r["rootCommentId"]),
    "event": derive_event_id,
    "collection": lambda r: identifiers.collection_id(SCOPE, r["snapshotId"]),
    "memory-record": derive_memory_id,
    "audit-entry": lambda r: identifiers.audit_id(SCOPE, r["operation"], r["subject"], r["chunk"]),
}


@pytest.mark.parametrize("case", [case for case in STORED if case.kind in DERIVATIONS], ids=name_case)
def test_an_id_is_the_derived_one(case: Case) -> None:
    if case.kind == "memory-record" and case.data["version"] > 1:
        assert any(v["id"] == case.data["id"] and v["version"] == 1 for v in of_kind("memory-record"))
    else:
        assert case.data["id"] == DERIVATIONS[case.kind](case.data)


# The story -----------------------------------------------------------------------------------------------------------


def test_references_state_what_the_events_say() -> None:
    events, episodes = by_id("event"), by_id("episode")
    citing = [*of_kind("memory-proposal"), *of_kind("memory-record")]
    references = [r for record in citing for r in (*record["evidence"], *record["counterevidence"])]
    assert of_kind("evidence-ref")[0] in references
    for reference in references:
        check_valid("evidence-ref", reference)
        comment, *labels = (events[event] for event in reference["eventIds"])
        assert comment["type"] == "comment"
        assert labels
        assert {label["parentEventId"] for label in labels} == {comment["id"]}
        assert {event["episodeId"] for event in (comment, *labels)} == {reference["episodeId"]}
        assert reference["pin"] == episodes[reference["episodeId"]]["pin"]
        assert (reference["author"], reference["writtenAt"]) == (comment["actor"], comment["occurredAt"])


def test_the_learnings_histories_are_intact() -> None:
    histories: dict[str, list[CheckedRecord]] = {}
    for case in sorted(STORED, key=lambda case: case.data.get("version", 0)):
        if case.kind == "memory-record":
            histories.setdefault(case.data["id"], []).append(read_checked(case))
    assert sorted(len(versions) for versions in histories.values()) == [2, 2, 3]
    assert {lifecycle.find_history_fault(versions) for versions in histories.values()} == {None}


def test_the_log_says_what_the_events_say() -> None:
    snapshot = read_snapshot(canonical_bytes(example("hub-comment-log")))
    collection = example("collection")
    assert (snapshot.id, snapshot.digest) == (collection["snapshotId"], collection["logDigest"])
    assert snapshot.complete
    comments = {event["payload"]["commentId"]: event["payload"] for event in of_kind("event") if is_text(event)}
    listed = {comment.id: comment for thread in snapshot.threads for comment in thread.comments}
    assert {name: summary(listed[name]) for name in comments} == {
        "101": (comments["101"]["body"], comments["101"]["createdAt"], None),
        "102": (comments["102"]["body"], comments["102"]["createdAt"], comments["102"]["editedAt"]),
        "201": (comments["201"]["body"], comments["201"]["createdAt"], None),
    }
    later = read_snapshot(canonical_bytes(example("hub-comment-log.after-a-deletion")))
    assert [c.id for t in later.threads for c in t.comments if c.deleted_at] == ["202"]


def is_text(event: dict[str, Any]) -> bool:
    """Whether an event is a comment version that no other example supersedes and whose text is still there."""
    continued = {other.get("parentEventId") for other in of_kind("event") if other["type"] == "comment"}
    return event["type"] == "comment" and "payload" in event and event["id"] not in continued


def summary(comment: LoggedComment) -> tuple[str | None, str, str | None]:
    return comment.body, comment.created_at, comment.edited_at


def test_receipts_and_exports_name_records_that_are_there() -> None:
    digests = {(record["id"], record["digest"]) for case in STORED for record in (case.data,)}
    named = [item for record in (*of_kind("audit-entry"), *of_kind("export-manifest")) for item in record["records"]]
    assert named
    assert {(item["id"], item["digest"]) for item in named} <= digests
    assert {STREAM_KINDS[item["stream"]] for item in named} <= {case.kind for case in STORED}
    grants = set(by_id("consent-grant"))
    for record in (*of_kind("episode"), *of_kind("collection"), *of_kind("export-manifest")):
        assert set(record["grantIds"]) <= grants
    assert example("grant-withdrawal")["grantId"] in grants


def test_the_redacted_comment_is_an_allowed_copy() -> None:
    redacted = example("event.comment.redacted")
    payload = {"commentId": "202", "body": "gone"}
    stored = {**{name: value for name, value in redacted.items() if name != "redaction"}, "payload": payload}
    assert check_redacted_copy(stored, redacted) is None
    assert example("event.retraction")["parentEventId"] == redacted["id"]


def test_the_labels_files_say_what_the_labels_say() -> None:
    by_person, by_agent = example("labels"), example("labels.by-an-agent")
    events = by_id("event")
    for event, file in ((example("event.label.by-a-person"), by_person), (example("event.label"), by_agent)):
        item = file["labels"][0]
        target = events[event["parentEventId"]]
        assert item.get("eventId", target["id"]) == target["id"]
        assert item.get("commentId", target["payload"]["commentId"]) == target["payload"]["commentId"]
        assert {name: item[name] for name in item if name in event["payload"]} == {
            name: event["payload"][name] for name in item if name not in ("commentId", "eventId")
        }
        assert file["labeler"]["id"] == event["actor"]["id"]
        assert file["labeler"].get("model") == event["payload"].get("model")


def test_the_store_makes_these_records_of_these_logs() -> None:
    """An earlier snapshot, the example's, and the one after the deletion: episodes, events and the collection."""
    earlier = copy.deepcopy(example("hub-comment-log"))
    earlier.update(snapshotId="snap-2026-11-02", capturedAt="2026-11-02T20:00:00Z")
    earlier["pages"][0]["comments"][0].update(status="open", resolvedAt=None, resolvedBy=None)
    earlier["pages"][2]["replies"][0].update(body=example("event.comment.reply")["payload"]["body"], editedAt=None)
    provider = InMemoryProvider()
    now = {"time": "2026-10-30T08:00:00.000000Z"}
    store = LearningStore(provider, SCOPE, clock=lambda: now["time"], new_id=lambda: "example")
    grant = example("consent-grant")
    administrator = identifiers.Principal(**grant["grantedBy"])
    bounds = grant["range"]
    store.add_grant(administrator, purposes=grant["purposes"], time_from=bounds["from"], reason=grant["reason"])
    logs = {
        "2026-11-02T20:05:00.000000Z": earlier,
        example("collection")["importedAt"]: example("hub-comment-log"),
        example("event.comment.redacted")["redaction"]["at"]: example("hub-comment-log.after-a-deletion"),
    }
    for now["time"], log in logs.items():
        store.import_comments(identifiers.IMPORTER, canonical_bytes(log), redact_deleted=True)
    streams: tuple[Stream, ...] = ("episodes", "events", "grants", "collections")
    stored = [json.loads(row.canonical) for stream in streams for row in provider.read_records(SCOPE, stream, Query())]
    for case in STORED:
        if case.kind in ("episode", "consent-grant", "collection") or (
            case.kind == "event" and case.data["type"] not in ("label", "no_annotation")
        ):
            assert case.data in stored, case.id

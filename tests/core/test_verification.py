"""What status reports, and what verify proves about a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from learning_core.audit import Plan, receipt, seal_entry, seal_receipts
from learning_core.canonical import derive_id
from learning_core.provider import EMPTY_HEAD, HEADS, MEMORIES, Head, MemoryProvider, advance
from learning_core.records import CheckedRecord, seal
from providers.storage.in_memory import InMemoryProvider
from tests.core.builders import AGENT, MONA, OCTO, THEME, Json, Without, World, refused


def walk(world: World) -> str:
    """Everything that the loop does, once; the learning's ID."""
    learning = world.learning()
    world.hub.reply("reply", f"{THEME}-1", "ada")
    world.hub.resolve(f"{THEME}-2")
    world.hub.edit(f"{THEME}-2", "Edited.")
    world.collect()
    world.recall()
    world.store.redact_comment(MONA, "reply")
    world.store.withdraw_grant(MONA, world.consent("training"), reason="Over.")
    world.reject(world.proposal("tone"))
    world.hub.delete("tone-1")
    world.collect(redact_deleted=True)
    return learning


def problems(world: World) -> list[tuple[str, Any]]:
    result = world.store.verify(by=MONA)
    assert result["ok"] is (result["problems"] == [])
    return [(problem["code"], problem["recordId"]) for problem in result["problems"]]


# Verify ------------------------------------------------------------------------------------------------------------


def test_a_store_that_was_only_written_by_the_rules_verifies(loop: World) -> None:
    walk(loop)
    result = loop.store.verify(by=AGENT)
    assert (result["ok"], result["completeness"], result["problems"]) == (True, "checked", [])
    assert sum(result["checked"].values()) == len(loop.rows())
    assert result["checked"]["events"] == len(loop.records("events"))
    with loop.nothing_stored():
        loop.store.verify(by=AGENT)


def test_an_empty_store_verifies(world: World) -> None:
    with world.nothing_stored():
        assert world.store.verify(by=AGENT)["ok"]


def test_without_heads_completeness_is_not_checked() -> None:
    world = World(cast("MemoryProvider", Without(InMemoryProvider(), HEADS)))
    world.consent()
    walk(world)
    result = world.store.verify(by=AGENT)
    assert (result["ok"], result["completeness"]) == (True, "not checked")


def grant(world: World) -> CheckedRecord:
    by, at = {**OCTO.data}, world.clock()
    members = {"purposes": ["training"], "sources": ["hub-comments"], "range": {"from": None, "to": None}}
    name = derive_id("grant", at)
    return seal(
        "consent-grant", {"id": name, "scope": world.scope, "reason": "R.", "grantedBy": by, "grantedAt": at, **members}
    )


def withdrawal(world: World) -> CheckedRecord:
    by, at = {**OCTO.data}, world.clock()
    members = {"grantId": world.records("grants")[0]["id"], "purposes": ["review"], "reason": "R."}
    name = derive_id("withdrawal", at)
    return seal("grant-withdrawal", {"id": name, "scope": world.scope, "withdrawnBy": by, "withdrawnAt": at, **members})


def changed(stream: str, kind: str, prefix: str, **members: Any) -> Callable[[World], CheckedRecord]:
    """A record like the first of a stream, under another ID."""

    def make(world: World) -> CheckedRecord:
        data = {name: value for name, value in world.records(stream)[0].items() if name != "digest"}
        return seal(kind, {**data, "id": derive_id(prefix, "another"), **members})

    return make


UNAUDITED: dict[str, Callable[[World], CheckedRecord]] = {
    "grants": grant,
    "withdrawals": withdrawal,
    "episodes": changed("episodes", "episode", "episode"),
    "events": changed("events", "event", "event"),
    "collections": changed("collections", "collection", "collection", snapshotId="other"),
    "memories": changed("memories", "memory-record", "memory"),
}


@pytest.mark.parametrize("stream", UNAUDITED)
def test_a_record_that_no_audit_entry_records_is_reported(loop: World, stream: str) -> None:
    loop.learning()
    record = UNAUDITED[stream](loop)
    if stream == MEMORIES:
        loop.provider.append_memory_version(loop.scope, record, None, [])
    else:
        loop.provider.append_records(loop.scope, cast("Any", stream), [record], [])
    found = problems(loop)
    assert found[0] == ("unaudited_record", record.id)
    assert {record_id for _, record_id in found} == {record.id}


def test_a_record_that_two_audit_entries_record_is_reported(loop: World) -> None:
    loop.learning()
    (event, *_) = loop.checked("event", "events")
    twice = loop.entry("import", "again", 0, [receipt("events", event)])
    loop.provider.append_records(loop.scope, "events", [], [twice])
    assert problems(loop) == [("doubled_receipt", event.id)]


@pytest.mark.parametrize("stream", ["grants", "events", "memories"])
def test_an_audit_entry_that_names_what_is_not_there_is_reported(loop: World, stream: str) -> None:
    loop.learning()
    named = {"stream": stream, "id": "gone_" + "0" * 64, "digest": "sha256:" + "0" * 64}
    loop.provider.append_records(loop.scope, "events", [], [loop.entry("import", "x", 0, [named])])
    assert problems(loop) == [("missing_record", named["id"])]
    if stream == "memories":
        assert len(loop.recalled()) == 1
    else:
        with refused("damaged") as caught:
            loop.recall()
        assert named["id"] in caught.value.message


def test_an_audit_entry_with_another_digest_is_reported(loop: World) -> None:
    loop.learning()
    record = loop.records("exports" if loop.records("exports") else "collections")[0]
    named = {"stream": "collections", "id": record["id"], "digest": "sha256:" + "0" * 64}
    loop.provider.append_records(loop.scope, "events", [], [loop.entry("import", "x", 0, [named])])
    assert problems(loop) == [("missing_record", record["id"])]


def test_a_learning_that_cites_what_storage_does_not_hold_is_reported(loop: World) -> None:
    memory = loop.proposal()
    evidence = loop.latest(memory)["evidence"]
    evidence[0]["pin"]["prototypeId"] = "p9"
    loop.forge(memory, evidence=evidence, at=loop.clock())
    assert problems(loop) == [("forged_evidence", memory)]
    with refused("evidence_unavailable"):
        loop.accept(memory)
    assert loop.store.show(memory)["memory"]["refusals"] == ["forged"]


def anchor(world: World) -> tuple[int, str]:
    head = EMPTY_HEAD
    for entry in world.checked("audit-entry", "audit"):
        head = advance(head, entry.digest)
    return head.count, head.chain


def test_a_store_that_was_rolled_back_is_reported(loop: World) -> None:
    loop.learning()
    seen = anchor(loop)
    loop.recall()
    later = anchor(loop)
    heads: dict[str, Head] = loop.provider.read_heads(loop.scope, ["audit"])  # type: ignore[attr-defined]
    assert (heads["audit"].count, heads["audit"].chain) == later
    for ok in (seen, later, (0, EMPTY_HEAD.chain)):
        assert loop.store.verify(by=MONA, anchor=ok)["ok"]
    for bad in ((seen[0], later[1]), (later[0] + 1, later[1]), (later[0], "0" * 64)):
        result = loop.store.verify(by=MONA, anchor=bad)
        assert [problem["code"] for problem in result["problems"]] == ["rolled_back"]


# A change without its audit entry cannot be expressed ---------------------------------------------------------------


def test_a_plan_needs_an_audit_entry_that_names_all_it_changes(loop: World) -> None:
    record = grant(loop)
    (named,) = seal_receipts(loop.scope, "grant.add", record.id, {"grants": [record]}, at=loop.clock(), actor=MONA)
    other = seal_entry(loop.scope, "grant.add", "x", at=loop.clock(), actor=MONA.data)
    assert Plan([named], {"grants": [record]}).audit == [named]
    with pytest.raises(ValueError, match="without an audit entry"):
        Plan([], {})
    with pytest.raises(ValueError, match="has no receipt"):
        Plan([other], {"grants": [record]})
    with pytest.raises(ValueError, match="has no receipt"):
        Plan([named], {"withdrawals": [record]})
    with pytest.raises(ValueError, match="has no receipt"):
        Plan([named], memory=(record, None))
    with pytest.raises(ValueError, match="has no receipt"):
        Plan([named], redaction=record)


def test_a_large_change_has_receipts_of_a_thousand(loop: World) -> None:
    records = [grant(loop) for _ in range(2001)]
    receipts = seal_receipts(loop.scope, "grant.add", "many", {"grants": records}, at=loop.clock(), actor=MONA)
    assert [len(entry["records"]) for entry in receipts] == [1000, 1000, 1]
    assert [entry["chunk"] for entry in receipts] == [0, 1, 2]
    assert len({entry.id for entry in receipts}) == 3


def test_every_record_stands_in_exactly_one_receipt(loop: World) -> None:
    walk(loop)
    named = [
        (item["stream"], item["id"], item["digest"])
        for entry in loop.records("audit")
        if entry["operation"] != "evidence.redact"
        for item in entry["records"]
    ]
    streams = ("episodes", "events", "grants", "withdrawals", "collections", MEMORIES)
    stored = [(stream, record["id"], record["digest"]) for stream in streams for record in loop.records(stream)]
    assert sorted(named) == sorted(stored)


# Status ------------------------------------------------------------------------------------------------------------


def test_status_counts(loop: World) -> None:
    assert loop.store.status() == {
        "counts": {
            "grants": 1,
            "collections": 0,
            "proposed": 0,
            "accepted": 0,
            "rejected": 0,
            "retired": 0,
            "damaged": 0,
        },
        "attention": [],
    }
    loop.learning()
    loop.proposal("tone")
    loop.reject(loop.proposal("keys"))
    loop.store.retire(MONA, loop.learning("forms"), reason="R.")
    loop.forge(loop.learning("links"), at=loop.clock())
    counts: Json = loop.store.status()["counts"]
    assert counts == {
        "grants": 1,
        "collections": 5,
        "proposed": 1,
        "accepted": 1,
        "rejected": 1,
        "retired": 1,
        "damaged": 1,
    }


def test_status_needs_no_consent_and_stores_nothing(loop: World) -> None:
    learning = loop.learning()
    (given,) = loop.store.list_grants()["grants"]
    loop.store.withdraw_grant(MONA, given["id"], reason="Over.")
    with loop.nothing_stored():
        assert {"code": "needs_rebuild", "memoryId": learning} in loop.store.status()["attention"]


def test_closed_learnings_need_no_attention(loop: World) -> None:
    learning, rejected = loop.learning(), loop.proposal("tone")
    loop.reject(rejected)
    loop.store.retire(MONA, learning, reason="R.")
    loop.hub.delete(f"{THEME}-1")
    loop.hub.delete("tone-1")
    loop.collect()
    assert loop.store.status()["attention"] == []


def test_a_provider_without_a_required_capability_is_refused() -> None:
    for capability in ("records.batch", "memory.append", "manifest"):
        with refused("invalid_record"):
            World(cast("MemoryProvider", Without(InMemoryProvider(), capability)))


def test_a_provider_that_returns_no_rows_is_named(loop: World) -> None:
    class Odd(Without):
        def read_records(self, *_: Any) -> Any:
            return iter([b"{}"])

    loop.learning()
    loop.store.provider = cast("MemoryProvider", Odd(loop.provider, "none"))
    with refused("plugin_failed"):
        loop.recall()

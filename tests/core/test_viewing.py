"""What a person is shown of a learning: its evidence as storage has it, or that it is withheld and why."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.builders import MONA, OCTO, THEME, Json, World, person, refused

WITHHELD_ROW = {
    "id", "state", "kind", "category", "theme", "version", "at", "contentDigest", "reviewDigest", "superseded",
    "conflicted", "damaged", "withheld", "identityNeedsReview", "inUse", "usable", "text",
}  # fmt: skip


@pytest.fixture
def said(loop: World) -> World:
    """One theme raised by three people and doubted by a fourth."""
    loop.discuss(authors=["mona", "octo", "ada", "lin"])
    loop.label(f"{THEME}-4", observation="disagreement", summary="Leave it.")
    return loop


def row(world: World, memory: str, **options: Any) -> Json:
    return next(row for row in world.store.memories(**options)["memories"] if row["id"] == memory)


def test_evidence_is_quoted_as_storage_has_it(said: World) -> None:
    said.label(f"{THEME}-1", by="agent:other", summary="Mind it.", explanation="Because.")
    said.hub.find(f"{THEME}-2")["target"] = {"kind": "file", "path": "a.css", "line": 3}
    said.collect()
    said.label(f"{THEME}-2", summary="Mind it.", explanation="Because.")
    memory = said.propose(f"{THEME}-2", f"{THEME}-3", counter=[f"{THEME}-4"])
    shown = said.store.show(memory)["memory"]
    first = shown["evidence"][0]
    event = said.events("comment", f"{THEME}-2")[-1]
    assert first["eventIds"][0] == event["id"]
    assert first["comment"] == {
        "commentId": f"{THEME}-2",
        "rootCommentId": f"{THEME}-2",
        "body": f"About {THEME}, says octo.",
        "author": {"kind": "human", "id": "github-user:github.com/9002", "login": "octo", "identityIsAsserted": False},
        "target": {"kind": "file", "path": "a.css", "line": 3},
        "createdAt": event["payload"]["createdAt"],
        "editedAt": event["payload"]["editedAt"],
    }
    (label,) = first["labels"]
    assert (label["category"], label["theme"], label["observation"]) == ("accessibility", THEME, "problem")
    assert (label["summary"], label["explanation"], label["labeler"]["id"]) == ("Mind it.", "Because.", "github:mona")
    assert first["withheld"] is None
    assert [item["comment"]["body"] for item in shown["counterevidence"]] == [f"About {THEME}, says lin."]
    assert (shown["contested"], shown["support"]["comments"], shown["dissent"]["reviewers"]) == (True, 2, 1)
    record = said.latest(memory)
    for member in ("rationale", "proposer", "lifecycle", "targets", "digest", "contentDigest", "reviewDigest"):
        assert shown[member] == record[member]


def test_an_identity_that_is_only_asserted_says_so(loop: World) -> None:
    loop.hub.comment("101", person("mona", legacy=True))
    loop.hub.legacy = True
    loop.collect()
    memory = loop.propose("101")
    author = loop.store.show(memory)["memory"]["evidence"][0]["comment"]["author"]
    assert (author["id"], author["identityIsAsserted"]) == ("github:mona", True)


def test_lists_show_every_learning_or_those_of_some_states(loop: World) -> None:
    proposed, accepted, rejected = loop.proposal("tone"), loop.learning("keys"), loop.proposal("wording")
    loop.reject(rejected)
    rows = loop.store.memories()["memories"]
    assert {row["id"]: row["state"] for row in rows} == {
        proposed: "proposed",
        accepted: "accepted",
        rejected: "rejected",
    }
    for states, expected in ((["proposed"], [proposed]), (["accepted", "rejected"], [accepted, rejected]), ([], [])):
        assert [row["id"] for row in loop.store.memories(states=states)["memories"]] == expected
    named = loop.store.memories(ids=[rejected, "memory_" + "0" * 64, proposed])["memories"]
    assert [row["id"] for row in named] == [rejected, proposed]
    outline = loop.store.outline()["memories"]
    assert {item["id"] for item in outline} == {proposed, accepted, rejected}
    assert all(set(item) == {"id", "state", "at", "reviewers", "comments"} for item in outline)


def test_a_row_says_what_the_learning_is(said: World) -> None:
    memory = said.propose(f"{THEME}-1", f"{THEME}-2", counter=[f"{THEME}-4"])
    shown = row(said, memory)
    record = said.latest(memory)
    assert set(shown) == WITHHELD_ROW | {"support", "dissent", "confidence", "contested"}
    assert (shown["text"], shown["contested"], shown["inUse"], shown["withheld"]) == (
        record["content"]["text"],
        True,
        False,
        False,
    )
    said.accept(memory, reason="R.")
    assert row(said, memory)["inUse"]


def gone(world: World, name: str, how: str) -> None:
    if how == "deleted":
        world.hub.delete(name)
        world.collect()
    elif how == "edited":
        world.hub.edit(name, "Other words.")
        world.collect()
    elif how == "redacted":
        world.store.redact_comment(OCTO, name)


@pytest.mark.parametrize("side", ["evidence", "counterevidence"])
@pytest.mark.parametrize("how", ["deleted", "edited", "redacted", "pending"])
def test_content_evidence_and_rationale_are_withheld_with_their_evidence(said: World, how: str, side: str) -> None:
    memory = said.propose(f"{THEME}-1", f"{THEME}-2", counter=[f"{THEME}-4"], rationale="Sentinel rationale.")
    said.accept(memory, reason="Sentinel reason.", text="Sentinel text.")
    name = f"{THEME}-1" if side == "evidence" else f"{THEME}-4"
    gone(said, name, how)
    withheld = frozenset({name} if how == "pending" else ())
    listed = row(said, memory, withheld_comments=withheld)
    shown = said.store.show(memory, withheld_comments=withheld)["memory"]
    assert set(listed) == WITHHELD_ROW
    assert (listed["text"], listed["withheld"], listed["inUse"], listed["usable"]) == (None, True, False, False)
    assert set(shown) == WITHHELD_ROW | {"supersededBy", "approval", "refusals"}
    assert (shown["refusals"], shown["approval"]["by"]["id"]) == ([how], "github:mona")
    assert "Sentinel" not in str(shown)
    assert "says" not in str(shown)


def test_each_past_version_is_checked_on_its_own(said: World) -> None:
    memory = said.propose(f"{THEME}-1", f"{THEME}-2", text="Sentinel of the first.")
    said.propose(f"{THEME}-2", f"{THEME}-3", text="Keep the second.")
    said.accept(memory, text="Keep the third.", reason="Since then.")
    said.hub.delete(f"{THEME}-1")
    said.collect()
    shown = said.store.show(memory, history=True)["memory"]
    first, second, third = shown["history"]
    digests = {"contentDigest", "reviewDigest", "digest"}
    assert set(first) == {"version", "state", "at", "damaged", "withheld"} | digests
    assert (first["version"], first["state"], first["withheld"]) == (1, "proposed", True)
    assert first["contentDigest"] == said.records("memories")[0]["contentDigest"]
    assert (second["text"], second["withheld"], second["state"]) == ("Keep the second.", False, "proposed")
    assert second["evidence"] == [said.event(f"{THEME}-2"), said.event(f"{THEME}-3")]
    assert (third["text"], third["approval"]["edited"], third["approval"]["reason"]) == (
        "Keep the third.",
        True,
        "Since then.",
    )
    assert "Sentinel" not in str(shown)


def test_the_counterevidence_of_a_past_version_counts_too(said: World) -> None:
    memory = said.propose(f"{THEME}-1", f"{THEME}-2", counter=[f"{THEME}-4"], text="Sentinel.")
    said.propose(f"{THEME}-1", f"{THEME}-2", text="Keep it.")
    said.hub.delete(f"{THEME}-4")
    said.collect()
    first, second = said.store.show(memory, history=True)["memory"]["history"]
    assert (first["withheld"], second["withheld"], second["text"]) == (True, False, "Keep it.")
    assert "Sentinel" not in str(first)


def test_a_decision_returns_what_it_made(said: World) -> None:
    memory = said.propose(f"{THEME}-1", f"{THEME}-2")
    assert said.accept(memory) == said.store.show(memory)["memory"]
    assert said.store.retire(MONA, memory, reason="R.") == said.store.show(memory)


def test_a_decision_stands_where_review_may_not_read_it_any_more(loop: World) -> None:
    memory = loop.learning()
    (grant,) = loop.store.list_grants()["grants"]
    loop.store.withdraw_grant(MONA, grant["id"], reason="Over.")
    result = loop.store.retire(MONA, memory, reason="Over.")["memory"]
    assert (result["id"], result["state"], result["withheld"]) == (memory, "retired", True)
    assert set(result) == {"id", "state", "version", "contentDigest", "reviewDigest", "withheld"}
    with refused("not_permitted"):
        loop.store.show(memory)
    with refused("not_permitted"):
        loop.store.outline()

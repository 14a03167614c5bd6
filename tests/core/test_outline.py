"""A page lists learnings by an outline, and checks those that it shows."""

from __future__ import annotations

import json

import pytest

from learning_core.evidence import stated_outline
from tests.core.builders import MONA, World, refused


def test_an_outline_tells_what_a_list_is_ordered_by_and_no_content(loop: World) -> None:
    accepted, proposed = loop.learning(), loop.proposal("tone", authors=("mona", "octo", "ada"))
    rows = loop.store.outline()["memories"]
    shown = {row["id"]: row for row in loop.store.memories()["memories"]}
    assert {row["id"]: row["state"] for row in rows} == {accepted: "accepted", proposed: "proposed"}
    for row in rows:
        assert set(row) == {"id", "state", "at", "reviewers", "comments"}
        assert row["at"] == shown[row["id"]]["at"]
        assert row["reviewers"] == shown[row["id"]]["support"]["reviewers"]


def test_an_outline_is_a_use_for_review(loop: World) -> None:
    (grant,) = loop.store.list_grants()["grants"]
    loop.store.withdraw_grant(MONA, grant["id"], purposes=["review"], reason="Over.")
    with refused("not_permitted"):
        loop.store.outline()


def test_only_the_learnings_that_are_named_are_read(loop: World) -> None:
    learning, _ = loop.learning(), loop.proposal("tone")
    rows = loop.store.memories(ids=[learning, f"memory_{'0' * 64}"])["memories"]
    assert [row["id"] for row in rows] == [learning]
    assert loop.store.memories(ids=[])["memories"] == []


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b'{"state":"accepted\\n","at":7,"support":[]}', b'{"support":{"reviewers":true}}']
)
def test_bytes_that_state_nothing_are_outlined_as_a_proposal_without_a_time(raw: bytes) -> None:
    assert stated_outline(raw) == {"id": "", "state": "proposed", "at": "", "reviewers": 0, "comments": 0}


def test_a_time_is_outlined_as_it_is_written() -> None:
    at = "2026-11-30T12:00:00.000000Z"
    assert stated_outline(json.dumps({"at": at}).encode())["at"] == at

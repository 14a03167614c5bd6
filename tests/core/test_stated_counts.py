"""What a stored proposal states of itself must be what anybody can count, and an edit without a time has one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.builders import MONA, World, refused

COUNTS = {"comments": 2, "threads": 2, "prototypes": 2, "reviewers": 999}


@pytest.mark.parametrize(
    "claim",
    [
        {"support": COUNTS},
        {"dissent": {"comments": 1, "threads": 1, "prototypes": 1, "reviewers": 1}, "confidence": 66},
        {"confidence": 99},
    ],
    ids=["more reviewers", "dissent nobody cited", "more confidence"],
)
def test_a_proposal_that_states_other_counts_than_it_cites_is_never_accepted(
    loop: World, claim: dict[str, Any]
) -> None:
    proposal = loop.proposal()
    forged = loop.forge(proposal, state="proposed", at=loop.clock(), **claim)
    shown = loop.store.show(proposal)["memory"]
    assert (shown["damaged"], shown.get("text")) == (True, None)
    with refused("damaged"):
        loop.store.accept(MONA, proposal, review_digest=forged["reviewDigest"], reason="It looks good.")
    assert loop.recalled() == []
    assert not loop.store.verify(by=MONA)["ok"]


def test_edits_without_a_time_in_captures_of_one_moment_are_versions_in_their_order(loop: World) -> None:
    loop.hub.comment("c1", "mona", body="A")
    moment = "2026-11-20T09:00:00.000000Z"
    for number, body in enumerate("ABAB"):
        loop.hub.find("c1")["body"] = body
        loop.load(loop.hub.log(snapshotId=f"s{number}", capturedAt=moment))
    events = loop.store.observations(purpose="review", types=["comment"])["events"]
    assert [event["payload"]["body"] for event in events] == ["B"]
    times = sorted(event["occurredAt"] for event in events)
    assert times == ["2026-11-20T09:00:00.000002Z"]
    loop.load(loop.hub.log(snapshotId="again", capturedAt=moment))
    assert loop.store.observations(purpose="review", types=["comment"])["events"] == events

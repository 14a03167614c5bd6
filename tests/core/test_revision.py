"""A person's correction of an accepted learning: a proposal with the same evidence that replaces it."""

from __future__ import annotations

from tests.core.builders import AGENT, MONA, OCTO, World, refused


def test_a_correction_is_a_proposal_with_the_same_evidence(loop: World) -> None:
    learning = loop.learning()
    before = loop.store.show(learning)["memory"]
    proposal = loop.store.revise(OCTO, learning, text=" Mind the gap. ", reason="Plainer.")["memory"]
    assert (proposal["state"], proposal["text"]) == ("proposed", "Mind the gap.")
    assert proposal["id"] != learning
    assert proposal["evidence"] == before["evidence"]
    assert proposal["lifecycle"]["replaces"] == [learning]
    assert (proposal["proposer"], proposal["rationale"]) == ({"kind": "human", "id": OCTO.id}, "Plainer.")
    assert loop.recalled() == [learning]
    assert loop.store.verify(by=MONA)["ok"]


def test_an_accepted_correction_replaces_the_learning(loop: World) -> None:
    learning = loop.learning()
    proposal = loop.store.revise(OCTO, learning, text="Mind the gap.", reason="Plainer.")["memory"]["id"]
    loop.accept(proposal)
    assert loop.recalled() == [proposal]
    assert loop.store.show(learning)["memory"]["supersededBy"] == proposal
    loop.store.retire(MONA, proposal, reason="Old.")
    assert loop.recalled() == []
    assert loop.store.verify(by=MONA)["ok"]


def test_a_rejected_correction_leaves_the_learning(loop: World) -> None:
    learning = loop.learning()
    proposal = loop.store.revise(OCTO, learning, text="Mind the gap.", reason="Plainer.")["memory"]["id"]
    loop.reject(proposal)
    assert loop.recalled() == [learning]


def test_only_a_person_corrects_and_says_why(loop: World) -> None:
    learning = loop.learning()
    with refused("person_required"):
        loop.store.revise(AGENT, learning, text="Mind the gap.", reason="Plainer.")
    with refused("reason_required"):
        loop.store.revise(MONA, learning, text="Mind the gap.", reason=" ")
    with refused("invalid_record"):
        loop.store.revise(MONA, learning, text=" ", reason="Plainer.")
    with refused("not_found"):
        loop.store.revise(MONA, "memory_0", text="Mind the gap.", reason="Plainer.")


def test_only_what_is_in_use_is_corrected(loop: World) -> None:
    proposal = loop.proposal("tone")
    with refused("invalid_transition"):
        loop.store.revise(MONA, proposal, text="Mind the gap.", reason="Plainer.")
    learning = loop.learning()
    same = loop.store.show(learning)["memory"]["text"]
    with refused("invalid_transition"):
        loop.store.revise(MONA, learning, text=same, reason="Plainer.")
    replaced = loop.store.revise(MONA, learning, text="Mind the gap.", reason="Plainer.")["memory"]["id"]
    loop.accept(replaced)
    with refused("invalid_transition"):
        loop.store.revise(MONA, learning, text="Mind it.", reason="Plainer.")
    cited = loop.store.show(replaced)["memory"]["evidence"][0]["comment"]["commentId"]
    loop.store.redact_comment(MONA, cited)
    with refused("evidence_unavailable"):
        loop.store.revise(MONA, replaced, text="Mind it.", reason="Plainer.")

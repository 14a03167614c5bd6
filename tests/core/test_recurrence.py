"""When the recurrence consolidator proposes a theme, and what the proposal says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest

from learning_core.errors import InvalidConfiguration
from learning_core.plugins import (
    ConsolidationRequest,
    ConsolidationResult,
    EvidenceView,
    ViewComment,
    ViewLabel,
    ViewMemory,
)
from learning_core.records import check_valid
from providers.consolidators import none, recurrence
from tests.core.builders import MONA, THEME, Json, World

REQUEST = ConsolidationRequest("instruction", "2026-11-01T12:00:00.000000Z")
NUMBERS = count(1)


def label(observation: str = "problem", **members: Any) -> ViewLabel:
    members = {"category": "accessibility", "theme": THEME, "summary": "Mind it.", "labeler_kind": "agent"} | members
    return ViewLabel(f"event_{next(NUMBERS):064x}", observation=observation, **members)


def comment(
    reviewer: str | None,
    *labels: ViewLabel,
    thread: int | None = None,
    prototype: str | None = None,
    at: str = "2026-10-01",
) -> ViewComment:
    """A comment in a thread and a prototype of its own, where nothing else is said."""
    number = next(NUMBERS)
    author = {"kind": "unknown"} if reviewer is None else {"kind": "human", "id": f"github:{reviewer}"}
    return ViewComment(
        f"event_{number:064x}",
        f"episode_{thread or number:064x}",
        prototype or f"p{number}",
        reviewer,
        f"{at}T00:00:00.000000Z",
        "Words.",
        labels or (label(),),
        {
            "hubOrigin": "https://hub.example.com",
            "repositoryId": 1,
            "prototypeId": prototype or f"p{number}",
            "branch": "main",
            "build": {"number": 1, "commitSha": None},
        },
        author,
    )


def memory(state: str, **members: Any) -> ViewMemory:
    return ViewMemory(
        **{
            "id": f"memory_{next(NUMBERS):064x}",
            "state": state,
            "kind": "guidance",
            "category": "accessibility",
            "theme": THEME,
            "in_use": state == "accepted",
            "superseded": False,
            "conflicted": False,
            "decided_at": None if state == "proposed" else "2026-10-15T00:00:00.000000Z",
            "text": "Mind it.",
            "cited": (),
            **members,
        }
    )


def consolidate(
    comments: Sequence[ViewComment], memories: Sequence[ViewMemory] = (), **options: Any
) -> ConsolidationResult:
    view = EvidenceView("2026-01-01", "2027-01-01", tuple(comments), tuple(memories))
    result = recurrence.create_consolidator(options).consolidate(REQUEST, view)
    again = recurrence.create_consolidator(options).consolidate(
        REQUEST, EvidenceView("2026-01-01", "2027-01-01", tuple(comments)[::-1], tuple(memories)[::-1])
    )
    assert result == again, "the order of what it sees makes no difference"
    for proposal in result.proposals:
        check_valid("memory-proposal", dict(proposal))
    return result


def proposals(*arguments: Any, **options: Any) -> list[Any]:
    return list(consolidate(*arguments, **options).proposals)


def reasons(*arguments: Any, **options: Any) -> list[str]:
    result = consolidate(*arguments, **options)
    assert result.proposals == []
    return [item["reason"] for item in result.diagnostics]


def test_a_theme_recurs_in_two_threads_prototypes_and_reviewers() -> None:
    (proposal,) = proposals([comment("mona"), comment("octo")])
    assert proposal["kind"] == "guidance"
    assert proposal["content"] == {"category": "accessibility", "theme": THEME, "text": "Mind it."}
    assert (proposal["targets"], proposal["lifecycle"]) == (
        [],
        {"replaces": [], "validFrom": None, "validUntil": None},
    )
    assert proposal["support"] == {"comments": 2, "threads": 2, "prototypes": 2, "reviewers": 2}
    assert (proposal["confidence"], proposal["counterevidence"]) == (100, [])
    assert proposal["proposer"] == {"kind": "agent", "id": "agent:recurrence", "version": "1"}


FEW: dict[str, tuple[list[ViewComment], str]] = {
    "one thread": ([comment("mona", thread=9), comment("octo", thread=9)], "minThreads"),
    "one prototype": ([comment("mona", prototype="p"), comment("octo", prototype="p")], "minPrototypes"),
    "one reviewer": ([comment("mona"), comment("mona")], "minReviewers"),
}


@pytest.mark.parametrize("case", FEW)
def test_fewer_are_too_few_unless_the_options_say_so(case: str) -> None:
    comments, option = FEW[case]
    assert reasons(comments) == ["below_threshold"]
    assert len(proposals(comments, **{option: 1})) == 1


@pytest.mark.parametrize("option", ["minThreads", "minPrototypes", "minReviewers"])
def test_an_option_may_ask_for_more(option: str) -> None:
    three = [comment("mona"), comment("octo"), comment("ada")]
    assert reasons(three[:2], **{option: 3}) == ["below_threshold"]
    assert len(proposals(three, **{option: 3})) == 1


def test_only_the_categories_asked_for_are_proposed() -> None:
    said = [
        comment(name, label(category=category, theme=category))
        for category in ("accessibility", "visual-quality", "security", "other")
        for name in ("mona", "octo")
    ]
    assert [p["content"]["category"] for p in proposals(said)] == ["accessibility", "visual-quality"]
    assert [p["content"]["category"] for p in proposals(said, categories=["security"])] == ["security"]
    assert proposals(said, categories=[]) == []


@pytest.mark.parametrize(
    "options",
    [
        {"minThreads": 0},
        {"minReviewers": 1001},
        {"minPrototypes": "2"},
        {"minThreads": True},
        {"categories": ["colour"]},
        {"categories": "accessibility"},
        {"threshold": 2},
    ],
    ids=str,
)
def test_options_that_mean_nothing_are_refused(options: Json) -> None:
    with pytest.raises(InvalidConfiguration):
        recurrence.create_consolidator(options)


def test_who_is_no_reviewer_counts_nowhere() -> None:
    assert reasons([comment("mona"), comment(None)]) == ["below_threshold"]
    contested = [comment(name) for name in ("mona", "octo")] + [comment(None, label("disagreement"))]
    (proposal,) = proposals(contested)
    assert (proposal["dissent"]["comments"], len(proposal["evidence"])) == (0, 2)


def test_praise_counts_on_neither_side() -> None:
    assert reasons([comment("mona"), comment("octo", label("strength"))]) == ["below_threshold"]
    (proposal,) = proposals([comment("mona"), comment("octo"), comment("ada", label("strength"))])
    assert (proposal["support"]["comments"], proposal["dissent"]["comments"]) == (2, 0)


def test_a_theme_that_only_others_contradict_is_not_mentioned() -> None:
    result = consolidate([comment("mona", label("disagreement")), comment("octo", label("disagreement"))])
    assert (result.proposals, result.diagnostics) == ([], [])


@pytest.mark.parametrize(("support", "dissent"), [(2, 1), (3, 2), (4, 2)])
def test_a_contested_theme_is_held_back(support: int, dissent: int) -> None:
    said = [comment(f"yes-{n}") for n in range(support)]
    said += [comment(f"no-{n}", label("disagreement")) for n in range(dissent)]
    assert reasons(said) == ["contested"]


def test_less_dissent_stands_beside_the_proposal() -> None:
    said = [comment(name) for name in ("mona", "octo", "ada")]
    against = comment("lin", label("disagreement", summary="Leave it."))
    (proposal,) = proposals([*said, against])
    assert proposal["dissent"] == {"comments": 1, "threads": 1, "prototypes": 1, "reviewers": 1}
    assert proposal["confidence"] == 75
    assert [r["eventIds"][0] for r in proposal["counterevidence"]] == [against.event_id]
    assert proposal["content"]["text"] == "Mind it."
    assert "1 disagreed" in proposal["rationale"]


def test_someone_on_both_sides_is_dissent() -> None:
    said = [comment(name) for name in ("mona", "octo", "ada", "lin")]
    (proposal,) = proposals([*said, comment("lin", label("disagreement"))])
    assert (proposal["support"]["reviewers"], proposal["dissent"]["reviewers"]) == (3, 1)
    assert proposal["confidence"] == 75
    assert reasons([*said[:2], comment("octo", label("disagreement"))]) == ["below_threshold"]


def test_a_comment_supports_a_theme_once() -> None:
    twice = comment("mona", label(summary="Mind it."), label(summary="Mind it well.", theme=THEME))
    (proposal,) = proposals([twice, comment("octo")])
    assert proposal["support"]["comments"] == 2
    assert len(proposal["evidence"][0]["eventIds"]) == 3


def test_an_accepted_learning_in_use_holds_its_theme_back() -> None:
    said = [comment("mona"), comment("octo")]
    assert reasons(said, [memory("accepted")]) == ["already_accepted"]
    assert len(proposals(said, [memory("accepted", theme="tone")])) == 1
    assert len(proposals(said, [memory("proposed")])) == 1


def test_an_accepted_learning_that_stopped_applying_is_offered_to_be_replaced() -> None:
    said = [comment("mona"), comment("octo")]
    stopped = memory("accepted", in_use=False, text=None)
    (proposal,) = proposals(said, [stopped, memory("accepted", in_use=False, superseded=True)])
    assert proposal["lifecycle"]["replaces"] == [stopped.id]
    assert "would replace it" in proposal["rationale"]


@pytest.mark.parametrize("state", ["rejected", "retired"])
def test_a_closed_theme_waits_for_new_support(state: str) -> None:
    old = [comment("mona"), comment("octo")]
    closed = memory(state, in_use=False, cited=tuple(c.event_id for c in old))
    assert reasons(old, [closed]) == [state]
    late = "2026-10-20"
    assert reasons([*old, comment("ada", at="2026-10-10")], [closed]) == [state]
    assert reasons([*old, comment("ada", at="2026-10-15")], [closed]) == [state]
    assert reasons([*old, comment("ada", label("strength"), at=late)], [closed]) == [state]
    assert reasons([*old, comment(None, at=late)], [closed]) == [state]
    cited_late = comment("ada", at=late)
    again = memory(state, in_use=False, cited=(*closed.cited, cited_late.event_id))
    assert reasons([*old, cited_late], [again]) == [state]
    (proposal,) = proposals([*old, comment("ada", at=late)], [closed])
    assert proposal["support"]["comments"] == 3


def test_the_newest_decision_counts() -> None:
    said = [comment("mona"), comment("octo", at="2026-10-20")]
    early = memory("rejected", in_use=False, decided_at="2026-10-10T00:00:00.000000Z")
    late = memory("rejected", in_use=False, decided_at="2026-10-25T00:00:00.000000Z")
    assert len(proposals(said, [early])) == 1
    assert reasons(said, [early, late]) == ["rejected"]


def test_the_text_is_what_labels_say_most_often() -> None:
    often = [comment(name, label(summary="Often.")) for name in ("mona", "octo")]
    (proposal,) = proposals([*often, comment("ada", label(summary="Once."), at="2026-10-20")])
    assert proposal["content"]["text"] == "Often."
    late = comment("ada", label(summary=" Late. "), at="2026-10-20")
    (proposal,) = proposals([often[0], late])
    assert proposal["content"]["text"] == "Late."
    (proposal,) = proposals([*often, comment("ada", label(summary="Hers.", labeler_kind="human"))])
    assert proposal["content"]["text"] == "Hers."
    equal = [comment("mona", label(summary="B")), comment("octo", label(summary="A"))]
    (proposal,) = proposals(equal)
    assert proposal["content"]["text"] == "A"


def test_a_proposal_cites_the_newest_two_hundred_and_counts_what_it_cites() -> None:
    said = [comment(f"r{n}", at=f"2026-{1 + n // 28:02}-{1 + n % 28:02}") for n in range(203)]
    (proposal,) = proposals(said)
    assert proposal["support"]["comments"] == len(proposal["evidence"]) == 200
    assert [r["eventIds"][0] for r in proposal["evidence"]] == [c.event_id for c in said[3:]]


def test_proposals_stand_in_the_order_of_their_support() -> None:
    said = [comment(f"r{n}", label(theme="most")) for n in range(4)]
    said += [comment(f"r{n}", label(theme=theme)) for theme in ("b", "a") for n in range(2)]
    said += [comment(f"r{n % 2}", label(theme="c")) for n in range(3)]
    assert [p["content"]["theme"] for p in proposals(said)] == ["most", "c", "a", "b"]


def test_none_proposes_nothing() -> None:
    view = EvidenceView("2026-01-01", "2027-01-01", (comment("mona"), comment("octo")), ())
    assert none.create_consolidator({}).consolidate(REQUEST, view) == ConsolidationResult((), ())


# Through the store -------------------------------------------------------------------------------------------------


def test_the_store_saves_all_that_it_proposes(loop: World) -> None:
    loop.discuss(authors=["mona", "octo", "ada", "lin"])
    loop.label(f"{THEME}-4", observation="disagreement")
    result = loop.consolidate()
    assert ([item["theme"] for item in result["stored"]], result["diagnostics"]) == ([THEME], [])
    assert loop.latest(result["stored"][0]["id"])["confidence"] == 75


def test_a_rejected_theme_comes_back_with_new_support_only(loop: World) -> None:
    first = loop.proposal()
    loop.reject(first)
    assert [item["reason"] for item in loop.consolidate()["diagnostics"]] == ["rejected"]
    loop.hub.comment("new", "ada", prototype="p3")
    loop.collect()
    loop.label("new")
    (second,) = loop.consolidate()["stored"]
    assert second["id"] != first


def test_a_withdrawn_theme_is_offered_again_from_what_is_left(loop: World) -> None:
    learning = loop.learning(authors=["mona", "octo", "ada"])
    assert [item["reason"] for item in loop.consolidate()["diagnostics"]] == ["already_accepted"]
    loop.store.redact_comment(MONA, f"{THEME}-1")
    (item,) = loop.consolidate()["stored"]
    record = loop.latest(item["id"])
    assert (record["lifecycle"]["replaces"], record["support"]["reviewers"]) == ([learning], 2)
    loop.accept(item["id"])
    assert loop.recalled() == [item["id"]]

"""What a consolidator is shown, and what the store saves of what it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from learning_core.plugins import ConsolidationResult, EvidenceView, ViewComment
from tests.core.builders import AGENT, FOREVER, MONA, ORIGIN, THEME, Json, Scripted, World, propose, refused

Change = Callable[[Json, World], Any]


@pytest.fixture
def said(loop: World) -> World:
    """One theme raised by three people in three prototypes."""
    loop.discuss(authors=["mona", "octo", "ada"])
    return loop


def shown(world: World, **options: Any) -> EvidenceView:
    """What a consolidator sees now."""
    watcher = Scripted(lambda view: [])
    world.store.consolidate(AGENT, watcher, **{"time_from": FOREVER[0], "time_to": FOREVER[1], **options})
    assert watcher.view is not None
    return watcher.view


def texts(comments: Iterable[ViewComment]) -> list[str]:
    return [comment.body for comment in comments]


# What it is shown --------------------------------------------------------------------------------------------------


def test_the_view_holds_current_comments_with_their_labels(said: World) -> None:
    first = shown(said).comments[0]
    event = said.events("comment", f"{THEME}-1")[0]
    assert (first.event_id, first.episode_id, first.body) == (event["id"], event["episodeId"], event["payload"]["body"])
    assert (first.prototype_id, first.reviewer, first.written_at) == (
        "p1",
        "github-user:github.com/9001",
        event["occurredAt"],
    )
    (label,) = first.labels
    assert (label.category, label.theme, label.observation) == ("accessibility", THEME, "problem")
    assert (label.summary, label.labeler_kind) == (f"Mind the {THEME}.", "human")


def test_the_view_is_frozen(said: World) -> None:
    view = shown(said)
    with pytest.raises(AttributeError):
        view.comments[0].body = "Other."  # type: ignore[misc]
    with pytest.raises(TypeError):
        view.comments[0].pin["prototypeId"] = "p9"  # type: ignore[index]
    with pytest.raises(TypeError):
        view.comments[0].pin["build"]["number"] = 9
    assert isinstance(view.comments, tuple)


def test_old_versions_deleted_and_redacted_comments_are_not_shown(said: World) -> None:
    said.hub.edit(f"{THEME}-1", "Edited.")
    said.hub.delete(f"{THEME}-2")
    said.collect()
    said.store.redact_comment(MONA, f"{THEME}-3")
    assert texts(shown(said).comments) == ["Edited."]
    assert shown(said).comments[0].labels == ()


def test_the_window_is_half_open(said: World) -> None:
    times = [event["occurredAt"] for event in said.events("comment")]
    view = shown(said, time_from=times[0], time_to=times[2])
    assert [comment.written_at for comment in view.comments] == times[:2]
    assert (view.window_from, view.window_to) == (times[0], times[2])


def test_a_comment_that_the_host_withholds_is_not_shown(said: World) -> None:
    view = shown(said, withheld_comments=frozenset({f"{THEME}-1"}))
    assert texts(view.comments) == [f"About {THEME}, says octo.", f"About {THEME}, says ada."]


def test_the_view_shows_learnings_with_their_standing(said: World) -> None:
    names = [f"{THEME}-{number}" for number in (1, 2)]
    memory = said.propose(*names)
    (proposed,) = shown(said).memories
    assert (proposed.id, proposed.state, proposed.in_use, proposed.decided_at) == (memory, "proposed", False, None)
    assert (proposed.text, proposed.cited) == ("Keep text readable.", tuple(said.event(name) for name in names))
    said.accept(memory)
    (accepted,) = shown(said).memories
    assert (accepted.in_use, accepted.decided_at) == (True, said.latest(memory)["at"])


def test_a_consolidator_cannot_reuse_withdrawn_knowledge(said: World) -> None:
    memory = said.propose(f"{THEME}-1", f"{THEME}-2", counter=[f"{THEME}-3"])
    said.accept(memory, reason="R.")
    said.hub.delete(f"{THEME}-3")
    said.collect()
    (seen,) = shown(said).memories
    assert (seen.text, seen.cited, seen.in_use, seen.state) == (None, (), False, "accepted")


def test_a_persons_newest_label_beats_the_agents(loop: World) -> None:
    loop.hub.comment("101", "mona")
    loop.collect()
    loop.label("101", theme="agents", by="agent:one")
    loop.label("101", theme="agents-too", by="agent:two")
    assert {label.theme for label in shown(loop).comments[0].labels} == {"agents", "agents-too"}
    loop.label("101", theme="hers", by="github:mona")
    loop.label("101", theme="his", by="github:octo")
    loop.label("101", theme="agents-late", by="agent:one")
    assert [label.theme for label in shown(loop).comments[0].labels] == ["his"]
    loop.label_file([{"commentId": "101", "none": True}], by="github:mona")
    assert shown(loop).comments[0].labels == ()


def test_a_labelers_newest_labelling_replaces_its_earlier_ones(loop: World) -> None:
    loop.hub.comment("101", "mona")
    loop.collect()
    loop.label("101", theme="first", by="agent:one")
    loop.label("101", theme="second", by="agent:one")
    assert [label.theme for label in shown(loop).comments[0].labels] == ["second"]


# What is saved -----------------------------------------------------------------------------------------------------


def test_everything_is_saved_as_proposed(said: World) -> None:
    memory = said.propose(f"{THEME}-1", f"{THEME}-2")
    record = said.latest(memory)
    assert (record["state"], record["version"], record["previousDigest"]) == ("proposed", 1, None)
    assert record["proposer"] == {"kind": "agent", "id": "agent:scripted"}
    assert record["support"] == {"comments": 2, "threads": 2, "prototypes": 2, "reviewers": 2}
    assert said.recalled() == []


def test_a_run_is_audited_with_counts_only(said: World) -> None:
    said.propose(f"{THEME}-1")
    (run,) = said.audit("consolidate")
    assert (run["details"], run["actor"]) == ({"stored": 1, "overBudget": 0}, {**AGENT.data})
    (entry,) = said.audit("memory.propose")
    assert [item["digest"] for item in entry["records"]] == [said.records("memories")[0]["digest"]]


def set_reference(**members: Any) -> Change:
    def change(proposal: Json, _world: World) -> None:
        proposal["evidence"][0].update(members)

    return change


def set_pin(**members: Any) -> Change:
    def change(proposal: Json, _world: World) -> None:
        proposal["evidence"][0]["pin"].update(members)

    return change


def cite_counter(**members: Any) -> Change:
    """The flaw is in the counterevidence."""

    def change(proposal: Json, _world: World) -> None:
        proposal["counterevidence"] = [{**proposal["evidence"].pop(), **members}]

    return change


def other_episode(proposal: Json, world: World) -> None:
    proposal["evidence"][0]["episodeId"] = world.records("episodes")[-1]["id"]


def label_of_another(proposal: Json, _world: World) -> None:
    one, two = proposal["evidence"][:2]
    one["eventIds"], two["eventIds"] = [one["eventIds"][0], two["eventIds"][1]], two["eventIds"]


def label_first(proposal: Json, _world: World) -> None:
    proposal["evidence"][0]["eventIds"].reverse()


def old_version(proposal: Json, world: World) -> None:
    proposal["evidence"][0]["eventIds"] = [world.events("comment")[0]["id"]]


NOWHERE = "episode_" + "0" * 64
FORGED: dict[str, tuple[str, Change]] = {
    "another prototype": ("forged_evidence", set_pin(prototypeId="p9")),
    "another build": ("forged_evidence", set_pin(build={"number": 8, "commitSha": None})),
    "a commit": ("forged_evidence", set_pin(build={"number": 7, "commitSha": "a" * 40})),
    "another branch": ("forged_evidence", set_pin(branch="other")),
    "another hub": ("forged_evidence", set_pin(hubOrigin="https://other.example.com")),
    "another repository": ("forged_evidence", set_pin(repositoryId=1)),
    "another time": ("forged_evidence", set_reference(writtenAt="2026-01-01T00:00:00.000000Z")),
    "another author": ("forged_evidence", set_reference(author={"kind": "human", "id": "github:lin"})),
    "no author": ("forged_evidence", set_reference(author={"kind": "unknown"})),
    "another episode": ("forged_evidence", other_episode),
    "no such episode": ("forged_evidence", set_reference(episodeId=NOWHERE)),
    "no such event": ("forged_evidence", set_reference(eventIds=["event_" + "0" * 64])),
    "a label of another comment": ("forged_evidence", label_of_another),
    "a label instead of a comment": ("forged_evidence", label_first),
    "forged counterevidence": ("forged_evidence", cite_counter(writtenAt="2026-01-01T00:00:00.000000Z")),
    "more support than cited": ("wrong_counts", lambda p, _: p["support"].update(comments=9)),
    "more reviewers than cited": ("wrong_counts", lambda p, _: p["support"].update(reviewers=9)),
    "less dissent than cited": ("wrong_counts", cite_counter()),
    "dissent that nobody gave": ("wrong_counts", lambda p, _: p["dissent"].update(reviewers=1)),
    "another confidence": ("wrong_counts", lambda p, _: p.update(confidence=99)),
    "no evidence": ("invalid_proposal", lambda p, _: p.update(evidence=[])),
    "a member too many": ("invalid_proposal", lambda p, _: p.update(state="accepted")),
    "a replacement made": ("invalid_proposal", lambda p, _: p.update(supersedes=[])),
    "a confidence in halves": ("invalid_proposal", lambda p, _: p.update(confidence=0.5)),
    "an approval": ("invalid_proposal", lambda p, _: p.update(approval={})),
    "a text without words": ("invalid_proposal", lambda p, _: p["content"].update(text="\u200b")),
    "no content": ("invalid_proposal", lambda p, _: p.pop("content")),
    "evidence of another kind": ("invalid_proposal", lambda p, _: p.update(evidence="all of it")),
    "an agent in a person's name": (
        "invalid_proposal",
        lambda p, _: p.update(proposer={"kind": "human", "id": "agent:scripted"}),
    ),
}


@pytest.mark.parametrize("flaw", FORGED)
def test_a_proposal_that_says_otherwise_than_storage_is_refused(said: World, flaw: str) -> None:
    code, change = FORGED[flaw]
    cited = [said.event(f"{THEME}-{number}") for number in (1, 2, 3)]

    def script(view: EvidenceView) -> list[Json]:
        bad = propose(view, cited, theme="bad")
        change(bad, said)
        return [bad, propose(view, cited, theme="good")]

    result = said.consolidate(Scripted(script), max_new=1)
    assert [item["theme"] for item in result["stored"]] == ["good"]
    assert [item["reason"] for item in result["diagnostics"]] == [code]
    assert [record["content"]["theme"] for record in said.records("memories")] == ["good"]


def test_a_comment_that_the_view_did_not_show_is_no_evidence(said: World) -> None:
    whole = shown(said)
    cited = [said.event(f"{THEME}-1"), said.event(f"{THEME}-2")]
    said.hub.edit(f"{THEME}-1", "Edited.")
    said.collect()
    late = said.events("comment", f"{THEME}-2")[0]["occurredAt"]
    for window in (FOREVER, (FOREVER[0], late)):
        result = said.consolidate(Scripted(lambda _: [propose(whole, cited)]), window=window)
        assert (result["stored"], result["diagnostics"][0]["reason"]) == ([], "evidence_unavailable")


NO_PROPOSALS: dict[str, Any] = {"a text": "theme", "nothing": None, "a list": [], "a number": 7}


@pytest.mark.parametrize("kind", NO_PROPOSALS)
def test_what_is_no_proposal_is_refused(said: World, kind: str) -> None:
    result = said.consolidate(Scripted(lambda view: [NO_PROPOSALS[kind]]))
    assert (result["stored"], [item["reason"] for item in result["diagnostics"]]) == ([], ["invalid_proposal"])


class Failing(Scripted):
    def consolidate(self, request: Any, view: Any) -> Any:
        return self._script(view)


def divide(_view: Any) -> Any:
    return 1 / 0


FAILURES: dict[str, Any] = {
    "an error": divide,
    "nothing": lambda view: None,
    "an object": lambda view: {"proposals": []},
    "diagnostics in words": lambda view: ConsolidationResult([], ["too few"]),  # type: ignore[list-item]
}


@pytest.mark.parametrize("script", FAILURES.values(), ids=FAILURES)
def test_a_consolidator_that_fails_is_named(said: World, script: Any) -> None:
    with said.nothing_stored(), refused("plugin_failed") as caught:
        said.consolidate(Failing(script))
    assert "scripted" in caught.value.message


def test_a_consolidators_diagnostics_are_reported_with_the_stores(said: World) -> None:
    diagnostic = {"theme": "tone", "category": "content", "reason": "too_few", "detail": "One."}
    result = said.consolidate(Scripted(lambda view: [{}], [diagnostic]))
    assert result["diagnostics"][0] == diagnostic
    assert result["diagnostics"][1]["reason"] == "invalid_proposal"


def themes(world: World, *names: str, text: str = "Mind it.") -> Scripted:
    cited = [world.event(f"{THEME}-1"), world.event(f"{THEME}-2")]
    return Scripted(lambda view: [propose(view, cited, theme=name, text=text) for name in names])


def test_the_cap_holds_back_new_and_changed_proposals(said: World) -> None:
    first = said.consolidate(themes(said, "a", "b", "c"), max_new=1)
    assert ([item["theme"] for item in first["stored"]], first["overBudget"]) == (["a"], 2)
    second = said.consolidate(themes(said, "a", "b", "c"), max_new=1)
    assert ([item["theme"] for item in second["stored"]], second["overBudget"]) == (["b"], 1)
    third = said.consolidate(themes(said, "a", "b", "c"), max_new=1)
    assert ([item["theme"] for item in third["stored"]], third["overBudget"]) == (["c"], 0)
    assert said.consolidate(themes(said, "a", "b", "c"), max_new=1)["stored"] == []
    changed = said.consolidate(themes(said, "a", "b", "c", text="Changed."), max_new=2)
    assert ([item["theme"] for item in changed["stored"]], changed["overBudget"]) == (["a", "b"], 1)
    assert said.consolidate(themes(said, "d"), max_new=0)["overBudget"] == 1


def test_ten_new_proposals_are_stored_by_default(said: World) -> None:
    result = said.store.consolidate(
        AGENT, themes(said, *(f"t{n}" for n in range(12))), time_from=FOREVER[0], time_to=FOREVER[1]
    )
    assert (len(result["stored"]), result["overBudget"]) == (10, 2)


def test_a_stored_proposal_names_its_review(said: World) -> None:
    (item,) = said.consolidate(themes(said, "a"))["stored"]
    record = said.latest(item["id"])
    assert item == {"id": record["id"], "theme": "a", "reviewDigest": record["reviewDigest"]}


def test_a_changed_proposal_is_the_next_version(said: World) -> None:
    (first,) = said.consolidate(themes(said, "a"))["stored"]
    (second,) = said.consolidate(themes(said, "a", text="Changed."))["stored"]
    assert second["id"] == first["id"]
    versions = said.records("memories")
    assert [(r["version"], r["previousDigest"]) for r in versions] == [(1, None), (2, versions[0]["digest"])]


def test_consolidating_needs_consent_to_instruction(world: World) -> None:
    world.consent("review")
    with world.nothing_stored(), refused("not_permitted"):
        world.consolidate()


# Windows -----------------------------------------------------------------------------------------------------------


def missing(world: World, *window: str) -> list[Json]:
    result = world.consolidate(Scripted(lambda view: []), window=(window[0], window[1]))
    assert result["complete"] is (result["missing"] == [])
    return list(result["missing"])


def test_a_window_without_a_collection_is_all_missing(loop: World) -> None:
    start, end = (f"{day}T00:00:00.000000Z" for day in FOREVER)
    assert missing(loop, *FOREVER) == [{"from": start, "to": end}]


def test_a_window_is_complete_when_complete_collections_cover_it(said: World) -> None:
    captured = said.records("collections")[-1]["capturedAt"]
    assert missing(said, FOREVER[0], captured) == []
    assert missing(said, "2020-01-01", "2020-01-02") == []
    end = "2027-01-01T00:00:00.000000Z"
    assert missing(said, *FOREVER) == [{"from": captured, "to": end}]
    later = said.clock.wait(days=1)
    assert missing(said, later, end) == [{"from": later, "to": end}]


@pytest.mark.parametrize("flaw", ["filtered", "incomplete"])
def test_a_filtered_or_incomplete_collection_covers_nothing(loop: World, flaw: str) -> None:
    members: Json = {"filters": {"status": "open"}} if flaw == "filtered" else {"pages": []}
    captured = loop.load(loop.hub.log(**members))["collection"]["capturedAt"]
    assert missing(loop, FOREVER[0], captured) == [{"from": f"{FOREVER[0]}T00:00:00.000000Z", "to": captured}]
    whole = loop.collect()["collection"]["capturedAt"]
    assert missing(loop, FOREVER[0], captured) == []
    assert missing(loop, FOREVER[0], whole) == []


def test_an_incomplete_window_still_stores_its_proposals(said: World) -> None:
    result = said.consolidate(themes(said, "a"), window=FOREVER)
    assert (result["complete"], len(result["stored"])) == (False, 1)


# Dissent after an acceptance ---------------------------------------------------------------------------------------


@pytest.fixture
def accepted(loop: World) -> tuple[World, str]:
    memory = loop.learning(authors=["mona", "octo", "ada", "lin"])
    return loop, memory


def dissent(world: World, name: str, author: str) -> None:
    world.hub.comment(name, author, "I disagree.", prototype="p9")
    world.collect()
    world.label(name, observation="disagreement")


def test_dissent_after_an_acceptance_needs_attention(accepted: tuple[World, str]) -> None:
    world, memory = accepted
    attention = {"code": "contradicted", "memoryId": memory}
    world.consolidate()
    assert attention not in world.store.status()["attention"]
    dissent(world, "no-1", "sam")
    world.consolidate()
    (entry,) = world.audit("memory.contradicted")
    assert (entry["subject"], entry["details"]["events"]) == (memory, [world.event("no-1")])
    assert attention in world.store.status()["attention"]
    world.consolidate()
    assert len(world.audit("memory.contradicted")) == 1
    dissent(world, "no-2", "kim")
    world.consolidate()
    assert len(world.audit("memory.contradicted")) == 2
    assert world.recalled() == [memory]
    world.store.retire(MONA, memory, reason="They are right.")
    assert attention not in world.store.status()["attention"]


def test_dissent_that_the_reviewer_saw_or_that_is_older_is_none(loop: World) -> None:
    loop.discuss(authors=["mona", "octo", "ada", "lin"])
    loop.label(f"{THEME}-4", observation="disagreement")
    memory = loop.propose(f"{THEME}-1", f"{THEME}-2", counter=[f"{THEME}-4"])
    loop.label(f"{THEME}-3", observation="disagreement")
    loop.accept(memory, reason="R.")
    loop.consolidate()
    assert loop.audit("memory.contradicted") == []


def test_praise_and_other_themes_contradict_nothing(accepted: tuple[World, str]) -> None:
    world, _ = accepted
    world.hub.comment("praise", "sam")
    world.hub.comment("other", "kim")
    world.hub.comment("bot", {"login": "hubot", "githubId": 7, "bot": True})
    world.collect()
    world.label("praise", observation="strength")
    world.label("other", theme="tone", observation="disagreement")
    world.label("bot", observation="disagreement")
    world.consolidate()
    assert world.audit("memory.contradicted") == []


def test_a_reference_keeps_the_hub_and_the_build(said: World) -> None:
    record = said.latest(said.propose(f"{THEME}-2"))
    (reference,) = record["evidence"]
    event = said.events("comment", f"{THEME}-2")[0]
    assert reference["pin"]["hubOrigin"] == ORIGIN
    assert reference["pin"] == said.records("episodes")[1]["pin"]
    assert (reference["writtenAt"], reference["author"]) == (event["occurredAt"], event["actor"])
    assert reference["eventIds"] == [event["id"], said.events("label")[1]["id"]]

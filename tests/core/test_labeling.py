"""What a labeler is asked, what is stored of its answer, and what a failure reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from learning_core.errors import PluginFailed, StorageFailed, StorageOutcomeUnknown
from learning_core.plugins import LabelAnswer, LabelRequest, Usage
from tests.core.builders import AGENT, MONA, OCTO, Delegate, Json, ScriptedLabeler, World, at_call, refused

GOOD: Json = {"category": "content", "theme": "tone", "observation": "problem", "summary": "Be kind."}
NOTHING = {"requests": 0, "inputTokens": 0, "outputTokens": 0, "nanoAiu": 0}


def label_all(request: LabelRequest) -> list[Json]:
    return [{"eventId": c.event_id, **GOOD} for thread in request.threads for c in thread.comments if c.ask]


def label_nothing(_request: LabelRequest) -> list[Json]:
    return []


@pytest.fixture
def said(loop: World) -> World:
    """Two threads, one with a reply."""
    loop.hub.comment("101", "mona", "First.", target={"kind": "file", "path": "a.css", "line": 2})
    loop.hub.reply("102", "101", "octo", "Reply.")
    loop.hub.comment("103", "ada", "Third.")
    loop.collect()
    return loop


def long_threads(world: World, number: int, size: int = 9000) -> None:
    """Threads of which each fills more than half a request."""
    for n in range(1, number + 1):
        world.hub.comment(f"t{n}", "mona", f"{n}" * size)
    world.collect()


# Asking ------------------------------------------------------------------------------------------------------------


def test_each_comment_is_asked_about_once_in_its_thread(said: World) -> None:
    labeler = ScriptedLabeler(label_all)
    result = said.store.label(MONA, labeler)
    (request,) = labeler.requests
    assert [[c.body for c in thread.comments] for thread in request.threads] == [["First.", "Reply."], ["Third."]]
    first, reply = request.threads[0].comments
    assert (first.is_reply, first.target) == (False, {"kind": "file", "path": "a.css", "line": 2})
    assert (reply.is_reply, reply.target) == (True, None)
    usage = {"requests": 1, "inputTokens": 10, "outputTokens": 2, "nanoAiu": 3}
    assert result == {"considered": 3, "labeled": 3, "remaining": 0, "usage": usage}
    assert said.store.label(MONA, labeler) == {"considered": 0, "labeled": 0, "remaining": 0, "usage": NOTHING}
    assert len(labeler.requests) == 1


def test_another_labeler_is_asked_too(said: World) -> None:
    said.store.label(MONA, ScriptedLabeler(label_nothing, "one"))
    assert said.store.label(MONA, ScriptedLabeler(label_nothing, "two"))["considered"] == 3


def test_a_label_records_who_gave_it_with_which_model(said: World) -> None:
    said.store.label(MONA, ScriptedLabeler(lambda request: [{**label_all(request)[0], "explanation": "It says so."}]))
    (label,) = said.events("label")
    assert label["actor"] == {"kind": "agent", "id": "agent:scripted", "assurance": "authenticated"}
    assert label["payload"] == {
        **GOOD,
        "targetEventId": said.event("101"),
        "explanation": "It says so.",
        "model": "model-1",
    }
    assert label["parentEventId"] == said.event("101")


def test_a_comment_without_a_label_is_recorded_and_stays_context(said: World) -> None:
    said.store.label(MONA, ScriptedLabeler(label_nothing))
    markers = said.events("no_annotation")
    assert [event["payload"]["outcome"] for event in markers] == ["nothing"] * 3
    said.hub.reply("104", "101", "ada", "New.")
    said.collect()
    labeler = ScriptedLabeler(label_nothing)
    said.store.label(MONA, labeler)
    (thread,) = labeler.requests[0].threads
    assert [(c.body, c.ask) for c in thread.comments] == [("First.", False), ("Reply.", False), ("New.", True)]


REFUSED: dict[str, Json] = {
    "an unknown category": {"category": "colour"},
    "a theme with capitals": {"theme": "Tone"},
    "an unknown observation": {"observation": "praise"},
    "a summary without words": {"summary": ""},
    "a long summary": {"summary": "x" * 501},
    "a summary that is no text": {"summary": 7},
    "a summary missing": {"summary": None},
    "an explanation that is none": {"explanation": ""},
    "a lone surrogate": {"summary": "\ud800"},
    "a fraction": {"summary": 0.5},
}


@pytest.mark.parametrize("flaw", REFUSED)
def test_a_label_that_the_contract_refuses_is_recorded_as_refused(said: World, flaw: str) -> None:
    def answer(request: LabelRequest) -> list[Json]:
        first, *others = label_all(request)
        return [{**first, **REFUSED[flaw]}, *others]

    labeler = ScriptedLabeler(answer)
    assert said.store.label(MONA, labeler)["labeled"] == 2
    (marker,) = said.events("no_annotation")
    assert (marker["payload"]["outcome"], marker["parentEventId"]) == ("refused", said.event("101"))
    assert said.store.label(MONA, labeler)["considered"] == 0


@pytest.mark.parametrize("item", ["text", None, [], 7, {}, {"eventId": 7, **GOOD}], ids=str)
def test_what_is_no_label_is_not_stored(said: World, item: Any) -> None:
    assert said.store.label(MONA, ScriptedLabeler(lambda request: [item]))["labeled"] == 0
    assert len(said.events("no_annotation")) == 3


def test_a_label_for_what_was_not_asked_about_is_not_stored(said: World) -> None:
    said.store.label(MONA, ScriptedLabeler(label_nothing))
    said.hub.reply("104", "101", "ada", "New.")
    said.collect()
    others = [said.event("101"), said.event("103"), "event_" + "0" * 64, said.records("episodes")[0]["id"]]
    labeler = ScriptedLabeler(lambda request: [{"eventId": event, **GOOD} for event in others])
    assert said.store.label(MONA, labeler)["labeled"] == 0
    assert said.events("label") == []


def test_a_comment_has_one_label_a_theme_and_twenty_in_all(said: World) -> None:
    def answer(request: LabelRequest) -> list[Json]:
        first, second, _ = label_all(request)
        return [first, {**first, "summary": "Again."}, *({**second, "theme": f"theme-{n}"} for n in range(30))]

    said.store.label(MONA, ScriptedLabeler(answer))
    found = [label["payload"]["summary"] for label in said.events("label")]
    assert found == ["Be kind."] * 21


def test_an_edited_comment_is_asked_about_again(said: World) -> None:
    labeler = ScriptedLabeler(label_all)
    said.store.label(MONA, labeler)
    said.hub.edit("101", "Edited.")
    said.collect()
    assert said.store.label(MONA, labeler)["considered"] == 1
    assert labeler.asked[3:] == ["Edited."]


def test_only_what_review_may_use_is_sent(said: World) -> None:
    said.hub.comment("105", "mona", "Deleted.")
    said.hub.comment("106", "mona", "Redacted.")
    said.hub.comment("107", "mona", "Withheld.")
    said.hub.comment("108", "mona", "Old words.")
    said.hub.reply("109", "101", "mona", "Withheld reply.")
    said.collect()
    said.hub.delete("105")
    said.hub.edit("108", "New words.")
    said.collect()
    said.store.redact_comment(MONA, "106")
    labeler = ScriptedLabeler(label_nothing)
    said.store.label(MONA, labeler, withheld_comments=frozenset({"107", "109"}))
    sent = [c.body for request in labeler.requests for thread in request.threads for c in thread.comments]
    assert sent == ["First.", "Reply.", "Third.", "New words."]
    assert said.store.label(MONA, labeler)["considered"] == 2


def test_without_consent_to_review_nothing_is_asked(world: World) -> None:
    world.consent("instruction")
    labeler = ScriptedLabeler(label_all)
    with world.nothing_stored(), refused("not_permitted"):
        world.store.label(MONA, labeler)
    assert labeler.requests == []


def test_since_skips_older_comments(said: World) -> None:
    later = said.events("comment")[-1]["occurredAt"]
    labeler = ScriptedLabeler(label_nothing)
    assert said.store.label(MONA, labeler, since=later)["considered"] == 1
    assert labeler.asked == ["Third."]
    with refused("invalid_timestamp"):
        said.store.label(MONA, labeler, since="yesterday")


def test_the_model_and_the_themes_in_use_are_passed_on(loop: World) -> None:
    loop.learning("keys")
    loop.proposal("tone")
    loop.reject(loop.proposal("wording"))
    long_threads(loop, 2)
    labeler = ScriptedLabeler(label_all)
    loop.store.label(MONA, labeler, model="model-9")
    in_use = {("accessibility", "keys"), ("accessibility", "tone")}
    assert labeler.requests[0].model == "model-9"
    assert set(labeler.requests[0].themes_in_use) == in_use
    assert set(labeler.requests[-1].themes_in_use) == in_use | {("content", "tone")}


# Requests ----------------------------------------------------------------------------------------------------------


def test_a_request_holds_whole_threads_of_about_sixteen_thousand_characters(loop: World) -> None:
    long_threads(loop, 3)
    loop.hub.comment("huge", "mona", "x" * 40_000)
    loop.hub.comment("small", "mona", "Small.")
    loop.hub.comment("small-2", "mona", "Small too.")
    loop.collect()
    labeler = ScriptedLabeler(label_nothing)
    assert loop.store.label(MONA, labeler)["considered"] == 6
    assert [[len(c.body) for t in r.threads for c in t.comments] for r in labeler.requests] == [
        [9000], [9000], [9000], [40_000], [6, 10]
    ]  # fmt: skip


def test_a_cap_on_requests_leaves_the_rest_for_the_next_call(loop: World) -> None:
    long_threads(loop, 3)
    labeler = ScriptedLabeler(label_all)
    first = loop.store.label(MONA, labeler, max_requests=1)
    assert (first["considered"], first["labeled"], first["remaining"]) == (1, 1, 2)
    second = loop.store.label(MONA, labeler, max_requests=2)
    assert (second["considered"], second["remaining"], second["usage"]["requests"]) == (2, 0, 2)
    assert [text[0] for text in labeler.asked] == ["1", "2", "3"]


def test_a_limit_bounds_the_comments(said: World) -> None:
    labeler = ScriptedLabeler(label_all)
    first = said.store.label(MONA, labeler, limit=1)
    assert (first["considered"], first["remaining"]) == (1, 2)
    assert labeler.asked == ["First."]
    assert [c.ask for c in labeler.requests[0].threads[0].comments] == [True, False]
    assert said.store.label(MONA, labeler, limit=400)["considered"] == 2


@pytest.mark.parametrize("bound", [{"max_requests": 0}, {"limit": 0}, {"max_requests": -1}], ids=str)
def test_a_cap_of_nothing_is_refused_before_anything_is_asked(said: World, bound: dict[str, Any]) -> None:
    labeler = ScriptedLabeler(label_all)
    with said.nothing_stored(), refused("invalid_argument"):
        said.store.label(MONA, labeler, **bound)
    assert labeler.requests == []


def test_a_host_is_asked_before_each_request_and_told_after_it(loop: World) -> None:
    long_threads(loop, 3)
    answers = iter([True, True, False])
    progress: list[tuple[int, int]] = []
    result = loop.store.label(
        MONA,
        ScriptedLabeler(label_all),
        may_continue=lambda: next(answers),
        on_progress=lambda done, total: progress.append((done, total)),
    )
    assert (result["considered"], result["remaining"], progress) == (2, 1, [(1, 3), (2, 3)])


# What changes meanwhile --------------------------------------------------------------------------------------------


def edit(world: World) -> None:
    world.hub.edit("101", "Edited.")
    world.collect()


def delete(world: World) -> None:
    world.hub.delete("101")
    world.collect()


def redact(world: World) -> None:
    world.other_store().redact_comment(OCTO, "101")


@pytest.mark.parametrize("change", [edit, delete, redact])
def test_nothing_is_stored_about_what_is_no_longer_current(said: World, change: Callable[[World], None]) -> None:
    target = said.event("101")

    def answer(request: LabelRequest) -> list[Json]:
        change(said)
        return label_all(request)

    assert said.store.label(MONA, ScriptedLabeler(answer))["labeled"] == 2
    assert target not in [event["parentEventId"] for event in said.events("label")]


def test_a_withdrawal_while_it_is_asked_stores_nothing(said: World) -> None:
    (grant,) = said.store.list_grants()["grants"]

    def answer(request: LabelRequest) -> list[Json]:
        said.other_store().withdraw_grant(OCTO, grant["id"], reason="Over.")
        return label_all(request)

    with refused("not_permitted") as caught:
        said.store.label(MONA, ScriptedLabeler(answer))
    report = caught.value.details["labelingResult"]
    assert (report["usage"]["requests"], report["considered"], said.events("label")) == (1, 0, [])


def test_two_runs_at_once_mark_each_comment_once(said: World) -> None:
    def answer(request: LabelRequest) -> list[Json]:
        if not said.events("label"):
            said.other_store().label(OCTO, ScriptedLabeler(label_all))
        return label_all(request)

    said.store.label(MONA, ScriptedLabeler(answer))
    assert len(said.events("label")) == 3
    assert said.store.verify(by=MONA)["ok"]


# Failures ----------------------------------------------------------------------------------------------------------


def report_of(world: World, code: str, labeler: ScriptedLabeler) -> Json:
    with refused(code) as caught:
        world.store.label(MONA, labeler)
    report: Json = caught.value.details["labelingResult"]
    return report


class Second:
    """Answers the first request and fails at the second."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.calls = 0

    def __call__(self, request: LabelRequest) -> Any:
        self.calls += 1
        if self.calls == 2:
            raise self.error
        return label_all(request)


def test_a_failure_reports_what_is_done_and_what_it_cost(loop: World) -> None:
    long_threads(loop, 3)
    known = Usage(1, 100, 0, 7)
    report = report_of(loop, "plugin_failed", ScriptedLabeler(Second(PluginFailed("No answer.", usage=known))))
    assert report == {
        "considered": 1,
        "labeled": 1,
        "remaining": 2,
        "usage": {"requests": 2, "inputTokens": 110, "outputTokens": 2, "nanoAiu": 10},
    }
    assert len(loop.events("label")) == 1
    rest = loop.store.label(MONA, ScriptedLabeler(label_all))
    assert (rest["considered"], rest["remaining"]) == (2, 0)


def test_a_labeler_that_breaks_is_named(loop: World) -> None:
    long_threads(loop, 2)
    report = report_of(loop, "plugin_failed", ScriptedLabeler(Second(ZeroDivisionError("1/0"))))
    assert (report["considered"], report["remaining"]) == (1, 1)
    assert "usageError" not in report


@pytest.mark.parametrize(
    "usage",
    [Usage(-1), Usage(1, 2, 3, 2**53), Usage(True), Usage(input_tokens=1.5), {"requests": 1}],  # type: ignore[arg-type]
    ids=str,
)
def test_a_usage_that_cannot_be_verified_is_named_and_not_counted(loop: World, usage: Any) -> None:
    long_threads(loop, 2)
    report = report_of(loop, "plugin_failed", ScriptedLabeler(Second(PluginFailed("No answer.", usage=usage))))
    assert report["usageError"]["code"] == "invalid_usage"
    assert report["usage"] == {"requests": 1, "inputTokens": 10, "outputTokens": 2, "nanoAiu": 3}
    loop.hub.comment("more", "mona")
    loop.collect()
    labeler = ScriptedLabeler(lambda request: LabelAnswer(label_all(request), usage))
    with loop.nothing_stored():
        report = report_of(loop, "plugin_failed", labeler)
    assert (report["usageError"]["code"], report["usage"]) == ("invalid_usage", NOTHING)


@pytest.mark.parametrize("answer", [None, {"labels": []}, LabelAnswer("none"), LabelAnswer(None)], ids=str)  # type: ignore[arg-type]
def test_an_answer_that_is_none_is_refused(said: World, answer: Any) -> None:
    class Odd(ScriptedLabeler):
        def label(self, request: LabelRequest) -> LabelAnswer:
            return answer  # type: ignore[no-any-return]

    with said.nothing_stored():
        report = report_of(said, "plugin_failed", Odd(label_all))
    assert (report["considered"], report["remaining"]) == (0, 3)


def test_a_write_that_fails_leaves_its_request_for_the_next_run(loop: World) -> None:
    def fail() -> None:
        raise StorageFailed("The disk is full.")

    long_threads(loop, 2)
    with loop.meddling(at_call(2, fail)):
        report = report_of(loop, "storage_failed", ScriptedLabeler(label_all))
    assert (report["considered"], report["labeled"], report["remaining"]) == (1, 1, 1)
    assert report["usage"]["requests"] == 2
    assert loop.store.label(MONA, ScriptedLabeler(label_all))["considered"] == 1


class Uncertain(Delegate):
    """A provider whose writes are stored and then report that nobody knows."""

    fails_to_read = False

    def append_batch(self, *arguments: Any, **options: Any) -> None:
        self.inner.append_batch(*arguments, **options)
        self.broken = self.fails_to_read
        raise StorageOutcomeUnknown("The disk reported an error.")

    def read_records(self, *arguments: Any, **options: Any) -> Any:
        if getattr(self, "broken", False):
            raise StorageFailed("The disk cannot be read.")
        return self.inner.read_records(*arguments, **options)


def test_a_write_that_committed_before_it_reported_an_error_is_counted(loop: World) -> None:
    long_threads(loop, 2)
    loop.store.provider = Uncertain(loop.provider)
    report = report_of(loop, "storage_outcome_unknown", ScriptedLabeler(label_all))
    assert (report["considered"], report["labeled"], report["remaining"]) == (1, 1, 1)
    assert "progressError" not in report


def test_progress_that_cannot_be_read_is_named_and_counted_low(loop: World) -> None:
    long_threads(loop, 2)
    loop.store.provider = provider = Uncertain(loop.provider)
    provider.fails_to_read = True
    report = report_of(loop, "storage_outcome_unknown", ScriptedLabeler(label_all))
    assert (report["considered"], report["remaining"]) == (0, 2)
    assert report["progressError"]["code"] == "storage_failed"
    assert report["usage"]["requests"] == 1


# Labels that somebody else wrote -----------------------------------------------------------------------------------


def test_a_file_labels_current_versions_by_comment_or_by_event(said: World) -> None:
    items = [
        {"commentId": "101", **GOOD},
        {"eventId": said.event("102"), **GOOD, "explanation": "Why."},
        {"commentId": "103", "none": True},
    ]
    result = said.label_file(items, by="github:octo")
    assert result == {"considered": 3, "labeled": 3, "remaining": 0, "usage": NOTHING}
    first, second = said.events("label")
    assert (first["parentEventId"], second["parentEventId"]) == (said.event("101"), said.event("102"))
    assert second["payload"]["explanation"] == "Why."
    assert said.events("no_annotation")[0]["payload"]["outcome"] == "nothing"
    assert first["actor"] == {"kind": "human", "id": "github:octo", "assurance": "asserted", "login": "octo"}


def test_a_person_labelling_in_their_own_name_is_as_known_as_they_are(said: World) -> None:
    said.label("101", by="github:mona")
    assert said.events("label")[0]["actor"]["assurance"] == "authenticated"


def test_a_file_by_an_agent_records_its_model(said: World) -> None:
    said.label("101", by="agent:other")
    assert said.events("label")[0]["payload"]["model"] == "m-1"
    assert said.store.label(AGENT, ScriptedLabeler(label_nothing, "other"))["considered"] == 2


def test_the_same_labelling_again_is_stored_once_and_another_replaces_it(said: World) -> None:
    items = [{"commentId": "101", **GOOD}, {"commentId": "101", **GOOD, "theme": "wording"}]
    assert said.label_file(items)["labeled"] == 2
    with said.nothing_stored():
        assert said.label_file(items)["labeled"] == 0
    assert said.label_file(items[:1])["labeled"] == 1
    assert said.label_file(items)["labeled"] == 2
    with said.nothing_stored():
        said.label_file(items)


def test_a_labelling_has_one_receipt_for_all_its_labels(said: World) -> None:
    said.label("101", "102", "103")
    (entry,) = said.audit("label")
    assert [item["id"] for item in entry["records"]] == [event["id"] for event in said.events("label")]


def test_only_current_versions_are_labelled(said: World) -> None:
    old = said.event("101")
    said.hub.edit("101", "Edited.")
    said.collect()
    with said.nothing_stored(), refused("not_found"):
        said.label_file([{"eventId": old, **GOOD}])
    said.label("101")
    assert said.events("label")[0]["parentEventId"] == said.event("101")
    for event in (said.events("label")[0]["id"], said.records("episodes")[0]["id"].replace("episode", "event")):
        with said.nothing_stored(), refused("not_found"):
            said.label_file([{"eventId": event, **GOOD}])

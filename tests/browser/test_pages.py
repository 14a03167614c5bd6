"""What the pages answer, without a browser: sizes, queries, and what a person who may not look gets."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from hub_learning.access import authenticated
from hub_learning.actions import do_withdraw_grant
from hub_learning.models import LearningRun, Person, Repository, Step
from hub_learning.pages import queue, words
from hub_learning.pages.changes import mark_words
from hub_learning.pages.places import Place
from hub_learning.pages.queue import read_memories, read_outline
from hub_learning.pages.quoting import show_text
from hub_learning.stores import open_store
from tests.browser.seed import Seed

QUEUE = "/repositories/4242/learnings/"


@pytest.fixture
def client_of_mona(mona: Person) -> Client:
    client = Client()
    client.force_login(mona)
    return client


def make_long(seed: Seed, number: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make the queue as long as wanted, of rows in the store's own shape. Returns how many each page asked for."""
    example, asked = seed.memories()["color-contrast"], []

    def outline(place: Place) -> tuple[list[dict[str, Any]], bool]:
        rows, permitted = read_outline(place)
        return [{**rows[0], "id": f"memory_{n:064x}"} for n in range(number)], permitted

    def memories(place: Place, ids: list[str]) -> list[dict[str, Any]]:
        read_memories(place, ids)
        asked.append(len(ids))
        return [{**example, "id": name, "text": example["text"] * 3} for name in ids]

    monkeypatch.setattr(queue, "read_outline", outline)
    monkeypatch.setattr(queue, "read_memories", memories)
    return asked


def remove_tokens(page: bytes) -> bytes:
    return re.sub(rb'name="csrfmiddlewaretoken" value="[^"]*"', b"", page)


def test_a_page_of_the_queue_is_light_and_asks_the_same_of_the_database_however_long_it_is(
    client_of_mona: Client, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CaptureQueriesContext(connection) as few:
        assert client_of_mona.get(QUEUE).status_code == 200
    asked = make_long(seed, 1000, monkeypatch)
    with CaptureQueriesContext(connection) as many:
        answer = client_of_mona.get(QUEUE)
    assert answer.content.count(b'class="row"') == 25
    assert len(answer.content) < 60_000
    assert b"1\xe2\x80\x9325 of 1000" in answer.content
    assert asked == [26]
    assert len(many) == len(few) <= 9


def test_the_last_page_and_nonsense_in_the_address(
    client_of_mona: Client, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_long(seed, 51, monkeypatch)
    for last in (3, 99999):
        assert client_of_mona.get(f"{QUEUE}?page={last}").content.count(b'class="row"') == 1
    for query in ("?page=999999999999", "?page=-1", "?page=²", "?state=<script>", "?decided=memory_x"):
        answer = client_of_mona.get(QUEUE + query)
        assert answer.status_code == 200
        assert b"<script>" not in answer.content.replace(b"<script src=", b"")


def test_nobody_else_sees_a_repository_or_whether_it_exists(client_of_mona: Client, seed: Seed) -> None:
    Repository.objects.create(id=5, host="github.com", origin="https://hub.example.com", owner="other", name="secret")
    hidden, missing = client_of_mona.get("/repositories/5/learnings/"), client_of_mona.get("/repositories/6/learnings/")
    assert (hidden.status_code, missing.status_code) == (404, 404)
    assert remove_tokens(hidden.content) == remove_tokens(missing.content)
    for page in ("learnings", "consent", "activity"):
        assert Client().get(f"/repositories/4242/{page}/").status_code == 401


def test_a_learning_that_does_not_exist(client_of_mona: Client, seed: Seed) -> None:
    assert client_of_mona.get(f"{QUEUE}memory_{'0' * 64}/").status_code == 404
    assert client_of_mona.get(f"{QUEUE}nothing/").status_code == 404


def test_pages_carry_a_strict_policy_and_are_not_stored(client_of_mona: Client, seed: Seed) -> None:
    answer = client_of_mona.get(QUEUE)
    assert "unsafe" not in answer["Content-Security-Policy"]
    assert answer["Cache-Control"] == "no-store"
    assert b" style=" not in answer.content
    assert b"<style" not in answer.content


def test_consent_is_asked_for_twice_and_recorded_once(client_of_mona: Client, seed: Seed) -> None:
    page = "/repositories/4242/consent/"
    form = {"action": "grant", "purposes": ["evaluation"], "reason": "To measure."}
    assert client_of_mona.post(page, {**form, "reason": ""}).status_code == 422
    asked = client_of_mona.post(page, form)
    assert b"Allow this?" in asked.content
    assert len(open_store(seed.repository).list_grants()["grants"]) == 1
    for _ in range(2):
        assert client_of_mona.post(page, {**form, "confirmed": "yes"}).status_code == 303
    grants = open_store(seed.repository).list_grants()["grants"]
    assert [grant["active"] for grant in grants] == [["review", "instruction"], ["evaluation"]]


def test_consent_is_withdrawn_after_a_second_look(client_of_mona: Client, seed: Seed) -> None:
    page = "/repositories/4242/consent/"
    grant = open_store(seed.repository).list_grants()["grants"][0]
    form = {"action": "withdraw", "grant": grant["id"], "purposes": ["instruction"], "reason": "Enough."}
    assert b"Withdraw this?" in client_of_mona.post(page, form).content
    for _ in range(2):
        assert client_of_mona.post(page, {**form, "confirmed": "yes"}).status_code == 303
    assert open_store(seed.repository).list_grants()["grants"][0]["active"] == ["review"]
    assert b"Withdrawn: instruction" in client_of_mona.get(page).content
    assert client_of_mona.post(page, {**form, "grant": "grant_x"}).status_code == 400


def test_without_consent_for_review_nothing_is_shown(client_of_mona: Client, seed: Seed, mona: Person) -> None:
    grant = open_store(seed.repository).list_grants()["grants"][0]["id"]
    memory = seed.memories()["color-contrast"]
    do_withdraw_grant(seed.repository, authenticated(mona), grant, purposes=["review"], reason="Enough.")
    listed = client_of_mona.get(QUEUE)
    assert b"Consent is missing" in listed.content
    shown = client_of_mona.get(f"{QUEUE}{memory['id']}/")
    assert memory["text"].encode() not in listed.content + shown.content


def test_evidence_that_is_withheld_withholds_the_learning_and_says_why(client_of_mona: Client, seed: Seed) -> None:
    memory = seed.memories()["color-contrast"]
    seed.repository.comments.filter(body__contains="3.1:1").update(dirty=True)
    listed, shown = client_of_mona.get(QUEUE), client_of_mona.get(f"{QUEUE}{memory['id']}/")
    assert memory["text"].encode() not in listed.content + shown.content
    assert b"it is being removed or updated" in shown.content
    assert b"Nothing to decide" in shown.content


def test_a_source_is_linked_only_if_it_is_a_web_address(client_of_mona: Client, seed: Seed) -> None:
    memory = seed.memories()["color-contrast"]
    seed.repository.comments.update(url="javascript:alert(1)")
    shown = client_of_mona.get(f"{QUEUE}{memory['id']}/").content
    assert b"javascript:" not in shown
    assert b"review.example.com" not in shown


def test_the_difference_of_two_texts_is_marked_and_escaped() -> None:
    assert mark_words("Use <b> now", "Use <i> now") == "Use &lt;<del>b</del><ins>i</ins>&gt; now"
    assert mark_words("!?" * 1000, "?!" * 1000) == f"<del>{'!?' * 1000}</del><ins>{'?!' * 1000}</ins>"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\r\nb\rc", "a\nb\nc"),
        ("<&>", "&lt;&amp;&gt;"),
        ("<b>\u200b<i>", '&lt;b&gt;<span class="hidden-char" title="zero width space">U+200B</span>&lt;i&gt;'),
        ("\u202e\u202e", '<span class="hidden-char" title="right-to-left override">U+202E ×2</span>'),
        ("\u200b\u2060", '<span class="hidden-char">2 hidden characters</span>'),
        ("👩‍👩‍👧 می‌خواهم ❤️", "👩‍👩‍👧 می‌خواهم ❤️"),
        ("\U0001f3f4\U000e0067\U000e0062\U000e007f", "\U0001f3f4\U000e0067\U000e0062\U000e007f"),
        ("x\U000e003c\U000e003e", 'x<span class="hidden-char">hidden text: &lt;&gt;</span>'),
    ],
)
def test_text_is_shown_as_text(text: str, shown: str) -> None:
    assert show_text(text) == shown


def test_counts_read_well() -> None:
    assert words.count(1, "comment") == "1 comment"
    assert words.count(1827, "comment") == "1,827 comments"
    assert words.list_words(["a", "b", "c"]) == "a, b and c"


def test_activity_tells_what_each_run_did(client_of_mona: Client, seed: Seed) -> None:
    page = "/repositories/4242/activity/"
    runs = (
        ("redact", {"removed": 2}, "The text of 2 events was removed."),
        ("import", {"imported": {"episodes": 1, "events": 3}}, "1 new thread, 3 new events."),
        ("consolidate", {"stored": ["memory_1"], "overBudget": 4, "complete": False}, "4 more themes wait"),
    )
    for kind, result, _ in runs:
        LearningRun.objects.create(repository=seed.repository, kind=kind, state="done", result=result)
    LearningRun.objects.create(
        repository=seed.repository,
        kind="label",
        state="done",
        progress_done=1827,
        usage={"requests": 190, "inputTokens": 900_000, "outputTokens": 100_000, "nanoAiu": 1_500_000_000},
    )
    LearningRun.objects.create(
        repository=seed.repository, kind="label", state="failed", error_code="timeout", message="It took too long."
    )
    shown = client_of_mona.get(page).content.decode()
    for words_shown in (*(run[2] for run in runs), "1,827 comments read.", "1,000,000 tokens, 1.50 AI credits."):
        assert words_shown in shown
    assert "It took too long." in shown
    assert "<code>timeout</code>" in shown


def test_a_run_can_be_asked_for(client_of_mona: Client, seed: Seed) -> None:
    before = Step.objects.get(repository=seed.repository, kind=Step.Kind.IMPORT).version
    assert client_of_mona.post("/repositories/4242/activity/").status_code == 303
    assert Step.objects.get(repository=seed.repository, kind=Step.Kind.IMPORT).version > before


def test_themes_that_were_not_proposed_are_listed_with_the_reason(client_of_mona: Client, seed: Seed) -> None:
    result = {"overBudget": 2, "heldBack": [{"category": "content", "theme": "tone", "reason": "contested"}]}
    LearningRun.objects.create(repository=seed.repository, kind="consolidate", state="done", result=result)
    shown = client_of_mona.get(QUEUE).content.decode()
    for words_shown in ("3 themes not proposed", "2 themes wait for the next run", "1 contested", "tone"):
        assert words_shown in shown

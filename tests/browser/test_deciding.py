"""Deciding in a browser: accept, change, reject, retire, and everything that can come between."""

from __future__ import annotations

import re

from playwright.sync_api import BrowserContext, Page, expect

from hub_learning import stores
from hub_learning.models import Comment, Person
from tests.browser.conftest import OpenContext
from tests.browser.seed import SUMMARIES, Seed

QUEUE = "/repositories/4242/learnings/"
PLAIN, CONTESTED = "spacing-scale", "color-contrast"


def open_learning(page: Page, seed: Seed, theme: str) -> str:
    memory: str = seed.memories()[theme]["id"]
    page.goto(f"{QUEUE}{memory}/")
    return memory


def send(page: Page, decision: str, button: str, **fields: str) -> None:
    """Open one way to decide, fill it in and send it."""
    details = page.locator(f"details#{decision}")
    if details.get_attribute("open") is None:
        details.locator("summary").click()
    for name, value in fields.items():
        details.locator(f"[name={name}]").fill(value)
    details.get_by_role("button", name=button).click()


def switch_off_browser_checks(page: Page) -> None:
    page.evaluate("for (const form of document.forms) form.noValidate = true")


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.id"))


def is_in_sight(page: Page) -> bool:
    """Whether nothing covers what has the focus (WCAG 2.4.11)."""
    script = """() => {
        const box = document.activeElement.getBoundingClientRect();
        return document.activeElement.contains(document.elementFromPoint(box.x + 20, box.y + 10));
    }"""
    return bool(page.evaluate(script))


def test_accept_leads_to_the_next_row_and_can_be_taken_back(page: Page, seed: Seed) -> None:
    page.set_viewport_size({"width": 1280, "height": 650})
    page.goto(QUEUE)
    order = [link.get_attribute("id") for link in page.locator(".row-text a").all()]
    memory = seed.memories()[PLAIN]["id"]
    page.get_by_role("link", name=SUMMARIES[PLAIN]).click()
    send(page, "accept", "Accept this learning")
    result = page.locator("#result")
    expect(result).to_contain_text("Accepted")
    expect(result).to_contain_text(SUMMARIES[PLAIN])
    left = [row for row in order[order.index(memory) + 1 :] + order if row != memory]
    assert focused(page) == left[0]
    assert is_in_sight(page)
    assert seed.memories()[PLAIN]["state"] == "accepted"

    result.get_by_text("Take it back").click()
    result.get_by_label("Why should agents").fill("It was a slip.")
    result.get_by_role("button", name="Retire").click()
    expect(page.get_by_role("heading", name="Retired")).to_be_focused()
    expect(page.locator(".decided")).to_contain_text("It was a slip.")
    assert seed.memories()[PLAIN]["state"] == "retired"


def test_accept_with_changes(page: Page, seed: Seed) -> None:
    memory = open_learning(page, seed, PLAIN)
    send(page, "edit", "Accept my text", text='Use 8 px, "always".\nIn forms too.')
    expect(page.locator("#result")).to_contain_text("In forms too.")
    page.goto(f"{QUEUE}{memory}/")
    expect(page.locator(".timeline li").first).to_contain_text("mona accepted it with changes")
    expect(page.locator(".agent-text")).to_contain_text(r"accepted by mona")
    expect(page.locator(".agent-text")).to_contain_text(r'"Use 8 px, \"always\". In forms too."')


def test_a_text_sent_back_unchanged_is_no_edit(page: Page, seed: Seed) -> None:
    memory = open_learning(page, seed, "hostile-text")
    send(page, "edit", "Accept my text")
    page.goto(f"{QUEUE}{memory}/")
    expect(page.locator(".timeline li").first).to_contain_text("mona accepted it")
    expect(page.locator(".timeline li").first).not_to_contain_text("with changes")


def test_after_the_last_decision_the_empty_queue_has_the_focus(page: Page, seed: Seed) -> None:
    for theme in (PLAIN, CONTESTED, "hostile-text"):
        open_learning(page, seed, theme)
        send(page, "reject", "Reject this proposal", reason="Not for us.")
        expect(page.locator("#result")).to_contain_text("Rejected")
    expect(page.get_by_role("heading", name="Nothing waits")).to_be_focused()
    page.get_by_role("link", name="Rejected").click()
    expect(page.locator(".row")).to_have_count(3)


def test_a_contested_proposal_needs_a_reason(page: Page, seed: Seed) -> None:
    memory = open_learning(page, seed, CONTESTED)
    before = seed.audit_count()
    switch_off_browser_checks(page)
    with page.expect_response(lambda answer: answer.request.method == "POST") as sent:
        send(page, "accept", "Accept this learning")
    assert sent.value.status == 422
    expect(page.get_by_role("alert")).to_be_focused()
    expect(page.locator("#accept [name=reason]")).to_have_attribute("aria-invalid", "true")
    assert seed.audit_count() == before

    send(page, "accept", "Accept this learning", reason="Disabled buttons are exempt anyway.")
    expect(page.locator("#result")).to_contain_text("Accepted")
    page.goto(f"{QUEUE}{memory}/")
    expect(page.locator(".timeline li").first).to_contain_text("Disabled buttons are exempt anyway.")


def test_a_proposal_that_changed_is_shown_again_with_the_form_as_typed(page: Page, seed: Seed) -> None:
    open_learning(page, seed, PLAIN)
    seed.comment("octo", 41, "Six pixels look better here.", theme=PLAIN, observation="disagreement", days=1)
    seed.comment("yusuf", 41, "10 px again.", theme=PLAIN, days=1)
    seed.bring_in()
    seed.propose()
    before = seed.audit_count()
    with page.expect_response(lambda answer: answer.request.method == "POST") as sent:
        send(page, "reject", "Reject this proposal", reason="We have this in the design system.")
    assert sent.value.status == 409
    alert = page.get_by_role("alert")
    expect(alert).to_be_focused()
    expect(alert).to_contain_text("1 more comment supports it")
    expect(alert).to_contain_text("1 more comment disagrees")
    expect(page.locator(".quote", has_text="Six pixels")).to_contain_text("New")
    expect(page.locator("#reject [name=reason]")).to_have_value("We have this in the design system.")

    switch_off_browser_checks(page)
    send(page, "reject", "Reject this proposal")
    expect(page.get_by_role("alert")).to_contain_text("Tick the box")
    assert seed.audit_count() == before

    page.get_by_label("I have read what changed").check()
    send(page, "reject", "Reject this proposal")
    expect(page.locator("#result")).to_contain_text("Rejected")
    assert seed.memories()[PLAIN]["state"] == "rejected"


def test_the_second_to_decide_learns_who_was_first_and_keeps_their_text(
    page: Page, open_context: OpenContext, kim: Person, seed: Seed
) -> None:
    other = open_context(kim).new_page()
    open_learning(page, seed, PLAIN)
    open_learning(other, seed, PLAIN)
    send(other, "accept", "Accept this learning")
    expect(other.locator("#result")).to_be_visible()
    decided = seed.audit_count()

    with page.expect_response(lambda answer: answer.request.method == "POST") as sent:
        send(page, "edit", "Accept my text", text="My own words.")
    assert sent.value.status == 409
    expect(page.get_by_role("alert")).to_contain_text("kim decided this before")
    expect(page.get_by_label("What you wrote, to copy")).to_have_value("My own words.")
    assert seed.audit_count() == decided


def test_the_same_decision_sent_twice_is_one(page: Page, context_of_mona: BrowserContext, seed: Seed) -> None:
    memory = open_learning(page, seed, PLAIN)
    form = page.locator("details#reject form")
    fields = {item.get_attribute("name") or "": item.input_value() for item in form.locator("[name]").all()}
    address = page.url
    answers = [
        context_of_mona.request.post(
            address, form={**fields, "reason": "No."}, headers={"Referer": address}, max_redirects=0
        )
        for _ in range(2)
    ]
    assert [answer.status for answer in answers] == [303, 303]
    assert answers[0].headers["location"] == answers[1].headers["location"]
    shown = stores.open_store(seed.repository).show(memory, history=True)["memory"]
    assert [version["state"] for version in shown["history"]] == ["proposed", "rejected"]


def test_an_ended_session_gives_the_text_back(page: Page, context_of_mona: BrowserContext, seed: Seed) -> None:
    open_learning(page, seed, PLAIN)
    cookies = [cookie for cookie in context_of_mona.cookies() if cookie["name"] == "csrftoken"]
    context_of_mona.clear_cookies()
    context_of_mona.add_cookies(cookies)  # type: ignore[arg-type]
    before = seed.audit_count()
    with page.expect_response(lambda answer: answer.request.method == "POST") as sent:
        send(page, "reject", "Reject this proposal", reason="Words that took a while.")
    assert sent.value.status == 401
    expect(page.get_by_label("What you wrote, to copy")).to_have_value("Words that took a while.")
    assert seed.audit_count() == before


def test_a_draft_survives_a_reload(page: Page, seed: Seed) -> None:
    open_learning(page, seed, PLAIN)
    page.locator("#reject > summary").click()
    page.locator("#reject [name=reason]").fill("Half a sent")
    page.reload()
    expect(page.locator("#reject [name=reason]")).to_have_value("Half a sent")
    send(page, "reject", "Reject this proposal")
    expect(page.locator("#result")).to_be_visible()
    assert page.evaluate("Object.keys(sessionStorage)") == []


def test_a_comment_that_was_just_deleted_is_withheld_and_stops_the_decision(page: Page, seed: Seed) -> None:
    open_learning(page, seed, PLAIN)
    row = Comment.objects.get(body__contains="The gap between")
    Comment.objects.filter(pk=row.pk).update(dirty=True)
    before = seed.audit_count()
    with page.expect_response(lambda answer: answer.request.method == "POST") as sent:
        send(page, "accept", "Accept this learning")
    assert sent.value.status == 409
    expect(page.get_by_role("alert")).to_contain_text("Nothing was recorded")
    expect(page.locator("main")).not_to_contain_text("The gap between")
    expect(page.locator("details#accept")).to_have_count(0)
    Comment.objects.filter(pk=row.pk).update(dirty=False)
    assert seed.audit_count() == before


def test_everything_works_without_javascript(open_context: OpenContext, mona: Person, seed: Seed) -> None:
    page = open_context(mona, java_script_enabled=False).new_page()
    page.goto(QUEUE)
    page.get_by_role("link", name=SUMMARIES[PLAIN]).click()
    send(page, "accept", "Accept this learning")
    expect(page.locator("#result")).to_contain_text("Accepted")
    expect(page).to_have_url(re.compile(r"decided=memory_[0-9a-f]{64}#memory_[0-9a-f]{64}$"))
    page.locator("#result summary").click()
    page.get_by_label("Why should agents").fill("A slip.")
    page.get_by_role("button", name="Retire").click()
    assert seed.memories()[PLAIN]["state"] == "retired"

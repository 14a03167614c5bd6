"""Reading in a browser: other people's words stay words, every page is accessible, and no key decides."""

from __future__ import annotations

import string
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from hub_learning.actions import do_add_repository
from hub_learning.models import LearningRun
from tests.browser.conftest import OpenContext
from tests.browser.seed import HOSTILE, Seed

QUEUE = "/repositories/4242/learnings/"
RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],
}
WIDTHS = (1280, 375)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def address_of(seed: Seed, theme: str) -> str:
    return f"{QUEUE}{seed.memories()[theme]['id']}/"


def scrolls_sideways(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


def check_accessible(page: Page, place: str) -> None:
    """No violation, and no sideways scrolling, at both widths in both schemes; texts open."""
    page.evaluate("for (const part of document.querySelectorAll('main details:not([name])')) part.open = true")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert not scrolls_sideways(page), f"{place} scrolls sideways at {width}"
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            found = Axe().run(page, options=RULES).response["violations"]
            told = [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found]
            assert told == [], f"{place} at {width}, {scheme}"


def test_lists_are_accessible(page: Page, seed: Seed) -> None:
    LearningRun.objects.create(repository=seed.repository, kind="label", progress_done=640, progress_total=1827)
    for place in (QUEUE, f"{QUEUE}?state=retired", "/repositories/4242/activity/", "/repositories/4242/consent/"):
        page.goto(place)
        check_accessible(page, place)


@pytest.mark.parametrize(
    ("theme", "decision"), [("color-contrast", "accept"), ("color-contrast", "edit"), ("hostile-text", "reject")]
)
def test_a_learning_is_accessible(page: Page, seed: Seed, theme: str, decision: str) -> None:
    page.goto(address_of(seed, theme))
    page.locator(f"#{decision} > summary").click()
    check_accessible(page, f"{theme}, {decision}")


def test_a_decision_is_accessible(page: Page, seed: Seed) -> None:
    learning = address_of(seed, "spacing-scale")
    page.goto(learning)
    page.locator("#accept > summary").click()
    page.get_by_role("button", name="Accept this learning").click()
    expect(page.locator("#result")).to_be_visible()
    check_accessible(page, "the result")
    page.goto(learning)
    check_accessible(page, "an accepted learning")


def test_the_pages_of_someone_who_begins_are_accessible(
    page: Page, open_context: OpenContext, seed: Seed, hub: None
) -> None:
    do_add_repository(seed.by, 7, host="local", owner="acme", name="new")
    for place in ("/", "/repositories/7/learnings/", "/repositories/7/consent/", "/repositories/7/activity/"):
        page.goto(place)
        check_accessible(page, place)
    page.goto("/repositories/404/learnings/")
    check_accessible(page, "a missing repository")
    stranger = open_context(None).new_page()
    stranger.goto(QUEUE)
    expect(stranger.get_by_role("heading", name="Please sign in")).to_be_visible()
    check_accessible(stranger, "signed out")


def test_refusals_are_accessible(page: Page, seed: Seed) -> None:
    page.goto(address_of(seed, "color-contrast"))
    page.evaluate("for (const form of document.forms) form.noValidate = true")
    page.locator("#accept > summary").click()
    page.get_by_role("button", name="Accept this learning").click()
    expect(page.get_by_role("alert")).to_be_visible()
    check_accessible(page, "a missing reason")


def test_hostile_words_stay_words(page: Page, seed: Seed) -> None:
    page.set_viewport_size({"width": 375, "height": 800})
    page.goto(address_of(seed, "hostile-text"))
    assert "hacked" not in page.title()
    script, _, arabic, long = HOSTILE
    bodies = page.locator(".quote-body")
    expect(bodies.filter(has_text="onerror")).to_have_text(script)
    shown = page.locator(".quote", has_text="this backwards")
    for name in ("U+202E", "U+202C", "U+200B", "U+0007", "hidden text: obey"):
        expect(shown.locator(".hidden-char", has_text=name)).to_be_visible()
    assert not set("\u202e\u202c\u200b\u0007") & set(shown.inner_text())
    assert bodies.filter(has_text="Second line").inner_text() == arabic.replace("\r\n", "\n")
    page.get_by_text("Read all 70,000 characters").click()
    opened = page.locator("details .quote-body")
    assert len(opened.inner_text()) == len(long)
    assert opened.evaluate("part => part.scrollWidth <= part.clientWidth")
    assert not scrolls_sideways(page)


@pytest.mark.parametrize("theme", [None, "spacing-scale"])
def test_no_key_decides(page: Page, seed: Seed, theme: str | None) -> None:
    page.goto(address_of(seed, theme) if theme else QUEUE)
    page.route("**/*", lambda route: route.abort() if route.request.method == "POST" else route.continue_())
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    for key in string.ascii_letters + string.digits + string.punctuation:
        page.keyboard.press(key)
        page.keyboard.press("Escape")
    assert sent == []


def test_keys_move_and_open(page: Page, seed: Seed) -> None:
    page.goto(QUEUE)
    rows = page.locator(".row-text a")
    page.keyboard.press("j")
    expect(rows.nth(0)).to_be_focused()
    page.keyboard.press("j")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 of 3")).to_be_visible()
    page.keyboard.press("r")
    expect(page.locator("#reject [name=reason]")).to_be_focused()
    page.keyboard.type("are jkea?")
    expect(page.locator("#reject [name=reason]")).to_have_value("are jkea?")
    expect(page.locator("#accept")).not_to_have_attribute("open", "")
    page.go_back()
    expect(rows.nth(0)).to_be_focused()


def test_keys_can_be_switched_off(page: Page, seed: Seed) -> None:
    page.goto(QUEUE)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert page.locator("#keys kbd").all_inner_texts() == ["j", "k", "?"]
    page.get_by_label("Use these keys").uncheck()
    page.get_by_role("button", name="Close").click()
    page.reload()
    page.keyboard.press("j")
    expect(page.locator(".row-text a").first).not_to_be_focused()


def test_progress_moves_without_a_reload(page: Page, seed: Seed) -> None:
    run = LearningRun.objects.create(repository=seed.repository, kind="label", progress_done=1, progress_total=9)
    page.clock.install()
    page.goto(QUEUE)
    expect(page.locator("[data-progress]")).to_contain_text("Labeling: 1 of 9")
    page.evaluate("window.same = true")
    LearningRun.objects.filter(pk=run.pk).update(progress_done=5)
    page.clock.run_for(3_100)
    expect(page.locator("[data-progress]")).to_contain_text("Labeling: 5 of 9")
    LearningRun.objects.filter(pk=run.pk).update(state="done")
    page.clock.run_for(3_100)
    expect(page.get_by_role("link", name="Show the result")).to_be_visible()
    assert page.evaluate("window.same") is True

"""Deciding in a browser: accept, edit, reject, and everything that can come between."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.seed import Seed

QUEUE = "/repositories/4242/learnings/"


def test_accept(page: Page, seed: Seed) -> None:
    page.goto(QUEUE)
    page.get_by_role("link", name="Use the 8-pixel scale").click()
    page.locator("#accept > summary").click()
    page.get_by_role("button", name="Accept this learning").click()
    expect(page.get_by_role("status")).to_contain_text("Accepted")
    assert seed.memories()["spacing-scale"]["state"] == "accepted"

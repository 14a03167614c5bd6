"""Makes the pictures of `docs/screenshots`: `make screenshots`. Not a test; it shows the sample repository."""

from __future__ import annotations

from pathlib import Path

from django.utils import timezone

from hub_learning import jobs, steps
from hub_learning.models import Repository
from hub_learning.sample_repository import SAMPLE_ID, load_sample
from hub_learning.sign_in import local_administrator
from hub_learning.stores import open_store
from tests.browser.conftest import OpenContext

TO = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
QUEUE = f"/repositories/{SAMPLE_ID}/learnings/"
WIDE = {"width": 1280, "height": 860}
NARROW = {"width": 375, "height": 812}


def run_loop() -> None:
    """Everything that the worker would do."""
    while step := steps.next_step(SAMPLE_ID, timezone.now()):
        jobs.run_step(step)


def find_contested() -> str:
    """The proposal with the most dissent, so that the picture shows some."""
    rows = open_store(Repository.objects.get(pk=SAMPLE_ID)).memories()["memories"]
    return str(max(rows, key=lambda row: (row["dissent"]["reviewers"], row["support"]["reviewers"]))["id"])


def test_make_screenshots(hub: None, open_context: OpenContext) -> None:
    load_sample(lambda *_: None)
    run_loop()
    learning = f"{QUEUE}{find_contested()}/"
    pictures = (
        ("queue", QUEUE, WIDE, "light"),
        ("learning", learning, WIDE, "light"),
        ("learning-dark", learning, WIDE, "dark"),
        ("learning-narrow", learning, NARROW, "light"),
    )
    TO.mkdir(parents=True, exist_ok=True)
    for name, address, size, scheme in pictures:
        context = open_context(local_administrator(), viewport=size, color_scheme=scheme)
        page = context.new_page()
        page.goto(address)
        if name == "learning":
            page.locator("#reject > summary").click()
        picture = TO / f"{name}.jpg"
        page.screenshot(path=picture, type="jpeg", quality=70, animations="disabled")
        assert picture.stat().st_size < 120_000

"""A repository's history through the running Hub: real processes, a browser that decides, an agent that recalls.

What the agent gets is compared with what the page promised; then a comment is deleted at its source.
"""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.fixtures.logs.reading import BATCHES
from tests.hub.processes import Hub, make_hub, running, wait_for

REPOSITORY = 7301
TASK = "Change the timetable service and its tests."
SET_UP = f"""
from hub_learning.access import authenticated
from hub_learning.actions import do_add_grant, do_add_repository, do_create_token
from hub_learning.models import ApiToken, Repository
from hub_learning.sign_in import local_administrator
by = authenticated(local_administrator())
repository = do_add_repository(by, {REPOSITORY}, host="local", owner="harborline", name="timetable-api")
categories = ["correctness", "performance", "security", "maintainability", "testing", "documentation"]
Repository.objects.filter(pk={REPOSITORY}).update(categories=categories)
do_add_grant(repository, by, purposes=["review", "instruction"], reason="We agreed.")
for kind in (ApiToken.Kind.SOURCE, ApiToken.Kind.AGENT):
    print("token", do_create_token(repository, by, kind=kind, name="review-tool"))
"""


@dataclass(frozen=True)
class Running:
    """A Hub that runs, with the tokens of a review tool and of an agent."""

    hub: Hub
    link: str
    source: str
    agent: str

    def post(self, what: str, body: Any, token: str) -> dict[str, Any]:
        request = urllib.request.Request(
            f"http://{self.hub.bind}/api/v1/repositories/{REPOSITORY}/{what}",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            result: dict[str, Any] = json.loads(answer.read())
        return result

    def send(self, name: str) -> None:
        """Deliver a history, one message after the other, and wait until the Hub has worked it in."""
        for path in BATCHES[name][-1:]:
            for delivery in json.loads(path.read_bytes()):
                self.post("comments", make_local(delivery), self.source)
        self.settle()

    def settle(self) -> None:
        sql = f"SELECT count(*) FROM hub_learning_step WHERE repository_id = {REPOSITORY} AND state = 'waiting'"
        wait_for("the Hub is done", lambda: self.hub.query(sql) == [(0,)])

    def recall(self) -> dict[str, Any]:
        return self.post("recall", {"task": TASK, "budget": 20_000}, self.agent)


def make_local(value: Any) -> Any:
    """The same history of people whom a local review tool knows: there is no GitHub here."""
    if isinstance(value, list):
        return [make_local(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        ("localId" if name == "githubId" else name): make_local(item)
        for name, item in value.items()
        if (name, value.get("login")) != ("githubId", "ghost")
    }


@pytest.fixture
def running_hub(tmp_path: Path) -> Iterator[Running]:
    hub = make_hub(tmp_path)
    with running(hub) as (_, said):
        link = re.search(r"http://\S+/sign-in/local\S+", said)
        assert link is not None, said
        made = hub.run("shell", "--no-imports", "-c", SET_UP)
        tokens = re.findall(r"^token (\S+)$", made.stdout, flags=re.MULTILINE)
        assert len(tokens) == 2, made.stderr
        yield Running(hub, link[0], *tokens)


@pytest.fixture
def page(browser: Browser, running_hub: Running) -> Iterator[Page]:
    context = browser.new_context()
    made = context.new_page()
    made.set_default_timeout(15_000)
    made.goto(running_hub.link)
    # The link asks first: only a click signs in where it does.
    if made.get_by_role("button", name=re.compile("sign in", re.IGNORECASE)).count():
        made.get_by_role("button", name=re.compile("sign in", re.IGNORECASE)).click()
    yield made
    context.close()


def test_what_the_page_promises_is_what_the_agent_gets(running_hub: Running, page: Page) -> None:
    running_hub.send("second")
    queue = f"http://{running_hub.hub.bind}/repositories/{REPOSITORY}/learnings/"
    page.goto(queue)
    addresses = [link.get_attribute("href") for link in page.locator(".row-text a").all()]
    assert len(addresses) >= 3
    promised: list[str] = []
    for address in addresses[:3]:
        page.goto(f"http://{running_hub.hub.bind}{address}")
        promised.append(page.locator(".agent-text").inner_text().strip())
        accept = page.locator("details#accept")
        if accept.get_attribute("open") is None:
            accept.locator("summary").click()
        if accept.locator("textarea[name=reason][required]").count():
            accept.locator("textarea[name=reason]").fill("The objection concerns another case.")
        accept.get_by_role("button", name="Accept this learning").click()
        expect(page.locator("#result")).to_contain_text("Accepted")

    got = running_hub.recall()
    lines = got["text"].splitlines()
    assert len(got["learnings"]) == 3
    assert sorted(lines[1:]) == sorted(text.splitlines()[-1] for text in promised)

    # A reviewer deletes what one of them was built on: it is withheld when the answer comes, and then it is gone.
    page.goto(f"http://{running_hub.hub.bind}{addresses[0]}")
    quoted = page.locator(".quote-body").first.inner_text().strip()
    sentence = max(quoted.splitlines(), key=len)
    comment = find_comment(sentence)
    deletion = {**comment, "body": None, "deletedAt": "2026-11-29T10:00:00.000000Z", "deletedBy": comment["author"]}
    assert running_hub.hub.holders(sentence), "the search finds what is there"
    running_hub.post("comments", make_local({"comments": [deletion]}), running_hub.source)
    assert len(running_hub.recall()["learnings"]) == 2
    running_hub.settle()
    assert len(running_hub.recall()["learnings"]) == 2
    wait_for("its text is in no file", lambda: running_hub.hub.holders(sentence) == [])
    verified = running_hub.hub.run("learning", "--repository", str(REPOSITORY), "--json", "verify")
    assert json.loads(verified.stdout)["ok"], verified.stdout


def find_comment(sentence: str) -> dict[str, Any]:
    """The newest state of the comment with a sentence."""
    found: dict[str, Any] = {}
    for path in BATCHES["second"]:
        for delivery in json.loads(path.read_bytes()):
            for item in delivery["comments"]:
                if item["body"] is not None and sentence in item["body"].replace("\r\n", "\n"):
                    found = item
    assert found, sentence
    return found

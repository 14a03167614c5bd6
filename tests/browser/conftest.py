"""A live Hub with a real store, and Chromium."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page

from hub_learning.models import Person
from tests.browser import seed as seeding

OpenContext = Callable[..., BrowserContext]


@pytest.fixture
def hub(transactional_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty Hub in its own data directory."""
    monkeypatch.setattr(settings, "HUB", dataclasses.replace(settings.HUB, data_directory=tmp_path / "hub"))


@pytest.fixture
def mona(hub: None) -> Person:
    return seeding.add_person("mona", 1)


@pytest.fixture
def kim(hub: None) -> Person:
    return seeding.add_person("kim", 2)


@pytest.fixture
def seed(mona: Person) -> seeding.Seed:
    """A repository with three proposals."""
    made = seeding.add_repository(mona)
    seeding.add_usual_comments(made)
    return made


@pytest.fixture
def open_context(browser: Browser, live_server: Any) -> Iterator[OpenContext]:
    """Makes browser contexts in which a person is signed in. A console message or a page error fails the test."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_as(person: Person | None, **options: Any) -> BrowserContext:
        context = browser.new_context(base_url=live_server.url, **options)
        context.set_default_timeout(5_000)
        contexts.append(context)
        if person is not None:
            client = Client()
            client.force_login(person)
            name = settings.SESSION_COOKIE_NAME
            context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": live_server.url}])
        context.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        context.on("weberror", lambda error: complaints.append(f"error: {error.error}"))
        return context

    yield open_as
    for context in contexts:
        context.close()
    # A refusal is an answer with a status of its own, which Chromium reports as a failed resource.
    assert [line for line in complaints if "the server responded with a status of 4" not in line] == []


@pytest.fixture
def context_of_mona(open_context: OpenContext, mona: Person) -> BrowserContext:
    return open_context(mona, viewport={"width": 1280, "height": 900})


@pytest.fixture
def page(context_of_mona: BrowserContext) -> Page:
    """A page of mona's."""
    return context_of_mona.new_page()

"""What the Hub's tests share: a repository in a data directory of the test's own, and comments to send."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from hub_learning.access import authenticated
from hub_learning.actions import do_add_grant, do_add_repository, do_choose_labeler, do_create_token
from hub_learning.models import ApiToken, Repository
from hub_learning.sign_in import issue_local_link, local_administrator
from learning_core.identifiers import Principal
from tests.hub.processes import Agent, Hub, make_hub

Item = dict[str, Any]
MakeItem = Callable[..., Item]


@pytest.fixture(autouse=True)
def data_directory(settings: Settings, tmp_path: Path) -> Path:
    directory = tmp_path / "hub"
    directory.mkdir(mode=0o700)
    settings.HUB = replace(settings.HUB, data_directory=directory, redis_url=f"unix://{directory}/no-redis")
    return directory


@pytest.fixture
def administrator(db: None) -> Principal:
    return authenticated(local_administrator())


@pytest.fixture
def repository(administrator: Principal) -> Repository:
    return do_add_repository(administrator, 4242, host="local", owner="acme", name="checkout")


@pytest.fixture
def learning_repository(repository: Repository, administrator: Principal) -> Repository:
    """A repository whose loop may run: a labeler is chosen, and its administrator permitted review and instruction."""
    do_choose_labeler(administrator, "offline")
    do_add_grant(repository, administrator, purposes=["review", "instruction"], reason="for the tests")
    return repository


@pytest.fixture
def source_token(repository: Repository, administrator: Principal) -> str:
    return do_create_token(repository, administrator, kind=ApiToken.Kind.SOURCE, name="tool")


@pytest.fixture
def agent_token(repository: Repository, administrator: Principal) -> str:
    return do_create_token(repository, administrator, kind=ApiToken.Kind.AGENT, name="builder")


@pytest.fixture
def signed_in(client: Client, administrator: Principal, data_directory: Path) -> Client:
    link = issue_local_link(data_directory, "", "/healthz")
    assert client.get(link).status_code == 302
    return client


@pytest.fixture
def make_item() -> MakeItem:
    """A comment as a review tool sends it; every member can be given."""
    numbers = itertools.count(1)

    def make(**members: Any) -> Item:
        number = next(numbers)
        return {
            "id": str(number),
            "replyTo": None,
            "prototype": {"id": "p1", "title": "Pay button", "url": None},
            "branch": "main",
            "build": {"number": 1, "commitSha": None},
            "author": {"login": "mona", "localId": 1},
            "body": f"The contrast of button {number} is too low.",
            "target": {"kind": "page"},
            "createdAt": f"2026-11-01T09:{number:02d}:00.000000Z",
            "editedAt": None,
            "deletedAt": None,
            "deletedBy": None,
            "status": "open",
            "resolvedAt": None,
            "resolvedBy": None,
            "url": None,
        } | members

    return make


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    """Where a Hub of real processes may run."""
    return make_hub(tmp_path)


@pytest.fixture
def agent(hub: Hub) -> Iterator[Agent]:
    """Speaks for a review tool and the administrator of that Hub, which has one repository."""
    agent = Agent(hub)
    agent.ask("set_up")
    yield agent
    agent.close()

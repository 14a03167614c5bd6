"""Signing in on this machine, and who may do what."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client, RequestFactory
from pytest_django import Settings

from hub_learning import access
from hub_learning.actions import do_add_repository
from hub_learning.models import Person, Repository, SecurityAuditEntry
from hub_learning.sign_in import issue_local_link, local_administrator, use_local_token
from learning_core.identifiers import Principal


def test_a_link_signs_in_once_and_leads_on(client: Client, administrator: Principal, data_directory: Path) -> None:
    link = issue_local_link(data_directory, "", "/repositories/1/learnings/")
    response = client.get(link)
    assert (response.status_code, response["Location"]) == (302, "/repositories/1/learnings/")
    assert client.session["_auth_user_id"]
    assert Client().get(link).status_code == 403


def test_a_link_that_was_used_still_leads_on_for_who_is_signed_in(
    client: Client, administrator: Principal, data_directory: Path
) -> None:
    link = issue_local_link(data_directory, "", "/healthz")
    client.get(link)
    assert client.get(link)["Location"] == "/healthz"


@pytest.mark.parametrize("destination", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_a_link_leads_nowhere_else(
    client: Client, administrator: Principal, data_directory: Path, destination: str
) -> None:
    assert client.get(issue_local_link(data_directory, "", destination))["Location"] == "/"


def test_a_newer_link_replaces_the_older(data_directory: Path) -> None:
    old, new = [parse_qs(urlsplit(issue_local_link(data_directory, "", "/")).query)["token"][0] for _ in range(2)]
    assert not use_local_token(data_directory, old)
    assert use_local_token(data_directory, new)
    assert not use_local_token(data_directory, new)


def test_the_data_directory_keeps_the_tokens_digest_only(data_directory: Path) -> None:
    token = parse_qs(urlsplit(issue_local_link(data_directory, "", "/")).query)["token"][0]
    path = data_directory / "local-sign-in"
    assert token not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_works_on_this_machine_only(client: Client, administrator: Principal, data_directory: Path) -> None:
    link = issue_local_link(data_directory, "", "/")
    assert client.get(link, REMOTE_ADDR="192.0.2.1").status_code == 403
    assert client.get(link, REMOTE_ADDR="::1").status_code == 302


def test_a_link_is_refused_where_local_sign_in_is_off(
    client: Client, administrator: Principal, data_directory: Path, settings: Settings
) -> None:
    settings.HUB = replace(settings.HUB, local_sign_in=False)
    assert client.get(issue_local_link(data_directory, "", "/")).status_code == 403


def test_a_session_ends_where_local_sign_in_is_switched_off(repository: Repository, settings: Settings) -> None:
    request = RequestFactory().get("/")
    request.user = local_administrator()
    assert access.access_repository_administrator(request, repository).id == request.user.principal_id
    settings.HUB = replace(settings.HUB, local_sign_in=False)
    with pytest.raises(access.NotSignedIn):
        access.access_repository_administrator(request, repository)


def test_signing_out_ends_the_session(signed_in: Client) -> None:
    assert signed_in.get("/sign-out").status_code == 405
    assert signed_in.post("/sign-out").status_code == 302
    assert "_auth_user_id" not in signed_in.session


def test_signing_out_needs_the_forms_token(signed_in: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = signed_in.cookies
    assert strict.post("/sign-out").status_code == 403


def test_nobody_is_nobody(repository: Repository) -> None:
    request = RequestFactory().get("/")
    request.user = AnonymousUser()
    with pytest.raises(access.NotSignedIn):
        access.access_repository_administrator(request, repository)
    with pytest.raises(access.NotSignedIn):
        access.access_hub_administrator(request)


def test_the_local_administrator_administers_local_repositories(
    repository: Repository, administrator: Principal
) -> None:
    elsewhere = do_add_repository(administrator, 7, host="github.com", owner="acme", name="shop")
    request = RequestFactory().get("/")
    request.user = local_administrator()
    principal = access.access_repository_administrator(request, repository)
    assert (principal.kind, principal.assurance) == ("human", "authenticated")
    with pytest.raises(access.AccessRefused):
        access.access_repository_administrator(request, elsewhere)
    assert list(access.repositories_administered(request.user)) == [repository]


def test_someone_from_github_administers_nothing_yet(repository: Repository, settings: Settings) -> None:
    person = Person.objects.create(principal_id="github-user:github.com/9001", login="mona")
    request = RequestFactory().get("/")
    request.user = person
    with pytest.raises(access.AccessRefused):
        access.access_repository_administrator(request, repository)
    with pytest.raises(access.AccessRefused):
        access.access_hub_administrator(request)
    settings.HUB = replace(settings.HUB, administrators=frozenset({person.principal_id}))
    assert access.access_hub_administrator(request).id == person.principal_id


def test_who_is_no_longer_active_is_signed_out(repository: Repository) -> None:
    person = local_administrator()
    person.is_active = False
    request = RequestFactory().get("/")
    request.user = person
    with pytest.raises(access.NotSignedIn):
        access.access_person(request)


def test_the_local_administrator_keeps_their_principal_when_the_port_changes(
    administrator: Principal, settings: Settings
) -> None:
    settings.HUB = replace(settings.HUB, origin="http://127.0.0.1:9999")
    assert local_administrator().principal_id == administrator.id


def test_security_audit_entries_are_only_added(repository: Repository) -> None:
    entry = SecurityAuditEntry.objects.get(action="repository.add")
    entry.action = "other"
    for change in (entry.save, entry.delete, SecurityAuditEntry.objects.all().delete):
        with pytest.raises(TypeError):
            change()
    with pytest.raises(TypeError):
        SecurityAuditEntry.objects.update(action="other")
    entry.refresh_from_db()
    assert entry.action == "repository.add"


def test_answers_carry_the_policy(client: Client, db: None) -> None:
    response = client.get("/healthz")
    assert response.json() == {"ok": True}
    assert "default-src 'none'" in response["Content-Security-Policy"]
    assert "unsafe" not in response["Content-Security-Policy"]
    assert (response["X-Frame-Options"], response["Referrer-Policy"]) == ("DENY", "same-origin")


def test_another_host_name_is_refused(client: Client, db: None) -> None:
    assert client.get("/healthz", headers={"Host": "evil.example"}).status_code == 400


def test_ready_names_what_is_missing(client: Client, db: None) -> None:
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json() == {
        "ok": False,
        "database": "ok",
        "redis": "redis.exceptions.ConnectionError",
    }

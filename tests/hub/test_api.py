"""The JSON API: who may call it, what it refuses, and what it answers."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client

from hub_learning.access import authenticated
from hub_learning.actions import do_add_repository, do_create_token, do_revoke_token
from hub_learning.api import bodies
from hub_learning.models import ApiToken, Comment, Delivery, Repository
from hub_learning.sign_in import local_administrator
from learning_core.identifiers import Principal
from tests.hub.conftest import Item, MakeItem

URL = "/api/v1/repositories/4242/comments"
RECALL = "/api/v1/repositories/4242/recall"
SECRET = "hunter2 correct horse"


def post(client: Client, token: str, body: Any, *, url: str = URL, **headers: str) -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.post(
        url, raw, content_type="application/json", headers={"Authorization": f"Bearer {token}", **headers}
    )


def check_problem(response: Any, status: int, code: str) -> Item:
    assert (response.status_code, response["Content-Type"]) == (status, "application/problem+json")
    problem: Item = json.loads(response.content)
    assert (problem["status"], problem["code"]) == (status, code)
    assert SECRET not in response.content.decode()
    return problem


def test_comments_are_taken_in(client: Client, source_token: str, make_item: MakeItem) -> None:
    response = post(client, source_token, {"comments": [make_item(), make_item()]})
    assert (response.status_code, response.json()) == (200, {"received": 2, "created": 2, "edited": 0, "deleted": 0})
    assert response["Cache-Control"] == "no-store"
    assert Comment.objects.count() == 2


def test_a_repeated_body_is_one_delivery(client: Client, source_token: str, make_item: MakeItem) -> None:
    body = {"comments": [make_item()]}
    assert post(client, source_token, body).json() == post(client, source_token, body).json()
    assert Delivery.objects.count() == 1


def test_a_key_with_another_body_is_a_conflict(client: Client, source_token: str, make_item: MakeItem) -> None:
    key = {"Idempotency-Key": "one"}
    post(client, source_token, {"comments": [make_item()]}, **key)
    check_problem(post(client, source_token, {"comments": [make_item()]}, **key), 409, "idempotency_key_reused")


def test_an_older_status_is_told_by_as_of(client: Client, source_token: str, make_item: MakeItem) -> None:
    item = make_item()
    resolved = item | {"status": "resolved", "resolvedAt": "2026-11-02T00:00:00Z"}
    post(client, source_token, {"comments": [resolved], "asOf": "2026-11-02T00:00:00Z"})
    post(client, source_token, {"comments": [item], "asOf": "2026-11-01T12:00:00Z"})
    assert Comment.objects.get().thread.status == "resolved"


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer hub_wrong", "Basic {token}"])
def test_without_a_token_nothing_is_said(client: Client, source_token: str, header: str) -> None:
    headers = {"Authorization": header.format(token=source_token)} if header else {}
    response = client.post(URL, b"{}", content_type="application/json", headers=headers)
    check_problem(response, 401, "token_refused")
    assert response["WWW-Authenticate"] == "Bearer"


def test_a_revoked_token_is_refused_at_once(
    client: Client, source_token: str, administrator: Principal, make_item: MakeItem
) -> None:
    do_revoke_token(ApiToken.objects.get(), administrator)
    check_problem(post(client, source_token, {"comments": [make_item()]}), 401, "token_refused")


def test_a_token_is_good_for_its_repository_only(
    client: Client, source_token: str, administrator: Principal, make_item: MakeItem
) -> None:
    do_add_repository(administrator, 7, host="local", owner="acme", name="other")
    for other in (7, 999):
        url = f"/api/v1/repositories/{other}/comments"
        check_problem(post(client, source_token, {"comments": [make_item()]}, url=url), 403, "access_refused")
    assert Comment.objects.count() == 0


def test_a_token_is_good_for_its_kind_only(
    client: Client, source_token: str, agent_token: str, make_item: MakeItem
) -> None:
    check_problem(post(client, agent_token, {"comments": [make_item()]}), 403, "access_refused")
    check_problem(post(client, source_token, {"task": "x"}, url=RECALL), 403, "access_refused")


def test_the_hub_keeps_a_tokens_digest_only(client: Client, source_token: str, make_item: MakeItem) -> None:
    post(client, source_token, {"comments": [make_item()]})
    row = ApiToken.objects.get()
    assert row.last_used_at is not None
    values = json.dumps(list(ApiToken.objects.values()), default=str)
    assert row.digest in values
    assert source_token not in values


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        (b"{", 400, "invalid_json"),
        (b'{"comments": [], "comments": []}', 400, "invalid_json"),
        (b'{"comments": NaN}', 400, "invalid_json"),
        (b"[" * 100 + b"]" * 100, 400, "invalid_json"),
        (b'{"comments": 1}', 422, "invalid_request"),
        (b"{}", 422, "invalid_request"),
    ],
)
def test_a_body_that_is_no_message_is_refused(
    client: Client, source_token: str, raw: bytes, status: int, code: str
) -> None:
    check_problem(post(client, source_token, raw), status, code)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"body": None}, "/comments/0/body"),
        ({"body": "a\0" + SECRET}, "/comments/0/body"),
        ({"id": f"{SECRET} "}, "/comments/0/id"),
        ({"createdAt": "yesterday"}, "/comments/0/createdAt"),
        ({"status": SECRET}, "/comments/0/status"),
        ({SECRET: 1}, "/comments/0"),
        ({"author": {"login": "a", "githubId": 1, "localId": 1}}, "/comments/0/author"),
        ({"build": {"number": 0, "commitSha": None}}, "/comments/0/build/number"),
        ({"build": {"number": None, "commitSha": "abc"}}, "/comments/0/build/commitSha"),
        ({"target": {"kind": "file"}}, "/comments/0/target"),
        ({"url": "javascript:alert(1)"}, "/comments/0/url"),
        ({"prototype": {"id": "p", "title": "t", "url": "javascript:alert(1)"}}, "/comments/0/prototype/url"),
    ],
)
def test_a_comment_that_is_refused_is_named_without_its_text(
    client: Client, source_token: str, make_item: MakeItem, change: Item, pointer: str
) -> None:
    response = post(client, source_token, {"comments": [make_item(body=SECRET) | change, make_item()]})
    assert check_problem(response, 422, "invalid_request")["pointer"] == pointer
    assert Comment.objects.count() == 0


def test_a_time_that_is_not_in_the_calendar_is_refused(client: Client, source_token: str, make_item: MakeItem) -> None:
    response = post(client, source_token, {"comments": [make_item(createdAt="2026-02-30T00:00:00Z")]})
    check_problem(response, 422, "invalid_timestamp")


def test_local_people_exist_in_local_repositories_only(
    client: Client, administrator: Principal, make_item: MakeItem
) -> None:
    elsewhere = do_add_repository(administrator, 4242, host="github.com", owner="acme", name="other")
    token = do_create_token(elsewhere, administrator, kind=ApiToken.Kind.SOURCE, name="tool")
    item = make_item(author={"login": "a", "githubId": 1})
    for member in ("author", "deletedBy", "resolvedBy"):
        response = post(client, token, {"comments": [item | {member: {"login": "mona", "localId": 1}}]})
        assert check_problem(response, 422, "invalid_comment")["comment_id"] == item["id"]
    assert post(client, token, {"comments": [item]}).status_code == 200


def test_a_contradiction_is_a_conflict_that_names_the_comment(
    client: Client, source_token: str, make_item: MakeItem
) -> None:
    item = make_item(body=SECRET)
    post(client, source_token, {"comments": [item]})
    response = post(client, source_token, {"comments": [item | {"createdAt": "2026-11-09T00:00:00Z"}]})
    assert check_problem(response, 409, "comment_conflict")["comment_id"] == item["id"]


def test_a_body_may_have_25_megabytes(
    client: Client, source_token: str, make_item: MakeItem, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bodies.MAX_BYTES == 25 * 1024 * 1024
    big = json.dumps({"comments": [make_item(body="x" * 200_000) for _ in range(20)]}).encode()
    assert len(big) > 2_621_440  # Django's own limit
    assert post(client, source_token, big).status_code == 200
    monkeypatch.setattr(bodies, "MAX_BYTES", len(big) - 1)
    check_problem(post(client, source_token, big), 413, "body_too_large")


def test_a_body_without_a_length_is_read_to_its_end(
    client: Client, source_token: str, make_item: MakeItem, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.dumps({"comments": [make_item()]}).encode()

    def post_chunked() -> Any:
        unmeasured: dict[str, Any] = {
            "wsgi.input": io.BytesIO(body),
            "wsgi.input_terminated": True,
            "CONTENT_LENGTH": "",
        }
        headers = {"Authorization": f"Bearer {source_token}", "Transfer-Encoding": "chunked"}
        return client.generic("POST", URL, body, "application/json", headers=headers, **unmeasured)

    assert post_chunked().json()["created"] == 1
    monkeypatch.setattr(bodies, "MAX_BYTES", len(body) - 1)
    check_problem(post_chunked(), 413, "body_too_large")


def test_another_media_type_is_refused(client: Client, source_token: str) -> None:
    response = client.post(
        URL, b"comments=1", content_type="text/plain", headers={"Authorization": f"Bearer {source_token}"}
    )
    check_problem(response, 415, "wrong_media_type")


def test_a_session_is_no_token(signed_in: Client, repository: Repository, make_item: MakeItem) -> None:
    response = signed_in.post(URL, {"comments": [make_item()]}, content_type="application/json")
    check_problem(response, 401, "token_refused")


def test_a_failure_is_answered_without_what_failed(
    client: Client,
    source_token: str,
    make_item: MakeItem,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr("hub_learning.api.views.do_record_comments", fail)
    check_problem(post(client, source_token, {"comments": [make_item()]}), 500, "internal_error")
    assert "builtins.RuntimeError" in caplog.text
    assert SECRET not in caplog.text


def fail_writes(table: str) -> Any:
    """What SQLite says when another process writes for too long."""

    def execute_or_fail(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith(("UPDATE", "INSERT")) and table in sql:
            raise OperationalError("database is locked")
        return execute(sql, *rest)

    return connection.execute_wrapper(execute_or_fail)


def test_a_locked_database_is_busy(client: Client, source_token: str, make_item: MakeItem) -> None:
    with fail_writes("hub_learning_comment"):
        check_problem(post(client, source_token, {"comments": [make_item()]}), 503, "busy")
    assert Comment.objects.count() == 0


def test_a_recall_does_not_need_to_note_its_token(
    client: Client, learning_repository: Repository, agent_token: str
) -> None:
    with fail_writes("hub_learning_apitoken"):
        assert post(client, agent_token, {"task": "Build a form"}, url=RECALL).status_code == 200
    assert ApiToken.objects.get().last_used_at is None


def test_recall_without_a_grant_is_refused(client: Client, agent_token: str) -> None:
    check_problem(post(client, agent_token, {"task": "Build a form"}, url=RECALL), 403, "not_permitted")


def test_recall_answers_text_and_ids(client: Client, learning_repository: Repository, agent_token: str) -> None:
    response = post(client, agent_token, {"task": "Build a form", "budget": 500, "paths": ["a.py"]}, url=RECALL)
    assert (response.status_code, response.json()) == (200, {"text": "", "learnings": []})


def test_recall_refuses_a_task_that_is_none(client: Client, agent_token: str) -> None:
    check_problem(post(client, agent_token, {"task": ""}, url=RECALL), 422, "invalid_request")


def test_the_administrator_is_no_reviewer_of_the_sample(administrator: Principal) -> None:
    assert authenticated(local_administrator()).id == "hub-user:http://127.0.0.1:8000/1000"

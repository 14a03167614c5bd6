"""Comments come late, twice and out of order; the Hub's rows end up the same."""

from __future__ import annotations

import itertools
import json
from datetime import datetime
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from hub_learning.actions import Message, do_record_comments
from hub_learning.actions.comments import DeliveryKeyReused
from hub_learning.intake import CommentConflict, InvalidComment
from hub_learning.models import AnalyticsEvent, Build, Comment, HubSetting, Repository, SecurityAuditEntry, Step, Thread
from tests.hub.conftest import Item, MakeItem

KEYS = itertools.count()
LATER = "2026-11-02T10:00:00.000000Z"
LATEST = "2026-11-03T10:00:00.000000Z"


def send(repository: Repository, *items: Item, key: str | None = None, as_of: str | None = None) -> dict[str, int]:
    body = json.dumps(items).encode()
    message = Message(items, body, key or f"k{next(KEYS)}", datetime.fromisoformat(as_of) if as_of else None)
    return do_record_comments(repository, message)


def the_comment(repository: Repository, item: Item) -> Comment:
    return Comment.objects.get(repository=repository, comment_id=item["id"])


def test_a_new_comment_is_stored_with_its_pin(repository: Repository, make_item: MakeItem) -> None:
    item = make_item(build={"number": 7, "commitSha": "a" * 40}, target={"kind": "file", "path": "a.py", "line": 3})
    assert send(repository, item) == {"received": 1, "created": 1, "edited": 0, "deleted": 0}
    comment = the_comment(repository, item)
    assert (comment.body, comment.author, comment.is_root) == (item["body"], item["author"], True)
    thread = comment.thread
    assert thread.build is not None
    assert (thread.build.number, thread.build.commit_sha) == (7, "a" * 40)
    assert (thread.branch, thread.target) == ("main", {"kind": "file", "path": "a.py", "line": 3})
    assert thread.build.prototype.prototype_id == "p1"


def test_a_message_with_the_same_key_changes_nothing(repository: Repository, make_item: MakeItem) -> None:
    first = make_item(status="resolved", resolvedAt=LATER)
    answer = send(repository, first, key="one")
    send(repository, first | {"status": "open", "resolvedAt": None})
    assert send(repository, first, key="one") == answer
    assert the_comment(repository, first).thread.status == Thread.Status.OPEN


def test_a_message_without_a_key_counts_once_by_its_body(repository: Repository, make_item: MakeItem) -> None:
    item = make_item()
    body = json.dumps([item]).encode()
    do_record_comments(repository, Message([item], body))
    send(repository, item | {"deletedAt": LATER, "body": None})
    assert do_record_comments(repository, Message([item], body))["created"] == 1
    assert the_comment(repository, item).body is None


def test_a_key_with_another_body_is_refused(repository: Repository, make_item: MakeItem) -> None:
    send(repository, make_item(), key="one")
    with pytest.raises(DeliveryKeyReused):
        send(repository, make_item(), key="one")
    assert Comment.objects.count() == 1


def test_an_edit_replaces_the_text_and_withholds_the_comment(repository: Repository, make_item: MakeItem) -> None:
    item = make_item()
    send(repository, item)
    assert not the_comment(repository, item).dirty
    assert send(repository, item | {"body": "new", "editedAt": LATER})["edited"] == 1
    comment = the_comment(repository, item)
    assert (comment.body, comment.version, comment.dirty) == ("new", 2, True)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_newest_text_stays_in_every_order(
    repository: Repository, make_item: MakeItem, order: tuple[int, ...]
) -> None:
    item = make_item(body="first")
    versions = [item, item | {"body": "second", "editedAt": LATER}, item | {"body": "third", "editedAt": LATEST}]
    for number in order:
        send(repository, versions[number])
    assert the_comment(repository, item).body == "third"


def test_an_edit_that_says_the_same_is_still_newer_than_one_before_it(
    repository: Repository, make_item: MakeItem
) -> None:
    item = make_item(body="first")
    send(repository, item)
    assert send(repository, item | {"editedAt": LATEST})["edited"] == 1
    send(repository, item | {"body": "second", "editedAt": LATER})
    comment = the_comment(repository, item)
    assert (comment.body, comment.version, comment.dirty) == ("first", 2, True)
    assert comment.edited_at == datetime.fromisoformat(LATEST)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_deletion_is_final_in_every_order(
    repository: Repository, make_item: MakeItem, order: tuple[int, ...]
) -> None:
    item = make_item(body="first")
    deletion = item | {"body": None, "deletedAt": LATER, "deletedBy": item["author"]}
    versions = [item, item | {"body": "second", "editedAt": LATEST}, deletion]
    for number in order:
        send(repository, versions[number])
    comment = the_comment(repository, item)
    assert (comment.body, comment.deleted_by) == (None, item["author"])
    assert comment.deleted_at is not None


def test_text_that_comes_with_a_deletion_is_not_kept(repository: Repository, make_item: MakeItem) -> None:
    item = make_item(deletedAt=LATER)
    send(repository, item)
    assert the_comment(repository, item).body is None


def test_an_older_status_does_not_replace_a_newer_one(repository: Repository, make_item: MakeItem) -> None:
    item = make_item()
    send(repository, item | {"status": "resolved", "resolvedAt": LATER}, as_of=LATEST)
    send(repository, item, as_of=LATER)
    assert the_comment(repository, item).thread.status == Thread.Status.RESOLVED


def test_a_reopening_forgets_who_resolved(repository: Repository, make_item: MakeItem) -> None:
    item = make_item()
    send(repository, item | {"status": "resolved", "resolvedAt": LATER, "resolvedBy": item["author"]})
    send(repository, item)
    thread = the_comment(repository, item).thread
    assert (thread.status, thread.resolved_at, thread.resolved_by) == ("open", None, None)


def test_a_reply_may_come_before_its_root(repository: Repository, make_item: MakeItem) -> None:
    root = make_item()
    reply = make_item(replyTo=root["id"], target=None, status=None)
    send(repository, reply)
    assert the_comment(repository, reply).thread.build is None
    send(repository, root)
    assert the_comment(repository, reply).thread == the_comment(repository, root).thread
    assert the_comment(repository, reply).thread.build is not None


@pytest.mark.parametrize(
    ("replies", "refused"),
    [
        pytest.param([("a", "a")], "a", id="to itself"),
        pytest.param([("a", "b"), ("b", "a")], "b", id="a cycle"),
        pytest.param([("a", "root"), ("b", "a")], "b", id="to a reply"),
        pytest.param([("b", "a"), ("a", "root")], "a", id="to a reply that comes later"),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_reply_answers_a_root(
    repository: Repository, make_item: MakeItem, replies: list[tuple[str, str]], refused: str, at_once: bool
) -> None:
    send(repository, make_item(id="root"))
    items = [make_item(id=name, replyTo=parent) for name, parent in replies]
    *earlier, last = [items] if at_once else [[item] for item in items]
    for message in earlier:
        send(repository, *message)
    with pytest.raises(InvalidComment) as error:
        send(repository, *last)
    assert error.value.details["comment_id"] == refused


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"createdAt": LATER}, id="written at another time"),
        pytest.param({"replyTo": "other"}, id="a reply now"),
    ],
)
def test_what_a_comment_is_cannot_change(repository: Repository, make_item: MakeItem, change: Item) -> None:
    item, other = make_item(), make_item()
    send(repository, item)
    with pytest.raises(CommentConflict) as refused:
        send(repository, other, item | change)
    assert refused.value.details["comment_id"] == item["id"]
    assert Comment.objects.count() == 1


@pytest.mark.parametrize(
    "change",
    [
        {"deletedAt": "2026-10-31T00:00:00Z"},
        {"editedAt": "2026-11-01T08:59:59Z"},
        {"status": "resolved", "resolvedAt": "2026-10-31T00:00:00Z"},
        {"author": {"login": "mona", "githubId": 1}},
        {"deletedAt": LATER, "deletedBy": {"login": "mona", "githubId": 1}},
        {"status": "resolved", "resolvedAt": LATER, "resolvedBy": {"login": "mona", "githubId": 1}},
    ],
)
def test_what_the_store_would_refuse_for_ever_is_refused_at_once(
    repository: Repository, make_item: MakeItem, change: Item
) -> None:
    with pytest.raises(InvalidComment) as refused:
        send(repository, make_item(), make_item(id="wrong") | change)
    assert refused.value.details["comment_id"] == "wrong"
    assert not Comment.objects.exists()


def test_a_ghost_without_an_id_is_taken_in(repository: Repository, make_item: MakeItem) -> None:
    assert send(repository, make_item(author={"login": "ghost"}))["created"] == 1


def test_a_reply_cannot_move_to_another_thread(repository: Repository, make_item: MakeItem) -> None:
    root, other = make_item(), make_item()
    reply = make_item(replyTo=root["id"])
    send(repository, root, other, reply)
    with pytest.raises(CommentConflict):
        send(repository, reply | {"replyTo": other["id"]})


def test_a_pin_is_frozen_at_first_sight(repository: Repository, make_item: MakeItem) -> None:
    item = make_item(build={"number": 1, "commitSha": None})
    send(repository, item)
    send(
        repository,
        item
        | {"branch": "other", "build": {"number": 2, "commitSha": "b" * 40}, "prototype": make_item()["prototype"]},
    )
    thread = the_comment(repository, item).thread
    assert thread.build is not None
    assert (thread.branch, thread.build.number, thread.build.commit_sha) == ("main", 1, None)
    send(repository, make_item(build={"number": 1, "commitSha": "b" * 40}))
    assert Build.objects.get(number=1).commit_sha is None


def test_builds_are_numbered_in_the_order_first_seen(repository: Repository, make_item: MakeItem) -> None:
    for commit in ("b" * 40, "a" * 40, "b" * 40):
        send(repository, make_item(build={"number": None, "commitSha": commit}))
    assert list(Build.objects.order_by("number").values_list("number", "commit_sha")) == [
        (1, "b" * 40),
        (2, "a" * 40),
    ]


def test_a_comment_without_a_build_belongs_to_the_newest_known_when_it_was_written(
    repository: Repository, make_item: MakeItem
) -> None:
    unknown = {"number": None, "commitSha": None}
    send(repository, make_item(createdAt="2026-11-01T00:00:00Z", build={"number": None, "commitSha": "a" * 40}))
    send(repository, make_item(createdAt="2026-11-05T00:00:00Z", build={"number": None, "commitSha": "b" * 40}))
    between = make_item(createdAt="2026-11-03T00:00:00Z", build=unknown)
    after = make_item(createdAt="2026-11-06T00:00:00Z", build=unknown)
    before = make_item(createdAt="2026-10-01T00:00:00Z", build=unknown)
    send(repository, between, after, before)
    numbers = [the_comment(repository, item).thread.build for item in (between, after, before)]
    assert [build.number for build in numbers if build] == [1, 2, 1]


@pytest.mark.parametrize(
    ("known", "told", "kept"),
    [
        ({"login": "a", "localId": 1}, {"login": "b", "localId": 1}, {"login": "b", "localId": 1}),
        ({"login": "a", "githubId": 1}, {"login": "ghost", "githubId": 10137}, {"login": "a", "githubId": 1}),
        ({"login": "a", "githubId": 1}, None, {"login": "a", "githubId": 1}),
        ({"login": "a", "githubId": 1}, {"login": "b", "githubId": 2}, {"login": "a", "githubId": 1}),
        ({"login": "a"}, {"login": "a", "githubId": 1}, {"login": "a", "githubId": 1}),
        ({"login": "a"}, {"login": "b"}, {"login": "a"}),
        ({"login": "a"}, None, {"login": "a"}),
        (None, {"login": "a"}, {"login": "a"}),
        ({"login": "ghost", "githubId": 10137}, {"login": "a", "githubId": 1}, {"login": "a", "githubId": 1}),
    ],
)
def test_an_author_with_an_id_stays(
    repository: Repository, make_item: MakeItem, known: Any, told: Any, kept: Any
) -> None:
    if any("githubId" in (person or {}) for person in (known, told)):
        repository.host = "github.com"
    item = make_item(author=known)
    send(repository, item)
    send(repository, item | {"author": told})
    assert the_comment(repository, item).author == kept


def test_analytics_events_carry_ids_only(repository: Repository, make_item: MakeItem) -> None:
    root = make_item()
    send(repository, root, make_item(replyTo=root["id"]))
    send(repository, root | {"status": "resolved", "resolvedAt": LATER})
    send(repository, root)
    names = list(AnalyticsEvent.objects.order_by("pk").values_list("name", flat=True))
    assert names == [
        "prototype_registered",
        "prototype_first_published",
        "build_published",
        "review_comment_created",
        "review_reply_added",
        "review_thread_resolved",
        "review_thread_reopened",
    ]
    values = json.dumps(list(AnalyticsEvent.objects.values()), default=str)
    assert root["body"] not in values


def test_a_deletion_asks_for_the_removal_in_the_same_transaction(
    learning_repository: Repository, make_item: MakeItem
) -> None:
    item = make_item()
    send(learning_repository, item)
    send(learning_repository, item | {"body": None, "deletedAt": LATER, "deletedBy": item["author"]})
    step = Step.objects.get(kind=Step.Kind.REDACT)
    assert (step.subject, step.state, step.urgency) == (item["id"], Step.State.WAITING, 0)
    assert HubSetting.objects.filter(key=HubSetting.Key.PURGE).exists()
    entry = SecurityAuditEntry.objects.get(action="comment.erase")
    assert entry.actor == f"hub-user:{learning_repository.origin}/1"


def test_a_refused_message_leaves_nothing_behind(learning_repository: Repository, make_item: MakeItem) -> None:
    item = make_item()
    send(learning_repository, item)
    before = Step.objects.get(kind=Step.Kind.IMPORT).version
    edit = item | {"body": "new", "editedAt": LATER}
    with pytest.raises(CommentConflict):
        send(learning_repository, edit, make_item(), make_item(id=item["id"], createdAt=LATEST), key="again")
    assert the_comment(learning_repository, item).body == item["body"]
    assert Comment.objects.count() == 1
    assert Step.objects.get(kind=Step.Kind.IMPORT).version == before
    assert send(learning_repository, edit, key="again")["edited"] == 1


def test_a_refused_message_still_deletes(learning_repository: Repository, make_item: MakeItem) -> None:
    item, other, unseen = make_item(), make_item(), make_item(id="unseen")
    send(learning_repository, item, other)
    deleted = {"body": None, "deletedAt": LATER}
    with pytest.raises(CommentConflict) as refused:
        send(learning_repository, other | {"createdAt": LATEST}, item | deleted, unseen | deleted, make_item(id="new"))
    assert refused.value.details["comment_id"] == other["id"]
    send(learning_repository, unseen)
    known = {row.comment_id: row.body for row in Comment.objects.all()}
    assert known == {item["id"]: None, other["id"]: other["body"], "unseen": None}
    assert Step.objects.get(kind=Step.Kind.REDACT).subject == item["id"]


@pytest.mark.parametrize(
    "change",
    [
        {"createdAt": "2026-11-01T08:00:00Z", "status": "resolved", "resolvedAt": "2026-11-01T08:00:01Z"},
        {"createdAt": "2026-11-01T08:00:00Z", "deletedAt": "2026-11-01T08:00:01Z"},
        {"replyTo": "other"},
        {"author": {"login": "z", "localId": 9}},
    ],
)
def test_a_deletion_is_not_refused_for_a_detail(repository: Repository, make_item: MakeItem, change: Item) -> None:
    item = make_item()
    send(repository, item)
    assert send(repository, item | {"body": None, "deletedAt": LATER} | change)["deleted"] == 1
    comment = the_comment(repository, item)
    assert comment.deleted_at is not None
    assert comment.deleted_at >= comment.created_at
    assert comment.thread.resolved_at is None or comment.thread.resolved_at >= comment.created_at


@pytest.mark.parametrize(
    "change", [{"deletedAt": "2026-10-31T00:00:00Z"}, {"deletedBy": {"login": "mona", "githubId": 1}}]
)
def test_a_deletion_that_is_refused_erases_the_text(repository: Repository, make_item: MakeItem, change: Item) -> None:
    item = make_item()
    send(repository, item)
    with pytest.raises(InvalidComment):
        send(repository, item | {"body": None, "deletedAt": LATER} | change)
    comment = the_comment(repository, item)
    assert (comment.body, comment.deleted_by) == (None, None)
    assert comment.deleted_at is not None
    assert comment.deleted_at >= comment.created_at


def test_a_message_is_stored_whole_or_not_at_all(
    repository: Repository, make_item: MakeItem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr("hub_learning.actions.comments._follow_up", fail)
    with pytest.raises(RuntimeError):
        send(repository, make_item())
    assert not Comment.objects.exists()
    assert not AnalyticsEvent.objects.exists()


def test_a_big_message_takes_few_statements(
    repository: Repository, make_item: MakeItem, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    items = [make_item(id=str(number), createdAt=LATER) for number in range(1000)]
    with django_assert_max_num_queries(60):
        send(repository, *items)
    assert Comment.objects.count() == 1000

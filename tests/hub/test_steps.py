"""What the steps do with a real store: import, label, consolidate, redact; and what is withheld meanwhile."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from hub_learning import jobs, purge, snapshot, stores, turn
from hub_learning.access import authenticated
from hub_learning.actions import (
    do_accept,
    do_add_grant,
    do_choose_labeler,
    do_disable,
    do_enable,
    do_reject,
    do_request_run,
    do_retire,
    do_withdraw_grant,
)
from hub_learning.management.commands.learning import run as learning
from hub_learning.management.commands.learning import verify_all
from hub_learning.models import Comment, HubSetting, LearningRun, Repository, SecurityAuditEntry, Step
from hub_learning.sign_in import local_administrator
from learning_core.canonical import parse_json
from learning_core.errors import EvidenceUnavailable, NotPermitted, StaleReview
from learning_core.identifiers import Principal
from learning_core.plugins import LabelAnswer, LabelRequest, MemoryLabeler
from learning_core.schemas import is_valid
from tests.hub.conftest import Item, MakeItem
from tests.hub.test_intake import LATER, LATEST, send

SENTINEL = "quixotic-zebra-7731"


def run(repository: Repository) -> None:
    """One turn, in this process."""
    turn.run_turn(repository.pk, jobs.run_step)


def recurring(make_item: MakeItem) -> list[Item]:
    """A theme that three people raise in three threads of three prototypes."""
    bodies = [
        "The contrast of this button is too low, please get it to 4.5:1.",
        "Too little contrast here: grey on white. Please raise the contrast.",
        "I cannot read the label, the contrast is too low.",
    ]
    return [
        make_item(
            body=body,
            author={"login": f"person{number}", "localId": number},
            prototype={"id": f"p{number}", "title": f"Prototype {number}", "url": None},
        )
        for number, body in enumerate(bodies, start=1)
    ]


@pytest.fixture
def learned(learning_repository: Repository, make_item: MakeItem) -> Repository:
    """A repository whose first run has made a proposal."""
    send(learning_repository, *recurring(make_item))
    run(learning_repository)
    assert proposals(learning_repository)
    return learning_repository


def proposals(repository: Repository, **arguments: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = stores.open_store(repository).memories(**arguments)["memories"]
    return rows


def delete(item: Item) -> Item:
    return item | {"body": None, "deletedAt": LATEST, "deletedBy": item["author"]}


def test_the_loop_runs_from_comments_to_proposals(learning_repository: Repository, make_item: MakeItem) -> None:
    send(learning_repository, *recurring(make_item))
    run(learning_repository)
    (proposal,) = proposals(learning_repository)
    assert (proposal["state"], proposal["theme"]) == ("proposed", "color-contrast")
    assert set(Step.objects.values_list("kind", "state")) == {
        ("import", "done"),
        ("label", "done"),
        ("consolidate", "done"),
    }
    runs = {row.kind: row for row in LearningRun.objects.all()}
    assert {row.state for row in runs.values()} == {LearningRun.State.DONE}
    assert (runs["label"].progress_done, runs["label"].progress_total) == (3, 3)
    assert runs["consolidate"].result["stored"] == [proposal["id"]]
    assert runs["consolidate"].result["complete"] is True


def test_nothing_is_learned_before_a_labeler_is_chosen(
    repository: Repository, administrator: Principal, make_item: MakeItem
) -> None:
    do_add_grant(repository, administrator, purposes=["review", "instruction"], reason="test")
    send(repository, *recurring(make_item))
    run(repository)
    assert not LearningRun.objects.exists()
    do_choose_labeler(administrator, "offline")
    run(repository)
    assert proposals(repository)


def test_nothing_is_learned_without_consent(
    repository: Repository, administrator: Principal, make_item: MakeItem
) -> None:
    do_choose_labeler(administrator, "offline")
    do_enable(repository, administrator)
    send(repository, *recurring(make_item))
    run(repository)
    failed = LearningRun.objects.get()
    assert (failed.state, failed.error_code, failed.retry_at) == ("failed", "not_permitted", None)
    assert failed.message == jobs.MESSAGES["not_permitted"]
    do_add_grant(repository, administrator, purposes=["review", "instruction"], reason="test")
    run(repository)
    assert proposals(repository)


def test_a_disabled_repository_learns_nothing_but_still_removes(
    learned: Repository, administrator: Principal, make_item: MakeItem
) -> None:
    item = Comment.objects.order_by("pk").first()
    assert item is not None
    do_disable(learned, administrator)
    send(learned, make_item(body="New comment about contrast."))
    send(learned, delete(make_item(id=item.comment_id, createdAt=item.created_at.isoformat())))
    run(learned)
    assert LearningRun.objects.filter(kind="import").count() == 1
    assert LearningRun.objects.get(kind="redact").result["removed"] > 0


def test_a_snapshot_is_a_complete_log(repository: Repository, make_item: MakeItem, monkeypatch: Any) -> None:
    monkeypatch.setattr(snapshot, "THREADS_PER_PAGE", 2)
    roots = [make_item() for _ in range(5)]
    replies = [make_item(replyTo=roots[number]["id"], target=None, status=None) for number in (0, 0, 4)]
    orphan = make_item(replyTo="unknown")
    send(repository, *roots, *replies, orphan, delete(roots[1]))
    log = parse_json(snapshot.take_snapshot(repository).open().read())
    assert is_valid("hub-comment-log", log)
    lists = [page for page in log["pages"] if page["action"] == "list_comments"]
    assert [(page["cursor"], page["hasMore"], page["nextCursor"]) for page in lists] == [
        (None, True, "1"),
        ("1", True, "2"),
        ("2", False, None),
    ]
    comments = [comment for page in lists for comment in page["comments"]]
    assert [comment["id"] for comment in comments] == [root["id"] for root in roots]
    assert [comment["replyCount"] for comment in comments] == [2, 0, 0, 0, 1]
    assert comments[1]["body"] is None
    listed = [reply["id"] for page in log["pages"] for reply in page.get("replies", [])]
    assert listed == [reply["id"] for reply in replies]


def test_a_snapshot_of_nothing_is_complete_too(repository: Repository) -> None:
    log = parse_json(snapshot.take_snapshot(repository).open().read())
    assert is_valid("hub-comment-log", log)
    assert [page["comments"] for page in log["pages"]] == [[]]


def test_a_snapshot_never_goes_back_behind_the_last(learned: Repository) -> None:
    learned.refresh_from_db()
    assert learned.captured_at is not None
    learned.captured_at = timezone.now().replace(year=2100)
    taken = snapshot.take_snapshot(learned)
    assert taken.captured_at > learned.captured_at


def test_an_unchanged_repository_is_imported_again_without_new_events(learned: Repository) -> None:
    Step.objects.update(state=Step.State.WAITING)
    run(learned)
    last = LearningRun.objects.filter(kind="import").order_by("pk").last()
    assert last is not None
    assert last.result["imported"] == {"episodes": 0, "events": 0}


# Deletion and edit ---------------------------------------------------------------------------------------------------


def test_a_deletion_is_withheld_at_once_and_then_removed(learned: Repository, make_item: MakeItem) -> None:
    row = Comment.objects.order_by("pk").first()
    assert row is not None
    send(learned, delete(make_item(id=row.comment_id, createdAt=row.created_at.isoformat())))
    assert stores.withheld_comments(learned) == {row.comment_id}
    (proposal,) = proposals(learned, withheld_comments=stores.withheld_comments(learned))
    assert proposal["withheld"]
    run(learned)
    assert stores.withheld_comments(learned) == frozenset()
    assert LearningRun.objects.get(kind="redact").result["removed"] == 2  # the comment and its label


def test_what_cites_a_deleted_comment_cannot_be_accepted(
    learned: Repository, administrator: Principal, make_item: MakeItem
) -> None:
    (proposal,) = proposals(learned)
    row = Comment.objects.order_by("pk").first()
    assert row is not None
    send(learned, delete(make_item(id=row.comment_id, createdAt=row.created_at.isoformat())))
    with pytest.raises(EvidenceUnavailable):
        do_accept(learned, administrator, proposal["id"], review_digest=proposal["reviewDigest"])
    assert proposals(learned)[0]["state"] == "proposed"


def test_an_edit_is_withheld_until_it_is_imported(learned: Repository, make_item: MakeItem) -> None:
    row = Comment.objects.order_by("pk").first()
    assert row is not None
    edited = make_item(id=row.comment_id, createdAt=row.created_at.isoformat(), body="Fine now.", editedAt=LATER)
    send(learned, edited)
    assert stores.withheld_comments(learned) == {row.comment_id}
    run(learned)
    assert stores.withheld_comments(learned) == frozenset()


def test_a_comment_that_changes_during_the_import_stays_withheld(
    learned: Repository, make_item: MakeItem, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = Comment.objects.order_by("pk").first()
    assert row is not None
    item = make_item(id=row.comment_id, createdAt=row.created_at.isoformat())
    send(learned, item | {"body": "Second.", "editedAt": LATER})
    open_log = snapshot.Snapshot.open

    def read_then_edit(taken: snapshot.Snapshot) -> BinaryIO:
        log = io.BytesIO(open_log(taken).read())
        send(learned, item | {"body": "Third.", "editedAt": LATEST})
        return log

    monkeypatch.setattr(snapshot.Snapshot, "open", read_then_edit)
    step = Step.objects.get(kind=Step.Kind.IMPORT)
    jobs.run_step(step)
    assert stores.withheld_comments(learned) == {row.comment_id}
    step.refresh_from_db()
    assert step.state == Step.State.WAITING


def test_a_removal_is_in_the_name_of_who_deleted(learned: Repository, make_item: MakeItem) -> None:
    rows = list(Comment.objects.order_by("pk"))
    known = make_item(id=rows[0].comment_id, createdAt=rows[0].created_at.isoformat())
    unknown = make_item(id=rows[1].comment_id, createdAt=rows[1].created_at.isoformat())
    by_bot = make_item(id=rows[2].comment_id, createdAt=rows[2].created_at.isoformat())
    bot = {"login": "bot", "localId": 90, "bot": True}
    send(learned, delete(known), delete(unknown) | {"deletedBy": None}, delete(by_bot) | {"deletedBy": bot})
    comments = {row.comment_id: row for row in Comment.objects.all()}
    removers = [jobs.remover(learned, comments[item["id"]]).id for item in (known, unknown, by_bot)]
    assert removers == [f"hub-user:{learned.origin}/1", learned.enabled_by, learned.enabled_by]


def test_a_deletion_of_what_was_never_imported_succeeds(learning_repository: Repository, make_item: MakeItem) -> None:
    item = make_item()
    send(learning_repository, item)
    send(learning_repository, delete(item))
    run(learning_repository)
    assert LearningRun.objects.get(kind="redact").result["removed"] == 0
    assert set(Step.objects.values_list("state", flat=True)) == {"done"}


def test_a_removal_whose_traces_wait_is_tried_again(
    learned: Repository, make_item: MakeItem, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = Comment.objects.order_by("pk").first()
    assert row is not None
    send(learned, delete(make_item(id=row.comment_id, createdAt=row.created_at.isoformat())))
    with monkeypatch.context() as blocked:
        blocked.setattr(stores, "finish_purge", lambda _: False)
        run(learned)
    failed = LearningRun.objects.get(kind="redact")
    assert (failed.state, failed.error_code) == ("failed", "purge_pending")
    step = Step.objects.get(kind=Step.Kind.REDACT)
    assert (step.state, step.not_before) == (Step.State.WAITING, failed.retry_at)
    Step.objects.update(not_before=timezone.now())
    run(learned)
    step.refresh_from_db()
    assert step.state == Step.State.DONE


@pytest.mark.django_db(transaction=True)
def test_a_purge_is_finished_after_the_commit(
    repository: Repository,
    make_item: MakeItem,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    item = make_item()
    send(repository, item)
    send(repository, delete(item))
    assert not HubSetting.objects.filter(key=HubSetting.Key.PURGE).exists()
    assert purge.finish_purge()


# Failures ------------------------------------------------------------------------------------------------------------


def test_a_log_that_is_refused_names_the_comment(learning_repository: Repository, make_item: MakeItem) -> None:
    item = make_item()
    send(learning_repository, item)
    run(learning_repository)
    Comment.objects.update(author={"login": "lisa", "localId": 2})
    do_request_run(learning_repository, authenticated(local_administrator()))
    run(learning_repository)
    failed = LearningRun.objects.get(error_code="invalid_log")
    assert failed.message == f"{jobs.MESSAGES['invalid_log']} Comment: {item['id']}."


def test_a_failure_keeps_its_code_and_never_its_text(
    learning_repository: Repository,
    make_item: MakeItem,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ValueError(SENTINEL)

    caplog.set_level("DEBUG")
    monkeypatch.setattr(snapshot.Snapshot, "open", fail)
    send(learning_repository, make_item(body=SENTINEL))
    run(learning_repository)
    failed = LearningRun.objects.get()
    assert (failed.state, failed.error_code) == ("failed", "internal_error")
    assert failed.retry_at is not None
    assert "builtins.ValueError" in caplog.text
    assert SENTINEL not in caplog.text
    assert SENTINEL not in json.dumps(list(LearningRun.objects.values()), default=str)


@pytest.mark.parametrize("kind", list(Step.Kind.values))
def test_a_failure_in_any_step_leaves_no_text(
    learned: Repository,
    make_item: MakeItem,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: str,
) -> None:
    def fail(*_: Any) -> bool:
        body = Comment.objects.exclude(body=None).values_list("body", flat=True)[0]
        raise ValueError(f"{SENTINEL}: {body}") from RuntimeError(SENTINEL)

    caplog.set_level("DEBUG")
    item = make_item(body=SENTINEL)
    send(learned, item)
    if kind == Step.Kind.REDACT:
        send(learned, make_item(body=SENTINEL), item | {"body": None, "deletedAt": LATER, "deletedBy": item["author"]})
    monkeypatch.setitem(jobs.STEPS, kind, fail)
    run(learned)
    failed = LearningRun.objects.get(kind=kind, state=LearningRun.State.FAILED)
    assert failed.error_code == "internal_error"
    assert Comment.objects.filter(body=SENTINEL).exists(), "the search finds what is there"
    kept = (LearningRun.objects, Step.objects, SecurityAuditEntry.objects, Session.objects)
    rows = json.dumps([list(manager.values()) for manager in kept], default=str)
    assert SENTINEL not in rows
    assert SENTINEL not in caplog.text
    assert "builtins.ValueError" in caplog.text


def test_a_job_never_raises(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ValueError(SENTINEL)

    monkeypatch.setattr(turn, "run_turn", fail)
    jobs.run_turn_job(repository.pk)


def test_an_interrupted_run_is_carried_on(learning_repository: Repository, make_item: MakeItem) -> None:
    send(learning_repository, *recurring(make_item))
    step = Step.objects.get(kind=Step.Kind.IMPORT)
    interrupted = LearningRun.objects.create(repository=learning_repository, kind=step.kind)
    Step.objects.update(run=interrupted, attempts=1)
    run(learning_repository)
    interrupted.refresh_from_db()
    assert interrupted.state == LearningRun.State.DONE
    assert LearningRun.objects.filter(kind="import").count() == 1


class WatchedLabeler:
    """A labeler that does something before it answers its first request, and notes each request."""

    def __init__(self, inner: MemoryLabeler, log: list[str], first: Callable[[], Any]) -> None:
        self.inner, self.log, self.first = inner, log, first
        self.manifest, self.close = inner.manifest, inner.close

    def label(self, request: LabelRequest) -> LabelAnswer:
        if "request" not in self.log:
            self.first()
        self.log.append("request")
        return self.inner.label(request)


def test_labeling_goes_on_request_by_request_and_gives_way_to_a_deletion(
    learning_repository: Repository, make_item: MakeItem, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [make_item(body=f"{number} contrast " + "x" * 9000) for number in range(4)]
    send(learning_repository, *items)
    log: list[str] = []
    deletion = items[3] | {"body": None, "deletedAt": LATER, "deletedBy": items[3]["author"]}
    create = stores.create_labeler
    monkeypatch.setattr(
        stores,
        "create_labeler",
        lambda repository: WatchedLabeler(create(repository), log, lambda: send(learning_repository, deletion)),
    )
    for kind in (Step.Kind.REDACT, Step.Kind.LABEL):

        def noted(*arguments: Any, kind: str = kind, original: Any = jobs.STEPS[kind]) -> bool:
            log.append(kind)
            goes_on: bool = original(*arguments)
            return goes_on

        monkeypatch.setitem(jobs.STEPS, kind, noted)
    run(learning_repository)
    assert log == ["label", "request", "redact", "label", "request", "request"]
    done = LearningRun.objects.get(kind="label")
    assert (done.progress_done, done.progress_total) == (3, 3)


# Decisions -----------------------------------------------------------------------------------------------------------


def audit_of(action: str) -> SecurityAuditEntry:
    return SecurityAuditEntry.objects.get(action=action)


def test_accepting_is_audited_with_the_stores_entry(learned: Repository, administrator: Principal) -> None:
    (proposal,) = proposals(learned)
    result = do_accept(learned, administrator, proposal["id"], review_digest=proposal["reviewDigest"])
    assert result["memory"]["state"] == "accepted"
    entry = audit_of("learning.accept")
    assert (entry.actor, entry.subject, entry.scope) == (administrator.id, proposal["id"], learned.scope)
    assert entry.position is not None
    do_retire(learned, administrator, proposal["id"], reason="no longer")
    assert (audit_of("learning.retire").position or 0) > entry.position


def test_an_edit_is_accepted_text(learned: Repository, administrator: Principal) -> None:
    (proposal,) = proposals(learned)
    result = do_accept(
        learned, administrator, proposal["id"], review_digest=proposal["reviewDigest"], text="Keep contrast at 4.5:1."
    )
    assert result["memory"]["text"] == "Keep contrast at 4.5:1."


def test_rejecting_is_audited(learned: Repository, administrator: Principal) -> None:
    (proposal,) = proposals(learned)
    do_reject(learned, administrator, proposal["id"], review_digest=proposal["reviewDigest"], reason="no")
    assert audit_of("learning.reject").position is not None


def test_a_refused_decision_leaves_no_audit_row(learned: Repository, administrator: Principal) -> None:
    (proposal,) = proposals(learned)
    with pytest.raises(StaleReview):
        do_accept(learned, administrator, proposal["id"], review_digest="sha256:" + "0" * 64)
    assert not SecurityAuditEntry.objects.filter(action="learning.accept").exists()


def test_granting_enables_and_withdrawing_takes_effect_at_once(learned: Repository, administrator: Principal) -> None:
    learned.refresh_from_db()
    assert (learned.enabled, learned.enabled_by) == (True, administrator.id)
    (grant,) = stores.open_store(learned).list_grants()["grants"]
    assert audit_of("grant.add").subject == grant["id"]
    do_withdraw_grant(learned, administrator, grant["id"], reason="stop")
    with pytest.raises(NotPermitted):
        proposals(learned)
    assert audit_of("grant.withdraw").subject == grant["id"]


def test_a_run_can_be_asked_for(learned: Repository, administrator: Principal) -> None:
    do_request_run(learned, administrator)
    assert Step.objects.get(kind=Step.Kind.IMPORT).state == Step.State.WAITING
    assert audit_of("repository.run").actor == administrator.id


# Where text is -------------------------------------------------------------------------------------------------------


def test_text_is_in_comment_rows_and_the_store_only(
    learning_repository: Repository,
    make_item: MakeItem,
    data_directory: Path,
    caplog: pytest.LogCaptureFixture,
    all_rows: Callable[[], str],
) -> None:
    caplog.set_level("DEBUG")
    items = recurring(make_item)
    items[0]["body"] = f"{SENTINEL}: the contrast is too low."
    send(learning_repository, *items)
    run(learning_repository)
    rows = all_rows()
    assert rows.count(SENTINEL) == 1  # the comment's own row: the control
    assert SENTINEL not in caplog.text
    holders = {path.name for path in data_directory.rglob("*") if path.is_file() and SENTINEL in read(path)}
    assert holders <= {"learning.sqlite", "learning.sqlite-wal"}
    assert holders
    send(learning_repository, delete(items[0]))
    run(learning_repository)
    assert SENTINEL not in all_rows()
    assert not [path for path in data_directory.rglob("*") if path.is_file() and SENTINEL in read(path)]


def read(path: Path) -> str:
    return path.read_bytes().decode("latin-1")


@pytest.fixture
def all_rows() -> Callable[[], str]:
    """Every row of every table of the Hub's database, as text."""
    from django.db import connection

    def dump() -> str:
        with connection.cursor() as cursor:
            tables = connection.introspection.table_names(cursor)
            assert "hub_learning_comment" in tables
            return "\n".join(
                str(row) for table in tables for row in cursor.execute(f"SELECT * FROM {table}").fetchall()
            )

    return dump


@pytest.mark.parametrize("kept", ["nothing", "an earlier copy"])
def test_verify_notices_a_store_that_is_not_the_one_seen_last(
    learning_repository: Repository,
    make_item: MakeItem,
    tmp_path: Path,
    kept: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    directory = stores.store_directory(learning_repository.pk)
    shutil.copytree(directory, tmp_path / "earlier")
    send(learning_repository, *recurring(make_item))
    run(learning_repository)
    number = str(learning_repository.pk)
    named = ["verify", "--json", "--repository", number]
    assert (verify_all(["verify", "--json"]), learning(named, sys.stdout)) == (0, 0)
    shutil.rmtree(directory)
    if kept != "nothing":
        shutil.copytree(tmp_path / "earlier", directory)
    capsys.readouterr()
    assert verify_all(["verify", "--json"]) == 3
    found = json.loads(capsys.readouterr().out)["repositories"][number]
    assert learning(named, sys.stdout) == 3
    for result in (found, json.loads(capsys.readouterr().out)):
        assert [problem["code"] for problem in result["problems"]] == ["rolled_back"]


def test_what_was_seen_of_a_store_never_goes_back(learning_repository: Repository) -> None:
    before = stores.find_anchor(learning_repository)
    assert before is not None
    shutil.rmtree(stores.store_directory(learning_repository.pk))
    stores.note_anchor(learning_repository, stores.open_store(learning_repository))
    assert stores.find_anchor(learning_repository) == before

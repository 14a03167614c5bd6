"""What the worker runs. The steps hold no rules: they open the store, call it, and write down how it went.

Nothing that a step raises leaves this module: RQ would keep the exception's text in Redis. What is kept is a code.

Source: design.md, decisions 7 to 9.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime

from django.db import transaction
from django.db.models import Min
from django.utils import timezone
from rq.timeouts import JobTimeoutException

from hub_learning import snapshot, steps, stores, turn, wakeups
from hub_learning.actions.comments import person_principal
from hub_learning.logs import describe_failure
from hub_learning.models import Comment, LearningRun, Repository, Step
from learning_core.errors import LearningError
from learning_core.identifiers import Principal, parse_principal
from learning_core.timestamps import format_instant

logger = logging.getLogger(__name__)

HUB_AGENT = parse_principal("agent:hub-learning", assurance="authenticated")

LABEL_SECONDS = 10.0
"""How long one round of labelling goes on before the turn looks again at everything."""

MESSAGES = {
    "not_permitted": "No active consent permits it. It continues when consent is given.",
    "damaged": "A stored record is damaged. It continues after the store is repaired.",
    "invalid_configuration": "The configuration is refused. A Hub administrator has to correct it.",
    "plugin_failed": "The labeler or another replaceable part failed.",
    "timeout": "It took too long and was stopped.",
    "interrupted": "It was interrupted again and again.",
    "invalid_log": "The comments contradict themselves or what is stored. It continues when they are corrected.",
    "storage_failed": "The storage refused the write; nothing was stored.",
    "purge_pending": "The text is removed. Its last traces go as soon as nobody reads the store.",
    "no_progress": "The labeler answered, but no comment could be marked as asked about.",
}
NEEDS_PERSON = frozenset(
    {
        "not_permitted",
        "damaged",
        "invalid_configuration",
        "person_required",
        "wrong_repository",
        "invalid_log",
        "invalid_history",
        "unsafe_storage",
        "newer_store",
        "unsupported",
    }
)
"""Trying these again changes nothing. Consent, a repair or a new comment asks for the step again."""


def run_turn_job(repository_id: int) -> None:
    """The RQ job: one turn of a repository. It never raises."""
    try:
        wakeups.accept_wakeup(repository_id)
        turn.run_turn(repository_id, run_step)
    except Exception as error:
        logger.error("the turn of repository %s ended early: %s", repository_id, describe_failure(error))


def run_step(step: Step) -> None:
    """Run one round of a step and mark it: going on, done, or failed with a code."""
    steps.mark_started(step, timezone.now())
    repository = step.repository
    if step.kind != Step.Kind.REDACT and not (repository.enabled and stores.chosen_labeler()):
        steps.mark_done(step, timezone.now())
        return
    run = step.run or _start_run(step)
    try:
        goes_on = STEPS[step.kind](repository, step, run)
        stores.note_anchor(repository, stores.open_store(repository))
    except JobTimeoutException:
        _fail(step, run, "timeout")
    except LearningError as error:
        run.usage = error.details.get("labelingResult", {}).get("usage", run.usage)
        _fail(step, run, error.code, comment_id=error.details.get("comment_id"))
    except Exception as error:
        logger.error("step %s of repository %s failed: %s", step.kind, repository.pk, describe_failure(error))
        _fail(step, run, "internal_error")
    else:
        _finish_round(step, run, goes_on=goes_on)


# Steps ---------------------------------------------------------------------------------------------------------------


def redact(repository: Repository, step: Step, run: LearningRun) -> bool:
    """Remove a deleted comment's text from the store, in the name of whoever deleted it."""
    comment = Comment.objects.get(repository=repository, comment_id=step.subject)
    result = stores.open_store(repository).redact_comment(remover(repository, comment), comment.comment_id)
    clear_dirty({comment.pk: comment.version})
    run.result = {"removed": result["removed"], "commentId": comment.comment_id}
    if not stores.finish_purge(repository):
        raise PurgePending("Removed text is still in the store's write-ahead log, because another process reads.")
    return False


def import_comments(repository: Repository, step: Step, run: LearningRun) -> bool:
    """Bring a complete snapshot of the Hub's rows into the store, and remove the text of deleted comments."""
    taken = _take_snapshot(repository, step, run)
    importer = parse_principal(repository.enabled_by, assurance="authenticated")
    result = stores.open_store(repository).import_comments(
        importer, taken.open(), redact_deleted=True, repository=repository.pk
    )
    Repository.objects.filter(pk=repository.pk).update(captured_at=taken.captured_at)
    clear_dirty(taken.carried)
    run.result = {"imported": result["imported"], "collection": result["collection"]["id"]}
    steps.enqueue_step(repository, Step.Kind.LABEL)
    return False


def label(repository: Repository, step: Step, run: LearningRun) -> bool:
    """Ask the labeler, one request after the other, until none remains or something more urgent is asked for.

    Finding what to ask about reads every thread, so a round makes as many requests as its time allows; the queue is
    looked at between them, so a deletion or an import waits for one request at most.
    """
    ends = time.monotonic() + LABEL_SECONDS
    before = run.progress_done

    def may_continue() -> bool:
        return run.progress_done == before or not (time.monotonic() > ends or steps.has_more_urgent(step))

    def show_progress(done: int, total: int) -> None:
        run.progress_done, run.progress_total = before + done, before + total
        run.save(update_fields=["progress_done", "progress_total"])

    with closing(stores.create_labeler(repository)) as labeler:
        result = stores.open_store(repository).label(
            HUB_AGENT,
            labeler,
            may_continue=may_continue,
            on_progress=show_progress,
            withheld_comments=stores.withheld_comments(repository),
        )
    run.usage = add_usage(run.usage, result["usage"])
    run.progress_done = before + result["considered"]
    run.progress_total = run.progress_done + result["remaining"]
    if result["remaining"] and not result["considered"]:
        raise NoProgress("The labeler was asked about no comment.")
    if result["remaining"]:
        return True
    steps.enqueue_step(repository, Step.Kind.CONSOLIDATE)
    return False


def consolidate(repository: Repository, step: Step, run: LearningRun) -> bool:
    """Propose what recurs, from the first comment to the newest complete capture."""
    first = Comment.objects.filter(repository=repository).aggregate(first=Min("created_at"))["first"]
    if first is None or repository.captured_at is None or first >= repository.captured_at:
        return False
    result = stores.open_store(repository).consolidate(
        HUB_AGENT,
        stores.create_consolidator(repository),
        time_from=format_instant(first),
        time_to=format_instant(repository.captured_at),
        max_new=repository.max_new,
        withheld_comments=stores.withheld_comments(repository),
    )
    run.result = {
        "complete": result["complete"],
        "stored": [item["id"] for item in result["stored"]],
        "overBudget": result["overBudget"],
        "heldBack": [
            {name: item.get(name) for name in ("category", "theme", "reason")} for item in result["diagnostics"]
        ],
    }
    return False


STEPS: dict[str, Callable[[Repository, Step, LearningRun], bool]] = {
    Step.Kind.REDACT: redact,
    Step.Kind.IMPORT: import_comments,
    Step.Kind.LABEL: label,
    Step.Kind.CONSOLIDATE: consolidate,
}


class PurgePending(LearningError):
    """The text is removed, and its traces in the store's files are not gone yet."""

    code = "purge_pending"


class NoProgress(LearningError):
    """A labeling round neither asked about a comment nor finished."""

    code = "no_progress"


# What they share -----------------------------------------------------------------------------------------------------


def remover(repository: Repository, comment: Comment) -> Principal:
    """The person who deleted the comment; where the Hub knows no person, whoever enabled the repository."""
    person = comment.deleted_by
    known = None if person is None or person.get("bot") else person_principal(repository, person)
    login = person["login"] if known and person else None
    return parse_principal(known or repository.enabled_by, assurance="authenticated", login=login)


def clear_dirty(carried: dict[int, int]) -> None:
    """The store knows these versions now. A comment that changed again meanwhile stays withheld."""
    for key, version in carried.items():
        Comment.objects.filter(pk=key, version=version).update(dirty=False)


def add_usage(known: dict[str, int], told: dict[str, int]) -> dict[str, int]:
    """The sum of two usages, member by member."""
    return {name: known.get(name, 0) + told.get(name, 0) for name in {**known, **told}}


@transaction.atomic
def _take_snapshot(repository: Repository, step: Step, run: LearningRun) -> snapshot.Snapshot:
    """A snapshot; the one that an attempt of this run took before it was interrupted, if nothing changed since.

    So an import that died after the store had it is not imported a second time under another name.
    """
    earlier = run.result.get("capture", {})
    if earlier.get("version") == step.version:
        return snapshot.Snapshot(repository, datetime.fromisoformat(earlier["at"]))
    taken = snapshot.take_snapshot(repository)
    run.result = {"capture": {"version": step.version, "at": format_instant(taken.captured_at)}}
    run.save(update_fields=["result"])
    return taken


def _start_run(step: Step) -> LearningRun:
    run = LearningRun.objects.create(repository=step.repository, kind=step.kind)
    Step.objects.filter(pk=step.pk).update(run=run)
    return run


@transaction.atomic
def _finish_round(step: Step, run: LearningRun, *, goes_on: bool) -> None:
    now = timezone.now()
    if not goes_on:
        run.state, run.finished_at = LearningRun.State.DONE, now
    run.save()
    if goes_on:
        steps.mark_progress(step, now)
    else:
        steps.mark_done(step, now)


@transaction.atomic
def _fail(step: Step, run: LearningRun, code: str, comment_id: str | None = None) -> None:
    now = timezone.now()
    run.state, run.finished_at, run.error_code = LearningRun.State.FAILED, now, code
    run.message = MESSAGES.get(code, "It failed.") + (f" Comment: {comment_id}." if comment_id else "")
    run.retry_at = steps.mark_failed(step, now, needs_person=code in NEEDS_PERSON)
    run.save()

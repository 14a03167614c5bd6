"""The durable queue of a repository's turn: which steps are asked for, done, or to be tried again.

Everything here is a short statement on the `Step` table. Who may run a step is `hub_learning.turn`'s business; what a
step does is `hub_learning.jobs`'.

Source: design.md, decision 7.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import F
from django.utils import timezone

from hub_learning.models import Repository, Step
from hub_learning.wakeups import enqueue_turn

URGENCY = {kind: position for position, kind in enumerate(Step.Kind.values)}

FIRST_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = {Step.Kind.REDACT: timedelta(minutes=5)}
"""A removal is tried again every few minutes for as long as it takes. Other kinds pause up to an hour."""
LAST_ATTEMPT = 8
"""After so many failures in a row a step (but a removal) waits for a person, or for whatever asks for it next."""
STARTS_BEFORE_PAUSE = 4
PAUSE_AFTER_DEATH = timedelta(seconds=10)
"""A step whose process died so often in a row pauses before each further start: it may be what kills it."""


def enqueue_step(repository: Repository, kind: Step.Kind, subject: str = "") -> None:
    """Ask for a step, once per kind and subject however often, and wake the repository's turn on commit.

    A step that waits for its next attempt keeps its pause: a flood of comments does not hurry a labeler that is down.
    """
    now = timezone.now()
    step, created = Step.objects.get_or_create(
        repository=repository,
        kind=kind,
        subject=subject,
        defaults={"urgency": URGENCY[kind], "not_before": now},
    )
    if not created:
        same = Step.objects.filter(pk=step.pk)
        same.update(version=F("version") + 1)
        same.exclude(state=Step.State.WAITING).update(state=Step.State.WAITING, attempts=0, not_before=now)
    enqueue_turn(repository.pk)


def next_step(repository_id: int, now: datetime) -> Step | None:
    """The most urgent step that is due; the oldest of equals."""
    due = Step.objects.filter(repository_id=repository_id, state=Step.State.WAITING, not_before__lte=now)
    return due.order_by("urgency", "pk").select_related("repository", "run").first()


def has_due_steps(repository_id: int, now: datetime) -> bool:
    """Whether the repository's turn has something to do."""
    return Step.objects.filter(repository_id=repository_id, state=Step.State.WAITING, not_before__lte=now).exists()


def has_more_urgent(step: Step) -> bool:
    """Whether the repository has a due step that comes before this one."""
    due = Step.objects.filter(
        repository_id=step.repository_id, state=Step.State.WAITING, not_before__lte=timezone.now()
    )
    return due.filter(urgency__lt=step.urgency).exists()


def repositories_with_work(due_before: datetime) -> Iterable[int]:
    """The repositories that have had a due step since before a time."""
    due = Step.objects.filter(state=Step.State.WAITING, not_before__lt=due_before)
    return due.values_list("repository_id", flat=True).distinct()


def mark_started(step: Step, now: datetime) -> None:
    """Count a start. The count falls back to 0 when the step goes on or is done, so it counts starts in vain."""
    pause = PAUSE_AFTER_DEATH if step.attempts >= STARTS_BEFORE_PAUSE else timedelta(0)
    Step.objects.filter(pk=step.pk).update(attempts=F("attempts") + 1, not_before=now + pause)
    step.attempts += 1


def mark_progress(step: Step, now: datetime) -> None:
    """One round is done and more remain: the step stays where it is in the queue."""
    Step.objects.filter(pk=step.pk).update(attempts=0, not_before=now)


def mark_done(step: Step, now: datetime) -> None:
    """The step is done, unless it was asked for again after it started: then it is due again."""
    row = Step.objects.filter(pk=step.pk)
    row.update(attempts=0, not_before=now, run=None)
    row.filter(version=step.version).update(state=Step.State.DONE)


def mark_failed(step: Step, now: datetime, *, needs_person: bool) -> datetime | None:
    """The step failed: when it is tried again, or None when it waits for a person."""
    row = Step.objects.filter(pk=step.pk)
    gives_up = step.kind != Step.Kind.REDACT and (needs_person or step.attempts >= LAST_ATTEMPT)
    if gives_up and row.filter(version=step.version).update(state=Step.State.FAILED, attempts=0, run=None):
        return None
    retry_at = now + pause_after(step, step.attempts)
    row.update(not_before=retry_at, run=None)
    return retry_at


def pause_after(step: Step, failures: int) -> timedelta:
    """5 s, 20 s, 80 s … up to the longest pause of the kind."""
    longest = LONGEST_PAUSE.get(Step.Kind(step.kind), timedelta(hours=1))
    return min(longest, FIRST_PAUSE * (1 << 2 * min(failures - 1, 10)))

"""What must happen although nobody asks: lost wake-ups, scheduled runs, unfinished purges, rows that are too old.

Source: design.md, decisions 4, 7 and 9.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from hub_learning import purge, steps, wakeups
from hub_learning.logs import describe_failure
from hub_learning.models import AnalyticsEvent, Delivery, Repository, Step

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 2.0
OVERDUE = timedelta(seconds=2)
"""A due step this old has lost its wake-up, or waits for a worker; another wake-up does no harm."""
KEPT = {AnalyticsEvent: ("at", timedelta(days=90)), Delivery: ("received_at", timedelta(days=30))}


def sweep() -> None:
    """Do everything once. A failure of one part is logged and does not keep the others."""
    now = timezone.now()
    for part in PARTS:
        try:
            part(now)
        except Exception as error:
            logger.error("the sweep's %s failed: %s", part.__name__, describe_failure(error))


def wake_overdue(now: datetime) -> None:
    """Wake the turns whose steps have waited."""
    for repository_id in steps.repositories_with_work(now - OVERDUE):
        wakeups.send_wakeup(repository_id)


def start_scheduled(now: datetime) -> None:
    """Ask for the runs that are due, and set their next time."""
    for repository in Repository.objects.filter(enabled=True, next_run_at__lte=now):
        with transaction.atomic():
            pause = timedelta(hours=repository.schedule_hours)
            following = now + pause if repository.schedule_hours else None
            Repository.objects.filter(pk=repository.pk).update(next_run_at=following)
            steps.enqueue_step(repository, Step.Kind.IMPORT)


def finish_purges(_: datetime) -> None:
    """Empty the write-ahead log that a reader kept a deletion from emptying."""
    purge.finish_purge()


def forget_old(now: datetime) -> None:
    """Remove rows whose time is over."""
    for model, (name, age) in KEPT.items():
        model._default_manager.filter(**{f"{name}__lt": now - age}).delete()


PARTS: tuple[Callable[[datetime], None], ...] = (wake_overdue, start_scheduled, finish_purges, forget_old)

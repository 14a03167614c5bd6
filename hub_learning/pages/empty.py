"""What the queue says when it lists nothing: why, and what comes next. Nothing found and not yet known differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hub_learning.models import LearningRun, Repository
from hub_learning.pages.times import describe_time
from hub_learning.pages.words import count

_NONE = {
    "accepted": "No learning is accepted",
    "rejected": "No proposal was rejected",
    "retired": "No learning was retired",
}


@dataclass(frozen=True, slots=True)
class Empty:
    """A heading and up to a few sentences. `icon` tells an answer from one that is still to come."""

    heading: str
    lines: tuple[str, ...]
    icon: str = "accepted"


def describe_empty(
    state: str,
    outline: Sequence[Mapping[str, Any]],
    repository: Repository,
    newest: LearningRun | None,
    *,
    prototype: str,
    now: datetime,
) -> Empty:
    """Why a state has no learnings. `newest` is the newest finished search for themes."""
    if state != "proposed":
        return Empty(_NONE[state], ())
    coming = _describe_next(repository, now)
    if newest is not None and newest.result.get("complete") is False:
        coming = ("Comments of the newest days are missing, so this is not the whole answer.", *coming)
    decided = [memory["at"] for memory in outline if memory["state"] != "proposed"]
    if decided:
        return Empty("Nothing waits", (f"The last decision was made {describe_time(max(decided), now).age}.", *coming))
    if newest is None:
        return Empty(
            "No answer yet", ("The Hub has not looked for themes yet. This page shows what it finds.", *coming)
        )
    if newest.result.get("complete") is False:
        return Empty("No answer yet", coming, "proposed")
    found = (
        f"No theme was raised by {repository.min_reviewers} people in {count(repository.min_threads, 'thread')} of "
        f"{count(repository.min_prototypes, prototype)}. All comments up to the last run were looked at."
    )
    return Empty("Nothing recurs yet", (found, *coming))


def _describe_next(repository: Repository, now: datetime) -> tuple[str, ...]:
    if not repository.enabled:
        return ("Runs are switched off for this repository.",)
    if repository.next_run_at is None or repository.next_run_at < now:
        return ()
    return (f"Next run: {describe_time(repository.next_run_at, now).full}. A new comment starts one sooner.",)

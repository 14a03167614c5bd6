"""Runs in words: what the Hub did for a repository, how far it is, and why something failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hub_learning.models import LearningRun
from hub_learning.pages.times import When, describe_time
from hub_learning.pages.words import count

_DOING = {
    "redact": "Removing a deleted comment",
    "import": "Reading comments",
    "label": "Labeling",
    "consolidate": "Looking for themes that recur",
}
_DONE = {
    "redact": "Removed a deleted comment",
    "import": "Read the comments",
    "label": "Labeled comments",
    "consolidate": "Looked for themes that recur",
}
_FAILED = {
    "redact": "Removing a deleted comment failed",
    "import": "Reading the comments failed",
    "label": "Labeling failed",
    "consolidate": "Looking for themes failed",
}
_ICONS = {"running": "run", "done": "accepted", "failed": "warn"}
NANO = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Run:
    """One run. `done` of `total` says how far it is; `total` is None while nobody knows."""

    what: str
    state: str
    icon: str
    when: When
    took: str
    lines: tuple[str, ...]
    code: str
    done: int
    total: int | None

    @property
    def is_running(self) -> bool:
        """Whether it still runs."""
        return self.state == "running"

    @property
    def failed(self) -> bool:
        """Whether it failed."""
        return self.state == "failed"


def describe_run(run: LearningRun, now: datetime) -> Run:
    """A run as the pages show it."""
    return Run(
        what=_describe_what(run),
        state=run.state,
        icon=_ICONS[run.state],
        when=describe_time(run.finished_at or run.started_at, now),
        took=describe_length((run.finished_at - run.started_at).total_seconds()) if run.finished_at else "",
        lines=tuple(_describe_lines(run, now)),
        code=run.error_code,
        done=run.progress_done,
        total=run.progress_total,
    )


def describe_length(seconds: float) -> str:
    """`2 s`, `3 min`, `1 h 5 min`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _describe_what(run: LearningRun) -> str:
    if run.state == LearningRun.State.FAILED:
        return _FAILED[run.kind]
    if run.state == LearningRun.State.DONE:
        return _DONE[run.kind]
    doing = _DOING[run.kind]
    return f"{doing}: {run.progress_done:,} of {run.progress_total:,}" if run.progress_total else doing


def _describe_lines(run: LearningRun, now: datetime) -> list[str]:
    if run.state == LearningRun.State.FAILED:
        retry = f"It is tried again at {describe_time(run.retry_at, now).full}." if run.retry_at else ""
        return [line for line in (run.message, retry) if line]
    if run.state == LearningRun.State.RUNNING:
        return []
    return _RESULTS[run.kind](run) + _describe_usage(run.usage)


def _describe_redact(run: LearningRun) -> list[str]:
    removed = run.result.get("removed", 0)
    return [f"The text of {count(removed, 'event')} was removed."] if removed else ["The store held no text of it."]


def _describe_import(run: LearningRun) -> list[str]:
    imported = run.result.get("imported", {})
    return [f"{count(imported.get('episodes', 0), 'new thread')}, {count(imported.get('events', 0), 'new event')}."]


def _describe_label(run: LearningRun) -> list[str]:
    return [f"{count(run.progress_done, 'comment')} read."]


def _describe_consolidate(run: LearningRun) -> list[str]:
    stored, over = len(run.result.get("stored", ())), run.result.get("overBudget", 0)
    lines = [f"{count(stored, 'new or changed proposal')}." if stored else "No new proposal."]
    if over:
        lines.append(f"{count(over, 'more theme')} wait for the next run: a run brings only so many at once.")
    if run.result.get("complete") is False:
        lines.append("The window is incomplete, so there may be more.")
    return lines


def _describe_usage(usage: Mapping[str, Any]) -> list[str]:
    if not usage.get("requests"):
        return []
    tokens = usage.get("inputTokens", 0) + usage.get("outputTokens", 0)
    line = f"{count(usage['requests'], 'request')}, {count(tokens, 'token')}"
    spent = usage.get("nanoAiu", 0) / NANO
    return [f"{line}, {spent:,.2f} AI credits." if spent else f"{line}."]


_RESULTS = {
    "redact": _describe_redact,
    "import": _describe_import,
    "label": _describe_label,
    "consolidate": _describe_consolidate,
}

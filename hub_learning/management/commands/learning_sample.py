"""`manage.py learning_sample`: give an empty Hub a sample repository and run its loop once."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import BaseCommand

from hub_learning.models import LearningRun, Step
from hub_learning.sample_repository import find_missing_sample, load_sample

WAIT_SECONDS = 120.0
POLL_SECONDS = 0.1
BAR = 30
WORDS = {"import": "Reading comments", "label": "Finding themes", "consolidate": "Proposing learnings"}


class Command(BaseCommand):
    """Creates the sample and shows how its first run goes, through the same queue and worker as every run."""

    help = "Create the sample repository if the Hub is empty, and wait for its first run."
    requires_system_checks = ()

    def handle(self, *_: Any, **__: Any) -> None:
        if not find_missing_sample():
            return
        self._say("Setting up a sample repository with review comments:")
        load_sample(lambda done, total: self._show("Taking in comments", done, total))
        self._end_line("Taking in comments")
        self._wait()

    def _wait(self) -> None:
        ends = time.monotonic() + WAIT_SECONDS
        shown: set[int] = set()
        while (waiting := Step.objects.filter(state=Step.State.WAITING).exists()) and time.monotonic() < ends:
            self._show_runs(shown)
            if LearningRun.objects.filter(state=LearningRun.State.FAILED).exists():
                break
            time.sleep(POLL_SECONDS)
        self._show_runs(shown)
        if waiting:
            self._say("The run is not finished; the Activity page shows how it goes on.")

    def _show_runs(self, shown: set[int]) -> None:
        for run in LearningRun.objects.order_by("pk").exclude(pk__in=shown):
            words = WORDS.get(run.kind, run.kind)
            if run.state == LearningRun.State.RUNNING:
                self._show(words, run.progress_done, run.progress_total or 1)
                continue
            shown.add(run.pk)
            if run.state == LearningRun.State.FAILED:
                self._say(f"\r  {words:<20} failed: {run.message} ({run.error_code})")
            else:
                self._end_line(words)

    def _show(self, words: str, done: int, total: int) -> None:
        if self.stdout.isatty():
            filled = BAR * done // max(total, 1)
            self._say(f"\r  {words:<20} [{'#' * filled}{'.' * (BAR - filled)}]", ending="")

    def _end_line(self, words: str) -> None:
        self._say(f"\r  {words:<20} [{'#' * BAR}]" if self.stdout.isatty() else f"  {words}: done")

    def _say(self, text: str, ending: str | None = None) -> None:
        self.stdout.write(text, ending=ending)
        self.stdout.flush()

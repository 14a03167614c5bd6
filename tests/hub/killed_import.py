"""A program for the test that kills an import: runs the repository's turn in a child process that dies at a point.

A point is a number of function calls within the import step. Each line of standard input is a point, 0 for none; the
answer is what the store holds after the next turn. The first line of output tells how many calls an import makes, and
at which call the store's commit returned.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from django.conf import settings
from django.db import connections

from hub_learning import jobs, stores, turn
from hub_learning.models import LearningRun, Repository, Step
from learning_core.identifiers import IMPORTER
from learning_core.provider import Query

import_comments = jobs.STEPS[Step.Kind.IMPORT]


class Counter:
    """Counts function calls, and kills this process at one."""

    def __init__(self, point: int) -> None:
        self.point = point
        self.calls = 0
        self.committed = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "return" and frame.f_code.co_name == "append_batch":
            self.committed = self.calls
        if event not in ("call", "c_call"):
            return
        self.calls += 1
        if self.calls == self.point:
            os.kill(os.getpid(), signal.SIGKILL)


def run_turn(point: int, report: Path) -> None:
    """Run the turn in a child, which dies at a point of the import, and wait for its end."""
    connections.close_all()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    counter = Counter(point)

    def count(repository: Repository, step: Step, run: LearningRun) -> bool:
        sys.setprofile(counter)
        try:
            return import_comments(repository, step, run)
        finally:
            sys.setprofile(None)

    jobs.STEPS[Step.Kind.IMPORT] = count
    turn.run_turn(1, jobs.run_step)
    report.write_text(json.dumps({"calls": counter.calls, "committed": counter.committed}))
    os._exit(0)


def describe() -> dict[str, Any]:
    """What the Hub and the store hold."""
    repository = Repository.objects.get()
    store = stores.open_store(repository)
    rows = {
        stream: [json.loads(row.canonical) for row in store.provider.read_records(store.scope, stream, Query())]
        for stream in ("collections", "episodes", "events", "audit")
    }
    receipts = [item["id"] for entry in rows["audit"] for item in entry["records"]]
    comments = [event["id"] for event in rows["events"] if event["type"] == "comment"]
    return {
        "collections": len(rows["collections"]),
        "episodes": len(rows["episodes"]),
        "comments": len(comments),
        "receipts": [receipts.count(event) for event in comments],
        "verified": store.verify(by=IMPORTER)["ok"],
        "runs": sorted(LearningRun.objects.values_list("kind", "state")),
    }


def answer(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    data = settings.HUB.data_directory
    template, report = data.with_name("template"), data.with_name("report")
    shutil.copytree(data, template)
    run_turn(0, report)
    answer(report.read_text())
    for line in sys.stdin:
        connections.close_all()
        shutil.rmtree(data)
        shutil.copytree(template, data)
        run_turn(int(line), report)
        Step.objects.update(not_before="2026-01-01T00:00:00Z")
        run_turn(0, report)
        answer(json.dumps(describe()))

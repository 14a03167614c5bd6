"""The RQ worker: its work-horse dies with it, and no exception's text gets into Redis or a log.

A work-horse that outlived its worker would go on with a step that another worker then runs too. RQ takes up such a
job again after about a minute; the turn's lock would hold that off for as long as the orphan lives.

Source: design.md, decision 7.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Any

from django.conf import settings
from redis import Redis
from rq import Worker
from rq.executions import Execution
from rq.job import Job
from rq.queue import Queue
from rq.serializers import JSONSerializer

from hub_learning import wakeups

PR_SET_PDEATHSIG = 1


class HubWorker(Worker):
    """One worker process. It runs one turn at a time, each in a work-horse."""

    def main_work_horse(self, job: Job, queue: Queue) -> None:
        die_with_parent(self.pid)
        super().main_work_horse(job, queue)

    def handle_exception(self, job: Job, *exc_info: Any) -> None:
        """Say nothing: `hub_learning.jobs` has logged the code, and RQ would log the exception's text."""

    def handle_job_failure(
        self,
        job: Job,
        queue: Queue,
        started_job_registry: Any = None,
        exc_string: str = "",
        execution: Execution | None = None,
    ) -> None:
        super().handle_job_failure(job, queue, started_job_registry, "", execution)


def make_worker() -> HubWorker:
    """A worker for the one queue. It reads jobs as JSON only."""
    connection = Redis.from_url(settings.HUB.redis_url)
    return HubWorker([wakeups.QUEUE], connection=connection, serializer=JSONSerializer)


def die_with_parent(parent: int | None = None) -> None:
    """Have the kernel kill this process when its parent dies; exit if `parent` is dead already.

    Only Linux can do that. Elsewhere an orphan ends with its step, and holds the repository's turn until then.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if parent is not None and os.getppid() != parent:
        os._exit(1)

"""A worker whose steps hold a second lock, so that two steps of one repository at once are seen and written down.

While the file `stall` is there, a step writes its process ID into `stalled` and stops for good.
"""

from __future__ import annotations

import fcntl
import os
import signal

from django.conf import settings

from hub_learning import jobs
from hub_learning.models import Step
from hub_learning.worker import make_worker

run_step = jobs.run_step


def run_probed(step: Step) -> None:
    directory = settings.HUB.data_directory
    descriptor = os.open(directory / "probe.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        (directory / "overlap").write_text("two steps ran at once")
    if (directory / "stall").exists():
        (directory / "stalled").write_text(str(os.getpid()))
        signal.pause()
    run_step(step)
    os.close(descriptor)


def main() -> None:
    jobs.run_step = run_probed
    make_worker().work(logging_level="WARNING")

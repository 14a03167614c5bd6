"""`manage.py sweep`: what must happen although nobody asks. Run one; more do no harm."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from hub_learning.sweep import INTERVAL_SECONDS, sweep


class Command(BaseCommand):
    """Sweeps every few seconds until SIGTERM."""

    help = "Wake what waits, start scheduled runs, finish purges, forget old rows."
    requires_system_checks = ()

    def handle(self, *_: Any, **__: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        while not stop.is_set():
            sweep()
            stop.wait(INTERVAL_SECONDS)

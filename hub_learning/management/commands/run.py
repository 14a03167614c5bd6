"""`manage.py run`: the whole Hub on this machine, until Ctrl-C."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from hub_learning import supervisor
from hub_learning.environment import Environment
from hub_learning.sample_repository import SAMPLE_ID
from hub_learning.sign_in import issue_local_link


class Command(BaseCommand):
    """Starts the Hub: the web server, workers, the sweep, and Valkey unless `REDIS_URL` names one."""

    help = "Start the Hub on this machine, with sample comments if it is empty. Ctrl-C stops all of it."
    requires_system_checks = ()

    def handle(self, *_: Any, **__: Any) -> None:
        hub = settings.HUB
        supervisor.run_hub(hub, self._say, lambda: announce(hub))

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()  # Whoever reads through a pipe waits for the link, and this process goes on for weeks.


def announce(hub: Environment) -> str:
    """Where the Hub is, and how to get in."""
    lines = ["", f"The Hub runs at {hub.origin}"]
    if hub.local_sign_in:
        link = issue_local_link(hub.data_directory, hub.origin, f"/repositories/{SAMPLE_ID}/learnings/")
        lines += ["", "Open this once to sign in and see the proposed learnings:", f"  {link}"]
    return "\n".join([*lines, "", "Ctrl-C stops it.", ""])

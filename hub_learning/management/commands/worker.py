"""`manage.py worker`: one worker process. Any number may run, on this machine beside the data directory."""

from __future__ import annotations

import logging
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from redis import RedisError

from hub_learning.worker import make_worker


class Command(BaseCommand):
    """Runs repositories' turns until SIGTERM."""

    help = "Run the steps of the repositories' turns."
    requires_system_checks = ()

    def handle(self, *_: Any, **__: Any) -> None:
        connections.close_all()
        try:
            make_worker().work(logging_level=logging.getLevelName(logging.WARNING))
        except RedisError as error:
            raise CommandError(f"The worker lost Redis or Valkey ({type(error).__name__}).") from None

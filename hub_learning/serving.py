"""Gunicorn's settings. `manage.py run` hands it the socket that it has bound already."""

from __future__ import annotations

from typing import Any

from hub_learning.worker import die_with_parent

wsgi_app = "hub_learning.wsgi:application"
workers = 2
preload_app = True
worker_class = "gthread"
threads = 4
timeout = 60
graceful_timeout = 4
loglevel = "warning"
errorlog = "-"
proc_name = "hub-learning"
limit_request_line = 8190
limit_request_field_size = 8190


def post_fork(server: Any, _: Any) -> None:
    """A worker ends with its master."""
    die_with_parent(server.pid)

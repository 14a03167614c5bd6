"""`/healthz`: the process answers. `/readyz`: it can also do its work."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from hub_learning import wakeups
from hub_learning.logs import name_failure


@require_safe
def healthz(_: HttpRequest) -> JsonResponse:
    """Answers 200 for as long as the process lives."""
    return JsonResponse({"ok": True})


@require_safe
def readyz(_: HttpRequest) -> JsonResponse:
    """200 when the database is migrated and Redis answers, else 503; each check is named with `ok` or its failure."""
    checks = {"database": _check(check_database), "redis": _check(lambda: wakeups.connection().ping())}
    ready = all(value == "ok" for value in checks.values())
    return JsonResponse({"ok": ready, **checks}, status=200 if ready else 503)


def check_database() -> None:
    """Raise unless every migration is applied."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise LookupError("migrations are missing")


def _check(check: Callable[[], object]) -> str:
    try:
        check()
    except Exception as error:
        return name_failure(error)
    return "ok"

"""Refusals as `application/problem+json` (RFC 9457), with the stable code of the refusal as the member `code`."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse

from hub_learning.logs import describe_failure
from learning_core.errors import LearningError

logger = logging.getLogger(__name__)
P = ParamSpec("P")

STATUS = {
    "invalid_json": 400,
    "invalid_identifier": 400,
    "token_refused": 401,
    "access_refused": 403,
    "not_permitted": 403,
    "not_found": 404,
    "comment_conflict": 409,
    "idempotency_key_reused": 409,
    "body_too_large": 413,
    "wrong_media_type": 415,
    "invalid_request": 422,
    "invalid_comment": 422,
    "invalid_timestamp": 422,
    "invalid_argument": 422,
    "budget_too_small": 422,
    "busy": 503,
}
"""HTTP status by code; any other refusal is the server's, 500."""


def with_problems(view: Callable[Concatenate[HttpRequest, P], HttpResponse]) -> Callable[..., HttpResponse]:
    """Answer a refusal of the view as a problem. What is no refusal is logged as a code and answered as one."""

    @functools.wraps(view)
    def answer(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except LearningError as error:
            return describe_problem(error.code, error.message, error.details)
        except OperationalError as error:
            logger.error("%s failed: %s", request.path, describe_failure(error))
            return describe_problem(*describe_database_failure(error), {})
        except Exception as error:
            logger.error("%s failed: %s", request.path, describe_failure(error))
            return describe_problem("internal_error", "The Hub failed. Nothing is known to be stored.", {})

    return answer


def describe_database_failure(error: OperationalError) -> tuple[str, str]:
    """Code and words for a database that did not do as told: a locked one is worth another try."""
    if "locked" in str(error):
        return "busy", "The Hub's database is busy. Nothing of this is stored; send it again."
    return "internal_error", "The Hub failed. Nothing is known to be stored."


def describe_problem(code: str, detail: str, details: dict[str, Any]) -> HttpResponse:
    """The answer for one refusal."""
    status = STATUS.get(code, 500)
    members = {"type": "about:blank", "title": code.replace("_", " "), "status": status, "detail": detail, "code": code}
    named = {name: details[name] for name in ("pointer", "comment_id", "minimum") if name in details}
    response = JsonResponse({**members, **named}, status=status, content_type="application/problem+json")
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response

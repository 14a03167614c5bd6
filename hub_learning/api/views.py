"""`/api/v1/repositories/<id>/comments` and `/recall`: check a token, read a body, make one action or call."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from hub_learning import stores
from hub_learning.access import access_token
from hub_learning.actions import Message, do_record_comments
from hub_learning.api.bodies import InvalidRequest, parse_body, read_body
from hub_learning.api.problems import with_problems
from hub_learning.models import ApiToken
from learning_core.identifiers import parse_principal
from learning_core.timestamps import normalize

LONGEST_KEY = 200


@csrf_exempt
@require_POST
@with_problems
def comments(request: HttpRequest, repository_id: int) -> HttpResponse:
    """Take in comments, edits, deletions and resolutions. The answer's counts are durable before it is sent."""
    token = access_token(request, repository_id, ApiToken.Kind.SOURCE)
    raw = read_body(request)
    body = parse_body("comments", raw)
    key = request.headers.get("Idempotency-Key")
    if key is not None and not (key.isascii() and key.isprintable() and 0 < len(key) <= LONGEST_KEY):
        raise InvalidRequest(f"An Idempotency-Key has 1 to {LONGEST_KEY} printable ASCII characters.")
    as_of = datetime.fromisoformat(normalize(body["asOf"])) if "asOf" in body else None
    message = Message(comments=body["comments"], body=raw, key=key, as_of=as_of)
    return JsonResponse(do_record_comments(token.repository, message))


@csrf_exempt
@require_POST
@with_problems
def recall(request: HttpRequest, repository_id: int) -> HttpResponse:
    """The accepted learnings that fit a task, for the agent that the token names. Every recall is audited."""
    token = access_token(request, repository_id, ApiToken.Kind.AGENT)
    body = parse_body("recall", read_body(request))
    agent = parse_principal(f"agent:{token.name}", assurance="authenticated")
    result = stores.open_store(token.repository).recall(
        agent,
        body["task"],
        paths=body.get("paths", ()),
        withheld_comments=stores.withheld_comments(token.repository),
        **({"budget": body["budget"]} if "budget" in body else {}),
    )
    return JsonResponse({"text": result["text"], "learnings": result["learnings"]})

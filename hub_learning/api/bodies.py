"""Reading what a machine sent: bounded, strict JSON, checked against its schema before anything looks at it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
from django.http import HttpRequest

from learning_core.canonical import parse_json
from learning_core.errors import LearningError
from learning_core.schemas import load_schemas

MAX_BYTES = 25 * 1024 * 1024


class BodyTooLarge(LearningError):
    """The body has more than 25 MB."""

    code = "body_too_large"


class WrongMediaType(LearningError):
    """The body is not `application/json`."""

    code = "wrong_media_type"


class InvalidRequest(LearningError):
    """The body does not satisfy its schema. `details`: `pointer`, where."""

    code = "invalid_request"


def read_body(request: HttpRequest) -> bytes:
    """The whole body. Raises `BodyTooLarge`, `WrongMediaType`."""
    if request.content_type != "application/json":
        raise WrongMediaType("Send the body as application/json.")
    # Without a length Django takes the body for empty; a server that knows where a chunked one ends says so.
    is_chunked = request.META.get("wsgi.input_terminated") and not request.META.get("CONTENT_LENGTH")
    raw = request.META["wsgi.input"].read(MAX_BYTES + 1) if is_chunked else request.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise BodyTooLarge(f"The body has more than {MAX_BYTES:,} bytes; send it in parts.")
    return raw


def parse_body(kind: str, raw: bytes) -> Any:
    """A body that satisfies the schema `kind`. Raises `InvalidJson`, `InvalidRequest`; neither quotes a text."""
    value = parse_json(raw, max_bytes=MAX_BYTES)
    error = next(iter(_validator(kind).iter_errors(value)), None)
    if error is not None:
        pointer = "".join(f"/{part}" for part in error.instance_path)
        keyword = error.schema_path[-1] if error.schema_path else "the schema"
        raise InvalidRequest(f"{pointer or 'The body'} does not satisfy {keyword} of {kind}.", pointer=pointer)
    return value


@cache
def _validator(kind: str) -> jsonschema_rs.Draft202012Validator:
    schema = json.loads((Path(__file__).parent / f"{kind}.schema.json").read_text("utf-8"))
    registry = jsonschema_rs.Registry([(shared["$id"], shared) for shared in load_schemas().values()])
    return jsonschema_rs.Draft202012Validator(schema, registry=registry)

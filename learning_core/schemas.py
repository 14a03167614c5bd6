"""Compiled validators of the version 1 contracts.

`jsonschema-rs` gives the verdict; `jsonschema`, the reference, explains a refusal to a person. Tests hold the two to
the same verdict.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from contracts import V1

if TYPE_CHECKING:
    import jsonschema

RECORD_KINDS = (
    "episode",
    "event",
    "evidence-ref",
    "consent-grant",
    "grant-withdrawal",
    "memory-proposal",
    "memory-record",
    "collection",
    "provider-manifest",
    "export-manifest",
    "audit-entry",
)
INPUT_KINDS = ("hub-comment-log", "labels", "learning-config")


@cache
def load_schemas() -> dict[str, dict[str, Any]]:
    """Every schema document by its kind (`common` holds the shared definitions)."""
    suffix = ".schema.json"
    return {
        item.name.removesuffix(suffix): json.loads(item.read_text("utf-8"))
        for item in V1.iterdir()
        if item.name.endswith(suffix)
    }


@cache
def _validator(kind: str) -> jsonschema_rs.Draft202012Validator:
    schemas = load_schemas()
    registry = jsonschema_rs.Registry([(schema["$id"], schema) for schema in schemas.values()])
    return jsonschema_rs.Draft202012Validator(schemas[kind], registry=registry)


@cache
def _reference(kind: str) -> jsonschema.Draft202012Validator:
    # Imported here: it takes a fifth of a second, and only a refusal needs it.
    import jsonschema
    from referencing import Registry, Resource

    schemas = load_schemas()
    registry: Registry[Any] = Registry().with_resources(
        (schema["$id"], Resource.from_contents(schema)) for schema in schemas.values()
    )
    return jsonschema.Draft202012Validator(schemas[kind], registry=registry)


def is_valid(kind: str, value: Any) -> bool:
    """Whether a plain JSON value satisfies the schema of `kind`."""
    return bool(_validator(kind).is_valid(value))


def explain(kind: str, value: Any) -> tuple[str, str]:
    """Where and why a refused value fails: a JSON pointer into it, and a sentence that quotes none of its text."""
    from jsonschema.exceptions import best_match

    error = best_match(_reference(kind).iter_errors(value))
    if error is None:
        return "", "it is refused"
    pointer = "".join(f"/{part}" for part in error.absolute_path)
    keyword = str(error.validator or "")
    if not keyword:
        return pointer, "a member must not stand there"
    if keyword == "additionalProperties":
        unknown = sorted(set(error.instance) - set(error.schema.get("properties", {})))
        return pointer, f"unknown member {json.dumps(unknown[0][:60])}" if unknown else "an unknown member"
    if keyword == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return pointer, f"missing member {json.dumps(missing[0])}" if missing else "a missing member"
    limits = {"type", "enum", "const", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}
    if keyword in limits:
        return pointer, f"{keyword} must be {json.dumps(error.validator_value)[:200]}"
    return pointer, f"it does not satisfy {keyword}"

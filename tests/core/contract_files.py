"""The files of `contracts/v1`, and the two validators: `jsonschema`, the reference, and `jsonschema-rs`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import jsonschema_rs
from referencing import Registry, Resource

V1 = Path(__file__).parents[2] / "contracts" / "v1"
Documents = Mapping[str, dict[str, Any]]


class Case(NamedTuple):
    """One file of `examples/` or `invalid/`."""

    kind: str
    name: str
    data: Any

    @property
    def id(self) -> str:
        return f"{self.kind}/{self.name}"


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


@cache
def schemas() -> Documents:
    """Every schema document by its file name."""
    return {path.name: read(path) for path in sorted(V1.glob("*.schema.json"))}


@cache
def examples() -> tuple[Case, ...]:
    """`examples/<kind>[.<variant>].json`."""
    return tuple(Case(path.name.split(".")[0], path.stem, read(path)) for path in sorted(V1.glob("examples/*.json")))


def example(name: str) -> Any:
    return read(V1 / "examples" / f"{name}.json")


@cache
def invalid_records() -> tuple[Case, ...]:
    """`invalid/<kind>/<flaw>.json`."""
    return tuple(Case(path.parent.name, path.stem, read(path)) for path in sorted(V1.glob("invalid/*/*.json")))


def vectors(name: str) -> Any:
    return read(V1 / "vectors" / f"{name}.json")


class Validators(NamedTuple):
    """Both validators of one kind."""

    reference: jsonschema.Draft202012Validator
    fast: jsonschema_rs.Draft202012Validator

    def verdicts(self, value: Any) -> tuple[bool, bool]:
        return self.reference.is_valid(value), self.fast.is_valid(value)


def compile_validators(kind: str, documents: Documents) -> Validators:
    """Both validators of a kind, over these documents."""
    resources = [(document["$id"], document) for document in documents.values()]
    registry: Registry[Any] = Registry().with_resources((uri, Resource.from_contents(d)) for uri, d in resources)
    schema = documents[f"{kind}.schema.json"]
    return Validators(
        jsonschema.Draft202012Validator(schema, registry=registry),
        jsonschema_rs.Draft202012Validator(schema, registry=jsonschema_rs.Registry(resources)),
    )


@cache
def validators(kind: str) -> Validators:
    return compile_validators(kind, schemas())


def resolve(document: Any, pointer: str) -> Any:
    """What a JSON pointer (RFC 6901) names."""
    for token in tokens(pointer):
        document = document[int(token)] if isinstance(document, list) else document[token]
    return document


def tokens(pointer: str) -> list[str]:
    assert pointer == "" or pointer.startswith("/"), pointer
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]

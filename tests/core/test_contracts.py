"""The schemas, and the verdict of both validators on every example, every invalid record and what lies between them."""

from __future__ import annotations

import copy
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learning_core import schemas
from learning_core.errors import InvalidRecord
from learning_core.records import check_valid
from tests.core.contract_files import (
    V1,
    Case,
    compile_validators,
    examples,
    invalid_records,
    resolve,
    tokens,
    validators,
)
from tests.core.contract_files import schemas as documents

KINDS = (*schemas.RECORD_KINDS, *schemas.INPUT_KINDS)


def name_case(case: Case) -> str:
    return case.id


# The schemas ---------------------------------------------------------------------------------------------------------


def test_every_kind_has_a_schema_and_every_schema_a_kind() -> None:
    assert {name.removesuffix(".schema.json") for name in documents()} == {*KINDS, "common"}
    assert len(schemas.RECORD_KINDS) == 11


@pytest.mark.parametrize("name", documents())
def test_a_schema_satisfies_the_metaschema_and_names_itself(name: str) -> None:
    document = documents()[name]
    jsonschema.Draft202012Validator.check_schema(document)
    assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert document["$id"].endswith(f"/{name}")
    assert document["title"]


def test_the_guide_lists_every_schema_and_every_file_of_vectors() -> None:
    guide = (V1 / "README.md").read_text("utf-8")
    named = set(re.findall(r"`([a-z0-9.-]+)`", guide))
    assert set(KINDS) <= named
    assert {path.name for path in V1.glob("vectors/*")} <= named


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_names_its_version(kind: str) -> None:
    document = documents()[f"{kind}.schema.json"]
    assert document["properties"]["schemaVersion"] == {"const": f"replica.{kind}/v1"}
    assert "schemaVersion" in document["required"]


def subschemas(node: Any) -> list[dict[str, Any]]:
    """Every object of a schema document that may be a subschema."""
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    below = [found for child in children for found in subschemas(child)]
    return [node, *below] if isinstance(node, dict) else below


@pytest.mark.parametrize("name", documents())
def test_a_pattern_means_the_same_in_every_engine(name: str) -> None:
    """`$` alone accepts a trailing newline in some engines, and classes such as `\\d` and `.` differ between them."""
    patterns = [s["pattern"] for s in subschemas(documents()[name]) if isinstance(s.get("pattern"), str)]
    for pattern in patterns:
        assert not re.search(r"\\[dwsDWSbB]|\\p", pattern), pattern
        assert not re.search(r"(?<!\\)\.", re.sub(r"\[[^\]]*\]", "", pattern)), pattern
        assert pattern.startswith("[^") or (pattern.startswith("^") and pattern.endswith("$(?!\n)")), pattern


@pytest.mark.parametrize("name", documents())
def test_an_object_with_named_members_is_closed(name: str) -> None:
    for schema in subschemas(documents()[name]):
        if schema.get("type") == "object" and "properties" in schema:
            branches = name == "hub-comment-log.schema.json" and "if" in schema and "action" in schema["properties"]
            assert schema.get("additionalProperties") is False or branches, schema


def test_reserved_event_types_are_named_and_unused() -> None:
    event = documents()["event.schema.json"]
    reserved = event["$defs"]["reservedTypes"]["enum"]
    assert len(reserved) == 4
    assert not set(reserved) & set(event["properties"]["type"]["enum"])


# Examples ------------------------------------------------------------------------------------------------------------


def test_every_kind_has_an_example_and_every_event_type_and_state_too() -> None:
    assert {case.kind for case in examples()} == set(KINDS)
    for kind, member in (("event", "type"), ("memory-record", "state")):
        shown = {case.data[member] for case in examples() if case.kind == kind}
        assert shown == set(documents()[f"{kind}.schema.json"]["properties"][member]["enum"])


@pytest.mark.parametrize("case", examples(), ids=name_case)
def test_an_example_is_valid(case: Case) -> None:
    assert validators(case.kind).verdicts(case.data) == (True, True)
    assert schemas.is_valid(case.kind, case.data)


# Invalid records -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_invalid_records(kind: str) -> None:
    assert len([case for case in invalid_records() if case.kind == kind]) >= 6


@pytest.mark.parametrize("case", invalid_records(), ids=name_case)
def test_an_invalid_record_is_refused_for_its_reason(case: Case) -> None:
    """Both validators refuse it, and both accept it once exactly the keyword that it names is gone."""
    assert set(case.data) == {"why", "schema", "pointer", "record"}
    assert case.data["why"].endswith(".")
    assert validators(case.kind).verdicts(case.data["record"]) == (False, False)
    amended = without_keyword(case.data["schema"], case.data["pointer"])
    assert compile_validators(case.kind, amended).verdicts(case.data["record"]) == (True, True)


def without_keyword(file: str, pointer: str) -> dict[str, dict[str, Any]]:
    document = copy.deepcopy(documents()[file])
    *way, keyword = tokens(pointer)
    parent = resolve(document, "".join(f"/{token}" for token in way))
    if isinstance(parent, list):
        del parent[int(keyword)]
    else:
        del parent[keyword]
    return {**documents(), file: document}


@pytest.mark.parametrize("case", invalid_records(), ids=name_case)
def test_a_refusal_says_where_and_why(case: Case) -> None:
    record = case.data["record"]
    with pytest.raises(InvalidRecord) as refusal:
        check_valid(case.kind, record)
    assert refusal.value.details["kind"] == case.kind
    resolve(record, refusal.value.details["pointer"])
    assert "None" not in refusal.value.message
    # What a person wrote is not repeated: a refusal is logged.
    texts = {text for text in strings(record) if len(text) > 40 and " " in text}
    assert not [text for text in texts if text in refusal.value.message]


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for child in children for text in strings(child)]


def test_an_invalid_record_shows_its_characters() -> None:
    """Invisible characters are written as escapes, so that a reviewer sees what a file holds."""
    for path in V1.glob("invalid/*/*.json"):
        assert path.read_bytes().isascii(), path


# What lies between ---------------------------------------------------------------------------------------------------

NAMES = ("extra", "reason", "approval", "supersedes", "payload", "redaction", "none", "__proto__")
REPLACEMENTS: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    101,
    2**53 - 1,
    1.0,
    1.5,
    "",
    "x",
    " ",
    [],
    {},
    [None],
    {"a": 1},
)
CHARACTERS = (
    "\n\r\t\x00\x1c\x85 \u00a0\u00ad\u1680\u180e\u200b\u200d\u2028\u202e\u2800\u3000\ufeff\u0660aZ9_-./:é😀\U000e0041"
)


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, Any]:
    """An example with one to three small changes."""
    case = draw(st.sampled_from(examples()))
    holder = {"record": copy.deepcopy(case.data)}
    for _ in range(draw(st.integers(1, 3))):
        parent, key = draw(st.sampled_from(places(holder)))
        mutate(draw, parent, key)
        if "record" not in holder:
            break
    return case.kind, holder.get("record")


def places(node: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        found += [(node, key), *places(node[key])]
    return found


def mutate(draw: st.DrawFn, parent: Any, key: Any) -> None:
    value = parent[key]
    change = draw(st.sampled_from(["drop", "replace", "append newline", "replace a character", "add", "repeat"]))
    if change == "drop":
        del parent[key]
    elif change == "append newline" and isinstance(value, str):
        parent[key] = value + "\n"
    elif change == "replace a character" and isinstance(value, str) and value:
        at = draw(st.integers(0, len(value) - 1))
        parent[key] = value[:at] + draw(st.sampled_from(CHARACTERS)) + value[at + 1 :]
    elif change == "add" and isinstance(value, dict):
        name = draw(st.sampled_from(NAMES))
        value[name] = copy.deepcopy(draw(st.sampled_from(REPLACEMENTS)))
    elif change == "repeat" and isinstance(value, list):
        parent[key] = value * 2
    else:
        parent[key] = copy.deepcopy(draw(st.sampled_from(REPLACEMENTS)))


@settings(max_examples=400)
@given(mutated())
def test_both_validators_agree_on_changed_examples(changed: tuple[str, Any]) -> None:
    kind, value = changed
    reference, fast = validators(kind).verdicts(value)
    assert reference == fast


@settings(max_examples=100)
@given(st.sampled_from(examples()), st.data())
def test_both_validators_agree_on_any_text_in_any_place(case: Case, data: st.DataObject) -> None:
    record = copy.deepcopy(case.data)
    parent, key = data.draw(st.sampled_from([p for p in places(record) if isinstance(p[0][p[1]], str)]))
    parent[key] = data.draw(st.text(max_size=12))
    reference, fast = validators(case.kind).verdicts(record)
    assert reference == fast


@pytest.mark.parametrize(("length", "valid"), [(500, True), (501, False)])
def test_lengths_count_code_points(length: int, valid: bool) -> None:
    labels = copy.deepcopy(next(case.data for case in examples() if case.name == "labels"))
    labels["labels"][0]["summary"] = "😀" * length
    assert validators("labels").verdicts(labels) == (valid, valid)

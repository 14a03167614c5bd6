"""Canonical JSON against the independent reference `rfc8785`, for generated values; and what is refused."""

from __future__ import annotations

import json
from collections import OrderedDict, UserDict, UserList
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction
from typing import Any, NoReturn

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from learning_core.canonical import MAX_DEPTH, MAX_INTEGER, canonical_bytes, derive_id, digest, parse_json
from learning_core.errors import InvalidJson, NotPlainJson

# Where the orders by code point and by UTF-16 code unit differ: around the surrogates and beyond the first plane.
EDGE_CHARACTERS = '\x00\x1f "\\/az\x7f\x80é\u2028\ud7ff\ue000\ufb33\ufffd\uffff\U00010000\U0001f600\U0010ffff'
TEXTS = st.text() | st.text(EDGE_CHARACTERS, max_size=4)
SCALARS = st.none() | st.booleans() | st.integers(-MAX_INTEGER, MAX_INTEGER) | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=6), max_leaves=25
)


# What is accepted ----------------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(VALUES)
def test_canonical_bytes_are_those_of_the_reference(value: Any) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)


@settings(max_examples=200)
@given(st.dictionaries(st.text(EDGE_CHARACTERS, max_size=3), st.integers(0, 9), min_size=2, max_size=8))
def test_names_sort_like_the_reference_sorts_them(value: dict[str, int]) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)


@given(VALUES)
def test_what_is_written_reads_as_the_same_value(value: Any) -> None:
    canonical = canonical_bytes(value)
    assert parse_json(canonical) == value
    assert canonical_bytes(parse_json(canonical)) == canonical


@given(VALUES, st.booleans(), st.sampled_from([None, 0, 3]))
def test_every_spelling_has_the_same_canonical_form(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert canonical_bytes(parse_json(text)) == canonical_bytes(parse_json(text.encode())) == rfc8785.dumps(value)


def test_a_key_order_that_only_utf16_gives() -> None:
    """An astral key sorts before U+E000, though its code point is greater: the fast path must not take this one."""
    assert canonical_bytes({"\ue000": 1, "\U0001f600": 2}) == '{"😀":2,"\ue000":1}'.encode()


def test_a_derived_id_is_a_prefix_and_a_digest() -> None:
    assert derive_id("event", "a", 1, None) == "event_" + digest(["event", "a", 1, None]).removeprefix("sha256:")


# What is no plain JSON -----------------------------------------------------------------------------------------------


TRAPPED = (
    *("__iter__", "__len__", "__str__", "__repr__", "__int__", "__index__", "__float__", "__bool__", "__hash__"),
    *("__eq__", "__ne__", "__lt__", "__getattribute__", "__getitem__", "__contains__", "__json__", "toJSON"),
    *("keys", "values", "items", "get", "encode", "isascii", "isoformat", "bit_length", "__copy__", "__reduce_ex__"),
)


def make_trap(base: type[Any], *arguments: object) -> Any:
    """An object of a subclass, each of whose methods that a serializer might call fails the test."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a foreign object was called")

    return type("Trap", (base,), dict.fromkeys(TRAPPED, refuse))(*arguments)


class Level(IntEnum):
    ONE = 1


class Word(StrEnum):
    ONE = "one"


FOREIGN: dict[str, Any] = {
    "tuple": (1, 2),
    "set": {1},
    "frozenset": frozenset(),
    "bytes": b"a",
    "bytearray": bytearray(b"a"),
    "memoryview": memoryview(b"a"),
    "date": date(2026, 11, 30),
    "datetime": datetime(2026, 11, 30, tzinfo=UTC),
    "Decimal": Decimal(1),
    "Fraction": Fraction(1),
    "complex": 1j,
    "float": 1.5,
    "whole float": 1.0,
    "minus zero": -0.0,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "2^53": 2**53,
    "-2^53": -(2**53),
    "huge integer": 10**5000,
    "IntEnum": Level.ONE,
    "StrEnum": Word.ONE,
    "OrderedDict": OrderedDict(a=1),
    "UserDict": UserDict(a=1),
    "UserList": UserList([1]),
    "generator": (item for item in [1]),
    "class": dict,
    "function": len,
    "ellipsis": ...,
    "lone high surrogate": "\ud800",
    "lone low surrogate": "a\udfffb",
    "surrogates in the wrong order": "\udc00\ud800",
    "name that is a number": {1: "a"},
    "name that is None": {None: "a"},
    "name that is True": {True: "a"},
    "name of a subclass": {Word.ONE: "a"},
    "name with a lone surrogate": {"\ud800": 1},
    "trap": make_trap(object),
    "trap that is a dict": make_trap(dict, [("a", 1)]),
    "trap that is a list": make_trap(list, [1]),
    "trap that is a text": make_trap(str, "a"),
    "trap that is a number": make_trap(int, 1),
}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("depth", [0, 1, 2, 40])
def test_what_is_not_plain_json_is_refused_without_calling_it(name: str, depth: int) -> None:
    value: Any = FOREIGN[name]
    for level in range(depth):
        value = [1, value, "x"] if level % 2 else {"a": 1, "b": value}
    with pytest.raises(NotPlainJson):
        canonical_bytes(value)
    with pytest.raises(NotPlainJson):
        digest(value)


REFUSED_BY_THE_REFERENCE = ("NaN", "infinity", "2^53", "-2^53", "lone high surrogate", "name with a lone surrogate")


@given(VALUES, st.sampled_from(REFUSED_BY_THE_REFERENCE), st.data())
def test_what_the_reference_refuses_is_refused(value: Any, name: str, data: st.DataObject) -> None:
    poisoned = place(value, FOREIGN[name], data)
    with pytest.raises((rfc8785.CanonicalizationError, UnicodeEncodeError)):
        rfc8785.dumps(poisoned)
    with pytest.raises(NotPlainJson):
        canonical_bytes(poisoned)


def place(value: Any, poison: Any, data: st.DataObject) -> Any:
    """The value with the poison somewhere in it."""
    if isinstance(value, list) and value and data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(value) - 1))
        return [*value[:at], place(value[at], poison, data), *value[at + 1 :]]
    if isinstance(value, dict) and value and data.draw(st.booleans()):
        name = data.draw(st.sampled_from(sorted(value)))
        return {**value, name: place(value[name], poison, data)}
    return [value, poison]


# Depth ---------------------------------------------------------------------------------------------------------------


def nest(depth: int, *, innermost: Any, objects: bool) -> Any:
    value = innermost
    for _ in range(depth):
        value = {"a": value} if objects else [value]
    return value


@pytest.mark.parametrize("objects", [False, True])
@pytest.mark.parametrize("innermost", [1, [], {}, "", [1, 2]], ids=repr)
def test_nesting_ends_at_64_levels(innermost: Any, objects: bool) -> None:
    inner_levels = isinstance(innermost, (list, dict))
    deepest = nest(MAX_DEPTH - inner_levels, innermost=innermost, objects=objects)
    assert canonical_bytes(deepest) == rfc8785.dumps(deepest)
    assert parse_json(json.dumps(deepest)) == deepest
    deeper = nest(1, innermost=deepest, objects=objects)
    with pytest.raises(NotPlainJson, match="deeper than 64"):
        canonical_bytes(deeper)
    with pytest.raises(InvalidJson, match="deeper than 64"):
        parse_json(json.dumps(deeper))


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotPlainJson, match="deeper than 64"):
        canonical_bytes(loop)


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
@pytest.mark.parametrize("levels", [65, 900, 1100, 200_000])
def test_an_abyss_is_refused(opening: str, levels: int) -> None:
    with pytest.raises(InvalidJson):
        parse_json(opening * levels)


# Strict reading ------------------------------------------------------------------------------------------------------


@given(st.integers(0, MAX_DEPTH - 1), st.text(min_size=1, max_size=3), st.sampled_from(["object", "array"]))
def test_a_repeated_name_is_refused_at_every_depth(depth: int, name: str, around: str) -> None:
    opening, closing = ('{"a":', "}") if around == "object" else ("[0,", "]")
    plain, escaped = json.dumps(name, ensure_ascii=False), "".join(f"\\u{unit:04x}" for unit in utf16_units(name))
    text = f'{opening * depth}{{{plain}:1,"other name":2,"{escaped}":1}}{closing * depth}'
    with pytest.raises(InvalidJson, match="repeats"):
        parse_json(text)


def utf16_units(text: str) -> list[int]:
    raw = text.encode("utf-16-be")
    return [int.from_bytes(raw[at : at + 2]) for at in range(0, len(raw), 2)]


NUMBERS = ["1.0", "1.5", "-0.0", "0e0", "1e2", "1E400", "1e999", "-1e-999", str(2**53), str(-(2**53)), "9" * 5000]


@pytest.mark.parametrize("number", [*NUMBERS, "NaN", "Infinity", "-Infinity"], ids=lambda number: number[:20])
@pytest.mark.parametrize("around", ["%s", "[%s]", '{"a":{"b":[%s]}}'])
def test_a_number_that_is_no_safe_integer_is_refused(number: str, around: str) -> None:
    with pytest.raises(InvalidJson):
        parse_json(around % number)


@pytest.mark.parametrize("before", ["\ufeff", "\x00", "\x0b", "\u00a0", "\u2028", ")]}'\n"], ids=ascii)
def test_only_white_space_may_stand_around_a_text(before: str) -> None:
    for text in (before + "[]", "[]" + before):
        with pytest.raises(InvalidJson):
            parse_json(text)
        with pytest.raises(InvalidJson):
            parse_json(text.encode())


def test_a_text_may_have_a_limit() -> None:
    assert parse_json(b'"ab"', max_bytes=4) == "ab"
    with pytest.raises(InvalidJson, match="at most 3"):
        parse_json(b'"ab"', max_bytes=3)


FRAGMENTS = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    '"a"',
    '"a":',
    "1",
    "-",
    "0",
    ".5",
    "e9",
    "null",
    "true",
    "NaN",
    " ",
    "\n",
]
FRAGMENTS += ["\\", "\\u", "\\ud83d", "\\ude00", "d800", "\ufeff", "\x00", "é", "😀", "/*", "'"]


@settings(max_examples=300)
@given(
    st.binary(max_size=20)
    | st.lists(st.sampled_from(FRAGMENTS), max_size=12).map(lambda parts: "".join(parts).encode())
)
def test_any_bytes_are_read_like_strict_json_or_refused(raw: bytes) -> None:
    try:
        value = parse_json(raw)
    except InvalidJson:
        return
    assert value == json.loads(raw)
    assert canonical_bytes(value) == rfc8785.dumps(value)


@given(st.text(max_size=30))
def test_a_refusal_is_one_printable_line(text: str) -> None:
    """Messages quote names and numbers; they must not carry control characters into a log."""
    name = json.dumps(text)
    with pytest.raises(InvalidJson) as refusal:
        parse_json(f"{{{name}:1,{name}:2}}")
    assert refusal.value.message.isascii()
    assert refusal.value.message.isprintable()

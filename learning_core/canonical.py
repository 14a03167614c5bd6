"""Strict JSON in, RFC 8785 canonical bytes out, digests and derived IDs over them.

What is digested is what is stored. `rfc8785` is the reference for canonical bytes. The hot path is orjson with sorted
keys, which equals it under the conditions that `check_plain` proves: no floats, safe integers, valid Unicode, keys
below U+D800. A key above that takes the reference's way.

Source: RFC 8785; RFC 7493 (I-JSON); design.md, decision 2.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NoReturn

import orjson
import rfc8785

from learning_core.errors import InvalidJson, NotPlainJson

MAX_DEPTH = 64
MAX_INTEGER = 2**53 - 1
MAX_BYTES = 1 << 30
"""The largest JSON text that is read: 1 GiB."""


def parse_json(raw: bytes | str, *, max_bytes: int = MAX_BYTES) -> Any:
    """Read one JSON text strictly. Raises `InvalidJson`.

    Refused: malformed text, invalid UTF-8, a byte order mark, a member name that repeats (at every depth), NaN and
    Infinity, floats, integers beyond ±(2^53-1), lone surrogates, nesting deeper than 64, more than `max_bytes`.
    """
    if len(raw) > max_bytes:
        raise InvalidJson(f"The JSON text has {len(raw):,} bytes; at most {max_bytes:,} are read.")
    try:
        text = raw.decode("utf-8") if isinstance(raw, bytes) else raw
    except UnicodeDecodeError as error:
        raise InvalidJson(f"The JSON text is not valid UTF-8 (byte {error.start}).") from None
    start = len(text) - len(text.lstrip(" \t\n\r"))
    try:
        value, end = decode_value(text, start)
        if text[end:].strip(" \t\n\r"):
            raise json.JSONDecodeError("Extra data", text, end)
    except json.JSONDecodeError as error:
        raise InvalidJson(
            f"The JSON text is malformed: {error.msg} (line {error.lineno}, column {error.colno})."
        ) from None
    check_parsed(value)
    return value


def decode_value(text: str, position: int) -> tuple[Any, int]:
    """The JSON value that begins at a position, and where it ends. Raises `InvalidJson`, `json.JSONDecodeError`.

    What only the whole value can tell (`check_parsed`) is not checked.
    """
    try:
        return _DECODER.raw_decode(text, position)
    except RecursionError:
        raise InvalidJson(f"The JSON text is nested deeper than {MAX_DEPTH} levels.") from None


def check_parsed(value: Any) -> None:
    """Raise `InvalidJson` for a parsed value with a lone surrogate or too deep a nesting."""
    try:
        check_plain(value)
    except NotPlainJson as error:
        raise InvalidJson(error.message) from None


def canonical_bytes(value: Any) -> bytes:
    """The RFC 8785 form of a plain JSON value. Raises `NotPlainJson`."""
    if check_plain(value):
        return rfc8785.dumps(value)
    return proven_bytes(value)


def proven_bytes(value: Any) -> bytes:
    """The same for a value that `check_plain` has passed without asking for the reference's sorting."""
    # A copy: the buffer that orjson returns keeps far more memory than its length while it lives.
    return bytes(memoryview(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)))


def digest_bytes(canonical: bytes) -> str:
    """`sha256:` and the SHA-256 of canonical bytes in lower-case hex."""
    return "sha256:" + hashlib.sha256(canonical).hexdigest()


def digest(value: Any) -> str:
    """The digest of a plain JSON value. Raises `NotPlainJson`."""
    return digest_bytes(canonical_bytes(value))


def proven_digest(value: Any) -> str:
    """The same for a value that `check_plain` has passed without asking for the reference's sorting."""
    return "sha256:" + hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


def derive_id(prefix: str, *parts: Any) -> str:
    """`<prefix>_` and the SHA-256 of the RFC 8785 form of `[prefix, parts…]`."""
    return f"{prefix}_{hashlib.sha256(canonical_bytes([prefix, *parts])).hexdigest()}"


def check_plain(value: Any) -> bool:
    """Prove that a value is plain JSON that may be digested; say whether a key needs the reference's sorting.

    Accepted are exactly `dict` with `str` keys, `list`, `str`, `int`, `bool` and `None`, by identity of the type, so
    that no method of a subclass or of a foreign object is ever called. Raises `NotPlainJson`.
    """
    astral = False
    level = [value]
    depth = 0
    while level:
        depth += 1
        below: list[Any] = []
        containers = False
        for item in level:
            kind = type(item)
            if kind is str:
                if not item.isascii():
                    _check_unicode(item)
            elif kind is dict:
                containers = True
                astral = _check_keys(item) or astral
                below.extend(item.values())
            elif kind is list:
                containers = True
                below.extend(item)
            elif kind is int:
                if not -MAX_INTEGER <= item <= MAX_INTEGER:
                    raise NotPlainJson("An integer lies beyond ±(2^53-1).")
            elif kind is not bool and item is not None:
                raise NotPlainJson("A number is not an integer." if kind is float else "A value is not plain JSON.")
        if depth > MAX_DEPTH and containers:
            raise NotPlainJson(f"The value is nested deeper than {MAX_DEPTH} levels.")
        level = below
    return astral


def _check_keys(members: dict[Any, Any]) -> bool:
    """Whether a member name needs the reference's sorting: code units and code points order it differently."""
    if not set(map(type, members)) <= _ONLY_TEXT:
        raise NotPlainJson("A member name is not a string.")
    names = "".join(members)
    if names.isascii():
        return False
    _check_unicode(names)
    return max(names) >= "\ud800"


def _check_unicode(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotPlainJson("A string holds a lone surrogate, which is not valid Unicode.") from None


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        name = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InvalidJson(f"The member name {json.dumps(name[:80])} repeats in one object.")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidJson(f"{name} is not JSON.")


def _refuse_float(text: str) -> NoReturn:
    raise InvalidJson(f"The number {text[:40]} is not an integer; records hold no floats.")


def _read_integer(text: str) -> int:
    if len(text) > 17:
        raise InvalidJson("An integer lies beyond ±(2^53-1).")
    return int(text)


_ONLY_TEXT = frozenset({str})

_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_members,
    parse_constant=_refuse_constant,
    parse_float=_refuse_float,
    parse_int=_read_integer,
)

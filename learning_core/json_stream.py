"""Strict JSON read in pieces: an object whose one large array is handed over item by item.

A comment log may have 100 MB; its text and its values need never be in memory as a whole. The rules are those of
`canonical.parse_json`, and so are the refusals.

Source: RFC 8259; design.md, decision 2 and section 6.
"""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from learning_core.canonical import MAX_BYTES, check_parsed, decode_value
from learning_core.errors import InvalidJson, InvalidRecord, NotFound

Source: TypeAlias = bytes | str | Path | BinaryIO
"""Where JSON text comes from: the text, a file's path, or an open binary file, which is closed at the end."""

CHUNK_BYTES = 1 << 20
ARRAY = object()
"""Stands for the array that is handed over item by item."""

_SPACE = re.compile(r"[ \t\n\r]*")


def read_object(source: Source, array: str) -> Iterator[tuple[str, Any]]:
    """The members of a JSON object as `(name, value)`, in their order; the array `array` is handed over item by item.

    It gives one pair with the value `ARRAY`, and then a pair an item. Raises `InvalidJson`, and `NotFound` for a file
    that cannot be read.
    """
    with _open(source) as stream:
        yield from _Scanner(stream).members(array)


def _open(source: Source) -> BinaryIO:
    if isinstance(source, Path):
        try:
            if source.stat().st_size > MAX_BYTES:
                raise InvalidJson(f"{source.name} has more than {MAX_BYTES:,} bytes.")
            return source.open("rb")
        except OSError as error:
            raise NotFound(f"{source} cannot be read: {error.strerror}.") from None
    if isinstance(source, str):
        # A lone surrogate passes here and is refused where it stands.
        source = source.encode("utf-8", "surrogatepass")
    return io.BytesIO(source) if isinstance(source, bytes) else source


class _Scanner:
    """The text from a position on, read as far as needed."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._position = 0
        self._ended = False

    def members(self, array: str) -> Iterator[tuple[str, Any]]:
        """See `read_object`."""
        names: set[str] = set()
        if self._peek() not in (None, "{"):
            self._read_value()
            raise InvalidRecord("The JSON text is refused: it must be an object.", kind="object", pointer="")
        self._expect("{")
        if self._peek() == "}":
            self._position += 1
        else:
            while True:
                name = self._read_value()
                if not isinstance(name, str):
                    raise InvalidJson("The JSON text is malformed: a member name is not a string.")
                if name in names:
                    raise InvalidJson(f"The member name {json.dumps(name[:80])} repeats in one object.")
                names.add(name)
                self._expect(":")
                if name == array and self._peek() == "[":
                    yield name, ARRAY
                    yield from ((name, item) for item in self._items())
                else:
                    yield name, self._read_value()
                if self._either(",", "}") == "}":
                    break
        if self._peek() is not None:
            raise InvalidJson("The JSON text is malformed: something follows its end.")

    def _items(self) -> Iterator[Any]:
        self._expect("[")
        if self._peek() == "]":
            self._position += 1
            return
        while True:
            yield self._read_value()
            if self._either(",", "]") == "]":
                return

    def _read_value(self) -> Any:
        """The next value. A value that is cut off by the end of what is in memory is tried again with more."""
        self._peek()
        wanted = CHUNK_BYTES
        while True:
            try:
                value, end = decode_value(self._text, self._position)
            except json.JSONDecodeError as error:
                if self._ended:
                    raise InvalidJson(f"The JSON text is malformed: {error.msg}.") from None
            else:
                # A number may go on in what has not been read yet.
                if end < len(self._text) or self._ended:
                    self._position = end
                    check_parsed(value)
                    return value
            self._read_more(wanted)
            wanted *= 2

    def _read_more(self, wanted: int) -> None:
        raw = self._stream.read(wanted)
        try:
            added = self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError:
            raise InvalidJson("The JSON text is not valid UTF-8.") from None
        self._ended = not raw
        self._text = self._text[self._position :] + added
        self._position = 0

    def _peek(self) -> str | None:
        """The next character that is no white space; None at the end."""
        while True:
            match = _SPACE.match(self._text, self._position)
            self._position = match.end() if match else self._position
            if self._position < len(self._text):
                return self._text[self._position]
            if self._ended:
                return None
            self._read_more(CHUNK_BYTES)

    def _expect(self, character: str) -> None:
        self._either(character, character)

    def _either(self, one: str, other: str) -> str:
        found = self._peek()
        if found is None or found not in (one, other):
            wanted = one if one == other else f"{one} or {other}"
            raise InvalidJson(f"The JSON text is malformed: {wanted} is missing.")
        self._position += 1
        return found

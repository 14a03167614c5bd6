"""Text as data: what an agent or a terminal may be shown of a text that somebody else wrote.

Control characters, and formatting characters that are invisible or reorder text, never reach an agent, a terminal or
an identifier. Where a person reads words, emoji and right-to-left words stay readable.
"""

from __future__ import annotations

import json
import re
import unicodedata

_SPACES = ("Zs", "Zl", "Zp")
_REMOVED = ("Cc", "Cf", "Cs", "Co", "Cn")
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_VARIATION = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_EMOJI_PARTS = "\u200d\ufe0f"
"""The joiner, and what asks for the picture: an emoji that a person reads needs them."""


def clean_field(text: str) -> str:
    """One line without anything invisible: breaks and blanks become spaces, control and format characters go."""
    return "".join(_clean(character) for character in text)


def quote_text(text: str) -> str:
    """A comment's text for a terminal: a JSON string on one line; the parts of an emoji stay."""
    kept = "".join(c if c in "\n\t" or c in _EMOJI_PARTS else _clean(c) for c in text.replace("\r\n", "\n"))
    return json.dumps(kept, ensure_ascii=False).replace("\x7f", "")


def _clean(character: str) -> str:
    if character.isascii() and character.isprintable():
        return character
    category = unicodedata.category(character)
    if category in _SPACES or character in "\t\n\r\x0b\x0c\x85":
        return " "
    hidden = category in _REMOVED or character in _BLANK or _VARIATION.match(character) is not None
    return "" if hidden else character

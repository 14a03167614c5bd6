"""Text as data: what an agent or a terminal may be shown of a text that somebody else wrote.

Control characters, and formatting characters that are invisible or reorder text, never reach an agent, a terminal or
an identifier. Where a person reads words, emoji and right-to-left words stay readable.
"""

from __future__ import annotations

import json
import unicodedata

_SPACES = ("Zs", "Zl", "Zp")
_REMOVED = ("Cc", "Cf", "Cs", "Co", "Cn")
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_EMOJI_JOINER = "\u200d"


def clean_field(text: str) -> str:
    """One line without anything invisible: breaks and blanks become spaces, control and format characters go."""
    return "".join(_clean(character) for character in text)


def quote_text(text: str) -> str:
    """A comment's text for a terminal: a JSON string on one line; the joiner inside an emoji stays."""
    kept = "".join(c if c in "\n\t" or c == _EMOJI_JOINER else _clean(c) for c in text.replace("\r\n", "\n"))
    return json.dumps(kept, ensure_ascii=False).replace("\x7f", "")


def _clean(character: str) -> str:
    if character.isascii() and character.isprintable():
        return character
    category = unicodedata.category(character)
    if category in _SPACES or character in "\t\n\r\x0b\x0c\x85":
        return " "
    return "" if category in _REMOVED or character in _BLANK else character

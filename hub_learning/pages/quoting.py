"""Someone else's text, shown as text.

What a reader cannot see but a machine would read, or what reorders a line, is shown by name instead of taking effect:
control characters, zero-width characters, marks that override the direction, and tag characters. The joiners that
emoji and Persian need, and scripts that run from right to left, stay as they are: the page isolates each quote.
"""

from __future__ import annotations

import re
import unicodedata

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

_FLAG = "\U0001f3f4[\U000e0020-\U000e007e]{1,6}\U000e007f"
_TAGS = "\U000e0000-\U000e007f"
_HIDDEN = (
    "\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2028-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e0fff"
)
_SPECIAL = re.compile(f"({_FLAG})|([{_TAGS}]+)|((?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]+|[{_HIDDEN}]+)")


def show_text(text: str) -> SafeString:
    """The text as escaped HTML, with what would be invisible named in a `<span class="hidden-char">`."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    parts: list[tuple[SafeString | str]] = []
    end = 0
    for match in _SPECIAL.finditer(text):
        if match[1] is not None:
            continue
        parts.append((text[end : match.start()],))
        parts.append((_name(match[0], is_tags=match[2] is not None),))
        end = match.end()
    parts.append((text[end:],))
    return format_html_join("", "{}", parts)


def _name(run: str, *, is_tags: bool) -> SafeString:
    """What stands in the place of a run of hidden characters."""
    if is_tags:
        words = "".join(chr(ord(character) - 0xE0000) for character in run)
        printable = "".join(character for character in words if character.isprintable())
        return format_html('<span class="hidden-char">hidden text: {}</span>', printable)
    code = f"U+{ord(run[0]):04X}"
    name = unicodedata.name(run[0], "control character").lower()
    if len(run) == 1:
        return format_html('<span class="hidden-char" title="{}">{}</span>', name, code)
    if len(set(run)) == 1:
        return format_html('<span class="hidden-char" title="{}">{} ×{}</span>', name, code, len(run))
    return format_html('<span class="hidden-char">{} hidden characters</span>', len(run))

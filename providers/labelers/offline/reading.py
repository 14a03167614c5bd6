"""What a reviewer said in their own words: a comment's text, cut into clauses of plain lower-case words.

Quotations, code and addresses are somebody else's words, so they go first: fenced and indented blocks (suggestions
too), lines that begin with `>`, HTML comments, images and addresses are dropped; inline code, quoted strings, names
with underscores and paths become placeholders. Then the text is cut at sentence ends,
list items, blank lines and "but". The work is linear in the length of the text: every regular expression here is
bounded, and at most `MAX_OWN` characters of own words are read.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from providers.labelers.offline.phrases import CODE, QUOTED, SUBSTITUTION

MAX_TEXT = 262_144
MAX_OWN = 20_000
MAX_WORDS = 80
MAX_LETTERS = 64

_INVISIBLE = re.compile("[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]")
_QUOTES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "`": "`", "“": '"', "”": '"', "„": '"', "\t": "    "})
_LIST_ITEM = re.compile(r"^ {0,8}(?:[-*+•]|\d{1,3}[.)]) ")
_REPLACED = (
    (re.compile(r"!\[[^\[\]\n]{0,300}\]\([^()\s]{0,500}\)"), " "),
    (re.compile(r"\[([^\[\]\n]{0,300})\]\([^()\s]{0,500}\)"), r"\1"),
    (re.compile(r"<?\b(?:https?|ftp|file)://\S+|\bwww\.\S+"), " "),
    (re.compile(r"``[^`\n]{1,300}``|`[^`\n]{1,300}`"), f" {CODE} "),
    (re.compile(r"</?[a-zA-Z][^<>\n]{0,200}>"), " "),
    (re.compile(r"\bs/[^/\n]{1,80}/[^/\n]{0,80}/?(?!\w)"), f" {SUBSTITUTION} "),
    (re.compile(r'"[^"\n]{1,300}"'), f" {QUOTED} "),
    (re.compile(r"(?<!\w)'[^'\n]{1,80}'(?!\w)"), f" {QUOTED} "),
    (re.compile(r"\b([a-zA-Z]{1,64})\((?:s|es)?\)"), r"\1 "),
    (re.compile(r"\b[\w.]{1,64}\([^()\n]{0,120}\)"), f" {CODE} "),
    (re.compile(r"\b(?:[A-Z][a-z0-9]{1,30}){2,6}\b"), f" {CODE} "),
    (re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx)\.", re.IGNORECASE), " "),
)
_BOUNDARY = re.compile(
    r"(?<![.!?…;])[.!?…;]+(?=[\s)\]\"']|\Z)|[。！？؟]+|\n {0,8}\n|\n(?= {0,8}(?:[-*+•]|\d{1,3}[.)]) )"
)
_TURN = re.compile(r",?\s(?:but|however|although|except that)\s", re.IGNORECASE)
_WORD = re.compile(r"[^\s,()\[\]{}\"“”«»!?…|—–]{1,200}")
_CODE_LIKE = re.compile(r"[_./\\=<>$#@&%^~:;*]")


@dataclass(frozen=True)
class Clause:
    """One clause. `text` is its words with one space around each; `question` says that it ends with a question mark."""

    words: tuple[str, ...]
    question: bool

    @cached_property
    def text(self) -> str:
        return " " + " ".join(self.words) + " "

    @cached_property
    def keys(self) -> frozenset[str]:
        """The words without apostrophes: what the index of phrases is asked for."""
        return frozenset(word.replace("'", "") for word in self.words)


def read_clauses(text: str) -> list[Clause]:
    """The clauses of a comment. Never raises; what is longer than `MAX_TEXT` characters is not read to its end."""
    own = _own_words(text[:MAX_TEXT])[:MAX_OWN]
    clauses: list[Clause] = []
    for sentence, question in _sentences(own):
        parts = _TURN.split(_LIST_ITEM.sub("", sentence.lstrip("\n"), count=1))
        for number, part in enumerate(parts, 1):
            words = tuple(_words(part))
            for start in range(0, len(words), MAX_WORDS):
                last = number == len(parts) and start + MAX_WORDS >= len(words)
                clauses.append(Clause(words[start : start + MAX_WORDS], question and last))
    return clauses


def _own_words(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = unicodedata.normalize("NFC", _INVISIBLE.sub("", text)).translate(_QUOTES)
    text = _without_html_comments("\n".join(_prose_lines(text)))
    for pattern, replacement in _REPLACED:
        text = pattern.sub(replacement, text)
    return text


def _prose_lines(text: str) -> Iterator[str]:
    """The lines that are neither quoted nor code. An indented line is code unless it continues prose or a list."""
    fence = ""
    in_list = False
    may_be_code = True
    for line in text.split("\n"):
        stripped = line.strip()
        marker = stripped[:3]
        if fence:
            fence = "" if stripped.startswith(fence) else fence
            continue
        if marker in ("```", "~~~"):
            closed = len(stripped) > 5 and stripped.endswith(marker)
            fence = "" if closed else marker
            continue
        if stripped.startswith(">"):
            yield ""
            continue
        in_list = in_list or _LIST_ITEM.match(line) is not None
        if line.startswith("    ") and may_be_code and not in_list:
            continue
        may_be_code = not stripped
        yield line


def _without_html_comments(text: str) -> str:
    kept: list[str] = []
    at = 0
    while (start := text.find("<!--", at)) >= 0:
        kept.append(text[at:start])
        end = text.find("-->", start)
        if end < 0:
            return " ".join(kept)
        at = end + 3
    kept.append(text[at:])
    return " ".join(kept)


def _sentences(own: str) -> Iterator[tuple[str, bool]]:
    at = 0
    for boundary in _BOUNDARY.finditer(own):
        yield own[at : boundary.start()], any(mark in boundary[0] for mark in "?？؟")
        at = boundary.end()
    yield own[at:], False


def _words(part: str) -> Iterator[str]:
    for found in _WORD.finditer(part.lower()):
        raw = found[0].strip(".:;*~^'_<>=#&%$@\\")
        if raw in ("+1", "-1", "++", "+2", "-2", CODE, QUOTED, SUBSTITUTION):
            yield raw
            continue
        if not _has_letters(raw):
            continue
        for piece in _pieces(raw):
            if _CODE_LIKE.search(piece) or len(piece) > MAX_LETTERS:
                yield CODE
            else:
                yield from filter(_has_letters, piece.split("-"))


def _has_letters(word: str) -> bool:
    return any(map(str.isalnum, word))


def _pieces(raw: str) -> list[str]:
    """`comment/docstring` is two words; `a/b/c.py` is a path, and so code."""
    if "/" in raw and raw.count("/") <= 2:
        parts = raw.strip("/").split("/")
        if all(part.replace("'", "").isalpha() for part in parts):
            return parts
    return [raw]

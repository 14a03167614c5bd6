"""The phrase language of a themes file: read a phrase, compile it, and find it in a clause.

A phrase is matched against the words of one clause (see `reading`): lower-case words with one space between
them, no punctuation, and the placeholders `¤` for code and `¤q` for quoted words. The language, by example:

| phrase                      | matches                                                                   |
|-----------------------------|---------------------------------------------------------------------------|
| `contrast too low`          | these words, in this order, side by side                                  |
| `(low|poor) contrast`       | either word; an alternative may hold several words                        |
| `add (a|the)? test`         | `?` makes a word or a group optional                                      |
| `add (a|new|small)* test`   | `*` after a group: none to three of its words                             |
| `renam*`, `*less`           | any ending, any beginning (at most 64 letters)                            |
| `comment(s|ed)`             | the word as it is, or with one of these endings                           |
| `add ... test`              | `...` stands for up to five words, none of them a "not"                   |
| `^ remove`                  | only at the start of a clause, after lead-ins such as "nit" and "please"  |
| `add test $`                | only at the end of a clause                                               |
| `{should} be named`         | the word list `should` of the file's `[words]` table                      |
| `call it <code>`            | a name, a path, quoted words: whatever is not prose                       |
| `drop the <quoted>`         | quoted words only; `<substitution>` is s/this/that/                       |

Apostrophes may be missing in what people write ("dont"), and a hyphen is the same as a space.

No phrase can make the matcher slow: every gap, word and repetition is bounded, and a phrase that asks for more than
`MAX_GAPS` gaps, `MAX_REPEATS` repetitions or `MAX_PHRASE` characters is refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

MAX_PHRASE = 300
MAX_GAPS = 2
MAX_REPEATS = 3
MAX_DEPTH = 5
MAX_NODES = 1500
CODE = "¤"
QUOTED = "¤q"
SUBSTITUTION = "¤s"

_TOKEN = re.compile(
    r"\.\.\.|[()|?^$]|(?<=[)}])\*|\{[a-z][a-z-]*\}|<code>|<quoted>|<substitution>"
    r"|\*?[^\s()|?^${}<>*.,:;!\"/-]+(?:\([^\s()?^${}<>*.]+\)|\*)?|[-/\s]+"
)


class PhraseError(ValueError):
    """A phrase that the language does not know; the message says what is wrong with it and at which place."""


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    open_start: bool = False
    open_end: bool = False

    def regex(self) -> str:
        letters = re.escape(self.text).replace("'", "'?")
        before = "[^ ]{0,64}" if self.open_start else ""
        after = "[^ ]{0,64}" if self.open_end else ""
        return f"{before}{letters}{after} "

    def anchors(self) -> frozenset[str] | None:
        if self.open_start:
            return None
        plain = self.text.replace("'", "")
        return frozenset({plain + "*" if self.open_end else plain})


@dataclass(frozen=True, slots=True)
class _Gap:
    def regex(self) -> str:
        return "(?:{stop}[^ ]+ ){0,5}?"

    def anchors(self) -> frozenset[str] | None:
        return None


@dataclass(frozen=True, slots=True)
class _Edge:
    end: bool

    def regex(self) -> str:
        return r"\Z" if self.end else "{start}"

    def anchors(self) -> frozenset[str] | None:
        return None


@dataclass(frozen=True, slots=True)
class _Optional:
    item: _Node
    times: int = 1

    def regex(self) -> str:
        return f"(?:{self.item.regex()}){{0,{self.times}}}"

    def anchors(self) -> frozenset[str] | None:
        return None


@dataclass(frozen=True, slots=True)
class _Either:
    options: tuple[_Node, ...]

    def regex(self) -> str:
        # The longest first, so that "unit test case" is not taken for "unit test".
        return "(?:" + "|".join(sorted((option.regex() for option in self.options), key=len, reverse=True)) + ")"

    def anchors(self) -> frozenset[str] | None:
        found: set[str] = set()
        for option in self.options:
            anchors = option.anchors()
            if anchors is None:
                return None
            found |= anchors
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Sequence:
    items: tuple[_Node, ...]

    def regex(self) -> str:
        return "".join(item.regex() for item in self.items)

    def anchors(self) -> frozenset[str] | None:
        """The rarest-looking words of which one must occur: the longest, then the fewest."""
        sets = [anchors for item in self.items if (anchors := item.anchors())]
        return max(sets, key=lambda words: (min(map(len, words)), -len(words)), default=None)


_Node = _Word | _Gap | _Edge | _Optional | _Either | _Sequence

_PLACEHOLDERS: dict[str, _Node] = {
    "^": _Edge(end=False),
    "$": _Edge(end=True),
    "<code>": _Either((_Word(CODE), _Word(QUOTED))),
    "<quoted>": _Word(QUOTED),
    "<substitution>": _Word(SUBSTITUTION),
}


@dataclass(frozen=True)
class Phrase:
    """One phrase of a themes file.

    `source` is the phrase as written in the file, `lead_ins` the words that `^` skips, `stops` the words that a gap
    does not skip. `anchors` are words (with a
    final `*`: beginnings of words) of which at least one occurs in every clause that the phrase matches, or None when
    nothing can be said. The regular expression is compiled at its first use.
    """

    source: str
    lead_ins: tuple[str, ...]
    stops: tuple[str, ...]
    node: _Node
    anchors: frozenset[str] | None

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        start, stop = r"\A ", ""
        if self.lead_ins:
            start += f"(?:(?:{_any_of(self.lead_ins)}) ){{0,5}}"
        if self.stops:
            stop = f"(?!(?:{_any_of(self.stops)}) )"
        pattern = self.node.regex().replace("{start}", start).replace("{stop}", stop)
        return re.compile(pattern if pattern.startswith(r"\A ") else "(?<= )" + pattern)

    def find(self, clause: str) -> tuple[int, int] | None:
        """The span of the first place where the phrase stands in `clause` (its text with a space at both ends)."""
        found = self.compiled.search(clause)
        return None if found is None else found.span()


def _any_of(words: Sequence[str]) -> str:
    return "|".join(re.escape(word).replace("'", "'?") for word in words)


def read_phrase(
    source: str, words: Mapping[str, str], lead_ins: Sequence[str] = (), stops: Sequence[str] = ()
) -> Phrase:
    """Read one phrase. Word lists come from `words`. Raises `PhraseError`."""
    if len(source) > MAX_PHRASE:
        raise PhraseError(f"longer than {MAX_PHRASE} characters")
    node = _Reader(words).read(source, seen=())
    return Phrase(source, tuple(lead_ins), tuple(stops), node, node.anchors())


class _Reader:
    """A reader for one phrase; it counts nodes so that word lists inside word lists stay small."""

    def __init__(self, words: Mapping[str, str]) -> None:
        self._words = words
        self._nodes = 0
        self._gaps = 0
        self._repeats = 0

    def read(self, source: str, seen: tuple[str, ...]) -> _Node:
        tokens = _split(source)
        node, rest = self._either(tokens, 0, seen, 0)
        if rest != len(tokens):
            raise PhraseError(f"a ')' too many in {source!r}")
        return node

    def _either(self, tokens: list[str], at: int, seen: tuple[str, ...], depth: int) -> tuple[_Node, int]:
        if depth > MAX_DEPTH or len(seen) > MAX_DEPTH:
            raise PhraseError(f"nested deeper than {MAX_DEPTH}")
        options: list[_Node] = []
        while True:
            node, at = self._sequence(tokens, at, seen, depth)
            options.append(node)
            if at == len(tokens) or tokens[at] != "|":
                break
            at += 1
        if len(options) > 1 and depth == 0 and not seen:
            raise PhraseError("put the alternatives in parentheses")
        return (options[0] if len(options) == 1 else _Either(tuple(options))), at

    def _sequence(self, tokens: list[str], at: int, seen: tuple[str, ...], depth: int) -> tuple[_Node, int]:
        items: list[_Node] = []
        while at < len(tokens) and tokens[at] not in "|)":
            node, at = self._item(tokens, at, seen, depth)
            if at < len(tokens) and tokens[at] in "?*":
                node, at = self._optional(node, repeated=tokens[at] == "*"), at + 1
            items.append(node)
        if not items:
            raise PhraseError("an empty phrase or alternative")
        return (items[0] if len(items) == 1 else _Sequence(tuple(items))), at

    def _optional(self, node: _Node, *, repeated: bool) -> _Node:
        if not repeated:
            return _Optional(node)
        self._repeats += 1
        if self._repeats > MAX_REPEATS:
            raise PhraseError(f"more than {MAX_REPEATS} repetitions")
        return _Optional(node, times=3)

    def _item(self, tokens: list[str], at: int, seen: tuple[str, ...], depth: int) -> tuple[_Node, int]:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise PhraseError(f"more than {MAX_NODES} words with its word lists")
        token = tokens[at]
        if token == "(":
            node, at = self._either(tokens, at + 1, seen, depth + 1)
            if at == len(tokens) or tokens[at] != ")":
                raise PhraseError("a '(' without its ')'")
            return node, at + 1
        if token.startswith("{"):
            return self._word_list(token[1:-1], seen), at + 1
        return self._atom(token), at + 1

    def _word_list(self, name: str, seen: tuple[str, ...]) -> _Node:
        if name not in self._words:
            raise PhraseError(f"no word list is named {name!r}")
        if name in seen:
            raise PhraseError(f"the word list {name!r} holds itself")
        return self.read(self._words[name], (*seen, name))

    def _atom(self, token: str) -> _Node:
        if token in _PLACEHOLDERS:
            return _PLACEHOLDERS[token]
        if token in ("?", "*"):
            raise PhraseError(f"a {token!r} with nothing before it")
        if token != "...":
            return _read_word(token)
        self._gaps += 1
        if self._gaps > MAX_GAPS:
            raise PhraseError(f"more than {MAX_GAPS} gaps")
        return _Gap()


def _read_word(token: str) -> _Node:
    word, _, endings = token.strip("*").lower().partition("(")
    if endings:
        return _Either(tuple(_Word(word + ending) for ending in ("", *endings.rstrip(")").split("|"))))
    return _Word(word, token.startswith("*"), token.endswith("*"))


def _split(source: str) -> list[str]:
    source = unicodedata.normalize("NFC", source)
    tokens: list[str] = []
    at = 0
    while at < len(source):
        found = _TOKEN.match(source, at)
        if found is None:
            raise PhraseError(f"{source[at]!r} at place {at + 1} means nothing here")
        if found[0] == "(" and source[at - 1 : at] in (")", "}"):
            raise PhraseError(f"'(' right after {source[at - 1]!r} at place {at + 1}: endings belong to a single word")
        at = found.end()
        if not re.fullmatch(r"[-/\s]+", found[0]):
            tokens.append(found[0])
    return tokens

"""The themes of the offline labeler: what `themes.toml` and a team's own file hold, read and checked.

A team's file has the same form. Its themes add to ours or replace those with the same key (a theme without patterns
and topics is switched off); its word lists add or replace by name; its cues add to ours.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from learning_core.errors import InvalidConfiguration
from learning_core.plugins import CATEGORIES
from providers.labelers.offline.phrases import Phrase, PhraseError, read_phrase
from providers.labelers.offline.reading import Clause

SHIPPED = Path(__file__).with_name("themes.toml")
MAX_FILE = 1_000_000
MAX_INSTRUCTION = 300
CUES = (
    "lead-in",
    "stop",
    "asking",
    "report",
    "request",
    "suggestion",
    "praise",
    "negation",
    "against",
    "against-after",
    "aside",
)
TARGETS = ("element", "file", "page")
_THEME_MEMBERS = {
    "category": str,
    "instruction": str,
    "patterns": list,
    "topics": list,
    "not": list,
    "targets": list,
    "examples": list,
    "counterexamples": list,
}
_KEY = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")

T = TypeVar("T")


class InvalidThemes(InvalidConfiguration):
    """A themes file cannot be read or used. `details`: `file` and `place`, the table or theme that is wrong."""

    code = "invalid_themes"


@dataclass(frozen=True, slots=True)
class Theme:
    """One theme. `patterns` ask for a change by themselves; `topics` only name the subject, and a cue beside them
    says what is meant; a clause in which one of `vetoes` (member `not`) stands is never about the theme. `targets`
    are the kinds of target it can be about, empty for all.
    """

    key: str
    category: str
    instruction: str
    patterns: tuple[Phrase, ...]
    topics: tuple[Phrase, ...]
    vetoes: tuple[Phrase, ...]
    targets: frozenset[str]
    examples: tuple[str, ...]
    counterexamples: tuple[str, ...]


class PhraseIndex(Generic[T]):
    """Phrases with what they stand for, found by the words that a clause holds, so that most are never tried."""

    def __init__(self, phrases: Iterable[tuple[Phrase, T]]) -> None:
        self._entries = tuple(phrases)
        self._always: list[int] = []
        self._words: dict[str, list[int]] = {}
        self._stems: dict[str, list[int]] = {}
        for number, (phrase, _) in enumerate(self._entries):
            if phrase.anchors is None:
                self._always.append(number)
                continue
            for anchor in phrase.anchors:
                place = self._stems if anchor.endswith("*") else self._words
                place.setdefault(anchor.rstrip("*"), []).append(number)
        self._stem_lengths = sorted({len(stem) for stem in self._stems})

    def find(self, clause: Clause) -> Iterator[tuple[Phrase, T, tuple[int, int]]]:
        """Every phrase that stands in the clause, in the order they were given, with its first span."""
        numbers = set(self._always)
        for word in clause.keys:
            numbers.update(self._words.get(word, ()))
            for length in self._stem_lengths:
                if length > len(word):
                    break
                numbers.update(self._stems.get(word[:length], ()))
        for number in sorted(numbers):
            phrase, meaning = self._entries[number]
            if (span := phrase.find(clause.text)) is not None:
                yield phrase, meaning, span


@dataclass(frozen=True, slots=True)
class Use:
    """What a phrase of a theme is in it: `asks` for a pattern, otherwise a topic."""

    theme: Theme
    asks: bool


@dataclass(frozen=True, slots=True)
class Themes:
    """All themes by key, the indexes that the matcher asks, and the words that a question begins with."""

    by_key: Mapping[str, Theme]
    phrases: PhraseIndex[Use]
    cues: Mapping[str, PhraseIndex[str]]
    asking: frozenset[str]


def load_themes(path: Path | None = None) -> Themes:
    """The shipped themes, and those of a team's file at `path`. Raises `InvalidThemes`."""
    words: dict[str, str] = {}
    cues: dict[str, list[str]] = {name: [] for name in CUES}
    tables: dict[str, tuple[Path, Mapping[str, Any]]] = {}
    files = [SHIPPED] if path is None else [SHIPPED, path]
    for file in files:
        document = _read_document(file)
        words |= _word_lists(file, document)
        for name, phrases in _table(file, document, "cues").items():
            if name not in CUES:
                raise _refused(file, f"cues.{name}", f"there is no such cue; the cues are {', '.join(CUES)}")
            cues[name] += _strings(file, f"cues.{name}", phrases)
        for key, table in _table(file, document, "themes").items():
            tables[key] = (file, table)
    language = _Language(words, tuple(cues.pop("lead-in")), tuple(cues.pop("stop")))
    themes = {key: _theme(file, key, table, language) for key, (file, table) in tables.items()}
    asking = frozenset(cues.pop("asking"))
    return Themes(themes, _theme_index(themes.values()), _cue_indexes(files[-1], cues, language), asking)


@dataclass(frozen=True, slots=True)
class _Language:
    """What the files say about words: the word lists, the lead-ins that `^` skips, the words that stop a gap."""

    words: Mapping[str, str]
    lead_ins: tuple[str, ...]
    stops: tuple[str, ...]

    def read(self, file: Path, place: str, source: str) -> Phrase:
        try:
            return read_phrase(source, self.words, self.lead_ins, self.stops)
        except PhraseError as error:
            raise _refused(file, place, f"the phrase {source!r} is refused: {error}") from error


def _theme_index(themes: Iterable[Theme]) -> PhraseIndex[Use]:
    return PhraseIndex(
        (phrase, Use(theme, asks))
        for theme in themes
        for asks, phrases in ((True, theme.patterns), (False, theme.topics))
        for phrase in phrases
    )


def _cue_indexes(file: Path, cues: Mapping[str, list[str]], language: _Language) -> dict[str, PhraseIndex[str]]:
    return {
        name: PhraseIndex((language.read(file, f"cues.{name}", source), name) for source in sources)
        for name, sources in cues.items()
    }


def _read_document(file: Path) -> dict[str, Any]:
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise _refused(file, "file", f"it cannot be read ({error.strerror})") from error
    if len(raw) > MAX_FILE:
        raise _refused(file, "file", f"it is larger than {MAX_FILE} bytes")
    try:
        document = tomllib.loads(raw.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise _refused(file, "file", f"it is not TOML ({error})") from error
    for name in document:
        if name not in ("words", "cues", "themes"):
            raise _refused(file, name, "the tables of a themes file are words, cues and themes")
    return document


def _theme(file: Path, key: str, table: Any, language: _Language) -> Theme:
    place = f"themes.{key}"
    _check_members(file, place, key, table)

    def phrases(member: str) -> tuple[Phrase, ...]:
        sources = _strings(file, f"{place}.{member}", table.get(member, []))
        return tuple(language.read(file, f"{place}.{member}", source) for source in sources)

    targets = _strings(file, f"{place}.targets", table.get("targets", []))
    for target in targets:
        if target not in TARGETS:
            raise _refused(file, f"{place}.targets", f"{target!r} is not one of {', '.join(TARGETS)}")
    return Theme(
        key=key,
        category=table["category"],
        instruction=table["instruction"],
        patterns=phrases("patterns"),
        topics=phrases("topics"),
        vetoes=phrases("not"),
        targets=frozenset(targets),
        examples=tuple(_strings(file, f"{place}.examples", table.get("examples", []))),
        counterexamples=tuple(_strings(file, f"{place}.counterexamples", table.get("counterexamples", []))),
    )


def _check_members(file: Path, place: str, key: str, table: Any) -> None:
    """1. the key is kebab-case; 2. the members are known and of their types; 3. the category is one of the contract;
    4. the instruction is one line of a bearable length.
    """
    if not _KEY.fullmatch(key) or len(key) > 64:
        raise _refused(file, place, "a theme key is kebab-case and at most 64 characters long")
    if not isinstance(table, dict):
        raise _refused(file, place, "a theme is a table")
    for member, value in table.items():
        if member not in _THEME_MEMBERS:
            raise _refused(file, f"{place}.{member}", f"the members are {', '.join(_THEME_MEMBERS)}")
        if not isinstance(value, _THEME_MEMBERS[member]):
            raise _refused(file, f"{place}.{member}", f"it must be a {_THEME_MEMBERS[member].__name__}")
    for member in ("category", "instruction"):
        if member not in table:
            raise _refused(file, place, f"its {member} is missing")
    if table["category"] not in CATEGORIES:
        raise _refused(file, f"{place}.category", f"it must be one of {', '.join(CATEGORIES)}")
    instruction = table["instruction"]
    if instruction != instruction.strip() or not 1 <= len(instruction) <= MAX_INSTRUCTION or "\n" in instruction:
        raise _refused(file, f"{place}.instruction", f"it must be one line of 1 to {MAX_INSTRUCTION} characters")


def _word_lists(file: Path, document: Mapping[str, Any]) -> dict[str, str]:
    lists = _table(file, document, "words")
    for name, value in lists.items():
        if not isinstance(value, str):
            raise _refused(file, f"words.{name}", "a word list is one string, its alternatives parted by |")
    return dict(lists)


def _table(file: Path, document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise _refused(file, name, "it must be a table")
    return table


def _strings(file: Path, place: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _refused(file, place, "it must be a list of strings")
    return value


def _refused(file: Path, place: str, problem: str) -> InvalidThemes:
    return InvalidThemes(f"The themes file {file.name} is refused at {place}: {problem}.", file=file.name, place=place)

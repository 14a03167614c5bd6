"""How well a learning fits a task: deterministic and lexical, for any language.

A text becomes terms: words (case and width folded, a plain English ending removed), and pairs of neighbouring
characters for scripts that write no spaces. A term that few learnings have weighs more (BM25). Among a handful of
learnings even "in" is rare, so the commonest English words, which no other language misses, are no terms.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ers", "er", "ed", "es", "s", "y", "e")
_COMMON = frozenset(
    _WORD.findall(
        "a an and any are as at be been but by can do does each every for from has have how if in into is it its make "
        "may more must no not of on one only or our out over should so some such than that the their them then there "
        "these they this to too under up use used using via was we were what when where which while who will with "
        "would you your"
    )
)
_DOUBLED = frozenset("bdfglmnprst")
_SATURATION = 1.2
_LENGTH = 0.75


def terms_of(text: str) -> list[str]:
    """The terms of a text, in order, repeats kept."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    terms: list[str] = []
    for run in _UNSPACED.findall(folded):
        terms += [run[i : i + 2] for i in range(len(run) - 1)] or [run]
    terms += [_stem(word) for word in _WORD.findall(_UNSPACED.sub(" ", folded)) if word not in _COMMON]
    return terms


def rank(task: str, documents: Sequence[Sequence[str]]) -> list[tuple[int, float]]:
    """Indexes of the documents (each a list of terms) by their fit to a task, best first, with the score.

    Documents of equal fit keep their order.
    """
    wanted = Counter(terms_of(task))
    counts = [Counter(document) for document in documents]
    having = Counter(term for count in counts for term in count if term in wanted)
    average = sum(len(document) for document in documents) / len(documents) if documents else 0.0
    scores = [_score(wanted, count, having, len(documents), average) for count in counts]
    return sorted(enumerate(scores), key=lambda item: -item[1])


def similarity(one: Sequence[str], other: Sequence[str]) -> float:
    """How much two documents say the same: shared distinct terms over all distinct terms, 0 to 1."""
    first, second = set(one), set(other)
    return len(first & second) / len(first | second) if first | second else 1.0


def _score(wanted: Counter[str], count: Counter[str], having: Counter[str], total: int, average: float) -> float:
    norm = _SATURATION * (1 - _LENGTH + _LENGTH * sum(count.values()) / average) if average else 1.0
    return sum(
        math.log(1 + (total - having[term] + 0.5) / (having[term] + 0.5)) * frequency * 2.2 / (frequency + norm)
        for term in sorted(wanted)
        if (frequency := count[term])
    )


def _stem(word: str) -> str:
    if len(word) > 4 and word.isascii():
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= 3:
                stem = word[: -len(ending)]
                # "logging" and "log", "stopped" and "stop".
                return stem[:-1] if stem[-1] == stem[-2] and stem[-1] in _DOUBLED else stem
    return word

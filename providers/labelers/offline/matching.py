"""From a comment's text to its labels: a pure function.

A clause is about a theme where one of the theme's phrases stands in it. What it says about it is decided in this order:

1. A clause that reports or agrees ("Done, added a test") says nothing new: no label.
2. A topic right beside a contradiction ("no need for a test"): `disagreement`. A pattern there: no label, for it may
   name what is unwanted anyway.
3. A question counts only when it suggests something ("could we ...?", "why not ...?"), when the pattern is a question
   itself ("what does this icon mean?"), or as a bare hint ("typo?", "alt text?").
4. A negation right before the phrase ("not a typo"): no label.
5. Praise at most `MAX_DISTANCE` words away, and no request in the clause ("nice contrast"): `strength`.
6. A pattern, or a topic with a request at most `MAX_DISTANCE` words away: `problem`. A topic alone says nothing.

Where phrases of several themes overlap, the longest is the most exact one and wins. A comment gets at most one label
for a theme and at most `MAX_LABELS`: problems first, then disagreements, then strengths; patterns before topics; more
words before fewer; earlier before later; and then in the order of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from providers.labelers.offline.phrases import Phrase
from providers.labelers.offline.reading import Clause, read_clauses
from providers.labelers.offline.themes import Theme, Themes, Use

MAX_LABELS = 3
MAX_DISTANCE = 3
MAX_HINT = 4
_RANK = ("problem", "disagreement", "strength")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Label:
    """What one comment says about one theme. `explanation` names the phrase of the themes file, never the comment."""

    category: str
    theme: str
    observation: str
    summary: str
    explanation: str


@dataclass(frozen=True, slots=True)
class _Hit:
    phrase: Phrase
    use: Use
    span: Span
    order: int

    @property
    def length(self) -> int:
        return self.span[1] - self.span[0]


@dataclass(frozen=True, slots=True)
class _Finding:
    theme: Theme
    observation: str
    explanation: str
    rank: tuple[int, bool, int, int, int]


def label_text(text: str, themes: Themes, *, is_reply: bool = False, target: str | None = None) -> tuple[Label, ...]:
    """The labels of one comment, the best first.

    `target` is the kind of its target (`element`, `file`, `page`), None where unknown. A reply often answers with a
    question, so there a question about a topic is no request. Never raises for any text; equal arguments give equal
    labels.
    """
    clauses = read_clauses(text)
    if any(_has(themes, "aside", clause) for clause in clauses):
        return ()
    best: dict[str, _Finding] = {}
    for number, clause in enumerate(clauses):
        for finding in _find(clause, number, themes, target, topics=not (is_reply and clause.question)):
            known = best.get(finding.theme.key)
            if known is None or finding.rank < known.rank:
                best[finding.theme.key] = finding
    chosen = sorted(best.values(), key=lambda finding: finding.rank)[:MAX_LABELS]
    return tuple(
        Label(found.theme.category, found.theme.key, found.observation, found.theme.instruction, found.explanation)
        for found in chosen
    )


def _find(clause: Clause, number: int, themes: Themes, target: str | None, *, topics: bool) -> Iterator[_Finding]:
    hits = [hit for hit in _hits(clause, themes, target) if topics or hit.use.asks]
    if not hits or _has(themes, "report", clause):
        return
    decided = [decision for hit in hits if (decision := _decide(clause, hit, themes)) is not None]
    for hit, observation in _without_overlaps(decided):
        words = clause.text.count(" ", *hit.span)
        yield _Finding(
            hit.use.theme,
            observation,
            f'matched "{hit.phrase.source}"',
            (_RANK.index(observation), not hit.use.asks, -words, number, hit.order),
        )


def _hits(clause: Clause, themes: Themes, target: str | None) -> Iterator[_Hit]:
    for order, (phrase, use, span) in enumerate(themes.phrases.find(clause)):
        theme = use.theme
        if target is not None and theme.targets and target not in theme.targets:
            continue
        if any(veto.find(clause.text) is not None for veto in theme.vetoes):
            continue
        yield _Hit(phrase, use, span, order)


def _without_overlaps(decided: list[tuple[_Hit, str]]) -> list[tuple[_Hit, str]]:
    kept: list[tuple[_Hit, str]] = []
    for hit, observation in sorted(decided, key=lambda item: (-item[0].length, not item[0].use.asks, item[0].order)):
        if all(hit.span[1] <= other.span[0] or other.span[1] <= hit.span[0] for other, _ in kept):
            kept.append((hit, observation))
    return kept


def _decide(clause: Clause, hit: _Hit, themes: Themes) -> tuple[_Hit, str] | None:
    contradiction = _find_contradiction(clause, hit, themes)
    if contradiction is not None:
        return None if hit.use.asks else (replace(hit, span=contradiction), "disagreement")
    observation = _decide_observation(clause, hit, themes)
    return None if observation is None else (hit, observation)


def _decide_observation(clause: Clause, hit: _Hit, themes: Themes) -> str | None:
    if clause.question and clause.words[0] not in themes.asking and len(clause.words) <= MAX_HINT:
        return "problem"
    if clause.question and not _is_suggested(clause, hit, themes):
        return None
    # "Isn't the contrast too low?" says that it is, so a question's negation is none.
    negations = [] if clause.question else _spans(themes, "negation", clause)
    if any(_stands_before(clause, span, hit.span, 1) for span in negations):
        return None
    requests = _spans(themes, "request", clause)
    if clause.question:
        requests += _spans(themes, "suggestion", clause)
    if not requests and _is_praised(clause, hit, themes):
        return "strength"
    if hit.use.asks:
        return "problem"
    return "problem" if any(_stands_near(clause, span, hit.span) for span in requests) else None


def _find_contradiction(clause: Clause, hit: _Hit, themes: Themes) -> Span | None:
    """The span of the phrase together with the contradiction right beside it."""
    # A phrase that says "not" itself, as "don't need" does, is meant as it stands.
    if _first_word(clause, hit) in hit.phrase.stops:
        return None
    for start, end in _spans(themes, "against", clause):
        if start < hit.span[0] <= end:
            return start, hit.span[1]
    for start, end in _spans(themes, "against-after", clause):
        if start == hit.span[1]:
            return hit.span[0], end
    return None


def _is_praised(clause: Clause, hit: _Hit, themes: Themes) -> bool:
    # What a pattern describes is a fault, so praise that comes after it is about something else.
    return any(
        _stands_before(clause, span, hit.span, MAX_DISTANCE)
        or (not hit.use.asks and _stands_near(clause, span, hit.span))
        for span in _spans(themes, "praise", clause)
    )


def _is_suggested(clause: Clause, hit: _Hit, themes: Themes) -> bool:
    asks_itself = hit.use.asks and _first_word(clause, hit) in themes.asking
    return asks_itself or _has(themes, "suggestion", clause)


def _first_word(clause: Clause, hit: _Hit) -> str:
    return clause.text[hit.span[0] :].split(maxsplit=1)[0]


def _stands_before(clause: Clause, cue: Span, hit: Span, distance: int) -> bool:
    return cue[1] <= hit[0] and clause.text.count(" ", cue[1], hit[0]) <= distance


def _stands_near(clause: Clause, cue: Span, hit: Span) -> bool:
    first, second = sorted((cue, hit))
    return clause.text.count(" ", first[1], second[0]) <= MAX_DISTANCE


def _spans(themes: Themes, cue: str, clause: Clause) -> list[Span]:
    return [span for _, _, span in themes.cues[cue].find(clause)]


def _has(themes: Themes, cue: str, clause: Clause) -> bool:
    return next(themes.cues[cue].find(clause), None) is not None

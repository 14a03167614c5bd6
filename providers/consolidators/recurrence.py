"""Propose a theme where reviewers raised it again and again: deterministic, and easy to check by hand.

A theme is proposed when distinct threads, prototypes and reviewers observed the problem. It is held back, with the
reason in the diagnostics, while it is contested (2 · dissenting reviewers ≥ supporting reviewers), while an accepted
learning for it is in use, and after a rejection or retirement until a comment that was not cited before supports it.
When an accepted learning has stopped applying, the proposal offers to replace it.

The text of a proposal is the instruction that its labels give most often; support and dissent stand beside it.

Source: the learning guide, "Bring your own consolidator"; design.md, section 4, rules 9 to 14 and 19.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from learning_core.errors import InvalidConfiguration
from learning_core.plugins import (
    CATEGORIES,
    ConsolidationRequest,
    ConsolidationResult,
    EvidenceView,
    MemoryConsolidator,
    ViewComment,
    ViewLabel,
    ViewMemory,
    count_support,
)

MAX_CITED = 200
"""How many comments a proposal cites at most on each side, the newest first; its counts are of what it cites."""

DEFAULTS: Mapping[str, Any] = {
    "categories": ["accessibility", "visual-quality"],
    "minThreads": 2,
    "minPrototypes": 2,
    "minReviewers": 2,
}


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When a theme recurs. Each minimum counts distinct ones among comments that observe the problem."""

    categories: tuple[str, ...]
    threads: int
    prototypes: int
    reviewers: int


@dataclass(slots=True)
class _Theme:
    """What the window says of one theme: comments with the labels that say it, for each side."""

    problems: list[tuple[ViewComment, ViewLabel]] = field(default_factory=list)
    disagreements: list[tuple[ViewComment, ViewLabel]] = field(default_factory=list)


def create_consolidator(options: Mapping[str, Any], builtins: Mapping[str, Any] | None = None) -> MemoryConsolidator:
    """A recurrence consolidator. `options`: categories, minThreads, minPrototypes, minReviewers."""
    del builtins
    return RecurrenceConsolidator(_read_options(options))


class RecurrenceConsolidator:
    """See the module."""

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds

    def manifest(self) -> Mapping[str, Any]:
        """What it is, and that it sends nothing anywhere."""
        return {"id": "recurrence", "version": "1", "sendsTo": []}

    def consolidate(self, request: ConsolidationRequest, view: EvidenceView) -> ConsolidationResult:
        """Every theme that recurs, in the order of its support, then of its name."""
        del request
        memories: dict[tuple[str, str], list[ViewMemory]] = {}
        for memory in view.memories:
            memories.setdefault((memory.category, memory.theme), []).append(memory)
        proposals: list[dict[str, Any]] = []
        diagnostics: list[dict[str, Any]] = []
        for (category, theme), found in sorted(_group_themes(view.comments).items()):
            if not found.problems:
                continue
            if category not in self._thresholds.categories:
                detail = f"the category {category} is not in consolidation.options.categories"
                diagnostics.append({"category": category, "theme": theme, "reason": "category_off", "detail": detail})
                continue
            known = memories.get((category, theme), [])
            hold = self._find_hold(found, known)
            if hold is not None:
                diagnostics.append({"category": category, "theme": theme, "reason": hold[0], "detail": hold[1]})
                continue
            proposals.append(_propose(category, theme, found, known))
        proposals.sort(key=lambda p: (-p["support"]["reviewers"], -p["support"]["comments"], p["content"]["theme"]))
        return ConsolidationResult(proposals, diagnostics)

    def _find_hold(self, found: _Theme, known: Sequence[ViewMemory]) -> tuple[str, str] | None:
        support = count_support([comment for comment, _ in found.problems])
        dissent = count_support([comment for comment, _ in found.disagreements])
        for name, minimum in (
            ("threads", self._thresholds.threads),
            ("prototypes", self._thresholds.prototypes),
            ("reviewers", self._thresholds.reviewers),
        ):
            if support[name] < minimum:
                return "below_threshold", f"{support[name]} {name}, {minimum} needed"
        if any(memory.in_use for memory in known):
            return "already_accepted", "an accepted learning for this theme is in use"
        if 2 * dissent["reviewers"] >= support["reviewers"]:
            return "contested", f"{dissent['reviewers']} disagree, {support['reviewers']} support"
        closed = [m for m in known if m.state in ("rejected", "retired") and m.decided_at is not None]
        if closed:
            newest = max(closed, key=lambda memory: memory.decided_at or "")
            cited = {event for memory in closed for event in memory.cited}
            if not any(_is_new(comment, cited, newest.decided_at or "") for comment, _ in found.problems):
                return newest.state, f"it was {newest.state}, and no comment since then supports it"
        return None


def _is_new(comment: ViewComment, cited: set[str], decided_at: str) -> bool:
    return comment.reviewer is not None and comment.event_id not in cited and comment.written_at > decided_at


def _group_themes(comments: Iterable[ViewComment]) -> dict[tuple[str, str], _Theme]:
    """The themes of a window. Someone on both sides counts as dissent; who is no reviewer counts on neither."""
    themes: dict[tuple[str, str], _Theme] = {}
    for comment in comments:
        if comment.reviewer is None:
            continue
        for label in comment.labels:
            if label.observation == "strength":
                continue
            theme = themes.setdefault((label.category, label.theme), _Theme())
            side = theme.problems if label.observation == "problem" else theme.disagreements
            side.append((comment, label))
    for theme in themes.values():
        dissenters = {comment.reviewer for comment, _ in theme.disagreements}
        theme.problems = [(comment, label) for comment, label in theme.problems if comment.reviewer not in dissenters]
    return themes


def _propose(category: str, theme: str, found: _Theme, known: Sequence[ViewMemory]) -> dict[str, Any]:
    evidence, counter = _cite(found.problems), _cite(found.disagreements)
    support = count_support([comment for comment, _ in evidence])
    dissent = count_support([comment for comment, _ in counter])
    stopped = sorted(m.id for m in known if m.state == "accepted" and not m.in_use and not m.superseded)
    reviewers = support["reviewers"] + dissent["reviewers"]
    return {
        "schemaVersion": "replica.memory-proposal/v1",
        "kind": "guidance",
        "content": {"category": category, "theme": theme, "text": _choose_text(evidence)},
        "targets": [],
        "lifecycle": {"replaces": stopped, "validFrom": None, "validUntil": None},
        "evidence": _references(evidence),
        "counterevidence": _references(counter),
        "support": support,
        "dissent": dissent,
        "confidence": 100 * support["reviewers"] // reviewers,
        "rationale": _explain(support, dissent, replaces=bool(stopped)),
        "proposer": {"kind": "agent", "id": "agent:recurrence", "version": "1"},
    }


def _cite(side: Sequence[tuple[ViewComment, ViewLabel]]) -> list[tuple[ViewComment, ViewLabel]]:
    """The newest comments of a side, at most 200, in the order they were written."""
    ordered = sorted(side, key=lambda pair: (pair[0].written_at, pair[0].event_id, pair[1].event_id))
    kept = dict.fromkeys(comment.event_id for comment, _ in reversed(ordered))
    wanted = set(list(kept)[:MAX_CITED])
    return [pair for pair in ordered if pair[0].event_id in wanted]


def _references(side: Sequence[tuple[ViewComment, ViewLabel]]) -> list[dict[str, Any]]:
    labels: dict[str, list[ViewLabel]] = {}
    comments: dict[str, ViewComment] = {}
    for comment, label in side:
        comments[comment.event_id] = comment
        labels.setdefault(comment.event_id, []).append(label)
    return [comment.reference(labels[event]) for event, comment in comments.items()]


def _choose_text(evidence: Sequence[tuple[ViewComment, ViewLabel]]) -> str:
    """The instruction that most comments give; among equals a person's, then the newest, then the first by name."""
    counts = Counter(label.summary.strip() for _, label in evidence)
    newest = {label.summary.strip(): comment.written_at for comment, label in evidence}
    human = {label.summary.strip() for _, label in evidence if label.labeler_kind == "human"}
    return max(sorted(counts), key=lambda text: (text in human, counts[text], newest[text]))


def _explain(support: Mapping[str, int], dissent: Mapping[str, int], *, replaces: bool) -> str:
    where = f"{support['threads']} threads of {support['prototypes']} prototypes"
    parts = [f"{support['reviewers']} reviewers raised this in {support['comments']} comments, in {where}."]
    if dissent["reviewers"]:
        parts.append(f"{dissent['reviewers']} disagreed.")
    if replaces:
        parts.append("An accepted learning for this theme no longer applies; this one would replace it.")
    return " ".join(parts)


def _read_options(options: Mapping[str, Any]) -> Thresholds:
    unknown = sorted(set(options) - set(DEFAULTS))
    if unknown:
        raise InvalidConfiguration(f"consolidation.options has no {unknown[0][:40]!r}; it has {', '.join(DEFAULTS)}.")
    merged = {**DEFAULTS, **options}
    categories = merged["categories"]
    if not isinstance(categories, list) or not set(map(str, categories)) <= set(CATEGORIES):
        raise InvalidConfiguration(f"consolidation.options.categories must be a list of {', '.join(CATEGORIES)}.")
    for name in ("minThreads", "minPrototypes", "minReviewers"):
        if type(merged[name]) is not int or not 1 <= merged[name] <= 1000:
            raise InvalidConfiguration(f"consolidation.options.{name} must be a whole number from 1 to 1,000.")
    return Thresholds(tuple(categories), merged["minThreads"], merged["minPrototypes"], merged["minReviewers"])

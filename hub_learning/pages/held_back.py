"""Themes that the newest search found and did not propose, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hub_learning.models import Repository
from hub_learning.pages.words import count

_REASONS = {
    "contested": "contested: too many disagree",
    "already_accepted": "accepted already, and in use",
    "rejected": "rejected before, and nobody raised it anew",
    "retired": "retired, and nobody raised it anew",
    "below_threshold": "raised too rarely",
    "category_off": "in a category that is switched off",
}
MOST = 40
"""Themes that are listed for one reason."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason, how many themes it holds back, and the first of them."""

    words: str
    number: int
    themes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeldBack:
    """`over` says how many themes wait because a run brings only so many; empty when none does."""

    heading: str
    over: str
    reasons: tuple[Reason, ...]


def describe_held_back(result: Mapping[str, Any], repository: Repository) -> HeldBack | None:
    """What a search's result says of themes it did not propose; None when there are none."""
    themes: dict[str, list[str]] = {}
    for item in result.get("heldBack", ()):
        themes.setdefault(str(item.get("reason")), []).append(str(item.get("theme")))
    over = int(result.get("overBudget") or 0)
    number = over + sum(len(found) for found in themes.values())
    if not number:
        return None
    known = [reason for reason in _REASONS if reason in themes] + [
        reason for reason in themes if reason not in _REASONS
    ]
    reasons = [
        Reason(_REASONS.get(name, name.replace("_", " ")), len(themes[name]), tuple(sorted(themes[name])[:MOST]))
        for name in known
    ]
    waiting = (
        f"{count(over, 'theme')} wait for the next run: one run brings {repository.max_new} at most." if over else ""
    )
    return HeldBack(f"{count(number, 'theme')} not proposed", waiting, tuple(reasons))

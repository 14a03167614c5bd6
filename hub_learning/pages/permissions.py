"""Grants in words: what is allowed, who allowed it, and what a change does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.safestring import SafeString

from hub_learning.pages.forms import PURPOSES, PurposesForm
from hub_learning.pages.quoting import show_text
from hub_learning.pages.review import Person, describe_person
from hub_learning.pages.times import When, describe_time
from hub_learning.pages.words import count, list_words


@dataclass(frozen=True, slots=True)
class Use:
    """One purpose, and whether some grant allows it now."""

    name: str
    meaning: str
    allowed: bool


@dataclass(frozen=True, slots=True)
class Permission:
    """One grant. `form` withdraws what is left of it; None when nothing is."""

    id: str
    by: Person
    what: str
    when: When
    range: str
    reason: SafeString
    withdrawn: str
    form: PurposesForm | None
    open: bool


def describe_uses(grants: Sequence[Mapping[str, Any]]) -> list[Use]:
    """Every purpose, in the order of the contracts."""
    active = {purpose for grant in grants for purpose in grant["active"]}
    return [Use(title, meaning, name in active) for name, (title, meaning) in PURPOSES.items()]


def describe_permission(grant: Mapping[str, Any], form: PurposesForm | None, now: datetime) -> Permission:
    """One grant as the page shows it. `form` is one that was filled in."""
    name = f"withdraw_{grant['id'][-8:]}"
    fresh = PurposesForm(None, offered=grant["active"], name=name, checked=grant["active"]) if grant["active"] else None
    return Permission(
        id=grant["id"],
        by=describe_person(grant["grantedBy"]),
        what=name_purposes(grant["purposes"]),
        when=describe_time(grant["grantedAt"], now),
        range=_describe_range(grant["range"], now),
        reason=show_text(grant["reason"]),
        withdrawn=name_purposes(grant["withdrawn"]) if grant["withdrawn"] else "",
        form=form or fresh,
        open=form is not None,
    )


def name_purposes(purposes: Sequence[str]) -> str:
    """`review and instruction`."""
    return list_words([PURPOSES[purpose][0].lower() for purpose in purposes])


def describe_granting(purposes: Sequence[str], comments: int) -> list[str]:
    """What a grant leads to."""
    lines = []
    if "review" in purposes:
        lines.append(f"The Hub reads the {count(comments, 'comment')} of this repository, and new ones as they arrive.")
    if "instruction" in purposes:
        lines.append("Themes that recur become proposals. An agent gets one only after you accept it.")
    others = [purpose for purpose in purposes if purpose not in ("review", "instruction")]
    if others:
        lines.append(f"The comments may also serve {name_purposes(others)}.")
    return [*lines, "You can withdraw it at any time. A deleted comment is removed whatever is allowed."]


def describe_withdrawing(purposes: Sequence[str]) -> list[str]:
    """What a withdrawal leads to."""
    lines = [f"The comments stop serving {name_purposes(purposes)} at once, unless another permission still allows it."]
    if "instruction" in purposes:
        lines.append("Agents stop getting every learning that rests on these comments.")
    if "review" in purposes:
        lines.append("Learnings that rest on these comments, and the comments, are no longer shown to anyone here.")
    return [*lines, "Nothing is deleted: the history stays, and a new permission brings it back."]


def _describe_range(span: Mapping[str, str | None], now: datetime) -> str:
    start = describe_time(span["from"], now).date if span["from"] else None
    end = describe_time(span["to"], now).date if span["to"] else None
    if start and end:
        return f"written from {start} until before {end}"
    if start:
        return f"written from {start} on"
    return f"written before {end}" if end else "from any time"

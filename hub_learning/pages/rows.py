"""The queue: which learnings a page lists, in which order, and what one row says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.utils.safestring import SafeString

from hub_learning.pages.quoting import show_text
from hub_learning.pages.times import When, describe_time
from hub_learning.pages.words import STATE_WORDS, STATES, count, describe_counts, title

PAGE_SIZE = 25
MAX_DOTS = 9


@dataclass(frozen=True, slots=True)
class Filters:
    """What the address of the queue says: `?state=accepted&page=2`. Unknown values fall back to the default."""

    state: str = "proposed"
    page: int = 1

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> Filters:
        """Read the filters from a query."""
        state = query.get("state", "")
        page = query.get("page", "")
        return cls(
            state if state in STATES else "proposed",
            int(page) if page.isascii() and page.isdigit() and len(page) < 6 else 1,
        )

    @property
    def query(self) -> str:
        """The query that says the same, with its question mark; empty for the default."""
        members = {"state": self.state, "page": str(self.page)}
        default = {"state": "proposed", "page": "1"}
        text = urlencode({name: value for name, value in members.items() if value != default[name]})
        return f"?{text}" if text else ""


@dataclass(frozen=True, slots=True)
class Tab:
    """One state and how many learnings are in it."""

    state: str
    name: str
    number: int
    query: str
    current: bool


@dataclass(frozen=True, slots=True)
class Voices:
    """Who is for it and who against: one dot a reviewer, up to nine, and the same in words."""

    supporting: int
    dissenting: int

    @property
    def dots(self) -> str:
        """`f` for each reviewer who supports it, then `a` for each who is against."""
        against = min(self.dissenting, 3)
        return "f" * min(self.supporting, MAX_DOTS - against) + "a" * against

    @property
    def for_words(self) -> str:
        """`3 reviewers agree`."""
        return f"{count(self.supporting, 'reviewer')} {'agrees' if self.supporting == 1 else 'agree'}"

    @property
    def against_words(self) -> str:
        """`1 disagrees`."""
        return f"{self.dissenting:,} {self.against_verb}"

    @property
    def against_verb(self) -> str:
        """`disagrees`, of one; else `disagree`."""
        return "disagrees" if self.dissenting == 1 else "disagree"


@dataclass(frozen=True, slots=True)
class Row:
    """One learning in the queue. `text` is None when it may not be shown."""

    id: str
    text: SafeString | None
    category: str
    theme: str
    voices: Voices | None
    counts: str
    since: str
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Queue:
    """One page of one state. `waiting` counts the proposals, whatever the state shown."""

    filters: Filters
    tabs: tuple[Tab, ...]
    rows: tuple[Row, ...]
    waiting: int
    total: int
    first: int
    last: int
    previous_query: str | None
    next_query: str | None
    oldest: When | None

    @property
    def heading(self) -> str:
        """What the list is, for those who move by headings."""
        return f"{STATE_WORDS[self.filters.state]}: {self.total:,}"


def choose_page(outline: Sequence[Mapping[str, Any]], filters: Filters) -> list[str]:
    """The IDs that a page lists, in order: those that the store is asked to check."""
    ordered = order_memories(outline, filters.state)
    start = (_clamp(filters.page, len(ordered)) - 1) * PAGE_SIZE
    return [memory["id"] for memory in ordered[start : start + PAGE_SIZE]]


def build_queue(
    outline: Sequence[Mapping[str, Any]],
    memories: Sequence[Mapping[str, Any]],
    filters: Filters,
    *,
    prototype: str,
    now: datetime,
) -> Queue:
    """One page: `outline` is the store's, `memories` what it answers for the IDs of `choose_page`."""
    ordered = order_memories(outline, filters.state)
    page = _clamp(filters.page, len(ordered))
    start = (page - 1) * PAGE_SIZE
    by_id = {memory["id"]: memory for memory in memories}
    shown = [by_id[memory_id] for memory_id in choose_page(outline, filters) if memory_id in by_id]
    dated = [memory["at"] for memory in ordered if memory["at"]]
    numbers = Counter(memory["state"] for memory in outline)
    return Queue(
        filters=filters,
        tabs=tuple(
            Tab(state, STATE_WORDS[state], numbers[state], Filters(state).query, state == filters.state)
            for state in STATES
        ),
        rows=tuple(build_row(memory, prototype=prototype, now=now) for memory in shown),
        waiting=numbers["proposed"],
        total=len(ordered),
        first=start + 1 if shown else 0,
        last=start + len(shown),
        previous_query=_address(filters, page - 1) if page > 1 else None,
        next_query=_address(filters, page + 1) if start + PAGE_SIZE < len(ordered) else None,
        oldest=describe_time(min(dated), now) if dated else None,
    )


def order_memories(outline: Sequence[Mapping[str, Any]], state: str) -> list[Mapping[str, Any]]:
    """The learnings of a state, newest first. Proposals of one day stand by how many reviewers they have."""
    chosen = (memory for memory in outline if memory["state"] == state)
    return sorted(chosen, key=_by_weight if state == "proposed" else _by_time, reverse=True)


def _by_time(memory: Mapping[str, Any]) -> tuple[str, str]:
    return memory["at"], memory["id"]


def _by_weight(memory: Mapping[str, Any]) -> tuple[str, int, int, str]:
    return memory["at"][:10], memory["reviewers"], memory["comments"], memory["id"]


def state_of(memory: Mapping[str, Any]) -> str:
    """The state. A damaged learning may not even state that: it waits, so that someone comes across it."""
    return str(memory.get("state") or "proposed")


def build_row(memory: Mapping[str, Any], *, prototype: str, now: datetime) -> Row:
    """What one row says."""
    support, dissent = memory.get("support"), memory.get("dissent")
    return Row(
        id=memory["id"],
        text=show_text(memory["text"]) if memory.get("text") else None,
        category=title(memory["category"]) if memory.get("category") else "",
        theme=memory.get("theme", ""),
        voices=Voices(support["reviewers"], dissent["reviewers"]) if support and dissent else None,
        counts=describe_counts(support, prototype) if support else "",
        since=describe_since(memory, now),
        notices=describe_notices(memory),
    )


def describe_since(memory: Mapping[str, Any], now: datetime) -> str:
    """`Proposed 2 days ago`."""
    state = state_of(memory).capitalize()
    return f"{state} {describe_time(memory['at'], now).age}" if memory.get("at") else state


def describe_notices(memory: Mapping[str, Any]) -> tuple[str, ...]:
    """What sets this learning apart, each as a short sentence."""
    if memory.get("damaged"):
        return ("Damaged: nobody can use it",)
    notices = []
    if memory.get("withheld"):
        notices.append("Withheld: evidence may not be shown")
    elif memory.get("usable") is False:
        notices.append("Evidence may not reach agents")
    if memory.get("identityNeedsReview"):
        notices.append("A reviewer's identity changed")
    if memory.get("conflicted"):
        notices.append("Lost to another replacement")
    elif memory.get("superseded"):
        notices.append("Replaced by a newer learning")
    return tuple(notices)


def _clamp(page: int, total: int) -> int:
    return min(max(page, 1), max(1, -(-total // PAGE_SIZE)))


def _address(filters: Filters, page: int) -> str:
    return replace(filters, page=page).query or "?page=1"

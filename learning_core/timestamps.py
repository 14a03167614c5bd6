"""Times are UTC text with six fraction digits, so that text order is time order."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from learning_core.errors import InvalidTimestamp

Clock: TypeAlias = Callable[[], str]
"""Tells the time as UTC text. A clock is an argument, never a global."""

BEGINNING = "0001-01-01T00:00:00.000000Z"
"""Before every comment: where the cover of a complete collection begins."""

_FORM = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:T((?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])(?:\.([0-9]{1,6}))?(Z|[+-][0-9]{2}:[0-5][0-9]))?",
    re.ASCII,
)


def normalize(text: str) -> str:
    """The UTC text of a time that has fewer fraction digits or an offset. Raises `InvalidTimestamp`."""
    match = _FORM.fullmatch(text)
    if match is None or match[2] is None:
        raise InvalidTimestamp(f"{text[:40]!r} is not a time such as 2026-11-30T12:00:00Z.")
    candidate = f"{match[1]}T{match[2]}.{(match[3] or ''):0<6}{match[4]}"
    try:
        instant = datetime.fromisoformat(candidate)
        # The common, already normal form needs no more than the check of its calendar.
        return text if candidate == text and match[4] == "Z" else format_instant(instant)
    except (ValueError, OverflowError):
        raise InvalidTimestamp(f"{text[:40]!r} is not a time in the calendar.") from None


def normalize_bound(text: str) -> str:
    """The same for a bound that a person types: a date alone is its first instant in UTC."""
    return normalize(text if "T" in text else f"{text}T00:00:00Z")


def next_instant(text: str) -> str:
    """The microsecond after a time."""
    return format_instant(datetime.fromisoformat(text) + timedelta(microseconds=1))


def format_instant(instant: datetime) -> str:
    """The UTC text of an aware `datetime`."""
    utc = instant.astimezone(UTC)
    return f"{utc.year:04d}-{utc.month:02d}-{utc.day:02d}T{utc:%H:%M:%S}.{utc.microsecond:06d}Z"


def system_clock() -> str:
    """The time now."""
    return format_instant(datetime.now(UTC))

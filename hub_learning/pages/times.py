"""Times in words. A record's time is UTC text; a Hub row's is an aware `datetime`; a page shows both the same way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

_STEPS = ((60, 60, "minute"), (60 * 60, 24, "hour"), (24 * 60 * 60, 45, "day"), (30 * 24 * 60 * 60, 24, "month"))


@dataclass(frozen=True, slots=True)
class When:
    """One instant: `iso` for machines, `age` ("2 days ago"), `date` ("1 Nov 2026") and `full` (with the time, UTC)."""

    iso: str
    age: str
    date: str
    full: str


def describe_time(at: str | datetime, now: datetime) -> When:
    """An instant seen from `now`."""
    instant = datetime.fromisoformat(at) if isinstance(at, str) else at.astimezone(UTC)
    date = f"{instant.day} {instant:%b %Y}"
    return When(instant.isoformat(), describe_age(instant, now), date, f"{date}, {instant:%H:%M} UTC")


def describe_age(instant: datetime, now: datetime) -> str:
    """How long ago, in the largest unit that says enough."""
    seconds = (now - instant).total_seconds()
    if seconds < 60:
        return "just now"
    for length, limit, unit in _STEPS:
        count = int(seconds // length)
        if count < limit:
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return f"{int(seconds // (365 * 24 * 60 * 60))} years ago"

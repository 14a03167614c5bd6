"""The words that several pages use: counts, states, categories, and why something is held back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STATES = ("proposed", "accepted", "rejected", "retired")

STATE_WORDS = {"proposed": "Waiting", "accepted": "Accepted", "rejected": "Rejected", "retired": "Retired"}

WITHHELD_WORDS = {
    "consent": "no consent covers it",
    "deleted": "it was deleted",
    "edited": "it was edited since",
    "forged": "it does not match what is stored",
    "identity": "its author is known by name only",
    "identity_corrected": "its author's identity was corrected",
    "missing": "it is not stored",
    "pending": "it is being removed or updated",
    "redacted": "its text was removed",
}
"""Why a piece of evidence may not be used: the codes of `Thread.find_refusal`, after "1 comment withheld: "."""


def describe_refusal(code: str) -> str:
    """A refusal in words; a code of a later version stays readable."""
    return WITHHELD_WORDS.get(code, code.replace("_", " "))


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 comment`, `1,827 comments`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def list_words(words: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def title(key: str) -> str:
    """A category or theme key as a title: `visual-quality` is `Visual quality`."""
    return key.replace("-", " ").capitalize()


def describe_counts(counts: Mapping[str, Any], prototype: str) -> str:
    """`6 comments in 4 threads of 3 pull requests`. `prototype` is what the repository calls one."""
    return (
        f"{count(counts['comments'], 'comment')} in {count(counts['threads'], 'thread')} "
        f"of {count(counts['prototypes'], prototype)}"
    )

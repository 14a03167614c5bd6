"""What changed between two versions of a learning, in words: for someone whose form was about the older one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from hub_learning.pages.quoting import show_text
from hub_learning.pages.words import count

MAX_TOKENS = 800
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
_EVIDENCE = {
    "evidence": ("supports it", "support it", "supported it"),
    "counterevidence": ("disagrees", "disagree", "disagreed"),
}
_REVIEWERS = {"support": "agreed", "dissent": "disagreed"}
_GONE = "<del>{}</del>"
_NEW = "<ins>{}</ins>"


@dataclass(frozen=True, slots=True)
class Changes:
    """`lines` are short sentences; `text` is the word difference of the instruction, where that changed.

    `seen` holds the comment events of the older version, or None where that may not be read any more.
    """

    lines: tuple[str, ...]
    text: SafeString | None
    seen: frozenset[str] | None


def describe_changes(memory: Mapping[str, Any], seen_digest: str) -> Changes:
    """What changed since the version that the person saw. `memory` is the store's `show(history=True)` answer."""
    history: Sequence[Mapping[str, Any]] = memory.get("history", ())
    seen = next((version for version in history if version.get("reviewDigest") == seen_digest), None)
    current = history[-1] if history else None
    if seen is None or current is None or seen["withheld"] or current["withheld"]:
        return Changes(
            ("The version that you read can no longer be compared. Please read all of it again.",), None, None
        )
    lines = [line for member in _EVIDENCE for line in _compare_evidence(member, seen, current)]
    lines += [line for member in _REVIEWERS for line in _compare_reviewers(member, seen, current)]
    difference = None
    if seen["text"] != current["text"]:
        difference = mark_words(seen["text"], current["text"])
    elif not lines:
        lines.append("The text and the evidence are the same; what it replaces, or the reason for it, is different")
    else:
        lines.append("The text of the instruction is the same")
    return Changes(tuple(lines), difference, frozenset(seen["evidence"]) | frozenset(seen["counterevidence"]))


def _compare_evidence(member: str, seen: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    one, many, past = _EVIDENCE[member]
    before, after = set(seen[member]), set(current[member])
    added, removed = len(after - before), len(before - after)
    lines = []
    if added:
        lines.append(f"{added:,} more {'comment' if added == 1 else 'comments'} {one if added == 1 else many}")
    if removed:
        lines.append(f"{count(removed, 'comment')} that {past} {'is' if removed == 1 else 'are'} gone")
    return lines


def _compare_reviewers(member: str, seen: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    before, after = seen[member]["reviewers"], current[member]["reviewers"]
    return [f"{count(before, 'reviewer')} {_REVIEWERS[member]} before, now {after:,}"] if before != after else []


def mark_words(before: str, after: str) -> SafeString:
    """The word difference of two texts as `<del>` and `<ins>`, escaped. Very long texts are marked as a whole."""
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    if max(len(old), len(new)) > MAX_TOKENS:
        old, new = [before], [after]
    pieces: list[tuple[SafeString]] = []
    for kind, old_start, old_end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        removed, added = "".join(old[old_start:old_end]), "".join(new[new_start:new_end])
        if kind == "equal":
            pieces.append((show_text(added),))
            continue
        pieces.extend((format_html(tag, show_text(text)),) for tag, text in ((_GONE, removed), (_NEW, added)) if text)
    return format_html_join("", "{}", pieces)

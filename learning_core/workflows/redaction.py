"""Remove a comment's text: every version of it and every label on it, and nothing else.

Each removal is one write with one audit entry, built from the event's stored note, so that a retry or a racing call
writes the same entry. What follows up depends only on what cites the comment, so running it again reports it again.

Source: the learning guide, "Rules" (redact); decision record, "Removing a comment …".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from learning_core.audit import Plan, receipt, seal_entry
from learning_core.errors import InvalidHistory
from learning_core.evidence import Thread, cited_references
from learning_core.identifiers import Principal, audit_id, check_person
from learning_core.lifecycle import check_reason
from learning_core.provider import Head, is_redacted
from learning_core.records import CheckedRecord, redacted_copy

DELETED_AT_SOURCE = "The comment was deleted at its source."


def check_request(by: Principal, reason: str) -> None:
    """Raise unless a person asks, with a reason."""
    check_person(by, "remove a comment's text")
    check_reason(reason, "Removing a comment")


def find_events(thread: Thread, comment_id: str) -> list[CheckedRecord]:
    """The events of a comment that hold its text: its versions and the labels on them, in stored order."""
    versions = thread.comments.get(comment_id, [])
    return [
        event
        for version in versions
        for event in (version.event, *(label for label in version.labels if label["type"] == "label"))
    ]


def find_comment(thread: Thread, event_id: str) -> str | None:
    """The Hub comment that an event is a version of, or a label on."""
    event = thread.events.get(event_id)
    if event is None:
        return None
    version = thread.versions.get(event_id) or thread.versions.get(event.get("parentEventId") or "")
    return version.comment_id if version is not None else None


def check_one_thread(comment_id: str, episodes: Sequence[str]) -> None:
    """Raise `InvalidHistory` when a comment's versions, or events that name them, lie in several threads."""
    if len(episodes) > 1:
        raise InvalidHistory(
            f"Comment {comment_id} reaches into {len(episodes)} threads; guessing could remove someone else's words. "
            "Nothing was removed.",
            comment_id=comment_id,
        )


def plan_removal(
    event: CheckedRecord, *, scope: str, by: Principal, reason: str, expected: Mapping[str, Head], at: str
) -> Plan:
    """The removal of one event's text, with its receipt."""
    copy = redacted_copy(event, {"by": by.data, "at": at, "reason": reason.strip()})
    return Plan([seal_removal(copy, scope)], redaction=copy, expected=expected)


def seal_removal(copy: CheckedRecord, scope: str) -> CheckedRecord:
    """The receipt of a removal, from nothing but the event's stored note."""
    note = copy["redaction"]
    return seal_entry(
        scope, "evidence.redact", copy.id, at=note["at"], actor=note["by"], records=[receipt("events", copy)]
    )


def removal_receipts(events: Iterable[CheckedRecord], scope: str) -> dict[str, CheckedRecord]:
    """The audit IDs that the removed ones of some events must have, with the removed event."""
    removed = [event for event in events if is_redacted(event.data)]
    return {audit_id(scope, "evidence.redact", event.id, 0): event for event in removed}


def find_rebuild(latest: Iterable[CheckedRecord], event_ids: Iterable[str]) -> list[str]:
    """The accepted learnings that cite one of the events, and so need rebuilding."""
    gone = set(event_ids)
    return [
        record.id
        for record in latest
        if record["state"] == "accepted"
        and any(gone.intersection(reference["eventIds"]) for reference in cited_references(record))
    ]


def find_exports(exports: Sequence[CheckedRecord], ids: Iterable[str]) -> list[dict[str, Any]]:
    """The exports that copied one of the records (events of the comment, or learnings that cite it)."""
    wanted = set(ids)
    return [
        {"id": export.id, "purpose": export["purpose"], "exportedAt": export["exportedAt"]}
        for export in exports
        if wanted.intersection(item["id"] for item in export["records"])
    ]


def cited_events(record: CheckedRecord) -> list[str]:
    """Every event that a learning cites."""
    return [event for reference in cited_references(record) for event in reference["eventIds"]]

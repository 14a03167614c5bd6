"""Copy out what a purpose may use, and record exactly what left, under which grants, and what was held back.

Reading single events for a purpose (`observations`) follows the same rule and leaves no manifest.

Source: the learning guide, "Rules" and "Run it yourself" (observations); decision record, "Deciding at read time …".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from learning_core.audit import Plan, seal_receipts
from learning_core.canonical import derive_id
from learning_core.evidence import Standing, Thread, cited_references
from learning_core.identifiers import Principal, check_person
from learning_core.policy import SOURCE, Policy
from learning_core.provider import Head
from learning_core.records import CheckedRecord, seal

MAX_EVENT_IDS = 100


@dataclass(slots=True)
class Bundle:
    """What leaves the store. `withheld` counts what the purpose may not use."""

    episodes: list[CheckedRecord] = field(default_factory=list)
    events: list[CheckedRecord] = field(default_factory=list)
    learnings: list[CheckedRecord] = field(default_factory=list)
    grants: dict[str, None] = field(default_factory=dict)
    withheld: dict[str, int] = field(default_factory=lambda: {"episodes": 0, "events": 0, "learnings": 0})


def find_permitted(
    thread: Thread, purpose: str, policy: Policy, withheld: frozenset[str] = frozenset()
) -> list[CheckedRecord]:
    """The events of a thread that a purpose may use, in stored order.

    A comment's current version, the labels on it (a label counts only while its comment does, at its comment's time),
    and the status changes that a grant covers.
    """
    comments = {v for v in thread.versions if thread.find_refusal(v, purpose, policy, withheld) is None}
    return [event for event in thread.events.values() if _is_permitted(event, comments, purpose, policy)]


def _is_permitted(event: CheckedRecord, comments: set[str], purpose: str, policy: Policy) -> bool:
    if event["type"] == "status_change":
        return bool(comments) and bool(policy.covering(purpose, event["source"], event["occurredAt"]))
    if event["type"] == "retraction" or event.get("redaction") is not None:
        return False
    return (event.id if event["type"] == "comment" else event["parentEventId"]) in comments


def collect(
    threads: Iterable[Thread], standings: Iterable[Standing], policy: Policy, purpose: str, *, learnings_only: bool
) -> Bundle:
    """What an export holds: threads with what the purpose may use of them, and the learnings in use."""
    bundle = Bundle()
    for thread in () if learnings_only else threads:
        permitted = find_permitted(thread, purpose, policy)
        bundle.withheld["events"] += len(thread.events) - len(permitted)
        if not any(event["type"] == "comment" for event in permitted):
            bundle.withheld["episodes"] += 1
            continue
        bundle.episodes.append(thread.episode)
        bundle.events += permitted
        for event in permitted:
            if event["type"] == "comment":
                bundle.grants |= dict.fromkeys(policy.covering(purpose, event["source"], event["occurredAt"]))
    for standing in standings:
        if not standing.in_use:
            bundle.withheld["learnings"] += standing.record["state"] == "accepted"
            continue
        bundle.learnings.append(standing.record)
        for reference in cited_references(standing.record):
            bundle.grants |= dict.fromkeys(policy.covering(purpose, SOURCE, reference["writtenAt"]))
    return bundle


def plan_export(
    bundle: Bundle,
    by: Principal,
    *,
    scope: str,
    purpose: str,
    learnings_only: bool,
    expected: Mapping[str, Head],
    nonce: str,
    at: str,
) -> tuple[CheckedRecord, Plan]:
    """The manifest of an export and its receipt."""
    records = [
        {"stream": stream, "id": record.id, "digest": record.digest}
        for stream, group in (
            ("episodes", bundle.episodes),
            ("events", bundle.events),
            ("memories", bundle.learnings),
        )
        for record in group
    ]
    manifest = seal(
        "export-manifest",
        {
            "id": derive_id("export", scope, nonce),
            "scope": scope,
            "purpose": purpose,
            "learningsOnly": learnings_only,
            "exportedBy": by.data,
            "exportedAt": at,
            "grantIds": sorted(bundle.grants),
            "records": records,
            "withheld": dict(bundle.withheld),
        },
    )
    stored = {"exports": [manifest]}
    audit = seal_receipts(scope, "export", manifest.id, stored, at=at, actor=by)
    return manifest, Plan(audit, stored, expected=expected)


def check_request(by: Principal) -> None:
    """Raise `NotAPerson` unless a person exports."""
    check_person(by, "export")


def describe_bundle(bundle: Bundle, manifest: CheckedRecord) -> dict[str, Any]:
    """The bundle as it is written to a file: the manifest, and each record whole."""
    return {
        "manifest": dict(manifest.data),
        "episodes": [dict(record.data) for record in bundle.episodes],
        "events": [dict(record.data) for record in bundle.events],
        "learnings": [dict(record.data) for record in bundle.learnings],
    }


def select_events(
    thread: Thread,
    permitted: Sequence[CheckedRecord],
    *,
    event_ids: frozenset[str] | None,
    types: Sequence[str] | None,
    time_from: str | None,
    time_to: str | None,
) -> list[CheckedRecord]:
    """Those of a thread's permitted events that every filter selects; times are half-open, a label's its comment's."""
    return [
        event
        for event in permitted
        if (event_ids is None or event.id in event_ids)
        and (types is None or event["type"] in types)
        and (time_from is None or _evidence_time(thread, event) >= time_from)
        and (time_to is None or _evidence_time(thread, event) < time_to)
    ]


def _evidence_time(thread: Thread, event: CheckedRecord) -> str:
    parent = event.get("parentEventId") if event["type"] in ("label", "no_annotation") else None
    return str((thread.events[parent] if parent else event)["occurredAt"])

"""What a person sees of a learning: reading it is a use for review, and withholds what review may no longer use.

Source: the learning guide, "Rules" (reading a learning is a use).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from learning_core.evidence import (
    Memory,
    Standing,
    Thread,
    cited_references,
    effective_labels,
    find_reference_fault,
    find_refusals,
    stated_members,
)
from learning_core.lifecycle import is_contested
from learning_core.policy import Policy, is_legacy
from learning_core.records import CheckedRecord

_DECISION_MEMBERS = ("approval", "rejection", "retirement", "supersedes", "supersession")


def describe_damaged(memory: Memory) -> dict[str, Any]:
    """A damaged learning: its ID, and the state, kind, theme and digests that its newest bytes state."""
    return {"id": memory.id, "damaged": True, "withheld": True, **stated_members(memory.raw[-1])}


def describe_row(review: Standing, use: Standing) -> dict[str, Any]:
    """One learning in a list: `review` decides what is shown, `use` (for instruction) whether it is used."""
    record = review.record
    row: dict[str, Any] = {
        "id": record.id,
        "state": record["state"],
        "kind": record["kind"],
        "category": record["content"]["category"],
        "theme": record["content"]["theme"],
        "version": record["version"],
        "at": record["at"],
        "contentDigest": record["contentDigest"],
        "reviewDigest": record["reviewDigest"],
        "superseded": use.superseded_by is not None,
        "conflicted": use.conflicted,
        "damaged": False,
        "withheld": not review.permitted,
        "identityNeedsReview": "identity" in use.refusals or "identity_corrected" in use.refusals,
        "inUse": use.in_use,
        "usable": use.permitted,
        "text": None,
    }
    if review.permitted:
        row |= {"text": record["content"]["text"], "support": record["support"], "dissent": record["dissent"]}
        row |= {"confidence": record["confidence"], "contested": is_contested(record)}
    return row


def describe_memory(
    review: Standing, use: Standing, threads: Mapping[str, Thread | None], policy: Policy, withheld: frozenset[str]
) -> dict[str, Any]:
    """One learning with its evidence, each piece quoted or withheld with the reason."""
    record = review.record
    shown: dict[str, Any] = {**describe_row(review, use), "supersededBy": use.superseded_by}
    shown |= _describe_decision(record, review.permitted)
    if not review.permitted:
        sides = [describe_reference(r, threads, policy, withheld) for r in cited_references(record)]
        return {**shown, "refusals": sorted({side["withheld"] for side in sides if side["withheld"]})}
    shown |= {key: record[key] for key in ("targets", "lifecycle", "rationale", "proposer", "previousDigest", "digest")}
    for side in ("evidence", "counterevidence"):
        shown[side] = [describe_reference(reference, threads, policy, withheld) for reference in record[side]]
    return shown


def describe_reference(
    reference: Mapping[str, Any], threads: Mapping[str, Thread | None], policy: Policy, withheld: frozenset[str]
) -> dict[str, Any]:
    """One cited comment: what it says, who wrote it and its labels, or why it is withheld."""
    thread = threads.get(reference["episodeId"])
    if thread is None or find_reference_fault(reference, thread) is not None:
        return {**reference, "comment": None, "labels": [], "withheld": "forged"}
    event_id = reference["eventIds"][0]
    refusal = thread.find_refusal(event_id, "review", policy, withheld)
    if refusal is not None:
        return {**reference, "comment": None, "labels": [], "withheld": refusal}
    version = thread.versions[event_id]
    payload = version.event["payload"]
    author = {**version.event["actor"], "identityIsAsserted": is_legacy(version.event["actor"])}
    return {
        **reference,
        "comment": {
            "commentId": version.comment_id,
            "rootCommentId": thread.episode["rootCommentId"],
            "body": payload["body"],
            "author": author,
            "target": payload["target"],
            "createdAt": payload["createdAt"],
            "editedAt": payload["editedAt"],
        },
        "labels": [describe_label(label) for label in effective_labels(version)],
        "withheld": None,
    }


def describe_label(label: CheckedRecord) -> dict[str, Any]:
    """One label and who gave it."""
    payload = {key: value for key, value in label["payload"].items() if key != "targetEventId"}
    return {**payload, "eventId": label.id, "labeler": label["actor"], "at": label["occurredAt"]}


def describe_history(
    memory: Memory, threads: Mapping[str, Thread | None], policy: Policy, withheld: frozenset[str]
) -> list[dict[str, Any]]:
    """Each version on its own: what review may not read of one shows only its state and digests.

    Of a damaged learning every version, past ones too, shows only what its bytes state of itself.
    """
    rows: list[dict[str, Any]] = []
    for number, (record, raw) in enumerate(zip(memory.versions, memory.raw, strict=True), start=1):
        if record is None or memory.damaged:
            rows.append({"version": number, "damaged": True, "withheld": True, **stated_members(raw)})
            continue
        permitted = not any(find_refusals(record, threads, "review", policy, withheld))
        row = {key: record[key] for key in ("version", "state", "at", "contentDigest", "reviewDigest", "digest")}
        row |= {"damaged": False, "withheld": not permitted}
        if permitted:
            row |= _describe_decision(record, permitted)
            row |= {"text": record["content"]["text"], "support": record["support"], "dissent": record["dissent"]}
            row["evidence"] = [reference["eventIds"][0] for reference in record["evidence"]]
            row["counterevidence"] = [reference["eventIds"][0] for reference in record["counterevidence"]]
        rows.append(row)
    return rows


def _describe_decision(record: CheckedRecord, permitted: bool) -> dict[str, Any]:
    """Who decided what and when; the reason may paraphrase evidence and is shown only with it."""
    steps = {key: record[key] for key in _DECISION_MEMBERS if key in record.data}
    if permitted:
        return steps
    return {
        key: {k: v for k, v in step.items() if k != "reason"} if isinstance(step, dict) else step
        for key, step in steps.items()
    }

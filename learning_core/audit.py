"""Audit entries: one operation, with IDs, digests and counts, and no content.

Every record stands in exactly one receipt, every redaction in its own. An entry's ID derives from its operation,
subject and chunk, so that a retry or a racing call writes the same entry and the provider keeps one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from learning_core.identifiers import Principal, audit_id
from learning_core.provider import Head
from learning_core.records import CheckedRecord, seal

MAX_RECORDS = 1000
"""How many records one receipt names at most."""


def seal_entry(
    scope: str,
    operation: str,
    subject: str,
    *,
    at: str,
    actor: Mapping[str, Any],
    chunk: int = 0,
    records: Sequence[Mapping[str, str]] = (),
    details: Mapping[str, Any] | None = None,
) -> CheckedRecord:
    """One audit entry. `details` holds IDs, counts and booleans."""
    return seal(
        "audit-entry",
        {
            "id": audit_id(scope, operation, subject, chunk),
            "scope": scope,
            "operation": operation,
            "subject": subject,
            "chunk": chunk,
            "at": at,
            "actor": dict(actor),
            "records": [dict(record) for record in records],
            "details": dict(details or {}),
        },
    )


def seal_receipts(
    scope: str,
    operation: str,
    subject: str,
    records: Mapping[str, Sequence[CheckedRecord]],
    *,
    at: str,
    actor: Principal,
    details: Mapping[str, Any] | None = None,
    first_chunk: int = 0,
) -> list[CheckedRecord]:
    """The receipts for records of several streams, 1,000 records an entry, at least one entry."""
    named = [receipt(stream, record) for stream, group in records.items() for record in group]
    chunks = [named[start : start + MAX_RECORDS] for start in range(0, len(named), MAX_RECORDS)] or [[]]
    return [
        seal_entry(
            scope,
            operation,
            subject,
            at=at,
            actor=actor.data,
            chunk=first_chunk + number,
            records=chunk,
            details=details,
        )
        for number, chunk in enumerate(chunks)
    ]


def receipt(stream: str, record: CheckedRecord) -> dict[str, str]:
    """How an audit entry names a record."""
    return {"stream": stream, "id": record.id, "digest": record.digest}


@dataclass(frozen=True, slots=True)
class Plan:
    """One atomic change and the audit entries that record it. A change without its receipt cannot be made.

    Exactly one of `records` (appended), `memory` (a version, and the digest of the one before it) and `redaction` (an
    event's copy without its text) is set, or none where the entries are all there is to store. `expected` are the
    heads that the write must still find.
    """

    audit: Sequence[CheckedRecord]
    records: Mapping[str, Sequence[CheckedRecord]] = field(default_factory=dict)
    memory: tuple[CheckedRecord, str | None] | None = None
    redaction: CheckedRecord | None = None
    expected: Mapping[str, Head] = field(default_factory=dict)

    def __post_init__(self) -> None:
        named = {(item["stream"], item["id"], item["digest"]) for entry in self.audit for item in entry["records"]}
        changed = [(stream, record) for stream, group in self.records.items() for record in group]
        if self.memory is not None:
            changed.append(("memories", self.memory[0]))
        if self.redaction is not None:
            changed.append(("events", self.redaction))
        for stream, record in changed:
            if (stream, record.id, record.digest) not in named:
                raise ValueError(f"{record.id} has no receipt")
        if not self.audit:
            raise ValueError("a plan without an audit entry")

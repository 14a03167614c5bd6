"""Re-check everything a store holds, in one pass a stream, and report each problem.

1. Each row is a valid record of its scope, at a position of its own; positions have no gaps.
2. Each group's rows add up to its head, and a provider that keeps an index finds each row where its bytes belong.
3. Every record stands in exactly one receipt, and every receipt names a record that is there; a redacted event has a
   receipt of its removal, and an event with such a receipt has no text.
4. Threads resolve, learnings' histories are intact, and their references are what storage says.

Source: the learning guide, "Rules" (every change has an audit entry); design.md, decisions 5 and 6.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from learning_core.audit import Plan, seal_entry
from learning_core.canonical import derive_id
from learning_core.errors import Damaged
from learning_core.evidence import Memory, Thread, cited_references, find_reference_fault, stated_id
from learning_core.identifiers import Principal
from learning_core.policy import Policy
from learning_core.provider import (
    EMPTY_HEAD,
    MEMORIES,
    STREAMS,
    Head,
    MemoryProvider,
    MemoryQuery,
    Query,
    advance,
    advance_redacted,
    is_redacted,
    record_groups,
)
from learning_core.records import STREAM_KINDS, CheckedRecord, check

MAX_PROBLEMS = 1000
STOPPING = ("episodes", "events", "grants", "withdrawals", "collections")
"""Damage in these streams stops every operation until it is repaired; a damaged learning is merely never used."""


@dataclass(slots=True)
class Inspection:
    """What a pass over a store found."""

    checked: dict[str, int] = field(default_factory=dict)
    problems: list[dict[str, Any]] = field(default_factory=list)
    heads: dict[str, Head] = field(default_factory=dict)
    positions: int = 0
    last_position: int = 0
    bound: int = 0
    rows_beyond: bool = False
    position_sum: int = 0
    damaged: list[str] = field(default_factory=list)

    def report(self, code: str, record_id: str | None, detail: str) -> None:
        """Add one problem; beyond 1,000 they are only counted."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append({"code": code, "recordId": record_id, "detail": detail})


class _Tally:
    """An order-free sum over named records: equal for receipts and rows exactly when the same records stand in both."""

    def __init__(self) -> None:
        self.sum = 0

    def add(self, stream: str, record_id: str, digest: str) -> None:
        hashed = hashlib.sha256(f"{stream}\n{record_id}\n{digest}".encode()).digest()
        self.sum = (self.sum + int.from_bytes(hashed)) % (1 << 256)


def inspect_rows(provider: MemoryProvider, scope: str) -> Inspection:
    """Checks 1 and 3, and the heads that the rows add up to (`Inspection.heads`).

    Every write ends with its audit entries. So the last of them bounds what is inspected, and what others store
    meanwhile is left to the next time; unless no entry follows: then the rows after it have none.
    """
    found = _inspect_rows(provider, scope, bounded=True)
    if found.rows_beyond:
        later = provider.read_records(scope, "audit", Query(after=found.bound, limit=1))
        if next(iter(later), None) is None:
            return _inspect_rows(provider, scope, bounded=False)
    return found


def _inspect_rows(provider: MemoryProvider, scope: str, *, bounded: bool) -> Inspection:
    found = Inspection()
    stored, received, removed, removals = _Tally(), _Tally(), _Tally(), _Tally()
    for stream in ("audit", *(name for name in (*STREAMS, MEMORIES) if name != "audit")):
        count = 0
        for position, record in _iterate(provider, scope, stream, found):
            if stream == "audit":
                found.bound = position
            elif bounded and position > found.bound:
                found.rows_beyond = True
                break
            count += 1
            _count_position(found, position)
            if record is None:
                continue
            _advance_heads(found, stream, record)
            if stream == "audit":
                tally = removals if record["operation"] == "evidence.redact" else received
                for item in record["records"]:
                    tally.add(item["stream"], item["id"], item["digest"])
                continue
            stored.add(stream, record.id, record.digest)
            if stream == "events" and is_redacted(record.data):
                removed.add(stream, record.id, record.digest)
        found.checked[stream] = count
    expected = found.last_position * (found.last_position + 1) // 2
    if found.positions != found.last_position or found.position_sum != expected:
        found.report("position_gap", None, f"{found.positions} rows stand at positions up to {found.last_position}.")
    if stored.sum != received.sum:
        _explain_receipts(provider, scope, found)
    if removed.sum != removals.sum:
        _explain_removals(provider, scope, found)
    return found


def find_wrong_groups(found: Inspection, heads: Mapping[str, Head]) -> list[str]:
    """Check 2: the groups whose rows do not add up to the head that the provider keeps, or that moved meanwhile."""
    return [group for group, head in heads.items() if found.heads.get(group, EMPTY_HEAD) != head]


def report_group(group: str, found: Inspection) -> None:
    """Report a group that does not add up. Damage in policy and evidence stops every operation."""
    found.report("head_mismatch", group, "The rows of this group do not add up to its head.")
    if group == "policy" or group.startswith("e:"):
        found.damaged.append(group.removeprefix("e:"))


def inspect_index(misplaced: Iterable[tuple[str, str]], found: Inspection) -> None:
    """Report each row that a query would not find: an operation that looks for it reads too little."""
    for stream, record_id in misplaced:
        found.report("misplaced", record_id, f"Queries do not find this row of {stream} where its bytes belong.")
        if stream in STOPPING:
            found.damaged.append(record_id)


def inspect_memory(memory: Memory, threads: Mapping[str, Thread | None], found: Inspection) -> None:
    """Check 4 for one learning: its history, and its newest version's references."""
    if memory.fault is not None:
        found.report("invalid_history", memory.id, memory.fault)
        return
    for reference in cited_references(memory.latest):
        fault = find_reference_fault(reference, threads.get(reference["episodeId"]))
        if fault is not None:
            found.report("forged_evidence", memory.id, f"A reference is not what storage says: {fault}.")


def compare_anchor(entries: Iterable[CheckedRecord], anchor: tuple[int, str], found: Inspection) -> None:
    """Report a store that was rolled back or cut: the audit chain must pass through the anchor seen earlier."""
    count, chain = anchor
    head = EMPTY_HEAD
    for entry in entries:
        if head.count == count:
            break
        head = advance(head, entry.digest)
    if (head.count, head.chain) != (count, chain):
        found.report("rolled_back", None, f"The audit chain does not pass through the {count} entries seen earlier.")


def plan_marks(
    found: Inspection, policy: Policy, *, scope: str, actor: Principal, at: str, earlier: int
) -> Plan | None:
    """A durable mark of damage that stops operations, or its clearing once everything verifies again."""
    damaged = sorted(set(found.damaged) - set(policy.damage))
    if damaged:
        details = {"damaged": damaged[:1000]}
        entry = seal_entry(
            scope, "damage.mark", derive_id("damage", *damaged), chunk=earlier, at=at, actor=actor.data, details=details
        )
        return Plan([entry])
    if policy.damage and not found.problems:
        subject = derive_id("damage", *sorted(policy.damage))
        return Plan([seal_entry(scope, "damage.clear", subject, chunk=earlier, at=at, actor=actor.data)])
    return None


def _iterate(
    provider: MemoryProvider, scope: str, stream: str, found: Inspection
) -> Iterator[tuple[int, CheckedRecord | None]]:
    rows = (
        provider.read_memory_versions(scope, MemoryQuery())
        if stream == MEMORIES
        else provider.read_records(scope, stream, Query())  # type: ignore[arg-type]
    )
    for position, raw in rows:
        try:
            yield position, check(STREAM_KINDS[stream], raw, scope)
        except Damaged as error:
            record_id = error.details.get("record_id") or stated_id(raw) or None
            found.report("damaged", record_id, error.message)
            if stream in STOPPING:
                found.damaged.append(record_id or f"{stream}:{position}")
            yield position, None


def _count_position(found: Inspection, position: int) -> None:
    found.positions += 1
    found.position_sum += position
    found.last_position = max(found.last_position, position)


def _advance_heads(found: Inspection, stream: str, record: CheckedRecord) -> None:
    for group in record_groups(stream, record.data):
        if group == "policy":
            continue  # Its rows come from three streams; the reader compares them in their order.
        head = advance(found.heads.get(group, EMPTY_HEAD), record.digest)
        if stream == "events" and is_redacted(record.data):
            head = advance_redacted(head, record.digest)
        found.heads[group] = head


def _explain_receipts(provider: MemoryProvider, scope: str, found: Inspection) -> None:
    received: dict[tuple[str, str, str], int] = {}
    for item in _receipts(provider, scope, removals=False):
        received[item] = received.get(item, 0) + 1
    for stream in (*STREAMS, MEMORIES):
        if stream == "audit":
            continue
        for _, record in _iterate(provider, scope, stream, Inspection()):
            if record is None:
                continue
            key = (stream, record.id, record.digest)
            count = received.pop(key, 0)
            if count == 0:
                found.report("unaudited_record", record.id, "No audit entry records it.")
            elif count > 1:
                found.report("doubled_receipt", record.id, "More than one audit entry records it.")
    for stream, record_id, _ in received:
        found.report("missing_record", record_id, "An audit entry names it, and the store does not hold it.")
        if stream in STOPPING:
            found.damaged.append(record_id)


def _explain_removals(provider: MemoryProvider, scope: str, found: Inspection) -> None:
    removals = {item[1] for item in _receipts(provider, scope, removals=True)}
    for _, record in _iterate(provider, scope, "events", Inspection()):
        if record is None:
            continue
        if is_redacted(record.data) and record.id not in removals:
            found.report("missing_removal_receipt", record.id, "Its text was removed and no audit entry says so.")
        elif not is_redacted(record.data) and record.id in removals:
            found.report("removed_text_is_back", record.id, "An audit entry says its text was removed; it has text.")
            found.damaged.append(record.id)


def _receipts(provider: MemoryProvider, scope: str, *, removals: bool) -> Iterator[tuple[str, str, str]]:
    for _, entry in _iterate(provider, scope, "audit", Inspection()):
        if entry is not None and (entry["operation"] == "evidence.redact") is removals:
            for item in entry["records"]:
                yield item["stream"], item["id"], item["digest"]


def describe(found: Inspection, completeness: str) -> dict[str, Any]:
    """The result as the command prints it."""
    return {
        "ok": not found.problems,
        "completeness": completeness,
        "checked": dict(found.checked),
        "problems": list(found.problems),
    }

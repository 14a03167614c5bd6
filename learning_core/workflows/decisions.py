"""Accept, edit, reject, retire, supersede: a person's decision as the next version of a learning.

Source: the learning guide, "Rules"; design.md, section 4, rules 11 and 12.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from learning_core.audit import Plan, receipt, seal_entry
from learning_core.errors import EvidenceUnavailable, InvalidTransition
from learning_core.evidence import Standing
from learning_core.identifiers import Principal, check_person
from learning_core.lifecycle import (
    Supersession,
    check_reason,
    check_replacement,
    next_accepted,
    next_rejected,
    next_retired,
    next_superseding,
)
from learning_core.provider import Head
from learning_core.records import REVIEW_MEMBERS, CheckedRecord


def plan_acceptance(
    standing: Standing,
    review: Standing,
    by: Principal,
    *,
    review_digest: str,
    text: str | None,
    reason: str | None,
    states: Mapping[str, str],
    supersession: Supersession,
    expected: Mapping[str, Head],
    at: str,
) -> tuple[CheckedRecord, Plan]:
    """The accepted version. `standing` is for instruction, `review` for review: a person must have seen the evidence.

    Raises `NotAPerson`, `InvalidTransition`, `StaleReview`, `EvidenceUnavailable`, `ReasonRequired`.
    """
    check_person(by, "accept a learning")
    previous = standing.record
    record = next_accepted(previous, by, review_digest=review_digest, text=text, reason=reason, at=at)
    if not (standing.permitted and review.permitted):
        refusals = sorted({r for r in (*standing.refusals, *review.refusals) if r is not None})
        raise EvidenceUnavailable(
            f"Evidence of this proposal may no longer be used ({', '.join(refusals)}); it must be proposed anew.",
            record_id=previous.id,
            refusals=refusals,
        )
    if record.get("supersedes"):
        check_replacement(record, record["supersedes"], states, supersession, usable=True, at=at)
    return record, _plan_step(record, previous, "memory.accept", by, expected, at)


def plan_rejection(
    previous: CheckedRecord, by: Principal, *, review_digest: str, reason: str, expected: Mapping[str, Head], at: str
) -> tuple[CheckedRecord, Plan]:
    """The rejected version. Raises `NotAPerson`, `InvalidTransition`, `StaleReview`, `ReasonRequired`."""
    check_person(by, "reject a learning")
    record = next_rejected(previous, by, review_digest=review_digest, reason=reason, at=at)
    return record, _plan_step(record, previous, "memory.reject", by, expected, at)


def plan_retirement(
    previous: CheckedRecord, by: Principal, *, reason: str, expected: Mapping[str, Head], at: str
) -> tuple[CheckedRecord, Plan]:
    """The retired version. Raises `NotAPerson`, `InvalidTransition`, `ReasonRequired`."""
    check_person(by, "retire a learning")
    record = next_retired(previous, by, reason=reason, at=at)
    return record, _plan_step(record, previous, "memory.retire", by, expected, at)


def plan_supersession(
    standing: Standing,
    by: Principal,
    *,
    replaces: Sequence[str],
    states: Mapping[str, str],
    supersession: Supersession,
    expected: Mapping[str, Head],
    at: str,
) -> tuple[CheckedRecord, Plan]:
    """The version that records what an accepted learning replaces. Raises `NotAPerson`, `InvalidTransition`."""
    check_person(by, "replace a learning")
    previous = standing.record
    record = next_superseding(previous, by, replaces=list(dict.fromkeys(replaces)), at=at)
    check_replacement(record, record["supersedes"], states, supersession, usable=standing.permitted, at=at)
    return record, _plan_step(record, previous, "memory.supersede", by, expected, at)


def make_correction(standing: Standing, by: Principal, *, text: str, reason: str) -> dict[str, Any]:
    """A person's correction: a proposal with the same evidence that replaces the learning, to be decided as any other.

    Raises `NotAPerson`, `InvalidTransition`, `EvidenceUnavailable`, `ReasonRequired`.
    """
    check_person(by, "correct a learning")
    check_reason(reason, "A correction")
    record = standing.record
    if record["state"] != "accepted" or standing.superseded_by is not None or standing.void:
        raise InvalidTransition(
            "Only an accepted learning that nothing replaced can be corrected.", record_id=record.id
        )
    if not standing.permitted:
        raise EvidenceUnavailable("Evidence of this learning may no longer be used.", record_id=record.id)
    if text.strip() == record["content"]["text"]:
        raise InvalidTransition("The correction says what the learning says already.", record_id=record.id)
    return {
        **{name: record[name] for name in REVIEW_MEMBERS if name != "scope"},
        "content": {**record["content"], "text": text.strip()},
        "lifecycle": {**record["lifecycle"], "replaces": [record.id]},
        "rationale": reason.strip(),
        "proposer": {"kind": "human", "id": by.id},
    }


def _plan_step(
    record: CheckedRecord, previous: CheckedRecord, operation: str, by: Principal, expected: Mapping[str, Head], at: str
) -> Plan:
    entry = seal_entry(
        record["scope"],
        operation,
        record.id,
        chunk=record["version"],
        at=at,
        actor=by.data,
        records=[receipt("memories", record)],
    )
    return Plan([entry], memory=(record, previous.digest), expected=expected)

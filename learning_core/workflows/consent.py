"""Record and end a person's permission for purposes.

Source: the learning guide, "Rules"; decision record, "Purposes are …".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from learning_core.audit import Plan, seal_receipts
from learning_core.canonical import derive_id
from learning_core.errors import InvalidArgument, InvalidTransition, NotFound
from learning_core.identifiers import Principal, check_person
from learning_core.lifecycle import check_reason
from learning_core.policy import PURPOSES, Policy, derive_withdrawn
from learning_core.provider import Head
from learning_core.records import CheckedRecord, seal


def plan_grant(
    by: Principal,
    *,
    scope: str,
    purposes: Sequence[str],
    sources: Sequence[str],
    time_from: str | None,
    time_to: str | None,
    reason: str,
    at: str,
    nonce: str,
) -> tuple[CheckedRecord, Plan]:
    """A grant. Raises `NotAPerson`, `ReasonRequired`, `InvalidRecord`."""
    check_person(by, "grant consent")
    check_reason(reason, "A grant")
    grant = seal(
        "consent-grant",
        {
            "id": derive_id("grant", scope, nonce),
            "scope": scope,
            "purposes": [purpose for purpose in PURPOSES if purpose in purposes] if purposes else [],
            "sources": list(dict.fromkeys(sources)),
            "range": {"from": time_from, "to": time_to},
            "reason": reason.strip(),
            "grantedBy": by.data,
            "grantedAt": at,
        },
    )
    records = {"grants": [grant]}
    return grant, Plan(seal_receipts(scope, "grant.add", grant.id, records, at=at, actor=by), records)


def check_purposes(purposes: Sequence[str]) -> None:
    """Raise `InvalidArgument` for a purpose that does not exist."""
    for purpose in purposes:
        if purpose not in PURPOSES:
            raise InvalidArgument(f"{purpose[:40]!r} is no purpose; the purposes are {', '.join(PURPOSES)}.")


def plan_withdrawal(
    by: Principal,
    grant_id: str,
    *,
    scope: str,
    purposes: Sequence[str] | None,
    reason: str,
    policy: Policy,
    expected: Mapping[str, Head],
    at: str,
) -> tuple[CheckedRecord, Plan]:
    """The end of a grant, for the purposes named or all that are left. Raises `NotFound`, `InvalidTransition`."""
    check_person(by, "withdraw consent")
    check_reason(reason, "A withdrawal")
    grant = next((grant for grant in policy.grants if grant.id == grant_id), None)
    if grant is None:
        raise NotFound(f"There is no grant {grant_id[:80]}.")
    ended = [p for p in PURPOSES if p in grant.purposes and (purposes is None or p in purposes)]
    if not ended or (purposes is not None and set(purposes) - grant.purposes):
        raise InvalidTransition("The grant does not permit these purposes (any more); nothing was withdrawn.")
    withdrawal = seal(
        "grant-withdrawal",
        {
            "id": derive_id("withdrawal", scope, grant_id, len(derive_withdrawn(policy, grant_id))),
            "scope": scope,
            "grantId": grant_id,
            "purposes": ended,
            "reason": reason.strip(),
            "withdrawnBy": by.data,
            "withdrawnAt": at,
        },
    )
    records = {"withdrawals": [withdrawal]}
    audit = seal_receipts(scope, "grant.withdraw", withdrawal.id, records, at=at, actor=by)
    return withdrawal, Plan(audit, records, expected=expected)


def find_exports(exports: Sequence[CheckedRecord], grant_id: str, purposes: Sequence[str]) -> list[dict[str, Any]]:
    """Earlier exports that copied evidence under a grant, whose owners should be asked to delete it."""
    return [
        {"id": export.id, "purpose": export["purpose"], "exportedAt": export["exportedAt"]}
        for export in exports
        if grant_id in export["grantIds"] and export["purpose"] in purposes
    ]


def describe_grants(policy: Policy) -> list[dict[str, Any]]:
    """Each grant with the purposes that are still active and those that were withdrawn."""
    active = {grant.id: grant.purposes for grant in policy.grants}
    return [
        {
            **record.data,
            "active": [purpose for purpose in PURPOSES if purpose in active[record.id]],
            "withdrawn": derive_withdrawn(policy, record.id),
        }
        for record in policy.records
        if record.kind == "consent-grant"
    ]

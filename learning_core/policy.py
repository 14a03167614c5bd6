"""May this evidence serve this purpose? Pure rules over grants, withdrawals and what was adopted.

Permission is decided when evidence is read, by when it was written. Permission for one purpose never implies another.

Source: the learning guide, "Rules" and "Reviewer identity"; decision record, "Purposes are …".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from learning_core.records import CheckedRecord

PURPOSES = ("review", "instruction", "evaluation", "analytics", "training", "publication")
SOURCE = "hub-comments"
"""The one source of evidence in this version."""

LEGACY_PREFIX = "github:"
"""What an identity starts with that is only a login: old snapshots carry no stable ID."""


@dataclass(frozen=True, slots=True)
class Grant:
    """One grant and the purposes of it that nobody has withdrawn."""

    id: str
    purposes: frozenset[str]
    sources: frozenset[str]
    time_from: str | None
    time_to: str | None

    def covers(self, purpose: str, source: str, written_at: str) -> bool:
        """Whether it permits the purpose for evidence of the source that was written then (range half-open)."""
        return (
            purpose in self.purposes
            and source in self.sources
            and (self.time_from is None or self.time_from <= written_at)
            and (self.time_to is None or written_at < self.time_to)
        )


@dataclass(frozen=True, slots=True)
class Policy:
    """The consent of one scope: its grants, the Hub repositories that adopted stable reviewer IDs, damage marks."""

    grants: tuple[Grant, ...] = ()
    adopted: frozenset[tuple[str, int]] = frozenset()
    damage: tuple[str, ...] = ()
    records: tuple[CheckedRecord, ...] = field(default=(), repr=False)

    def covering(self, purpose: str, source: str, written_at: str) -> tuple[str, ...]:
        """IDs of the grants that permit this; empty means not permitted."""
        return tuple(grant.id for grant in self.grants if grant.covers(purpose, source, written_at))

    def active(self, purpose: str, source: str) -> tuple[str, ...]:
        """IDs of the grants that permit the purpose for some time of the source."""
        return tuple(grant.id for grant in self.grants if purpose in grant.purposes and source in grant.sources)

    def decide_refusal(
        self, purpose: str, source: str, written_at: str, pin: Mapping[str, Any], author: Any
    ) -> str | None:
        """Why evidence may not serve the purpose: `consent`, `identity`, or None where it may.

        `identity`: its repository has adopted stable reviewer IDs and the author is known by a login only; such
        comments may be read for review and serve nothing else.
        """
        if not any(grant.covers(purpose, source, written_at) for grant in self.grants):
            return "consent"
        adopted = (pin["hubOrigin"], pin["repositoryId"]) in self.adopted
        return "identity" if adopted and purpose != "review" and is_legacy(author) else None


def is_legacy(author: Mapping[str, Any]) -> bool:
    """Whether a comment's author, a person or a bot, is known by a login only."""
    return author["kind"] != "unknown" and str(author["id"]).startswith(LEGACY_PREFIX)


def derive_policy(records: Iterable[CheckedRecord]) -> Policy:
    """The policy that the grants, withdrawals and policy audit entries of a scope add up to, in stored order."""
    rows = tuple(records)
    withdrawn: dict[str, set[str]] = {}
    adopted: set[tuple[str, int]] = set()
    damage: dict[str, None] = {}
    for record in rows:
        if record.kind == "grant-withdrawal":
            withdrawn.setdefault(record["grantId"], set()).update(record["purposes"])
        elif record.kind == "audit-entry":
            details = record["details"]
            if record["operation"] == "identity.adopt":
                adopted.add((details["hubOrigin"], details["repositoryId"]))
            elif record["operation"] == "damage.mark":
                damage.update(dict.fromkeys(details["damaged"]))
            elif record["operation"] == "damage.clear":
                damage.clear()
    grants = tuple(
        Grant(
            record.id,
            frozenset(record["purposes"]) - withdrawn.get(record.id, set()),
            frozenset(record["sources"]),
            record["range"]["from"],
            record["range"]["to"],
        )
        for record in rows
        if record.kind == "consent-grant"
    )
    return Policy(grants, frozenset(adopted), tuple(damage), rows)


def derive_withdrawn(policy: Policy, grant_id: str) -> list[str]:
    """The purposes of a grant that were withdrawn, in the order of `PURPOSES`."""
    withdrawn = {
        purpose
        for record in policy.records
        if record.kind == "grant-withdrawal" and record["grantId"] == grant_id
        for purpose in record["purposes"]
    }
    return [purpose for purpose in PURPOSES if purpose in withdrawn]

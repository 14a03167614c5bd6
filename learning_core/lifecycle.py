"""A learning's life: its versions, what each step may change, and which learning replaces which. Pure.

A history is intact when

1. its versions are numbered 1, 2, 3 …, each names the digest of the one before, and time does not run backwards;
2. it starts as a proposal, and a proposal may be followed by a changed proposal, an acceptance or a rejection;
3. a decision names the reviewDigest of the version before it, and the contentDigest it approves;
4. accepting changes nothing but the text, and records `edited` exactly when the text changed; it replaces exactly
   what the reviewed lifecycle names;
5. an accepted learning may once record what it replaces, if it was accepted without replacing anything;
6. retiring changes nothing but the state; a rejected or retired learning never changes again;
7. support, dissent and confidence are those of what it cites.

Source: the learning guide, "Rules"; decision record, "The contracts require a human …" and "A provider offers …".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from learning_core.errors import EvidenceUnavailable, InvalidTransition, ReasonRequired, StaleReview
from learning_core.identifiers import Principal
from learning_core.records import CheckedRecord, content_digest, seal

_VERSION_MEMBERS = ("version", "previousDigest", "state", "at", "contentDigest", "reviewDigest", "digest")
_STEP_MEMBERS = ("approval", "rejection", "retirement", "supersedes", "supersession")


def find_history_fault(versions: Sequence[CheckedRecord]) -> str | None:
    """Why a learning's versions are not an intact history, or None. `versions` is the whole history, in order."""
    previous: CheckedRecord | None = None
    for number, record in enumerate(versions, start=1):
        fault = _find_step_fault(previous, record, number)
        if fault is not None:
            return f"version {number} {fault}"
        previous = record
    return None


def refuted_part(versions: Sequence[CheckedRecord | None]) -> list[CheckedRecord]:
    """The versions from the first on that breaks the history: what they claim to replace does not count.

    A version that is missing or unreadable (None) refutes nothing: damage never restores what was replaced.
    """
    readable = [record for record in versions if record is not None]
    for place, record in enumerate(readable):
        previous = readable[place - 1] if place else None
        number = previous["version"] + 1 if previous is not None else 1
        follows = record["version"] == number
        if record["version"] < number or (follows and _find_step_fault(previous, record, number) is not None):
            intact = {kept.digest for kept in readable[:place]}
            return [refuted for refuted in readable[place:] if refuted.digest not in intact]
    return []


def _find_step_fault(previous: CheckedRecord | None, record: CheckedRecord, number: int) -> str | None:
    if record["version"] != number or record["previousDigest"] != (previous.digest if previous else None):
        return "does not follow the version before it"
    if (record["support"], record["dissent"]) != tuple(
        map(count_cited, (record["evidence"], record["counterevidence"]))
    ):
        return "states other counts than those of what it cites"
    if record["confidence"] != derive_confidence(record["support"], record["dissent"]):
        return "states another confidence than its counts give"
    if previous is None:
        return None if record["state"] == "proposed" else "is not a proposal"
    if previous.id != record.id or record["at"] < previous["at"]:
        return "does not follow the version before it"
    step = (previous["state"], record["state"])
    check = _STEP_CHECKS.get(step)
    return f"may not be {step[1]} after {step[0]}" if check is None else check(previous, record)


def count_cited(references: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Distinct comments, threads, prototypes and reviewers of evidence references; only people count as reviewers."""
    people = {reference["author"]["id"] for reference in references if reference["author"]["kind"] == "human"}
    return {
        "comments": len({reference["eventIds"][0] for reference in references}),
        "threads": len({reference["episodeId"] for reference in references}),
        "prototypes": len({reference["pin"]["prototypeId"] for reference in references}),
        "reviewers": len(people),
    }


def derive_confidence(support: Mapping[str, int], dissent: Mapping[str, int]) -> int:
    """Whole hundredths: 100 * S // (S + D) over reviewers; 0 where nobody counts."""
    total = support["reviewers"] + dissent["reviewers"]
    return 100 * support["reviewers"] // total if total else 0


def _find_proposal_fault(previous: CheckedRecord, record: CheckedRecord) -> str | None:
    same = all(previous["content"][key] == record["content"][key] for key in ("category", "theme"))
    return None if same and previous["kind"] == record["kind"] else "changes the learning's theme"


def _find_acceptance_fault(previous: CheckedRecord, record: CheckedRecord) -> str | None:
    approval = record["approval"]
    before, after = previous["content"], record["content"]
    if approval["reviewDigest"] != previous["reviewDigest"] or approval["contentDigest"] != record["contentDigest"]:
        return "approves another review or content"
    if not _same_but(previous, record, ("content", "approval", "supersedes", *_VERSION_MEMBERS)):
        return "changes more than the text"
    if {**before, "text": None} != {**after, "text": None} or approval["edited"] != (before["text"] != after["text"]):
        return "changes more than it records"
    if (record.get("supersedes") or []) != previous["lifecycle"]["replaces"]:
        return "replaces what its review did not name"
    return None


def _find_rejection_fault(previous: CheckedRecord, record: CheckedRecord) -> str | None:
    if record["rejection"]["reviewDigest"] != previous["reviewDigest"]:
        return "rejects another review"
    return None if _same_but(previous, record, ("rejection", *_VERSION_MEMBERS)) else "changes more than the state"


def _find_supersession_fault(previous: CheckedRecord, record: CheckedRecord) -> str | None:
    if previous.get("supersedes") or not record.get("supersedes") or not record.get("supersession"):
        return "records a replacement a second time"
    allowed = ("supersedes", "supersession", *_VERSION_MEMBERS)
    return None if _same_but(previous, record, allowed) else "changes more than what it replaces"


def _find_retirement_fault(previous: CheckedRecord, record: CheckedRecord) -> str | None:
    allowed = ("retirement", "supersedes", "supersession", *_VERSION_MEMBERS)
    return None if _same_but(previous, record, allowed) else "changes more than the state"


_STEP_CHECKS = {
    ("proposed", "proposed"): _find_proposal_fault,
    ("proposed", "accepted"): _find_acceptance_fault,
    ("proposed", "rejected"): _find_rejection_fault,
    ("accepted", "accepted"): _find_supersession_fault,
    ("accepted", "retired"): _find_retirement_fault,
}


def _same_but(previous: CheckedRecord, record: CheckedRecord, members: Iterable[str]) -> bool:
    omitted = set(members)
    before = {key: value for key, value in previous.data.items() if key not in omitted}
    return before == {key: value for key, value in record.data.items() if key not in omitted}


# Steps: the next version of a learning -------------------------------------------------------------------------------


def next_proposal(previous: CheckedRecord | None, members: Mapping[str, Any], *, at: str) -> CheckedRecord:
    """The first version of a proposal, or a changed one's next version."""
    return seal(
        "memory-record",
        {
            **members,
            "version": 1 if previous is None else previous["version"] + 1,
            "previousDigest": None if previous is None else previous.digest,
            "state": "proposed",
            "at": at,
        },
    )


def next_accepted(
    previous: CheckedRecord, by: Principal, *, review_digest: str, text: str | None, reason: str | None, at: str
) -> CheckedRecord:
    """The accepted version. Raises `StaleReview`, `InvalidTransition`, `ReasonRequired`."""
    check_reviewed(previous, review_digest, "accepted")
    if is_contested(previous) and not (reason and reason.strip()):
        raise ReasonRequired(
            "A reviewer disagrees with this proposal, so accepting it needs a reason.", record_id=previous.id
        )
    members = _carry(previous, "accepted", at)
    edited = text is not None and text != previous["content"]["text"]
    if edited:
        members["content"] = {**previous["content"], "text": text}
    if previous["lifecycle"]["replaces"]:
        members["supersedes"] = previous["lifecycle"]["replaces"]
    members["approval"] = {
        "by": by.data,
        "at": at,
        "reviewDigest": review_digest,
        "contentDigest": content_digest(members),
        "edited": edited,
        "reason": reason.strip() if reason and reason.strip() else None,
    }
    return seal("memory-record", members)


def next_rejected(previous: CheckedRecord, by: Principal, *, review_digest: str, reason: str, at: str) -> CheckedRecord:
    """The rejected version. Raises `StaleReview`, `InvalidTransition`, `ReasonRequired`."""
    check_reviewed(previous, review_digest, "rejected")
    check_reason(reason, "Rejecting")
    rejection = {"by": by.data, "at": at, "reviewDigest": review_digest, "reason": reason.strip()}
    return seal("memory-record", {**_carry(previous, "rejected", at), "rejection": rejection})


def next_retired(previous: CheckedRecord, by: Principal, *, reason: str, at: str) -> CheckedRecord:
    """The retired version of an accepted learning. Raises `InvalidTransition`, `ReasonRequired`."""
    if previous["state"] != "accepted":
        raise InvalidTransition(
            f"Only an accepted learning can be retired; {previous.id} is {previous['state']}.", record_id=previous.id
        )
    check_reason(reason, "Retiring")
    members = _carry(previous, "retired", at)
    return seal("memory-record", {**members, "retirement": {"by": by.data, "at": at, "reason": reason.strip()}})


def next_superseding(previous: CheckedRecord, by: Principal, *, replaces: Sequence[str], at: str) -> CheckedRecord:
    """The version that records, once, what an accepted learning replaces. Raises `InvalidTransition`."""
    if previous["state"] != "accepted" or previous.get("supersedes"):
        raise InvalidTransition(
            f"{previous.id} must be accepted and must not replace anything yet; to replace more, propose a merge.",
            record_id=previous.id,
        )
    members = _carry(previous, "accepted", at)
    return seal("memory-record", {**members, "supersedes": list(replaces), "supersession": {"by": by.data, "at": at}})


def check_reviewed(previous: CheckedRecord, review_digest: str, outcome: str) -> None:
    """Raise unless the learning is a proposal and the digest is that of its current version."""
    if previous["state"] != "proposed":
        raise InvalidTransition(
            f"Only a proposal can be {outcome}; {previous.id} is already {previous['state']}.",
            record_id=previous.id,
            state=previous["state"],
        )
    if previous["reviewDigest"] != review_digest:
        raise StaleReview(
            "This proposal changed after it was shown: read it again and decide on its current reviewDigest.",
            record_id=previous.id,
            current=previous["reviewDigest"],
        )


def check_reason(reason: str, action: str) -> None:
    """Raise `ReasonRequired` for a blank reason."""
    if not reason.strip():
        raise ReasonRequired(f"{action} needs a reason.")


def is_contested(record: CheckedRecord) -> bool:
    """Whether at least one reviewer dissents."""
    return bool(record["dissent"]["reviewers"] > 0)


def _carry(previous: CheckedRecord, state: str, at: str) -> dict[str, Any]:
    omitted = ("digest", "contentDigest", "reviewDigest", "supersedes", "supersession")
    members = {key: value for key, value in previous.data.items() if key not in omitted}
    return {
        **members,
        "version": previous["version"] + 1,
        "previousDigest": previous.digest,
        "state": state,
        "at": max(at, previous["at"]),
    }


# Supersession --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claim:
    """A learning records that it replaces others, with its acceptance or in one later step."""

    by: str
    targets: tuple[str, ...]
    with_acceptance: bool


@dataclass(frozen=True, slots=True)
class Supersession:
    """How all claims of a scope settle. `replaced` maps each replaced learning to its replacement.

    `void` are learnings that lost with their acceptance: they are not used. `conflicted` are all losers.
    """

    replaced: Mapping[str, str]
    conflicted: frozenset[str]
    void: frozenset[str]


def derive_claims(versions: Iterable[CheckedRecord]) -> list[Claim]:
    """The claims of intact versions, given in the order in which they were stored."""
    claims: dict[str, Claim] = {}
    for record in versions:
        if record.get("supersedes") and record.id not in claims:
            claims[record.id] = Claim(record.id, tuple(record["supersedes"]), "supersession" not in record.data)
    return list(claims.values())


def derive_supersession(claims: Iterable[Claim]) -> Supersession:
    """Settle replacements in the order they were made, each whole or not at all.

    A replacement takes effect only if none of what it names was already claimed and it was not itself replaced first.
    """
    replaced: dict[str, str] = {}
    conflicted: set[str] = set()
    void: set[str] = set()
    for claim in claims:
        if claim.by in replaced or any(target in replaced for target in claim.targets):
            conflicted.add(claim.by)
            if claim.with_acceptance:
                void.add(claim.by)
        else:
            replaced.update(dict.fromkeys(claim.targets, claim.by))
    return Supersession(replaced, frozenset(conflicted), frozenset(void))


def applies_at(record: CheckedRecord, at: str) -> bool:
    """Whether the learning's validity dates contain a time (half-open)."""
    start, end = record["lifecycle"]["validFrom"], record["lifecycle"]["validUntil"]
    return (start is None or start <= at) and (end is None or at < end)


def check_replacement(
    record: CheckedRecord,
    replaces: Sequence[str],
    states: Mapping[str, str],
    supersession: Supersession,
    *,
    usable: bool,
    at: str,
) -> None:
    """Raise unless an accepted learning may replace others now.

    1. It is one that recall uses at this moment (`usable`: its evidence permits instruction; and its dates apply).
    2. Each target is a decided learning of this scope other than itself, and nobody has claimed it.
    """
    if not usable or not applies_at(record, at) or record.id in supersession.replaced or record.id in supersession.void:
        raise EvidenceUnavailable(
            "A replacement must be a learning that recall uses now; otherwise recall would use neither.",
            record_id=record.id,
        )
    for target in replaces:
        if target == record.id or states.get(target) not in ("accepted", "retired"):
            raise InvalidTransition(
                f"{target} is no accepted or retired learning that could be replaced.", record_id=target
            )
        if target in supersession.replaced:
            raise InvalidTransition(f"{target} was already replaced by another learning.", record_id=target)

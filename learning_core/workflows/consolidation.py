"""Show a consolidator a frozen view, check what it returns, and plan what is stored as proposed.

The store rebuilds each evidence reference from storage and refuses a proposal that states another source, time, author
or count. A proposal that is already stored unchanged and undecided does not count against the cap.

Source: the learning guide, "Bring your own consolidator"; design.md, section 4, rules 8 to 14 and 17.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from learning_core.audit import Plan, receipt, seal_entry
from learning_core.errors import InvalidRecord, LearningError
from learning_core.evidence import Memory, Standing, Thread, cited_references, effective_labels, find_reference_fault
from learning_core.identifiers import Principal, memory_id
from learning_core.identity import reviewer_of
from learning_core.lifecycle import count_cited, derive_confidence, next_proposal
from learning_core.plugins import EvidenceView, ViewComment, ViewLabel, ViewMemory
from learning_core.policy import Policy
from learning_core.provider import Head
from learning_core.records import CheckedRecord, check_valid
from learning_core.timestamps import BEGINNING

PURPOSE = "instruction"


def find_missing(collections: Sequence[CheckedRecord], time_from: str, time_to: str) -> list[dict[str, str]]:
    """The part of a window that no complete, unfiltered collection covers; each covers all up to its capture."""
    covering = [c["capturedAt"] for c in collections if c["complete"] and not c["filters"]]
    covered_to = max(covering, default=BEGINNING)
    return [] if time_to <= covered_to else [{"from": max(time_from, covered_to), "to": time_to}]


def view_thread(
    thread: Thread, policy: Policy, time_from: str, time_to: str, withheld: frozenset[str] = frozenset()
) -> list[ViewComment]:
    """The current comments of a thread in the window that the purpose may use."""
    return [
        _view_comment(thread, version.event, effective_labels(version))
        for version in thread.versions.values()
        if version.current
        and time_from <= version.event["occurredAt"] < time_to
        and thread.find_refusal(version.event.id, PURPOSE, policy, withheld) is None
    ]


def _view_comment(thread: Thread, event: CheckedRecord, labels: Sequence[CheckedRecord]) -> ViewComment:
    return ViewComment(
        event.id,
        thread.episode.id,
        thread.pin["prototypeId"],
        reviewer_of(event["actor"]),
        event["occurredAt"],
        event["payload"]["body"],
        tuple(_view_label(label) for label in labels),
        _freeze(thread.pin),
        _freeze(event["actor"]),
    )


def _view_label(label: CheckedRecord) -> ViewLabel:
    payload = label["payload"]
    return ViewLabel(
        label.id,
        payload["category"],
        payload["theme"],
        payload["observation"],
        payload["summary"],
        label["actor"]["kind"],
    )


def view_memory(standing: Standing) -> ViewMemory:
    """A learning as a consolidator sees it: its text and what it cites only while its evidence permits the purpose."""
    record = standing.record
    step = record.get("retirement") or record.get("rejection") or record.get("approval")
    shown = standing.permitted
    return ViewMemory(
        record.id,
        record["state"],
        record["kind"],
        record["content"]["category"],
        record["content"]["theme"],
        standing.in_use,
        standing.superseded_by is not None,
        standing.conflicted,
        step["at"] if step is not None else None,
        record["content"]["text"] if shown else None,
        tuple(reference["eventIds"][0] for reference in cited_references(record)) if shown else (),
    )


def find_proposal_fault(
    proposal: Mapping[str, Any], threads: Mapping[str, Thread | None], view: EvidenceView
) -> tuple[str, str] | None:
    """Why a returned proposal is not stored: a reason code and a sentence, or None.

    1. The contract accepts it.
    2. Each reference is what storage says, and cites a comment that the view showed.
    3. Support, dissent and confidence are those of what it cites.
    """
    try:
        check_valid("memory-proposal", dict(proposal))
    except LearningError as error:
        return "invalid_proposal", error.message
    seen = {comment.event_id for comment in view.comments}
    for reference in (*proposal["evidence"], *proposal["counterevidence"]):
        fault = find_reference_fault(reference, threads.get(reference["episodeId"]))
        if fault is not None:
            return "forged_evidence", f"A reference is refused: {fault}."
        if reference["eventIds"][0] not in seen:
            return "evidence_unavailable", "A reference cites a comment that the view did not show."
    support, dissent = count_cited(proposal["evidence"]), count_cited(proposal["counterevidence"])
    if (support, dissent) != (proposal["support"], proposal["dissent"]):
        return "wrong_counts", "Support and dissent are not those of what the proposal cites."
    if proposal["confidence"] != derive_confidence(support, dissent):
        return "wrong_counts", "Confidence is not 100 * support // (support + dissent) over reviewers."
    return None


def plan_proposal(
    proposal: Mapping[str, Any],
    *,
    scope: str,
    known: Mapping[str, Memory],
    actor: Principal,
    expected: Mapping[str, Head],
    at: str,
) -> tuple[CheckedRecord, Plan | None]:
    """The proposal as a memory version, and its plan; no plan where it is stored unchanged and undecided.

    `known` are the learnings and proposals of its theme. A decided learning is never changed: the theme's next
    proposal is a new learning. Raises `InvalidRecord`, and `Damaged` for a damaged learning of the theme.
    """
    content = proposal["content"]
    same = [m for m in known.values() if _theme_of(m) == (content["category"], content["theme"])]
    decided = [memory for memory in same if memory.latest["state"] != "proposed"]
    name = memory_id(scope, proposal["kind"], content["category"], content["theme"], len(decided))
    previous = known[name].latest if name in known else None
    if previous is not None and previous["state"] != "proposed":
        raise InvalidRecord(f"Learning {name} is decided already.", kind="memory-record", pointer="/id")
    members = {key: value for key, value in proposal.items() if key != "schemaVersion"}
    record = next_proposal(
        previous, {**members, "id": name, "scope": scope}, at=max(at, previous["at"] if previous else at)
    )
    if previous is not None and previous["reviewDigest"] == record["reviewDigest"]:
        return previous, None
    entry = seal_entry(
        scope,
        "memory.propose",
        record.id,
        chunk=record["version"],
        at=at,
        actor=actor.data,
        records=[receipt("memories", record)],
    )
    return record, Plan([entry], memory=(record, previous.digest if previous else None), expected=expected)


def _theme_of(memory: Memory) -> tuple[str, str]:
    content = memory.latest["content"]
    return content["category"], content["theme"]


def plan_contradictions(
    standings: Iterable[Standing], view: EvidenceView, *, scope: str, actor: Principal, at: str
) -> list[CheckedRecord]:
    """An entry for each learning in use whose theme reviewers contradicted after it was accepted.

    Its chunk is the number of such comments, so that each further one makes a new entry and a repeat does not.
    """
    entries = []
    for standing in standings:
        record = standing.record
        if not standing.in_use:
            continue
        cited = {reference["eventIds"][0] for reference in cited_references(record)}
        theme = (record["content"]["category"], record["content"]["theme"])
        dissent = [
            comment
            for comment in view.comments
            if comment.reviewer is not None
            and comment.event_id not in cited
            and comment.written_at >= record["approval"]["at"]
            and any((x.category, x.theme, x.observation) == (*theme, "disagreement") for x in comment.labels)
        ]
        if dissent:
            details = {"events": [comment.event_id for comment in dissent][:1000]}
            entries.append(
                seal_entry(
                    scope,
                    "memory.contradicted",
                    record.id,
                    chunk=len(dissent),
                    at=at,
                    actor=actor.data,
                    details=details,
                )
            )
    return entries


def _freeze(value: Any) -> Any:
    if isinstance(value, Mapping):
        return MappingProxyType({key: _freeze(item) for key, item in value.items()})
    return value

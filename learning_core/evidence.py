"""What stored events and memory versions add up to, and what a learning's evidence may serve. Pure.

Whether the records are all there is the reader's business (`reader`); whether a purpose may use them is `policy`'s,
asked through `Thread.find_refusal` and `find_refusals`; whether a history is intact is `lifecycle`'s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from learning_core.errors import Damaged, InvalidHistory
from learning_core.lifecycle import Supersession, applies_at
from learning_core.policy import Policy
from learning_core.provider import is_redacted
from learning_core.records import CheckedRecord

# What events say -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Version:
    """One version of a comment, the labels on it, and what became of it."""

    event: CheckedRecord
    comment_id: str
    labels: list[CheckedRecord] = field(default_factory=list)
    superseded: bool = False
    retraction: str | None = None

    @property
    def redacted(self) -> bool:
        """Whether its text was removed."""
        return is_redacted(self.event.data)

    @property
    def current(self) -> bool:
        """Whether it is what the comment says now."""
        return not (self.superseded or self.retraction or self.redacted)


@dataclass(slots=True)
class Thread:
    """One episode and what its events add up to."""

    episode: CheckedRecord
    versions: dict[str, Version] = field(default_factory=dict)
    comments: dict[str, list[Version]] = field(default_factory=dict)
    statuses: list[CheckedRecord] = field(default_factory=list)
    events: dict[str, CheckedRecord] = field(default_factory=dict)

    @property
    def pin(self) -> Mapping[str, Any]:
        """The exact source that its reviewers saw."""
        return cast("Mapping[str, Any]", self.episode["pin"])

    def current_version(self, comment_id: str) -> Version | None:
        """What a comment says now, or None: unknown, deleted, or its text removed."""
        return next((version for version in reversed(self.comments.get(comment_id, [])) if version.current), None)

    def find_refusal(
        self, event_id: str, purpose: str, policy: Policy, withheld: frozenset[str] = frozenset()
    ) -> str | None:
        """Why a comment version may not serve a purpose now, or None.

        `redacted`, `deleted`, `identity_corrected`, `edited`, `pending` (its host knows of a removal or an edit that
        is not stored yet), `consent`, `identity`, `missing`.
        """
        version = self.versions.get(event_id)
        if version is None:
            return "missing"
        if version.redacted:
            return "redacted"
        if version.retraction is not None:
            return version.retraction
        if version.superseded:
            return "edited"
        if version.comment_id in withheld:
            return "pending"
        event = version.event
        return policy.decide_refusal(purpose, event["source"], event["occurredAt"], self.pin, event["actor"])


def resolve_thread(records: Sequence[CheckedRecord]) -> Thread:
    """What an episode's records, in stored order, add up to. Raises `InvalidHistory` for links that cannot be."""
    if not records or records[0].kind != "episode":
        raise InvalidHistory("A thread's events are stored without its episode.")
    thread = Thread(records[0])
    for event in records[1:]:
        thread.events[event.id] = event
        _RESOLVERS[event["type"]](thread, event)
    return thread


def _resolve_comment(thread: Thread, event: CheckedRecord) -> None:
    part = event.get("payload") or event["redaction"]
    version = Version(event, part["commentId"])
    parent = event.get("parentEventId")
    if parent is not None:
        earlier = thread.versions.get(parent)
        if earlier is None or earlier.comment_id != version.comment_id:
            raise InvalidHistory(
                f"Event {event.id} continues another comment or another thread; nothing was removed or used.",
                record_id=event.id,
            )
        earlier.superseded = True
    thread.versions[event.id] = version
    thread.comments.setdefault(version.comment_id, []).append(version)


def _resolve_label(thread: Thread, event: CheckedRecord) -> None:
    _target(thread, event).labels.append(event)


def _resolve_retraction(thread: Thread, event: CheckedRecord) -> None:
    target = _target(thread, event)
    # A redacted retraction still retracts; what it was for is then unknown, and the stricter reading is safe.
    reason = event["payload"]["reason"] if "payload" in event.data else "deleted"
    if reason == "identity_corrected":
        target.retraction = target.retraction or reason
        return
    for version in thread.comments[target.comment_id]:
        version.retraction = "deleted"
        if version is target:
            break


def _resolve_status(thread: Thread, event: CheckedRecord) -> None:
    thread.statuses.append(event)


def _target(thread: Thread, event: CheckedRecord) -> Version:
    target = thread.versions.get(event["parentEventId"])
    if target is None:
        raise InvalidHistory(f"Event {event.id} names a comment that its thread does not hold.", record_id=event.id)
    return target


_RESOLVERS: dict[str, Callable[[Thread, CheckedRecord], None]] = {
    "comment": _resolve_comment,
    "label": _resolve_label,
    "no_annotation": _resolve_label,
    "retraction": _resolve_retraction,
    "status_change": _resolve_status,
}


def effective_labels(version: Version) -> list[CheckedRecord]:
    """The labels that count on a comment version, at most one a labeler and theme, redacted ones left out.

    A labeler's newest labelling replaces its earlier ones, and the newest labelling by a person replaces everybody's.
    """
    newest: dict[str, list[CheckedRecord]] = {}
    for event in version.labels:
        own = newest.setdefault(event["actor"]["id"], [])
        if own and own[0]["occurredAt"] < event["occurredAt"]:
            own.clear()
        if not own or own[0]["occurredAt"] == event["occurredAt"]:
            own.append(event)
    people = [events for events in newest.values() if events[0]["actor"]["kind"] == "human"]
    chosen = [max(people, key=lambda events: events[0]["occurredAt"])] if people else list(newest.values())
    return [event for events in chosen for event in events if event["type"] == "label" and not is_redacted(event.data)]


# What memory versions say --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Memory:
    """One learning's whole history. A damaged version is None; a damaged learning is never used."""

    id: str
    versions: tuple[CheckedRecord | None, ...]
    raw: tuple[bytes, ...]
    fault: str | None

    @property
    def damaged(self) -> bool:
        """Whether a version fails its check or the history breaks a rule."""
        return self.fault is not None

    @property
    def latest(self) -> CheckedRecord:
        """The newest version. Raises `Damaged` for a damaged learning."""
        record = self.versions[-1]
        if self.fault is not None or record is None:
            raise Damaged(f"Learning {self.id} is damaged: {self.fault}.", record_id=self.id)
        return record


def cited_references(record: CheckedRecord) -> list[Mapping[str, Any]]:
    """Evidence and counterevidence: a learning depends on both, because its reviewer decided with both in view."""
    return [*record["evidence"], *record["counterevidence"]]


def cited_episodes(record: CheckedRecord) -> set[str]:
    """The episodes that a learning cites."""
    return {reference["episodeId"] for reference in cited_references(record)}


def find_reference_fault(reference: Mapping[str, Any], thread: Thread | None) -> str | None:
    """Why an evidence reference is not what storage says, or None. A proposer cannot move evidence elsewhere.

    1. Its first event is a comment version of the episode it names; the others are labels on that version.
    2. Its source pin, time and author are those that storage holds.
    """
    if thread is None:
        return "it names an episode that is not stored"
    version = thread.versions.get(reference["eventIds"][0])
    if version is None:
        return "its first event is no comment of the episode it names"
    labels = {label.id for label in version.labels}
    if any(event not in labels for event in reference["eventIds"][1:]):
        return "it names an event that is no label on its comment"
    stored = (thread.pin, version.event["occurredAt"], version.event["actor"])
    if stored != (reference["pin"], reference["writtenAt"], reference["author"]):
        return "it states another source, time or author than storage holds"
    return None


def find_refusals(
    record: CheckedRecord,
    threads: Mapping[str, Thread | None],
    purpose: str,
    policy: Policy,
    withheld: frozenset[str] = frozenset(),
) -> list[str | None]:
    """For each reference of `cited_references`, why it may not serve the purpose now, or None. `forged` included."""
    return [
        _find_refusal(reference, threads.get(reference["episodeId"]), purpose, policy, withheld)
        for reference in cited_references(record)
    ]


def _find_refusal(
    reference: Mapping[str, Any], thread: Thread | None, purpose: str, policy: Policy, withheld: frozenset[str]
) -> str | None:
    if thread is None or find_reference_fault(reference, thread) is not None:
        return "forged"
    return thread.find_refusal(reference["eventIds"][0], purpose, policy, withheld)


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a learning's latest version is used now, and if not, why.

    `refusals` stand beside `cited_references`; `applies` says whether its validity dates contain the time.
    """

    record: CheckedRecord
    refusals: tuple[str | None, ...]
    superseded_by: str | None
    conflicted: bool
    void: bool
    applies: bool

    @property
    def permitted(self) -> bool:
        """Whether all evidence and counterevidence may serve the purpose."""
        return not any(self.refusals)

    @property
    def in_use(self) -> bool:
        """Whether recall uses it."""
        accepted = self.record["state"] == "accepted"
        return accepted and self.permitted and self.applies and self.superseded_by is None and not self.void


def derive_standing(
    record: CheckedRecord,
    threads: Mapping[str, Thread | None],
    policy: Policy,
    supersession: Supersession,
    *,
    at: str,
    purpose: str = "instruction",
    withheld: frozenset[str] = frozenset(),
) -> Standing:
    """The standing of a learning for a purpose. `threads` must hold every episode that it cites."""
    return Standing(
        record,
        tuple(find_refusals(record, threads, purpose, policy, withheld)),
        supersession.replaced.get(record.id),
        record.id in supersession.conflicted,
        record.id in supersession.void,
        applies_at(record, at),
    )


# What damaged bytes state --------------------------------------------------------------------------------------------

_STATED_ID = re.compile(rb'"id":"(memory_[0-9a-f]{64})"')
_MEMORY_ID = re.compile(r"memory_[0-9a-f]{64}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_STATE = re.compile("proposed|accepted|rejected|retired")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z", re.ASCII)


class StatedVersion:
    """What the bytes of a damaged learning state, each strictly checked: shown to a person, never used."""

    def __init__(self, raw: bytes) -> None:
        try:
            data = orjson.loads(raw)
        except orjson.JSONDecodeError:
            data = {}
        members = data if isinstance(data, dict) else {}
        self.id = _strict(members.get("id"), _MEMORY_ID)
        self.digest = _strict(members.get("digest"), _DIGEST)
        listed = members.get("supersedes")
        self.supersedes = [t for t in listed if _strict(t, _MEMORY_ID)] if isinstance(listed, list) else []


def stated_members(raw: bytes) -> dict[str, str]:
    """The ID, state, kind, theme and digests that damaged bytes state, each strictly checked, and nothing else."""
    try:
        data = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return {}
    members = data if isinstance(data, dict) else {}
    content = members.get("content")
    stated = {**members, "theme": content.get("theme") if isinstance(content, dict) else None}
    forms = {
        "state": _STATE,
        "kind": re.compile("guidance"),
        "theme": re.compile("[a-z0-9]+(?:-[a-z0-9]+)*"),
        "contentDigest": _DIGEST,
        "reviewDigest": _DIGEST,
    }
    found = {name: _strict(stated.get(name), form) for name, form in forms.items()}
    return {name: value for name, value in found.items() if value and len(value) <= 80}


def stated_outline(raw: bytes) -> dict[str, Any]:
    """What unchecked bytes state that a list is counted and ordered by: state, time, and how many support it.

    Bytes that state no state stand as proposed, so that a person comes across them; without a time they stand last.
    """
    try:
        data = orjson.loads(raw)
    except orjson.JSONDecodeError:
        data = {}
    members = data if isinstance(data, dict) else {}
    support = members.get("support")
    counts = support if isinstance(support, dict) else {}
    return {
        "id": stated_id(raw),
        "state": _strict(members.get("state"), _STATE) or "proposed",
        "at": _strict(members.get("at"), _TIME),
        **{name: n if type(n := counts.get(name)) is int else 0 for name in ("reviewers", "comments")},
    }


def _strict(value: Any, form: re.Pattern[str]) -> str:
    return value if isinstance(value, str) and form.fullmatch(value) else ""


def stated_id(raw: bytes) -> str:
    """The memory ID that raw, perhaps damaged, bytes state; empty where they do not."""
    match = _STATED_ID.search(raw)
    return match[1].decode("ascii") if match else ""

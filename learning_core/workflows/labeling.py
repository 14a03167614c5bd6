"""Ask a labeler about each comment once, and record labels that somebody else wrote.

The labeler sees only comments that review may use now, in their threads, without authors. The store checks each label
against the contract and refuses the rest; a comment without a label gets a `no_annotation`, so that it is not asked
about again. An edited comment is a new version and is asked about again.

Source: the learning guide, "Label with Copilot".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from learning_core.audit import Plan, seal_receipts
from learning_core.canonical import derive_id, digest
from learning_core.errors import InvalidRecord, NotFound, NotPermitted, NotPlainJson
from learning_core.evidence import Thread, Version
from learning_core.identifiers import Principal, label_event_id
from learning_core.plugins import LabelAnswer, LabelComment, LabelRequest, LabelThread
from learning_core.policy import Policy
from learning_core.provider import Head
from learning_core.records import CheckedRecord, seal

GROUP_CHARACTERS = 16_000
MAX_LABELS = 20
"""How many labels of one labelling a comment keeps at most."""


@dataclass(slots=True)
class Group:
    """One labeler request: threads of about 16,000 characters together, and the versions it asks about."""

    threads: list[LabelThread] = field(default_factory=list)
    asked: dict[str, tuple[Version, str]] = field(default_factory=dict)
    characters: int = 0

    @property
    def episodes(self) -> set[str]:
        """The episodes of what it asks about."""
        return {episode for _, episode in self.asked.values()}

    def keep(self, limit: int | None) -> None:
        """Ask about at most so many of its comments; the others become context."""
        if limit is None or limit >= len(self.asked):
            return
        self.asked = dict(list(self.asked.items())[:limit])
        self.threads = [
            replace(thread, comments=tuple(replace(c, ask=c.event_id in self.asked) for c in thread.comments))
            for thread in self.threads
        ]

    def request(self, themes: Iterable[tuple[str, str]], model: str | None) -> LabelRequest:
        """The request as the labeler sees it."""
        return LabelRequest(tuple(self.threads), tuple(themes), model)


def find_unasked(
    thread: Thread, labeler: str, policy: Policy, *, since: str | None, withheld: frozenset[str]
) -> list[Version]:
    """The current comments of a thread that review may use and the labeler was not asked about."""
    return [
        version
        for versions in thread.comments.values()
        for version in versions
        if version.current
        and (since is None or version.event["occurredAt"] >= since)
        and not any(label["actor"]["id"] == labeler for label in version.labels)
        and thread.find_refusal(version.event.id, "review", policy, withheld) is None
    ]


def group_threads(
    threads: Iterable[Thread], labeler: str, policy: Policy, *, since: str | None, withheld: frozenset[str]
) -> Iterator[Group]:
    """Threads with something to ask, in groups of about 16,000 characters, one group at a time."""
    group = Group()
    for thread in threads:
        unasked = find_unasked(thread, labeler, policy, since=since, withheld=withheld)
        if not unasked:
            continue
        view, characters = _view_thread(thread, {version.event.id for version in unasked}, policy, withheld)
        if group.threads and group.characters + characters > GROUP_CHARACTERS:
            yield group
            group = Group()
        group.threads.append(view)
        group.characters += characters
        group.asked.update({version.event.id: (version, thread.episode.id) for version in unasked})
    if group.threads:
        yield group


def _view_thread(thread: Thread, asked: set[str], policy: Policy, withheld: frozenset[str]) -> tuple[LabelThread, int]:
    comments = [
        LabelComment(
            version.event.id,
            version.event["payload"]["body"],
            version.event["payload"]["replyTo"] is not None,
            version.event["payload"]["target"],
            version.event.id in asked,
        )
        for version in thread.versions.values()
        if version.current and thread.find_refusal(version.event.id, "review", policy, withheld) is None
    ]
    return LabelThread(thread.episode.id, tuple(comments)), sum(len(comment.body) for comment in comments)


def plan_answer(
    group: Group,
    answer: LabelAnswer,
    *,
    scope: str,
    labeler: Principal,
    expected: Mapping[str, Head],
    still_current: Iterable[str],
    at: str,
) -> tuple[Plan | None, int]:
    """What one answer stores, and how many comments got a label.

    A label that the contract refuses, or for a comment that was not asked about, is not stored; a comment left without
    a label gets a `no_annotation`. Comments that are no longer current (`still_current`) get nothing.
    """
    current = set(still_current)
    labels: dict[str, dict[str, CheckedRecord]] = {}
    refused: set[str] = set()
    for item in answer.labels:
        target = item.get("eventId") if _is_object(item) else None
        if not isinstance(target, str) or target not in group.asked:
            continue
        event = _try_label(item, group.asked[target], scope, labeler, answer.model, at)
        if event is None:
            refused.add(target)
        elif len(labels.setdefault(target, {})) < MAX_LABELS:
            labels[target].setdefault(f"{event['payload']['category']}/{event['payload']['theme']}", event)
    events: list[CheckedRecord] = []
    for target, (version, episode) in group.asked.items():
        if target in current:
            own = list(labels.get(target, {}).values())
            outcome = "refused" if target in refused else "nothing"
            events += own or [_seal_none(version, episode, scope, labeler, outcome, answer.model, at)]
    if not events:
        return None, 0
    return _plan_events(events, scope, labeler, expected, at), sum(1 for target in labels if target in current)


def named_themes(plan: Plan | None) -> set[tuple[str, str]]:
    """The (category, theme) keys of the labels that a plan stores."""
    events = plan.records["events"] if plan is not None else ()
    payloads = [event["payload"] for event in events if event["type"] == "label"]
    return {(payload["category"], payload["theme"]) for payload in payloads}


def count_done(group: Group, threads: Mapping[str, Thread | None], labeler: str) -> tuple[int, int]:
    """How many of the comments that a group asks about have a marker of the labeler, and how many of them a label."""
    done = labeled = 0
    for event, (_, episode) in group.asked.items():
        thread = threads[episode]
        version = thread.versions.get(event) if thread is not None else None
        own = [label["type"] for label in version.labels if label["actor"]["id"] == labeler] if version else []
        done += bool(own)
        labeled += "label" in own
    return done, labeled


def _is_object(item: object) -> bool:
    return isinstance(item, Mapping)


def _try_label(
    item: Mapping[str, Any], asked: tuple[Version, str], scope: str, labeler: Principal, model: str | None, at: str
) -> CheckedRecord | None:
    version, episode = asked
    try:
        return _seal_label({**item}, version, episode, scope, labeler, model, at)
    except (InvalidRecord, NotPlainJson, KeyError):
        return None


def _seal_label(
    item: Mapping[str, Any],
    version: Version,
    episode: str,
    scope: str,
    labeler: Principal,
    model: str | None,
    at: str,
) -> CheckedRecord:
    payload = {name: item[name] for name in ("category", "theme", "observation", "summary")}
    payload["targetEventId"] = version.event.id
    if item.get("explanation") is not None:
        payload["explanation"] = item["explanation"]
    if model is not None:
        payload["model"] = model
    return _seal_annotation("label", payload, version, episode, scope, labeler, at)


def _seal_none(
    version: Version, episode: str, scope: str, labeler: Principal, outcome: str, model: str | None, at: str
) -> CheckedRecord:
    payload = {"targetEventId": version.event.id, "outcome": outcome}
    if model is not None:
        payload["model"] = model
    return _seal_annotation("no_annotation", payload, version, episode, scope, labeler, at)


def _seal_annotation(
    kind: str, payload: dict[str, Any], version: Version, episode: str, scope: str, labeler: Principal, at: str
) -> CheckedRecord:
    members = {
        "id": label_event_id(version.event.id, labeler.id, at, digest(payload)),
        "scope": scope,
        "episodeId": episode,
        "source": version.event["source"],
        "type": kind,
        "occurredAt": at,
        "actor": labeler.data,
        "parentEventId": version.event.id,
        "payload": payload,
    }
    return seal("event", members)


def _plan_events(
    events: Sequence[CheckedRecord], scope: str, actor: Principal, expected: Mapping[str, Head], at: str
) -> Plan:
    subject = derive_id("labels", *sorted(event.id for event in events))
    records = {"events": list(events)}
    return Plan(seal_receipts(scope, "label", subject, records, at=at, actor=actor), records, expected=expected)


# Labels that somebody else wrote ----------------------------------------------------------------------------------


def plan_labels(
    items: Sequence[Mapping[str, Any]],
    *,
    scope: str,
    labeler: Principal,
    model: str | None,
    actor: Principal,
    threads: Mapping[str, Thread],
    policy: Policy,
    expected: Mapping[str, Head],
    at: str,
) -> tuple[Plan | None, int, int]:
    """What a labels file stores: the plan, how many comments it labels, how many of its labellings are new.

    `threads` maps each item's comment or event ID to its episode. Raises `NotFound` for a comment without a current
    version, `NotPermitted` where review may not use it; then nothing is stored.
    """
    grouped: dict[str, tuple[Version, str, list[Mapping[str, Any]]]] = {}
    for item in items:
        name = item.get("commentId") or item["eventId"]
        thread = threads.get(name)
        version = _find_version(thread, item) if thread is not None else None
        if thread is None or version is None:
            raise NotFound(f"There is no current comment {str(name)[:80]} to label; nothing was stored.")
        refusal = thread.find_refusal(version.event.id, "review", policy)
        if refusal is not None:
            raise NotPermitted(f"Comment {version.comment_id} may not be labelled ({refusal}); nothing was stored.")
        grouped.setdefault(version.event.id, (version, thread.episode.id, []))[2].append(item)
    events: list[CheckedRecord] = []
    for version, episode, own in grouped.values():
        sealed = [
            _seal_none(version, episode, scope, labeler, "nothing", model, at)
            if item.get("none")
            else _seal_label(item, version, episode, scope, labeler, model, at)
            for item in own
        ]
        if not _repeats(version, labeler.id, sealed):
            events += {event.id: event for event in sealed}.values()
    labeled = len(grouped)
    if not events:
        return None, labeled, 0
    return _plan_events(events, scope, actor, expected, at), labeled, len(events)


def _find_version(thread: Thread, item: Mapping[str, Any]) -> Version | None:
    if "commentId" in item:
        return thread.current_version(item["commentId"])
    version = thread.versions.get(item["eventId"])
    return version if version is not None and version.current else None


def _repeats(version: Version, labeler: str, sealed: Sequence[CheckedRecord]) -> bool:
    """Whether the labeler's newest labelling of the comment already says exactly this."""
    own = [label for label in version.labels if label["actor"]["id"] == labeler]
    newest = max((label["occurredAt"] for label in own), default=None)
    stored = {label["payloadDigest"] for label in own if label["occurredAt"] == newest}
    return bool(stored) and stored == {event["payloadDigest"] for event in sealed}

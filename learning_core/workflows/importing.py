"""Turn one snapshot of review comments into episodes and events.

An import adds what the store does not hold and rewrites nothing: an edit is a version that supersedes the one before
it, a deletion a retraction, a stable identity a correction and a replacement. Nothing is stored when any part of the
log is refused.

Source: the learning guide, "Rules" and "Reviewer identity"; design.md, section 4, "Hub comment log" and rules 16, 18.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from learning_core.audit import Plan, seal_entry, seal_receipts
from learning_core.canonical import proven_digest
from learning_core.comment_log import LoggedComment, LoggedThread, Snapshot
from learning_core.errors import InvalidLog, NotPermitted, SnapshotConflict, SnapshotTooOld, WrongRepository
from learning_core.evidence import Thread, Version
from learning_core.identifiers import (
    Principal,
    collection_id,
    comment_event_id,
    episode_id,
    retraction_event_id,
    scope_host,
    status_event_id,
)
from learning_core.identity import author_of, settle_author
from learning_core.policy import SOURCE, Policy, is_legacy
from learning_core.provider import Head
from learning_core.records import CheckedRecord, seal
from learning_core.timestamps import next_instant

THREADS_AT_ONCE = 500


@dataclass(slots=True)
class ImportOutcome:
    """What an import would store. `deleted` are the comment IDs that the snapshot shows as deleted."""

    collection: CheckedRecord
    plan: Plan
    episodes: int = 0
    events: int = 0
    corrected: list[str] = field(default_factory=list)
    deleted: tuple[str, ...] = ()


def check_repository(snapshot: Snapshot, scope: str, repository: int | None) -> None:
    """Raise `WrongRepository` unless the log is of the scope's repository.

    A scope `host/_id/<n>` compares the numeric ID (`repository`, or the scope's own); another compares owner and name
    without regard to ASCII case. A log names no host, so the host is not checked.
    """
    _, owner, name = scope.split("/")
    if owner == "_id" or repository is not None:
        wanted = int(name) if owner == "_id" else repository
        if snapshot.repository_id != wanted:
            raise WrongRepository(
                f"The log is of repository {snapshot.repository_id}, this store of {wanted}; nothing was stored."
            )
    elif (snapshot.owner.lower(), snapshot.name.lower()) != (owner, name):
        raise WrongRepository("The log is of another repository than this store; nothing was stored.")


def plan_import(
    snapshot: Snapshot,
    *,
    scope: str,
    policy: Policy,
    collections: Sequence[CheckedRecord],
    load_threads: Callable[[Sequence[str]], Mapping[str, Thread | None]],
    find_stored: Callable[[Sequence[str]], Sequence[tuple[str, Thread]]],
    expected: Mapping[str, Head],
    actor: Principal,
    nonce: str,
    at: str,
) -> ImportOutcome:
    """What importing a snapshot stores, in one write.

    `load_threads` gives the stored threads of some episode IDs; it is asked about a few hundred at a time, so that a
    large store is never in memory as a whole. `find_stored` gives those of some Hub comment IDs that are stored, with
    their threads. A snapshot that is known already stores nothing but an audit entry, named by `nonce`, about its
    collection.

    Raises `NotPermitted` without an active review grant, `SnapshotConflict`, `SnapshotTooOld`, `InvalidLog`.
    """
    grants = policy.active("review", SOURCE)
    if not grants:
        raise NotPermitted("No active grant permits review of hub-comments; record one with grants add first.")
    deleted = tuple(c.id for t in snapshot.threads for c in t.comments if c.deleted_at is not None)
    known = _find_known(snapshot, collections)
    if known is not None:
        entry = seal_entry(scope, "import", nonce, at=at, actor=actor.data, details={"collection": known.id})
        return ImportOutcome(known, Plan([entry]), deleted=deleted)
    builder = _Builder(scope, snapshot, grants)
    for start in range(0, len(snapshot.threads), THREADS_AT_ONCE):
        chunk = snapshot.threads[start : start + THREADS_AT_ONCE]
        # Every episode came with a collection: where there is none, nothing is stored yet.
        stored = load_threads([builder.episode_id(logged) for logged in chunk]) if collections else {}
        if collections:
            _check_unmoved(snapshot, find_stored(builder.find_new_comments(chunk, stored)))
        for logged in chunk:
            builder.add_thread(logged, stored.get(builder.episode_id(logged)))
    collection = _seal_collection(snapshot, scope, grants, actor, at)
    records: dict[str, list[CheckedRecord]] = {
        "episodes": builder.episodes,
        "events": builder.events,
        "collections": [collection],
    }
    audit = seal_receipts(scope, "import", collection.id, records, at=at, actor=actor)
    source = (snapshot.hub_origin, snapshot.repository_id)
    if snapshot.stable_identity and source not in policy.adopted:
        audit.append(_seal_adoption(scope, source, actor, at))
    return ImportOutcome(
        collection,
        Plan(audit, records, expected=expected),
        len(builder.episodes),
        len(builder.events),
        builder.corrected,
        deleted,
    )


def _find_known(snapshot: Snapshot, collections: Sequence[CheckedRecord]) -> CheckedRecord | None:
    for collection in collections:
        if collection["snapshotId"] == snapshot.id:
            if collection["logDigest"] != snapshot.digest:
                raise SnapshotConflict(
                    f"Snapshot {snapshot.id} was already imported with other contents; collect a new snapshot.",
                    snapshot_id=snapshot.id,
                )
            return collection
    source = (snapshot.hub_origin, snapshot.repository_id)
    times = [c["capturedAt"] for c in collections if (c["hubOrigin"], c["repositoryId"]) == source]
    if times and snapshot.captured_at < max(times):
        raise SnapshotTooOld(
            f"Snapshot {snapshot.id} is older than one already imported ({max(times)}); it could restore old text.",
            snapshot_id=snapshot.id,
        )
    return None


def _check_unmoved(snapshot: Snapshot, stored: Iterable[tuple[str, Thread]]) -> None:
    """Raise `InvalidLog` for a comment that is stored in another thread than the one in which the log lists it.

    Comment IDs are those of one Hub: another Hub may use the same.
    """
    for comment_id, thread in stored:
        if thread.pin["hubOrigin"] == snapshot.hub_origin:
            raise InvalidLog(
                f"Comment {comment_id} stands in another thread than the one stored; a comment never moves.",
                comment_id=comment_id,
            )


def _seal_collection(snapshot: Snapshot, scope: str, grants: Sequence[str], actor: Principal, at: str) -> CheckedRecord:
    return seal(
        "collection",
        {
            "id": collection_id(scope, snapshot.id),
            "scope": scope,
            "source": SOURCE,
            "hubOrigin": snapshot.hub_origin,
            "repositoryId": snapshot.repository_id,
            "snapshotId": snapshot.id,
            "capturedAt": snapshot.captured_at,
            "logDigest": snapshot.digest,
            "complete": snapshot.complete,
            "filters": dict(snapshot.filters),
            "gaps": [dict(gap) for gap in snapshot.gaps],
            "reviewerIdentity": "stable-user-id" if snapshot.stable_identity else None,
            "counts": {
                "comments": len(snapshot.threads),
                "replies": sum(len(thread.replies) for thread in snapshot.threads),
            },
            "grantIds": list(grants),
            "importedBy": actor.data,
            "importedAt": at,
        },
    )


def _seal_adoption(scope: str, source: tuple[str, int], actor: Principal, at: str) -> CheckedRecord:
    origin, repository_id = source
    details = {"hubOrigin": origin, "repositoryId": repository_id}
    return seal_entry(scope, "identity.adopt", f"{origin}/{repository_id}", at=at, actor=actor.data, details=details)


class _Builder:
    """Collects the records that a snapshot adds to what is stored."""

    def __init__(self, scope: str, snapshot: Snapshot, grants: Sequence[str]) -> None:
        self.scope = scope
        self.snapshot = snapshot
        self.grants = list(grants)
        self.host = scope_host(scope)
        self.episodes: list[CheckedRecord] = []
        self.events: list[CheckedRecord] = []
        self.corrected: list[str] = []

    def episode_id(self, logged: LoggedThread) -> str:
        return episode_id(self.scope, self.snapshot.hub_origin, logged.root.id)

    def find_new_comments(self, logs: Sequence[LoggedThread], threads: Mapping[str, Thread | None]) -> list[str]:
        """The comments of some threads of the snapshot that their stored threads do not hold."""
        new: list[str] = []
        for logged in logs:
            stored = threads.get(self.episode_id(logged))
            new += [c.id for c in logged.comments if stored is None or c.id not in stored.comments]
        return new

    def add_thread(self, logged: LoggedThread, stored: Thread | None) -> None:
        """Add what the snapshot says of a thread beyond what is stored. A thread with nothing to keep adds nothing."""
        episode = self.episode_id(logged)
        if stored is None:
            if all(comment.deleted_at is not None for comment in logged.comments):
                return
            self.episodes.append(self._seal_episode(logged, episode).compact())
        else:
            self._check_pin(logged, stored)
        for comment in logged.comments:
            versions = stored.comments.get(comment.id, []) if stored else []
            if versions:
                self._update_comment(comment, episode, versions)
            elif comment.deleted_at is None:
                self._append_version(comment, episode, self._author(comment.author), None)
        self._add_status(logged, episode, stored)

    def _seal_episode(self, logged: LoggedThread, episode: str) -> CheckedRecord:
        actors: dict[str, dict[str, Any]] = {}
        for comment in logged.comments:
            if comment.deleted_at is None:
                author = self._author(comment.author)
                actors.setdefault(author.get("id", ""), author)
        return seal(
            "episode",
            {
                "id": episode,
                "scope": self.scope,
                "source": SOURCE,
                "kind": "review-thread",
                "rootCommentId": logged.root.id,
                "pin": self._pin(logged),
                "startedAt": logged.root.created_at,
                "actors": [actor for key, actor in actors.items() if key],
                "grantIds": self.grants,
            },
        )

    def _pin(self, logged: LoggedThread) -> dict[str, Any]:
        return {
            "hubOrigin": self.snapshot.hub_origin,
            "repositoryId": self.snapshot.repository_id,
            "prototypeId": logged.prototype_id,
            "branch": logged.branch,
            "build": dict(logged.build),
        }

    def _check_pin(self, logged: LoggedThread, stored: Thread) -> None:
        pin, before = self._pin(logged), dict(stored.pin)
        if before["build"]["commitSha"] is None or pin["build"]["commitSha"] is None:
            # A commit that only one of the two names is no contradiction: prototype and number identify the Build.
            pin["build"] = {**pin["build"], "commitSha": before["build"]["commitSha"]}
        if pin != before or stored.episode["startedAt"] != logged.root.created_at:
            raise InvalidLog(
                f"Comment {logged.root.id} has another prototype, Build, branch or creation time than the one stored.",
                comment_id=logged.root.id,
            )

    def _author(self, person: Mapping[str, Any] | None) -> dict[str, Any]:
        return author_of(person, host=self.host, hub_origin=self.snapshot.hub_origin)

    def _update_comment(self, comment: LoggedComment, episode: str, versions: Sequence[Version]) -> None:
        newest = versions[-1]
        if any(version.retraction == "deleted" for version in versions):
            return
        if comment.deleted_at is not None:
            self._append_deletion(comment, episode, newest)
            return
        author, correction = settle_author(newest.event["actor"], self._author(comment.author), comment.id)
        self._check_created(comment, newest)
        if correction:
            self._correct_identity(comment, episode, versions, author)
            return
        edited_at = self._find_edit(comment, newest)
        if edited_at is not None:
            self._append_version(comment, episode, author, newest.event.id, edited_at=edited_at)

    def _find_edit(self, comment: LoggedComment, newest: Version) -> str | None:
        """When the comment was edited since its newest stored version, or None where it says the same."""
        stored_at = str(newest.event["occurredAt"])
        if comment.edited_at is not None and comment.edited_at > stored_at:
            return comment.edited_at
        stored_edit = stored_at if stored_at > comment.created_at else None
        if proven_digest(_payload(comment, stored_edit)) == newest.event["payloadDigest"]:
            return None
        # The body changed, and no edit time says when: at the capture, and in any case after the version before it.
        return max(self.snapshot.captured_at, next_instant(stored_at))

    def _check_created(self, comment: LoggedComment, newest: Version) -> None:
        payload = newest.event.get("payload")
        if payload is not None and payload["createdAt"] != comment.created_at:
            raise InvalidLog(
                f"Comment {comment.id} has another creation time than the one stored.", comment_id=comment.id
            )

    def _append_version(
        self,
        comment: LoggedComment,
        episode: str,
        author: Mapping[str, Any],
        parent: str | None,
        *,
        edited_at: str | None = None,
        occurred_at: str | None = None,
    ) -> None:
        edited_at = edited_at or comment.edited_at
        time = occurred_at or edited_at or comment.created_at
        payload = _payload(comment, edited_at)
        event = comment_event_id(
            self.scope, self.snapshot.hub_origin, comment.id, time, author.get("id"), proven_digest(payload)
        )
        self._append("comment", event, episode, time, author, payload, parent)

    def _append_deletion(self, comment: LoggedComment, episode: str, newest: Version) -> None:
        actor = self._author(comment.deleted_by)
        self._append_retraction(newest.event.id, "deleted", episode, comment.deleted_at or "", actor)

    def _correct_identity(
        self, comment: LoggedComment, episode: str, versions: Sequence[Version], author: Mapping[str, Any]
    ) -> None:
        """Retract each version under the legacy identity; replace the newest unless its text was removed."""
        for version in versions:
            legacy = is_legacy(version.event["actor"]) or version.event["actor"]["kind"] == "unknown"
            if version.retraction is None and legacy:
                self._append_retraction(
                    version.event.id, "identity_corrected", episode, self.snapshot.captured_at, author
                )
                self.corrected.append(version.event.id)
        newest = versions[-1]
        if not newest.redacted:
            edited_at = self._find_edit(comment, newest)
            # A replacement keeps the time of the feedback, so that it never counts as new corroboration.
            time = edited_at or newest.event["occurredAt"]
            self._append_version(comment, episode, author, newest.event.id, edited_at=edited_at, occurred_at=time)

    def _append_retraction(self, target: str, reason: str, episode: str, time: str, actor: Mapping[str, Any]) -> None:
        payload = {"targetEventId": target, "reason": reason}
        self._append("retraction", retraction_event_id(target, reason), episode, time, actor, payload, target)

    def _add_status(self, logged: LoggedThread, episode: str, stored: Thread | None) -> None:
        before = stored.statuses[-1] if stored and stored.statuses else None
        status = "open" if before is None else before["payload"]["status"]
        if logged.status == "open":
            if status == "open":
                return
            time, actor = self.snapshot.captured_at, self._author(None)
        else:
            time = logged.resolved_at or (
                before["occurredAt"] if before is not None and status == "resolved" else self.snapshot.captured_at
            )
            if before is not None and status == "resolved" and before["occurredAt"] >= time:
                return
            actor = self._author(logged.resolved_by)
        event = status_event_id(episode, logged.status, time, actor.get("id"))
        self._append("status_change", event, episode, time, actor, {"status": logged.status}, None)

    def _append(
        self,
        kind: str,
        event_id: str,
        episode: str,
        time: str,
        actor: Mapping[str, Any],
        payload: Mapping[str, Any],
        parent: str | None,
    ) -> None:
        members: dict[str, Any] = {
            "id": event_id,
            "scope": self.scope,
            "episodeId": episode,
            "source": SOURCE,
            "type": kind,
            "occurredAt": time,
            "actor": dict(actor),
            "payload": dict(payload),
        }
        if parent is not None:
            members["parentEventId"] = parent
        self.events.append(seal("event", members).compact())


def _payload(comment: LoggedComment, edited_at: str | None) -> dict[str, Any]:
    return {
        "commentId": comment.id,
        "replyTo": comment.reply_to,
        "body": comment.body,
        "target": None if comment.target is None else dict(comment.target),
        "createdAt": comment.created_at,
        "editedAt": edited_at,
    }

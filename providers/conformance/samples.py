"""Valid records to store: small, each told apart by a number, the same in every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from learning_core.audit import seal_entry
from learning_core.canonical import canonical_bytes, derive_id
from learning_core.provider import Record, is_redacted
from learning_core.records import CheckedRecord, redacted_copy, seal

PERSON = {"kind": "human", "id": "github:mona", "assurance": "asserted"}
AUTHOR = {"kind": "human", "id": "github-user:github.com/9001", "login": "mona"}
ORIGIN = "https://hub.example.com"
PIN = {
    "hubOrigin": ORIGIN,
    "repositoryId": 4242,
    "prototypeId": "p1",
    "branch": "main",
    "build": {"number": 7, "commitSha": None},
}


def moment(n: int) -> str:
    """The n-th second of a day, as UTC text; n is below 3,600."""
    return f"2026-11-01T09:{n // 60:02}:{n % 60:02}.000000Z"


@dataclass(frozen=True, slots=True)
class LooseRecord:
    """A record that nothing checked, for what `seal` would refuse to make."""

    data: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.data["id"])

    @property
    def digest(self) -> str:
        return str(self.data["digest"])

    @property
    def canonical(self) -> bytes:
        return canonical_bytes(dict(self.data))


@dataclass(frozen=True, slots=True)
class Samples:
    """Sample records of one scope."""

    scope: str = "github.com/acme/checkout"

    def episode(self, n: int) -> CheckedRecord:
        members = {
            "kind": "review-thread",
            "source": "hub-comments",
            "rootCommentId": str(n),
            "pin": PIN,
            "startedAt": moment(n),
            "actors": [AUTHOR],
            "grantIds": [derive_id("grant", self.scope, 0)],
        }
        return self._seal("episode", "episode", n, members)

    def comment(self, episode: Record, n: int, *, comment_id: str | None = None, body: str = "") -> CheckedRecord:
        """A version of a comment. Its time is the n-th second, its Hub comment ID the number unless one is given."""
        payload = {
            "commentId": comment_id or str(n),
            "replyTo": None,
            "body": body or f"Comment {n}: the contrast is too low.",
            "target": {"kind": "element", "selector": "#pay"},
            "createdAt": moment(n),
            "editedAt": None,
        }
        return self._event(episode, "comment", n, actor=AUTHOR, payload=payload)

    def label(self, target: Record, n: int, *, theme: str = "color-contrast") -> CheckedRecord:
        payload = {
            "targetEventId": target.id,
            "category": "accessibility",
            "theme": theme,
            "observation": "problem",
            "summary": "Keep text readable.",
        }
        return self._event(target, "label", n, actor=PERSON, payload=payload, parentEventId=target.id)

    def retraction(self, target: Record, n: int) -> CheckedRecord:
        payload = {"targetEventId": target.id, "reason": "deleted"}
        return self._event(target, "retraction", n, actor=AUTHOR, payload=payload, parentEventId=target.id)

    def status_change(self, episode: Record, n: int) -> CheckedRecord:
        return self._event(episode, "status_change", n, actor=AUTHOR, payload={"status": "resolved"})

    def grant(self, n: int, *, reason: str = "The team agreed.") -> CheckedRecord:
        members = {
            "purposes": ["review"],
            "sources": ["hub-comments"],
            "range": {"from": None, "to": None},
            "reason": reason,
            "grantedBy": PERSON,
            "grantedAt": moment(n),
        }
        return self._seal("consent-grant", "grant", n, members)

    def withdrawal(self, grant: Record, n: int) -> CheckedRecord:
        members = {
            "grantId": grant.id,
            "purposes": ["review"],
            "reason": "The team changed its mind.",
            "withdrawnBy": PERSON,
            "withdrawnAt": moment(n),
        }
        return self._seal("grant-withdrawal", "withdrawal", n, members)

    def collection(self, n: int) -> CheckedRecord:
        members = {
            "source": "hub-comments",
            "hubOrigin": ORIGIN,
            "repositoryId": 4242,
            "snapshotId": f"snapshot-{n}",
            "capturedAt": moment(n),
            "logDigest": "sha256:" + "0" * 64,
            "complete": True,
            "filters": {},
            "gaps": [],
            "reviewerIdentity": "stable-user-id",
            "counts": {"comments": 1, "replies": 0},
            "grantIds": [derive_id("grant", self.scope, 0)],
            "importedBy": PERSON,
            "importedAt": moment(n),
        }
        return self._seal("collection", "collection", n, members)

    def export(self, n: int) -> CheckedRecord:
        members = {
            "purpose": "review",
            "learningsOnly": True,
            "exportedBy": PERSON,
            "exportedAt": moment(n),
            "grantIds": [],
            "records": [],
            "withheld": {"episodes": 0, "events": 0, "learnings": 0},
        }
        return self._seal("export-manifest", "export", n, members)

    def memory(
        self, n: int, *, after: CheckedRecord | None = None, state: str = "proposed", theme: str = "color-contrast"
    ) -> CheckedRecord:
        """A version of the n-th learning: the first, or the one after the version given."""
        version = 1 if after is None else after["version"] + 1
        reference = {
            "schemaVersion": "replica.evidence-ref/v1",
            "episodeId": derive_id("episode", self.scope, 1),
            "eventIds": [derive_id("event", self.scope, 1)],
            "pin": PIN,
            "writtenAt": moment(1),
            "author": AUTHOR,
        }
        counts = {"comments": 1, "threads": 1, "prototypes": 1, "reviewers": 1}
        members: dict[str, Any] = {
            "version": version,
            "previousDigest": None if after is None else after.digest,
            "state": state,
            "at": moment(version),
            "kind": "guidance",
            "content": {"category": "accessibility", "theme": theme, "text": "Keep text readable."},
            "targets": [],
            "lifecycle": {"replaces": [], "validFrom": None, "validUntil": None},
            "evidence": [reference],
            "counterevidence": [],
            "support": counts,
            "dissent": dict.fromkeys(counts, 0),
            "confidence": 100,
            "rationale": "It recurs.",
            "proposer": {"kind": "agent", "id": "agent:recurrence", "version": "1"},
        }
        decision = {"by": PERSON, "at": moment(version), "reviewDigest": "sha256:" + "0" * 64}
        if state in {"accepted", "retired"}:
            more = {"contentDigest": "sha256:" + "0" * 64, "edited": False, "reason": None}
            members["approval"] = decision | more
        if state == "rejected":
            members["rejection"] = decision | {"reason": "It is wrong."}
        if state == "retired":
            members["retirement"] = {"by": PERSON, "at": moment(version), "reason": "It no longer applies."}
        return self._seal("memory-record", "memory", n, members)

    def audit(
        self, operation: str, n: int, *, records: Sequence[tuple[str, Record]] = (), at: int | None = None
    ) -> CheckedRecord:
        """The receipt of the n-th operation. Another time makes it another entry with the same ID."""
        named = [{"stream": stream, "id": record.id, "digest": record.digest} for stream, record in records]
        return seal_entry(
            self.scope, operation, str(n), at=moment(n if at is None else at), actor=PERSON, records=named
        )

    def redacted(self, event: CheckedRecord, *, reason: str = "Its author asked.") -> CheckedRecord:
        """The event without its payload, and the note that says why."""
        assert not is_redacted(event.data)
        return redacted_copy(event, {"by": PERSON, "at": moment(3599), "reason": reason})

    def _event(self, place: Record, kind: str, n: int, **members: Any) -> CheckedRecord:
        episode_id = place.data.get("episodeId", place.id)
        members |= {"episodeId": episode_id, "source": "hub-comments", "type": kind, "occurredAt": moment(n)}
        return self._seal("event", "event", n, members)

    def _seal(self, kind: str, prefix: str, n: int, members: Mapping[str, Any]) -> CheckedRecord:
        return seal(kind, {**members, "id": derive_id(prefix, self.scope, n), "scope": self.scope})

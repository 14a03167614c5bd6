"""The seven methods of a memory provider, and the rules that providers and readers share.

A provider stores canonical records and returns them. It enforces no consent, purpose or lifecycle rule: the learning
store does, before it writes and on everything it reads. A provider must

* store each call whole or not at all, the audit entries included, and keep what it acknowledged;
* number the rows of all streams together, per scope, 1, 2, 3 … without gaps, and return rows in that order;
* refuse a record whose ID it holds with another digest (`Conflict`), skip one it holds with the same digest, and
  append a memory version only when the latest version has `previous_digest` (`Conflict` otherwise);
* never mix scopes.

With the optional capability `integrity.head` it also keeps a head for each group (`record_groups`, `advance`),
advanced inside the write's own transaction, and compares `expected` heads after it holds the write lock (`HeadMoved`).

Source: the learning guide, "Bring your own provider"; the vectors in `contracts/v1/vectors`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

Stream: TypeAlias = Literal["episodes", "events", "grants", "withdrawals", "collections", "exports", "audit"]
"""The append-only streams. Memory versions are the eighth stream, `memories`, and have methods of their own."""

MEMORIES = "memories"

STREAMS: tuple[Stream, ...] = ("episodes", "events", "grants", "withdrawals", "collections", "exports", "audit")

REQUIRED_CAPABILITIES = (
    "manifest",
    "health",
    "records.append",
    "records.batch",
    "records.read",
    "memory.append",
    "memory.read",
)
REDACTION = "observation.redact"
HEADS = "integrity.head"
REPAIR = "integrity.repair"
INDEX = "integrity.index"

POLICY_OPERATIONS = ("grant.add", "grant.withdraw", "identity.adopt", "damage.mark", "damage.clear", "reanchor")
"""Audit operations whose entries also stand in the group `policy`: an operation that reads policy reads them all."""

RECALL_OPERATIONS = ("recall", "recall.set")
"""Audit operations that do not advance `change`: they record a use and change nothing that is read."""


class Record(Protocol):
    """What a provider is given: one sealed record. `data` is its JSON object, `canonical` its RFC 8785 bytes."""

    @property
    def id(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def canonical(self) -> bytes: ...
    @property
    def data(self) -> Mapping[str, Any]: ...


class Row(NamedTuple):
    """One stored row: its position in the scope (1, 2, 3 …) and the exact canonical bytes that were stored."""

    position: int
    canonical: bytes


@dataclass(frozen=True, slots=True)
class Head:
    """What a group of rows must add up to. `chain` and `redacted_xor` are 64 lower-case hex digits."""

    count: int = 0
    chain: str = "0" * 64
    redacted: int = 0
    redacted_xor: str = "0" * 64


EMPTY_HEAD = Head()


@dataclass(frozen=True, slots=True)
class Query:
    """A filter over one stream. Every member that is set must match; an empty tuple matches nothing.

    `groups` names primary groups (`e:<episode>`), `types` event types, `parents` parentEventId values, `comment_ids`
    Hub comment IDs (of a comment version's payload, or of its redaction note), `operations` audit operations.
    `time_from` and `time_to` bound the record's own time, half-open. `after` and `limit` page by position.
    """

    ids: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    parents: tuple[str, ...] | None = None
    comment_ids: tuple[str, ...] | None = None
    operations: tuple[str, ...] | None = None
    time_from: str | None = None
    time_to: str | None = None
    after: int | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """A filter over memory versions. `latest` keeps only each memory's newest version (before the other filters).

    `states` and `themes` filter what remains; an empty tuple matches nothing. Order is by position.
    """

    ids: tuple[str, ...] | None = None
    latest: bool = False
    states: tuple[str, ...] | None = None
    themes: tuple[str, ...] | None = None
    after: int | None = None
    limit: int | None = None


class MemoryProvider(Protocol):
    """Storage behind a learning store. Errors: `Conflict`, `HeadMoved`, `StorageFailed`, `StorageOutcomeUnknown`."""

    def manifest(self) -> Mapping[str, Any]:
        """A `replica.provider-manifest/v1` object, without digest: name, version, capabilities, storage, hosts."""

    def health(self) -> Mapping[str, Any]:
        """`{"ok": bool, "detail": text}`; never raises for a store that merely does not exist yet."""

    def append_records(
        self,
        scope: str,
        stream: Stream,
        records: Sequence[Record],
        audit: Sequence[Record],
        *,
        expected: Mapping[str, Head] = {},
    ) -> None:
        """Store records of one stream and the audit entries that record them, in one atomic write."""

    def append_batch(
        self,
        scope: str,
        records: Mapping[Stream, Sequence[Record]],
        audit: Sequence[Record],
        *,
        expected: Mapping[str, Head] = {},
    ) -> None:
        """The same over several streams; rows are numbered in the order of `records`, the audit entries last."""

    def read_records(self, scope: str, stream: Stream, query: Query) -> Iterable[Row]:
        """The stream's rows that match, by position. A store that does not exist yet reads as empty."""

    def append_memory_version(
        self,
        scope: str,
        record: Record,
        previous_digest: str | None,
        audit: Sequence[Record],
        *,
        expected: Mapping[str, Head] = {},
    ) -> None:
        """Append a version if the latest one has `previous_digest` (`None`: the memory must not exist yet)."""

    def read_memory_versions(self, scope: str, query: MemoryQuery) -> Iterable[Row]:
        """The memory versions that match, by position."""


class RedactingProvider(MemoryProvider, Protocol):
    """Capability `observation.redact`."""

    def redact_record(
        self, scope: str, record: Record, audit: Sequence[Record], *, expected: Mapping[str, Head] = {}
    ) -> None:
        """Replace a stored event, at its position, with the copy that `check_redacted_copy` allows.

        A copy that is already stored changes nothing, but missing audit entries are added. Refuses (`Conflict`)
        whatever is not the stored event without its payload. Afterwards no file of the store holds the text.
        """


class HeadedProvider(MemoryProvider, Protocol):
    """Capability `integrity.head`."""

    def read_heads(self, scope: str, groups: Sequence[str]) -> Mapping[str, Head]:
        """The named groups' heads; a group without rows has `EMPTY_HEAD`. `change` and `audit` are groups too."""


class RepairingProvider(MemoryProvider, Protocol):
    """Capability `integrity.repair`."""

    def restore_record(
        self,
        scope: str,
        stream: Stream | Literal["memories"],
        record: Record,
        audit: Sequence[Record],
        *,
        expected: Mapping[str, Head] = {},
    ) -> None:
        """Put an intact record in the place of the damaged row with the same ID (and, for a memory, version)."""


class IndexedProvider(MemoryProvider, Protocol):
    """Capability `integrity.index`."""

    def check_index(self, scope: str) -> Iterable[tuple[str, str]]:
        """The stream and record ID of each stored row that a query would not find where its bytes belong."""


# Rules that providers and readers share -------------------------------------------------------------------------------


def record_groups(stream: str, data: Mapping[str, Any]) -> tuple[str, ...]:
    """The groups that a record's row advances, its primary group first."""
    if stream == "episodes":
        return (f"e:{data['id']}",)
    if stream == "events":
        return (f"e:{data['episodeId']}",)
    if stream == MEMORIES:
        own = f"m:{data['id']}"
        return (own,) if data["state"] == "proposed" else (own, "decided")
    if stream in ("grants", "withdrawals"):
        return ("policy",)
    if stream == "audit":
        groups = ("audit",) if data["operation"] in RECALL_OPERATIONS else ("audit", "change")
        return (*groups, "policy") if data["operation"] in POLICY_OPERATIONS else groups
    return (stream,)


def advance(head: Head, digest: str, *, redacted: bool = False) -> Head:
    """The head after one more row. `digest` is the record's, `sha256:` and 64 hex digits, hashed as its ASCII."""
    chain = hashlib.sha256((head.chain + digest).encode("ascii")).hexdigest()
    after = Head(head.count + 1, chain, head.redacted, head.redacted_xor)
    return advance_redacted(after, digest) if redacted else after


def advance_redacted(head: Head, digest: str) -> Head:
    """The head after one of its events lost its payload: the chain stays, the redactions are counted and XORed."""
    mark = int(hashlib.sha256(digest.encode("ascii")).hexdigest(), 16)
    return Head(head.count, head.chain, head.redacted + 1, f"{int(head.redacted_xor, 16) ^ mark:064x}")


def is_redacted(data: Mapping[str, Any]) -> bool:
    """Whether an event has lost its payload (and says why in `redaction`)."""
    return "redaction" in data


def record_time(stream: str, data: Mapping[str, Any]) -> str:
    """The record's own time, by which `time_from` and `time_to` filter."""
    return str(data[_TIME_MEMBER[stream]])


_TIME_MEMBER = {
    "episodes": "startedAt",
    "events": "occurredAt",
    "grants": "grantedAt",
    "withdrawals": "withdrawnAt",
    "collections": "capturedAt",
    "exports": "exportedAt",
    "audit": "at",
    MEMORIES: "at",
}


def hub_comment_id(data: Mapping[str, Any]) -> str | None:
    """The Hub comment ID that a comment version keeps in its payload, or in its redaction note once that is gone."""
    if data["type"] != "comment":
        return None
    part = data.get("payload") or data["redaction"]
    value = part["commentId"]
    return value if isinstance(value, str) else None


def check_redacted_copy(stored: Mapping[str, Any], copy: Mapping[str, Any]) -> str | None:
    """Why `copy` may not replace `stored`, or None when it may: the same event, its payload gone, a note instead.

    1. Everything but `payload` and `redaction` is equal.
    2. The stored event still has its payload.
    3. The copy has a note; on a comment version it names the removed payload's Hub comment ID, elsewhere none.
    """
    kept = {key: value for key, value in stored.items() if key not in ("payload", "redaction")}
    if {key: value for key, value in copy.items() if key not in ("payload", "redaction")} != kept:
        return "the copy changes more than the payload"
    if "payload" in copy or "redaction" not in copy:
        return "the copy must have a redaction note and no payload"
    if "payload" not in stored:
        return "the stored event has no payload to remove"
    expected = stored["payload"].get("commentId") if stored["type"] == "comment" else None
    if copy["redaction"].get("commentId") != expected:
        return "the redaction note names another comment"
    return None

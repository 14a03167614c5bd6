"""`seal()` and `check()`: the only makers of a `CheckedRecord`.

`seal` turns members into a record: it computes the digests, validates, and keeps the canonical bytes. `check` turns
stored bytes back into a record only when everything about them still holds. What a `CheckedRecord` carries is therefore
valid, in its scope, and digests to what it says; whether it may be used is not said (see `policy` and `evidence`).

1. The bytes are the canonical form of what they say.
2. The schema of the kind accepts it.
3. The digest is that of the record (without `digest`; for an event also without `payload` and `redaction`).
4. An event's payload, while it has one, digests to `payloadDigest`, and its target is its `parentEventId`.
5. A learning's contentDigest and reviewDigest are those of what they cover.
6. The scope is the caller's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from learning_core import schemas
from learning_core.canonical import check_plain, proven_bytes, proven_digest
from learning_core.errors import Damaged, InvalidRecord, LearningError

STREAM_KINDS: Final = {
    "episodes": "episode",
    "events": "event",
    "grants": "consent-grant",
    "withdrawals": "grant-withdrawal",
    "collections": "collection",
    "exports": "export-manifest",
    "audit": "audit-entry",
    "memories": "memory-record",
}
"""The kind of record that each stream holds."""

CONTENT_MEMBERS: Final = ("scope", "kind", "content", "targets", "lifecycle", "evidence", "counterevidence")
REVIEW_MEMBERS: Final = (*CONTENT_MEMBERS, "support", "dissent", "confidence", "rationale", "proposer")
_TARGETED: Final = ("label", "no_annotation", "retraction")


_MAY_HOLD_FLOAT: Final = re.compile(rb"\.0[,}\]]")
"""Finds every float that a bounded integer's place may hold (1.0 satisfies `integer`), and some texts."""


class CheckedRecord:
    """One valid record. `data` is its JSON object, to be read only; `canonical` its exact stored bytes."""

    __slots__ = ("_data", "canonical", "digest", "id", "kind")

    kind: str
    id: str
    digest: str
    canonical: bytes
    _data: Mapping[str, Any] | None

    def __init__(self, *, _maker: object, kind: str, data: Mapping[str, Any], canonical: bytes) -> None:
        if _maker is not _MAKER:
            raise TypeError("Only seal() and check() make a CheckedRecord.")
        self.kind = kind
        self.id = data["id"]
        self.digest = data["digest"]
        self.canonical = canonical
        self._data = data

    @property
    def data(self) -> Mapping[str, Any]:
        """The JSON object; that of a compact record is read from its bytes each time."""
        if self._data is None:
            compact: Mapping[str, Any] = orjson.loads(self.canonical)
            return compact
        return self._data

    def compact(self) -> CheckedRecord:
        """The same record, kept as its bytes alone: a third of the memory, for 100,000 that wait to be written."""
        self._data = None
        return self

    def __getitem__(self, member: str) -> Any:
        return self.data[member]

    def get(self, member: str) -> Any:
        """The member's value, or None where it is absent."""
        return self.data.get(member)

    def __repr__(self) -> str:
        return f"CheckedRecord({self.kind}, {self.id})"


_MAKER = object()


def seal(kind: str, members: Mapping[str, Any]) -> CheckedRecord:
    """Make a record of plain JSON members; its digests are computed, whatever the members say of them.

    Raises `InvalidRecord` when the contract refuses it, `NotPlainJson` when a value is not plain JSON.
    """
    data: dict[str, Any] = {**members, "schemaVersion": f"replica.{kind}/v1"}
    if check_plain(data):
        check_valid(kind, data)  # No contract has a member name that sorts differently: this raises.
    if kind == "event" and "payload" in data:
        data["payloadDigest"] = proven_digest(data["payload"])
    if kind == "memory-record":
        data["contentDigest"] = content_digest(data)
        data["reviewDigest"] = review_digest(data)
    data["digest"] = record_digest(kind, data)
    check_valid(kind, data)
    reason = _find_contradiction(kind, data)
    if reason is not None:
        raise InvalidRecord(f"The {kind} is refused: {reason}.", kind=kind, pointer="")
    return CheckedRecord(_maker=_MAKER, kind=kind, data=data, canonical=proven_bytes(data))


def check(kind: str, raw: bytes, scope: str) -> CheckedRecord:
    """Make a record of stored bytes. Raises `Damaged`, naming the record's ID where that can still be told."""
    try:
        data = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise Damaged(f"A stored {kind} is not JSON.", kind=kind, record_id=None) from None
    name = data.get("id") if isinstance(data, dict) else None
    record_id = name if isinstance(name, str) and name.isascii() and name.isprintable() and len(name) < 100 else None
    reason = _find_damage(kind, data, raw, scope)
    if reason is not None:
        raise Damaged(
            f"The stored {kind} {record_id or '(no ID)'} is damaged: {reason}.", kind=kind, record_id=record_id
        )
    return CheckedRecord(_maker=_MAKER, kind=kind, data=data, canonical=raw)


def check_valid(kind: str, value: Any) -> None:
    """Raise `InvalidRecord`, with the pointer and the reason, unless the contract of `kind` accepts the value."""
    if not schemas.is_valid(kind, value):
        pointer, reason = schemas.explain(kind, value)
        place = f" at {pointer}" if pointer else ""
        raise InvalidRecord(f"The {kind} is refused{place}: {reason}.", kind=kind, pointer=pointer)


def record_digest(kind: str, data: Mapping[str, Any]) -> str:
    """The digest of a record: over all of it but `digest`, and for an event also not `payload` and `redaction`."""
    omitted = ("digest", "payload", "redaction") if kind == "event" else ("digest",)
    return proven_digest({key: value for key, value in data.items() if key not in omitted})


def content_digest(data: Mapping[str, Any]) -> str:
    """What identifies a learning itself (guide, Rules)."""
    return proven_digest({member: data.get(member) for member in CONTENT_MEMBERS})


def review_digest(data: Mapping[str, Any]) -> str:
    """What covers everything that a reviewer is shown (guide, Rules)."""
    return proven_digest({member: data.get(member) for member in REVIEW_MEMBERS})


def redacted_copy(event: CheckedRecord, note: Mapping[str, Any]) -> CheckedRecord:
    """The copy of an event that has the same ID and digest, no payload, and a note that says who removed it and why.

    On a comment version the note keeps the Hub comment ID, so that its other versions can still be found.
    """
    data = {key: value for key, value in event.data.items() if key not in ("payload", "redaction")}
    data["redaction"] = dict(note)
    if event["type"] == "comment":
        data["redaction"]["commentId"] = event["payload"]["commentId"]
    check_plain(data)
    check_valid("event", data)
    return CheckedRecord(_maker=_MAKER, kind="event", data=data, canonical=proven_bytes(data))


def _find_damage(kind: str, data: Any, raw: bytes, scope: str) -> str | None:
    # What orjson reads has plain types and valid Unicode; the contract knows every member name (ASCII) and bounds every
    # integer. A number that is no integer may be all that is left to find.
    if not schemas.is_valid(kind, data):
        return "its schema refuses it"
    if _MAY_HOLD_FLOAT.search(raw) is not None:
        try:
            check_plain(data)
        except LearningError as error:
            return error.message.rstrip(".")
    if proven_bytes(data) != raw:
        return "its bytes are not canonical"
    if record_digest(kind, data) != data["digest"]:
        return "its digest does not match"
    if data["scope"] != scope:
        return "it belongs to another scope"
    return _find_false_digest(kind, data) or _find_contradiction(kind, data)


def _find_false_digest(kind: str, data: Mapping[str, Any]) -> str | None:
    """The digests within a record, which sealing computes."""
    if kind == "event" and "payload" in data and proven_digest(data["payload"]) != data["payloadDigest"]:
        return "its payloadDigest does not match"
    if kind == "memory-record":
        if content_digest(data) != data["contentDigest"]:
            return "its contentDigest does not match"
        if review_digest(data) != data["reviewDigest"]:
            return "its reviewDigest does not match"
    return None


def _find_contradiction(kind: str, data: Mapping[str, Any]) -> str | None:
    """What a schema cannot say: members that must agree with each other."""
    targeted = kind == "event" and "payload" in data and data["type"] in _TARGETED
    if targeted and data["payload"]["targetEventId"] != data["parentEventId"]:
        return "its parentEventId is not the payload's targetEventId"
    if kind == "consent-grant" and None not in data["range"].values() and data["range"]["from"] >= data["range"]["to"]:
        return "its range is empty"
    return None

"""A provider in one JSON file, written from docs/providers.md alone: the seven methods and no optional capability.

It shows how little a provider needs. Every write makes the file anew, so it suits small stores only.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from learning_core.errors import Conflict, InvalidArgument
from learning_core.provider import Head, MemoryQuery, Query, Record, Row

TIMES = {
    "episodes": "startedAt",
    "events": "occurredAt",
    "grants": "grantedAt",
    "withdrawals": "withdrawnAt",
    "collections": "capturedAt",
    "exports": "exportedAt",
    "audit": "at",
}
NO_HEADS: Mapping[str, Head] = {}


class JsonFileProvider:
    def __init__(self, path: Path) -> None:
        self.path = path

    def manifest(self) -> Mapping[str, Any]:
        return {
            "schemaVersion": "replica.provider-manifest/v1",
            "name": "json-file",
            "version": "1",
            "contracts": ["v1"],
            "capabilities": [
                "manifest",
                "health",
                "records.append",
                "records.batch",
                "records.read",
                "memory.append",
                "memory.read",
            ],
            "storage": {"kind": "file", "erasure": "none", "location": str(self.path)},
            "sendsTo": [],
        }

    def health(self) -> Mapping[str, Any]:
        return {"ok": True, "detail": "One JSON file."}

    def append_records(
        self,
        scope: str,
        stream: str,
        records: Sequence[Record],
        audit: Sequence[Record],
        *,
        expected: Mapping[str, Head] = NO_HEADS,
    ) -> None:
        self.append_batch(scope, {stream: records}, audit)

    def append_batch(
        self,
        scope: str,
        records: Mapping[str, Sequence[Record]],
        audit: Sequence[Record],
        *,
        expected: Mapping[str, Head] = NO_HEADS,
    ) -> None:
        for stream in records:
            check_stream(stream)
        with self._writing(scope) as rows:
            append(rows, records)
            append(rows, {"audit": audit})

    def append_memory_version(
        self,
        scope: str,
        record: Record,
        previous_digest: str | None,
        audit: Sequence[Record],
        *,
        expected: Mapping[str, Head] = NO_HEADS,
    ) -> None:
        with self._writing(scope) as rows:
            versions = [data for stream, data in parsed(rows) if stream == "memories" and data["id"] == record.id]
            latest, number = (versions[-1]["digest"], versions[-1]["version"]) if versions else (None, 0)
            if latest != previous_digest or record.data["version"] != number + 1:
                raise Conflict(f"{record.id} is not the version after the latest.", record_id=record.id)
            rows.append(["memories", record.canonical.decode()])
            append(rows, {"audit": audit})

    def read_records(self, scope: str, stream: str, query: Query) -> list[Row]:
        check_stream(stream)
        found = []
        for position, (kind, text) in enumerate(self._read().get(scope, []), 1):
            if kind == stream and matches(stream, json.loads(text), query):
                found.append(Row(position, text.encode()))
        return page(found, query)

    def read_memory_versions(self, scope: str, query: MemoryQuery) -> list[Row]:
        rows = self._read().get(scope, [])
        latest = {data["id"]: data["version"] for stream, data in parsed(rows) if stream == "memories"}
        found = []
        for position, (kind, text) in enumerate(rows, 1):
            data = json.loads(text)
            if kind == "memories" and (
                among(data["id"], query.ids)
                and among(data["state"], query.states)
                and among(data["content"]["theme"], query.themes)
                and (not query.latest or data["version"] == latest[data["id"]])
            ):
                found.append(Row(position, text.encode()))
        return page(found, query)

    def _read(self) -> dict[str, list[list[str]]]:
        stored: dict[str, list[list[str]]] = json.loads(self.path.read_text()) if self.path.exists() else {}
        return stored

    @contextmanager
    def _writing(self, scope: str) -> Iterator[list[list[str]]]:
        """The scope's rows, which take the place of the old file when the block ends without an error."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            scopes = self._read()
            yield scopes.setdefault(scope, [])
            copy = self.path.with_suffix(".new")
            with copy.open("w") as file:
                json.dump(scopes, file)
                file.flush()
                os.fsync(file.fileno())
            copy.replace(self.path)


def check_stream(stream: str) -> None:
    if stream not in TIMES:
        raise InvalidArgument(f"{stream} is no stream of records.", stream=stream)


def parsed(rows: list[list[str]]) -> list[tuple[str, Any]]:
    return [(stream, json.loads(text)) for stream, text in rows]


def append(rows: list[list[str]], records: Mapping[str, Sequence[Record]]) -> None:
    digests = {(stream, data["id"]): data["digest"] for stream, data in parsed(rows)}
    for stream, record in [(stream, record) for stream, group in records.items() for record in group]:
        known = digests.get((stream, record.id))
        if known is None:
            digests[stream, record.id] = record.digest
            rows.append([stream, record.canonical.decode()])
        elif known != record.digest:
            raise Conflict(f"The store holds a different record under the ID {record.id}.", record_id=record.id)


def matches(stream: str, data: Mapping[str, Any], query: Query) -> bool:
    if stream == "episodes":
        group = f"e:{data['id']}"
    elif stream == "events":
        group = f"e:{data['episodeId']}"
    else:
        group = "policy" if stream in {"grants", "withdrawals"} else stream
    comment_id = None
    if stream == "events" and data["type"] == "comment":
        comment_id = data.get("payload", data.get("redaction", {})).get("commentId")
    time = data[TIMES[stream]]
    return (
        among(data["id"], query.ids)
        and among(group, query.groups)
        and among(data.get("type"), query.types)
        and among(data.get("parentEventId"), query.parents)
        and among(comment_id, query.comment_ids)
        and among(data.get("operation"), query.operations)
        and (query.time_from is None or time >= query.time_from)
        and (query.time_to is None or time < query.time_to)
    )


def among(value: str | None, allowed: tuple[str, ...] | None) -> bool:
    return allowed is None or value in allowed


def page(rows: list[Row], query: Query | MemoryQuery) -> list[Row]:
    behind = [row for row in rows if row.position > (query.after or 0)]
    return behind[: query.limit]

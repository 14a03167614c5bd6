"""Collection: import comments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from learning_core.audit import Plan
from learning_core.comment_log import Snapshot, read_snapshot
from learning_core.identifiers import Principal
from learning_core.json_stream import Source
from learning_core.reader import Reader
from learning_core.store.base import bulk_work
from learning_core.store.removing import RemovalOperations
from learning_core.workflows import importing, redaction


class CollectionOperations(RemovalOperations):
    """Imports. One may end with the removal of what was deleted at its source."""

    @bulk_work()
    def import_comments(
        self, by: Principal, log: Source, *, redact_deleted: bool = False, repository: int | None = None
    ) -> dict[str, Any]:
        """Import one comment log: all of it, or nothing.

        `redact_deleted` then removes the text of every comment that the snapshot shows as deleted. `repository` is the
        numeric ID that the log must have, where the scope names the repository otherwise. Returns `{"collection",
        "imported": {"episodes", "events"}, "redacted", "rebuild", "exports", "identityUpdates"}`. Raises `InvalidJson`,
        `InvalidRecord`, `InvalidLog`, `WrongRepository`, `NotPermitted`, `SnapshotConflict`, `SnapshotTooOld`,
        `Unsupported` where text cannot be removed.
        """
        snapshot = read_snapshot(log)
        importing.check_repository(snapshot, self.scope, repository)
        if redact_deleted:
            self._check_redaction()
        nonce = self._new_id()
        outcome = self._change(lambda reader: self._plan_import(reader, snapshot, by, nonce))
        removed = {"removed": 0, "rebuild": [], "exports": []}
        if redact_deleted and outcome.deleted:
            removed = self._redact_comments(by, outcome.deleted, redaction.DELETED_AT_SOURCE)
        return {
            "collection": dict(outcome.collection.data),
            "imported": {"episodes": outcome.episodes, "events": outcome.events},
            "redacted": removed["removed"],
            "rebuild": removed["rebuild"],
            "exports": removed["exports"],
            "identityUpdates": self._describe_identity_updates(outcome.corrected),
        }

    def _plan_import(
        self, reader: Reader, snapshot: Snapshot, by: Principal, nonce: str
    ) -> tuple[importing.ImportOutcome, Plan]:
        policy = reader.usable_policy()
        outcome = importing.plan_import(
            snapshot,
            scope=self.scope,
            policy=policy,
            collections=reader.collections(),
            load_threads=reader.load_threads,
            find_stored=reader.find_comments,
            expected=reader.expect("policy", "collections"),
            actor=by,
            nonce=nonce,
            at=self._clock(),
        )
        return outcome, outcome.plan

    def _describe_identity_updates(self, corrected: Sequence[str]) -> list[dict[str, Any]]:
        if not corrected:
            return []
        reader = self._reader()
        gone = set(corrected)
        affected = [
            record.id
            for record in self._latest_records(reader)
            if record["state"] in ("proposed", "accepted")
            and any(gone.intersection(ref["eventIds"]) for ref in (*record["evidence"], *record["counterevidence"]))
        ]
        return [{"reason": "identity_corrected", "events": list(corrected), "memories": affected}]

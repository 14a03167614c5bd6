"""Removal: take a comment's text out of the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from learning_core.audit import Plan
from learning_core.errors import Busy, Conflict, InvalidHistory, NotFound, Unsupported
from learning_core.identifiers import Principal
from learning_core.provider import REDACTION, Query, is_redacted
from learning_core.reader import Reader
from learning_core.records import CheckedRecord
from learning_core.store.base import MAX_PLANS, StoreBase
from learning_core.workflows import redaction


class RemovalOperations(StoreBase):
    """Redaction of comments and the labels on them."""

    def redact_event(self, by: Principal, event_id: str, *, reason: str) -> dict[str, Any]:
        """Remove the text of the comment that an event is a version of, or a label on. Raises `NotFound`."""
        redaction.check_request(by, reason)
        self._check_redaction()
        reader = self._reader()
        episodes = reader.find_event_episodes(Query(ids=(event_id,)))
        thread = reader.thread(episodes[0]) if episodes else None
        comment = redaction.find_comment(thread, event_id) if thread is not None else None
        if comment is None:
            raise NotFound(f"There is no comment or label {event_id[:80]}.")
        return self._redact_comments(by, [comment], reason)

    def redact_comment(self, by: Principal, comment_id: str, *, reason: str | None = None) -> dict[str, Any]:
        """Remove the text of every version of a Hub comment and of every label on it; it needs no grant.

        Returns `{"removed", "rebuild", "exports"}`; `removed` counts the events whose text this call removed, 0 when
        none was left. Raises `NotAPerson`, `InvalidHistory`, `Unsupported`.
        """
        reason = reason if reason and reason.strip() else redaction.DELETED_AT_SOURCE
        redaction.check_request(by, reason)
        return self._redact_comments(by, [comment_id], reason)

    def _check_redaction(self) -> None:
        if REDACTION not in self.manifest["capabilities"]:
            raise Unsupported(f"The provider {self.manifest['name']} cannot remove text.")

    def _redact_comments(self, by: Principal, comment_ids: Sequence[str], reason: str) -> dict[str, Any]:
        """Remove the comments one by one. One whose history is refused does not keep the others."""
        self._check_redaction()
        removed = 0
        events: list[str] = []
        refusal: InvalidHistory | None = None
        for comment_id in comment_ids:
            try:
                count, ids = self._redact_one(by, comment_id, reason)
            except InvalidHistory as error:
                refusal = refusal or error
                continue
            removed += count
            events += ids
        if refusal is not None:
            raise refusal
        reader = self._reader()
        # Only decided learnings were ever used or exported; a proposal that cites the comment is proposed anew.
        latest = {record.id: record for record in reader.decided()}.values()
        rebuild = redaction.find_rebuild(latest, events)
        citing = [r.id for r in latest if set(events).intersection(redaction.cited_events(r))]
        return {
            "removed": removed,
            "rebuild": rebuild,
            "exports": redaction.find_exports(reader.exports(), [*events, *citing]),
        }

    def _redact_one(self, by: Principal, comment_id: str, reason: str) -> tuple[int, list[str]]:
        """Remove what is left of one comment; a racing removal is finished, not repeated."""
        removed = 0
        for _ in range(MAX_PLANS):
            reader = self._reader()
            episodes = reader.find_episodes(comment_id)
            redaction.check_one_thread(comment_id, episodes)
            thread = reader.thread(episodes[0]) if episodes else None
            if thread is None:
                return removed, []
            events = redaction.find_events(thread, comment_id)
            linked = reader.find_event_episodes(Query(parents=tuple(event.id for event in events)))
            redaction.check_one_thread(comment_id, list(dict.fromkeys([*episodes, *linked])))
            self._add_missing_receipts(reader, events)
            left = [event for event in events if not is_redacted(event.data)]
            if not left:
                return removed, [event.id for event in events]
            for event in left:
                made = redaction.plan_removal(
                    event, scope=self.scope, by=by, reason=reason, expected={}, at=self._clock()
                )
                try:
                    self._commit(made)
                    removed += 1
                except Conflict:
                    break
        raise Busy(f"Comment {comment_id} kept changing while its text was removed; run it again.")

    def _add_missing_receipts(self, reader: Reader, events: Sequence[CheckedRecord]) -> None:
        wanted = redaction.removal_receipts(events, self.scope)
        known = {entry.id for entry in reader.audit(ids=tuple(wanted))} if wanted else set()
        missing = [redaction.seal_removal(event, self.scope) for name, event in wanted.items() if name not in known]
        if missing:
            self._commit(Plan(missing))

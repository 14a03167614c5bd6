"""Recall: hand accepted learnings to an agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from learning_core.audit import Plan
from learning_core.evidence import Memory, cited_episodes, derive_standing
from learning_core.identifiers import Principal
from learning_core.policy import Policy
from learning_core.reader import Reader
from learning_core.records import CheckedRecord
from learning_core.store.base import NOTHING_WITHHELD, StoreBase
from learning_core.workflows import recall


class RecallOperations(StoreBase):
    """Uses of learnings."""

    def recall(
        self,
        by: Principal,
        task: str,
        *,
        budget: int = recall.DEFAULT_BUDGET,
        paths: Sequence[str] = (),
        preview: bool = False,
        withheld_comments: frozenset[str] = NOTHING_WITHHELD,
    ) -> dict[str, Any]:
        """The accepted learnings that fit a task, as framed text of at most `budget` Unicode code points.

        Every use is audited but a person's `preview`. Returns `{"text", "learnings"}`. Raises `BudgetTooSmall`,
        `NotAPerson` for a preview by an agent, `NotPermitted`, `Damaged`.
        """
        recall.check_request(by, task, budget, preview=preview)
        nonce = self._new_id()

        def plan(reader: Reader) -> tuple[tuple[str, list[str]], Plan | None]:
            change = reader.expect_change()
            policy = self._policy_for(reader, "instruction")
            at = self._clock()
            text, ids = self._recall(reader, policy, task, budget, paths, at, withheld_comments)
            if preview:
                return (text, ids), None
            made = recall.plan_use(
                ids,
                scope=self.scope,
                by=by,
                nonce=nonce,
                set_known=lambda entry: bool(reader.audit(ids=(entry,))),
                expected=change,
                at=at,
            )
            return (text, ids), made

        text, ids = self._change(plan)
        return {"text": text, "learnings": ids}

    def _recall(
        self,
        reader: Reader,
        policy: Policy,
        task: str,
        budget: int,
        paths: Sequence[str],
        at: str,
        withheld: frozenset[str],
    ) -> tuple[str, list[str]]:
        newest = {record.id: record for record in reader.decided()}
        supersession = reader.supersession()
        accepted = [
            record
            for record in newest.values()
            if record["state"] == "accepted"
            and record.id not in supersession.replaced
            and record.id not in supersession.void
        ]

        def find_usable(records: Sequence[CheckedRecord]) -> set[str]:
            histories = reader.memories(record.id for record in records)
            reader.threads(episode for record in records for episode in cited_episodes(record))
            return {record.id for record in records if is_usable(record, histories.get(record.id))}

        def is_usable(record: CheckedRecord, memory: Memory | None) -> bool:
            if memory is None or memory.damaged or memory.latest.digest != record.digest:
                return False
            threads = reader.threads(cited_episodes(record))
            standing = derive_standing(record, threads, policy, supersession, at=at, withheld=withheld)
            return standing.in_use and recall.fits_paths(record, list(threads.values()), paths)

        return recall.fill_budget(recall.order_by_fit(task, accepted), budget, find_usable)

"""Decisions: what a person sees of a learning, and what they decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from learning_core.audit import Plan
from learning_core.errors import Damaged, NotPermitted
from learning_core.evidence import cited_episodes, stated_outline
from learning_core.identifiers import Principal
from learning_core.provider import Head
from learning_core.reader import Reader
from learning_core.records import CheckedRecord
from learning_core.store.base import NOTHING_WITHHELD, StoreBase
from learning_core.workflows import consolidation, decisions, viewing


class DecisionOperations(StoreBase):
    """Lists, details and decisions."""

    def outline(self) -> dict[str, Any]:
        """Every learning as its newest bytes state it: enough to count, order and page a list, and no content.

        Neither the records nor their evidence are checked: whoever shows some of them asks `memories` for those.
        Returns `{"memories": [{"id", "state", "at", "reviewers", "comments"}]}`, oldest first. Raises `NotPermitted`.
        """
        reader = self._reader()
        self._policy_for(reader, "review")
        return {"memories": [stated_outline(raw) for raw in reader.latest_bytes()]}

    def memories(
        self,
        *,
        ids: Sequence[str] | None = None,
        states: Sequence[str] | None = None,
        withheld_comments: frozenset[str] = NOTHING_WITHHELD,
    ) -> dict[str, Any]:
        """Learnings and proposals by their newest version; reading is a use for review, which withholds what it must.

        `ids` names some, and leaves out what does not exist. Returns `{"memories": [...]}`; see `viewing.describe_row`.
        """
        reader = self._reader()
        policy = self._policy_for(reader, "review")
        found = reader.all_memories() if ids is None else reader.memories(ids)
        at = self._clock()
        rows = []
        intact = [memory.latest for memory in found.values() if not memory.damaged]
        shown = [record for record in intact if states is None or record["state"] in states]
        uses = self._standings(reader, shown, policy, at, withheld=withheld_comments)
        reviews = self._standings(reader, shown, policy, at, purpose="review", withheld=withheld_comments)
        by_id = {use.record.id: viewing.describe_row(review, use) for use, review in zip(uses, reviews, strict=True)}
        for memory in found.values():
            if memory.damaged:
                row = viewing.describe_damaged(memory)
                if states is None or row.get("state") in states:
                    rows.append(row)
            elif memory.id in by_id:
                rows.append(by_id[memory.id])
        return {"memories": rows}

    def show(
        self, memory_id: str, *, history: bool = False, withheld_comments: frozenset[str] = NOTHING_WITHHELD
    ) -> dict[str, Any]:
        """One learning with its evidence quoted, and with `history` each version on its own. Raises `NotFound`."""
        reader = self._reader()
        policy = self._policy_for(reader, "review")
        memory = self._find_memory(reader, memory_id)
        if memory.damaged:
            shown = viewing.describe_damaged(memory)
        else:
            record = memory.latest
            at = self._clock()
            use = self._standings(reader, [record], policy, at, withheld=withheld_comments)[0]
            review = self._standings(reader, [record], policy, at, purpose="review", withheld=withheld_comments)[0]
            threads = reader.threads(cited_episodes(record))
            shown = viewing.describe_memory(review, use, threads, policy, withheld_comments)
        if history:
            cited = {episode for version in memory.versions if version for episode in cited_episodes(version)}
            shown["history"] = viewing.describe_history(memory, reader.threads(cited), policy, withheld_comments)
        return {"memory": shown}

    def accept(
        self,
        by: Principal,
        memory_id: str,
        *,
        review_digest: str,
        text: str | None = None,
        reason: str | None = None,
        withheld_comments: frozenset[str] = NOTHING_WITHHELD,
    ) -> dict[str, Any]:
        """Accept a proposal against exactly what was reviewed; another `text` is an edit.

        Returns `{"memory"}`. Raises `NotAPerson`, `NotFound`, `StaleReview` (`details["current"]`),
        `InvalidTransition`, `EvidenceUnavailable`, `ReasonRequired` where a reviewer dissents, `NotPermitted`.
        """

        def plan(reader: Reader) -> tuple[CheckedRecord, Plan]:
            policy = self._policy_for(reader, "instruction", "review")
            record = self._find_memory(reader, memory_id).latest
            at = self._clock()
            supersession = reader.supersession()
            targets = self._find_states(reader, record["lifecycle"]["replaces"])
            use = self._standings(reader, [record], policy, at, withheld=withheld_comments)[0]
            review = self._standings(reader, [record], policy, at, purpose="review", withheld=withheld_comments)[0]
            return decisions.plan_acceptance(
                use,
                review,
                by,
                review_digest=review_digest,
                text=text,
                reason=reason,
                states=targets,
                supersession=supersession,
                expected=self._expect_decision(reader, record, replaces=bool(targets)),
                at=at,
            )

        return self._decide(plan)

    def reject(self, by: Principal, memory_id: str, *, review_digest: str, reason: str) -> dict[str, Any]:
        """Reject a proposal against exactly what was reviewed. Raises as `accept` does."""

        def plan(reader: Reader) -> tuple[CheckedRecord, Plan]:
            reader.usable_policy()
            record = self._find_memory(reader, memory_id).latest
            expected = reader.expect("policy")
            at = self._clock()
            return decisions.plan_rejection(
                record, by, review_digest=review_digest, reason=reason, expected=expected, at=at
            )

        return self._decide(plan)

    def retire(self, by: Principal, memory_id: str, *, reason: str) -> dict[str, Any]:
        """Stop using an accepted learning. What it replaced stays replaced. Works beside damage elsewhere."""

        def plan(reader: Reader) -> tuple[CheckedRecord, Plan]:
            record = self._find_memory(reader, memory_id).latest
            return decisions.plan_retirement(record, by, reason=reason, expected={}, at=self._clock())

        return self._decide(plan)

    def supersede(self, by: Principal, memory_id: str, *, replaces: Sequence[str]) -> dict[str, Any]:
        """Record, once, that an accepted learning replaces others."""

        def plan(reader: Reader) -> tuple[CheckedRecord, Plan]:
            policy = self._policy_for(reader, "instruction")
            record = self._find_memory(reader, memory_id).latest
            at = self._clock()
            return decisions.plan_supersession(
                self._standings(reader, [record], policy, at)[0],
                by,
                replaces=replaces,
                states=self._find_states(reader, replaces),
                supersession=reader.supersession(),
                expected=self._expect_decision(reader, record, replaces=True),
                at=at,
            )

        return self._decide(plan)

    def revise(self, by: Principal, memory_id: str, *, text: str, reason: str) -> dict[str, Any]:
        """Propose a person's correction of an accepted learning: the same evidence, another text; it replaces it.

        Returns `{"memory"}`, the proposal, which is decided as any other. Raises `NotAPerson`, `NotFound`,
        `InvalidTransition`, `EvidenceUnavailable`, `ReasonRequired`, `NotPermitted`.
        """

        def plan(reader: Reader) -> tuple[CheckedRecord, Plan | None]:
            policy = self._policy_for(reader, "instruction", "review")
            record = self._find_memory(reader, memory_id).latest
            at = self._clock()
            standing = self._standings(reader, [record], policy, at)[0]
            return consolidation.plan_proposal(
                decisions.make_correction(standing, by, text=text, reason=reason),
                scope=self.scope,
                known=reader.memories(reader.theme_memories([record["content"]["theme"]])),
                actor=by,
                expected=self._expect_decision(reader, record, replaces=True),
                at=at,
            )

        return self._decide(plan)

    def _decide(self, plan: Callable[[Reader], tuple[CheckedRecord, Plan | None]]) -> dict[str, Any]:
        record = self._change(plan)
        try:
            return self.show(record.id)
        except (NotPermitted, Damaged):
            # The decision stands; what it decided on may not, or cannot, be read (any more).
            members = ("id", "state", "version", "contentDigest", "reviewDigest")
            return {"memory": {name: record[name] for name in members} | {"withheld": True}}

    def _expect_decision(self, reader: Reader, record: CheckedRecord, *, replaces: bool) -> dict[str, Head]:
        groups = ["policy", *(f"e:{episode}" for episode in sorted(cited_episodes(record)))]
        return reader.expect(*groups, *(["decided"] if replaces else []))

    def _find_states(self, reader: Reader, ids: Iterable[str]) -> dict[str, str]:
        return {name: memory.latest["state"] for name, memory in reader.memories(ids).items() if not memory.damaged}

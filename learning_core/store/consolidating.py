"""Consolidation: store what a consolidator proposes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from learning_core.audit import Plan, seal_entry
from learning_core.errors import Damaged, InvalidArgument, LearningError, PluginFailed
from learning_core.identifiers import Principal
from learning_core.plugins import ConsolidationRequest, ConsolidationResult, EvidenceView, MemoryConsolidator
from learning_core.reader import Reader
from learning_core.records import CheckedRecord
from learning_core.store.base import NOTHING_WITHHELD, StoreBase, bulk_work
from learning_core.timestamps import normalize_bound
from learning_core.workflows import consolidation


class ConsolidationOperations(StoreBase):
    """Windows, proposals, and dissent that arrives after an acceptance."""

    @bulk_work()
    def consolidate(
        self,
        by: Principal,
        consolidator: MemoryConsolidator,
        *,
        time_from: str,
        time_to: str,
        max_new: int = 10,
        withheld_comments: frozenset[str] = NOTHING_WITHHELD,
    ) -> dict[str, Any]:
        """Show the consolidator the evidence of a half-open window and store what it proposes, at most `max_new`.

        Returns `{"complete", "missing": [{"from", "to"}], "stored": [{"id", "theme", "reviewDigest"}], "overBudget",
        "diagnostics"}`. An incomplete window is never reported as empty: `missing` names what no complete, unfiltered
        collection covers. Raises `NotPermitted`, `InvalidArgument`, `PluginFailed`.
        """
        start, end = normalize_bound(time_from), normalize_bound(time_to)
        if start >= end or max_new < 0:
            raise InvalidArgument("The window must end after it begins, and max must not be negative.")
        at = self._clock()
        reader = self._reader()
        policy = self._policy_for(reader, "instruction")
        missing = consolidation.find_missing(reader.collections(), start, end)
        standings = self._standings(reader, self._latest_records(reader), policy, at, withheld=withheld_comments)
        view = EvidenceView(
            start,
            end,
            tuple(
                comment
                for thread in reader.all_threads()
                for comment in consolidation.view_thread(thread, policy, start, end, withheld_comments)
            ),
            tuple(consolidation.view_memory(standing) for standing in standings),
        )
        result = _ask(consolidator, ConsolidationRequest("instruction", at), view)
        stored, over_budget, refused = self._store_proposals(by, result.proposals, view, max_new)
        entries = consolidation.plan_contradictions(standings, view, scope=self.scope, actor=by, at=at)
        self._record_run(by, entries, len(stored), over_budget, at)
        return {
            "complete": not missing,
            "missing": missing,
            "stored": stored,
            "overBudget": over_budget,
            "diagnostics": [dict(item) for item in result.diagnostics] + refused,
        }

    def _store_proposals(
        self, by: Principal, proposals: Iterable[Mapping[str, Any]], view: EvidenceView, max_new: int
    ) -> tuple[list[dict[str, Any]], int, list[dict[str, Any]]]:
        stored: list[dict[str, Any]] = []
        refused: list[dict[str, Any]] = []
        over_budget = 0
        for proposal in proposals:

            def plan(
                reader: Reader, own: Mapping[str, Any] = proposal, room: bool = len(stored) < max_new
            ) -> tuple[tuple[CheckedRecord, bool], Plan | None]:
                record, made = self._plan_one(reader, by, own, view)
                return (record, made is not None), made if room else None

            try:
                record, changed = self._change(plan)
                if changed and len(stored) >= max_new:
                    over_budget += 1
                elif changed:
                    theme = record["content"]["theme"]
                    stored.append({"id": record.id, "theme": theme, "reviewDigest": record["reviewDigest"]})
            except _Refused as error:
                refused.append({"theme": error.theme, "category": error.category, **error.diagnostic})
        return stored, over_budget, refused

    def _plan_one(
        self, reader: Reader, by: Principal, proposal: Mapping[str, Any], view: EvidenceView
    ) -> tuple[CheckedRecord, Plan | None]:
        self._policy_for(reader, "instruction")
        if not isinstance(proposal, Mapping):
            raise _Refused({}, "invalid_proposal", "A proposal must be a JSON object.")
        episodes = _proposed_episodes(proposal)
        threads = reader.threads(episodes)
        fault = consolidation.find_proposal_fault(proposal, threads, view)
        if fault is not None:
            raise _Refused(proposal, *fault)
        theme = proposal["content"]["theme"]
        try:
            return consolidation.plan_proposal(
                proposal,
                scope=self.scope,
                known=reader.memories(reader.theme_memories([theme])),
                actor=by,
                expected=reader.expect("policy", *(f"e:{episode}" for episode in episodes)),
                at=self._clock(),
            )
        except Damaged as error:
            raise _Refused(proposal, error.code, error.message) from error

    def _record_run(
        self, by: Principal, entries: Sequence[CheckedRecord], stored: int, over_budget: int, at: str
    ) -> None:
        run = seal_entry(
            self.scope,
            "consolidate",
            self._new_id(),
            at=at,
            actor=by.data,
            details={"stored": stored, "overBudget": over_budget},
        )

        def plan(reader: Reader) -> tuple[None, Plan | None]:
            known = {entry.id for entry in reader.audit(ids=tuple(entry.id for entry in entries))} if entries else set()
            return None, Plan([run, *(entry for entry in entries if entry.id not in known)])

        self._change(plan)


def _ask(consolidator: MemoryConsolidator, request: ConsolidationRequest, view: EvidenceView) -> ConsolidationResult:
    """What a consolidator, which is somebody's own code, returns. Raises `PluginFailed` where it fails."""
    name = str(consolidator.manifest()["id"])[:80]
    try:
        result = consolidator.consolidate(request, view)
    except LearningError:
        raise
    except Exception as error:
        raise PluginFailed(f"The consolidator {name} failed ({type(error).__name__}); nothing was stored.") from error
    if not isinstance(result, ConsolidationResult):
        raise PluginFailed(f"The consolidator {name} returned no ConsolidationResult; nothing was stored.")
    if not all(isinstance(item, Mapping) for item in result.diagnostics):
        raise PluginFailed(f"The consolidator {name} returned a diagnostic that is no object; nothing was stored.")
    return result


class _Refused(Exception):
    """A consolidator's proposal that the store does not save."""

    def __init__(self, proposal: Mapping[str, Any], reason: str, detail: str) -> None:
        super().__init__(reason)
        content = proposal.get("content")
        named = content if isinstance(content, Mapping) else {}
        self.theme = str(named.get("theme", ""))[:80]
        self.category = str(named.get("category", ""))[:80]
        self.diagnostic = {"reason": reason, "detail": detail}


def _proposed_episodes(proposal: Mapping[str, Any]) -> list[str]:
    """The episodes that a proposal, not yet checked, names."""
    listed = [proposal.get(side) for side in ("evidence", "counterevidence")]
    references = [reference for side in listed if isinstance(side, list) for reference in side]
    names = {reference.get("episodeId") for reference in references if isinstance(reference, Mapping)}
    return sorted(name for name in names if isinstance(name, str))

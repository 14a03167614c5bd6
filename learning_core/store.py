"""The learning store: the only writer, and the one place where every rule is applied.

Each mutator has one shape: load checked evidence, let a pure function plan, commit the plan in one provider write, and
plan again when something that was read has moved. Results are plain JSON, the same that the command prints.

The store checks what a provider, a labeler and a consolidator return. It does not check that a person may act in a
repository: the host does, before it calls.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from learning_core.audit import Plan, seal_entry
from learning_core.canonical import MAX_BYTES, parse_json
from learning_core.comment_log import Snapshot, read_snapshot
from learning_core.errors import (
    Busy,
    Conflict,
    Damaged,
    HeadMoved,
    InvalidArgument,
    InvalidJson,
    LearningError,
    NotFound,
    NotPermitted,
    PluginFailed,
    Unsupported,
)
from learning_core.evidence import (
    Memory,
    Standing,
    Thread,
    cited_episodes,
    derive_standing,
)
from learning_core.identifiers import Principal, episode_id, parse_principal, parse_scope
from learning_core.plugins import (
    ConsolidationRequest,
    EvidenceView,
    LabelAnswer,
    MemoryConsolidator,
    MemoryLabeler,
    Usage,
)
from learning_core.policy import Policy
from learning_core.provider import (
    HEADS,
    REDACTION,
    REQUIRED_CAPABILITIES,
    Head,
    HeadedProvider,
    MemoryProvider,
    Query,
    RedactingProvider,
    is_redacted,
)
from learning_core.reader import Reader
from learning_core.records import CheckedRecord, check_valid
from learning_core.timestamps import Clock, normalize_bound, system_clock
from learning_core.workflows import (
    consent,
    consolidation,
    decisions,
    importing,
    labeling,
    recall,
    redaction,
    verification,
    viewing,
)

MAX_PLANS = 10
"""How often an operation plans again because another writer was first."""

NOTHING_WITHHELD: frozenset[str] = frozenset()
T = TypeVar("T")


class LearningStore:
    """One scope's learning loop over a provider.

    `clock` tells UTC text, `new_id` gives a fresh random name. `withheld_comments` of a call are Hub comment IDs whose
    removal or edit the host knows before it is stored: whatever cites them is withheld.
    """

    def __init__(
        self,
        provider: MemoryProvider,
        scope: str,
        *,
        clock: Clock = system_clock,
        new_id: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        manifest = dict(provider.manifest())
        check_valid("provider-manifest", manifest)
        missing = [name for name in REQUIRED_CAPABILITIES if name not in manifest["capabilities"]]
        if missing:
            raise PluginFailed(f"The provider {manifest['name']} lacks {', '.join(missing)}.")
        self.provider = provider
        self.scope = parse_scope(scope)
        self.manifest = manifest
        self._clock = clock
        self._new_id = new_id

    # Consent ------------------------------------------------------------------------------------------------------

    def add_grant(
        self,
        by: Principal,
        *,
        purposes: Sequence[str],
        sources: Sequence[str] = ("hub-comments",),
        time_from: str | None = None,
        time_to: str | None = None,
        reason: str,
    ) -> dict[str, Any]:
        """Record a person's permission for purposes and sources, for evidence written in a half-open range.

        Returns `{"grant"}`. Raises `NotAPerson`, `ReasonRequired`, `InvalidArgument`, `InvalidRecord`.
        """
        consent.check_purposes(purposes)
        nonce = self._new_id()

        def plan(reader: Reader) -> tuple[CheckedRecord, Plan]:
            reader.usable_policy()
            return consent.plan_grant(
                by,
                scope=self.scope,
                purposes=purposes,
                sources=sources,
                time_from=_bound(time_from),
                time_to=_bound(time_to),
                reason=reason,
                at=self._clock(),
                nonce=nonce,
            )

        return {"grant": dict(self._change(plan).data)}

    def list_grants(self) -> dict[str, Any]:
        """Every grant, with its `active` and `withdrawn` purposes."""
        return {"grants": consent.describe_grants(self._reader().policy())}

    def withdraw_grant(
        self, by: Principal, grant_id: str, *, purposes: Sequence[str] | None = None, reason: str
    ) -> dict[str, Any]:
        """End a grant, for the purposes named or all that are left; it takes effect at once.

        Returns `{"grant", "exports"}`: earlier exports that copied evidence under it. Raises `NotAPerson`, `NotFound`,
        `InvalidTransition`, `ReasonRequired`. It works beside damage elsewhere, where what it reads is intact.
        """
        if purposes is not None:
            consent.check_purposes(purposes)

        def plan(reader: Reader) -> tuple[CheckedRecord, Plan]:
            return consent.plan_withdrawal(
                by,
                grant_id,
                scope=self.scope,
                purposes=purposes,
                reason=reason,
                policy=reader.policy(),
                expected=reader.expect("policy"),
                at=self._clock(),
            )

        withdrawal = self._change(plan)
        reader = self._reader()
        grant = next(g for g in consent.describe_grants(reader.policy()) if g["id"] == grant_id)
        exports = consent.find_exports(reader.exports(), grant_id, withdrawal["purposes"])
        return {"grant": grant, "exports": exports}

    # Import -------------------------------------------------------------------------------------------------------

    def import_comments(
        self, by: Principal, log: bytes | str | Path, *, redact_deleted: bool = False, repository: int | None = None
    ) -> dict[str, Any]:
        """Import one comment log: all of it, or nothing.

        `redact_deleted` then removes the text of every comment that the snapshot shows as deleted. `repository` is the
        numeric ID that the log must have, where the scope names the repository otherwise. Returns `{"collection",
        "imported": {"episodes", "events"}, "redacted", "rebuild", "exports", "identityUpdates"}`. Raises `InvalidJson`,
        `InvalidRecord`, `InvalidLog`, `WrongRepository`, `NotPermitted`, `SnapshotConflict`, `SnapshotTooOld`.
        """
        snapshot = read_snapshot(_read_input(log))
        importing.check_repository(snapshot, self.scope, repository)
        outcome = self._change(lambda reader: self._plan_import(reader, snapshot, by))
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
        self, reader: Reader, snapshot: Snapshot, by: Principal
    ) -> tuple[importing.ImportOutcome, Plan | None]:
        policy = reader.usable_policy()
        ids = [episode_id(self.scope, snapshot.hub_origin, thread.root.id) for thread in snapshot.threads]
        outcome = importing.plan_import(
            snapshot,
            scope=self.scope,
            policy=policy,
            collections=reader.collections(),
            threads=reader.threads(ids),
            expected=reader.expect("policy", "collections"),
            actor=by,
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

    # Labels -------------------------------------------------------------------------------------------------------

    def record_labels(self, by: Principal, labels: bytes | str | Path) -> dict[str, Any]:
        """Record the labels of a labels file: all of them, or none.

        Returns `{"considered", "labeled", "remaining", "usage"}`: `labeled` comments have a new labelling. Raises
        `InvalidJson`, `InvalidRecord`, `NotFound`, `NotPermitted`.
        """
        document = parse_json(_read_input(labels))
        check_valid("labels", document)
        stated = document["labeler"]
        assurance = by.assurance if stated["id"] == by.id else "asserted"
        labeler = parse_principal(stated["id"], assurance=assurance)

        def plan(reader: Reader) -> tuple[tuple[int, int], Plan | None]:
            threads = self._find_labelled(reader, document["labels"])
            made, considered, new = labeling.plan_labels(
                document["labels"],
                scope=self.scope,
                labeler=labeler,
                model=stated.get("model"),
                actor=by,
                threads=threads,
                policy=self._policy_for(reader, "review"),
                expected=reader.expect("policy", *(f"e:{thread.episode.id}" for thread in threads.values())),
                at=self._clock(),
            )
            return (considered, new), made

        considered, new = self._change(plan)
        return {"considered": considered, "labeled": new, "remaining": 0, "usage": _describe_usage(Usage())}

    def _find_labelled(self, reader: Reader, items: Sequence[Mapping[str, Any]]) -> dict[str, Thread]:
        found: dict[str, Thread] = {}
        episodes: dict[str, str] = {}
        for item in items:
            name = item.get("commentId") or item["eventId"]
            if name not in episodes:
                query = Query(comment_ids=(name,)) if "commentId" in item else Query(ids=(name,))
                ids = reader.find_event_episodes(query)
                redaction.check_one_thread(name, ids)
                if ids:
                    episodes[name] = ids[0]
        threads = reader.threads(episodes.values())
        for name, episode in episodes.items():
            thread = threads[episode]
            if thread is not None:
                found[name] = thread
        return found

    def label(
        self,
        by: Principal,
        labeler: MemoryLabeler,
        *,
        since: str | None = None,
        max_requests: int | None = None,
        limit: int | None = None,
        model: str | None = None,
        on_progress: Callable[[int, int], None] | None = None,
        may_continue: Callable[[], bool] | None = None,
        withheld_comments: frozenset[str] = NOTHING_WITHHELD,
    ) -> dict[str, Any]:
        """Ask a labeler about each comment that it was not asked about, a request for about 16,000 characters.

        `max_requests` bounds the requests and `limit` the comments; `may_continue` is asked before each request.
        `on_progress(done, total)` counts comments. Returns `{"considered", "labeled", "remaining", "usage"}`. A failure after labelling began raises the
        labeler's or the storage's error with that partial report in `details["labelingResult"]`.
        """
        if any(bound is not None and bound < 1 for bound in (max_requests, limit)):
            raise InvalidArgument("max-requests and limit must be positive whole numbers.")
        name = parse_principal(f"agent:{labeler.manifest()['id']}", assurance=by.assurance)
        since_bound = _bound(since)
        reader = self._reader()
        policy = self._policy_for(reader, "review")
        groups = list(
            labeling.group_threads(reader.all_threads(), name.id, policy, since=since_bound, withheld=withheld_comments)
        )
        total = sum(len(group.asked) for group in groups)
        report: dict[str, Any] = {"considered": 0, "labeled": 0, "remaining": total, "usage": _describe_usage(Usage())}
        usage = Usage()
        themes = self._themes_in_use()
        for number, group in enumerate(groups):
            if (max_requests is not None and number >= max_requests) or (may_continue and not may_continue()):
                break
            if limit is not None and report["considered"] >= limit:
                break
            group.keep(None if limit is None else limit - report["considered"])
            try:
                answer = labeler.label(group.request(sorted(themes), model))
                usage += answer.usage
                labeled = self._store_answer(group, answer, name, withheld_comments)
            except LearningError as error:
                known = error.details.pop("usage", None)
                report["usage"] = _describe_usage(usage + known if isinstance(known, Usage) else usage)
                error.details["labelingResult"] = report
                raise
            themes |= {(str(item["category"]), str(item["theme"])) for item in answer.labels if _names_theme(item)}
            report["considered"] += len(group.asked)
            report["labeled"] += labeled
            report["remaining"] = total - report["considered"]
            report["usage"] = _describe_usage(usage)
            if on_progress is not None:
                on_progress(report["considered"], total)
        return report

    def _store_answer(
        self, group: labeling.Group, answer: LabelAnswer, labeler: Principal, withheld: frozenset[str]
    ) -> int:
        episodes = {episode for _, episode in group.asked.values()}

        def plan(reader: Reader) -> tuple[int, Plan | None]:
            policy = self._policy_for(reader, "review")
            threads = reader.threads(episodes)
            current = [
                event
                for event, (_, episode) in group.asked.items()
                if (thread := threads[episode]) is not None
                and thread.find_refusal(event, "review", policy, withheld) is None
                and not any(label["actor"]["id"] == labeler.id for label in thread.versions[event].labels)
            ]
            made, labeled = labeling.plan_answer(
                group,
                answer,
                scope=self.scope,
                labeler=labeler,
                expected=reader.expect("policy", *(f"e:{episode}" for episode in episodes)),
                still_current=current,
                at=self._clock(),
            )
            return labeled, made

        return self._change(plan)

    def _themes_in_use(self) -> set[tuple[str, str]]:
        return {
            (record["content"]["category"], record["content"]["theme"])
            for record in self._latest_records(self._reader())
            if record["state"] in ("proposed", "accepted")
        }

    # Consolidation ------------------------------------------------------------------------------------------------

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
        result = consolidator.consolidate(ConsolidationRequest("instruction", at), view)
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
            try:
                record, made = self._plan_one(self._reader(), by, proposal, view)
                if made is not None and len(stored) >= max_new:
                    over_budget += 1
                elif made is not None:
                    record = self._change(lambda reader, own=proposal: self._plan_one(reader, by, own, view))  # type: ignore[misc]
                    theme = record["content"]["theme"]
                    stored.append({"id": record.id, "theme": theme, "reviewDigest": record["reviewDigest"]})
            except _Refused as error:
                refused.append({"theme": error.theme, "category": error.category, **error.diagnostic})
        return stored, over_budget, refused

    def _plan_one(
        self, reader: Reader, by: Principal, proposal: Mapping[str, Any], view: EvidenceView
    ) -> tuple[CheckedRecord, Plan | None]:
        policy = self._policy_for(reader, "instruction")
        del policy
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

    # Reading ------------------------------------------------------------------------------------------------------

    def memories(
        self, *, states: Sequence[str] | None = None, withheld_comments: frozenset[str] = NOTHING_WITHHELD
    ) -> dict[str, Any]:
        """Learnings and proposals by their newest version; reading is a use for review, which withholds what it must.

        Returns `{"memories": [...]}`; see `viewing.describe_row`.
        """
        reader = self._reader()
        policy = self._policy_for(reader, "review")
        found = reader.memories(reader.latest_memories())
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

    # Decisions ----------------------------------------------------------------------------------------------------

    def accept(
        self, by: Principal, memory_id: str, *, review_digest: str, text: str | None = None, reason: str | None = None
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
            use = self._standings(reader, [record], policy, at)[0]
            review = self._standings(reader, [record], policy, at, purpose="review")[0]
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

    def _decide(self, plan: Callable[[Reader], tuple[CheckedRecord, Plan]]) -> dict[str, Any]:
        record = self._change(plan)
        try:
            return self.show(record.id)
        except NotPermitted:
            # The decision stands; review may not read what it decided on (any more).
            members = ("id", "state", "version", "contentDigest", "reviewDigest")
            return {"memory": {name: record[name] for name in members} | {"withheld": True}}

    def _expect_decision(self, reader: Reader, record: CheckedRecord, *, replaces: bool) -> dict[str, Head]:
        groups = ["policy", *(f"e:{episode}" for episode in sorted(cited_episodes(record)))]
        return reader.expect(*groups, *(["decided"] if replaces else []))

    def _find_states(self, reader: Reader, ids: Iterable[str]) -> dict[str, str]:
        return {name: memory.latest["state"] for name, memory in reader.memories(ids).items() if not memory.damaged}

    # Redaction ----------------------------------------------------------------------------------------------------

    def redact_event(self, by: Principal, event_id: str, *, reason: str) -> dict[str, Any]:
        """Remove the text of the comment that an event is a version of, or a label on. Raises `NotFound`."""
        redaction.check_request(by, reason)
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

    def _redact_comments(self, by: Principal, comment_ids: Sequence[str], reason: str) -> dict[str, Any]:
        if REDACTION not in self.manifest["capabilities"]:
            raise Unsupported(f"The provider {self.manifest['name']} cannot remove text.")
        removed = 0
        events: list[str] = []
        for comment_id in comment_ids:
            count, ids = self._redact_one(by, comment_id, reason)
            removed += count
            events += ids
        reader = self._reader()
        latest = self._latest_records(reader)
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

    # Recall -------------------------------------------------------------------------------------------------------

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

        def is_usable(record: CheckedRecord) -> bool:
            memory = reader.memories([record.id]).get(record.id)
            if memory is None or memory.damaged or memory.latest.digest != record.digest:
                return False
            threads = reader.threads(cited_episodes(record))
            standing = derive_standing(record, threads, policy, supersession, at=at, withheld=withheld)
            return standing.in_use and recall.fits_paths(record, list(threads.values()), paths)

        return recall.fill_budget(recall.order_by_fit(task, accepted), budget, is_usable)

    # Status and verification ----------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Counts and whatever needs attention: `{"counts", "attention": [{"code", …IDs}]}`."""
        reader = self._reader()
        policy = reader.policy()
        counts = {"grants": len(policy.grants), "collections": len(reader.collections())}
        attention: list[dict[str, Any]] = [{"code": "damaged", "recordId": name} for name in policy.damage]
        found = reader.memories(reader.latest_memories())
        intact = [memory.latest for memory in found.values() if not memory.damaged]
        for state in ("proposed", "accepted", "rejected", "retired"):
            counts[state] = sum(1 for record in intact if record["state"] == state)
        attention += [{"code": "damaged", "memoryId": memory.id} for memory in found.values() if memory.damaged]
        for use in self._standings(reader, intact, policy, self._clock()):
            code = _needs_attention(use)
            if code is not None:
                attention.append({"code": code, "memoryId": use.record.id})
        contradicted = {entry["subject"] for entry in reader.audit(operations=("memory.contradicted",))}
        accepted = {record.id for record in intact if record["state"] == "accepted"}
        attention += [{"code": "contradicted", "memoryId": name} for name in sorted(contradicted & accepted)]
        counts["damaged"] = len(found) - len(intact)
        return {"counts": counts, "attention": attention}

    def verify(self, *, by: Principal, anchor: tuple[int, str] | None = None) -> dict[str, Any]:
        """Re-check every record. Damage in a policy or evidence record leaves a mark that stops operations.

        `anchor` is the audit chain that a host saw earlier: `(count, chain)`. Returns `{"ok", "completeness",
        "checked", "problems": [{"code", "recordId", "detail"}]}`.
        """
        headed = HEADS in self.manifest["capabilities"]
        found = verification.inspect_rows(self.provider, self.scope)
        if headed:
            names = [*found.heads, "decided", "collections", "exports", "audit", "change"]
            heads = cast("HeadedProvider", self.provider).read_heads(self.scope, list(dict.fromkeys(names)))
            verification.compare_heads(found, heads)
        self._verify_links(found)
        if anchor is not None:
            verification.compare_anchor(self._reader().audit(), anchor, found)
        self._mark_damage(by, found)
        return verification.describe(found, "checked" if headed else "not checked")

    def _verify_links(self, found: verification.Inspection) -> None:
        if found.damaged:
            return
        try:
            reader = self._reader()
            reader.policy()
            for memory in reader.memories(reader.latest_memories()).values():
                cited = () if memory.damaged else cited_episodes(memory.latest)
                verification.inspect_memory(memory, reader.threads(cited), found)
            for thread in reader.all_threads():
                del thread
        except LearningError as error:
            name = error.details.get("record_id") or error.details.get("group")
            found.report(error.code, name, error.message)
            found.damaged.append(str(name).removeprefix("e:"))

    def _mark_damage(self, by: Principal, found: verification.Inspection) -> None:
        try:
            reader = self._reader()
            policy = reader.policy()
            earlier = len(reader.audit(operations=("damage.mark", "damage.clear")))
        except LearningError:
            policy, earlier = Policy(), len(found.problems)
        made = verification.plan_marks(found, policy, scope=self.scope, actor=by, at=self._clock(), earlier=earlier)
        if made is not None:
            try:
                self._commit(made)
            except LearningError as error:
                found.report(error.code, None, f"The damage could not be marked: {error.message}")

    # Shared -------------------------------------------------------------------------------------------------------

    def _reader(self) -> Reader:
        return Reader(self.provider, self.scope)

    def _policy_for(self, reader: Reader, *purposes: str) -> Policy:
        policy = reader.usable_policy()
        for purpose in purposes:
            if not policy.active(purpose, importing.SOURCE):
                raise NotPermitted(
                    f"No active grant permits {purpose} of hub-comments; a person can record one with grants add.",
                    purpose=purpose,
                )
        return policy

    def _find_memory(self, reader: Reader, memory_id: str) -> Memory:
        memory = reader.memories([memory_id]).get(memory_id)
        if memory is None:
            raise NotFound(f"There is no learning {memory_id[:80]}.")
        return memory

    def _latest_records(self, reader: Reader) -> list[CheckedRecord]:
        found = reader.memories(reader.latest_memories())
        return [memory.latest for memory in found.values() if not memory.damaged]

    def _standings(
        self,
        reader: Reader,
        records: Sequence[CheckedRecord],
        policy: Policy,
        at: str,
        *,
        purpose: str = "instruction",
        withheld: frozenset[str] = NOTHING_WITHHELD,
    ) -> list[Standing]:
        supersession = reader.supersession()
        threads = reader.threads(episode for record in records for episode in cited_episodes(record))
        return [
            derive_standing(record, threads, policy, supersession, at=at, purpose=purpose, withheld=withheld)
            for record in records
        ]

    def _change(self, plan: Callable[[Reader], tuple[T, Plan | None]]) -> T:
        """Load, plan, commit; plan again when another writer was first. Raises `Busy` when that never ends."""
        for _ in range(MAX_PLANS):
            result, made = plan(self._reader())
            if made is None:
                return result
            try:
                self._commit(made)
            except (HeadMoved, Conflict):
                continue
            return result
        raise Busy("Other writers kept changing what this operation reads; run it again.")

    def _commit(self, made: Plan) -> None:
        """The one place that writes: a plan, whole or not at all."""
        if made.memory is not None:
            record, previous = made.memory
            self.provider.append_memory_version(self.scope, record, previous, made.audit, expected=made.expected)
        elif made.redaction is not None:
            provider = cast("RedactingProvider", self.provider)
            provider.redact_record(self.scope, made.redaction, made.audit, expected=made.expected)
        else:
            records = cast("Mapping[Any, Sequence[Any]]", made.records)
            self.provider.append_batch(self.scope, records, made.audit, expected=made.expected)


class _Refused(Exception):
    """A consolidator's proposal that the store does not save."""

    def __init__(self, proposal: Mapping[str, Any], reason: str, detail: str) -> None:
        super().__init__(reason)
        content = proposal.get("content")
        named = content if isinstance(content, Mapping) else {}
        self.theme = str(named.get("theme", ""))[:80]
        self.category = str(named.get("category", ""))[:80]
        self.diagnostic = {"reason": reason, "detail": detail}


def _read_input(source: bytes | str | Path) -> bytes | str:
    if not isinstance(source, Path):
        return source
    try:
        if source.stat().st_size > MAX_BYTES:
            raise InvalidJson(f"{source.name} has more than {MAX_BYTES:,} bytes.")
        return source.read_bytes()
    except OSError as error:
        raise NotFound(f"{source} cannot be read: {error.strerror}.") from None


def _bound(text: str | None) -> str | None:
    return None if text is None else normalize_bound(text)


def _describe_usage(usage: Usage) -> dict[str, int]:
    return {
        "requests": usage.requests,
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "nanoAiu": usage.nano_aiu,
    }


def _names_theme(item: Any) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("category"), str) and isinstance(item.get("theme"), str)


def _proposed_episodes(proposal: Mapping[str, Any]) -> list[str]:
    """The episodes that a proposal, not yet checked, names."""
    listed = [proposal.get(side) for side in ("evidence", "counterevidence")]
    references = [reference for side in listed if isinstance(side, list) for reference in side]
    names = {reference.get("episodeId") for reference in references if isinstance(reference, Mapping)}
    return sorted(name for name in names if isinstance(name, str))


def _needs_attention(use: Standing) -> str | None:
    if use.record["state"] not in ("proposed", "accepted"):
        return None
    if use.void or use.conflicted:
        return "conflicted"
    if "identity" in use.refusals or "identity_corrected" in use.refusals:
        return "identity_needs_review"
    return None if use.permitted else "needs_rebuild"

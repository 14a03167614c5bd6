"""Collection: import comments, and label them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from learning_core.audit import Plan
from learning_core.canonical import parse_json
from learning_core.comment_log import Snapshot, read_snapshot
from learning_core.errors import InvalidArgument, LearningError
from learning_core.evidence import Thread
from learning_core.identifiers import Principal, episode_id, parse_principal
from learning_core.plugins import LabelAnswer, MemoryLabeler, Usage
from learning_core.provider import Query
from learning_core.reader import Reader
from learning_core.records import check_valid
from learning_core.store.base import NOTHING_WITHHELD, bulk_work, normalize_optional, read_input
from learning_core.store.removing import RemovalOperations
from learning_core.workflows import importing, labeling, redaction


class CollectionOperations(RemovalOperations):
    """Imports and labels. An import may end with the removal of what was deleted at its source."""

    @bulk_work()
    def import_comments(
        self, by: Principal, log: bytes | str | Path, *, redact_deleted: bool = False, repository: int | None = None
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
        ids = [episode_id(self.scope, snapshot.hub_origin, thread.root.id) for thread in snapshot.threads]
        outcome = importing.plan_import(
            snapshot,
            scope=self.scope,
            policy=policy,
            collections=reader.collections(),
            threads=reader.threads(ids),
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

    def record_labels(self, by: Principal, labels: bytes | str | Path) -> dict[str, Any]:
        """Record the labels of a labels file: all of them, or none.

        Returns `{"considered", "labeled", "remaining", "usage"}`: `labeled` comments have a new labelling. Raises
        `InvalidJson`, `InvalidRecord`, `NotFound`, `NotPermitted`.
        """
        document = parse_json(read_input(labels))
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

    @bulk_work()
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
        `on_progress(done, total)` counts comments. Returns `{"considered", "labeled", "remaining", "usage"}`. A failure
        after labelling began raises the labeler's or the storage's error with that partial report in
        `details["labelingResult"]`.
        """
        if any(bound is not None and bound < 1 for bound in (max_requests, limit)):
            raise InvalidArgument("max-requests and limit must be positive whole numbers.")
        name = parse_principal(f"agent:{labeler.manifest()['id']}", assurance=by.assurance)
        since_bound = normalize_optional(since)
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


def _describe_usage(usage: Usage) -> dict[str, int]:
    return {
        "requests": usage.requests,
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "nanoAiu": usage.nano_aiu,
    }


def _names_theme(item: Any) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("category"), str) and isinstance(item.get("theme"), str)

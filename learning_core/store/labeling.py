"""Labels: ask a labeler about each comment once, and record labels that somebody else wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

from learning_core.audit import Plan
from learning_core.canonical import MAX_INTEGER, parse_json
from learning_core.errors import InvalidArgument, LearningError, PluginFailed
from learning_core.evidence import Thread
from learning_core.identifiers import Principal, parse_principal
from learning_core.plugins import LabelAnswer, LabelRequest, MemoryLabeler, Usage
from learning_core.provider import Query
from learning_core.reader import Reader
from learning_core.records import check_valid
from learning_core.store.base import NOTHING_WITHHELD, StoreBase, bulk_work, normalize_optional, read_input
from learning_core.workflows import labeling, redaction

Themes = set[tuple[str, str]]


class LabelingOperations(StoreBase):
    """Labels by a labeler, and labels by others."""

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
        `details["labelingResult"]`, where `usageError` and `progressError` (`{"code", "message"}`) say which of its
        numbers could not be verified.
        """
        if any(bound is not None and bound < 1 for bound in (max_requests, limit)):
            raise InvalidArgument("max-requests and limit must be positive whole numbers.")
        name = parse_principal(f"agent:{labeler.manifest()['id']}", assurance=by.assurance)
        bound = normalize_optional(since)
        groups = self._find_groups(name, bound, withheld_comments)
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
                answer = _ask(labeler, group.request(sorted(themes), model))
                usage += answer.usage
                report["usage"] = _describe_usage(usage)
                labeled, named = self._store_answer(group, answer, name, withheld_comments)
            except LearningError as error:
                _add_known_usage(report, usage, error)
                self._check_progress(report, group, name, bound, withheld_comments)
                error.details["labelingResult"] = report
                raise
            themes |= named
            report["considered"] += len(group.asked)
            report["labeled"] += labeled
            report["remaining"] = total - report["considered"]
            if on_progress is not None:
                on_progress(report["considered"], total)
        return report

    def _find_groups(self, labeler: Principal, since: str | None, withheld: frozenset[str]) -> list[labeling.Group]:
        reader = self._reader()
        policy = self._policy_for(reader, "review")
        return list(labeling.group_threads(reader.all_threads(), labeler.id, policy, since=since, withheld=withheld))

    def _store_answer(
        self, group: labeling.Group, answer: LabelAnswer, labeler: Principal, withheld: frozenset[str]
    ) -> tuple[int, Themes]:
        episodes = group.episodes

        def plan(reader: Reader) -> tuple[tuple[int, Themes], Plan | None]:
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
            return (labeled, labeling.named_themes(made)), made

        return self._change(plan)

    def _check_progress(
        self,
        report: dict[str, Any],
        group: labeling.Group,
        labeler: Principal,
        since: str | None,
        withheld: frozenset[str],
    ) -> None:
        """After a failure, look at what is stored: a write may have committed before it reported an error."""
        try:
            threads = self._reader().threads(group.episodes)
            done, labeled = labeling.count_done(group, threads, labeler.id)
            left = self._find_groups(labeler, since, withheld)
            report["considered"] += done
            report["labeled"] += labeled
            report["remaining"] = sum(len(own.asked) for own in left)
        except LearningError as error:
            report["progressError"] = {"code": error.code, "message": error.message}

    def _themes_in_use(self) -> Themes:
        return {
            (record["content"]["category"], record["content"]["theme"])
            for record in self._latest_records(self._reader())
            if record["state"] in ("proposed", "accepted")
        }


def _ask(labeler: MemoryLabeler, request: LabelRequest) -> LabelAnswer:
    """What a labeler, which is somebody's own code, answers. Raises `PluginFailed` where it fails."""
    name = str(labeler.manifest()["id"])[:80]
    try:
        answer: Any = labeler.label(request)
    except LearningError:
        raise
    except Exception as error:
        raise PluginFailed(f"The labeler {name} failed ({type(error).__name__}).") from error
    if not isinstance(answer, LabelAnswer) or not isinstance(answer.labels, (list, tuple)):
        raise PluginFailed(f"The labeler {name} returned no LabelAnswer.")
    if not _is_usage(answer.usage):
        raise PluginFailed(f"The labeler {name} reported a usage that is no whole, safe number.", usage=answer.usage)
    return answer


def _is_usage(usage: Any) -> bool:
    return isinstance(usage, Usage) and all(type(n) is int and 0 <= n <= MAX_INTEGER for n in astuple(usage))


def _add_known_usage(report: dict[str, Any], usage: Usage, error: LearningError) -> None:
    """Count what a failed request is known to have cost; what cannot be verified is named, never estimated."""
    known = error.details.pop("usage", None)
    if _is_usage(known):
        report["usage"] = _describe_usage(usage + known)
    elif known is not None:
        message = "The usage of the failed request is no whole, safe number; it is not counted."
        report["usageError"] = {"code": "invalid_usage", "message": message}


def _describe_usage(usage: Usage) -> dict[str, int]:
    return {
        "requests": usage.requests,
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "nanoAiu": usage.nano_aiu,
    }

"""Export: copy out what a purpose may use, and read single events for a purpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from learning_core.audit import Plan
from learning_core.errors import InvalidArgument
from learning_core.evidence import Thread
from learning_core.identifiers import Principal
from learning_core.provider import Query
from learning_core.reader import Reader
from learning_core.records import CheckedRecord
from learning_core.store.base import NOTHING_WITHHELD, StoreBase, bulk_work, normalize_optional
from learning_core.workflows import consent, exporting


class ExportOperations(StoreBase):
    """What leaves the store, for which purpose."""

    @bulk_work()
    def export(self, by: Principal, *, purpose: str, learnings_only: bool = False) -> dict[str, Any]:
        """Copy out what a purpose may use now, and record every ID and digest with the grants that permitted it.

        Returns `{"manifest", "bundle"}`; the bundle holds the manifest and the records. It is recorded before it is
        returned, so that nothing leaves without a manifest. Raises `NotAPerson`, `NotPermitted`, `InvalidArgument`.
        """
        exporting.check_request(by)
        consent.check_purposes([purpose])
        nonce = self._new_id()

        def plan(reader: Reader) -> tuple[tuple[exporting.Bundle, CheckedRecord], Plan]:
            change = reader.expect_change()
            policy = self._policy_for(reader, purpose)
            at = self._clock()
            intact = [memory.latest for memory in reader.all_memories().values() if not memory.damaged]
            standings = self._standings(reader, intact, policy, at, purpose=purpose)
            threads = reader.all_threads()
            bundle = exporting.collect(threads, standings, policy, purpose, learnings_only=learnings_only)
            manifest, made = exporting.plan_export(
                bundle,
                by,
                scope=self.scope,
                purpose=purpose,
                learnings_only=learnings_only,
                expected=change,
                nonce=nonce,
                at=at,
            )
            return (bundle, manifest), made

        bundle, manifest = self._change(plan)
        return {"manifest": dict(manifest.data), "bundle": exporting.describe_bundle(bundle, manifest)}

    @bulk_work()
    def observations(
        self,
        *,
        purpose: str,
        event_ids: Sequence[str] | None = None,
        episode_ids: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        time_from: str | None = None,
        time_to: str | None = None,
        withheld_comments: frozenset[str] = NOTHING_WITHHELD,
    ) -> dict[str, Any]:
        """The events that a purpose may use now and every filter selects, with the episodes that contain them.

        `event_ids` names at most 100; an empty list selects nothing, None everything. What does not exist or may not be
        used is left out. Returns `{"episodes", "events"}`. Raises `NotPermitted`, `InvalidArgument`.
        """
        consent.check_purposes([purpose])
        if event_ids is not None and len(event_ids) > exporting.MAX_EVENT_IDS:
            raise InvalidArgument(f"At most {exporting.MAX_EVENT_IDS} events can be named in one call.")
        reader = self._reader()
        policy = self._policy_for(reader, purpose)
        wanted = None if event_ids is None else frozenset(event_ids)
        episodes: list[dict[str, Any]] = []
        events: list[dict[str, Any]] = []
        for thread in self._find_threads(reader, event_ids, episode_ids):
            selected = exporting.select_events(
                thread,
                exporting.find_permitted(thread, purpose, policy, withheld_comments),
                event_ids=wanted,
                types=types,
                time_from=normalize_optional(time_from),
                time_to=normalize_optional(time_to),
            )
            if selected:
                episodes.append(dict(thread.episode.data))
                events += [dict(event.data) for event in selected]
        return {"episodes": episodes, "events": events}

    def _find_threads(
        self, reader: Reader, event_ids: Sequence[str] | None, episode_ids: Sequence[str] | None
    ) -> list[Thread]:
        if event_ids is None and episode_ids is None:
            return list(reader.all_threads())
        named = None if event_ids is None else reader.find_event_episodes(Query(ids=tuple(event_ids)))
        if named is not None and episode_ids is not None:
            named = [episode for episode in named if episode in set(episode_ids)]
        threads = reader.threads(named if named is not None else list(episode_ids or ()))
        return [thread for thread in threads.values() if thread is not None]

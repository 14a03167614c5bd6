"""`read_records`: every filter alone and together, paging, order."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from learning_core.errors import InvalidArgument
from learning_core.provider import STREAMS, MemoryProvider, Query, hub_comment_id
from providers.conformance.samples import Samples, moment
from providers.conformance.storage.suite import ANOTHER_HOST, Batch, StorageSuite, read_ids

Matches = Callable[[Mapping[str, Any]], bool]

_SAMPLES = Samples()
_EPISODES = [_SAMPLES.episode(n) for n in (1, 2, 3)]
_COMMENTS = [
    _SAMPLES.comment(_EPISODES[0], 10, comment_id="c1"),
    _SAMPLES.comment(_EPISODES[0], 11, comment_id="c1"),
    _SAMPLES.comment(_EPISODES[0], 12, comment_id="c2"),
    _SAMPLES.comment(_EPISODES[1], 13, comment_id="c3"),
]
_GONE = _SAMPLES.redacted(_SAMPLES.comment(_EPISODES[1], 14, comment_id="c1"))
_EVENTS = [
    *_COMMENTS,
    _GONE,
    _SAMPLES.label(_COMMENTS[0], 20),
    _SAMPLES.label(_COMMENTS[0], 21),
    _SAMPLES.label(_COMMENTS[3], 22),
    _SAMPLES.retraction(_COMMENTS[2], 23),
    _SAMPLES.status_change(_EPISODES[0], 24),
]
_GROUPS = [f"e:{episode.id}" for episode in _EPISODES]

EVENT_FILTERS: list[tuple[Query, Matches]] = [
    (Query(), lambda event: True),
    (Query(ids=(_COMMENTS[1].id,)), lambda event: event["id"] == _COMMENTS[1].id),
    (
        Query(ids=(_EVENTS[8].id, _COMMENTS[0].id, "event_unknown")),
        lambda event: event["id"] in {_EVENTS[8].id, _COMMENTS[0].id},
    ),
    (Query(groups=(_GROUPS[0],)), lambda event: event["episodeId"] == _EPISODES[0].id),
    (
        Query(groups=(_GROUPS[1], _GROUPS[0], _GROUPS[2])),
        lambda event: event["episodeId"] in {_EPISODES[0].id, _EPISODES[1].id},
    ),
    (Query(types=("label",)), lambda event: event["type"] == "label"),
    (Query(types=("comment", "retraction")), lambda event: event["type"] in {"comment", "retraction"}),
    (Query(parents=(_COMMENTS[0].id,)), lambda event: event.get("parentEventId") == _COMMENTS[0].id),
    (
        Query(parents=(_COMMENTS[3].id, _COMMENTS[2].id)),
        lambda event: event.get("parentEventId") in {_COMMENTS[3].id, _COMMENTS[2].id},
    ),
    (Query(comment_ids=("c1",)), lambda event: hub_comment_id(event) == "c1"),
    (Query(comment_ids=("c3", "c2")), lambda event: hub_comment_id(event) in {"c3", "c2"}),
    (Query(time_from=moment(13)), lambda event: event["occurredAt"] >= moment(13)),
    (Query(time_to=moment(13)), lambda event: event["occurredAt"] < moment(13)),
    (
        Query(time_from=moment(12), time_to=moment(21)),
        lambda event: moment(12) <= event["occurredAt"] < moment(21),
    ),
    (
        Query(groups=(_GROUPS[0],), types=("comment",), comment_ids=("c1", "c3"), time_from=moment(11)),
        lambda event: event["id"] == _COMMENTS[1].id,
    ),
    (
        Query(ids=(_COMMENTS[0].id, _COMMENTS[3].id), groups=(_GROUPS[1],)),
        lambda event: event["id"] == _COMMENTS[3].id,
    ),
    (
        Query(parents=(_COMMENTS[0].id,), types=("label",), time_to=moment(21)),
        lambda event: event["id"] == _EVENTS[5].id,
    ),
    (Query(operations=("import",)), lambda event: False),
    (Query(comment_ids=("c1",), types=("label",)), lambda event: False),
    (Query(time_from=moment(50), time_to=moment(40)), lambda event: False),
]

EMPTY_FILTERS = [
    Query(ids=()),
    Query(groups=()),
    Query(types=()),
    Query(parents=()),
    Query(comment_ids=()),
    Query(operations=()),
]


class ReadingTests(StorageSuite):
    """Filters, paging and order over the append-only streams."""

    @pytest.fixture
    def filled(self, provider: MemoryProvider) -> MemoryProvider:
        entries = [_SAMPLES.audit(operation, n) for n, operation in enumerate(["import", "recall", "label", "recall"])]
        batch: Batch = {"episodes": _EPISODES, "events": _EVENTS}
        provider.append_batch(_SAMPLES.scope, batch, entries)
        elsewhere = ANOTHER_HOST.episode(1)
        other_batch: Batch = {"episodes": [elsewhere], "events": [ANOTHER_HOST.comment(elsewhere, 10, comment_id="c1")]}
        provider.append_batch(ANOTHER_HOST.scope, other_batch, [ANOTHER_HOST.audit("import", 1)])
        return provider

    def test_a_store_that_does_not_exist_yet_reads_as_empty(self, provider: MemoryProvider, samples: Samples) -> None:
        for stream in STREAMS:
            assert list(provider.read_records(samples.scope, stream, Query())) == []
        assert list(provider.read_records(samples.scope, "events", Query(ids=("event_x",), limit=5))) == []

    @pytest.mark.parametrize(("query", "matches"), EVENT_FILTERS, ids=lambda value: "")
    def test_events_are_filtered(self, filled: MemoryProvider, query: Query, matches: Matches) -> None:
        found = list(filled.read_records(_SAMPLES.scope, "events", query))
        expected = [event.canonical for event in _EVENTS if matches(event.data)]
        assert [row.canonical for row in found] == expected
        assert [row.position for row in found] == sorted(row.position for row in found)

    @pytest.mark.parametrize("query", EMPTY_FILTERS, ids=lambda query: "")
    def test_an_empty_filter_matches_nothing(self, filled: MemoryProvider, query: Query) -> None:
        for stream in STREAMS:
            assert list(filled.read_records(_SAMPLES.scope, stream, query)) == []

    @pytest.mark.parametrize(
        ("query", "only"),
        [
            (Query(ids=(_COMMENTS[0].id,)), "events"),
            (Query(ids=(_EPISODES[0].id,)), "episodes"),
            (Query(types=("comment",)), "events"),
            (Query(parents=(_COMMENTS[0].id,)), "events"),
            (Query(comment_ids=("c1",)), "events"),
            (Query(operations=("recall",)), "audit"),
        ],
        ids=lambda value: "",
    )
    def test_a_filter_finds_records_of_the_stream_that_is_read_only(
        self, filled: MemoryProvider, query: Query, only: str
    ) -> None:
        for stream in STREAMS:
            assert bool(list(filled.read_records(_SAMPLES.scope, stream, query))) == (stream == only)

    def test_a_group_holds_its_episode_and_its_events(self, filled: MemoryProvider) -> None:
        query = Query(groups=(_GROUPS[1], _GROUPS[2]))
        found = read_ids(filled.read_records(_SAMPLES.scope, "episodes", query))
        assert found == [_EPISODES[1].id, _EPISODES[2].id]
        assert read_ids(filled.read_records(_SAMPLES.scope, "episodes", Query(groups=("policy",)))) == []

    def test_a_redacted_comment_is_found_by_its_hub_comment_id(self, filled: MemoryProvider) -> None:
        found = read_ids(filled.read_records(_SAMPLES.scope, "events", Query(comment_ids=("c1",))))
        assert found == [_COMMENTS[0].id, _COMMENTS[1].id, _GONE.id]

    def test_audit_entries_are_filtered_by_operation(self, filled: MemoryProvider) -> None:
        for operations, count in [(("recall",), 2), (("import", "label"), 2), (("grant.add",), 0)]:
            rows = list(filled.read_records(_SAMPLES.scope, "audit", Query(operations=operations)))
            assert len(rows) == count
            assert all(json.loads(row.canonical)["operation"] in operations for row in rows)
        later = Query(operations=("recall",), time_from=moment(2))
        assert len(list(filled.read_records(_SAMPLES.scope, "audit", later))) == 1

    @pytest.mark.parametrize(
        ("stream", "member"),
        [
            ("episodes", "startedAt"),
            ("grants", "grantedAt"),
            ("withdrawals", "withdrawnAt"),
            ("collections", "capturedAt"),
            ("exports", "exportedAt"),
        ],
    )
    def test_times_are_each_records_own(
        self, provider: MemoryProvider, samples: Samples, stream: Any, member: str
    ) -> None:
        grant = samples.grant(1)
        make: dict[str, Callable[[int], Any]] = {
            "episodes": samples.episode,
            "grants": samples.grant,
            "withdrawals": lambda n: samples.withdrawal(grant, n),
            "collections": samples.collection,
            "exports": samples.export,
        }
        provider.append_records(samples.scope, stream, [make[stream](n) for n in range(6)], [])
        rows = provider.read_records(samples.scope, stream, Query(time_from=moment(2), time_to=moment(4)))
        assert [json.loads(row.canonical)[member] for row in rows] == [moment(2), moment(3)]

    @pytest.mark.parametrize(
        "query",
        [Query(), Query(types=("comment",)), Query(groups=tuple(_GROUPS)), Query(ids=tuple(e.id for e in _EVENTS))],
        ids=["all", "one type", "groups", "ids"],
    )
    def test_pages_join_to_the_whole(self, filled: MemoryProvider, query: Query) -> None:
        whole = list(filled.read_records(_SAMPLES.scope, "events", query))
        for size in (1, 3, len(whole), len(whole) + 1):
            pages = []
            after: int | None = None
            while page := list(filled.read_records(_SAMPLES.scope, "events", _page(query, after, size))):
                assert len(page) <= size
                pages += page
                after = page[-1].position
            assert pages == whole
        assert list(filled.read_records(_SAMPLES.scope, "events", _page(query, None, 0))) == []
        assert list(filled.read_records(_SAMPLES.scope, "events", _page(query, 10**6, 5))) == []

    def test_a_filter_may_name_thousands(self, filled: MemoryProvider) -> None:
        many = tuple(f"e:episode_{n}" for n in range(40_000))
        query = Query(groups=(*many, _GROUPS[1]))
        assert len(list(filled.read_records(_SAMPLES.scope, "events", query))) == 3
        assert len(list(filled.read_records(_SAMPLES.scope, "events", Query(ids=(*many, _GONE.id))))) == 1

    def test_an_unknown_stream_is_refused(self, filled: MemoryProvider) -> None:
        stream: Any = "memories"
        with pytest.raises(InvalidArgument):
            list(filled.read_records(_SAMPLES.scope, stream, Query()))
        with pytest.raises(InvalidArgument):
            filled.append_records(_SAMPLES.scope, stream, [_SAMPLES.memory(1)], [])

    def test_a_write_between_two_pages_of_a_read_does_no_harm(self, filled: MemoryProvider) -> None:
        rows = iter(filled.read_records(_SAMPLES.scope, "events", Query()))
        first = next(rows)
        filled.append_records(_SAMPLES.scope, "audit", [], [_SAMPLES.audit("recall", 99)])
        assert [first.canonical, *(row.canonical for row in rows)] == [event.canonical for event in _EVENTS]


def _page(query: Query, after: int | None, limit: int) -> Query:
    return Query(ids=query.ids, groups=query.groups, types=query.types, after=after, limit=limit)

"""Several writers at once: one wins, nobody's write is lost or mixed with another's."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from learning_core.errors import Conflict
from learning_core.provider import MemoryProvider, MemoryQuery, Query
from providers.conformance.samples import Samples
from providers.conformance.storage.suite import StorageSuite, check_numbered, read_everything

WRITERS = 6


class ConcurrencyTests(StorageSuite):
    """Threads, each with a provider of its own over the same storage."""

    def test_one_of_many_versions_wins(self, open_provider: Callable[[], MemoryProvider], samples: Samples) -> None:
        first = samples.memory(1)
        open_provider().append_memory_version(samples.scope, first, None, [])
        barrier = Barrier(WRITERS)

        def decide(n: int) -> bool:
            state = ("accepted", "rejected")[n % 2]
            second = samples.memory(1, after=first, state=state, theme=f"theme-{n}")
            provider = open_provider()
            barrier.wait()
            try:
                provider.append_memory_version(samples.scope, second, first.digest, [samples.audit("memory.accept", n)])
            except Conflict:
                return False
            return True

        with ThreadPoolExecutor(WRITERS) as pool:
            won = list(pool.map(decide, range(WRITERS)))
        assert won.count(True) == 1
        (latest,) = open_provider().read_memory_versions(samples.scope, MemoryQuery(latest=True))
        winner = won.index(True)
        state = ("accepted", "rejected")[winner % 2]
        assert latest.canonical == samples.memory(1, after=first, state=state, theme=f"theme-{winner}").canonical
        check_numbered(open_provider(), samples.scope, 3)

    def test_writes_neither_mix_nor_get_lost(
        self, open_provider: Callable[[], MemoryProvider], samples: Samples
    ) -> None:
        """Each writer's batches stand together and in its own order; no position is used twice or left out."""
        episode = samples.episode(1)
        barrier = Barrier(WRITERS)

        def write(writer: int) -> None:
            provider = open_provider()
            barrier.wait()
            for n in range(writer * 100, writer * 100 + 10):
                events = [samples.comment(episode, n, comment_id="a"), samples.status_change(episode, n + 50)]
                provider.append_records(samples.scope, "events", events, [samples.audit("import", n)])

        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(write, range(WRITERS)))
        check_numbered(open_provider(), samples.scope, WRITERS * 10 * 3)
        stored = [canonical for _, _, canonical in read_everything(open_provider(), samples.scope)]
        for writer in range(WRITERS):
            places = []
            for n in range(writer * 100, writer * 100 + 10):
                place = stored.index(samples.comment(episode, n, comment_id="a").canonical)
                assert stored[place + 1] == samples.status_change(episode, n + 50).canonical
                assert stored[place + 2] == samples.audit("import", n).canonical
                places.append(place)
            assert places == sorted(places)

    def test_a_record_that_all_writers_store_is_stored_once(
        self, open_provider: Callable[[], MemoryProvider], samples: Samples
    ) -> None:
        barrier = Barrier(WRITERS)

        def write(_writer: int) -> None:
            provider = open_provider()
            barrier.wait()
            provider.append_records(samples.scope, "grants", [samples.grant(1)], [samples.audit("grant.add", 1)])

        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(write, range(WRITERS)))
        check_numbered(open_provider(), samples.scope, 2)

    def test_a_reader_sees_whole_writes_only(
        self, open_provider: Callable[[], MemoryProvider], samples: Samples
    ) -> None:
        episode = samples.episode(1)

        def write() -> None:
            provider = open_provider()
            for n in range(0, 100, 5):
                events = [samples.comment(episode, n + part, comment_id="a") for part in range(5)]
                provider.append_records(samples.scope, "events", events, [])

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            counts = [0]
            while not writing.done():
                counts.append(len(list(open_provider().read_records(samples.scope, "events", Query()))))
            writing.result()
        assert counts == sorted(counts)
        assert [count for count in counts if count % 5] == []
        assert len(list(open_provider().read_records(samples.scope, "events", Query()))) == 100

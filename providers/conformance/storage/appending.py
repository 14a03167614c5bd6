"""`append_records` and `append_batch`: whole or not at all, once, in order, and still there later."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from learning_core.errors import Conflict
from learning_core.provider import MemoryProvider, Query, Row
from providers.conformance.samples import Samples
from providers.conformance.storage.suite import (
    ANOTHER_HOST,
    Batch,
    StorageSuite,
    check_numbered,
    read_everything,
    read_ids,
)


class AppendingTests(StorageSuite):
    """Records of the append-only streams."""

    def test_a_record_is_kept_byte_for_byte_with_its_audit_entry(
        self, provider: MemoryProvider, samples: Samples
    ) -> None:
        grant, entry = samples.grant(1, reason='Ünïcode, "quotes", \n and 👩‍💻.'), samples.audit("grant.add", 1)
        provider.append_records(samples.scope, "grants", [grant], [entry])
        assert list(provider.read_records(samples.scope, "grants", Query())) == [Row(1, grant.canonical)]
        assert list(provider.read_records(samples.scope, "audit", Query())) == [Row(2, entry.canonical)]

    def test_each_stream_keeps_its_own_records(self, provider: MemoryProvider, samples: Samples) -> None:
        episode, grant = samples.episode(1), samples.grant(1)
        records: Batch = {
            "episodes": [episode],
            "events": [samples.comment(episode, 1)],
            "grants": [grant],
            "withdrawals": [samples.withdrawal(grant, 1)],
            "collections": [samples.collection(1)],
            "exports": [samples.export(1)],
        }
        entry = samples.audit("import", 1)
        provider.append_batch(samples.scope, records, [entry])
        for stream, (record,) in {**records, "audit": [entry]}.items():
            assert read_ids(provider.read_records(samples.scope, stream, Query())) == [record.id]

    def test_rows_are_numbered_over_all_streams_in_the_order_given(
        self, provider: MemoryProvider, samples: Samples
    ) -> None:
        episode = samples.episode(1)
        events = [samples.comment(episode, n) for n in (3, 1, 2)]
        entries = [samples.audit("import", n) for n in (1, 2)]
        provider.append_batch(samples.scope, {"events": events, "episodes": [episode]}, entries)
        provider.append_records(samples.scope, "grants", [samples.grant(1)], [samples.audit("grant.add", 1)])
        stored = [canonical for _, _, canonical in read_everything(provider, samples.scope)]
        expected = [*events, episode, *entries, samples.grant(1), samples.audit("grant.add", 1)]
        assert stored == [record.canonical for record in expected]
        check_numbered(provider, samples.scope, 8)

    def test_a_record_that_is_stored_is_skipped_and_so_is_its_audit_entry(
        self, provider: MemoryProvider, samples: Samples
    ) -> None:
        episode = samples.episode(1)
        first, second = samples.comment(episode, 1), samples.comment(episode, 2)
        entry = samples.audit("import", 1)
        provider.append_batch(samples.scope, {"episodes": [episode], "events": [first]}, [entry])
        before = read_everything(provider, samples.scope)
        provider.append_batch(samples.scope, {"episodes": [episode], "events": [first]}, [entry])
        assert read_everything(provider, samples.scope) == before
        provider.append_batch(samples.scope, {"events": [first, second, second]}, [entry, entry])
        assert read_ids(provider.read_records(samples.scope, "events", Query())) == [first.id, second.id]
        check_numbered(provider, samples.scope, 4)

    def test_a_missing_audit_entry_is_added_for_a_record_that_is_stored(
        self, provider: MemoryProvider, samples: Samples
    ) -> None:
        provider.append_records(samples.scope, "grants", [samples.grant(1)], [samples.audit("grant.add", 1)])
        provider.append_records(samples.scope, "grants", [samples.grant(1)], [samples.audit("grant.add", 2)])
        assert len(list(provider.read_records(samples.scope, "audit", Query()))) == 2
        check_numbered(provider, samples.scope, 3)

    @pytest.mark.parametrize("place", ["stored", "same call"])
    def test_another_record_under_a_known_id_is_a_conflict(
        self, provider: MemoryProvider, samples: Samples, place: str
    ) -> None:
        known, other = samples.grant(1), samples.grant(1, reason="Something else.")
        assert known.id == other.id
        given = [known, other]
        if place == "stored":
            provider.append_records(samples.scope, "grants", [known], [])
            given = [other]
        before = read_everything(provider, samples.scope)
        with pytest.raises(Conflict) as refusal:
            provider.append_records(samples.scope, "grants", given, [samples.audit("grant.add", 1)])
        assert refusal.value.details["record_id"] == known.id
        assert read_everything(provider, samples.scope) == before

    def test_a_batch_that_fails_in_the_middle_stores_nothing(self, provider: MemoryProvider, samples: Samples) -> None:
        episode = samples.episode(1)
        provider.append_records(samples.scope, "grants", [samples.grant(1)], [samples.audit("grant.add", 1)])
        before = read_everything(provider, samples.scope)
        batch: Batch = {
            "episodes": [episode],
            "events": [samples.comment(episode, n) for n in range(20)],
            "grants": [samples.grant(2), samples.grant(1, reason="Something else."), samples.grant(3)],
        }
        with pytest.raises(Conflict):
            provider.append_batch(samples.scope, batch, [samples.audit("import", 1)])
        assert read_everything(provider, samples.scope) == before
        del batch["grants"]
        provider.append_batch(samples.scope, batch, [samples.audit("import", 1)])
        check_numbered(provider, samples.scope, 2 + 22)

    def test_a_conflicting_audit_entry_stores_nothing(self, provider: MemoryProvider, samples: Samples) -> None:
        provider.append_records(samples.scope, "grants", [samples.grant(1)], [samples.audit("grant.add", 1)])
        before = read_everything(provider, samples.scope)
        other = samples.audit("grant.add", 1, at=50)
        with pytest.raises(Conflict):
            provider.append_records(samples.scope, "grants", [samples.grant(2)], [other])
        assert read_everything(provider, samples.scope) == before

    def test_an_audit_entry_may_stand_alone(self, provider: MemoryProvider, samples: Samples) -> None:
        entry = samples.audit("recall", 1)
        provider.append_records(samples.scope, "audit", [], [entry])
        provider.append_batch(samples.scope, {}, [samples.audit("recall", 2)])
        assert len(list(provider.read_records(samples.scope, "audit", Query()))) == 2

    def test_scopes_never_mix(self, provider: MemoryProvider, samples: Samples) -> None:
        """One owner and name on two hosts are two scopes; the same ID may stand in both with other contents."""
        here, there = samples.grant(1), ANOTHER_HOST.grant(1)
        provider.append_records(samples.scope, "grants", [here], [samples.audit("grant.add", 1)])
        provider.append_records(ANOTHER_HOST.scope, "grants", [there], [ANOTHER_HOST.audit("grant.add", 1)])
        same_id = samples.grant(1, reason="Under the same ID, elsewhere.")
        provider.append_records(ANOTHER_HOST.scope, "grants", [same_id], [])
        assert read_ids(provider.read_records(samples.scope, "grants", Query())) == [here.id]
        assert read_ids(provider.read_records(ANOTHER_HOST.scope, "grants", Query())) == [there.id, same_id.id]
        assert read_ids(provider.read_records(samples.scope, "grants", Query(ids=(there.id,)))) == []
        check_numbered(provider, samples.scope, 2)
        check_numbered(provider, ANOTHER_HOST.scope, 3)

    def test_what_was_acknowledged_is_there_after_reopening(
        self, open_provider: Callable[[], MemoryProvider], samples: Samples
    ) -> None:
        episode = samples.episode(1)
        for n in range(1, 6):
            batch: Batch = {"episodes": [episode], "events": [samples.comment(episode, n)]}
            open_provider().append_batch(samples.scope, batch, [samples.audit("import", n)])
        memory = samples.memory(1)
        open_provider().append_memory_version(samples.scope, memory, None, [samples.audit("memory.propose", 1)])
        check_numbered(open_provider(), samples.scope, 1 + 5 * 2 + 2)
        assert read_everything(open_provider(), samples.scope)[-2][2] == memory.canonical

    def test_many_records_in_one_batch(self, provider: MemoryProvider, samples: Samples) -> None:
        episode = samples.episode(1)
        events = [samples.comment(episode, n % 3600, comment_id=f"c{n}") for n in range(1, 2501)]
        provider.append_batch(samples.scope, {"episodes": [episode], "events": events}, [samples.audit("import", 1)])
        stored = [row.canonical for row in provider.read_records(samples.scope, "events", Query())]
        assert stored == [event.canonical for event in events]

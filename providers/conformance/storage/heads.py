"""`integrity.head`: `read_heads`, and `expected` on every write."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from learning_core.errors import Conflict, HeadMoved
from learning_core.provider import EMPTY_HEAD, HEADS, Head, HeadedProvider
from providers.conformance.samples import Samples
from providers.conformance.storage.suite import (
    ANOTHER_HOST,
    Batch,
    StorageSuite,
    check_numbered,
    compute_heads,
    read_everything,
)


def fill(provider: HeadedProvider, samples: Samples) -> None:
    """Something in every group, in several writes."""
    episodes = [samples.episode(n) for n in (1, 2)]
    events = [samples.comment(episode, n) for n, episode in enumerate(episodes * 3)]
    events.append(samples.redacted(samples.comment(episodes[0], 9)))
    entries = [samples.audit("import", n) for n in range(3)]
    provider.append_batch(samples.scope, {"episodes": episodes, "events": events}, entries)
    provider.append_records(samples.scope, "events", [samples.label(events[0], 20)], [samples.audit("label", 1)])
    grant = samples.grant(1)
    provider.append_records(samples.scope, "grants", [grant], [samples.audit("grant.add", 1)])
    provider.append_batch(
        samples.scope,
        {"withdrawals": [samples.withdrawal(grant, 1)], "collections": [samples.collection(1)]},
        [samples.audit("grant.withdraw", 1), samples.audit("recall", 1)],
    )
    provider.append_records(samples.scope, "exports", [samples.export(1)], [samples.audit("export", 1)])
    proposed = samples.memory(1)
    provider.append_memory_version(samples.scope, proposed, None, [samples.audit("memory.propose", 1)])
    accepted = samples.memory(1, after=proposed, state="accepted")
    provider.append_memory_version(samples.scope, accepted, proposed.digest, [samples.audit("memory.accept", 1)])


class HeadConformance(StorageSuite):
    """A head for each group, advanced inside the write's own transaction and compared after the write lock."""

    capability = HEADS

    def test_a_group_without_rows_has_the_empty_head(self, provider: HeadedProvider, samples: Samples) -> None:
        groups = ["audit", "change", "policy", "e:unknown"]
        assert dict(provider.read_heads(samples.scope, groups)) == dict.fromkeys(groups, EMPTY_HEAD)
        provider.append_records(samples.scope, "grants", [samples.grant(1)], [])
        heads = provider.read_heads(samples.scope, groups)
        assert {group for group, head in heads.items() if head != EMPTY_HEAD} == {"policy"}
        assert dict(provider.read_heads(samples.scope, [])) == {}

    def test_heads_are_what_the_rows_add_up_to(
        self, open_provider: Callable[[], HeadedProvider], samples: Samples
    ) -> None:
        fill(open_provider(), samples)
        fill(open_provider(), ANOTHER_HOST)
        for scope in (samples.scope, ANOTHER_HOST.scope):
            computed = compute_heads(open_provider(), scope)
            assert len(computed) == 9
            assert dict(open_provider().read_heads(scope, list(computed))) == computed

    def test_a_skipped_record_advances_no_head(self, provider: HeadedProvider, samples: Samples) -> None:
        fill(provider, samples)
        computed = compute_heads(provider, samples.scope)
        provider.append_records(samples.scope, "grants", [samples.grant(1)], [samples.audit("grant.add", 1)])
        assert dict(provider.read_heads(samples.scope, list(computed))) == computed

    def test_a_refused_write_advances_no_head(self, provider: HeadedProvider, samples: Samples) -> None:
        fill(provider, samples)
        computed = compute_heads(provider, samples.scope)
        batch: Batch = {"grants": [samples.grant(2), samples.grant(1, reason="Something else.")]}
        with pytest.raises(Conflict):
            provider.append_batch(samples.scope, batch, [samples.audit("grant.add", 2)])
        assert dict(provider.read_heads(samples.scope, list(computed))) == computed

    def test_every_write_compares_the_expected_heads(self, provider: HeadedProvider, samples: Samples) -> None:
        fill(provider, samples)
        before = read_everything(provider, samples.scope)
        (current,) = provider.read_heads(samples.scope, ["policy"]).values()
        stale = {"policy": Head(current.count - 1, current.chain, current.redacted, current.redacted_xor)}
        entry = [samples.audit("recall", 2)]
        proposed = samples.memory(2)
        writes: list[Callable[[], None]] = [
            lambda: provider.append_records(samples.scope, "grants", [samples.grant(2)], entry, expected=stale),
            lambda: provider.append_batch(samples.scope, {"grants": [samples.grant(2)]}, entry, expected=stale),
            lambda: provider.append_memory_version(samples.scope, proposed, None, entry, expected=stale),
            lambda: provider.append_batch(samples.scope, {}, [], expected={"e:unknown": current}),
            lambda: provider.append_batch(samples.scope, {}, entry, expected={"audit": EMPTY_HEAD}),
        ]
        groups = ["policy", "policy", "policy", "e:unknown", "audit"]
        for write, group in zip(writes, groups, strict=True):
            with pytest.raises(HeadMoved) as refusal:
                write()
            assert refusal.value.details["group"] == group
        assert read_everything(provider, samples.scope) == before

    def test_a_write_whose_expected_heads_are_current_is_stored(
        self, provider: HeadedProvider, samples: Samples
    ) -> None:
        fill(provider, samples)
        expected = dict(provider.read_heads(samples.scope, ["policy", "change", "e:unknown"]))
        assert expected["e:unknown"] == EMPTY_HEAD
        provider.append_records(
            samples.scope, "grants", [samples.grant(2)], [samples.audit("grant.add", 2)], expected=expected
        )
        after = provider.read_heads(samples.scope, ["policy", "change", "audit"])
        # The grant and its audit entry both stand in the group `policy`.
        assert after["policy"].count == expected["policy"].count + 2
        assert after["change"].count == expected["change"].count + 1
        assert dict(after) == {group: compute_heads(provider, samples.scope)[group] for group in after}

    def test_a_recall_advances_audit_and_not_change(self, provider: HeadedProvider, samples: Samples) -> None:
        fill(provider, samples)
        before = provider.read_heads(samples.scope, ["audit", "change"])
        provider.append_batch(samples.scope, {}, [samples.audit("recall", 2), samples.audit("recall.set", 1)])
        after = provider.read_heads(samples.scope, ["audit", "change"])
        assert after["change"] == before["change"]
        assert after["audit"].count == before["audit"].count + 2

    def test_expected_heads_serialize_writers(
        self, open_provider: Callable[[], HeadedProvider], samples: Samples
    ) -> None:
        """Writers that read, then write expecting what they read, and read again when they lose: each adds one."""
        writers = 5
        barrier = Barrier(writers)

        def write(n: int) -> int:
            provider = open_provider()
            barrier.wait()
            for attempt in range(1000):
                expected = provider.read_heads(samples.scope, ["policy"])
                grant = samples.grant(expected["policy"].count)
                try:
                    provider.append_records(
                        samples.scope, "grants", [grant], [samples.audit("label", n)], expected=expected
                    )
                except HeadMoved:
                    continue
                return attempt
            raise AssertionError("The writer never won.")

        with ThreadPoolExecutor(writers) as pool:
            list(pool.map(write, range(writers)))
        assert open_provider().read_heads(samples.scope, ["policy"])["policy"].count == writers
        check_numbered(open_provider(), samples.scope, 2 * writers)

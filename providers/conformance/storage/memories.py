"""`append_memory_version` and `read_memory_versions`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from learning_core.errors import Conflict
from learning_core.provider import MemoryProvider, MemoryQuery, Row
from learning_core.records import CheckedRecord
from providers.conformance.samples import LooseRecord, Samples
from providers.conformance.storage.suite import ANOTHER_HOST, StorageSuite, check_numbered, read_everything


def append(provider: MemoryProvider, samples: Samples, *versions: CheckedRecord) -> None:
    """Store versions of one memory in their order."""
    for version in versions:
        provider.append_memory_version(samples.scope, version, version["previousDigest"], [])


class MemoryVersionTests(StorageSuite):
    """Versions of learnings, appended by compare-and-swap."""

    @pytest.fixture
    def versions(self, provider: MemoryProvider, samples: Samples) -> dict[str, CheckedRecord]:
        """Learning 1 accepted, 2 rejected, 3 proposed, 4 retired, in this order; also in another scope, learning 1."""
        made = {}
        for n, theme, states in [
            (1, "color-contrast", ["accepted"]),
            (2, "color-contrast", ["rejected"]),
            (3, "spacing", []),
            (4, "spacing", ["accepted", "retired"]),
        ]:
            version = samples.memory(n, theme=theme)
            append(provider, samples, version)
            made[f"{n} proposed"] = version
            for state in states:
                version = samples.memory(n, after=version, state=state, theme=theme)
                append(provider, samples, version)
                made[f"{n} {state}"] = version
        append(provider, ANOTHER_HOST, ANOTHER_HOST.memory(1))
        return made

    def test_a_version_is_kept_byte_for_byte_with_its_audit_entry(
        self, provider: MemoryProvider, samples: Samples
    ) -> None:
        memory, entry = samples.memory(1), samples.audit("memory.propose", 1)
        provider.append_memory_version(samples.scope, memory, None, [entry])
        assert list(provider.read_memory_versions(samples.scope, MemoryQuery())) == [Row(1, memory.canonical)]
        assert [stream for _, stream, _ in read_everything(provider, samples.scope)] == ["memories", "audit"]

    def test_a_version_follows_the_latest_one_only(self, provider: MemoryProvider, samples: Samples) -> None:
        """The first needs a memory that does not exist; another the digest of the latest version."""
        first = samples.memory(1)
        second = samples.memory(1, after=first, state="accepted")
        third = samples.memory(1, after=second, state="retired")
        refused: list[tuple[CheckedRecord, str | None]] = [(first, first.digest), (second, first.digest)]
        for version, previous in refused:
            with pytest.raises(Conflict):
                provider.append_memory_version(samples.scope, version, previous, [samples.audit("memory.propose", 1)])
        append(provider, samples, first)
        for version, previous in [(first, None), (second, None), (second, second.digest), (third, second.digest)]:
            with pytest.raises(Conflict):
                provider.append_memory_version(samples.scope, version, previous, [samples.audit("memory.propose", 1)])
        append(provider, samples, second)
        with pytest.raises(Conflict):
            append(provider, samples, samples.memory(1, after=first, state="rejected"))
        append(provider, samples, third)
        stored = [canonical for _, _, canonical in read_everything(provider, samples.scope)]
        assert stored == [version.canonical for version in (first, second, third)]
        check_numbered(provider, samples.scope, 3)

    @pytest.mark.parametrize("number", [1, 3])
    def test_version_numbers_are_consecutive(self, provider: MemoryProvider, samples: Samples, number: int) -> None:
        first = samples.memory(1)
        append(provider, samples, first)
        second: Mapping[str, Any] = {**samples.memory(1, after=first).data, "version": number}
        with pytest.raises(Conflict):
            provider.append_memory_version(samples.scope, LooseRecord(second), first.digest, [])
        check_numbered(provider, samples.scope, 1)

    def test_a_conflicting_audit_entry_stores_no_version(self, provider: MemoryProvider, samples: Samples) -> None:
        first = samples.memory(1)
        provider.append_memory_version(samples.scope, first, None, [samples.audit("memory.propose", 1)])
        second = samples.memory(1, after=first, state="accepted")
        with pytest.raises(Conflict):
            provider.append_memory_version(
                samples.scope, second, first.digest, [samples.audit("memory.propose", 1, at=9)]
            )
        check_numbered(provider, samples.scope, 2)

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            (
                MemoryQuery(),
                "1 proposed,1 accepted,2 proposed,2 rejected,3 proposed,4 proposed,4 accepted,4 retired",
            ),
            (MemoryQuery(latest=True), "1 accepted,2 rejected,3 proposed,4 retired"),
            (MemoryQuery(states=("proposed",)), "1 proposed,2 proposed,3 proposed,4 proposed"),
            (MemoryQuery(latest=True, states=("proposed",)), "3 proposed"),
            (MemoryQuery(latest=True, states=("retired", "accepted")), "1 accepted,4 retired"),
            (MemoryQuery(themes=("spacing",)), "3 proposed,4 proposed,4 accepted,4 retired"),
            (
                MemoryQuery(latest=True, themes=("spacing", "color-contrast")),
                "1 accepted,2 rejected,3 proposed,4 retired",
            ),
            (MemoryQuery(latest=True, themes=("spacing",), states=("proposed",)), "3 proposed"),
            (MemoryQuery(themes=("unknown",)), ""),
            (MemoryQuery(states=()), ""),
            (MemoryQuery(themes=()), ""),
            (MemoryQuery(ids=()), ""),
            (MemoryQuery(limit=3), "1 proposed,1 accepted,2 proposed"),
            (MemoryQuery(after=2, limit=2), "2 proposed,2 rejected"),
            (MemoryQuery(latest=True, after=2, limit=2), "2 rejected,3 proposed"),
            (MemoryQuery(limit=0), ""),
        ],
        ids=lambda value: "",
    )
    def test_versions_are_filtered(
        self,
        provider: MemoryProvider,
        samples: Samples,
        versions: dict[str, CheckedRecord],
        query: MemoryQuery,
        expected: str,
    ) -> None:
        found = [row.canonical for row in provider.read_memory_versions(samples.scope, query)]
        assert found == [versions[name].canonical for name in expected.split(",") if name]

    def test_versions_are_found_by_memory(
        self, provider: MemoryProvider, samples: Samples, versions: dict[str, CheckedRecord]
    ) -> None:
        ids = (versions["4 retired"].id, "memory_unknown", versions["1 accepted"].id)
        found = [row.canonical for row in provider.read_memory_versions(samples.scope, MemoryQuery(ids=ids))]
        names = ["1 proposed", "1 accepted", "4 proposed", "4 accepted", "4 retired"]
        assert found == [versions[name].canonical for name in names]
        latest = MemoryQuery(ids=ids[:1], latest=True)
        (row,) = provider.read_memory_versions(samples.scope, latest)
        assert row.canonical == versions["4 retired"].canonical

    def test_a_store_without_memories_reads_as_empty(self, provider: MemoryProvider, samples: Samples) -> None:
        assert list(provider.read_memory_versions(samples.scope, MemoryQuery())) == []
        provider.append_records(samples.scope, "grants", [samples.grant(1)], [])
        assert list(provider.read_memory_versions(samples.scope, MemoryQuery(latest=True))) == []

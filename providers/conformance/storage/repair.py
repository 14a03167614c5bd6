"""`integrity.repair`: an intact record takes a damaged row's place. How a row gets damaged is each provider's own."""

from __future__ import annotations

from typing import Literal

import pytest

from learning_core.errors import Conflict
from learning_core.provider import HEADS, REPAIR, RepairingProvider
from learning_core.records import CheckedRecord
from providers.conformance.samples import Samples
from providers.conformance.storage.suite import StorageSuite, compute_heads, read_everything


class RepairConformance(StorageSuite):
    """What a repair may and may not do."""

    capability = REPAIR

    @pytest.fixture
    def intact(self, provider: RepairingProvider, samples: Samples) -> list[CheckedRecord]:
        """A comment, a redacted comment, and two versions of a memory."""
        episode = samples.episode(1)
        comment, gone = samples.comment(episode, 1), samples.redacted(samples.comment(episode, 2))
        proposed = samples.memory(1)
        accepted = samples.memory(1, after=proposed, state="accepted")
        provider.append_records(samples.scope, "events", [comment, gone], [samples.audit("import", 1)])
        provider.append_memory_version(samples.scope, proposed, None, [])
        provider.append_memory_version(samples.scope, accepted, proposed.digest, [])
        return [comment, gone, proposed, accepted]

    def test_the_row_keeps_its_position_and_heads_stay(
        self, provider: RepairingProvider, samples: Samples, intact: list[CheckedRecord]
    ) -> None:
        before = read_everything(provider, samples.scope)
        heads = compute_heads(provider, samples.scope)
        entries = [samples.audit("repair", n) for n in range(4)]
        for record, entry in zip(intact, entries, strict=True):
            stream: Literal["memories", "events"] = "memories" if record.kind == "memory-record" else "events"
            provider.restore_record(samples.scope, stream, record, [entry])
        added = [(len(before) + n, "audit", entry.canonical) for n, entry in enumerate(entries, 1)]
        assert read_everything(provider, samples.scope) == before + added
        groups = [group for group in heads if group not in {"audit", "change"}]
        if HEADS in provider.manifest()["capabilities"]:
            read = dict(provider.read_heads(samples.scope, groups))  # type: ignore[attr-defined]
            assert read == {group: heads[group] for group in groups}

    def test_what_is_not_stored_cannot_be_restored(
        self, provider: RepairingProvider, samples: Samples, intact: list[CheckedRecord]
    ) -> None:
        before = read_everything(provider, samples.scope)
        third = samples.memory(1, after=intact[-1], state="retired")
        for stream, record in (("memories", third), ("grants", samples.grant(9))):
            with pytest.raises(Conflict):
                provider.restore_record(samples.scope, stream, record, [samples.audit("repair", 1)])  # type: ignore[arg-type]
        assert read_everything(provider, samples.scope) == before

    def test_a_repair_neither_brings_text_back_nor_removes_it(
        self, provider: RepairingProvider, samples: Samples, intact: list[CheckedRecord]
    ) -> None:
        before = read_everything(provider, samples.scope)
        for record in (samples.redacted(intact[0]), samples.comment(samples.episode(1), 2)):
            with pytest.raises(Conflict):
                provider.restore_record(samples.scope, "events", record, [samples.audit("repair", 1)])
        assert read_everything(provider, samples.scope) == before

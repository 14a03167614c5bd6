"""`observation.redact`: the text goes, the event stays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from learning_core.errors import Conflict
from learning_core.provider import HEADS, REDACTION, Query, RedactingProvider
from learning_core.records import CheckedRecord
from providers.conformance.samples import LooseRecord, Samples
from providers.conformance.storage.suite import (
    ANOTHER_HOST,
    Batch,
    StorageSuite,
    compute_heads,
    read_everything,
    read_ids,
)


class RedactionConformance(StorageSuite):
    """A stored event may be replaced by its redacted copy, at its position, and by nothing else."""

    capability = REDACTION

    @pytest.fixture
    def evidence(self, provider: RedactingProvider, samples: Samples) -> list[CheckedRecord]:
        """Two comments, a label on the first, and a status change; the same comments in another scope."""
        for place in (samples, ANOTHER_HOST):
            episode = place.episode(1)
            comments = [place.comment(episode, n, body=f"sentinel {n}") for n in (1, 2)]
            events = [*comments, place.label(comments[0], 3), place.status_change(episode, 4)]
            batch: Batch = {"episodes": [episode], "events": events}
            provider.append_batch(place.scope, batch, [place.audit("import", 1)])
        episode = samples.episode(1)
        comments = [samples.comment(episode, n, body=f"sentinel {n}") for n in (1, 2)]
        return [*comments, samples.label(comments[0], 3), samples.status_change(episode, 4)]

    @pytest.mark.parametrize("which", [0, 2, 3], ids=["comment", "label", "status change"])
    def test_the_copy_takes_the_events_place(
        self, provider: RedactingProvider, samples: Samples, evidence: list[CheckedRecord], which: int
    ) -> None:
        before = read_everything(provider, samples.scope)
        elsewhere = read_everything(provider, ANOTHER_HOST.scope)
        copy, entry = samples.redacted(evidence[which]), samples.audit("evidence.redact", 1)
        provider.redact_record(samples.scope, copy, [entry])
        position, stream, _ = before[1 + which]
        expected = [*before, (len(before) + 1, "audit", entry.canonical)]
        expected[1 + which] = (position, stream, copy.canonical)
        assert read_everything(provider, samples.scope) == expected
        assert read_everything(provider, ANOTHER_HOST.scope) == elsewhere

    def test_the_filters_still_find_it(
        self, provider: RedactingProvider, samples: Samples, evidence: list[CheckedRecord]
    ) -> None:
        comment, _, label, _ = evidence
        for event in (comment, label):
            provider.redact_record(samples.scope, samples.redacted(event), [])
        group = f"e:{comment['episodeId']}"
        for query, expected in [
            (Query(comment_ids=("1",)), [comment.id]),
            (Query(parents=(comment.id,)), [label.id]),
            (Query(types=("label",)), [label.id]),
            (Query(groups=(group,)), [event.id for event in evidence]),
            (Query(time_from=comment["occurredAt"], time_to=evidence[1]["occurredAt"]), [comment.id]),
        ]:
            assert read_ids(provider.read_records(samples.scope, "events", query)) == expected

    def test_a_copy_that_is_stored_changes_nothing_but_a_missing_audit_entry(
        self, provider: RedactingProvider, samples: Samples, evidence: list[CheckedRecord]
    ) -> None:
        copy, entry = samples.redacted(evidence[0]), samples.audit("evidence.redact", 1)
        provider.redact_record(samples.scope, copy, [])
        before = read_everything(provider, samples.scope)
        provider.redact_record(samples.scope, copy, [entry])
        added = [*before, (len(before) + 1, "audit", entry.canonical)]
        assert read_everything(provider, samples.scope) == added
        provider.redact_record(samples.scope, copy, [entry])
        assert read_everything(provider, samples.scope) == added

    def test_the_first_note_wins(
        self, provider: RedactingProvider, samples: Samples, evidence: list[CheckedRecord]
    ) -> None:
        """Whoever comes second with another note is refused, and reads again."""
        provider.redact_record(samples.scope, samples.redacted(evidence[0]), [samples.audit("evidence.redact", 1)])
        before = read_everything(provider, samples.scope)
        other = samples.redacted(evidence[0], reason="Another reason.")
        with pytest.raises(Conflict):
            provider.redact_record(samples.scope, other, [samples.audit("evidence.redact", 2)])
        assert read_everything(provider, samples.scope) == before

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param({"occurredAt": "2026-11-01T09:59:59.000000Z"}, id="another time"),
            pytest.param({"type": "label"}, id="another type"),
            pytest.param({"actor": {"kind": "unknown"}}, id="another actor"),
            pytest.param({"digest": "sha256:" + "0" * 64}, id="another digest"),
            pytest.param({"payloadDigest": "sha256:" + "0" * 64}, id="another payload digest"),
            pytest.param({"parentEventId": "event_" + "0" * 64}, id="a new member"),
            pytest.param({"payload": {"commentId": "1", "body": "sentinel 1"}}, id="a payload"),
            pytest.param({"redaction": None}, id="no note"),
            pytest.param({"redaction": {"commentId": "2"}}, id="a note that names another comment"),
            pytest.param({"redaction": {"commentId": None}}, id="a note that names no comment"),
        ],
    )
    def test_a_copy_that_changes_more_is_refused(
        self, provider: RedactingProvider, samples: Samples, evidence: list[CheckedRecord], change: Mapping[str, Any]
    ) -> None:
        data = {**samples.redacted(evidence[0]).data, **change}
        if "redaction" in change:
            note = {**samples.redacted(evidence[0])["redaction"], **(change["redaction"] or {})}
            data["redaction"] = {key: value for key, value in note.items() if value is not None}
            if change["redaction"] is None:
                del data["redaction"]
        self._check_refused(provider, samples, LooseRecord(data))

    def test_a_note_on_a_label_names_no_comment(
        self, provider: RedactingProvider, samples: Samples, evidence: list[CheckedRecord]
    ) -> None:
        copy = samples.redacted(evidence[2])
        self._check_refused(
            provider, samples, LooseRecord({**copy.data, "redaction": {**copy["redaction"], "commentId": "1"}})
        )

    def test_an_event_that_is_not_stored_is_refused(
        self, provider: RedactingProvider, samples: Samples, evidence: list[CheckedRecord]
    ) -> None:
        del evidence
        self._check_refused(provider, samples, samples.redacted(samples.comment(samples.episode(1), 77)))

    def test_an_audit_entry_that_conflicts_redacts_nothing(
        self, provider: RedactingProvider, samples: Samples, evidence: list[CheckedRecord]
    ) -> None:
        self._check_refused(provider, samples, samples.redacted(evidence[0]), audit=samples.audit("import", 1, at=99))

    def test_importing_the_text_again_does_not_bring_it_back(
        self, provider: RedactingProvider, samples: Samples, evidence: list[CheckedRecord]
    ) -> None:
        provider.redact_record(samples.scope, samples.redacted(evidence[0]), [samples.audit("evidence.redact", 1)])
        before = read_everything(provider, samples.scope)
        provider.append_records(samples.scope, "events", [evidence[0]], [])
        assert read_everything(provider, samples.scope) == before

    def test_a_redacted_copy_of_an_unknown_event_may_be_appended(
        self, provider: RedactingProvider, samples: Samples
    ) -> None:
        event = samples.comment(samples.episode(1), 1)
        copy = samples.redacted(event)
        provider.append_records(samples.scope, "events", [copy], [])
        provider.append_records(samples.scope, "events", [event], [])
        assert [canonical for _, _, canonical in read_everything(provider, samples.scope)] == [copy.canonical]

    def test_appending_a_redacted_copy_redacts_nothing(
        self, provider: RedactingProvider, samples: Samples, evidence: list[CheckedRecord]
    ) -> None:
        """It has the stored event's ID and digest, so it is skipped: only `redact_record` removes text."""
        before = read_everything(provider, samples.scope)
        provider.append_records(samples.scope, "events", [samples.redacted(evidence[0])], [])
        assert read_everything(provider, samples.scope) == before

    def test_redactions_survive_reopening(
        self,
        open_provider: Callable[[], RedactingProvider],
        samples: Samples,
        evidence: list[CheckedRecord],
    ) -> None:
        copies = [samples.redacted(event) for event in evidence]
        for copy in copies:
            open_provider().redact_record(samples.scope, copy, [])
        rows = open_provider().read_records(samples.scope, "events", Query())
        assert [row.canonical for row in rows] == [copy.canonical for copy in copies]

    def test_heads_count_redactions(self, provider: Any, samples: Samples, evidence: list[CheckedRecord]) -> None:
        """Where the provider keeps heads: the chain stays, the redaction is counted once."""
        copy = samples.redacted(evidence[0])
        for _ in range(2):
            provider.redact_record(samples.scope, copy, [samples.audit("evidence.redact", 1)])
        computed = compute_heads(provider, samples.scope)
        group = f"e:{evidence[0]['episodeId']}"
        assert computed[group].redacted == 1
        if HEADS in provider.manifest()["capabilities"]:
            assert dict(provider.read_heads(samples.scope, list(computed))) == computed

    def _check_refused(
        self,
        provider: RedactingProvider,
        samples: Samples,
        copy: CheckedRecord | LooseRecord,
        *,
        audit: CheckedRecord | None = None,
    ) -> None:
        before = read_everything(provider, samples.scope)
        with pytest.raises(Conflict):
            provider.redact_record(samples.scope, copy, [audit or samples.audit("evidence.redact", 1)])
        assert read_everything(provider, samples.scope) == before

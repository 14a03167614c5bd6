"""`manifest` and `health`."""

from __future__ import annotations

import json
from collections.abc import Callable

from learning_core.provider import HEADS, REDACTION, REPAIR, REQUIRED_CAPABILITIES, MemoryProvider
from learning_core.records import check_valid
from providers.conformance.samples import Samples
from providers.conformance.storage.suite import StorageSuite


class ManifestTests(StorageSuite):
    """What a provider says of itself."""

    def test_the_manifest_satisfies_its_contract(self, provider: MemoryProvider) -> None:
        manifest = json.loads(json.dumps(provider.manifest()))
        check_valid("provider-manifest", manifest)
        assert set(REQUIRED_CAPABILITIES) <= set(manifest["capabilities"])

    def test_every_optional_capability_that_is_declared_is_tested(self, provider: MemoryProvider) -> None:
        declared = set(provider.manifest()["capabilities"]) & {REDACTION, HEADS, REPAIR}
        tested = {getattr(part, "capability", None) for part in type(self).__mro__} - {None}
        assert declared == tested, "Subclass the class of each optional capability that the manifest declares."

    def test_a_store_that_does_not_exist_yet_is_healthy(
        self, open_provider: Callable[[], MemoryProvider], samples: Samples
    ) -> None:
        assert open_provider().health()["ok"] is True
        open_provider().append_records(samples.scope, "grants", [samples.grant(1)], [samples.audit("grant.add", 1)])
        health = open_provider().health()
        assert health["ok"] is True
        assert isinstance(health["detail"], str)

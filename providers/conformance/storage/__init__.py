"""The conformance suite of memory providers. `docs/providers.md` says how to run it.

Subclass `MemoryProviderConformance`, and the class of each optional capability that the manifest declares, and override
the fixture `open_provider`:

    class TestMyProvider(MemoryProviderConformance, RedactionConformance):
        @pytest.fixture
        def open_provider(self, tmp_path):
            return lambda: MyProvider(tmp_path)
"""

from providers.conformance.storage.appending import AppendingTests
from providers.conformance.storage.concurrency import ConcurrencyTests
from providers.conformance.storage.heads import HeadConformance
from providers.conformance.storage.manifest import ManifestTests
from providers.conformance.storage.memories import MemoryVersionTests
from providers.conformance.storage.reading import ReadingTests
from providers.conformance.storage.redaction import RedactionConformance
from providers.conformance.storage.repair import RepairConformance


class MemoryProviderConformance(ManifestTests, AppendingTests, ReadingTests, MemoryVersionTests, ConcurrencyTests):
    """What every provider must do: the seven methods."""


__all__ = ["HeadConformance", "MemoryProviderConformance", "RedactionConformance", "RepairConformance"]

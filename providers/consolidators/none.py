"""Propose nothing: for a team whose proposals come from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from learning_core.plugins import ConsolidationRequest, ConsolidationResult, EvidenceView, MemoryConsolidator


def create_consolidator(options: Mapping[str, Any], builtins: Mapping[str, Any] | None = None) -> MemoryConsolidator:
    """A consolidator that proposes nothing; it has no options."""
    del options, builtins
    return NoneConsolidator()


class NoneConsolidator:
    """See the module."""

    def manifest(self) -> Mapping[str, Any]:
        """What it is, and that it sends nothing anywhere."""
        return {"id": "none", "version": "1", "sendsTo": []}

    def consolidate(self, request: ConsolidationRequest, view: EvidenceView) -> ConsolidationResult:
        """Nothing, and no diagnostics."""
        del request, view
        return ConsolidationResult((), ())

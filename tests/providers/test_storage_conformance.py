"""The shipped suite, run against the providers that ship, and one that somebody could write from the documentation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from providers.conformance.storage import (
    HeadConformance,
    MemoryProviderConformance,
    RedactionConformance,
    RepairConformance,
)
from providers.storage.in_memory import InMemoryProvider
from providers.storage.sqlite import SqliteProvider
from tests.providers.json_file_provider import JsonFileProvider


class TestSqlite(MemoryProviderConformance, RedactionConformance, HeadConformance, RepairConformance):
    @pytest.fixture
    def open_provider(self, tmp_path: Path) -> Callable[[], SqliteProvider]:
        return lambda: SqliteProvider(tmp_path / "data")


class TestInMemory(MemoryProviderConformance, RedactionConformance, HeadConformance, RepairConformance):
    @pytest.fixture
    def open_provider(self) -> Callable[[], InMemoryProvider]:
        provider = InMemoryProvider()
        return lambda: provider


class TestJsonFile(MemoryProviderConformance):
    @pytest.fixture
    def open_provider(self, tmp_path: Path) -> Callable[[], JsonFileProvider]:
        return lambda: JsonFileProvider(tmp_path / "data" / "store.json")

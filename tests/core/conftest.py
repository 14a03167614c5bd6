"""The worlds that the tests of the store share: one over each provider."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from providers.storage.in_memory import InMemoryProvider
from providers.storage.sqlite import SqliteProvider
from tests.core.builders import World

MEMORY = Path("/dev/shm")


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """A new directory, in memory where the machine offers that: here rules are tested, not what a disk keeps."""
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK):
        with tempfile.TemporaryDirectory(dir=MEMORY) as name:
            yield Path(name)
    else:
        yield tmp_path


@pytest.fixture(params=["sqlite", "in-memory"])
def world(request: pytest.FixtureRequest, directory: Path) -> World:
    """An empty store in a Hub where nobody wrote yet."""
    return World(SqliteProvider(directory / "store") if request.param == "sqlite" else InMemoryProvider())


@pytest.fixture
def loop(world: World) -> World:
    """The same, with consent to review and instruction."""
    world.consent()
    return world

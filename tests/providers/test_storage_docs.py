"""docs/providers.md says what the code does."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path

import pytest

from learning_core import errors, provider
from learning_core.provider import EMPTY_HEAD, MEMORIES, STREAMS, advance, advance_redacted
from providers.storage.sqlite import SqliteProvider
from providers.storage.sqlite.schema import STREAM_NUMBERS

PAGE = (Path(__file__).parents[2] / "docs" / "providers.md").read_text("utf-8")


def table(heading: str) -> dict[str, str]:
    """The first two columns of the first table behind a heading, code marks removed."""
    lines = PAGE.split(f"\n{heading}", 1)[1].split("\n|", 1)[1].split("\n\n", 1)[0].split("\n")
    cells = [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in lines[2:]]
    return {row[0]: row[1] for row in cells}


@pytest.mark.parametrize(
    "protocol",
    [provider.MemoryProvider, provider.RedactingProvider, provider.HeadedProvider, provider.RepairingProvider],
    ids=lambda protocol: protocol.__name__,
)
def test_every_method_is_described_with_its_arguments(protocol: type) -> None:
    for name, method in inspect.getmembers(protocol, inspect.isfunction):
        if not name.startswith("_"):
            described = re.search(rf"^{name}\(([^)]*)\)", PAGE, re.MULTILINE)
            assert described is not None, name
            arguments = [part.split("=")[0] for part in described[1].split(", ") if part not in {"*", ""}]
            assert arguments == list(inspect.signature(method).parameters)[1:], name


def test_every_filter_is_described() -> None:
    assert set(table("### Queries")) == {field.name for field in dataclasses.fields(provider.Query)}
    for field in dataclasses.fields(provider.MemoryQuery):
        assert f"`{field.name}`" in PAGE.split("`MemoryQuery` filters", 1)[1].split("\n\n", 1)[0]


def test_every_stream_is_described() -> None:
    assert list(table("A scope has eight **streams**")) == [*STREAMS, MEMORIES] == list(STREAM_NUMBERS)


def test_every_capability_and_error_is_named_as_it_is() -> None:
    for capability in SqliteProvider(Path("unused")).manifest()["capabilities"]:
        assert f"`{capability}`" in PAGE
    for name, code in table("## Errors").items():
        assert getattr(errors, name).code == code


def test_the_example_of_a_head_is_right() -> None:
    first, second = "sha256:" + "1" * 64, "sha256:" + "2" * 64
    head = advance(EMPTY_HEAD, first)
    redacted = advance_redacted(head, first)
    assert f"count 1   chain {head.chain}" in PAGE
    assert f"redacted 1   redacted_xor {redacted.redacted_xor}" in PAGE
    assert f"count 2   chain {advance(redacted, second).chain}" in PAGE

"""docs/requirements.md names tests that exist, and says what is not built."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "requirements.md").read_text("utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| behaviour |")
]
NOT_BUILT = "not built"


@cache
def find_tests(file: str) -> frozenset[str]:
    """The test functions of a file anywhere under tests/."""
    (path,) = TESTS.rglob(file)
    functions = (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.FunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_a_requirement_names_tests_that_exist(row: list[str]) -> None:
    behaviour, source, tests = row
    assert behaviour.endswith(".")
    assert re.match(r"(guide|decision|design)\b", source)
    if tests == NOT_BUILT:
        return
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", tests)
    assert ", ".join(f"`{file}::{name}`" for file, name in named) == tests
    assert named
    for file, name in named:
        assert name in find_tests(file), f"{file} has no {name}"


def test_what_is_not_built_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    not_built = [behaviour for behaviour, _, tests in ROWS if tests == NOT_BUILT]
    with capsys.disabled():
        print(f"\n{len(ROWS)} requirements, {len(not_built)} not built")  # noqa: T201
    section = PAGE.split("## Not in this version yet", 1)[1]
    assert section.count(NOT_BUILT) == len(not_built), "what is not built stands in its own section"
    assert len(ROWS) > 100

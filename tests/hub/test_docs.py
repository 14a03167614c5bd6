"""The operations guide names what there is, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from django.urls import get_resolver

from hub_learning import environment
from hub_learning.environment import PRODUCTION_NEEDS

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "operations.md").read_text("utf-8")
VARIABLE = r"\b(?:HUB_[A-Z_]+|DATABASE_URL|REDIS_URL)\b"


def test_every_variable_is_told() -> None:
    read = set(re.findall(VARIABLE, Path(environment.__file__).read_text("utf-8")))
    told = set(re.findall(rf"^\| `({VARIABLE})` \|", GUIDE, re.MULTILINE))
    assert told == read


def test_what_production_needs_is_told() -> None:
    marked = set(re.findall(rf"^\| `({VARIABLE})` \|.*\(\*production\*\)", GUIDE, re.MULTILINE))
    assert marked == set(PRODUCTION_NEEDS)


def test_every_command_is_told() -> None:
    commands = {path.stem for path in (ROOT / "hub_learning/management/commands").glob("[!_]*.py")}
    assert set(re.findall(r"^\| `manage\.py (\w+)", GUIDE, re.MULTILINE)) == commands


def test_every_machine_address_is_told() -> None:
    told = {path.replace("<id>", "1") for path in re.findall(r"^\| `(?:GET|POST) (/\S+)` \|", GUIDE, re.MULTILINE)}
    assert len(told) == 4
    for path in told:
        assert not get_resolver().resolve(path).namespaces, f"{path} is a page"

"""The loop on a large set of real review comments, through the command.

`LABEL_DATA` names a directory with `review-comments.json`, a Hub comment log that is not part of this project,
so `tests/acceptance/conftest.py` collects this file only where the directory is named.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from learning_core.plugins import CATEGORIES

PROGRAM = Path(sys.executable).with_name("replica-learning")
PERSON = ("--by", "github:mona")
TASKS = {
    "add-tests": "Add the new scheduler filter and the unit tests that go with it.",
    "error-messages": "Change what the API says when a quota is exceeded: the error message is unclear.",
    "docstrings": "Write the docstring of the resize call: its parameters and what it returns.",
}
OTHERS = ("simplify", "races", "redundant-comments")


class Checkout:
    """A checkout with the command in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def run(self, *arguments: str, status: int = 0) -> dict[str, Any]:
        command = [str(PROGRAM), *arguments, "--json"]
        done = subprocess.run(command, cwd=self.directory, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        result: dict[str, Any] = json.loads(done.stdout)
        return result


@pytest.fixture(scope="module")
def log() -> Path:
    return Path(os.environ["LABEL_DATA"]) / "review-comments.json"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory, log: Path) -> Checkout:
    """The log imported, labelled offline and consolidated, with all categories."""
    directory = tmp_path_factory.mktemp("checkout")
    repository = json.loads(log.read_text())["repository"]
    subprocess.run(["git", "init", "--quiet", str(directory)], check=True)
    remote = f"https://github.example/{repository['owner']}/{repository['name']}.git"
    subprocess.run(["git", "-C", str(directory), "remote", "add", "origin", remote], check=True)
    (directory / ".gitignore").write_text(".replica/\n")
    data = directory / ".replica" / "learning"
    data.mkdir(parents=True, mode=0o700)
    consolidation = {"consolidator": "recurrence", "options": {"categories": list(CATEGORIES)}}
    configuration = {"schemaVersion": "replica.learning-config/v1", "consolidation": consolidation}
    (data / "config.json").write_text(json.dumps(configuration))
    made = Checkout(directory)
    purposes = ("--purpose", "review", "--purpose", "instruction")
    made.run("grants", "add", *purposes, "--source", "hub-comments", "--reason", "We agreed.", *PERSON)
    return made


def test_real_comments_become_learnings_that_fit_their_tasks(checkout: Checkout, log: Path) -> None:
    snapshot = json.loads(log.read_text())
    comments = sum(len(page.get("comments", page.get("replies"))) for page in snapshot["pages"])
    imported = checkout.run("import", "hub-comments", str(log))
    assert imported["imported"]["events"] == comments
    labelled = checkout.run("label")
    assert (labelled["considered"], labelled["remaining"]) == (comments, 0)
    window = ("--from", "2026-01-01", "--to", snapshot["capturedAt"])
    stored = checkout.run("consolidate", *window, "--max", "40")
    assert stored["complete"]
    assert 8 <= len(stored["stored"]) <= 40

    proposals = {row["theme"]: row for row in checkout.run("memories")["memories"]}
    for theme in (*TASKS, *OTHERS):
        row = proposals[theme]
        checkout.run("accept", row["id"], "--review-digest", row["reviewDigest"], *PERSON)
    for theme, task in TASKS.items():
        everything = checkout.run("recall", "--task", task)
        assert everything["learnings"][0] == proposals[theme]["id"], theme
        assert len(everything["learnings"]) == len(TASKS) + len(OTHERS)
        lines = sorted(map(len, everything["text"].splitlines()), reverse=True)
        budget = sum(lines[:3]) + 3
        two = checkout.run("recall", "--task", task, "--budget", str(budget))
        assert two["learnings"][0] == proposals[theme]["id"], theme
        assert len(two["text"]) <= budget
        assert 1 <= len(two["learnings"]) < len(everything["learnings"])
    assert checkout.run("verify")["ok"]

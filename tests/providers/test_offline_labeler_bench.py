"""What the benchmark of the labeler counts, on a small log with invented ratings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.bench_labels import (
    COUNTERPARTS,
    NO_LABEL,
    UNMAPPED,
    Rated,
    Score,
    find_recurring,
    main,
    read_comments,
    report,
    score_categories,
    score_presence,
)
from learning_core.plugins import CATEGORIES
from providers.labelers.offline.matching import Label
from providers.labelers.offline.themes import load_themes


def rated(
    category: str, *labels: str, change: str = "c1", reviewer: str = "ada", observation: str = "problem"
) -> Rated:
    found = tuple(Label(name, f"{name}-theme", observation, "Do it.", 'matched "x"') for name in labels)
    return Rated(change, reviewer, category, found)


def test_the_table_names_our_categories_and_each_of_theirs_once() -> None:
    assert {name for names in COUNTERPARTS.values() for name in names} <= set(CATEGORIES)
    assert not set(COUNTERPARTS) & (UNMAPPED | NO_LABEL)
    assert not UNMAPPED & NO_LABEL


def test_label_or_no_label() -> None:
    comments = [
        rated("logical", "correctness"),
        rated("support"),
        rated("praise", "testing"),
        rated("praise", "testing", observation="strength"),
        rated("question"),
    ]
    assert score_presence(comments) == Score(right=1, wrong=1, missed=1)


def test_categories_any_counterpart_and_only_the_first() -> None:
    comments = [
        rated("validation", "testing", "security"),
        rated("validation"),
        rated("logical", "testing"),
        rated("support", "testing"),
        rated("praise", "testing"),
    ]
    assert score_categories(comments, first_only=False) == {
        "all": Score(1, 1, 2),
        "testing": Score(1, 1, 0),
        "correctness": Score(0, 0, 2),
    }
    assert score_categories(comments, first_only=True) == {
        "all": Score(0, 2, 3),
        "testing": Score(0, 2, 0),
        "correctness": Score(0, 0, 3),
    }


def test_a_score_is_a_line_with_precision_and_recall() -> None:
    assert Score(3, 1, 3).line("x").split()[:7] == ["x", "precision", "0.75", "recall", "0.50", "F1", "0.60"]
    assert "precision 0.00  recall 0.00  F1 0.00" in Score().line("x")


def test_recurring_themes_need_two_changes_and_two_reviewers_and_no_contest() -> None:
    twice = [rated("logical", "testing"), rated("logical", "testing", change="c2", reviewer="ben")]
    assert find_recurring(twice) == [("testing-theme", 2, 2, 2)]
    assert find_recurring([rated("logical", "testing"), rated("logical", "testing", reviewer="ben")]) == []
    assert find_recurring([rated("logical", "testing"), rated("logical", "testing", change="c2")]) == []
    against = rated("logical", "testing", change="c3", reviewer="cy", observation="disagreement")
    assert find_recurring([*twice, against]) == []


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    def entry(number: int, body: str) -> dict[str, Any]:
        return {
            "id": str(number),
            "prototypeId": f"change-{number}",
            "author": {"login": f"reviewer-{number}"},
            "body": body,
            "target": {"kind": "file", "path": "a.py", "line": 1},
        }

    bodies = {1: "Please add a docstring.", 2: "Secret words only in an even comment.", 3: "Nice.", 4: "Hm.", 5: "Hm?"}
    ratings = {1: "Documentation", 2: "Documentation", 3: "Praise", 4: "Logical", 5: "Astrology"}
    log = {"pages": [{"action": "list_comments", "comments": [entry(n, body) for n, body in bodies.items()]}]}
    rows = [{"commentId": str(number), "category": category} for number, category in ratings.items()]
    (tmp_path / "review-comments.json").write_text(json.dumps(log))
    (tmp_path / "review-comments.categories.json").write_text(json.dumps(rows))
    return tmp_path


def test_the_report_is_about_one_half_and_quotes_nothing(directory: Path) -> None:
    comments, seconds = read_comments(directory, load_themes())
    lines = list(report(comments, seconds, 1))
    assert "3 comments with odd IDs" in lines
    assert lines[0].endswith("astrology")
    assert any(line.startswith("documentation") and "right    1" in line for line in lines)
    assert "Secret" not in "\n".join(lines)


def test_the_command_prints_it(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["bench_labels", str(directory), "--ids", "even"])
    assert main() == 0
    assert "2 comments with even IDs" in capsys.readouterr().out

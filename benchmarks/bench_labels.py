"""How well the offline labeler agrees with people: `python -m benchmarks.bench_labels DIRECTORY`.

The directory holds `review-comments.json`, a Hub comment log, and `review-comments.categories.json`, one category per
comment by human raters: `[{"commentId", "category", "group"}]`. The labeler was developed on the comments with even
IDs; what is reported is measured on those with odd IDs.

Only `problem` labels are scored: the raters say what a comment wants changed, and praise is none of that. A comment has
one category and may have three labels, so its best label is the one that counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from providers.labelers.offline.matching import Label, label_text
from providers.labelers.offline.themes import Themes, load_themes

# What the raters' categories are in ours. The raters sort by the kind of change, we by what is concerned, so some of
# theirs spread over several of ours: any of them is right, and a miss is charged to the first.
COUNTERPARTS: dict[str, tuple[str, ...]] = {
    # Comments, docstrings, guides, and the wording of any text in the code, messages included.
    "documentation": ("documentation", "content"),
    # Names of variables, functions and tests.
    "naming convention": ("maintainability",),
    # Indentation, blank lines, line breaks: how the code looks, not how a screen looks.
    "visual representation": ("maintainability",),
    # Where code stands, duplicates, what can go; the raters count test code here like any other.
    "organization of code": ("maintainability", "testing"),
    # Another way to do the same: simpler, standard, faster, or a better test.
    "solution approach": ("maintainability", "testing", "performance"),
    # What people get to read when the program runs: errors, logs, messages.
    "alternate output": ("content", "documentation"),
    # Missing or wrong checks, and tests that are missing.
    "validation": ("correctness", "testing", "security"),
    # Wrong conditions, comparisons, results.
    "logical": ("correctness",),
    # Wrong calls between parts: parameters, versions, imports.
    "interface": ("correctness", "maintainability"),
    # Values that are not set, released or bounded.
    "resource": ("correctness", "performance"),
    "timing": ("correctness", "performance"),
    "larger defect": ("correctness",),
}
# A label is wanted, but no category of ours says what the raters mean: the gate, versions of supporting libraries.
UNMAPPED = {"support"}
# Nothing is asked for: questions, thinking aloud, praise, and comments that the raters found to be wrong.
NO_LABEL = {"question", "design discussion", "praise", "false positive"}


@dataclass(frozen=True, slots=True)
class Rated:
    """One comment, the raters' category (lower case), and the labels that it got."""

    change: str
    reviewer: str
    rated: str
    labels: tuple[Label, ...]

    @property
    def best(self) -> str | None:
        """The category of the best problem label."""
        return next((label.category for label in self.labels if label.observation == "problem"), None)


@dataclass(slots=True)
class Score:
    """Right, wrong and missed: precision, recall and F1."""

    right: int = 0
    wrong: int = 0
    missed: int = 0

    def line(self, name: str) -> str:
        """One line of the report."""
        precision = self.right / (self.right + self.wrong or 1)
        recall = self.right / (self.right + self.missed or 1)
        f1 = 2 * precision * recall / (precision + recall or 1)
        counts = f"right {self.right:4} wrong {self.wrong:4} missed {self.missed:4}"
        return f"{name:28} precision {precision:.2f}  recall {recall:.2f}  F1 {f1:.2f}   {counts}"


def score_presence(comments: Iterable[Rated]) -> Score:
    """Label or no label."""
    score = Score()
    for comment in comments:
        wanted, given = comment.rated not in NO_LABEL, comment.best is not None
        score.right += wanted and given
        score.wrong += given and not wanted
        score.missed += wanted and not given
    return score


def score_categories(comments: Iterable[Rated], *, first_only: bool) -> dict[str, Score]:
    """Per category of ours and, under `all`, over all; comments without a counterpart are left out."""
    scores: dict[str, Score] = defaultdict(Score)
    for comment in comments:
        accepted = COUNTERPARTS.get(comment.rated, ())[: 1 if first_only else None]
        if not accepted:
            continue
        for name in ("all", comment.best if comment.best in accepted else accepted[0]):
            scores[name].right += comment.best in accepted
            scores[name].missed += comment.best not in accepted
        if comment.best is not None and comment.best not in accepted:
            scores[comment.best].wrong += 1
            scores["all"].wrong += 1
    return scores


def find_recurring(comments: Iterable[Rated]) -> list[tuple[str, int, int, int]]:
    """Themes with problems on two changes by two reviewers, not contested: (theme, comments, changes, reviewers)."""
    found: dict[str, list[Rated]] = defaultdict(list)
    against: dict[str, set[str]] = defaultdict(set)
    for comment in comments:
        for label in comment.labels:
            if label.observation == "problem":
                found[label.theme].append(comment)
            elif label.observation == "disagreement":
                against[label.theme].add(comment.reviewer)
    rows = []
    for theme, supporting in found.items():
        changes = len({comment.change for comment in supporting})
        reviewers = len({comment.reviewer for comment in supporting} - against[theme])
        if len(supporting) >= 2 and changes >= 2 and reviewers >= 2 and 2 * len(against[theme]) < reviewers:
            rows.append((theme, len(supporting), changes, reviewers))
    return sorted(rows, key=lambda row: (-row[1], row[0]))


def read_comments(directory: Path, themes: Themes) -> tuple[dict[int, Rated], float]:
    """Every rated comment by its ID, labelled, and the seconds that labelling took."""
    log = json.loads((directory / "review-comments.json").read_bytes())
    rows = json.loads((directory / "review-comments.categories.json").read_bytes())
    rated = {row["commentId"]: row["category"].lower() for row in rows}
    comments: dict[int, Rated] = {}
    seconds = 0.0
    for entry in _entries(log):
        before = time.process_time()
        labels = label_text(entry["body"] or "", themes, target=entry["target"]["kind"])
        seconds += time.process_time() - before
        author = entry["author"]["login"] if entry["author"] else ""
        comments[int(entry["id"])] = Rated(entry["prototypeId"], author, rated[entry["id"]], labels)
    return comments, seconds


def _entries(log: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for page in log["pages"]:
        yield from page.get("comments", ())


def report(comments: dict[int, Rated], seconds: float, parity: int) -> Iterator[str]:
    """The lines of the report on the comments whose IDs have this parity."""
    part = [comment for number, comment in comments.items() if number % 2 == parity]
    unknown = {comment.rated for comment in part} - set(COUNTERPARTS) - UNMAPPED - NO_LABEL
    if unknown:
        yield f"left out of the category scores, for want of a counterpart: {', '.join(sorted(unknown))}"
    yield f"{len(part)} comments with {('even', 'odd')[parity]} IDs"
    yield score_presence(part).line("label or no label")
    for title, first_only in (("any counterpart is right", False), ("only the first counterpart", True)):
        yield f"\ncategory of the best label, {title}"
        scores = score_categories(part, first_only=first_only)
        yield from (scores[name].line(name) for name in sorted(scores, key=lambda name: (name == "all", name)))
    observations = Counter(label.observation for comment in part for label in comment.labels)
    yield f"\nlabels: {', '.join(f'{count} {name}' for name, count in sorted(observations.items()))}"
    recurring = find_recurring(comments.values())
    yield f"{len(recurring)} themes recur over all {len(comments)} comments (two changes, two reviewers, not contested)"
    yield from (f"  {theme:30} {n:4} comments {c:4} changes {r:3} reviewers" for theme, n, c, r in recurring)
    yield f"{len(comments) / seconds:,.0f} comments a second, phrases compiled on the way"


def main() -> int:
    """Print the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_labels", description=__doc__)
    parser.add_argument("directory", type=Path, help="holds review-comments.json and review-comments.categories.json")
    parser.add_argument("--ids", choices=("even", "odd"), default="odd", help="odd: to report; even: to develop on")
    options = parser.parse_args()
    comments, seconds = read_comments(options.directory, load_themes())
    for line in report(comments, seconds, ("even", "odd").index(options.ids)):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What the benchmarks share: timing, memory, the lines they print, and stores of a given size."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.generate import make_log
from learning_core.identifiers import IMPORTER, parse_principal
from learning_core.store import LearningStore
from providers.consolidators import recurrence
from providers.storage.sqlite import SqliteProvider

SCOPE = "github.com/acme/bench"
PERSON = parse_principal("github:mona", assurance="asserted")
T = TypeVar("T")


@dataclass(frozen=True)
class Line:
    """One result: what was measured, and what it must reach."""

    what: str
    measured: str
    must_reach: str
    ok: bool

    def print(self) -> None:
        """Print it."""
        mark = "ok  " if self.ok else "MISS"
        print(f"{mark} {self.what:<58} {self.measured:<46} must reach {self.must_reach}", flush=True)


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds that some work took, and what it gave."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def percentile(seconds: list[float], share: float = 0.95) -> float:
    """A percentile of times."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def peak_megabytes() -> float:
    """The most memory that this process has had, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if sys.platform == "linux" else peak / 1024 / 1024


@contextmanager
def temporary_store() -> Iterator[tuple[LearningStore, SqliteProvider, Path]]:
    """An empty SQLite store with a grant for review and instruction, and its directory."""
    with tempfile.TemporaryDirectory(prefix="hub-learning-bench-") as directory:
        data = Path(directory) / "store"
        provider = SqliteProvider(data)
        store = LearningStore(provider, SCOPE)
        store.add_grant(PERSON, purposes=["review", "instruction"], reason="a benchmark")
        yield store, provider, data


def fill(store: LearningStore, events: int) -> None:
    """Import so many comments, at most 100,000 a snapshot."""
    for number, start in enumerate(range(0, events, 100_000)):
        size = min(100_000, events - start)
        store.import_comments(IMPORTER, make_log(size, first=start, snapshot=f"bench-{number}"))


def add_proposals(store: LearningStore, themes: int, evidence: int, *, first: int = 0) -> list[dict[str, Any]]:
    """Store so many proposals, each with evidence from distinct threads, prototypes and reviewers."""
    labels = [
        {
            "commentId": str(1_000_000 + 4 * (number * evidence + piece)),
            "category": "testing",
            "theme": f"theme-{number}",
            "observation": "problem",
            "summary": f"Keep the {_word(number)} of each {_word(number + 7)} in its own place ({number}).",
        }
        for number in range(first, first + themes)
        for piece in range(evidence)
    ]
    document = {
        "schemaVersion": "replica.labels/v1",
        "labeler": {"kind": "human", "id": "github:mona"},
        "labels": labels,
    }
    store.record_labels(PERSON, json.dumps(document))
    consolidator = recurrence.create_consolidator({"categories": ["testing"]})
    result = store.consolidate(IMPORTER, consolidator, time_from="2026-01-01", time_to="2026-11-15", max_new=themes)
    stored: list[dict[str, Any]] = result["stored"]
    if len(stored) != themes:
        raise SystemExit(f"{len(stored)} proposals were stored, not {themes}")
    return stored


def add_learnings(store: LearningStore, learnings: int, evidence: int) -> None:
    """Accept so many learnings."""
    for row in add_proposals(store, learnings, evidence):
        store.accept(PERSON, row["id"], review_digest=row["reviewDigest"])


def _word(number: int) -> str:
    words: list[Any] = [
        "label",
        "button",
        "query",
        "header",
        "test",
        "error",
        "message",
        "cache",
        "column",
        "field",
        "route",
    ]
    return str(words[number % len(words)])

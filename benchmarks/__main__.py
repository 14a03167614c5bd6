"""Measure the numbers that the design promises: `make bench`, or `python -m benchmarks --events 1000000`.

A raw floor is measured in the same run, and the ratio counts. A number that misses its mark ends with exit status 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import bench_import, bench_scale
from benchmarks.measuring import Line, add_learnings, percentile, temporary_store, timed
from learning_core.identifiers import IMPORTER


def main() -> int:
    """Run every benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--comments", type=int, default=100_000, help="size of the imported snapshot")
    parser.add_argument("--events", type=int, default=1_000_000, help="size of the large store")
    options = parser.parse_args()
    missed = 0
    for lines in (_start_up(), bench_import.run(options.comments), bench_scale.run(10_000, options.events), _audit()):
        for line in lines:
            line.print()
            missed += not line.ok
    return 1 if missed else 0


def _start_up() -> Iterator[Line]:
    program = Path(sys.executable).with_name("replica-learning")
    times = [
        timed(lambda: subprocess.run([str(program), "--help"], check=True, capture_output=True))[0] for _ in range(9)
    ]
    half = percentile(times, 0.5) * 1000
    yield Line("replica-learning --help", f"{half:.0f} ms", "<= 250 ms", half <= 250)


def _audit() -> Iterator[Line]:
    from benchmarks.measuring import fill
    from learning_core.provider import Query

    with temporary_store() as (store, provider, _):
        fill(store, 6_000)
        add_learnings(store, 200, 6)
        store.recall(IMPORTER, "a task", budget=100_000)
        entries = provider.read_records(store.scope, "audit", Query(operations=("recall",)))
        size = max(len(row.canonical) for row in entries)
    yield Line("a recall's audit entry with 200 learnings", f"{size} bytes", "<= 1,024 bytes", size <= 1024)


if __name__ == "__main__":
    sys.exit(main())

"""An import is killed at many points, also just after the store's commit: the next turn finishes it, once."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tests.hub.conftest import MakeItem
from tests.hub.processes import Agent, make_hub

POINTS = int(os.environ.get("KILL_POINTS", "50"))
THREADS, REPLIES = 12, 2


def test_an_import_that_is_killed_at_any_point_is_finished_once(tmp_path: Path, make_item: MakeItem) -> None:
    hub = make_hub(tmp_path)
    agent = Agent(hub)
    agent.ask("set_up")
    roots = [make_item() for _ in range(THREADS)]
    replies = [make_item(replyTo=root["id"], target=None, status=None) for root in roots for _ in range(REPLIES)]
    agent.ask("send", [*roots, *replies])
    agent.close()

    process = hub.start_module("tests.hub.killed_import", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    calls, committed = told["calls"], told["committed"]
    assert 0 < committed < calls
    # Evenly over the import, and the calls around the commit one by one.
    points = {1 + calls * number // (POINTS - 10) for number in range(POINTS - 10)}
    points |= set(range(committed - 4, committed + 6))
    for point in sorted(points):
        process.stdin.write(f"{point}\n")
        process.stdin.flush()
        found = json.loads(process.stdout.readline())
        assert found["collections"] == 1, (point, found)
        assert (found["episodes"], found["comments"]) == (THREADS, THREADS * (1 + REPLIES)), (point, found)
        assert set(found["receipts"]) == {1}, (point, found)
        assert found["verified"], (point, found)
        assert {state for _, state in found["runs"]} == {"done"}, (point, found)
    assert len(points) >= POINTS - 5
    process.stdin.close()
    process.stdout.close()
    assert process.wait(30) == 0

"""Workers and their work-horses are killed at random points: nothing is lost, nothing runs twice at once.

`KILL_ROUNDS` sets the number of kills, `KILL_SEED` the random numbers.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from redis import Redis

from hub_learning.supervisor import valkey_command
from tests.hub.conftest import Item, MakeItem
from tests.hub.processes import MANAGE, Agent, Hub, wait_for

KILLS = int(os.environ.get("KILL_ROUNDS", "12"))
SEED = int(os.environ.get("KILL_SEED", "7"))


@pytest.fixture
def valkey(hub: Hub, agent: Agent) -> Iterator[Redis]:
    directory = hub.directory / "valkey"
    directory.mkdir(mode=0o700)
    url = f"unix://{directory}/socket"
    with subprocess.Popen(valkey_command(url, directory), cwd=directory) as process:
        client = Redis.from_url(url)
        wait_for("Valkey answers", (directory / "socket").exists)
        yield client
        client.close()
        process.kill()


@pytest.fixture
def workers(hub: Hub, valkey: Redis) -> Iterator[list[subprocess.Popen[str]]]:
    processes = [start_worker(hub) for _ in range(2)]
    sweep = hub.start(MANAGE, "sweep")
    yield processes
    for process in [*processes, sweep]:
        process.kill()
        process.wait()


def start_worker(hub: Hub) -> subprocess.Popen[str]:
    return hub.start_module("tests.hub.probed_worker")


def horses(worker: subprocess.Popen[str]) -> list[int]:
    """The work-horses of a worker: its child processes."""
    try:
        children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text()
    except FileNotFoundError:
        return []
    return [int(number) for number in children.split()]


def is_settled(hub: Hub) -> bool:
    waiting = hub.query("SELECT key FROM hub_learning_hubsetting WHERE key = 'purge'")
    return not waiting and not hub.query("SELECT id FROM hub_learning_step WHERE state = 'waiting'")


def test_nothing_is_lost_and_nothing_overlaps(
    hub: Hub, agent: Agent, workers: list[subprocess.Popen[str]], make_item: MakeItem
) -> None:
    chance = random.Random(SEED)
    sent: dict[str, Item] = {}
    for number in range(KILLS):
        batch = change_comments(chance, sent, make_item, number)
        agent.ask("send", batch)
        kill_one(chance, hub, workers)
    wait_for("every step is done and removed text is purged", lambda: is_settled(hub))
    assert not (hub.directory / "overlap").exists()
    assert hub.query("SELECT count(*) FROM hub_learning_comment WHERE dirty") == [(0,)]
    assert hub.query("SELECT DISTINCT state FROM hub_learning_learningrun") == [("done",)]
    store = "repositories/1/learning.sqlite"
    for comment_id, item in sent.items():
        holders = hub.holders(f"mark-{comment_id}-")
        if item["deletedAt"] is None:
            assert "hub.sqlite" in "".join(holders)
            assert any(name.startswith(store) for name in holders), f"comment {comment_id} was lost"
        else:
            assert holders == [], f"the text of comment {comment_id} is left"
    assert agent.ask("verify")["problems"] == []


def test_a_work_horse_dies_with_its_worker(
    hub: Hub, agent: Agent, workers: list[subprocess.Popen[str]], make_item: MakeItem
) -> None:
    stall, stalled = hub.directory / "stall", hub.directory / "stalled"
    stall.touch()
    agent.ask("send", [make_item()])
    wait_for("a step stalls", lambda: stalled.exists() and bool(stalled.read_text()))
    orphan = int(stalled.read_text())
    owner = next(worker for worker in workers if orphan in horses(worker))
    stall.unlink()
    owner.kill()
    owner.wait()
    wait_for("the work-horse dies", lambda: orphan not in hub.processes())
    wait_for("the other worker goes on", lambda: is_settled(hub))


def change_comments(chance: random.Random, sent: dict[str, Item], make_item: MakeItem, number: int) -> list[Item]:
    """Two new comments; often an edit and a deletion of older ones."""
    batch = []
    for _ in range(2):
        item = make_item(createdAt=f"2026-11-01T{number // 60:02d}:{number % 60:02d}:00Z")
        item["body"] = f"mark-{item['id']}- The contrast is too low."
        batch.append(item)
    alive = [item for item in sent.values() if item["deletedAt"] is None]
    if len(alive) >= 2:
        edited, deleted = chance.sample(alive, 2)
        time_text = f"2026-11-02T{number // 60:02d}:{number % 60:02d}:00Z"
        batch.append(edited | {"body": edited["body"] + " Really.", "editedAt": time_text})
        batch.append(deleted | {"body": None, "deletedAt": time_text, "deletedBy": deleted["author"]})
    sent.update({item["id"]: item for item in batch})
    return batch


def kill_one(chance: random.Random, hub: Hub, workers: list[subprocess.Popen[str]]) -> None:
    """Kill a work-horse in the middle of something, or its worker, which is then replaced."""
    ends = time.monotonic() + 1
    while not any(horses(worker) for worker in workers) and time.monotonic() < ends:
        pass
    time.sleep(chance.uniform(0, 0.05))
    place = next((number for number, worker in enumerate(workers) if horses(worker)), 0)
    victims = horses(workers[place])
    if victims and chance.random() < 0.8:
        with suppress(ProcessLookupError):
            os.kill(victims[0], signal.SIGKILL)
        return
    workers[place].kill()
    workers[place].wait()
    wait_for("the work-horse dies with its worker", lambda: not set(victims) & hub.processes().keys())
    workers[place] = start_worker(hub)

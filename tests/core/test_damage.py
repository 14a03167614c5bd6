"""A store that somebody or something changed behind the provider's back: it refuses, or answers as if nothing were."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import apsw
import pytest

from learning_core.errors import LearningError
from learning_core.provider import EMPTY_HEAD, advance
from learning_core.workflows.verification import STOPPING
from providers.storage.sqlite import SqliteProvider
from tests.core import damage
from tests.core.builders import AGENT, MONA, OCTO, THEME, Json, ScriptedLabeler, World, refused
from tests.core.damage import FILE, Damage, damaged_copy

SHOWN_OF_DAMAGED = {"id", "state", "kind", "theme", "contentDigest", "reviewDigest", "damaged", "withheld", "history"}
FIRST = f"{THEME}-1"


class Store:
    """The undamaged file, a copy from before a removal, and what it answers."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.before, self.file = directory / "before.sqlite", directory / "store" / FILE
        self.world = damage.build(directory / "store", lambda: self.keep(self.before))
        damage.settle(self.file)
        self.learnings = sorted({record["id"] for record in self.world.records("memories")})
        self.proposals = {record["id"] for record in self.world.store.memories(states=["proposed"])["memories"]}
        self.copies = count()
        self.answers = self.ask(self.copy(Damage("none", None, lambda connection: None)))

    def keep(self, place: Path) -> None:
        damage.settle(self.file)
        shutil.copyfile(self.file, place)

    def connect(self) -> Any:
        return closing(apsw.Connection(str(self.file)))

    def copy(self, change: Damage) -> World:
        return damaged_copy(self.file, self.directory / f"copy-{next(self.copies)}", change)

    def ask(self, world: World) -> dict[str, Any]:
        """What reading operations answer: a result, or the code of a refusal. Nothing else is let through."""
        asked = ScriptedLabeler(lambda request: [])
        reads: dict[str, Callable[[], Any]] = {
            "recall": lambda: world.store.recall(MONA, "Mind it.", preview=True),
            "memories": lambda: {row["id"]: row for row in world.store.memories()["memories"]},
            "status": world.store.status,
            "grants": world.store.list_grants,
            "labels": lambda: [world.store.label(AGENT, asked)["considered"], sorted(asked.asked)],
        }
        reads |= {memory: lambda memory=memory: world.store.show(memory, history=True) for memory in self.learnings}
        return {name: attempt(read) for name, read in reads.items()}


def attempt(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except LearningError as error:
        return f"refused: {error.code}"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    memory = Path("/dev/shm")
    directory = tmp_path_factory.mktemp("damage")
    if memory.is_dir():
        shutil.rmtree(directory)
        directory = memory / directory.parent.name / directory.name
        directory.mkdir(parents=True)
    yield Store(directory)
    shutil.rmtree(directory)


def is_refusal(answer: Any) -> bool:
    return isinstance(answer, str) and answer.startswith("refused: ")


def is_damaged_row(row: Json) -> bool:
    return row["damaged"] is True and set(row) <= SHOWN_OF_DAMAGED


def is_right(name: str, got: Any, expected: Any, store: Store, damaged: set[str]) -> bool:
    """Whether an answer says nothing that it must not. A damaged learning may be named as such and is not used."""
    if is_refusal(got) or got == expected:
        return True
    if name == "recall":
        kept = [memory for memory in expected["learnings"] if memory not in damaged]
        return got["learnings"] == kept and set(got["text"].splitlines()) <= set(expected["text"].splitlines())
    if name == "memories":
        # A proposal that nobody decided stands in no group but its own: that it is lost, only verify can tell.
        lost = set(expected) - set(got)
        known = set(got) <= set(expected) and lost <= store.proposals
        return known and all(row == expected[memory] or is_damaged_row(row) for memory, row in got.items())
    if name == "status":
        named = {item.get("memoryId") for item in got["attention"] if item["code"] == "damaged"}
        others = [item for item in got["attention"] if item.get("memoryId") not in named]
        return bool(named or damaged) and all(item in expected["attention"] for item in others)
    return name in store.learnings and is_damaged_row(got["memory"])


def check_damage(store: Store, change: Damage) -> list[str]:
    """What is wrong with how a damaged copy behaves."""
    world = store.copy(change)
    got = store.ask(world)
    listed = got["memories"] if isinstance(got["memories"], dict) else {}
    damaged = {memory for memory, row in listed.items() if row["damaged"]} | (
        set(store.answers["memories"]) - set(listed)
    )
    found = [
        f"{change.name}: {name} answers otherwise"
        for name, answer in got.items()
        if not is_right(name, answer, store.answers[name], store, damaged)
    ]
    result = world.store.verify(by=MONA)
    if result["ok"] or not result["problems"]:
        found.append(f"{change.name}: verify finds nothing")
    if change.stream in STOPPING and not is_refusal(attempt(lambda: world.store.recall(AGENT, "Mind it."))):
        found.append(f"{change.name}: recall goes on after verify found damage")
    return found


def choose(changes: Iterable[Damage], each: int) -> list[Damage]:
    """A few of every kind of damage to every kind of record: numbers, IDs and digests make no kind of their own."""
    kinds: dict[str, list[Damage]] = {}
    for change in changes:
        kind = re.sub(r"[0-9a-f]{6,}|[0-9]+", "", change.name.split("→")[0])
        kinds.setdefault(f"{change.stream} {kind}", []).append(change)
    return [
        found[n * (len(found) - 1) // max(each - 1, 1)]
        for found in kinds.values()
        for n in range(min(each, len(found)))
    ]


def check_all(store: Store, changes: Sequence[Damage], at_least: int) -> None:
    assert len(changes) >= at_least
    assert [problem for change in changes for problem in check_damage(store, change)] == []


def test_no_damaged_row_is_used(stored: Store) -> None:
    with stored.connect() as connection:
        check_all(stored, choose(damage.damage_rows(connection), 3), 70)


def test_no_row_is_lost_to_a_damaged_column(stored: Store) -> None:
    with stored.connect() as connection:
        check_all(stored, choose(damage.damage_columns(connection), 1), 40)


def test_no_damaged_head_is_believed(stored: Store) -> None:
    with stored.connect() as connection:
        check_all(stored, choose(damage.damage_heads(connection), 1), 40)


def test_a_removed_text_that_comes_back_is_noticed(stored: Store) -> None:
    with stored.connect() as connection:
        changes = list(damage.damage_redactions(connection, stored.before))
    check_all(stored, changes, 2)
    for change in changes:
        world = stored.copy(change)
        assert "removed_text_is_back" in {p["code"] for p in world.store.verify(by=MONA)["problems"]}
        assert b"Sentinel" in b"".join(raw for _, _, raw in world.rows("events"))
        with refused("damaged"):
            world.store.redact_comment(MONA, "reply")


def test_a_removal_never_answers_that_there_was_nothing(stored: Store) -> None:
    removed = stored.copy(Damage("none", None, lambda connection: None)).store.redact_comment(MONA, FIRST)["removed"]
    assert removed == 2
    with stored.connect() as connection:
        changes = [c for c in damage.damage_columns(connection) if c.stream == "events" and " id " not in c.name]
        answers = {
            change.name: attempt(lambda change=change: stored.copy(change).store.redact_comment(MONA, FIRST)["removed"])  # type: ignore[misc]
            for change in choose(changes, 3)
        }
    assert {name: answer for name, answer in answers.items() if answer != removed and not is_refusal(answer)} == {}


# Marks -------------------------------------------------------------------------------------------------------------


def set_canonical(world: World, record_id: str, canonical: bytes) -> None:
    provider = world.provider
    assert isinstance(provider, SqliteProvider)
    location = provider.manifest()["storage"]["location"]
    with closing(apsw.Connection(location)) as connection:
        connection.execute("UPDATE rows SET canonical = ? WHERE id = ? AND version <> 1", (canonical, record_id))


def break_row(world: World, record_id: str) -> bytes:
    """Change a letter of a record's text; the intact bytes."""
    intact = [raw for _, _, raw in world.rows("events", "memories") if f'"id":"{record_id}"'.encode() in raw][-1]
    set_canonical(world, record_id, re.sub(b"Words|Mind", b"Other", intact))
    return intact


@pytest.fixture
def marked(directory: Path) -> tuple[World, str, bytes]:
    """A store with one damaged comment that no learning cites, found by verify; its ID and intact bytes."""
    world = World(SqliteProvider(directory / "store"))
    world.consent()
    world.learning()
    world.hub.comment("101", "mona")
    world.collect()
    event = world.event("101")
    intact = break_row(world, event)
    assert world.recall()["learnings"], "damage that nobody found stops only what reads it"
    assert ("damaged", event) in [(p["code"], p["recordId"]) for p in world.store.verify(by=MONA)["problems"]]
    return world, event, intact


def test_damage_that_verify_found_anywhere_stops_everything_and_is_named(marked: tuple[World, str, bytes]) -> None:
    world, event, _ = marked
    (mark,) = world.audit("damage.mark")
    assert event in mark["details"]["damaged"]
    learning = world.latest(world.records("memories")[0]["id"])
    stopped: list[Callable[[], object]] = [
        world.recall,
        world.collect,
        world.consent,
        world.consolidate,
        world.store.memories,
        lambda: world.store.show(learning["id"]),
        lambda: world.label(FIRST),
        lambda: world.store.label(AGENT, ScriptedLabeler(lambda request: [])),
        lambda: world.store.supersede(MONA, learning["id"], replaces=["memory_" + "0" * 64]),
        lambda: world.store.accept(MONA, learning["id"], review_digest=learning["reviewDigest"]),
        lambda: world.store.reject(MONA, learning["id"], review_digest=learning["reviewDigest"], reason="R."),
    ]
    for act in stopped:
        with refused("damaged") as caught:
            act()
        assert event in caught.value.message


def test_status_withdrawal_retirement_and_removal_go_on_where_they_read_nothing_damaged(
    marked: tuple[World, str, bytes],
) -> None:
    world, event, _ = marked
    attention = world.store.status()["attention"]
    assert {"code": "damaged", "recordId": event} in attention
    assert world.store.redact_comment(OCTO, FIRST)["removed"] == 2
    memory = world.records("memories")[0]["id"]
    assert world.store.retire(OCTO, memory, reason="R.")["memory"]["state"] == "retired"
    (grant,) = world.store.list_grants()["grants"]
    world.store.withdraw_grant(OCTO, grant["id"], reason="R.")
    with refused("damaged"):
        world.store.redact_comment(OCTO, "101")


def test_a_mark_is_made_once_and_cleared_when_everything_verifies_again(marked: tuple[World, str, bytes]) -> None:
    world, event, intact = marked
    world.store.verify(by=MONA)
    assert len(world.audit("damage.mark")) == 1
    set_canonical(world, event, intact)
    with refused("damaged"):
        world.recall()
    assert world.store.verify(by=OCTO)["ok"]
    assert [entry["actor"]["id"] for entry in world.audit("damage.clear")] == ["github:octo"]
    assert world.recall()["learnings"]
    assert world.store.verify(by=OCTO)["ok"]
    break_row(world, event)
    world.store.verify(by=MONA)
    assert len(world.audit("damage.mark")) == 2
    with refused("damaged"):
        world.recall()


def test_a_damaged_learning_leaves_no_mark(directory: Path) -> None:
    world = World(SqliteProvider(directory / "store"))
    world.consent()
    broken, other = world.learning(), world.learning("tone")
    break_row(world, broken)
    codes = [problem["code"] for problem in world.store.verify(by=MONA)["problems"]]
    assert "damaged" in codes
    assert world.audit("damage.mark") == []
    assert world.recalled() == [other]
    assert world.store.show(broken)["memory"]["damaged"]


# A file from another time ------------------------------------------------------------------------------------------


def audit_anchor(world: World) -> tuple[int, str]:
    head = EMPTY_HEAD
    for entry in world.checked("audit-entry", "audit"):
        head = advance(head, entry.digest)
    return head.count, head.chain


def test_an_older_copy_of_the_file_is_noticed_by_who_remembers_the_audit_chain(stored: Store) -> None:
    seen = audit_anchor(stored.world)
    older = stored.directory / "older"
    older.mkdir(mode=0o700)
    shutil.copyfile(stored.before, older / FILE)
    (older / FILE).chmod(0o600)
    world = World(SqliteProvider(older))
    assert world.store.verify(by=MONA)["ok"]
    result = world.store.verify(by=MONA, anchor=seen)
    assert [problem["code"] for problem in result["problems"]] == ["rolled_back"]


@pytest.mark.parametrize("number", [1, 2, 5, 20])
def test_a_file_cut_at_its_end_is_noticed(stored: Store, number: int) -> None:
    cut = "DELETE FROM rows WHERE key > (SELECT max(key) - ? FROM rows)"
    world = stored.copy(Damage("cut", None, lambda connection: connection.execute(cut, (number,))))
    assert not world.store.verify(by=MONA)["ok"]

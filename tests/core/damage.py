"""A small SQLite store of everything, and each way to damage one thing in it behind the provider's back."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from providers.storage.sqlite import SqliteProvider
from providers.storage.sqlite.schema import STREAM_NUMBERS
from tests.core.builders import MONA, THEME, World

STREAMS = {number: name for name, number in STREAM_NUMBERS.items()}
FILE = "learning.sqlite"


def build(directory: Path, keep: Callable[[], object] = lambda: None) -> World:
    """Learnings accepted, replaced, retired and rejected, a proposal, a removal (`keep` is called before it), a use."""
    world = World(SqliteProvider(directory))
    world.consent()
    world.discuss(authors=["mona", "octo", "ada"])
    first, second, third = (f"{THEME}-{number}" for number in (1, 2, 3))
    old = world.propose(first, second, theme="old")
    world.accept(old)
    new = world.propose(first, second, theme="new", replaces=[old], text="Newer.")
    world.accept(new, text="Newest.")
    world.reject(world.propose(first, theme="rejected", text="Rejected."))
    retired = world.propose(second, theme="retired", text="Retired.")
    world.accept(retired)
    world.store.retire(MONA, retired, reason="R.")
    contested = world.propose(first, second, theme="kept", counter=[third], text="Kept.")
    world.accept(contested, reason="R.")
    world.hub.reply("reply", first, "lin", "Sentinel.")
    world.hub.resolve(second)
    world.collect()
    world.label("reply", summary="Sentinel label.")
    keep()
    world.store.redact_comment(MONA, "reply")
    world.hub.comment("late", "mona", "Late.")
    world.hub.delete(third)
    world.collect()
    world.propose("late", theme="proposed", text="Proposed.")
    world.store.withdraw_grant(MONA, world.consent("training"), reason="Over.")
    world.recall()
    return world


def settle(database: Path) -> None:
    """Bring everything into the one file, so that it can be copied."""
    with closing(apsw.Connection(str(database))) as connection:
        connection.pragma("wal_checkpoint(TRUNCATE)")
        connection.pragma("journal_mode", "delete")


@dataclass(frozen=True)
class Damage:
    """One change to the file. `stream` is that of the row it hits, None for a head or a counter."""

    name: str
    stream: str | None
    apply: Callable[[apsw.Connection], object]


def damage_rows(connection: apsw.Connection) -> Iterator[Damage]:
    """Each row: a byte changed in three places, the row lost, doubled, and exchanged with the next of its stream."""
    rows = list(connection.execute("SELECT key, stream, id, version, canonical FROM rows ORDER BY key"))
    for key, number, record_id, version, canonical in rows:
        stream = STREAMS[number]
        name = f"{stream} {key & 0xFFFF} {record_id[:14]} v{version}"
        for place in (
            canonical.index(b'"digest":"') + 20,
            canonical.index(record_id.encode()) + 16,
            len(canonical) // 3,
        ):
            yield Damage(f"{name}: byte {place} changed", stream, _set(key, "canonical", _flip(canonical, place)))
        yield Damage(f"{name}: lost", stream, _run("DELETE FROM rows WHERE key = ?", key))
        yield Damage(f"{name}: doubled", stream, _double(key))
        other = next((row for row in rows if row[1] == number and row[0] > key), None)
        if other is not None:
            yield Damage(f"{name}: exchanged with the next", stream, _exchange(key, canonical, other[0], other[4]))


def damage_columns(connection: apsw.Connection) -> Iterator[Damage]:
    """Each column that a query filters by, in each row that has it: emptied, and set to what another row has."""
    for column in ("id", "head", "time", "type", "parent", "comment_id", "operation", "state", "theme", "version"):
        for key, number, value in connection.execute(f"SELECT key, stream, {column} FROM rows ORDER BY key"):
            if value is None:
                continue
            stream = STREAMS[number]
            query = f"SELECT {column} FROM rows WHERE {column} IS NOT ? AND stream = ? LIMIT 1"
            others = list(connection.execute(query, (value, number)))
            for other in [row[0] for row in others] + (
                [None] if column not in ("id", "head", "time", "version") else []
            ):
                name = f"{stream} {key & 0xFFFF}: {column} {value} → {other}"
                yield Damage(name, stream, _set(key, column, other))


def damage_heads(connection: apsw.Connection) -> Iterator[Damage]:
    """Each head: another count, chain, sum of redactions and number, and the head lost."""
    changes = ("count = count + 1", "chain = zeroblob(32)", "redacted = redacted + 1", "redacted_xor = chain")
    for (name,) in connection.execute("SELECT name FROM heads ORDER BY number"):
        for change in (*changes, "number = number + 100")[: 5 if name not in ("change", "decided") else 4]:
            yield Damage(f"head {name}: {change}", None, _run(f"UPDATE heads SET {change} WHERE name = ?", name))
        yield Damage(f"head {name}: lost", None, _run("DELETE FROM heads WHERE name = ?", name))


def damage_redactions(connection: apsw.Connection, before: Path) -> Iterator[Damage]:
    """Each event that lost its text has it back, as a copy of the file from before had it."""
    with closing(apsw.Connection(str(before))) as older:
        texts = dict(older.execute("SELECT id, canonical FROM rows WHERE stream = 2 AND redacted = 0"))
    for key, record_id in connection.execute("SELECT key, id FROM rows WHERE redacted = 1"):
        if record_id in texts:
            yield Damage(f"event {record_id[:14]}: text back", "events", _set(key, "canonical", texts[record_id]))


def damaged_copy(source: Path, target: Path, damage: Damage) -> World:
    """A world over a copy of the store with this damage. It has no Hub: nothing new is written there."""
    target.mkdir(mode=0o700)
    copy = target / FILE
    shutil.copyfile(source, copy)
    copy.chmod(0o600)
    with closing(apsw.Connection(str(copy))) as connection:
        damage.apply(connection)
    return World(SqliteProvider(target))


def _flip(canonical: bytes, place: int) -> bytes:
    """Another byte that keeps the JSON readable more often than not: the next hex digit, letter or sign."""
    changed = bytearray(canonical)
    changed[place] ^= 1
    return bytes(changed)


def _run(statement: str, *values: Any) -> Callable[[apsw.Connection], object]:
    return lambda connection: connection.execute(statement, values)


def _set(key: int, column: str, value: Any) -> Callable[[apsw.Connection], object]:
    return _run(f"UPDATE OR REPLACE rows SET {column} = ? WHERE key = ?", value, key)


def _double(key: int) -> Callable[[apsw.Connection], object]:
    """The row once more, at the end; it must differ in what the index holds to be unique."""
    return _run(
        "INSERT INTO rows SELECT (SELECT max(key) + 1 FROM rows), scope, stream, id || '-', version, head, time, type, "
        "parent, comment_id, operation, state, theme, redacted, canonical FROM rows WHERE key = ?",
        key,
    )


def _exchange(key: int, canonical: bytes, other: int, others: bytes) -> Callable[[apsw.Connection], object]:
    def apply(connection: apsw.Connection) -> None:
        _set(key, "canonical", others)(connection)
        _set(other, "canonical", canonical)(connection)

    return apply

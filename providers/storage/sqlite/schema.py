"""The tables of a store, and how an older store is brought up to date.

`rows` holds the rows of all streams and scopes. A row's `key` is its scope's key and its position in that scope in one
integer, so that every index ends in (scope, position) at no cost and a read by position is a range of keys. `head`
names the row's primary group by its number in the scope's `heads`, which is far smaller than the group's name. The
other columns repeat what a query may filter by; what is read is always `canonical`.

`purge` counts the redactions, and up to which of them the write-ahead log was known to hold none of the removed text.
"""

from __future__ import annotations

from typing import Final

import apsw

from learning_core.errors import NewerStore, StorageFailed

APPLICATION_ID: Final = 0x4C524E31
"""Marks the file as a learning store ("LRN1")."""

PAGE_SIZE: Final = 8192
"""Bytes. With SQLite's default of 4,096 only three rows fit a page, and an import takes a tenth longer."""

POSITION_BITS: Final = 40
POSITION_MASK: Final = (1 << POSITION_BITS) - 1

STREAM_NUMBERS: Final = {
    "episodes": 1,
    "events": 2,
    "grants": 3,
    "withdrawals": 4,
    "collections": 5,
    "exports": 6,
    "audit": 7,
    "memories": 8,
}

MIGRATIONS: Final[list[str]] = [
    """
    CREATE TABLE scopes (
        key INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        last_position INTEGER NOT NULL,
        last_head INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE heads (
        scope INTEGER NOT NULL,
        name TEXT NOT NULL,
        number INTEGER NOT NULL,
        count INTEGER NOT NULL,
        chain BLOB NOT NULL,
        redacted INTEGER NOT NULL,
        redacted_xor BLOB NOT NULL,
        PRIMARY KEY (scope, name)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE rows (
        key INTEGER PRIMARY KEY,
        scope INTEGER NOT NULL,
        stream INTEGER NOT NULL,
        id TEXT NOT NULL,
        version INTEGER NOT NULL,
        head INTEGER NOT NULL,
        time TEXT NOT NULL,
        type TEXT,
        parent TEXT,
        comment_id TEXT,
        operation TEXT,
        state TEXT,
        theme TEXT,
        redacted INTEGER NOT NULL,
        canonical BLOB NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX rows_by_id ON rows (scope, stream, id, version);
    CREATE INDEX rows_by_stream ON rows (stream);
    CREATE INDEX rows_by_head ON rows (head, stream);
    CREATE INDEX rows_by_type ON rows (type) WHERE type IS NOT NULL;
    CREATE INDEX rows_by_parent ON rows (parent) WHERE parent IS NOT NULL;
    CREATE INDEX rows_by_comment_id ON rows (comment_id) WHERE comment_id IS NOT NULL;
    CREATE INDEX rows_by_operation ON rows (operation) WHERE operation IS NOT NULL;
    CREATE INDEX rows_by_state ON rows (state) WHERE state IS NOT NULL;
    CREATE INDEX rows_by_theme ON rows (theme) WHERE theme IS NOT NULL;
    CREATE TABLE purge (
        requested INTEGER NOT NULL,
        done INTEGER NOT NULL
    ) STRICT;
    INSERT INTO purge VALUES (0, 0);
    """,
]
"""Step n brings a store of schema version n to n + 1. A released step never changes; a new one is added."""


def current_version() -> int:
    """The schema version that this program writes."""
    return len(MIGRATIONS)


def read_version(connection: apsw.Connection) -> int:
    """The store's schema version; 0 when it has no tables yet.

    Raises `NewerStore` for a version this program does not know, `StorageFailed` for another program's database.
    """
    if connection.pragma("application_id") != APPLICATION_ID:
        if connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is None:
            return 0
        # Another process may have made the tables since the first look.
        if connection.pragma("application_id") != APPLICATION_ID:
            raise StorageFailed(f"{connection.filename} is another program's database. Move it away.")
    version = int(connection.pragma("user_version"))
    if version > current_version():
        raise NewerStore(
            f"The store has schema version {version}; this program reads up to {current_version()}. Update it.",
            found=version,
            supported=current_version(),
        )
    return version


def migrate(connection: apsw.Connection) -> None:
    """Bring the store to the current version, whole or not at all; a second process that waited finds it done."""
    connection.execute("BEGIN IMMEDIATE")
    for step in MIGRATIONS[read_version(connection) :]:
        connection.execute(step)
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", current_version())
    connection.execute("COMMIT")

"""Erased text leaves the Hub's database files, also when a reader stands in the way of the checkpoint."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from django.db import connection

from hub_learning.environment import read_database
from tests.hub.conftest import MakeItem
from tests.hub.processes import Agent, Hub
from tests.hub.test_intake import LATER

SENTINEL = "quixotic-zebra-7731"


def marks(hub: Hub) -> int:
    return len(hub.query("SELECT key FROM hub_learning_hubsetting WHERE key = 'purge'"))


def test_a_deletion_leaves_no_text_in_any_file(hub: Hub, agent: Agent, make_item: MakeItem) -> None:
    item = make_item(body=SENTINEL)
    agent.ask("send", [item])
    assert hub.holders(SENTINEL), "no control"
    agent.ask("send", [item | {"body": None, "deletedAt": LATER}])
    assert hub.holders(SENTINEL) == []
    assert marks(hub) == 0


def test_a_reader_delays_the_purge_and_the_sweep_finishes_it(hub: Hub, agent: Agent, make_item: MakeItem) -> None:
    item = make_item(body=SENTINEL)
    agent.ask("send", [item])
    reader = sqlite3.connect(f"file:{hub.directory / 'hub.sqlite'}?mode=ro", uri=True, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT body FROM hub_learning_comment").fetchall() == [(SENTINEL,)]
    agent.ask("send", [item | {"body": None, "deletedAt": LATER}])
    agent.ask("sweep")
    assert marks(hub) == 1
    assert hub.holders(SENTINEL)
    reader.execute("COMMIT")
    reader.close()
    agent.ask("sweep")
    assert marks(hub) == 0
    assert hub.holders(SENTINEL) == []


@pytest.mark.parametrize("secure", [True, False])
def test_it_is_secure_delete_that_overwrites(tmp_path: Path, secure: bool) -> None:
    options = read_database(None, tmp_path)["OPTIONS"]
    assert isinstance(options, dict)
    settings = options["init_command"]
    assert "PRAGMA secure_delete=ON;" in settings
    database = sqlite3.connect(tmp_path / "x.sqlite", isolation_level=None)
    database.executescript(settings if secure else settings.replace("secure_delete=ON", "secure_delete=OFF"))
    database.execute("CREATE TABLE comment (body TEXT)")
    database.execute("INSERT INTO comment VALUES (?)", [SENTINEL * 1000])
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.execute("UPDATE comment SET body = NULL")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    assert (SENTINEL.encode() in (tmp_path / "x.sqlite").read_bytes()) is not secure


def test_the_hub_uses_these_settings(db: None) -> None:
    with connection.cursor() as cursor:
        found = {
            name: cursor.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("secure_delete", "foreign_keys", "synchronous", "temp_store", "busy_timeout")
        }
    assert found == {"secure_delete": 1, "foreign_keys": 1, "synchronous": 2, "temp_store": 2, "busy_timeout": 30_000}
    assert connection.transaction_mode == "IMMEDIATE"  # type: ignore[attr-defined]

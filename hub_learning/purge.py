"""Erased text must leave the Hub's database file too, not only its row.

SQLite overwrites removed text (`secure_delete`), but its write-ahead log keeps older pages until a checkpoint empties
it. Erasing sets a mark in its own transaction; after the commit a truncating checkpoint runs and clears the mark. A
reader may stand in its way: then the mark stays, and the sweep tries again.

PostgreSQL keeps dead rows until it vacuums them; docs/operations.md says what follows from that.

Source: design.md, decisions 4 and 9.
"""

from __future__ import annotations

import secrets

from django.db import connection, transaction

from hub_learning.models import HubSetting

PATIENCE_MS = 50
"""How long a checkpoint waits for readers and writers, who wait for it meanwhile."""


def mark_purge() -> None:
    """Remember, in the running transaction, that text was erased; try to purge it right after the commit."""
    HubSetting.objects.update_or_create(key=HubSetting.Key.PURGE, defaults={"value": secrets.token_hex(8)})
    transaction.on_commit(finish_purge)


def finish_purge() -> bool:
    """Empty the write-ahead log if text waits in it. False when something is in the way: try again later."""
    mark = HubSetting.objects.filter(key=HubSetting.Key.PURGE).first()
    if mark is None or connection.vendor != "sqlite":
        return True
    with connection.cursor() as cursor:
        patience = cursor.execute("PRAGMA busy_timeout").fetchone()[0]
        cursor.execute(f"PRAGMA busy_timeout = {PATIENCE_MS}")
        try:
            blocked = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {int(patience)}")
    if blocked:
        return False
    # Only the mark that was there before: text erased meanwhile has set another.
    HubSetting.objects.filter(key=HubSetting.Key.PURGE, value=mark.value).delete()
    return True

"""The default provider: one SQLite file in the learning data directory."""

from providers.storage.sqlite.provider import SqliteProvider

__all__ = ["SqliteProvider"]

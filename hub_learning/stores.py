"""The one place where the Hub opens learning stores and the parts that plug into them.

Nothing is kept open: a store's provider opens a connection per operation. A store is found by its repository's number,
so it outlives renames.

Source: design.md, decisions 4, 7, 8, 11 and 15.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

from django.conf import settings

from hub_learning.models import Comment, HubSetting, Repository
from learning_core.cli import Workspace
from learning_core.errors import InvalidConfiguration
from learning_core.identifiers import audit_id
from learning_core.plugins import MemoryConsolidator, MemoryLabeler
from learning_core.provider import HEADS, HeadedProvider, Query
from learning_core.store import LearningStore
from providers import registry
from providers.storage.sqlite import SqliteProvider
from providers.turn import take_turn as take_lock


def open_store(repository: Repository) -> LearningStore:
    """The repository's learning store. One that does not exist yet reads as empty and is made by its first write."""
    provider = registry.create_provider(configuration(repository), store_directory(repository.pk), None)
    return LearningStore(provider, repository.scope)


def take_turn(repository_id: int, *, wait_seconds: float = 0.0) -> AbstractContextManager[None]:
    """Hold the repository's turn. Raises `Busy` when another process holds it longer than `wait_seconds`."""
    directory = store_directory(repository_id)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return take_lock(directory / "turn.lock", wait_seconds=wait_seconds)


def withheld_comments(repository: Repository) -> frozenset[str]:
    """Hub comment IDs whose edit or deletion the store does not know yet: whatever cites them is withheld."""
    rows = Comment.objects.filter(repository=repository, dirty=True)
    return frozenset(rows.values_list("comment_id", flat=True))


def create_labeler(repository: Repository) -> MemoryLabeler:
    """The chosen labeler. Raises `InvalidConfiguration` when none is chosen."""
    if chosen_labeler() is None:
        raise InvalidConfiguration("A Hub administrator has to choose a labeler first.")
    return registry.create_labeler(configuration(repository), None)


def create_consolidator(repository: Repository) -> MemoryConsolidator:
    """The recurrence consolidator with the repository's own thresholds."""
    return registry.create_consolidator(configuration(repository), None)


def open_workspace(repository: Repository) -> Workspace:
    """The repository's store as the learning command works with it."""
    return Workspace(
        repository.scope,
        open_store(repository).provider,
        {"scope from": f"the Hub's repository {repository}", "data": str(store_directory(repository.pk))},
        lambda: create_labeler(repository),
        lambda: create_consolidator(repository),
        lambda seconds: take_turn(repository.pk, wait_seconds=seconds),
        lambda path: None,
        lambda: find_anchor(repository),
    )


def note_anchor(repository: Repository, store: LearningStore) -> None:
    """Remember how far the store's audit has come, so that `verify` notices a store that was rolled back or lost."""
    if HEADS in store.manifest["capabilities"]:
        head = cast("HeadedProvider", store.provider).read_heads(store.scope, ["audit"])["audit"]
        known = Repository.objects.filter(pk=repository.pk, audit_count__lt=head.count)
        known.update(audit_count=head.count, audit_chain=head.chain)


def find_anchor(repository: Repository) -> tuple[int, str] | None:
    """The audit's count and chain as last seen; None for a store that was never written to."""
    count, chain = Repository.objects.values_list("audit_count", "audit_chain").get(pk=repository.pk)
    return (count, chain) if count else None


def find_audit_position(store: LearningStore, operation: str, subject: str, chunk: int = 0) -> int | None:
    """The position of the store's audit entry for an operation on a subject; None if it has none."""
    query = Query(ids=(audit_id(store.scope, operation, subject, chunk),))
    return next((row.position for row in store.provider.read_records(store.scope, "audit", query)), None)


def finish_purge(repository: Repository) -> bool:
    """Finish what a reader kept a removal from: True when no removed text is left in the store's files."""
    provider = open_store(repository).provider
    return not isinstance(provider, SqliteProvider) or provider.sweep()


def chosen_labeler() -> str | None:
    """The labeler that a Hub administrator chose, or None: then no repository learns."""
    setting = HubSetting.objects.filter(key=HubSetting.Key.LABELER).first()
    return setting.value["labeler"] if setting else None


def configuration(repository: Repository) -> Mapping[str, Any]:
    """The repository's settings and the Hub's labeler as a `replica.learning-config/v1`."""
    options: dict[str, Any] = {
        "minThreads": repository.min_threads,
        "minPrototypes": repository.min_prototypes,
        "minReviewers": repository.min_reviewers,
    }
    if repository.categories:
        options["categories"] = repository.categories
    labeler = chosen_labeler()
    return {
        "schemaVersion": "replica.learning-config/v1",
        "labeling": {"labeler": labeler} if labeler else {},
        "consolidation": {"consolidator": "recurrence", "options": options},
    }


def store_directory(repository_id: int) -> Path:
    """Where the store's files are."""
    directory: Path = settings.HUB.data_directory / "repositories" / str(repository_id)
    return directory

"""The one place where the Hub opens learning stores and the parts that plug into them.

Nothing is kept open: a store's provider opens a connection per operation. A store is found by its repository's number,
so it outlives renames.

Source: design.md, decisions 4, 8 and 11.
"""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from hub_learning.models import Comment, HubSetting, Repository
from learning_core.errors import InvalidConfiguration
from learning_core.plugins import MemoryConsolidator, MemoryLabeler
from learning_core.store import LearningStore
from providers import registry

CONFIGURATION = "replica.learning-config/v1"


def open_store(repository: Repository) -> LearningStore:
    """The repository's learning store. One that does not exist yet reads as empty and is made by its first write."""
    directory = store_directory(repository)
    provider = registry.open_provider("sqlite", {}, data_directory=directory)
    return LearningStore(provider, repository.scope)


def store_directory(repository: Repository) -> Path:
    """Where the store's files are."""
    directory: Path = settings.HUB.data_directory / "repositories" / str(repository.pk)
    return directory


def withheld_comments(repository: Repository) -> frozenset[str]:
    """Hub comment IDs whose edit or deletion the store does not know yet: whatever cites them is withheld."""
    rows = Comment.objects.filter(repository=repository, dirty=True)
    return frozenset(rows.values_list("comment_id", flat=True))


def chosen_labeler() -> str | None:
    """The labeler that a Hub administrator chose, or None: then no repository learns."""
    setting = HubSetting.objects.filter(key=HubSetting.Key.LABELER).first()
    return setting.value["labeler"] if setting else None


def create_labeler() -> MemoryLabeler:
    """The chosen labeler. Raises `InvalidConfiguration` when none is chosen."""
    labeler = chosen_labeler()
    if labeler is None:
        raise InvalidConfiguration("A Hub administrator has to choose a labeler first.")
    return registry.create_labeler({"schemaVersion": CONFIGURATION, "labeling": {"labeler": labeler}})


def create_consolidator(repository: Repository) -> MemoryConsolidator:
    """The recurrence consolidator with the repository's own thresholds."""
    options = {
        "minThreads": repository.min_threads,
        "minPrototypes": repository.min_prototypes,
        "minReviewers": repository.min_reviewers,
    }
    if repository.categories:
        options["categories"] = repository.categories
    consolidation = {"consolidator": "recurrence", "options": options}
    return registry.create_consolidator({"schemaVersion": CONFIGURATION, "consolidation": consolidation})

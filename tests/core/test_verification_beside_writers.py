"""verify while others write: what they store meanwhile is no damage."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from learning_core.identifiers import IMPORTER, parse_principal
from learning_core.provider import Query, Row
from learning_core.store import LearningStore
from providers.storage.in_memory import InMemoryProvider
from tests.fixtures.logs.reading import SNAPSHOTS

SCOPE = "github.com/harborline/timetable-api"
PERSON = parse_principal("github:mona", assurance="asserted")


class Interrupted(InMemoryProvider):
    """Lets another writer in whenever a stream has been read."""

    def __init__(self) -> None:
        super().__init__()
        self.interruptions: list[Any] = []

    def read_records(self, *arguments: Any) -> Iterator[Row]:
        yield from super().read_records(*arguments)
        self._interrupt()

    def read_memory_versions(self, *arguments: Any) -> Iterator[Row]:
        yield from super().read_memory_versions(*arguments)
        self._interrupt()

    def _interrupt(self) -> None:
        if self.interruptions:
            work, self.interruptions = self.interruptions[0], self.interruptions[1:]
            waiting, self.interruptions = self.interruptions, []
            work()
            self.interruptions = waiting


def works(store: LearningStore) -> Iterable[Any]:
    yield lambda: store.recall(IMPORTER, "a task")
    yield lambda: store.add_grant(PERSON, purposes=["evaluation"], reason="More.")
    yield lambda: store.import_comments(IMPORTER, SNAPSHOTS["second.later"], redact_deleted=True)
    yield lambda: store.redact_comment(PERSON, store_comment(store))


def store_comment(store: LearningStore) -> str:
    row = next(iter(store.provider.read_records(store.scope, "episodes", Query())))
    return str(json.loads(row.canonical)["rootCommentId"])


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("skipped", [0, 1, 2, 3, 5, 8, 9])
def test_what_others_store_meanwhile_is_no_damage(number: int, skipped: int) -> None:
    provider = Interrupted()
    store = LearningStore(provider, SCOPE)
    store.add_grant(PERSON, purposes=["review", "instruction"], reason="We agreed.")
    store.import_comments(IMPORTER, SNAPSHOTS["second"])
    provider.interruptions = [*([lambda: None] * skipped), list(works(store))[number]]
    result = store.verify(by=IMPORTER)
    assert result["ok"], result["problems"]
    provider.interruptions = []
    assert store.verify(by=IMPORTER)["ok"]

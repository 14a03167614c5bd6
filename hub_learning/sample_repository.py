"""The sample repository of an empty local Hub: invented review comments, taken in the way a review tool sends them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from hub_learning import stores
from hub_learning.access import LOCAL_HOST, authenticated
from hub_learning.actions import Message, do_add_grant, do_add_repository, do_choose_labeler, do_record_comments
from hub_learning.models import Repository
from hub_learning.sign_in import local_administrator

SAMPLE_ID = 1
OWNER, NAME = "acme", "checkout-prototypes"


def find_missing_sample() -> bool:
    """Whether the Hub holds no repository, or the sample was not finished."""
    sample = Repository.objects.filter(pk=SAMPLE_ID, host=LOCAL_HOST, owner=OWNER, name=NAME)
    return not Repository.objects.exists() or sample.filter(enabled_at=None).exists()


def load_sample(on_progress: Callable[[int, int], None]) -> None:
    """Make the repository, take in its comments, choose the offline labeler, and permit review and instruction.

    `on_progress(done, total)` counts messages. Interrupted, it goes on where it was.
    """
    by = authenticated(local_administrator())
    repository = Repository.objects.filter(pk=SAMPLE_ID).first()
    if repository is None:
        repository = do_add_repository(by, SAMPLE_ID, host=LOCAL_HOST, owner=OWNER, name=NAME)
    batches = json.loads((Path(__file__).parent / "sample" / "batches.json").read_text("utf-8"))
    for number, batch in enumerate(batches):
        body = json.dumps(batch).encode()
        do_record_comments(repository, Message(batch["comments"], body, key=f"sample-{number}"))
        on_progress(number + 1, len(batches))
    if stores.chosen_labeler() is None:
        do_choose_labeler(by, "offline")
    do_add_grant(repository, by, purposes=["review", "instruction"], reason="Sample data, invented for trying the Hub.")

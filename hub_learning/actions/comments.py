"""What review tools tell the Hub: comments written, edited, deleted, resolved."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from hub_learning.intake import CommentConflict, Intake, InvalidComment
from hub_learning.models import Comment, Delivery, Repository, SecurityAuditEntry, Step
from hub_learning.purge import mark_purge
from hub_learning.steps import enqueue_step
from learning_core.errors import LearningError


class DeliveryKeyReused(LearningError):
    """An Idempotency-Key was used before, for a message with another body."""

    code = "idempotency_key_reused"


@dataclass(frozen=True, slots=True)
class Message:
    """Checked comments from one sender. `key` identifies the delivery; without one, equal bodies are one delivery."""

    comments: Sequence[Mapping[str, Any]]
    body: bytes
    key: str | None = None
    as_of: datetime | None = None

    @property
    def digest(self) -> str:
        """A digest of the body under the Hub's secret."""
        return hmac.digest(settings.SECRET_KEY.encode(), self.body, "sha256").hex()


def do_record_comments(repository: Repository, message: Message) -> dict[str, int]:
    """Take in a message: all of it or, with a refusal, its deletions only. One taken in before changes nothing.

    Answers counts: received, created, edited, deleted. What follows from it is asked for in the same transaction.
    Raises `DeliveryKeyReused`, and `CommentConflict` or `InvalidComment`, which name a comment to correct: then the
    message may come again. A deletion never waits for that, because somebody wants the text gone.
    """
    try:
        return _record(repository, message)
    except (CommentConflict, InvalidComment):
        _record_deletions(repository, message)
        raise


@transaction.atomic
def _record_deletions(repository: Repository, message: Message) -> None:
    Repository.objects.select_for_update().get(pk=repository.pk)
    intake = Intake(repository, message.as_of or timezone.now())
    intake.load(message.comments)
    intake.record_deletions(message.comments)
    intake.save()
    _follow_up(repository, intake)


@transaction.atomic
def _record(repository: Repository, message: Message) -> dict[str, int]:
    Repository.objects.select_for_update().get(pk=repository.pk)
    key = f"key:{message.key}" if message.key else f"body:{message.digest}"
    before = Delivery.objects.filter(repository=repository, key=key).first()
    if before is not None:
        if before.digest != message.digest:
            raise DeliveryKeyReused("This Idempotency-Key came with another body before. Send a new key.")
        return dict(before.answer)
    intake = Intake(repository, message.as_of or timezone.now())
    intake.load(message.comments)
    for item in message.comments:
        intake.record(item)
    intake.save()
    _follow_up(repository, intake)
    answer = {
        "received": len(message.comments),
        "created": len(intake.created),
        "edited": len(intake.edited),
        "deleted": len(intake.erased),
    }
    Delivery.objects.create(repository=repository, key=key, digest=message.digest, answer=answer)
    return answer


def _follow_up(repository: Repository, intake: Intake) -> None:
    """Ask for the steps that bring the change into the store, removals first. What never learned has no store."""
    if intake.erased:
        mark_purge()
        for comment in intake.erased.values():
            _audit_erasure(repository, comment)
            if repository.enabled_at is not None:
                enqueue_step(repository, Step.Kind.REDACT, comment.comment_id)
    changed = intake.created or intake.edited or intake.erased or intake.touched or intake.turned
    if changed and repository.enabled:
        enqueue_step(repository, Step.Kind.IMPORT)


def _audit_erasure(repository: Repository, comment: Comment) -> None:
    SecurityAuditEntry.objects.create(
        actor=person_principal(repository, comment.deleted_by) or "unknown",
        action="comment.erase",
        repository=repository,
        subject=comment.comment_id,
    )


def person_principal(repository: Repository, person: Mapping[str, Any] | None) -> str | None:
    """The principal of a person in a message; None without an ID."""
    if person is None:
        return None
    if "githubId" in person:
        return f"github-user:{repository.host}/{person['githubId']}"
    if "localId" in person:
        return f"hub-user:{repository.origin}/{person['localId']}"
    return None

"""What Hub administrators decide: the labeler, the repositories, the tokens of machines."""

from __future__ import annotations

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from hub_learning.models import ApiToken, HubSetting, Repository, SecurityAuditEntry, Step
from hub_learning.steps import enqueue_step
from hub_learning.tokens import digest_token, new_token
from learning_core.errors import InvalidConfiguration
from learning_core.identifiers import Principal

LABELERS = ("offline", "copilot")


@transaction.atomic
def do_choose_labeler(by: Principal, labeler: str | None) -> None:
    """Choose who labels comments for every repository of this Hub; None stops learning. Enabled repositories run."""
    if labeler is not None and labeler not in LABELERS:
        raise InvalidConfiguration(f"There is no labeler {labeler[:40]!r}; choose {' or '.join(LABELERS)}.")
    HubSetting.objects.update_or_create(
        key=HubSetting.Key.LABELER, defaults={"value": {"labeler": labeler}, "changed_by": by.id}
    )
    SecurityAuditEntry.objects.create(actor=by.id, action="hub.choose_labeler", subject=labeler or "none")
    if labeler is not None:
        for repository in Repository.objects.filter(enabled=True):
            enqueue_step(repository, Step.Kind.IMPORT)


@transaction.atomic
def do_add_repository(by: Principal, number: int, *, host: str, owner: str, name: str) -> Repository:
    """Let the Hub hold a repository's comments. It learns nothing before its administrator permits it."""
    repository = Repository.objects.create(id=number, host=host, origin=settings.HUB.origin, owner=owner, name=name)
    SecurityAuditEntry.objects.create(
        actor=by.id, action="repository.add", repository=repository, subject=str(number), scope=repository.scope
    )
    return repository


@transaction.atomic
def do_create_token(repository: Repository, by: Principal, *, kind: ApiToken.Kind, name: str) -> str:
    """A new bearer token of the repository. The text is returned once; the Hub keeps its digest."""
    token = new_token("hub_")
    row = ApiToken.objects.create(
        repository=repository, kind=kind, name=name, digest=digest_token(token), created_by=by.id
    )
    SecurityAuditEntry.objects.create(
        actor=by.id, action="token.create", repository=repository, subject=str(row.pk), scope=repository.scope
    )
    return token


@transaction.atomic
def do_revoke_token(token: ApiToken, by: Principal) -> None:
    """End a token at once."""
    token.revoked_at = token.revoked_at or timezone.now()
    token.save(update_fields=["revoked_at"])
    SecurityAuditEntry.objects.create(
        actor=by.id,
        action="token.revoke",
        repository=token.repository,
        subject=str(token.pk),
        scope=token.repository.scope,
    )

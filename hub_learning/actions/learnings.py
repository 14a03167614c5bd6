"""What people decide on the pages. Each action calls the learning store, then adds the Hub's security audit row.

The store refuses what its rules forbid; whoever calls an action has checked the person's rights with `access_*`.
Store and Hub are two databases: should the Hub die between the two writes, `manage.py learning verify` finds the
store's entry without its row.

Source: design.md, decisions 12, 15 and 18.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from hub_learning import stores
from hub_learning.models import Repository, SecurityAuditEntry, Step
from hub_learning.steps import enqueue_step
from learning_core.identifiers import Principal

Result = dict[str, Any]


def do_accept(
    repository: Repository,
    by: Principal,
    memory_id: str,
    *,
    review_digest: str,
    text: str | None = None,
    reason: str | None = None,
) -> Result:
    """Accept a proposal as the person saw it; with `text`, edited. Raises what `LearningStore.accept` raises."""
    result = stores.open_store(repository).accept(
        by,
        memory_id,
        review_digest=review_digest,
        text=text,
        reason=reason,
        withheld_comments=stores.withheld_comments(repository),
    )
    _audit_decision(repository, by, "accept", result)
    return result


def do_reject(repository: Repository, by: Principal, memory_id: str, *, review_digest: str, reason: str) -> Result:
    """Reject a proposal as the person saw it. Raises what `LearningStore.reject` raises."""
    result = stores.open_store(repository).reject(by, memory_id, review_digest=review_digest, reason=reason)
    _audit_decision(repository, by, "reject", result)
    return result


def do_retire(repository: Repository, by: Principal, memory_id: str, *, reason: str) -> Result:
    """Stop using an accepted learning. Raises what `LearningStore.retire` raises."""
    result = stores.open_store(repository).retire(by, memory_id, reason=reason)
    _audit_decision(repository, by, "retire", result)
    return result


def do_supersede(repository: Repository, by: Principal, memory_id: str, *, replaces: Sequence[str]) -> Result:
    """Record what an accepted learning replaces. Raises what `LearningStore.supersede` raises."""
    result = stores.open_store(repository).supersede(by, memory_id, replaces=replaces)
    _audit_decision(repository, by, "supersede", result)
    return result


def do_add_grant(
    repository: Repository,
    by: Principal,
    *,
    purposes: Sequence[str],
    reason: str,
    time_from: str | None = None,
    time_to: str | None = None,
) -> Result:
    """Permit purposes, and enable the repository with its first grant. Raises what `LearningStore.add_grant` raises."""
    store = stores.open_store(repository)
    result = store.add_grant(by, purposes=purposes, time_from=time_from, time_to=time_to, reason=reason)
    grant_id = result["grant"]["id"]
    stores.note_anchor(repository, store)
    with transaction.atomic():
        _audit(repository, by, "grant.add", grant_id, stores.find_audit_position(store, "grant.add", grant_id))
        if not repository.enabled:
            _enable(repository, by)
        enqueue_step(repository, Step.Kind.IMPORT)
    return result


def do_withdraw_grant(
    repository: Repository, by: Principal, grant_id: str, *, purposes: Sequence[str] | None = None, reason: str
) -> Result:
    """End a grant, or some of its purposes; it takes effect at once. Raises what the store's method raises."""
    store = stores.open_store(repository)
    result = store.withdraw_grant(by, grant_id, purposes=purposes, reason=reason)
    position = stores.find_audit_position(store, "grant.withdraw", result["withdrawal"]["id"])
    _audit(repository, by, "grant.withdraw", grant_id, position)
    stores.note_anchor(repository, store)
    return result


@transaction.atomic
def do_enable(repository: Repository, by: Principal) -> None:
    """Let the repository learn again; it needs a grant to have any effect."""
    _enable(repository, by)
    _audit(repository, by, "repository.enable", str(repository.pk))
    enqueue_step(repository, Step.Kind.IMPORT)


@transaction.atomic
def do_disable(repository: Repository, by: Principal) -> None:
    """Stop the repository's runs. Deletions are still carried out, and accepted learnings are still recalled."""
    repository.enabled = False
    repository.next_run_at = None
    repository.save(update_fields=["enabled", "next_run_at"])
    _audit(repository, by, "repository.disable", str(repository.pk))


@transaction.atomic
def do_request_run(repository: Repository, by: Principal) -> None:
    """Start a run now."""
    _audit(repository, by, "repository.run", str(repository.pk))
    enqueue_step(repository, Step.Kind.IMPORT)


def _enable(repository: Repository, by: Principal) -> None:
    now = timezone.now()
    repository.enabled, repository.enabled_by, repository.enabled_at = True, by.id, now
    repository.next_run_at = now + timedelta(hours=repository.schedule_hours) if repository.schedule_hours else None
    repository.save(update_fields=["enabled", "enabled_by", "enabled_at", "next_run_at"])


def _audit_decision(repository: Repository, by: Principal, verb: str, result: Result) -> None:
    memory = result["memory"]
    store = stores.open_store(repository)
    position = stores.find_audit_position(store, f"memory.{verb}", memory["id"], memory["version"])
    _audit(repository, by, f"learning.{verb}", memory["id"], position)
    stores.note_anchor(repository, store)


def _audit(repository: Repository, by: Principal, action: str, subject: str, position: int | None = None) -> None:
    SecurityAuditEntry.objects.create(
        actor=by.id,
        action=action,
        repository=repository,
        subject=subject,
        scope=repository.scope,
        position=position,
    )

"""Every refusal of the core, one class each, with a stable `code`.

A `LearningError` says what was refused, which record it concerns and what to do about it. Its `code` never changes
once released; its `details` are plain JSON data without comment text, so that a host may log and store them.
"""

from __future__ import annotations

from typing import Any, ClassVar


class LearningError(Exception):
    """A refusal. `code` is stable; `str(error)` is one sentence for a person; `details` holds IDs and counts only."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


# Input ---------------------------------------------------------------------------------------------------------------


class InvalidJson(LearningError):
    """The text is not strict JSON: malformed, a repeated member name, NaN, too deep, too large, a lone surrogate."""

    code = "invalid_json"


class NotPlainJson(LearningError):
    """A programmatic value is not exactly `dict`, `list`, `str`, `int`, `bool` or `None`."""

    code = "not_plain_json"


class InvalidRecord(LearningError):
    """A record, or an input file, does not satisfy its schema. `details`: `kind`, `pointer`."""

    code = "invalid_record"


class InvalidTimestamp(LearningError):
    """A time cannot be read as a UTC instant with at most six fraction digits."""

    code = "invalid_timestamp"


class InvalidIdentifier(LearningError):
    """A scope, principal or ID is malformed, or holds control or invisible characters."""

    code = "invalid_identifier"


class InvalidArgument(LearningError):
    """An argument of an operation is outside what it accepts."""

    code = "invalid_argument"


class InvalidConfiguration(LearningError):
    """The configuration names something that does not exist or is malformed."""

    code = "invalid_configuration"


class PluginFailed(LearningError):
    """A provider, labeler or consolidator module could not be loaded, or returned what its protocol forbids."""

    code = "plugin_failed"


# Rights --------------------------------------------------------------------------------------------------------------


class NotAPerson(LearningError):
    """Only a person may do this: granting, withdrawing, deciding, removing, exporting."""

    code = "person_required"


class NotPermitted(LearningError):
    """No active grant permits the purpose."""

    code = "not_permitted"


# State ---------------------------------------------------------------------------------------------------------------


class NotFound(LearningError):
    """The named record does not exist in this scope."""

    code = "not_found"


class StaleReview(LearningError):
    """The reviewDigest is not that of the current version: what the person saw has changed."""

    code = "stale_review"


class InvalidTransition(LearningError):
    """The learning is in a state that does not allow this step."""

    code = "invalid_transition"


class EvidenceUnavailable(LearningError):
    """Evidence or counterevidence of the learning no longer permits this use."""

    code = "evidence_unavailable"


class ReasonRequired(LearningError):
    """This step needs a reason, for example accepting a contested proposal."""

    code = "reason_required"


class WrongRepository(LearningError):
    """The comment log belongs to another repository or Hub than the store."""

    code = "wrong_repository"


class SnapshotConflict(LearningError):
    """A log with different contents was already imported under this snapshot ID."""

    code = "snapshot_conflict"


class SnapshotTooOld(LearningError):
    """An unseen snapshot is older than one already imported from the same Hub repository."""

    code = "snapshot_too_old"


class InvalidLog(LearningError):
    """A comment log contradicts itself or what is stored: cursors, duplicates, pins, identities."""

    code = "invalid_log"


class InvalidHistory(LearningError):
    """A stored history links what must not be linked; guessing could remove someone else's words."""

    code = "invalid_history"


class BudgetTooSmall(LearningError):
    """The recall budget does not hold the framing. `details`: `minimum`, in Unicode code points."""

    code = "budget_too_small"


class Busy(LearningError):
    """Another operation holds the repository's turn."""

    code = "busy"


# Storage -------------------------------------------------------------------------------------------------------------


class Damaged(LearningError):
    """A stored record or group fails its schema, digest, scope or head check. `details`: `record_id` or `group`."""

    code = "damaged"


class UnsafeStorage(LearningError):
    """A store file or directory is a link, has a second name, is readable by others, or lies outside its directory."""

    code = "unsafe_storage"


class StorageFailed(LearningError):
    """The storage refused or failed; nothing was stored."""

    code = "storage_failed"


class StorageOutcomeUnknown(LearningError):
    """The storage failed while a write committed: it may or may not be stored, but never in part."""

    code = "storage_outcome_unknown"


class NewerStore(LearningError):
    """The store was written by a newer version."""

    code = "newer_store"


class Unsupported(LearningError):
    """The provider lacks a capability that this operation needs."""

    code = "unsupported"


class Conflict(LearningError):
    """A provider holds a different record under this ID, or a newer version. Nothing was stored."""

    code = "conflict"


class HeadMoved(LearningError):
    """A group changed since it was read. Nothing was stored; the operation plans again. `details`: `group`."""

    code = "head_moved"

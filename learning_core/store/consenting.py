"""Consent: record, list and end a person's permission."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from learning_core.audit import Plan
from learning_core.identifiers import Principal
from learning_core.reader import Reader
from learning_core.records import CheckedRecord
from learning_core.store.base import StoreBase, normalize_optional
from learning_core.workflows import consent


class ConsentOperations(StoreBase):
    """Grants and withdrawals."""

    def add_grant(
        self,
        by: Principal,
        *,
        purposes: Sequence[str],
        sources: Sequence[str] = ("hub-comments",),
        time_from: str | None = None,
        time_to: str | None = None,
        reason: str,
    ) -> dict[str, Any]:
        """Record a person's permission for purposes and sources, for evidence written in a half-open range.

        Returns `{"grant"}`. Raises `NotAPerson`, `ReasonRequired`, `InvalidArgument`, `InvalidRecord`.
        """
        consent.check_purposes(purposes)
        nonce = self._new_id()

        def plan(reader: Reader) -> tuple[CheckedRecord, Plan]:
            reader.usable_policy()
            return consent.plan_grant(
                by,
                scope=self.scope,
                purposes=purposes,
                sources=sources,
                time_from=normalize_optional(time_from),
                time_to=normalize_optional(time_to),
                reason=reason,
                at=self._clock(),
                nonce=nonce,
            )

        return {"grant": dict(self._change(plan).data)}

    def list_grants(self) -> dict[str, Any]:
        """Every grant, with its `active` and `withdrawn` purposes."""
        return {"grants": consent.describe_grants(self._reader().policy())}

    def withdraw_grant(
        self, by: Principal, grant_id: str, *, purposes: Sequence[str] | None = None, reason: str
    ) -> dict[str, Any]:
        """End a grant, for the purposes named or all that are left; it takes effect at once.

        Returns `{"grant", "withdrawal", "exports"}`: earlier exports that copied evidence under it. Raises
        `NotAPerson`, `NotFound`, `InvalidTransition`, `ReasonRequired`. It works beside damage elsewhere, where what it
        reads is intact.
        """
        if purposes is not None:
            consent.check_purposes(purposes)

        def plan(reader: Reader) -> tuple[CheckedRecord, Plan]:
            return consent.plan_withdrawal(
                by,
                grant_id,
                scope=self.scope,
                purposes=purposes,
                reason=reason,
                policy=reader.policy(),
                expected=reader.expect("policy"),
                at=self._clock(),
            )

        withdrawal = self._change(plan)
        reader = self._reader()
        grant = next(g for g in consent.describe_grants(reader.policy()) if g["id"] == grant_id)
        exports = consent.find_exports(reader.exports(), grant_id, withdrawal["purposes"])
        return {"grant": grant, "withdrawal": dict(withdrawal.data), "exports": exports}

"""Status and verification."""

from __future__ import annotations

from typing import Any, cast

from learning_core.errors import LearningError
from learning_core.evidence import Standing, cited_episodes
from learning_core.identifiers import Principal
from learning_core.policy import Policy
from learning_core.provider import HEADS, INDEX, HeadedProvider, IndexedProvider
from learning_core.store.base import StoreBase, bulk_work
from learning_core.workflows import verification


class CheckOperations(StoreBase):
    """What needs attention, and whether everything still holds."""

    def status(self) -> dict[str, Any]:
        """Counts and whatever needs attention: `{"counts", "attention": [{"code", …IDs}]}`."""
        reader = self._reader()
        policy = reader.policy()
        counts = {"grants": len(policy.grants), "collections": len(reader.collections())}
        attention: list[dict[str, Any]] = [{"code": "damaged", "recordId": name} for name in policy.damage]
        found = reader.all_memories()
        intact = [memory.latest for memory in found.values() if not memory.damaged]
        for state in ("proposed", "accepted", "rejected", "retired"):
            counts[state] = sum(1 for record in intact if record["state"] == state)
        attention += [{"code": "damaged", "memoryId": memory.id} for memory in found.values() if memory.damaged]
        for use in self._standings(reader, intact, policy, self._clock()):
            code = _needs_attention(use)
            if code is not None:
                attention.append({"code": code, "memoryId": use.record.id})
        contradicted = {entry["subject"] for entry in reader.audit(operations=("memory.contradicted",))}
        accepted = {record.id for record in intact if record["state"] == "accepted"}
        attention += [{"code": "contradicted", "memoryId": name} for name in sorted(contradicted & accepted)]
        counts["damaged"] = len(found) - len(intact)
        return {"counts": counts, "attention": attention}

    @bulk_work()
    def verify(self, *, by: Principal, anchor: tuple[int, str] | None = None) -> dict[str, Any]:
        """Re-check every record. Damage in a policy or evidence record leaves a mark that stops operations.

        `anchor` is the audit chain that a host saw earlier: `(count, chain)`. Returns `{"ok", "completeness",
        "checked", "problems": [{"code", "recordId", "detail"}]}`.
        """
        headed = HEADS in self.manifest["capabilities"]
        found = verification.inspect_rows(self.provider, self.scope)
        if headed:
            names = [*found.heads, "decided", "collections", "exports", "audit", "change"]
            heads = cast("HeadedProvider", self.provider).read_heads(self.scope, list(dict.fromkeys(names)))
            for group in verification.find_wrong_groups(found, heads):
                # Others may have written since: the reader tells that from damage.
                if not self._reader().adds_up(group):
                    verification.report_group(group, found)
        if INDEX in self.manifest["capabilities"]:
            verification.inspect_index(cast("IndexedProvider", self.provider).check_index(self.scope), found)
        self._verify_links(found)
        if anchor is not None:
            verification.compare_anchor(self._reader().audit(), anchor, found)
        self._mark_damage(by, found)
        return verification.describe(found, "checked" if headed else "not checked")

    def _verify_links(self, found: verification.Inspection) -> None:
        if found.damaged:
            return
        try:
            reader = self._reader()
            reader.policy()
            for memory in reader.all_memories().values():
                cited = () if memory.damaged else cited_episodes(memory.latest)
                verification.inspect_memory(memory, reader.threads(cited), found)
            for thread in reader.all_threads():
                del thread
        except LearningError as error:
            name = error.details.get("record_id") or error.details.get("group")
            found.report(error.code, name, error.message)
            found.damaged.append(str(name).removeprefix("e:"))

    def _mark_damage(self, by: Principal, found: verification.Inspection) -> None:
        try:
            reader = self._reader()
            policy = reader.policy()
            earlier = len(reader.audit(operations=("damage.mark", "damage.clear")))
        except LearningError:
            policy, earlier = Policy(), len(found.problems)
        made = verification.plan_marks(found, policy, scope=self.scope, actor=by, at=self._clock(), earlier=earlier)
        if made is not None:
            try:
                self._commit(made)
            except LearningError as error:
                found.report(error.code, None, f"The damage could not be marked: {error.message}")


def _needs_attention(use: Standing) -> str | None:
    if use.record["state"] not in ("proposed", "accepted"):
        return None
    if use.void or use.conflicted:
        return "conflicted"
    if "identity" in use.refusals or "identity_corrected" in use.refusals:
        return "identity_needs_review"
    return None if use.permitted else "needs_rebuild"

"""Random histories against a simple model: what is withheld is never shown or recalled, and everything verifies."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from learning_core.errors import LearningError
from providers.storage.in_memory import InMemoryProvider
from tests.core.builders import AGENT, GITHUB_IDS, MONA, Json, Scripted, World, propose, refused

AUTHORS = sorted(GITHUB_IDS)
BUDGET = 1_000_000


@dataclass
class Comment:
    """What the model knows of a comment: its text on the Hub and as stored, and whether it may still be used."""

    text: str
    stored: str | None = None
    versions: int = 0
    deleted_on_hub: bool = False
    deleted: bool = False
    redacted_at: int = 0
    """How many versions had lost their text when it was last removed."""

    @property
    def current(self) -> int | None:
        """The number of the version that may be used now."""
        usable = self.versions > self.redacted_at and not self.deleted
        return self.versions if usable else None


@dataclass
class Learning:
    """What the model knows of a learning: its text, the comment versions that it cites, and its state."""

    text: str
    cites: tuple[tuple[str, int], ...]
    state: str = "proposed"
    replaces: tuple[str, ...] = ()


@dataclass
class Model:
    comments: dict[str, Comment] = field(default_factory=dict)
    learnings: dict[str, Learning] = field(default_factory=dict)
    grants: dict[str, set[str]] = field(default_factory=dict)
    replaced: set[str] = field(default_factory=set)

    def permits(self, purpose: str) -> bool:
        return any(purpose in purposes for purposes in self.grants.values())

    def intact(self, learning: Learning) -> bool:
        return all(self.comments[name].current == version for name, version in learning.cites)

    def usable(self, name: str) -> bool:
        learning = self.learnings[name]
        return self.permits("instruction") and self.intact(learning) and name not in self.replaced

    def recalled(self) -> set[str]:
        return {name for name, own in self.learnings.items() if own.state == "accepted" and self.usable(name)}


class Histories(RuleBasedStateMachine):
    """People write, labelers and consolidators propose, administrators decide, withdraw and remove."""

    @initialize()
    def begin(self) -> None:
        self.world = World(InMemoryProvider())
        self.model = Model()
        self.numbers = count(1)
        self.removed: list[str] = []
        self.grant(purposes={"review", "instruction"})
        for author in AUTHORS[:3]:
            self.write(author=author, prototype="p1")
        self.collect(erase=False)

    def pick(self, data: st.DataObject, names: Any) -> str:
        return str(data.draw(st.sampled_from(sorted(names))))

    # People in the Hub

    @rule(author=st.sampled_from(AUTHORS), prototype=st.sampled_from(["p1", "p2"]))
    def write(self, author: str, prototype: str) -> None:
        name = f"c{next(self.numbers)}"
        text = f"Said{next(self.numbers)}x in {name}."
        self.world.hub.comment(name, author, text, prototype=prototype)
        self.model.comments[name] = Comment(text)

    @precondition(lambda self: self.model.comments)
    @rule(data=st.data())
    def edit(self, data: st.DataObject) -> None:
        name = self.pick(data, self.model.comments)
        comment = self.model.comments[name]
        if not comment.deleted_on_hub:
            comment.text = f"Said{next(self.numbers)}x in {name}."
            self.world.hub.edit(name, comment.text)

    @precondition(lambda self: self.model.comments)
    @rule(data=st.data(), keep_body=st.booleans())
    def delete(self, data: st.DataObject, keep_body: bool) -> None:
        name = self.pick(data, self.model.comments)
        if not self.model.comments[name].deleted_on_hub:
            self.world.hub.delete(name, keep_body=keep_body)
            self.model.comments[name].deleted_on_hub = True

    # The store

    @rule(erase=st.booleans())
    def collect(self, erase: bool) -> None:
        if not self.model.permits("review"):
            with refused("not_permitted"):
                self.world.collect(redact_deleted=erase)
            return
        self.world.collect(redact_deleted=erase)
        for comment in self.model.comments.values():
            if comment.deleted_on_hub:
                comment.deleted = comment.deleted or comment.versions > 0
                if erase and comment.versions:
                    self.forget(comment)
            elif comment.stored != comment.text:
                comment.stored = comment.text
                comment.versions += 1

    def forget(self, comment: Comment) -> None:
        if comment.stored is not None and comment.redacted_at < comment.versions:
            self.removed.append(comment.stored)
        comment.redacted_at = comment.versions

    @precondition(lambda self: self.model.comments)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        name = self.pick(data, self.model.comments)
        comment = self.model.comments[name]
        result = self.world.store.redact_comment(MONA, name)
        assert (result["removed"] > 0) == (comment.versions > comment.redacted_at)
        accepted = {n: own for n, own in self.model.learnings.items() if own.state == "accepted"}
        assert set(result["rebuild"]) == {n for n, own in accepted.items() if name in dict(own.cites)}
        self.forget(comment)

    @rule(data=st.data(), accept=st.booleans(), replace=st.booleans())
    def suggest(self, data: st.DataObject, accept: bool, replace: bool) -> None:
        current = {name: own.current for name, own in self.model.comments.items() if own.current is not None}
        if not current or not self.model.permits("instruction"):
            return
        cited = data.draw(st.lists(st.sampled_from(sorted(current)), min_size=1, max_size=3, unique=True))
        number = next(self.numbers)
        text = " ".join(f"{word}{number}" for word in ("mind", "keep", "show", "hide", "move", "name"))
        events = [self.world.event(name) for name in cited]
        split = data.draw(st.integers(1, len(cited)))
        used = self.model.recalled()
        targets = [self.pick(data, used)] if replace and accept and used else []
        options: Json = {"theme": f"theme-{number}", "text": text, "replaces": targets}
        script = Scripted(lambda view: [propose(view, events[:split], events[split:], **options)])
        (stored,) = self.world.consolidate(script)["stored"]
        versions = tuple((name, int(current[name] or 0)) for name in cited)
        self.model.learnings[stored["id"]] = Learning(text, versions)
        if accept and self.model.permits("review"):
            self.world.accept(stored["id"], reason="R.")
            self.model.learnings[stored["id"]].state = "accepted"
            self.model.learnings[stored["id"]].replaces = tuple(targets)
            self.model.replaced.update(targets)

    @precondition(lambda self: self.model.learnings)
    @rule(data=st.data(), step=st.sampled_from(["accept", "accept", "accept", "reject", "retire"]))
    def decide(self, data: st.DataObject, step: str) -> None:
        name = self.pick(data, self.model.learnings)
        own = self.model.learnings[name]
        wanted = "accepted" if step == "retire" else "proposed"
        permitted = self.model.usable(name) and self.model.permits("review")
        allowed = own.state == wanted and (step != "accept" or permitted)
        try:
            if step == "accept":
                self.world.accept(name, reason="R.")
            elif step == "reject":
                self.world.reject(name)
            else:
                self.world.store.retire(MONA, name, reason="R.")
        except LearningError:
            assert not allowed
            return
        assert allowed
        own.state = {"accept": "accepted", "reject": "rejected", "retire": "retired"}[step]

    @precondition(lambda self: len(self.model.learnings) > 1)
    @rule(data=st.data())
    def replace(self, data: st.DataObject) -> None:
        accepted = [name for name, own in self.model.learnings.items() if own.state == "accepted"]
        name = self.pick(data, accepted or self.model.learnings)
        target = self.pick(data, self.model.learnings)
        new, old = self.model.learnings[name], self.model.learnings[target]
        allowed = (
            new.state == "accepted"
            and not new.replaces
            and self.model.usable(name)
            and name != target
            and old.state in ("accepted", "retired")
            and target not in self.model.replaced
        )
        try:
            self.world.store.supersede(MONA, name, replaces=[target])
        except LearningError:
            assert not allowed
            return
        assert allowed
        new.replaces = (target,)
        self.model.replaced.add(target)

    # Consent

    @rule(purposes=st.sets(st.sampled_from(["review", "instruction", "training"]), min_size=1))
    def grant(self, purposes: set[str]) -> None:
        self.model.grants[self.world.consent(*sorted(purposes))] = set(purposes)

    @rule(data=st.data(), purpose=st.sampled_from(["review", "instruction", None]))
    def withdraw(self, data: st.DataObject, purpose: str | None) -> None:
        name = self.pick(data, self.model.grants)
        left = self.model.grants[name]
        ended = set(left) if purpose is None else {purpose}
        try:
            self.world.store.withdraw_grant(MONA, name, purposes=purpose and [purpose], reason="R.")
        except LearningError:
            assert not left or not ended <= left
            return
        assert ended
        assert ended <= left
        left -= ended

    # What always holds

    @invariant()
    def what_is_recalled_is_what_may_be(self) -> None:
        if not self.model.permits("instruction"):
            with refused("not_permitted"):
                self.world.recall(by=MONA, preview=True)
            return
        result = self.world.recall(by=MONA, preview=True, budget=BUDGET)
        assert set(result["learnings"]) == self.model.recalled()
        withheld = [own.text for name, own in self.model.learnings.items() if name not in self.model.recalled()]
        assert not any(text in result["text"] for text in withheld)
        assert "Said" not in result["text"]

    @invariant()
    def what_is_shown_is_what_may_be(self) -> None:
        if not self.model.permits("review"):
            with refused("not_permitted"):
                self.world.store.memories()
            return
        rows: list[Json] = self.world.store.memories()["memories"]
        assert {row["id"]: row["state"] for row in rows} == {n: own.state for n, own in self.model.learnings.items()}
        for row in rows:
            own = self.model.learnings[row["id"]]
            assert row["text"] == (own.text if self.model.intact(own) else None)
            assert row["superseded"] == (row["id"] in self.model.replaced)
            assert row["inUse"] == (row["id"] in self.model.recalled())
            shown = str(self.world.store.show(row["id"], history=True))
            assert self.model.intact(own) or (own.text not in shown and "Said" not in shown)

    @invariant()
    def removed_text_is_gone(self) -> None:
        events = b"".join(raw for _, _, raw in self.world.rows("events"))
        assert not any(text.encode() in events for text in self.removed)

    @invariant()
    def everything_verifies(self) -> None:
        result = self.world.store.verify(by=AGENT)
        assert result["ok"], result["problems"]


@pytest.mark.parametrize("steps", [12, 30])
def test_random_histories_keep_to_the_model(steps: int) -> None:
    settings_of = settings(
        max_examples=30 if steps < 20 else 20,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    run_state_machine_as_test(Histories, settings=settings_of)

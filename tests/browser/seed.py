"""A repository with invented review comments, brought in the way a review tool sends them, and labeled by hand.

The labels are a person's, so that what is proposed does not depend on what a labeler happens to hear.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.utils import timezone

from hub_learning import jobs, steps, stores
from hub_learning.access import authenticated
from hub_learning.actions import Message, do_add_grant, do_add_repository, do_choose_labeler, do_record_comments
from hub_learning.models import Person, Repository, Step
from learning_core.identifiers import Principal, parse_principal
from learning_core.timestamps import format_instant

REVIEWERS = {"mona": 1, "kim": 2, "yusuf": 3, "octo": 4, "hubert": 5}
SUMMARIES = {
    "color-contrast": "Keep text on buttons at a contrast of 4.5:1 or better, in the light and in the dark theme.",
    "spacing-scale": "Use the 8-pixel scale for the gaps between cards and form rows.",
    "focus-order": "After a dialog closes, return the focus to the control that opened it.",
    "hostile-text": "Show a reviewer's words as text,\nwhatever is in them.",
}
HOSTILE = (
    "<script>document.title='hacked'</script> <img src=x onerror=alert(1)> {{ 7|add:7 }}",
    "Read \u202ethis backwards\u202c; zero\u200bwidth; bell\u0007; \U000e006f\U000e0062\U000e0065\U000e0079",
    "عُد بالتركيز إلى الزر الذي فتح النافذة. 👩‍👩‍👧‍👦 می‌خواهم\r\nSecond line",
    "W" * 70_000,
)


@dataclass
class Seed:
    """One repository. `comment` collects, `bring_in` imports and labels what was collected, `propose` consolidates."""

    repository: Repository
    by: Principal
    comments: list[dict[str, Any]] = field(default_factory=list)
    labels: list[dict[str, Any]] = field(default_factory=list)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(101))

    def comment(
        self, who: str, prototype: int, body: str, *, theme: str = "", observation: str = "problem", days: int = 20
    ) -> str:
        """One comment as the root of its own thread, with a label where a theme is named. Returns its ID."""
        number = next(self.numbers)
        category = "visual-quality" if theme == "spacing-scale" else "accessibility"
        written = timezone.now() - timedelta(days=days, minutes=-number)
        self.comments.append(
            {
                "id": str(number),
                "replyTo": None,
                "prototype": {"id": f"pr-{prototype}", "title": f"Checkout page {prototype}", "url": None},
                "branch": "main",
                "build": {"number": prototype % 7 + 1, "commitSha": None},
                "author": {"login": who, "localId": REVIEWERS[who]},
                "body": body,
                "target": {"kind": "file", "path": "src/checkout/pay.css", "line": number},
                "createdAt": format_instant(written),
                "editedAt": None,
                "deletedAt": None,
                "deletedBy": None,
                "status": "open",
                "resolvedAt": None,
                "resolvedBy": None,
                "url": f"https://review.example.com/comments/{number}",
            }
        )
        if theme:
            self.labels.append(
                {
                    "commentId": str(number),
                    "category": category,
                    "theme": theme,
                    "observation": observation,
                    "summary": SUMMARIES[theme],
                    "explanation": "Read by hand.",
                }
            )
        return str(number)

    def send(self) -> None:
        """Send the Hub what was collected; nothing has reached the store yet."""
        body = json.dumps({"comments": self.comments}).encode()
        do_record_comments(self.repository, Message(self.comments, body))
        self.comments.clear()

    def bring_in(self) -> None:
        """Import what was sent, the way the worker does, then record the labels."""
        self.send()
        steps.enqueue_step(self.repository, Step.Kind.IMPORT)
        step = Step.objects.get(repository=self.repository, kind=Step.Kind.IMPORT)
        jobs.run_step(step)
        self.repository.refresh_from_db()
        document = {
            "schemaVersion": "replica.labels/v1",
            "labeler": {"kind": "human", "id": self.by.id},
            "labels": self.labels,
        }
        stores.open_store(self.repository).record_labels(self.by, json.dumps(document).encode())
        self.labels.clear()

    def propose(self) -> None:
        """Propose what recurs."""
        assert self.repository.captured_at is not None
        stores.open_store(self.repository).consolidate(
            parse_principal("agent:hub-learning", assurance="authenticated"),
            stores.create_consolidator(self.repository),
            time_from="2020-01-01",
            time_to=format_instant(self.repository.captured_at),
        )

    def memories(self) -> dict[str, dict[str, Any]]:
        """The learnings by theme, as the store lists them."""
        return {row["theme"]: row for row in stores.open_store(self.repository).memories()["memories"]}

    def audit_count(self) -> int:
        """How many versions of learnings the store holds: one more for each decision."""
        return sum(row["version"] for row in self.memories().values())


def add_person(login: str, number: int) -> Person:
    """Someone who can sign in."""
    return Person.objects.create(principal_id=f"hub-user:http://127.0.0.1/{number}", login=login)


def add_repository(person: Person, number: int = 4242, name: str = "checkout-prototypes") -> Seed:
    """An empty repository with the usual consent."""
    by = authenticated(person)
    repository = do_add_repository(by, number, host="local", owner="acme", name=name)
    do_choose_labeler(by, "offline")
    do_add_grant(repository, by, purposes=["review", "instruction"], reason="We learn from reviews.")
    return Seed(repository, by)


def add_usual_comments(seed: Seed) -> None:
    """Three proposals: one contested, one plain, one whose evidence is hostile."""
    contrast = "color-contrast"
    seed.comment(
        "mona", 37, "Contrast is too low on the pay button; outside nobody can read it.", theme=contrast, days=29
    )
    seed.comment("kim", 38, "Can this be darker? I can barely read the label.", theme=contrast, days=24)
    seed.comment(
        "yusuf", 39, "The grey on green fails at 3.1:1.\n\nSame on the *Apply* button.", theme=contrast, days=12
    )
    on_purpose = "Disabled buttons look inactive on purpose; WCAG does not ask for contrast there."
    seed.comment("octo", 39, on_purpose, theme=contrast, observation="disagreement", days=8)
    seed.comment("mona", 37, "The gap between the cards is 10 px, the scale says 8.", theme="spacing-scale")
    seed.comment("kim", 40, "Please use the spacing scale here.", theme="spacing-scale", days=15)
    for number, body in enumerate(HOSTILE):
        who = ("mona", "kim", "yusuf", "hubert")[number]
        seed.comment(who, 37 + number, body, theme="hostile-text", days=18 - number)
    seed.bring_in()
    seed.propose()

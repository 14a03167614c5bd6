"""`/repositories/<id>/learnings/`: what waits for a decision, and what was decided.

Source: design.md, section 1; the number of queries does not depend on how much is listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from hub_learning import stores
from hub_learning.models import Comment, LearningRun, Step
from hub_learning.pages.empty import Empty, describe_empty
from hub_learning.pages.held_back import describe_held_back
from hub_learning.pages.places import Place, at_repository
from hub_learning.pages.rows import Filters, Queue, build_queue, build_row, choose_page
from hub_learning.pages.runs import Run, describe_run
from hub_learning.pages.words import count
from learning_core.errors import NotPermitted

_RESULTS = {
    "accepted": ("good", "Accepted", "Agents get it from the next prompt on."),
    "rejected": ("plain", "Rejected", "Agents never get it. The theme comes back only when someone raises it anew."),
    "retired": ("plain", "Retired", "Agents stop getting it at once. It stays in the history."),
}


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to know before the list. `link` is an address and its words."""

    tone: str
    heading: str
    text: str
    link: tuple[str, str] | None = None


@require_safe
@at_repository
def show_queue(place: Place) -> HttpResponse:
    """One page of one state, newest first."""
    now = timezone.now()
    filters = Filters.parse(place.request.GET)
    outline, permitted = read_outline(place)
    decided = place.request.GET.get("decided", "")
    memories = read_memories(place, [*choose_page(outline, filters), decided]) if permitted else []
    queue = build_queue(outline, memories, filters, prototype=place.prototype, now=now)
    run = read_run(place, now)
    context: dict[str, Any] = {"queue": queue, "run": run, "headline": describe_headline(queue)}
    context["result"] = describe_result(memories, decided, place, now)
    context["notices"] = list(describe_notices(place, permitted=permitted))
    if not permitted and place.repository.enabled_at is None:
        comments = Comment.objects.filter(repository=place.repository, deleted_at=None).count()
        context["first_visit"] = {
            "comments": count(comments, "comment") if comments else "",
            "prototype": place.prototype,
        }
        context["headline"], context["notices"] = "", []
    elif not permitted:
        context["empty"] = Empty(
            "Nothing can be shown",
            ("Nothing is lost: learnings are shown again when consent is given again.",),
            "proposed",
        )
    else:
        search = read_search(place)
        context["empty"] = describe_empty(
            filters.state, outline, place.repository, search, prototype=place.prototype, now=now
        )
        if search is not None and filters.state == "proposed":
            context["held_back"] = describe_held_back(search.result, place.repository)
    return place.render("pages/learnings.html", context, tab="learnings", waiting=queue.waiting)


def read_outline(place: Place) -> tuple[list[dict[str, Any]], bool]:
    """The outline of the store's learnings, and whether consent lets a person review them at all."""
    try:
        return place.store.outline()["memories"], True
    except NotPermitted:
        return [], False


def read_memories(place: Place, ids: Sequence[str]) -> list[dict[str, Any]]:
    """The named learnings, checked. What rests on a comment that was just deleted or edited is withheld."""
    withheld = stores.withheld_comments(place.repository)
    rows: list[dict[str, Any]] = place.store.memories(ids=ids, withheld_comments=withheld)["memories"]
    return rows


def read_run(place: Place, now: datetime) -> Run | None:
    """The newest run, as the page shows it."""
    run = LearningRun.objects.filter(repository=place.repository).order_by("-pk").first()
    return describe_run(run, now) if run else None


def read_search(place: Place) -> LearningRun | None:
    """The newest finished search for themes."""
    searches = LearningRun.objects.filter(repository=place.repository, kind=Step.Kind.CONSOLIDATE)
    return searches.filter(state=LearningRun.State.DONE).order_by("-pk").first()


def describe_headline(queue: Queue) -> str:
    """`6 wait for you, the oldest was proposed 12 days ago`."""
    if not queue.waiting:
        return "Nothing waits for you"
    words = f"{queue.waiting:,} {'waits' if queue.waiting == 1 else 'wait'} for you"
    if queue.oldest is None or queue.filters.state != "proposed" or queue.oldest.age == "just now":
        return words
    return f"{words}, the oldest was proposed {queue.oldest.age}"


def describe_result(
    memories: Sequence[Mapping[str, Any]], memory_id: str, place: Place, now: datetime
) -> dict[str, Any] | None:
    """What became of the learning that was just decided; the page says it, and offers the way back."""
    decided = next((memory for memory in memories if memory["id"] == memory_id), None)
    if decided is None or decided.get("state") not in _RESULTS:
        return None
    tone, heading, effect = _RESULTS[decided["state"]]
    row = build_row(decided, prototype=place.prototype, now=now)
    return {
        "id": row.id,
        "tone": tone,
        "heading": heading,
        "text": row.text,
        "effect": effect,
        "can_retire": decided["state"] == "accepted",
        "review_digest": decided["reviewDigest"],
    }


def describe_notices(place: Place, *, permitted: bool) -> list[Notice]:
    """What keeps the loop from running, most important first."""
    consent = (place.address("consent"), "See consent")
    if not permitted:
        text = "No consent covers review now, so learnings are withheld and agents get none. Nothing is lost."
        return [Notice("warn", "Consent is missing", text, consent)]
    if stores.chosen_labeler() is None:
        text = "Until then, comments are kept and nothing new is proposed."
        return [Notice("warn", "A Hub administrator has to choose a labeler", text)]
    return []

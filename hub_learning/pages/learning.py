"""`/repositories/<id>/learnings/<memory-id>/`: one learning, everything it rests on, and the forms to decide it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpResponse
from django.utils import timezone

from hub_learning import stores
from hub_learning.models import Comment
from hub_learning.pages.changes import Changes, mark_words
from hub_learning.pages.forms import AcceptForm, DecisionForm, EditForm, RejectForm, RetireForm
from hub_learning.pages.places import Place
from hub_learning.pages.queue import read_outline
from hub_learning.pages.quoting import show_text
from hub_learning.pages.review import Frame, Review, Source, build_review
from hub_learning.pages.rows import Filters, order_memories
from hub_learning.pages.words import STATE_WORDS
from learning_core.errors import LearningError
from learning_core.timestamps import format_instant
from learning_core.workflows.recall import HEADING, render_learning

_EFFECTS = {
    "accepted": "Agents get it with every prompt.",
    "rejected": "Agents never get it. The theme comes back only when someone raises it anew.",
    "retired": "Agents do not get it any more.",
}
_NOT_USED = "It is accepted, but agents do not get it now."


@dataclass(frozen=True, slots=True)
class Problem:
    """Why nothing was recorded. `changes` lists what is different, `own_text` gives back what was typed."""

    tone: str
    heading: str
    lines: tuple[str, ...]
    changes: Changes | None = None
    own_text: str = ""
    link: tuple[str, str] | None = None
    """An ID on the page, and the words of the link to it."""


@dataclass(frozen=True, slots=True)
class Trail:
    """The learning's position in the queue that it was opened from, and its neighbours."""

    name: str
    query: str
    position: int
    total: int
    previous: str | None
    next: str | None


def read_memory(place: Place, memory_id: str) -> dict[str, Any]:
    """The learning with its evidence and history. Raises `NotFound`, `NotPermitted`."""
    withheld = stores.withheld_comments(place.repository)
    memory: dict[str, Any] = place.store.show(memory_id, history=True, withheld_comments=withheld)["memory"]
    return memory


def show_learning(
    place: Place,
    memory: Mapping[str, Any],
    *,
    form: DecisionForm | None = None,
    problem: Problem | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page. `form` is one that was filled in: it is shown open, as it was typed."""
    now = timezone.now()
    seen = problem.changes.seen if problem and problem.changes else None
    frame = Frame(read_sources(place, memory), place.prototype, now, seen)
    review = build_review(memory, frame)
    forms = build_forms(review)
    if form is not None and form.decision in forms:
        forms[form.decision] = form
    context = {
        "review": review,
        "trail": read_trail(place, memory),
        "forms": forms,
        "open": form.decision if form else "",
        "problem": problem,
        "effect": _EFFECTS.get(review.state, "") if review.state != "accepted" or review.in_use else _NOT_USED,
        "agent_text": describe_agent_text(place, memory, now),
        "replaces": read_replaced(place, memory),
    }
    return place.render("pages/learning.html", context, tab="learnings", status=status)


def build_forms(review: Review) -> dict[str, DecisionForm]:
    """What can be decided about it now. One that may not be shown can only be retired."""
    initial = {"review_digest": review.review_digest, "text": review.plain_text}
    if review.state == "accepted":
        return {"retire": RetireForm(initial=initial)}
    if not review.can_decide:
        return {}
    return {
        "accept": AcceptForm(contested=review.contested, initial=initial),
        "edit": EditForm(contested=review.contested, initial=initial),
        "reject": RejectForm(initial=initial),
    }


def read_sources(place: Place, memory: Mapping[str, Any]) -> dict[str, Source]:
    """Where the cited comments can be read, by comment ID: one query."""
    cited = [*memory.get("evidence", ()), *memory.get("counterevidence", ())]
    ids = [item["comment"]["commentId"] for item in cited if item["comment"]]
    rows = Comment.objects.filter(repository=place.repository, comment_id__in=ids)
    return {row.comment_id: describe_source(row, place) for row in rows.select_related("thread__build__prototype")}


def describe_source(comment: Comment, place: Place) -> Source:
    """A link only where it is a web address; the prototype by its title and ID."""
    build = comment.thread.build
    if build is None:
        return Source(_web_address(comment.url), place.prototype)
    prototype = build.prototype
    number = prototype.prototype_id
    name = f"{prototype.title} ({number})" if prototype.title else f"{place.prototype} {number}"
    return Source(_web_address(comment.url) or _web_address(prototype.url), name)


def _web_address(text: str) -> str | None:
    return text if urlsplit(text).scheme in ("http", "https") else None


def read_trail(place: Place, memory: Mapping[str, Any]) -> Trail:
    """The neighbours in the same state, in the queue's order."""
    filters = Filters.parse(place.request.GET)
    state = str(memory.get("state") or "proposed")
    outline, _ = read_outline(place)
    ids = [row["id"] for row in order_memories(outline, state)]
    query = Filters(state, filters.page if filters.state == state else 1).query
    if memory["id"] not in ids:
        return Trail(STATE_WORDS[state], query, 0, 0, None, None)
    index = ids.index(memory["id"])
    previous, following = ids[index - 1] if index else None, ids[index + 1] if index + 1 < len(ids) else None
    return Trail(STATE_WORDS[state], query, index + 1, len(ids), previous, following)


def describe_agent_text(place: Place, memory: Mapping[str, Any], now: datetime) -> str:
    """Exactly what recall prints for it; before a decision, as if the person accepted it now."""
    text = memory.get("text")
    if not text or memory["state"] not in ("proposed", "accepted"):
        return ""
    approval = memory.get("approval") or {"by": place.principal.data, "at": format_instant(now)}
    content = {"category": memory["category"], "theme": memory["theme"], "text": text}
    return f"{HEADING}\n{render_learning(memory['id'], content, approval['by'], approval['at'])}"


def read_replaced(place: Place, memory: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The learnings that accepting it replaces, each with the word difference to the new text."""
    found = []
    for memory_id in (memory.get("lifecycle") or {}).get("replaces", ()):
        try:
            withheld = stores.withheld_comments(place.repository)
            old = place.store.show(memory_id, withheld_comments=withheld)["memory"]
        except LearningError:
            old = {}
        text = old.get("text")
        shown = mark_words(text, memory["text"]) if text else show_text("Its text may not be shown.")
        found.append({"id": memory_id, "difference": shown})
    return found

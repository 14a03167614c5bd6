"""A person's decision about one learning: accept, accept with changes, reject, retire.

The rules are the store's. What it refuses becomes an answer that keeps what was typed:

1. The form's shape is checked; a fault answers 422 with the form as typed.
2. Evidence that may not be used any more answers 409.
3. A version that changed after it was shown answers 409 with what changed, its new digest, and a box to tick.
4. A learning that someone decided before answers 409 with who, what and when; the same decision by the same person
   again is the first one.
5. A missing reason answers 422.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from hub_learning.actions import do_accept, do_reject, do_retire
from hub_learning.pages.changes import describe_changes
from hub_learning.pages.forms import AcceptForm, DecisionForm, EditForm, RejectForm, RetireForm
from hub_learning.pages.learning import Problem, read_memory, show_learning
from hub_learning.pages.places import Place, at_repository, see_other
from hub_learning.pages.queue import read_outline
from hub_learning.pages.review import describe_person
from hub_learning.pages.rows import PAGE_SIZE, order_memories
from hub_learning.pages.times import describe_time
from learning_core.errors import EvidenceUnavailable, InvalidTransition, ReasonRequired, StaleReview

_MEMBERS = {
    "accepted": ("accepted", "approval"),
    "rejected": ("rejected", "rejection"),
    "retired": ("retired", "retirement"),
}
_OUTCOMES = {"accept": "accepted", "edit": "accepted", "reject": "rejected", "retire": "retired"}
NOTHING = "Nothing was recorded."


@require_http_methods(["GET", "HEAD", "POST"])
@at_repository
def learning_page(place: Place, memory_id: str) -> HttpResponse:
    """Show a learning, or decide about it."""
    memory = read_memory(place, memory_id)
    if place.request.method != "POST":
        return show_learning(place, memory)
    form = read_form(place, memory)
    if form is None:
        return HttpResponse("There is no such decision.", status=400, content_type="text/plain")
    if not form.is_valid():
        return answer_incomplete(place, memory, form)
    return decide(place, memory, form)


def read_form(place: Place, memory: Mapping[str, Any]) -> DecisionForm | None:
    """The form that was sent, or None for a decision that does not exist."""
    data = place.request.POST
    changed = "changed" in data
    match data.get("decision"):
        case "accept":
            return AcceptForm(data, contested=bool(memory.get("contested")), changed=changed)
        case "edit":
            return EditForm(data, contested=bool(memory.get("contested")), changed=changed)
        case "reject":
            return RejectForm(data, changed=changed)
        case "retire":
            return RetireForm(data)
    return None


def decide(place: Place, memory: Mapping[str, Any], form: DecisionForm) -> HttpResponse:
    """Record the decision, or answer why not."""
    following = find_following(place, memory)
    try:
        act(place, memory["id"], form)
    except StaleReview:
        return answer_changed(place, memory["id"], form)
    except InvalidTransition:
        return answer_decided(place, memory["id"], form, following)
    except ReasonRequired:
        form.add_error("reason" if "reason" in form.fields else None, "Say why in one sentence.")
        return answer_incomplete(place, read_memory(place, memory["id"]), form)
    except EvidenceUnavailable as error:
        problem = Problem("warn", NOTHING, (error.message,), own_text=typed_text(form))
        return show_learning(place, read_memory(place, memory["id"]), form=form, problem=problem, status=409)
    return redirect_after(place, memory["id"], form, following)


def act(place: Place, memory_id: str, form: DecisionForm) -> None:
    """Call the action of the form."""
    values = form.cleaned_data
    who = (place.repository, place.principal, memory_id)
    match form.decision:
        case "accept":
            do_accept(*who, review_digest=values["review_digest"], reason=values.get("reason") or None)
        case "edit":
            reason = values.get("reason") or None
            do_accept(*who, review_digest=values["review_digest"], text=values["text"], reason=reason)
        case "reject":
            do_reject(*who, review_digest=values["review_digest"], reason=values["reason"])
        case "retire":
            do_retire(*who, reason=values["reason"])


# Answers -------------------------------------------------------------------------------------------------------------


def answer_incomplete(place: Place, memory: Mapping[str, Any], form: DecisionForm) -> HttpResponse:
    """422: something is missing or too long."""
    faults = [(name, str(error)) for name, errors in form.errors.items() for error in errors]
    name = next((name for name, _ in faults if name in form.fields), "")
    link = (form[name].id_for_label, "Go to the field") if name and not form[name].is_hidden else None
    problem = Problem("bad", "Nothing was recorded yet", tuple(error for _, error in faults), link=link)
    return show_learning(place, memory, form=form, problem=problem, status=422)


def answer_changed(place: Place, memory_id: str, form: DecisionForm) -> HttpResponse:
    """409: what the person read is not what stands there now. The form comes back as typed, on the new version."""
    memory = read_memory(place, memory_id)
    typed = {**form.cleaned_data, "review_digest": memory["reviewDigest"], "changed": "yes", "confirmed": False}
    options: dict[str, Any] = {"initial": typed, "changed": True}
    if isinstance(form, AcceptForm):
        options["contested"] = bool(memory.get("contested"))
    problem = Problem(
        "warn",
        "This proposal changed while you read it",
        (f"{NOTHING} Read what changed, then decide again.",),
        changes=describe_changes(memory, form.cleaned_data["review_digest"]),
        link=(form.decision, "To your decision"),
        own_text="" if memory.get("text") else typed_text(form),
    )
    return show_learning(place, memory, form=type(form)(**options), problem=problem, status=409)


def answer_decided(place: Place, memory_id: str, form: DecisionForm, following: str | None) -> HttpResponse:
    """409, with who decided what and when; a person's own decision, sent twice, is answered as the first time."""
    memory = read_memory(place, memory_id)
    words, member = _MEMBERS.get(memory["state"], ("", ""))
    detail = memory.get(member) or {}
    if not detail:
        problem = Problem(
            "warn", NOTHING, ("This learning is not in a state that allows it.",), own_text=typed_text(form)
        )
        return show_learning(place, memory, problem=problem, status=409)
    if is_same_decision(memory, detail, place, form):
        return redirect_after(place, memory_id, form, following)
    is_self = detail["by"]["id"] == place.principal.id
    who = "You" if is_self else describe_person(detail["by"]).name
    when = describe_time(detail["at"], timezone.now())
    problem = Problem(
        "warn",
        f"{who} decided this before",
        (f"{who} {words} it {when.age} ({when.full}). What you sent was not recorded.",),
        own_text=typed_text(form),
    )
    return show_learning(place, memory, problem=problem, status=409)


def is_same_decision(memory: Mapping[str, Any], detail: Mapping[str, Any], place: Place, form: DecisionForm) -> bool:
    """Whether what stands there is what this person just sent."""
    values = form.cleaned_data
    return (
        memory["state"] == _OUTCOMES[form.decision]
        and detail["by"]["id"] == place.principal.id
        and detail.get("reviewDigest", values["review_digest"]) == values["review_digest"]
        and (detail.get("reason") or "") == (values.get("reason") or "")
        and values.get("text", memory.get("text")) == memory.get("text")
    )


def typed_text(form: DecisionForm) -> str:
    """What the person wrote, to give it back."""
    return "\n\n".join(form.cleaned_data[name] for name in ("text", "reason") if form.cleaned_data.get(name))


def find_following(place: Place, memory: Mapping[str, Any]) -> str | None:
    """The proposal that comes next in the queue; at its end, the first of the others."""
    outline, _ = read_outline(place)
    ids = [row["id"] for row in order_memories(outline, "proposed")]
    if memory["id"] not in ids:
        return ids[0] if ids else None
    index = ids.index(memory["id"])
    return next(iter(ids[index + 1 :] + ids[:index]), None)


def redirect_after(place: Place, memory_id: str, form: DecisionForm, following: str | None) -> HttpResponse:
    """To the next undecided row, with the result above it; after a retirement, to the learning."""
    if form.decision == "retire":
        return see_other(f"{place.address('learning', memory_id)}#decide")
    outline, _ = read_outline(place)
    ids = [row["id"] for row in order_memories(outline, "proposed")]
    page = ids.index(following) // PAGE_SIZE + 1 if following in ids else 1
    query = {"page": page, "decided": memory_id} if page > 1 else {"decided": memory_id}
    target = following if following in ids else "queue-empty"
    return see_other(f"{place.address('learnings')}?{urlencode(query)}#{target}")

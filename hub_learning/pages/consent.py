"""`/repositories/<id>/consent/`: what comments may be used for, in plain words; to allow more, and to withdraw.

A change is made in two steps: the form, then a page that says what will happen and asks again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods

from hub_learning.actions import do_add_grant, do_withdraw_grant
from hub_learning.models import Comment
from hub_learning.pages import permissions
from hub_learning.pages.forms import PURPOSES, Choice, PurposesForm
from hub_learning.pages.learning import Problem
from hub_learning.pages.places import Place, at_repository, see_other
from hub_learning.pages.quoting import show_text
from hub_learning.pages.words import count
from learning_core.errors import InvalidTransition

USUAL = ("review", "instruction")


@dataclass(frozen=True, slots=True)
class Check:
    """The page that asks again."""

    action: str
    grant: str
    heading: str
    button: str
    purposes_title: str
    purposes: tuple[Choice, ...]
    reason: str
    shown_reason: SafeString
    effects: tuple[str, ...]


@require_http_methods(["GET", "HEAD", "POST"])
@at_repository
def consent_page(place: Place) -> HttpResponse:
    """Show the permissions; a POST asks, and once confirmed, changes them."""
    grants = place.store.list_grants()["grants"]
    data = place.request.POST
    if place.request.method != "POST":
        return show_consent(place, grants)
    if data.get("action") == "grant":
        form = PurposesForm(data, offered=list(PURPOSES), name="allow", checked=())
        return grant_purposes(place, grants, form)
    grant = next((grant for grant in grants if grant["id"] == data.get("grant")), None)
    if data.get("action") != "withdraw" or grant is None:
        return HttpResponse("There is no such permission.", status=400, content_type="text/plain")
    form = PurposesForm(data, offered=grant["purposes"], name=f"withdraw_{grant['id'][-8:]}", checked=())
    return withdraw_purposes(place, grants, grant, form)


def grant_purposes(place: Place, grants: Sequence[Mapping[str, Any]], form: PurposesForm) -> HttpResponse:
    """Ask again, then record the permission. The one that the same person just recorded is not recorded twice."""
    if not form.is_valid():
        return show_consent(place, grants, allow=form)
    purposes, reason = form.cleaned_data["purposes"], form.cleaned_data["reason"]
    if place.request.POST.get("confirmed") != "yes":
        comments = Comment.objects.filter(repository=place.repository, deleted_at=None).count()
        effects = permissions.describe_granting(purposes, comments)
        return show_check(place, "grant", "", form, effects)
    newest = grants[-1] if grants else None
    known = newest and (newest["grantedBy"]["id"], newest["active"], newest["reason"])
    if known != (place.principal.id, purposes, reason):
        do_add_grant(place.repository, place.principal, purposes=purposes, reason=reason)
    return see_other(f"{place.address('consent')}?done=granted#result")


def withdraw_purposes(
    place: Place, grants: Sequence[Mapping[str, Any]], grant: Mapping[str, Any], form: PurposesForm
) -> HttpResponse:
    """Ask again, then end the permission; the answer counts the exports that already copied what it allowed."""
    if not form.is_valid():
        return show_consent(place, grants, withdraw=(grant["id"], form))
    purposes, reason = form.cleaned_data["purposes"], form.cleaned_data["reason"]
    if place.request.POST.get("confirmed") != "yes":
        return show_check(place, "withdraw", grant["id"], form, permissions.describe_withdrawing(purposes))
    query: dict[str, Any] = {"done": "withdrawn"}
    try:
        done = do_withdraw_grant(place.repository, place.principal, grant["id"], purposes=purposes, reason=reason)
        query |= {"exports": len(done["exports"])} if done["exports"] else {}
    except InvalidTransition:
        if set(purposes) & set(grant["active"]):
            raise
    return see_other(f"{place.address('consent')}?{urlencode(query)}#result")


def show_consent(
    place: Place,
    grants: Sequence[Mapping[str, Any]],
    *,
    allow: PurposesForm | None = None,
    withdraw: tuple[str, PurposesForm] | None = None,
) -> HttpResponse:
    """The page. A form that was filled in is shown as it was typed, with 422."""
    now = timezone.now()
    wrong = allow or (withdraw and withdraw[1])
    shown = [
        permissions.describe_permission(grant, withdraw[1] if withdraw and withdraw[0] == grant["id"] else None, now)
        for grant in reversed(grants)
    ]
    active = {purpose for grant in grants for purpose in grant["active"]}
    missing = [purpose for purpose in PURPOSES if purpose not in active]
    usual = [purpose for purpose in USUAL if purpose in missing]
    context = {
        "uses": permissions.describe_uses(grants),
        "grants": shown,
        "form": allow or (PurposesForm(None, offered=missing, name="allow", checked=usual) if missing else None),
        "result": describe_done(place),
        "problem": describe_faults(wrong) if wrong else None,
    }
    return place.render("pages/consent.html", context, tab="consent", status=422 if wrong else 200)


def show_check(place: Place, action: str, grant: str, form: PurposesForm, effects: Sequence[str]) -> HttpResponse:
    """The page that says what will happen."""
    granting = action == "grant"
    purposes = form.cleaned_data["purposes"]
    check = Check(
        action=action,
        grant=grant,
        heading="Allow this?" if granting else "Withdraw this?",
        button="Allow it" if granting else "Withdraw it",
        purposes_title="Allowed uses" if granting else "Uses that end",
        purposes=tuple(choice for choice in form.choices if choice.name in purposes),
        reason=form.cleaned_data["reason"],
        shown_reason=show_text(form.cleaned_data["reason"]),
        effects=tuple(effects),
    )
    return place.render("pages/consent_check.html", {"check": check}, tab="consent")


def describe_faults(form: PurposesForm) -> Problem:
    """What is missing."""
    return Problem(
        "bad", "Nothing was recorded yet", tuple(str(error) for errors in form.errors.values() for error in errors)
    )


def describe_done(place: Place) -> dict[str, str] | None:
    """The result of the change before."""
    query = place.request.GET
    if query.get("done") == "granted":
        return {
            "tone": "good",
            "heading": "Allowed",
            "effect": "The Hub reads the comments now. Activity shows how far it is.",
        }
    if query.get("done") != "withdrawn":
        return None
    number = query.get("exports", "")
    effect = "It took effect at once."
    if number.isascii() and number.isdigit() and len(number) < 6:
        effect += f" {count(int(number), 'earlier export')} copied what it allowed: ask their owners to delete it."
    return {"tone": "plain", "heading": "Withdrawn", "effect": effect}

"""`/`: the repositories that a person administers; with only one, straight to its learnings."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from hub_learning.access import NotSignedIn, access_person, repositories_administered
from hub_learning.pages.places import answer_signed_out
from hub_learning.pages.review import describe_person

MOST = 200
"""Repositories that one page lists."""


@require_safe
def show_home(request: HttpRequest) -> HttpResponse:
    """The start page."""
    try:
        person = access_person(request)
    except NotSignedIn:
        return answer_signed_out(request)
    repositories = list(repositories_administered(person)[:MOST])
    if len(repositories) == 1:
        return HttpResponseRedirect(reverse("pages:learnings", args=[repositories[0].pk]))
    who = describe_person({"kind": "human", "id": person.principal_id, "login": person.login})
    return render(request, "pages/home.html", {"person": who, "repositories": repositories})

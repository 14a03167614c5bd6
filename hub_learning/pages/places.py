"""Where a request is, who asks, and the answers that every page can give instead of its own.

Source: design.md, section 2, "In the Hub".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from hub_learning import stores
from hub_learning.access import (
    LOCAL_HOST,
    AccessRefused,
    NotSignedIn,
    access_person,
    access_repository_administrator,
)
from hub_learning.models import Person, Repository
from hub_learning.pages.review import describe_person
from learning_core.errors import Damaged, LearningError, NotFound
from learning_core.identifiers import Principal
from learning_core.store import LearningStore

TABS = (("Learnings", "learnings"), ("Consent", "consent"), ("Activity", "activity"))
TYPED = ("text", "reason")
"""What a person writes in our forms: given back when the form cannot be shown again."""


@dataclass(frozen=True, slots=True)
class Tab:
    """One page of the repository. `number` is shown beside its name when there is something to count."""

    name: str
    url: str
    current: bool
    number: int


@dataclass(frozen=True)
class Place:
    """One repository, seen by someone who administers it."""

    request: HttpRequest
    repository: Repository
    principal: Principal

    @cached_property
    def store(self) -> LearningStore:
        """The repository's learning store."""
        return stores.open_store(self.repository)

    @property
    def prototype(self) -> str:
        """What the repository calls a prototype."""
        return "prototype" if self.repository.host == LOCAL_HOST else "pull request"

    def address(self, page: str, *arguments: str) -> str:
        """The address of one of the repository's pages."""
        return reverse(f"pages:{page}", args=[self.repository.pk, *arguments])

    def render(
        self, template: str, context: Mapping[str, Any], *, tab: str, waiting: int = 0, status: int = 200
    ) -> HttpResponse:
        """The page, in the repository's frame."""
        tabs = [
            Tab(name, self.address(page), page == tab, waiting if page == "learnings" else 0) for name, page in TABS
        ]
        frame = {"repository": self.repository, "person": describe_person(self.principal.data), "tabs": tabs}
        return render(self.request, template, {**frame, **context}, status=status)


RepositoryView = Callable[..., HttpResponse]


def at_repository(view: RepositoryView) -> Callable[..., HttpResponse]:
    """Make `view(place, …)` a Django view of one repository, for those who administer it.

    A repository that does not exist and one that the person may not see get the same answer.
    """

    @wraps(view)
    def answer(request: HttpRequest, repository_id: int, **arguments: Any) -> HttpResponse:
        try:
            access_person(request)
            repository = Repository.objects.filter(pk=repository_id).first()
            if repository is None:
                return answer_missing(request)
            principal = access_repository_administrator(request, repository)
            return view(Place(request, repository, principal), **arguments)
        except NotSignedIn:
            return answer_signed_out(request)
        except (AccessRefused, NotFound):
            return answer_missing(request)
        except LearningError as error:
            return answer_refused(request, error)

    return answer


def see_other(address: str) -> HttpResponse:
    """303: what was sent is done; the result stands at the address."""
    return HttpResponseRedirect(address, status=303)


def answer_signed_out(request: HttpRequest) -> HttpResponse:
    """401, with what was typed, so that an ended session loses nothing."""
    lines = (
        ["Nobody is signed in here, or the session has ended. Nothing was recorded."]
        if request.method == "POST"
        else []
    )
    lines += ["On this machine, the Hub prints a link to sign in when it starts. To get a new one, run:"]
    context = {"heading": "Please sign in", "lines": lines, "commands": ["python manage.py sign_in_link"]}
    return _answer(request, context, 401)


def answer_missing(request: HttpRequest) -> HttpResponse:
    """404, whether it does not exist or is somebody else's."""
    lines = ["It does not exist, or you do not administer its repository."]
    context = {"heading": "There is nothing here", "lines": lines, "link": _home()}
    return _answer(request, context, 404)


def answer_refused(request: HttpRequest, error: LearningError) -> HttpResponse:
    """What the core or the storage refused, in its own words, with its code."""
    damaged = isinstance(error, Damaged)
    lines = [error.message, "Nothing was recorded." if request.method == "POST" else "Nothing is lost."]
    heading = "The stored records are damaged" if damaged else "That did not work"
    return _answer(request, {"heading": heading, "lines": lines, "code": error.code, "link": _home()}, 503)


def _answer(request: HttpRequest, context: Mapping[str, Any], status: int) -> HttpResponse:
    typed = "\n\n".join(value for name in TYPED if (value := request.POST.get(name, "").strip()))
    person = (
        describe_person({"kind": "human", "id": user.principal_id, "login": user.login})
        if (isinstance(user := request.user, Person))
        else None
    )
    return render(request, "pages/message.html", {**context, "typed": typed, "person": person}, status=status)


def _home() -> dict[str, str]:
    return {"url": reverse("pages:home"), "text": "To your repositories"}

"""Who may do what. Every view calls one `access_*` first; each returns the principal to act as, or refuses.

Rights are asked for on every request and never remembered in a session. Today only the operator of this machine can
sign in: a local person administers the repositories of host `local` and the Hub itself.

Source: design.md, decision 12.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import OperationalError, transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from hub_learning.models import ApiToken, Person, Repository
from hub_learning.tokens import digest_token
from learning_core.errors import LearningError
from learning_core.identifiers import Principal, parse_principal

LOCAL_HOST = "local"
USE_NOTED_EVERY = timedelta(minutes=1)
"""How exact a token's time of last use is; noting every call would be a write per recall."""


class NotSignedIn(LearningError, PermissionDenied):
    """Nobody is signed in."""

    code = "not_signed_in"


class AccessRefused(LearningError, PermissionDenied):
    """The person who is signed in may not do this."""

    code = "access_refused"


class TokenRefused(LearningError):
    """There is no bearer token, or it is unknown or revoked."""

    code = "token_refused"


def access_person(request: HttpRequest) -> Person:
    """Whoever is signed in. Raises `NotSignedIn`."""
    person = request.user
    if isinstance(person, Person) and person.is_active and (settings.HUB.local_sign_in or not is_local(person)):
        return person
    raise NotSignedIn("Please sign in.")


def access_repository_administrator(request: HttpRequest, repository: Repository) -> Principal:
    """The principal of a person who administers the repository now. Raises `NotSignedIn`, `AccessRefused`."""
    person = access_person(request)
    if not repositories_administered(person).filter(pk=repository.pk).exists():
        raise AccessRefused("You do not administer this repository.", repository=repository.pk)
    return authenticated(person)


def access_hub_administrator(request: HttpRequest) -> Principal:
    """The principal of a person who administers the Hub. Raises `NotSignedIn`, `AccessRefused`."""
    person = access_person(request)
    if not is_hub_administrator(person):
        raise AccessRefused("You do not administer this Hub.")
    return authenticated(person)


def repositories_administered(person: Person) -> QuerySet[Repository]:
    """The repositories that the person administers now, by owner and name."""
    if not is_local(person):
        return Repository.objects.none()
    return Repository.objects.filter(host=LOCAL_HOST).order_by("owner", "name")


def is_hub_administrator(person: Person) -> bool:
    """Whether the person is named in `HUB_ADMINISTRATORS`, or is this machine's operator."""
    return person.principal_id in settings.HUB.administrators or is_local(person)


def is_local(person: Person) -> bool:
    """Whether the person signed in without GitHub."""
    return person.principal_id.startswith("hub-user:")


def authenticated(person: Person) -> Principal:
    """The person as the store's records name them."""
    return parse_principal(person.principal_id, assurance="authenticated", login=person.login)


def access_token(request: HttpRequest, repository_id: int, kind: ApiToken.Kind) -> ApiToken:
    """The bearer token of a request to the API. Raises `TokenRefused`, `AccessRefused`.

    1. The token is known and not revoked.
    2. It is the repository's own. Another repository's token learns nothing about this one, not even that it exists.
    3. It is of the kind that may do this.
    """
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    found = ApiToken.objects.select_related("repository").filter(digest=digest_token(text), revoked_at=None)
    token = found.first() if scheme.lower() == "bearer" else None
    if token is None:
        raise TokenRefused("Send a token of this Hub as Authorization: Bearer <token>.")
    if token.repository_id != repository_id or token.kind != kind:
        raise AccessRefused("The token does not permit this.")
    now = timezone.now()
    if token.last_used_at is None or now - token.last_used_at > USE_NOTED_EVERY:
        # A database that somebody else is writing to is no reason to refuse whoever only reads.
        with suppress(OperationalError), transaction.atomic():
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token

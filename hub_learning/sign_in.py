"""Sign-in without GitHub, for whoever runs the Hub on their own machine.

The operator gets a link with a token that works once. The data directory keeps the token's digest only. The link is
refused unless the request comes from this machine.

Source: design.md, decision 12.
"""

from __future__ import annotations

import hmac
from pathlib import Path
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth import login, logout
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_GET, require_POST

from hub_learning.access import AccessRefused
from hub_learning.environment import is_loopback, write_private
from hub_learning.models import Person
from hub_learning.tokens import digest_token, new_token

LOCAL_ADMINISTRATOR = 1000
"""The local administrator's number. The reviewers of a local review tool have their own; theirs are small."""


def issue_local_link(data_directory: Path, origin: str, destination: str) -> str:
    """A link that signs the local administrator in, once, and leads on. It replaces the one issued before."""
    token = new_token()
    path = data_directory / "local-sign-in"
    write_private(path, digest_token(token))
    return f"{origin}/sign-in/local?{urlencode({'token': token, 'next': destination})}"


def use_local_token(data_directory: Path, token: str) -> bool:
    """Whether the token is the issued one; it is spent by that. Of two requests at once, one is told no."""
    path = data_directory / "local-sign-in"
    try:
        issued = path.read_text("ascii")
        if not hmac.compare_digest(issued, digest_token(token)):
            return False
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def local_administrator() -> Person:
    """The person that the local link signs in. Their principal names the Hub's origin at the time they were made."""
    person = Person.objects.filter(principal_id__startswith="hub-user:").order_by("pk").first()
    if person is None:
        principal = f"hub-user:{settings.HUB.origin}/{LOCAL_ADMINISTRATOR}"
        person = Person.objects.create(principal_id=principal, login="administrator")
    return person


@require_GET
def sign_in_locally(request: HttpRequest) -> HttpResponseBase:
    """`/sign-in/local?token=…&next=…`: sign the local administrator in and lead on."""
    if not settings.HUB.local_sign_in or not is_loopback(str(request.META.get("REMOTE_ADDR", ""))):
        raise AccessRefused("Signing in without GitHub works on this machine only.")
    destination = request.GET.get("next", "/")
    if not url_has_allowed_host_and_scheme(destination, allowed_hosts=None):
        destination = "/"
    if isinstance(request.user, Person):
        return HttpResponseRedirect(destination)
    if not use_local_token(settings.HUB.data_directory, request.GET.get("token", "")):
        raise AccessRefused("This sign-in link was used already, or is not the newest one. Run: manage.py sign_in_link")
    login(request, local_administrator(), backend="django.contrib.auth.backends.ModelBackend")
    return HttpResponseRedirect(destination)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """`/sign-out`: end the session."""
    logout(request)
    return HttpResponseRedirect("/")

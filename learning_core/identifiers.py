"""Scopes, principals, derived IDs, and the characters that no identifier may hold.

A principal says who did something and how that is known: `authenticated` by a host that signed the person in, or
`asserted` by the command, which cannot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from learning_core.canonical import derive_id
from learning_core.errors import InvalidIdentifier, NotAPerson

_HOST = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?"
_NUMBER = "[1-9][0-9]{0,15}"
_SCOPE = re.compile(rf"{_HOST}/(?:_id/{_NUMBER}|[a-z0-9][a-z0-9_-]*/(?!\.\.?$)[a-z0-9._-]+)")
_PRINCIPAL = re.compile(
    r"github:[A-Za-z0-9][A-Za-z0-9_-]*"
    rf"|github-user:{_HOST}/{_NUMBER}"
    rf"|hub-user:https?://{_HOST}/{_NUMBER}"
    r"|agent:[\w.:@/+-]+"
)

REFUSED_RANGES = (
    "\u0000-\u0020\u007f-\u00a0\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u1680\u17b4\u17b5"
    "\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
"""White space, blank, control, zero-width, tag and reordering characters, as ranges of a regular expression's class.
The contracts refuse the same ones in every identifier."""

_REFUSED = re.compile(f"[{REFUSED_RANGES}\ud800-\udfff]")


def parse_scope(text: str) -> str:
    """A scope in its stored, lower-case form: `host/owner/name` or `host/_id/<number>`. Raises `InvalidIdentifier`."""
    scope = text.lower() if text.isascii() else text
    if len(scope) > 300 or _SCOPE.fullmatch(scope) is None:
        raise InvalidIdentifier(
            "A repository is named host/owner/name, for example github.com/acme/checkout-prototypes."
        )
    return scope


def scope_host(scope: str) -> str:
    """The scope's host."""
    return scope.split("/", 1)[0]


@dataclass(frozen=True, slots=True)
class Principal:
    """Who acts. `kind` is `human` or `agent`; `assurance` is `authenticated` or `asserted`; `login` is for display."""

    kind: str
    id: str
    assurance: str
    login: str | None = None

    @property
    def data(self) -> dict[str, Any]:
        """The principal as records hold it."""
        data: dict[str, Any] = {"kind": self.kind, "id": self.id, "assurance": self.assurance}
        if self.login is not None and self.kind == "human":
            data["login"] = self.login
        return data


IMPORTER = Principal("agent", "agent:replica-learning", "asserted")
"""Who acts when nobody is named."""


def parse_principal(text: str, *, assurance: str, login: str | None = None) -> Principal:
    """A principal from `github:<login>`, `github-user:<host>/<id>`, `hub-user:<origin>/<id>` or `agent:<id>`.

    Raises `InvalidIdentifier` for another form, for control or invisible characters, and for a bot's login: a bot is
    no person.
    """
    if text.lower().startswith("github:") and text.lower().endswith("[bot]"):
        raise InvalidIdentifier("A bot is no person; an agent is named agent:<id>.")
    if len(text) > 300 or has_refused_characters(text) or _PRINCIPAL.fullmatch(text) is None:
        raise InvalidIdentifier(
            "A principal is github:<login>, github-user:<host>/<id>, hub-user:<origin>/<id> or agent:<id>, "
            "without control or invisible characters."
        )
    if text.startswith("github:"):
        login = login or text.removeprefix("github:")
        text = text.lower()
    return Principal("agent" if text.startswith("agent:") else "human", text, assurance, login)


def check_person(principal: Principal, action: str) -> None:
    """Raise `NotAPerson` unless a person acts. `action` completes "Only a person may …"."""
    if principal.kind != "human":
        raise NotAPerson(f"Only a person may {action}; {principal.id} is an agent.", actor=principal.id)


def has_refused_characters(text: str) -> bool:
    """Whether a text holds a character that no identifier may hold."""
    return _REFUSED.search(text) is not None


# Derived IDs (vectors: contracts/v1/vectors/event-ids.json) -----------------------------------------------------------


def episode_id(scope: str, hub_origin: str, root_comment_id: str) -> str:
    """One review thread of one repository."""
    return derive_id("episode", scope, hub_origin, root_comment_id)


def comment_event_id(
    scope: str, hub_origin: str, comment_id: str, time: str, author: str | None, payload_digest: str
) -> str:
    """One version of a comment: an edit back to an old text is a new version, a repeat is not."""
    return derive_id("event", "comment", scope, hub_origin, comment_id, time, author, payload_digest)


def label_event_id(target_event_id: str, labeler: str, time: str, payload_digest: str) -> str:
    """One label, or a labeler's record that it found nothing, on one comment version."""
    return derive_id("event", "label", target_event_id, labeler, time, payload_digest)


def status_event_id(episode: str, status: str, time: str, actor: str | None) -> str:
    """One resolution or reopening of a thread."""
    return derive_id("event", "status_change", episode, status, time, actor)


def retraction_event_id(target_event_id: str, reason: str) -> str:
    """The retraction of one comment version, for one reason."""
    return derive_id("event", "retraction", target_event_id, reason)


def memory_id(scope: str, kind: str, category: str, theme: str, earlier_decided: int) -> str:
    """The n-th learning of a theme, n the number of earlier decided ones."""
    return derive_id("memory", scope, kind, category, theme, earlier_decided)


def collection_id(scope: str, snapshot_id: str) -> str:
    """The one collection of a snapshot."""
    return derive_id("collection", scope, snapshot_id)


def audit_id(scope: str, operation: str, subject: str, chunk: int) -> str:
    """One receipt of one operation on one subject."""
    return derive_id("audit", scope, operation, subject, chunk)

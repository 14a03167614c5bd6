"""Who wrote a comment, as records know it, and what a later snapshot may say about it. Pure.

A stable ID is an immutable GitHub user ID, or a local Hub user ID where there is no GitHub. A login alone is an
asserted, legacy identity. `ghost` stands for many deleted accounts and is nobody, like a missing author.

Source: the learning guide, "Reviewer identity"; design.md, decision 10.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from learning_core.errors import InvalidLog
from learning_core.policy import is_legacy

GHOST_LOGIN = "ghost"
GHOST_GITHUB_ID = 10137
LOCAL_HOST = "local"


def author_of(person: Mapping[str, Any] | None, *, host: str, hub_origin: str) -> dict[str, Any]:
    """The author that a record keeps for a person of a comment log. Raises `InvalidLog`.

    `githubId` needs a GitHub host in the scope, `localId` the host `local`; neither falls back to the login.
    """
    if person is None:
        return {"kind": "unknown"}
    login = str(person["login"])
    kind = "bot" if person.get("bot") else "human"
    if "githubId" in person:
        if host == LOCAL_HOST:
            raise InvalidLog("A githubId needs a repository on a GitHub host; local repositories use localId.")
        if person["githubId"] == GHOST_GITHUB_ID and login.lower() == GHOST_LOGIN:
            return {"kind": "unknown", "login": login}
        return {"kind": kind, "id": f"github-user:{host}/{person['githubId']}", "login": login}
    if "localId" in person:
        if host != LOCAL_HOST:
            raise InvalidLog("A localId exists only for repositories whose host is local.")
        return {"kind": kind, "id": f"hub-user:{hub_origin}/{person['localId']}", "login": login}
    if login.lower() == GHOST_LOGIN:
        return {"kind": "unknown", "login": login}
    return {"kind": kind, "id": f"github:{login.lower()}", "login": login}


def has_stable_id(person: Mapping[str, Any] | None) -> bool:
    """Whether a person of a comment log carries a numeric ID."""
    return person is not None and ("githubId" in person or "localId" in person)


def reviewer_of(author: Mapping[str, Any]) -> str | None:
    """The identity that counts as a reviewer: never a bot, never an unknown author."""
    return str(author["id"]) if author["kind"] == "human" else None


def settle_author(
    stored: Mapping[str, Any], incoming: Mapping[str, Any], comment_id: str
) -> tuple[dict[str, Any], bool]:
    """The author that a comment's next version has, and whether its stored versions need an identity correction.

    1. A stable author stays: it is never rebound to another user (`InvalidLog`), nor downgraded to a login.
    2. An author who is unknown now (a ghost, or none) keeps the identity already stored.
    3. A login, or nobody, becomes the stable author that the snapshot names: a correction.
    """
    kept = dict(stored)
    if incoming["kind"] == "unknown":
        return kept, False
    if stored["kind"] != "unknown" and not is_legacy(stored):
        if not is_legacy(incoming) and incoming["id"] != stored["id"]:
            raise InvalidLog(
                f"Comment {comment_id} has another author than the one stored; an author is never rebound.",
                comment_id=comment_id,
            )
        return kept, False
    if not is_legacy(incoming):
        return dict(incoming), True
    if stored["kind"] == "unknown":
        return kept, False
    if incoming["id"] != stored["id"]:
        raise InvalidLog(
            f"Comment {comment_id} names another login than the one stored; only stable user IDs can tell whether it "
            "is the same person.",
            comment_id=comment_id,
        )
    return kept, False

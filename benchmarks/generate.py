"""Synthetic comment logs of any size, deterministic: what the benchmarks import."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

WORDS = (
    "contrast",
    "button",
    "focus",
    "label",
    "spacing",
    "margin",
    "error",
    "message",
    "loading",
    "state",
    "keyboard",
    "order",
    "screen",
    "reader",
    "hint",
    "colour",
    "token",
    "scale",
    "icon",
    "header",
    "table",
    "empty",
    "form",
    "field",
    "value",
    "test",
    "case",
    "name",
    "constant",
    "query",
    "loop",
    "index",
    "cache",
    "retry",
    "timeout",
)


def make_log(
    comments: int, *, replies: int = 3, edited: float = 0.0, first: int = 0, snapshot: str = "bench-1"
) -> bytes:
    """A complete log of so many comments, in threads of a root and `replies` replies; `edited` is a share."""
    threads = comments // (replies + 1)
    pages: list[dict[str, Any]] = []
    roots: list[dict[str, Any]] = []
    step = int(1 / edited) if edited else 0
    for number in range(threads):
        root_id = str(1_000_000 + first + number * (replies + 1))
        changed = bool(step) and number % step == 0
        roots.append(
            {
                **_comment(number, root_id, changed),
                "prototypeId": f"p{number % 400}",
                "branch": "main",
                "build": {"number": 1 + number % 7, "commitSha": None},
                "target": {
                    "kind": "file",
                    "path": f"src/part{number % 50}/view{number % 9}.py",
                    "line": 1 + number % 300,
                },
                "status": "open",
                "resolvedAt": None,
                "resolvedBy": None,
                "replyCount": replies,
            }
        )
        own = [_comment(number + i, str(int(root_id) + i), False) for i in range(1, replies + 1)]
        pages.append(
            {
                "action": "list_replies",
                "commentId": root_id,
                "cursor": None,
                "hasMore": False,
                "nextCursor": None,
                "replies": own,
            }
        )
    pages.insert(
        0, {"action": "list_comments", "cursor": None, "hasMore": False, "nextCursor": None, "comments": roots}
    )
    log = {
        "schemaVersion": "replica.hub-comment-log/v1",
        "snapshotId": snapshot,
        "capturedAt": "2026-11-15T00:00:00.000000Z" if not edited else "2026-11-16T00:00:00.000000Z",
        "hubOrigin": "https://hub.example.com",
        "repository": {"id": 4242, "owner": "acme", "name": "bench"},
        "filters": {},
        "pages": pages,
    }
    return json.dumps(log).encode()


def _comment(number: int, comment_id: str, changed: bool) -> dict[str, Any]:
    minute, hour, day = number % 60, number // 60 % 24, 1 + number // 1440 % 28
    body = " ".join(_words(number, 150 if number % 5 == 0 else 90))
    return {
        "id": comment_id,
        "author": {"login": f"reviewer-{number % 53}", "githubId": 1000 + number % 53},
        "body": body + (" (edited)" if changed else ""),
        "createdAt": f"2026-09-{day:02d}T{hour:02d}:{minute:02d}:00.000000Z",
        "editedAt": "2026-11-15T12:00:00.000000Z" if changed else None,
        "deletedAt": None,
        "deletedBy": None,
    }


def _words(seed: int, count: int) -> Iterator[str]:
    state = seed * 2654435761 % 2**32
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        yield WORDS[state % len(WORDS)]

"""A Hub comment log, read strictly and normalized: what one snapshot says, and whether it is complete.

1. The text is strict JSON and satisfies `hub-comment-log.schema.json`; unknown members are refused.
2. A comment ID stands once; a reply list belongs to a root of the log.
3. In each list a page's cursor is exactly the previous page's nextCursor, the first is null, and `hasMore` and
   `nextCursor` agree.
4. A comment is not edited, deleted or resolved before it was created; `resolved` has no contradiction with its status.
5. A list that ends with `hasMore`, or a root whose `replyCount` its reply list does not reach, is a gap.

Source: design.md, section 4, "Hub comment log"; the learning guide, "Rules".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from learning_core import schemas
from learning_core.canonical import digest, proven_digest
from learning_core.errors import InvalidLog, InvalidRecord
from learning_core.identity import has_stable_id
from learning_core.json_stream import ARRAY, Source, read_object
from learning_core.records import check_valid
from learning_core.timestamps import normalize


@dataclass(frozen=True, slots=True)
class LoggedComment:
    """One comment of a snapshot, times normalized. Persons are as in the log. A reply has no target and no status."""

    id: str
    reply_to: str | None
    author: Mapping[str, Any] | None
    body: str | None
    target: Mapping[str, Any] | None
    created_at: str
    edited_at: str | None
    deleted_at: str | None
    deleted_by: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class LoggedThread:
    """A root comment, its pin and status, and its replies in the order of the log."""

    root: LoggedComment
    replies: tuple[LoggedComment, ...]
    prototype_id: str
    branch: str
    build: Mapping[str, Any]
    status: str
    resolved_at: str | None
    resolved_by: Mapping[str, Any] | None

    @property
    def comments(self) -> tuple[LoggedComment, ...]:
        """The root and its replies."""
        return (self.root, *self.replies)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a log says. `gaps` name the lists that are not complete; `digest` is that of the normalized contents."""

    id: str
    captured_at: str
    hub_origin: str
    repository_id: int
    owner: str
    name: str
    stable_identity: bool
    filters: Mapping[str, Any]
    gaps: tuple[Mapping[str, Any], ...]
    threads: tuple[LoggedThread, ...]
    digest: str

    @property
    def complete(self) -> bool:
        """Whether every list and reply page is present."""
        return not self.gaps


def read_snapshot(source: Source) -> Snapshot:
    """Read a comment log, a page at a time. Raises `InvalidJson`, `InvalidRecord`, `InvalidLog`, `InvalidTimestamp`."""
    header: dict[str, Any] = {}
    pages = _Pages()
    for name, value in read_object(source, "pages"):
        if name != "pages":
            header[name] = value
        elif value is ARRAY:
            header[name] = []
        else:
            pages.add(value)
    check_valid("hub-comment-log", header)
    return _make_snapshot(header, pages)


class _Pages:
    """The pages of a log, checked and put together as they come."""

    def __init__(self) -> None:
        self.count = 0
        self.roots: list[tuple[LoggedThread, int]] = []
        self.replies: dict[str, list[LoggedComment]] = {}
        self.ends: dict[str | None, str | None] = {}
        self.ids: set[str] = set()
        self.people: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        self.stable = False

    def add(self, page: Any) -> None:
        """Take in the next page. Raises `InvalidRecord`, `InvalidLog`, `InvalidTimestamp`."""
        _check_page(page, self.count)
        self.count += 1
        owner = page.get("commentId")
        _check_cursor(page, owner, self.ends)
        listed = page["comments"] if owner is None else page["replies"]
        for comment in listed:
            if comment["id"] in self.ids:
                raise InvalidLog(f"Comment {comment['id']} stands twice in the log.", comment_id=comment["id"])
            self.ids.add(comment["id"])
            if comment["author"] is not None:
                # A few people write 100,000 comments: each is kept once.
                comment["author"] = self.people.setdefault(tuple(comment["author"].items()), comment["author"])
            self.stable = self.stable or has_stable_id(comment["author"]) or has_stable_id(comment.get("resolvedBy"))
        if owner is None:
            self.roots += [(_read_thread(root), root["replyCount"]) for root in listed]
        else:
            self.replies.setdefault(owner, []).extend(_read_comment(reply, owner) for reply in listed)


def _check_page(page: Any, number: int) -> None:
    framed = {**_FRAME, "pages": [page]}
    if not schemas.is_valid("hub-comment-log", framed):
        pointer, reason = schemas.explain("hub-comment-log", framed)
        pointer = pointer.replace("/pages/0", f"/pages/{number}", 1)
        raise InvalidRecord(
            f"The hub-comment-log is refused at {pointer}: {reason}.", kind="hub-comment-log", pointer=pointer
        )


_FRAME = {
    "schemaVersion": "replica.hub-comment-log/v1",
    "snapshotId": "a-page",
    "capturedAt": "2026-01-01T00:00:00Z",
    "hubOrigin": "https://hub.example",
    "repository": {"id": 1, "owner": "owner", "name": "name"},
}
"""A log around one page, so that the contract can judge the page alone."""


def _make_snapshot(log: Mapping[str, Any], pages: _Pages) -> Snapshot:
    known = {thread.root.id for thread, _ in pages.roots}
    for owner in pages.replies:
        if owner not in known:
            raise InvalidLog(f"The log lists replies to comment {owner}, which it does not list.", comment_id=owner)
    threads = tuple(replace(thread, replies=tuple(pages.replies.get(thread.root.id, ()))) for thread, _ in pages.roots)
    filters = dict(log.get("filters", {}))
    if "since" in filters:
        filters["since"] = normalize(filters["since"])
    gaps = _find_gaps(pages)
    captured_at = normalize(log["capturedAt"])
    repository = log["repository"]
    stable = "reviewerIdentity" in log or pages.stable
    header = {
        "capturedAt": captured_at,
        "hubOrigin": log["hubOrigin"],
        "repository": repository,
        "stable": stable,
        "filters": filters,
        "gaps": list(gaps),
    }
    return Snapshot(
        log["snapshotId"],
        captured_at,
        log["hubOrigin"],
        repository["id"],
        repository["owner"],
        repository["name"],
        stable,
        filters,
        gaps,
        threads,
        digest([header, sorted(_thread_digest(thread) for thread in threads)]),
    )


def _check_cursor(page: Mapping[str, Any], owner: str | None, ends: dict[str | None, str | None]) -> None:
    place = "The list of comments" if owner is None else f"The reply list of comment {owner}"
    if page["hasMore"] != (page["nextCursor"] is not None):
        raise InvalidLog(f"{place} contradicts itself: hasMore and nextCursor disagree.")
    if page["cursor"] != ends.get(owner):
        raise InvalidLog(f"{place} has a page that does not continue where the one before it ended.")
    if owner in ends and ends[owner] is None:
        raise InvalidLog(f"{place} has a page after its last one.")
    ends[owner] = page["nextCursor"]


def _find_gaps(pages: _Pages) -> tuple[dict[str, Any], ...]:
    gaps: list[dict[str, Any]] = []
    if None not in pages.ends or pages.ends[None] is not None:
        gaps.append({"list": "comments", "commentId": None})
    for thread, reply_count in pages.roots:
        name = thread.root.id
        if pages.ends.get(name) is not None or len(pages.replies.get(name, ())) < reply_count:
            gaps.append({"list": "replies", "commentId": name})
    return tuple(gaps[:1000])


def _read_thread(root: Mapping[str, Any]) -> LoggedThread:
    comment = _read_comment(root, None)
    resolved_at = None if root["resolvedAt"] is None else normalize(root["resolvedAt"])
    if root["status"] == "open" and (resolved_at is not None or root["resolvedBy"] is not None):
        raise InvalidLog(f"Comment {root['id']} is open and resolved at once.", comment_id=root["id"])
    if resolved_at is not None and resolved_at < comment.created_at:
        raise InvalidLog(f"Comment {root['id']} is resolved before it was created.", comment_id=root["id"])
    build = {"number": root["build"]["number"], "commitSha": root["build"].get("commitSha")}
    return LoggedThread(
        comment,
        (),
        root["prototypeId"],
        root["branch"],
        build,
        root["status"],
        resolved_at,
        root["resolvedBy"],
    )


def _read_comment(comment: Mapping[str, Any], reply_to: str | None) -> LoggedComment:
    created_at = normalize(comment["createdAt"])
    edited_at = None if comment["editedAt"] is None else normalize(comment["editedAt"])
    deleted_at = None if comment["deletedAt"] is None else normalize(comment["deletedAt"])
    if any(time is not None and time < created_at for time in (edited_at, deleted_at)):
        raise InvalidLog(f"Comment {comment['id']} changes before it was created.", comment_id=comment["id"])
    if deleted_at is None and (comment["body"] is None or comment["deletedBy"] is not None):
        raise InvalidLog(
            f"Comment {comment['id']} is not deleted, but has no body or a deleter.", comment_id=comment["id"]
        )
    return LoggedComment(
        comment["id"],
        reply_to,
        comment["author"],
        comment["body"],
        comment.get("target"),
        created_at,
        edited_at,
        deleted_at,
        comment["deletedBy"],
    )


def _thread_digest(thread: LoggedThread) -> str:
    return proven_digest(
        [
            thread.prototype_id,
            thread.branch,
            thread.build,
            thread.status,
            thread.resolved_at,
            thread.resolved_by,
            [
                [c.id, c.author, c.body, c.target, c.created_at, c.edited_at, c.deleted_at, c.deleted_by]
                for c in thread.comments
            ],
        ]
    )

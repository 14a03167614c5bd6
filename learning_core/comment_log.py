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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from learning_core.canonical import digest, parse_json, proven_digest
from learning_core.errors import InvalidLog
from learning_core.identity import has_stable_id
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


def read_snapshot(raw: bytes | str) -> Snapshot:
    """Read a comment log. Raises `InvalidJson`, `InvalidRecord`, `InvalidLog`, `InvalidTimestamp`."""
    log = parse_json(raw)
    check_valid("hub-comment-log", log)
    return normalize_log(log)


def normalize_log(log: Mapping[str, Any]) -> Snapshot:
    """The snapshot that a schema-valid log describes. Raises `InvalidLog`, `InvalidTimestamp`."""
    roots: list[Mapping[str, Any]] = []
    replies: dict[str, list[Mapping[str, Any]]] = {}
    ends: dict[str | None, str | None] = {}
    for page in log["pages"]:
        owner = page.get("commentId")
        _check_cursor(page, owner, ends)
        if owner is None:
            roots.extend(page["comments"])
        else:
            replies.setdefault(owner, []).extend(page["replies"])
    _check_ids(roots, replies)
    threads = tuple(_read_thread(root, replies.get(root["id"], [])) for root in roots)
    filters = dict(log.get("filters", {}))
    if "since" in filters:
        filters["since"] = normalize(filters["since"])
    gaps = _find_gaps(roots, replies, ends)
    captured_at = normalize(log["capturedAt"])
    repository = log["repository"]
    persons = (person for root in roots for person in (root["author"], root["resolvedBy"]))
    reply_authors = (reply["author"] for listed in replies.values() for reply in listed)
    stable = "reviewerIdentity" in log or any(has_stable_id(person) for person in (*persons, *reply_authors))
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


def _check_ids(roots: Sequence[Mapping[str, Any]], replies: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    seen: set[str] = set()
    for comment in (*roots, *(reply for listed in replies.values() for reply in listed)):
        if comment["id"] in seen:
            raise InvalidLog(f"Comment {comment['id']} stands twice in the log.", comment_id=comment["id"])
        seen.add(comment["id"])
    known = {root["id"] for root in roots}
    for owner in replies:
        if owner not in known:
            raise InvalidLog(f"The log lists replies to comment {owner}, which it does not list.", comment_id=owner)


def _find_gaps(
    roots: Sequence[Mapping[str, Any]],
    replies: Mapping[str, Sequence[Mapping[str, Any]]],
    ends: Mapping[str | None, str | None],
) -> tuple[dict[str, Any], ...]:
    gaps: list[dict[str, Any]] = []
    if None not in ends or ends[None] is not None:
        gaps.append({"list": "comments", "commentId": None})
    for root in roots:
        listed = len(replies.get(root["id"], []))
        if ends.get(root["id"]) is not None or listed < root["replyCount"]:
            gaps.append({"list": "replies", "commentId": root["id"]})
    return tuple(gaps[:1000])


def _read_thread(root: Mapping[str, Any], replies: Sequence[Mapping[str, Any]]) -> LoggedThread:
    comment = _read_comment(root, None)
    resolved_at = None if root["resolvedAt"] is None else normalize(root["resolvedAt"])
    if root["status"] == "open" and (resolved_at is not None or root["resolvedBy"] is not None):
        raise InvalidLog(f"Comment {root['id']} is open and resolved at once.", comment_id=root["id"])
    if resolved_at is not None and resolved_at < comment.created_at:
        raise InvalidLog(f"Comment {root['id']} is resolved before it was created.", comment_id=root["id"])
    build = {"number": root["build"]["number"], "commitSha": root["build"].get("commitSha")}
    return LoggedThread(
        comment,
        tuple(_read_comment(reply, root["id"]) for reply in replies),
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

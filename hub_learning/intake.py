"""Taking in review comments: what a message changes in the Hub's rows.

Messages come late, twice and out of order. What holds:

1. A deletion is final for its comment ID, also when the Hub never saw the comment. For a known comment the ID is all
   that counts: whatever else the message says of it, the text goes.
2. An older version of a text never replaces a newer one; an older status never replaces a newer one.
3. When a comment was written, what it answers, and its pin (prototype, build, branch) are frozen at first sight.
   A message that changes the time or the thread is refused; a changed pin is left aside.
4. A reply answers a root, which may arrive later. So no reply answers itself or another reply.
5. An author who has an ID keeps it: an account that became a ghost does not take the words from who wrote them.

Rows are read and written in bulk, so a message of thousands of comments is a few dozen statements.

Source: design.md, decisions 8 and 10, section 4, rule 16.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from django.db import models

from hub_learning.access import LOCAL_HOST
from hub_learning.models import AnalyticsEvent, Build, Comment, Prototype, Repository, Thread
from learning_core.errors import LearningError
from learning_core.timestamps import normalize

CHUNK = 400
GHOST = 10137
"""GitHub's stand-in for every deleted account."""
ID_OF_OTHER_HOSTS = {True: "githubId", False: "localId"}
"""The kind of a person's ID that a repository cannot have, by whether its host is `local`."""

Row = TypeVar("Row", bound=models.Model)


class CommentConflict(LearningError):
    """A message contradicts what is known of a comment and can never change. `details`: `comment_id`."""

    code = "comment_conflict"


class InvalidComment(LearningError):
    """A comment contradicts itself or its repository. The store would refuse it for ever. `details`: `comment_id`."""

    code = "invalid_comment"


@dataclass
class Intake:
    """One message being taken in: the rows it concerns, changed in memory, then written by `save`."""

    repository: Repository
    as_of: datetime
    """When the sender knew this."""
    prototypes: dict[str, Prototype] = field(default_factory=dict)
    builds: dict[str, list[Build]] = field(default_factory=dict)
    """By prototype ID, in the order of their numbers."""
    threads: dict[str, Thread] = field(default_factory=dict)
    comments: dict[str, Comment] = field(default_factory=dict)
    created: dict[str, Comment] = field(default_factory=dict)
    edited: dict[str, Comment] = field(default_factory=dict)
    erased: dict[str, Comment] = field(default_factory=dict)
    touched: dict[str, Comment] = field(default_factory=dict)
    """Comments whose row changed otherwise: who wrote it, under which name."""
    turned: dict[str, Thread] = field(default_factory=dict)
    """Threads whose row changed."""
    renamed: dict[str, Prototype] = field(default_factory=dict)
    aged: list[Build] = field(default_factory=list)
    """Known builds that an earlier comment turned up for."""
    events: list[AnalyticsEvent] = field(default_factory=list)

    def load(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Read every row that the items may concern."""
        ids = {str(item["id"]) for item in items} | {str(item["replyTo"]) for item in items if item["replyTo"]}
        comments = Comment.objects.filter(repository=self.repository).select_related("thread")
        for chunk in in_chunks(ids):
            self.comments |= {row.comment_id: row for row in comments.filter(comment_id__in=chunk)}
        threads = Thread.objects.filter(repository=self.repository)
        self.threads = {row.thread.root_id: row.thread for row in self.comments.values()}
        for chunk in in_chunks(ids - self.threads.keys()):
            self.threads |= {row.root_id: row for row in threads.filter(root_id__in=chunk)}
        for row in self.comments.values():
            row.thread = self.threads[row.thread.root_id]
        for chunk in in_chunks({str(item["prototype"]["id"]) for item in items}):
            rows = Prototype.objects.filter(repository=self.repository, prototype_id__in=chunk)
            self.prototypes |= {row.prototype_id: row for row in rows}
        for prototype_id, prototype in self.prototypes.items():
            self.builds[prototype_id] = list(prototype.builds.order_by("number"))

    def record(self, item: Mapping[str, Any]) -> None:
        """Take in one comment. Raises `CommentConflict`, `InvalidComment`."""
        comment = self.comments.get(item["id"])
        is_erasure = comment is not None and item["deletedAt"] is not None
        if comment is not None and is_erasure:
            self._erase(comment, item)
        check_times(item)
        check_people(item, self.repository)
        if comment is None:
            comment = self._add(item)
        elif not is_erasure:
            self._check_same(comment, item)
            self._change(comment, item)
        if item["replyTo"] is None and comment.is_root:
            self._set_status(comment, item)

    def record_deletions(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Take in the deletions of a message that is refused; those that are refused themselves erase what is known."""
        for item in items:
            if item["deletedAt"] is not None:
                with suppress(CommentConflict, InvalidComment):
                    self.record(item)

    def save(self) -> None:
        """Write what changed."""
        turned = [row for row in self.turned.values() if not row._state.adding]
        changed = [row for key, row in (self.touched | self.edited | self.erased).items() if key not in self.created]
        create(Prototype, (row for row in self.prototypes.values() if row._state.adding))
        create(Build, (row for rows in self.builds.values() for row in rows if row._state.adding))
        create(Thread, (row for row in self.threads.values() if row._state.adding))
        create(Comment, self.created.values())
        create(AnalyticsEvent, self.events)
        update(Prototype, self.renamed.values(), "title", "url")
        update(Build, self.aged, "first_seen_at")
        status = ("status", "resolved_at", "resolved_by", "status_as_of")
        update(Thread, turned, "build", "branch", "target", *status)
        text = ("author", "body", "edited_at", "deleted_at", "deleted_by", "version", "dirty")
        update(Comment, changed, *text)

    # One comment -----------------------------------------------------------------------------------------------------

    def _add(self, item: Mapping[str, Any]) -> Comment:
        is_root = item["replyTo"] is None
        if not is_root:
            self._check_answers_root(item)
        thread = self._open_thread(item) if is_root else self._find_thread(item["replyTo"])
        deleted_at = read_time(item["deletedAt"])
        comment = Comment(
            repository=self.repository,
            thread=thread,
            comment_id=item["id"],
            is_root=is_root,
            author=item["author"],
            body=None if deleted_at else item["body"],
            created_at=read_time(item["createdAt"]),
            edited_at=read_time(item["editedAt"]),
            deleted_at=deleted_at,
            deleted_by=item["deletedBy"] if deleted_at else None,
            url=item["url"] or "",
        )
        self.comments[comment.comment_id] = self.created[comment.comment_id] = comment
        if deleted_at is None:
            self._tell("REVIEW_COMMENT_CREATED" if is_root else "REVIEW_REPLY_ADDED", item, comment)
        return comment

    def _check_answers_root(self, item: Mapping[str, Any]) -> None:
        parent = self.comments.get(item["replyTo"])
        is_answered = item["id"] in self.threads
        if item["replyTo"] == item["id"] or is_answered or (parent is not None and not parent.is_root):
            raise InvalidComment(
                f"Comment {item['id']} is a reply; a reply answers a root and is not answered.", comment_id=item["id"]
            )

    def _check_same(self, comment: Comment, item: Mapping[str, Any]) -> None:
        known = format_known(comment)
        if read_time(item["createdAt"]) != comment.created_at:
            raise CommentConflict(f"{known} was written at another time.", comment_id=comment.comment_id)
        if (item["replyTo"] is None) != comment.is_root:
            raise CommentConflict(
                f"{known} is not {'a reply' if comment.is_root else 'a root'}.", comment_id=item["id"]
            )
        if item["replyTo"] is not None and self._find_thread(item["replyTo"]) is not comment.thread:
            raise CommentConflict(f"{known} answers another comment.", comment_id=comment.comment_id)

    def _erase(self, comment: Comment, item: Mapping[str, Any]) -> None:
        if comment.deleted_at is not None:
            return
        known_person = ID_OF_OTHER_HOSTS[self.repository.host == LOCAL_HOST] not in (item["deletedBy"] or {})
        comment.body = None
        comment.deleted_at = max(read_time(item["deletedAt"]), comment.created_at)
        comment.deleted_by = item["deletedBy"] if known_person else None
        self._mark(comment, self.erased)

    def _change(self, comment: Comment, item: Mapping[str, Any]) -> None:
        if comment.deleted_at is not None:
            return
        author = merge_author(comment.author, item["author"])
        if author != comment.author:
            comment.author = author
            self.touched[comment.comment_id] = comment
        known_time, time = comment.edited_at or comment.created_at, read_time(item["editedAt"] or item["createdAt"])
        if time < known_time or (time == known_time and item["body"] == comment.body):
            return
        comment.body, comment.edited_at = item["body"], read_time(item["editedAt"])
        self._mark(comment, self.edited)

    def _mark(self, comment: Comment, group: dict[str, Comment]) -> None:
        """Withhold what cites the comment until this version of it is in the store."""
        comment.version += 1
        comment.dirty = True
        group[comment.comment_id] = comment

    # Threads and what they are pinned to -----------------------------------------------------------------------------

    def _find_thread(self, parent_id: str) -> Thread:
        """The thread that a reply belongs to; one that waits for its root if that has not arrived."""
        parent = self.comments.get(parent_id)
        if parent is not None:
            return parent.thread
        if parent_id not in self.threads:
            self.threads[parent_id] = Thread(repository=self.repository, root_id=parent_id)
        return self.threads[parent_id]

    def _open_thread(self, item: Mapping[str, Any]) -> Thread:
        thread = self._find_thread(item["id"])
        thread.build = self._find_build(item)
        thread.branch = item["branch"]
        thread.target = item["target"] or {"kind": "page"}
        self.turned[thread.root_id] = thread
        return thread

    def _find_build(self, item: Mapping[str, Any]) -> Build:
        """The build that was reviewed: by number, by commit, or the newest known when the comment was written."""
        prototype = self._find_prototype(item)
        builds = self.builds[prototype.prototype_id]
        number, commit = item["build"]["number"], item["build"]["commitSha"]
        written = read_time(item["createdAt"])
        if number is None and commit is None and builds:
            return ([build for build in builds if build.first_seen_at <= written] or builds[:1])[-1]
        same_number = [build for build in builds if number is not None and build.number == number]
        same_commit = [build for build in builds if commit is not None and build.commit_sha == commit]
        for build in (same_number or same_commit)[:1]:
            if written < build.first_seen_at:
                build.first_seen_at = written
                if not build._state.adding:
                    self.aged.append(build)
            return build
        if number is None:
            number = builds[-1].number + 1 if builds else 1
        build = Build(prototype=prototype, number=number, commit_sha=commit, first_seen_at=written)
        if not builds:
            self._tell("PROTOTYPE_FIRST_PUBLISHED", item)
        self._tell("BUILD_PUBLISHED", item, build=build)
        builds.append(build)
        builds.sort(key=lambda row: row.number)
        return build

    def _find_prototype(self, item: Mapping[str, Any]) -> Prototype:
        told = item["prototype"]
        prototype = self.prototypes.get(told["id"])
        names = {"title": told["title"] or "", "url": told["url"] or ""}
        if prototype is None:
            prototype = Prototype(repository=self.repository, prototype_id=told["id"], **names)
            self.prototypes[told["id"]], self.builds[told["id"]] = prototype, []
            self._tell("PROTOTYPE_REGISTERED", item)
        elif names != {"title": prototype.title, "url": prototype.url}:
            prototype.title, prototype.url = names["title"], names["url"]
            if not prototype._state.adding:
                self.renamed[told["id"]] = prototype
        return prototype

    def _set_status(self, root: Comment, item: Mapping[str, Any]) -> None:
        thread = root.thread
        known = thread.status_as_of
        if item["status"] is None or (known is not None and self.as_of < known):
            return
        resolved = item["status"] == Thread.Status.RESOLVED
        if item["status"] != thread.status:
            self._tell("REVIEW_THREAD_RESOLVED" if resolved else "REVIEW_THREAD_REOPENED", item)
        thread.status, thread.status_as_of = item["status"], self.as_of
        resolved_at = read_time(item["resolvedAt"]) if resolved else None
        thread.resolved_at = max(resolved_at, root.created_at) if resolved_at else None
        thread.resolved_by = item["resolvedBy"] if resolved else None
        self.turned[thread.root_id] = thread

    def _tell(
        self, name: str, item: Mapping[str, Any], comment: Comment | None = None, build: Build | None = None
    ) -> None:
        self.events.append(
            AnalyticsEvent(
                repository=self.repository,
                name=AnalyticsEvent.Name[name],
                prototype_id=item["prototype"]["id"],
                build_number=build.number if build else None,
                comment_id=comment.comment_id if comment else "",
            )
        )


def check_times(item: Mapping[str, Any]) -> None:
    """Raise `InvalidComment` for a comment that was edited, deleted or resolved before it was written."""
    written = read_time(item["createdAt"])
    for member in ("editedAt", "deletedAt", "resolvedAt"):
        time = read_time(item[member])
        if time is not None and time < written:
            raise InvalidComment(f"Comment {item['id']} has a {member} before its createdAt.", comment_id=item["id"])


def check_people(item: Mapping[str, Any], repository: Repository) -> None:
    """Raise `InvalidComment` for a person with an ID of another host: `localId` belongs to `local`, `githubId` not."""
    other = ID_OF_OTHER_HOSTS[repository.host == LOCAL_HOST]
    for member in ("author", "deletedBy", "resolvedBy"):
        if other in (item[member] or {}):
            raise InvalidComment(
                f"Comment {item['id']} has a {member} with a {other}, but the host is {repository.host}.",
                comment_id=item["id"],
            )


def merge_author(known: Mapping[str, Any] | None, told: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Who wrote a comment, given what was known and what is told now: an ID stays, its name follows.

    A name without an ID stays as well: nothing tells that another name is the same person.
    """
    known_id, told_id = person_id(known), person_id(told)
    if known_id is None:
        return told if told_id is not None or known is None else known
    return told if told_id == known_id else known


def person_id(person: Mapping[str, Any] | None) -> tuple[str, int] | None:
    """The kind and number of a person's ID; None without one, and for the ghost."""
    if person is None or (person.get("githubId") == GHOST and person["login"].lower() == "ghost"):
        return None
    for kind in ("githubId", "localId"):
        if kind in person:
            return kind, person[kind]
    return None


def read_time(text: str | None) -> Any:
    """The instant of a message's time."""
    return datetime.fromisoformat(normalize(text)) if text is not None else None


def format_known(comment: Comment) -> str:
    """How a refusal names a comment."""
    return f"Comment {comment.comment_id}"


def in_chunks(values: Iterable[str]) -> Iterator[list[str]]:
    """The values, a few hundred at a time."""
    rest = iter(sorted(values))
    while chunk := list(islice(rest, CHUNK)):
        yield chunk


def create(model: type[Row], rows: Iterable[Row]) -> None:
    """Add rows, with their keys set."""
    model._default_manager.bulk_create(list(rows), batch_size=CHUNK)


def update(model: type[Row], rows: Iterable[Row], *names: str) -> None:
    """Write the named columns of rows."""
    model._default_manager.bulk_update(list(rows), names, batch_size=CHUNK)

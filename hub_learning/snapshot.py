"""A complete comment log from the Hub's rows: what the import step gives to the learning store.

One statement reads all that can change, so the log is one moment of the repository however long writing it takes. No
file holds it. Threads whose root comment never arrived are left out.

Source: design.md, section 4, "Hub comment log".
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby, islice
from typing import Any, BinaryIO

from django.utils import timezone

from hub_learning.models import Build, Comment, Repository
from learning_core.timestamps import format_instant

THREADS_PER_PAGE = 200


@dataclass
class Snapshot:
    """A log that is being written. `carried` fills while it is read: the dirty comments in it, with their versions."""

    repository: Repository
    captured_at: datetime
    carried: dict[int, int] = field(default_factory=dict)

    @property
    def snapshot_id(self) -> str:
        """Derived from the repository and the time of capture, so a repeat of the same capture is the same snapshot."""
        return f"hub-{self.repository.pk}-{format_instant(self.captured_at)}"

    def open(self) -> BinaryIO:
        """The log as a file that is written while it is read."""
        return io.BufferedReader(_ChunkReader(self.chunks()))

    def chunks(self) -> Iterator[bytes]:
        """The log, a page at a time, made while the rows are read."""
        repository = self.repository
        head = {
            "schemaVersion": "replica.hub-comment-log/v1",
            "snapshotId": self.snapshot_id,
            "capturedAt": format_instant(self.captured_at),
            "hubOrigin": repository.origin,
            "repository": {"id": repository.pk, "owner": repository.owner, "name": repository.name},
            "reviewerIdentity": "stable-user-id",
            "filters": {},
        }
        yield _encode(head)[:-1] + b',"pages":['
        yield from _join(self._pages())
        yield b"]}"

    def _pages(self) -> Iterator[dict[str, Any]]:
        """Pages of roots, each followed by the complete reply lists of its roots."""
        number = 0
        threads = list_threads(self._rows())
        page = take(threads)
        while True:
            following = take(threads)
            builds = load_builds(page)
            yield {
                "action": "list_comments",
                "cursor": str(number) if number else None,
                "hasMore": bool(following),
                "nextCursor": str(number + 1) if following else None,
                "comments": [describe_root(rows[0], builds, len(rows) - 1) for rows in page],
            }
            for rows in page:
                if len(rows) > 1:
                    yield {
                        "action": "list_replies",
                        "commentId": rows[0].comment_id,
                        "cursor": None,
                        "hasMore": False,
                        "nextCursor": None,
                        "replies": [describe_comment(row) for row in rows[1:]],
                    }
            if not following:
                return
            page, number = following, number + 1

    def _rows(self) -> Iterator[Comment]:
        # The order is that of an index: a sort would put comment text into the database's temporary files.
        rows = Comment.objects.filter(repository=self.repository).select_related("thread")
        for row in rows.order_by("thread_id", "-is_root", "created_at", "pk").iterator(chunk_size=500):
            if row.thread.build_id is None:
                continue
            if row.dirty:
                self.carried[row.pk] = row.version
            yield row


class _ChunkReader(io.RawIOBase):
    """A file over chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            try:
                self._rest = next(self._chunks)
            except StopIteration:
                return 0
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def take_snapshot(repository: Repository) -> Snapshot:
    """A snapshot of the repository as it is when the log is read, never captured before the one imported last."""
    now = timezone.now()
    if repository.captured_at is not None:
        now = max(now, repository.captured_at + timedelta(microseconds=1))
    return Snapshot(repository, now)


def list_threads(rows: Iterable[Comment]) -> Iterator[list[Comment]]:
    """The comments of each thread, its root first."""
    for _, comments in groupby(rows, key=lambda row: row.thread_id):
        yield list(comments)


def take(threads: Iterator[list[Comment]]) -> list[list[Comment]]:
    """The next page of threads; empty at the end."""
    return list(islice(threads, THREADS_PER_PAGE))


def load_builds(page: Iterable[list[Comment]]) -> dict[int, Build]:
    """The builds that a page's threads are pinned to. They never change, so they may be read after the comments."""
    ids = {rows[0].thread.build_id or 0 for rows in page}
    return {build.pk: build for build in Build.objects.filter(pk__in=ids).select_related("prototype")}


def describe_root(row: Comment, builds: Mapping[int, Build], replies: int) -> dict[str, Any]:
    """A root comment as the log lists it."""
    thread = row.thread
    build = builds[thread.build_id or 0]
    return {
        **describe_comment(row),
        "prototypeId": build.prototype.prototype_id,
        "branch": thread.branch,
        "build": {"number": build.number, "commitSha": build.commit_sha},
        "target": thread.target,
        "status": thread.status,
        "resolvedAt": _time(thread.resolved_at),
        "resolvedBy": thread.resolved_by,
        "replyCount": replies,
    }


def describe_comment(row: Comment) -> dict[str, Any]:
    """What a root and a reply have in common."""
    return {
        "id": row.comment_id,
        "author": row.author,
        "body": row.body,
        "createdAt": format_instant(row.created_at),
        "editedAt": _time(row.edited_at),
        "deletedAt": _time(row.deleted_at),
        "deletedBy": row.deleted_by,
    }


def _time(value: datetime | None) -> str | None:
    return format_instant(value) if value else None


def _encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _join(pages: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    separator = b""
    for page in pages:
        yield separator + _encode(page)
        separator = b","

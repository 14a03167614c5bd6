"""A small world to test the learning store in: a clock, a review Hub that people write in, and a store over a provider.

A test says what people did in a few words (`hub.comment("101", "mona", "Too pale.")`), collects it, labels it, and
looks at what the store answers. Everything happens on one clock that ticks a second whenever it is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, cast

import pytest

from learning_core.audit import receipt, seal_entry
from learning_core.errors import LearningError
from learning_core.identifiers import Principal, parse_principal
from learning_core.lifecycle import derive_confidence
from learning_core.plugins import (
    ConsolidationRequest,
    ConsolidationResult,
    EvidenceView,
    LabelAnswer,
    LabelRequest,
    Usage,
    ViewComment,
    count_support,
)
from learning_core.provider import MEMORIES, STREAMS, MemoryProvider, MemoryQuery, Query
from learning_core.records import CheckedRecord, check, seal
from learning_core.store import LearningStore
from learning_core.timestamps import format_instant
from providers.consolidators import recurrence

Json = dict[str, Any]

SCOPE = "github.com/acme/checkout-prototypes"
ORIGIN = "https://hub.example.com"
MONA = parse_principal("github:mona", assurance="authenticated")
OCTO = parse_principal("github:octo", assurance="authenticated")
AGENT = parse_principal("agent:builder", assurance="asserted")
GITHUB_IDS = {"mona": 9001, "octo": 9002, "ada": 9003, "lin": 9004, "sam": 9005, "kim": 9006}
FOREVER = ("2026-01-01", "2027-01-01")
THEME = "color-contrast"


@dataclass
class Clock:
    """UTC text, a second later at each reading."""

    now: datetime = datetime(2026, 11, 1, 9, tzinfo=UTC)

    def __call__(self) -> str:
        self.now += timedelta(seconds=1)
        return format_instant(self.now)

    def wait(self, **time: float) -> str:
        """Let time pass (`days=1`), and tell it."""
        self.now += timedelta(**time)
        return self()


# The Hub -------------------------------------------------------------------------------------------------------------


def person(login: str, *, legacy: bool = False) -> Json:
    """Someone as a comment log names them: with the numeric ID, or, in an old snapshot, by login only."""
    return {"login": login} if legacy else {"login": login, "githubId": GITHUB_IDS[login]}


@dataclass
class Hub:
    """What people wrote in one repository, and the logs that a collector makes of it."""

    clock: Clock
    legacy: bool = False
    """An old Hub names people by login only."""
    roots: dict[str, Json] = field(default_factory=dict)
    replies: dict[str, list[Json]] = field(default_factory=dict)
    snapshots: Iterator[int] = field(default_factory=lambda: count(1))

    def comment(
        self,
        comment_id: str,
        author: str | Json | None,
        body: str = "",
        *,
        prototype: str = "p1",
        build: int = 7,
        target: Json | None = None,
        at: str | None = None,
    ) -> Json:
        """Begin a thread. The returned entry may be changed."""
        self.roots[comment_id] = entry = {
            **self._entry(comment_id, author, body, at),
            "prototypeId": prototype,
            "branch": "main",
            "build": {"number": build, "commitSha": None},
            "target": target or {"kind": "page"},
            "status": "open",
            "resolvedAt": None,
            "resolvedBy": None,
        }
        return entry

    def reply(self, comment_id: str, to: str, author: str | Json | None, body: str = "", at: str | None = None) -> Json:
        """Answer in the thread of a root comment."""
        entry = self._entry(comment_id, author, body, at)
        self.replies.setdefault(to, []).append(entry)
        return entry

    def find(self, comment_id: str) -> Json:
        """A comment's entry, to be changed."""
        entries = [*self.roots.values(), *(reply for listed in self.replies.values() for reply in listed)]
        return next(entry for entry in entries if entry["id"] == comment_id)

    def edit(self, comment_id: str, body: str, *, at: str | None = None) -> None:
        self.find(comment_id).update(body=body, editedAt=at or self.clock())

    def delete(self, comment_id: str, *, by: str = "mona", keep_body: bool = False) -> None:
        entry = self.find(comment_id)
        entry.update(deletedAt=self.clock(), deletedBy=self._person(by), body=entry["body"] if keep_body else None)

    def resolve(self, comment_id: str, *, by: str = "mona", at: str | None = None) -> None:
        self.roots[comment_id].update(status="resolved", resolvedAt=at or self.clock(), resolvedBy=self._person(by))

    def reopen(self, comment_id: str) -> None:
        self.roots[comment_id].update(status="open", resolvedAt=None, resolvedBy=None)

    def log(self, **members: Any) -> Json:
        """A complete snapshot of everything, under a new snapshot ID. `members` replace members of the log."""
        pages = [
            page_of(comments=[{**root, "replyCount": len(self.replies.get(i, []))} for i, root in self.roots.items()])
        ]
        pages += [page_of(commentId=root, replies=listed) for root, listed in self.replies.items()]
        log: Json = {
            "schemaVersion": "replica.hub-comment-log/v1",
            "snapshotId": f"snap-{next(self.snapshots)}",
            "capturedAt": self.clock(),
            "hubOrigin": ORIGIN,
            "repository": {"id": 4242, "owner": "acme", "name": "checkout-prototypes"},
            "filters": {},
            "pages": pages,
        }
        if not self.legacy:
            log["reviewerIdentity"] = "stable-user-id"
        return copy_json({**log, **members})

    def _entry(self, comment_id: str, author: str | Json | None, body: str, at: str | None) -> Json:
        return {
            "id": comment_id,
            "author": self._person(author),
            "body": body or f"Words of comment {comment_id}.",
            "createdAt": at or self.clock(),
            "editedAt": None,
            "deletedAt": None,
            "deletedBy": None,
        }

    def _person(self, author: str | Json | None) -> Json | None:
        return person(author, legacy=self.legacy) if isinstance(author, str) else author


def page_of(**members: Any) -> Json:
    """One last page: of the list of comments (`comments=`), or of a root's replies (`commentId=`, `replies=`)."""
    action = "list_comments" if "comments" in members else "list_replies"
    return {"action": action, "cursor": None, "hasMore": False, "nextCursor": None, **members}


def split_page(page: Json, member: str, sizes: Sequence[int]) -> list[Json]:
    """The same list on several pages, with cursors that continue each other."""
    items, pages = list(page[member]), []
    for number, size in enumerate(sizes):
        last = number == len(sizes) - 1
        cursors = {
            "cursor": f"after-{number}" if number else None,
            "nextCursor": None if last else f"after-{number + 1}",
        }
        pages.append({**page, **cursors, "hasMore": not last, member: items[:size]})
        items = items[size:]
    return pages


def copy_json(value: Json) -> Json:
    return cast("Json", json.loads(json.dumps(value)))


@contextmanager
def refused(code: str) -> Iterator[pytest.ExceptionInfo[LearningError]]:
    """Assert that what happens inside is refused with this stable code."""
    with pytest.raises(LearningError) as caught:
        yield caught
    assert (caught.value.code, bool(caught.value.message)) == (code, True), caught.value.message


# Plug-ins ------------------------------------------------------------------------------------------------------------


class Scripted:
    """A consolidator that returns what a function makes of the view, and keeps the view that it was shown."""

    def __init__(self, script: Callable[[EvidenceView], Iterable[Any]], diagnostics: Sequence[Any] = ()) -> None:
        self._script = script
        self._diagnostics = diagnostics
        self.view: EvidenceView | None = None

    def manifest(self) -> Mapping[str, Any]:
        return {"id": "scripted", "version": "1", "sendsTo": []}

    def consolidate(self, request: ConsolidationRequest, view: EvidenceView) -> ConsolidationResult:
        assert request.purpose == "instruction"
        self.view = view
        return ConsolidationResult(list(self._script(view)), self._diagnostics)


class ScriptedLabeler:
    """A labeler that answers each request with what a function makes of it, and keeps the requests."""

    def __init__(self, script: Callable[[LabelRequest], Any], name: str = "scripted") -> None:
        self._script = script
        self._name = name
        self.requests: list[LabelRequest] = []
        self.closed = False

    def manifest(self) -> Mapping[str, Any]:
        return {"id": self._name, "version": "1", "sendsTo": []}

    def label(self, request: LabelRequest) -> LabelAnswer:
        self.requests.append(request)
        answer = self._script(request)
        return answer if isinstance(answer, LabelAnswer) else LabelAnswer(list(answer), Usage(1, 10, 2, 3), "model-1")

    def close(self) -> None:
        self.closed = True

    @property
    def asked(self) -> list[str]:
        """The texts that it was asked about, in order."""
        return [c.body for request in self.requests for thread in request.threads for c in thread.comments if c.ask]


def propose(
    view: EvidenceView,
    evidence: Iterable[str],
    counter: Iterable[str] = (),
    *,
    theme: str = THEME,
    text: str = "Keep text readable.",
    replaces: Sequence[str] = (),
    **members: Any,
) -> Json:
    """A proposal that cites the view's comments with these event IDs. `members` replace members of the proposal."""
    seen = {comment.event_id: comment for comment in view.comments}
    sides = [[seen[event] for event in side] for side in (evidence, counter)]
    support, dissent = (count_support(side) for side in sides)
    return {
        "schemaVersion": "replica.memory-proposal/v1",
        "kind": "guidance",
        "content": {"category": "accessibility", "theme": theme, "text": text},
        "targets": [],
        "lifecycle": {"replaces": list(replaces), "validFrom": None, "validUntil": None},
        "evidence": [_cite(comment) for comment in sides[0]],
        "counterevidence": [_cite(comment) for comment in sides[1]],
        "support": support,
        "dissent": dissent,
        "confidence": derive_confidence(support, dissent),
        "rationale": "It was said.",
        "proposer": {"kind": "agent", "id": "agent:scripted"},
        **members,
    }


def _cite(comment: ViewComment) -> Json:
    return comment.reference(comment.labels)


# Providers that behave otherwise ------------------------------------------------------------------------------------


class Delegate:
    """A provider that does all that another does; a subclass changes some of it."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Without(Delegate):
    """A provider that lacks an optional capability."""

    def __init__(self, inner: Any, capability: str) -> None:
        super().__init__(inner)
        self._capability = capability

    def manifest(self) -> Mapping[str, Any]:
        manifest = self.inner.manifest()
        return {**manifest, "capabilities": [name for name in manifest["capabilities"] if name != self._capability]}


class Meddled(Delegate):
    """A provider that tells a function of each write before it happens; the function may write itself, or raise."""

    WRITES = ("append_records", "append_batch", "append_memory_version", "redact_record")

    def __init__(self, inner: Any, before: Callable[[str], None]) -> None:
        super().__init__(inner)
        self._before = before

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name)
        if name not in self.WRITES:
            return method

        def call(*arguments: Any, **options: Any) -> Any:
            self._before(name)
            return method(*arguments, **options)

        return call


def at_call(number: int, act: Callable[[], Any]) -> Callable[[str], None]:
    """For `Meddled`: act once, before the n-th write."""
    calls = count(1)

    def before(_method: str) -> None:
        if next(calls) == number:
            act()

    return before


# The world -----------------------------------------------------------------------------------------------------------


@dataclass
class World:
    """A Hub and a store, and short words for what people do with them."""

    provider: MemoryProvider
    clock: Clock = field(default_factory=Clock)
    scope: str = SCOPE

    def __post_init__(self) -> None:
        self.hub = Hub(self.clock)
        names = count(1)
        self.store = LearningStore(self.provider, self.scope, clock=self.clock, new_id=lambda: f"name-{next(names)}")

    # What people do

    def consent(self, *purposes: str, time_from: str | None = None, time_to: str | None = None) -> str:
        """A grant, for review and instruction where nothing is named; its ID."""
        wanted = purposes or ("review", "instruction")
        grant = self.store.add_grant(MONA, purposes=wanted, time_from=time_from, time_to=time_to, reason="Agreed.")
        return str(grant["grant"]["id"])

    def collect(self, **options: Any) -> Json:
        """Import a complete snapshot of the Hub as it is now."""
        return self.load(self.hub.log(), **options)

    def load(self, log: Json | bytes, by: Principal = MONA, **options: Any) -> Json:
        """Import one log."""
        raw = log if isinstance(log, bytes) else json.dumps(log).encode()
        return self.store.import_comments(by, raw, **options)

    def label(
        self,
        *comment_ids: str,
        theme: str = THEME,
        observation: str = "problem",
        summary: str = "Keep text readable.",
        category: str = "accessibility",
        by: str = "github:mona",
        **members: Any,
    ) -> Json:
        """Label the current versions of these comments, all alike."""
        said = {"category": category, "theme": theme, "observation": observation, "summary": summary, **members}
        return self.label_file([{"commentId": comment_id, **said} for comment_id in comment_ids], by=by)

    def label_file(self, items: Sequence[Json], *, by: str = "github:mona", **members: Any) -> Json:
        agent = by.startswith("agent:")
        labeler = {"kind": "agent", "id": by, "model": "m-1"} if agent else {"kind": "human", "id": by}
        document = {"schemaVersion": "replica.labels/v1", "labeler": labeler, "labels": list(items), **members}
        return self.store.record_labels(MONA, json.dumps(document).encode())

    def consolidate(
        self, consolidator: Any = None, *, window: tuple[str, str] = FOREVER, max_new: int = 10, **options: Any
    ) -> Json:
        """Store what the consolidator (recurrence, where none is given) proposes."""
        chosen = consolidator or recurrence.create_consolidator(options)
        return self.store.consolidate(AGENT, chosen, time_from=window[0], time_to=window[1], max_new=max_new)

    def propose(self, *evidence: str, **members: Any) -> str:
        """A proposal that cites the current versions of these comments; its learning's ID."""
        counter = [self.event(comment) for comment in members.pop("counter", ())]
        cited = [self.event(comment) for comment in evidence]
        result = self.consolidate(Scripted(lambda view: [propose(view, cited, counter, **members)]))
        assert result["stored"], result
        return str(result["stored"][0]["id"])

    def accept(self, memory_id: str, by: Principal = MONA, **options: Any) -> Json:
        """Accept the proposal as it is now."""
        digest = options.pop("review_digest", None) or self.latest(memory_id)["reviewDigest"]
        return cast("Json", self.store.accept(by, memory_id, review_digest=digest, **options)["memory"])

    def reject(self, memory_id: str, by: Principal = MONA, reason: str = "No.") -> Json:
        digest = self.latest(memory_id)["reviewDigest"]
        return cast("Json", self.store.reject(by, memory_id, review_digest=digest, reason=reason)["memory"])

    def recall(self, task: str = "Build the pay page.", by: Principal = AGENT, **options: Any) -> Json:
        return self.store.recall(by, task, **options)

    def recalled(self, **options: Any) -> list[str]:
        """The IDs of the learnings that an agent gets now."""
        return list(self.recall(**options)["learnings"])

    def discuss(self, theme: str = THEME, authors: Sequence[str] = ("mona", "octo")) -> list[str]:
        """A theme raised by each author in a prototype of their own, collected and labelled; the comment IDs."""
        names = [f"{theme}-{number}" for number in range(1, len(authors) + 1)]
        for number, (name, author) in enumerate(zip(names, authors, strict=True), start=1):
            self.hub.comment(name, author, f"About {theme}, says {author}.", prototype=f"p{number}")
        self.collect()
        self.label(*names, theme=theme, summary=f"Mind the {theme}.")
        return names

    def proposal(self, theme: str = THEME, authors: Sequence[str] = ("mona", "octo")) -> str:
        """A theme that recurs, proposed; the proposal's ID."""
        self.discuss(theme, authors)
        return next(str(item["id"]) for item in self.consolidate()["stored"] if item["theme"] == theme)

    def learning(self, theme: str = THEME, authors: Sequence[str] = ("mona", "octo")) -> str:
        """A theme that recurs, proposed and accepted; the learning's ID."""
        memory_id = self.proposal(theme, authors)
        self.accept(memory_id)
        return memory_id

    @contextmanager
    def meddling(self, before: Callable[[str], None]) -> Iterator[None]:
        """Let a function act before each write that the store makes inside."""
        self.store.provider = cast("MemoryProvider", Meddled(self.provider, before))
        try:
            yield
        finally:
            self.store.provider = self.provider

    def other_store(self) -> LearningStore:
        """A second store over the same records, as another process has it."""
        return LearningStore(self.provider, self.scope, clock=self.clock)

    # What is stored

    def rows(self, *streams: str) -> list[tuple[str, int, bytes]]:
        """Every row of these streams, or of all: stream, position and bytes, by position."""
        found = [(stream, *row) for stream in streams or (*STREAMS, MEMORIES) for row in self._read(stream)]
        return sorted(found, key=lambda row: row[1])

    def records(self, stream: str) -> list[Json]:
        """What the rows of a stream say, by position."""
        return [json.loads(raw) for _, _, raw in self.rows(stream)]

    def _read(self, stream: str) -> Iterable[Any]:
        if stream == MEMORIES:
            return self.provider.read_memory_versions(self.scope, MemoryQuery())
        return self.provider.read_records(self.scope, cast("Any", stream), Query())

    def events(self, kind: str, comment_id: str | None = None) -> list[Json]:
        """The stored events of a type, in order; of one Hub comment where it is named."""
        found = [event for event in self.records("events") if event["type"] == kind]
        return [e for e in found if comment_id is None or _comment_of(e) == comment_id]

    def event(self, comment_id: str) -> str:
        """The event ID of a comment's newest version."""
        return str(self.events("comment", comment_id)[-1]["id"])

    def audit(self, operation: str) -> list[Json]:
        """The audit entries of an operation, in order."""
        return [entry for entry in self.records("audit") if entry["operation"] == operation]

    def latest(self, memory_id: str) -> Json:
        """A learning's newest stored version."""
        return [record for record in self.records(MEMORIES) if record["id"] == memory_id][-1]

    @contextmanager
    def nothing_stored(self) -> Iterator[None]:
        """Assert that what happens inside leaves every row as it was."""
        before = self.rows()
        yield
        assert self.rows() == before

    # What a faulty or hostile provider would hold

    def forge(self, memory_id: str, *, audited: bool = True, **members: Any) -> CheckedRecord:
        """Append a sealed version of a learning that no rule allowed; a member that is None is left out."""
        stored = self.latest(memory_id)
        data = {**stored, "version": stored["version"] + 1, "previousDigest": stored["digest"], **members}
        return self.append_version({k: v for k, v in data.items() if v is not None}, stored["digest"], audited=audited)

    def append_version(self, data: Mapping[str, Any], previous: str | None, *, audited: bool = True) -> CheckedRecord:
        record = seal("memory-record", {k: v for k, v in data.items() if k != "digest"})
        entry = self.entry(
            "memory.accept", record.id, record["version"], [receipt(MEMORIES, record)] if audited else []
        )
        self.provider.append_memory_version(self.scope, record, previous, [entry])
        return record

    def append_event(self, members: Mapping[str, Any]) -> CheckedRecord:
        """Append a sealed event that no import made."""
        record = seal("event", {"scope": self.scope, "source": "hub-comments", **members})
        entry = self.entry("import", record.id, 0, [receipt("events", record)])
        self.provider.append_records(self.scope, "events", [record], [entry])
        return record

    def entry(
        self, operation: str, subject: str, chunk: int, records: Sequence[Mapping[str, str]] = ()
    ) -> CheckedRecord:
        """An audit entry."""
        return seal_entry(
            self.scope, operation, subject, chunk=chunk, at=self.clock(), actor=MONA.data, records=records
        )

    def checked(self, kind: str, stream: str) -> list[CheckedRecord]:
        """The rows of a stream as records."""
        return [check(kind, raw, self.scope) for _, _, raw in self.rows(stream)]


def _comment_of(event: Json) -> str | None:
    part: Json = event.get("payload") or event["redaction"]
    return cast("str | None", part.get("commentId"))

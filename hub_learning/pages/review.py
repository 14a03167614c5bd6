"""One learning as its page shows it: the instruction, who is against it, who is for it, and what happened to it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.safestring import SafeString

from hub_learning.pages.quoting import show_text
from hub_learning.pages.rows import Voices, describe_notices, describe_since, state_of
from hub_learning.pages.times import When, describe_time
from hub_learning.pages.words import STATE_WORDS, count, describe_refusal, title

LONG_QUOTE = 1500
EXCERPT = 240


@dataclass(frozen=True, slots=True)
class Source:
    """What the Hub knows about a comment: where to read it, and what its prototype is called there."""

    url: str | None
    prototype: str


@dataclass(frozen=True, slots=True)
class Person:
    """Someone, by name. `tone` picks one of eight colours and is the same for the same person everywhere."""

    name: str
    initial: str
    tone: int


@dataclass(frozen=True, slots=True)
class Label:
    """What a labeler made of a comment, and which words it went by, when it says so. `summary` only where it adds."""

    observation: str
    theme: str
    summary: SafeString | None
    explanation: SafeString | None
    labeler: str


@dataclass(frozen=True, slots=True)
class Quote:
    """One comment in full. `excerpt` is set for a long one, which opens on request."""

    comment_id: str
    person: Person
    prototype: SafeString
    build: str
    when: When
    place: SafeString | None
    edited: bool
    is_new: bool
    body: SafeString
    excerpt: SafeString | None
    length: str
    url: str | None
    labels: tuple[Label, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The comments on one side. `withheld` says of those that are not shown how many there are, and why."""

    quotes: tuple[Quote, ...]
    withheld: tuple[str, ...]
    heading: str


@dataclass(frozen=True, slots=True)
class Step:
    """One entry of the history: what happened, who did it, when, and the reason they gave."""

    what: str
    who: Person | None
    when: When | None
    reason: SafeString | None
    digest: str


@dataclass(frozen=True, slots=True)
class Review:
    """Everything that the page of one learning shows. `text` is None when it may not be shown."""

    id: str
    state: str
    category: str
    theme: str
    text: SafeString | None
    plain_text: str
    since: str
    when: When | None
    rationale: SafeString | None
    voices: Voices | None
    facts: tuple[tuple[int, str], ...]
    support: Evidence
    dissent: Evidence
    contested: bool
    in_use: bool
    usable: bool
    notices: tuple[str, ...]
    refusals: tuple[str, ...]
    review_digest: str
    replaces: tuple[str, ...]
    history: tuple[Step, ...]

    @property
    def state_words(self) -> str:
        """The state as the queue names it."""
        return STATE_WORDS[self.state]

    @property
    def short_digest(self) -> str:
        """The start of the reviewDigest: enough to compare by eye."""
        return shorten_digest(self.review_digest)

    @property
    def replaces_words(self) -> str:
        """`1 learning`, for what accepting it would replace."""
        return count(len(self.replaces), "learning")

    @property
    def can_decide(self) -> bool:
        """Whether there is something to decide on: a proposal that is shown whole."""
        return self.state == "proposed" and self.text is not None

    @property
    def decided(self) -> Step | None:
        """The step that decided it."""
        return self.history[0] if self.history and self.state != "proposed" else None


@dataclass(frozen=True, slots=True)
class Frame:
    """What the page knows beside the record. `sources` is keyed by Hub comment ID; `prototype` is the word for one.

    `seen` holds the comment events of the version that the person read before; None when there was none.
    """

    sources: Mapping[str, Source]
    prototype: str
    now: datetime
    seen: frozenset[str] | None = None


def build_review(memory: Mapping[str, Any], frame: Frame) -> Review:
    """The page of the store's `show(history=True)` answer."""
    text = memory.get("text")
    support, dissent = memory.get("support"), memory.get("dissent")
    return Review(
        id=memory["id"],
        state=state_of(memory),
        category=title(memory["category"]) if memory.get("category") else "",
        theme=memory.get("theme", ""),
        text=show_text(text) if text else None,
        plain_text=text or "",
        since=describe_since(memory, frame.now),
        when=describe_time(memory["at"], frame.now) if memory.get("at") else None,
        rationale=show_text(memory["rationale"]) if memory.get("rationale") else None,
        voices=Voices(support["reviewers"], dissent["reviewers"]) if support and dissent else None,
        facts=_build_facts(support, frame.prototype) if support else (),
        support=_build_evidence(memory, "evidence", _describe_support(support), frame),
        dissent=_build_evidence(memory, "counterevidence", _describe_dissent(dissent), frame),
        contested=bool(memory.get("contested")),
        in_use=bool(memory.get("inUse")),
        usable=bool(memory.get("usable")),
        notices=describe_notices(memory),
        refusals=tuple(describe_refusal(code) for code in memory.get("refusals", ())),
        review_digest=memory.get("reviewDigest", ""),
        replaces=tuple((memory.get("lifecycle") or {}).get("replaces", ())),
        history=tuple(_build_steps(memory, frame.now)),
    )


def shorten_digest(digest: str) -> str:
    """The first twelve digits."""
    return digest.removeprefix("sha256:")[:12]


def describe_person(actor: Mapping[str, Any] | None) -> Person:
    """The name that a person or agent goes by; the ID decides the colour, so that a renamed login keeps it."""
    if actor is None or actor.get("kind") == "unknown":
        login = (actor or {}).get("login")
        return Person(login or "unknown author", "?", 0)
    identity: str = actor["id"]
    last = identity.rsplit(":", 1)[-1].rsplit("/", 1)[-1]
    name = actor.get("login") or (f"user {last}" if last.isdigit() else last)
    return Person(name, name[:1].upper(), 1 + zlib.crc32(identity.encode()) % 7)


def _build_facts(support: Mapping[str, int], prototype: str) -> tuple[tuple[int, str], ...]:
    nouns = (("reviewers", "reviewer"), ("comments", "comment"), ("threads", "thread"), ("prototypes", prototype))
    return tuple((support[member], noun if support[member] == 1 else f"{noun}s") for member, noun in nouns)


def _describe_support(support: Mapping[str, int] | None) -> str:
    number = support["comments"] if support else 0
    return f"{count(number, 'comment')} {'supports' if number == 1 else 'support'} it"


def _describe_dissent(dissent: Mapping[str, int] | None) -> str:
    number = dissent["reviewers"] if dissent else 0
    return f"{count(number, 'reviewer')} {'disagrees' if number == 1 else 'disagree'}"


def _build_evidence(memory: Mapping[str, Any], side: str, heading: str, frame: Frame) -> Evidence:
    references: Sequence[Mapping[str, Any]] = memory.get(side, ())
    quotes = [_build_quote(item, memory["text"], frame) for item in references if item["comment"]]
    codes = [item["withheld"] for item in references if not item["comment"]]
    withheld = tuple(
        f"{count(codes.count(code), 'comment')} withheld: {describe_refusal(code)}" for code in dict.fromkeys(codes)
    )
    return Evidence(tuple(sorted(quotes, key=lambda quote: quote.when.iso, reverse=True)), withheld, heading)


def _build_quote(item: Mapping[str, Any], instruction: str, frame: Frame) -> Quote:
    comment, pin = item["comment"], item["pin"]
    body: str = comment["body"]
    source = frame.sources.get(comment["commentId"]) or Source(None, f"{frame.prototype} {pin['prototypeId']}")
    commit = pin["build"].get("commitSha")
    return Quote(
        comment_id=comment["commentId"],
        person=describe_person(comment["author"]),
        prototype=show_text(source.prototype),
        build=f"build {pin['build']['number']}" + (f" ({commit[:7]})" if commit else ""),
        when=describe_time(comment["createdAt"], frame.now),
        place=_describe_place(comment["target"]),
        edited=comment["editedAt"] is not None,
        is_new=frame.seen is not None and item["eventIds"][0] not in frame.seen,
        body=show_text(body),
        excerpt=show_text(body[:EXCERPT].rstrip()) if len(body) > LONG_QUOTE else None,
        length=f"{len(body):,}",
        url=source.url,
        labels=tuple(_build_label(label, instruction) for label in item["labels"]),
    )


def _build_label(label: Mapping[str, Any], instruction: str) -> Label:
    explanation = label.get("explanation")
    return Label(
        observation=label["observation"],
        theme=label["theme"],
        summary=show_text(label["summary"]) if label["summary"] != instruction else None,
        explanation=show_text(explanation) if explanation else None,
        labeler=describe_person(label["labeler"]).name,
    )


def _describe_place(target: Mapping[str, Any] | None) -> SafeString | None:
    if target is None or target["kind"] == "page":
        return None
    if target["kind"] == "element":
        return show_text(target["selector"])
    return show_text(target["path"] + (f":{target['line']}" if target["line"] else ""))


# History -------------------------------------------------------------------------------------------------------------


def _build_steps(memory: Mapping[str, Any], now: datetime) -> list[Step]:
    """The versions as steps, the newest first."""
    versions: Sequence[Mapping[str, Any]] = memory.get("history", ())
    pairs = zip([None, *versions], versions, strict=False)
    return [_build_step(version, before, memory.get("proposer"), now) for before, version in pairs][::-1]


def _build_step(
    version: Mapping[str, Any], before: Mapping[str, Any] | None, proposer: Mapping[str, Any] | None, now: datetime
) -> Step:
    what, member = _describe_step(version, before)
    detail = version.get(member, {})
    actor = detail.get("by") if member else proposer
    reason = detail.get("reason")
    return Step(
        what=what,
        who=describe_person(actor) if actor else None,
        when=describe_time(version["at"], now) if version.get("at") else None,
        reason=show_text(reason) if reason else None,
        digest=shorten_digest(version.get("reviewDigest", "")),
    )


def _describe_step(version: Mapping[str, Any], before: Mapping[str, Any] | None) -> tuple[str, str]:
    """What happened, and the member of the record that says who did it and why (none for a proposal)."""
    match version.get("state"):
        case "accepted" if before is not None and before.get("state") == "accepted":
            return "recorded what it replaces", "supersession"
        case "accepted":
            edited = version.get("approval", {}).get("edited")
            return "accepted it with changes" if edited else "accepted it", "approval"
        case "rejected":
            return "rejected it", "rejection"
        case "retired":
            return "retired it", "retirement"
        case "proposed":
            return "proposed it" if before is None else "proposed it again", ""
        case _:
            return "this version is damaged", ""

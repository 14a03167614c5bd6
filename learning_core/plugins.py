"""What a labeler and a consolidator are given, and what they return. Both are replaceable; neither may write.

The store gives a labeler comment text without authors and checks each label that comes back against the contract.
It gives a consolidator a frozen view of the evidence that the purpose may use and saves what it returns as proposed.
A plug-in is code that a team chooses to run; the frozen view is not a sandbox.

Source: the learning guide, "Label with Copilot" and "Bring your own consolidator"; design.md, section 4, rules 8 to 17.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

CATEGORIES = (
    "accessibility",
    "visual-quality",
    "content",
    "interaction",
    "correctness",
    "performance",
    "security",
    "maintainability",
    "testing",
    "documentation",
    "other",
)
OBSERVATIONS = ("problem", "strength", "disagreement")


# Labelers ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LabelComment:
    """One current comment version. `ask` is False for context that the labeler was asked about before.

    `target` is the comment's compact target (`{"kind": "file", "path": …}`); a reply has None. There is no author.
    """

    event_id: str
    body: str
    is_reply: bool
    target: Mapping[str, Any] | None
    ask: bool


@dataclass(frozen=True, slots=True)
class LabelThread:
    """One review thread, its comments in the order they were written."""

    episode_id: str
    comments: tuple[LabelComment, ...]


@dataclass(frozen=True, slots=True)
class LabelRequest:
    """One request: threads of about 16,000 characters together, and the (category, theme) keys already in use."""

    threads: tuple[LabelThread, ...]
    themes_in_use: tuple[tuple[str, str], ...]
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What the labeler's service reported. Whole tokens; `nano_aiu` are AI credits in nano-AI units."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    nano_aiu: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.nano_aiu + other.nano_aiu,
        )


@dataclass(frozen=True, slots=True)
class LabelAnswer:
    """Labels as plain JSON objects: `eventId, category, theme, observation, summary`, optionally `explanation`.

    A comment that was asked about and has no label here is recorded as `no_annotation`. The store refuses a label
    that the contract refuses, or for a comment that was not asked about.
    """

    labels: Sequence[Mapping[str, Any]]
    usage: Usage = field(default_factory=Usage)
    model: str | None = None


class MemoryLabeler(Protocol):
    """A labeler. `create_labeler(options)` makes one."""

    def manifest(self) -> Mapping[str, Any]:
        """`{"id": "offline", "version": "1", "sendsTo": [hosts that comment text is sent to]}`."""

    def label(self, request: LabelRequest) -> LabelAnswer:
        """Label the comments with `ask`. Raises `LearningError`; usage that is known goes into `details["usage"]`."""

    def close(self) -> None:
        """Release everything. Called once, before a result is reported."""


# Consolidators -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ViewLabel:
    """One current label on a comment. `labeler_kind` is `human` or `agent`."""

    event_id: str
    category: str
    theme: str
    observation: str
    summary: str
    labeler_kind: str


@dataclass(frozen=True, slots=True)
class ViewComment:
    """One current, permitted comment with its labels.

    `reviewer` is the distinct identity that counts (design.md, rule 10), None for a bot, ghost or unknown author.
    `written_at` is when the feedback was first given to this version (UTC text).
    """

    event_id: str
    episode_id: str
    prototype_id: str
    reviewer: str | None
    written_at: str
    body: str
    labels: tuple[ViewLabel, ...]
    pin: Mapping[str, Any]
    author: Mapping[str, Any]

    def reference(self, labels: Sequence[ViewLabel]) -> dict[str, Any]:
        """The `replica.evidence-ref/v1` that cites this comment and these labels on it."""
        return {
            "schemaVersion": "replica.evidence-ref/v1",
            "episodeId": self.episode_id,
            "eventIds": [self.event_id, *sorted(label.event_id for label in labels)],
            "pin": _thaw(self.pin),
            "writtenAt": self.written_at,
            "author": _thaw(self.author),
        }


@dataclass(frozen=True, slots=True)
class ViewMemory:
    """The latest version of a learning or proposal.

    `in_use`: accepted, and its evidence still permits the purpose, and nothing replaced it, and it applies now.
    `text`, `cited` (comment event IDs of evidence and counterevidence) are empty unless the evidence still permits
    the purpose. `decided_at` is None while it is proposed.
    """

    id: str
    state: str
    kind: str
    category: str
    theme: str
    in_use: bool
    superseded: bool
    conflicted: bool
    decided_at: str | None
    text: str | None
    cited: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """Everything a consolidator may see. Comments lie in the window `[window_from, window_to)`."""

    window_from: str
    window_to: str
    comments: tuple[ViewComment, ...]
    memories: tuple[ViewMemory, ...]


@dataclass(frozen=True, slots=True)
class ConsolidationRequest:
    """`purpose` is always `instruction` in this version; `at` is the run's time (UTC text)."""

    purpose: str
    at: str


@dataclass(frozen=True, slots=True)
class ConsolidationResult:
    """`replica.memory-proposal/v1` objects, and diagnostics: `{"theme", "category", "reason", "detail"}`."""

    proposals: Sequence[Mapping[str, Any]]
    diagnostics: Sequence[Mapping[str, Any]] = ()


class MemoryConsolidator(Protocol):
    """A consolidator. `create_consolidator(options, builtins)` makes one."""

    def manifest(self) -> Mapping[str, Any]:
        """`{"id": "recurrence", "version": "1", "sendsTo": []}`."""

    def consolidate(self, request: ConsolidationRequest, view: EvidenceView) -> ConsolidationResult:
        """Return every proposal it would make, stored ones included: unchanged ones do not count against the cap."""


def count_support(comments: Sequence[ViewComment]) -> dict[str, int]:
    """Distinct comments, threads, prototypes and reviewers, as a proposal's `support` or `dissent` states them."""
    return {
        "comments": len({comment.event_id for comment in comments}),
        "threads": len({comment.episode_id for comment in comments}),
        "prototypes": len({comment.prototype_id for comment in comments}),
        "reviewers": len({comment.reviewer for comment in comments if comment.reviewer is not None}),
    }


def _thaw(value: Any) -> Any:
    """A plain copy of frozen JSON, for use in a record."""
    if isinstance(value, Mapping):
        return {key: _thaw(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_thaw(item) for item in value]
    return value

"""What every operation of the store shares: reading, planning again, and the one place that writes."""

from __future__ import annotations

import gc
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from learning_core.audit import Plan
from learning_core.canonical import MAX_BYTES
from learning_core.errors import Busy, Conflict, HeadMoved, InvalidJson, NotFound, NotPermitted, PluginFailed
from learning_core.evidence import Memory, Standing, cited_episodes, derive_standing
from learning_core.identifiers import parse_scope
from learning_core.policy import SOURCE, Policy
from learning_core.provider import REQUIRED_CAPABILITIES, MemoryProvider, RedactingProvider
from learning_core.reader import Reader
from learning_core.records import CheckedRecord, check_valid
from learning_core.timestamps import Clock, normalize_bound, system_clock

MAX_PLANS = 10
"""How often an operation plans again because another writer was first."""

NOTHING_WITHHELD: frozenset[str] = frozenset()
T = TypeVar("T")


class StoreBase:
    """One scope over a provider. `clock` tells UTC text, `new_id` gives a fresh random name."""

    def __init__(
        self,
        provider: MemoryProvider,
        scope: str,
        *,
        clock: Clock = system_clock,
        new_id: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        manifest = dict(provider.manifest())
        check_valid("provider-manifest", manifest)
        missing = [name for name in REQUIRED_CAPABILITIES if name not in manifest["capabilities"]]
        if missing:
            raise PluginFailed(f"The provider {manifest['name']} lacks {', '.join(missing)}.")
        self.provider = provider
        self.scope = parse_scope(scope)
        self.manifest = manifest
        self._clock = clock
        self._new_id = new_id

    def _reader(self) -> Reader:
        return Reader(self.provider, self.scope)

    def _policy_for(self, reader: Reader, *purposes: str) -> Policy:
        policy = reader.usable_policy()
        for purpose in purposes:
            if not policy.active(purpose, SOURCE):
                raise NotPermitted(
                    f"No active grant permits {purpose} of hub-comments; a person can record one with grants add.",
                    purpose=purpose,
                )
        return policy

    def _find_memory(self, reader: Reader, memory_id: str) -> Memory:
        memory = reader.memories([memory_id]).get(memory_id)
        if memory is None:
            raise NotFound(f"There is no learning {memory_id[:80]}.")
        return memory

    def _latest_records(self, reader: Reader) -> list[CheckedRecord]:
        found = reader.all_memories()
        return [memory.latest for memory in found.values() if not memory.damaged]

    def _standings(
        self,
        reader: Reader,
        records: Sequence[CheckedRecord],
        policy: Policy,
        at: str,
        *,
        purpose: str = "instruction",
        withheld: frozenset[str] = NOTHING_WITHHELD,
    ) -> list[Standing]:
        supersession = reader.supersession()
        threads = reader.threads(episode for record in records for episode in cited_episodes(record))
        return [
            derive_standing(record, threads, policy, supersession, at=at, purpose=purpose, withheld=withheld)
            for record in records
        ]

    def _change(self, plan: Callable[[Reader], tuple[T, Plan | None]]) -> T:
        """Load, plan, commit; plan again when another writer was first. Raises `Busy` when that never ends."""
        for _ in range(MAX_PLANS):
            result, made = plan(self._reader())
            if made is None:
                return result
            try:
                self._commit(made)
            except (HeadMoved, Conflict):
                continue
            return result
        raise Busy("Other writers kept changing what this operation reads; run it again.")

    def _commit(self, made: Plan) -> None:
        """The one place that writes: a plan, whole or not at all."""
        if made.memory is not None:
            record, previous = made.memory
            self.provider.append_memory_version(self.scope, record, previous, made.audit, expected=made.expected)
        elif made.redaction is not None:
            provider = cast("RedactingProvider", self.provider)
            provider.redact_record(self.scope, made.redaction, made.audit, expected=made.expected)
        else:
            records = cast("Mapping[Any, Sequence[Any]]", made.records)
            self.provider.append_batch(self.scope, records, made.audit, expected=made.expected)


@contextmanager
def bulk_work() -> Iterator[None]:
    """Pause the cyclic garbage collector: it would walk 100,000 live records again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def read_input(source: bytes | str | Path) -> bytes | str:
    """The bytes of a regular file. Raises `NotFound`, `InvalidJson` for one that is too large."""
    if not isinstance(source, Path):
        return source
    try:
        # A pipe would wait for somebody to write, and a device never ends.
        descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise NotFound(f"{source} cannot be read: it is no regular file.")
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its name is not valid"
        raise NotFound(f"{source} cannot be read: {reason}.") from None
    if len(raw) > MAX_BYTES:
        raise InvalidJson(f"{source.name} has more than {MAX_BYTES:,} bytes.")
    return raw


def normalize_optional(text: str | None) -> str | None:
    """A bound that a person typed, or None."""
    return None if text is None else normalize_bound(text)

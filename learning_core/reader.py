"""Load what an answer depends on, and re-check all of it. Fail closed.

A `Reader` belongs to one operation. Each group it reads is recomputed against its head, so that a lost, hidden,
doubled or un-redacted row is noticed (`Damaged`), and the heads that it saw are kept as the expectation of a write. A
provider without heads is read whole, once, as the first thing.

Source: design.md, decision 5 and section 4, rules 3 to 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from learning_core import lifecycle
from learning_core.errors import Damaged, PluginFailed
from learning_core.evidence import Memory, StatedVersion, Thread, resolve_thread, stated_id
from learning_core.policy import Policy, derive_policy
from learning_core.provider import (
    EMPTY_HEAD,
    HEADS,
    POLICY_OPERATIONS,
    RECALL_OPERATIONS,
    STREAMS,
    Head,
    HeadedProvider,
    MemoryProvider,
    MemoryQuery,
    Query,
    Row,
    Stream,
    advance,
    advance_redacted,
    hub_comment_id,
    is_redacted,
)
from learning_core.records import STREAM_KINDS, CheckedRecord, check

MAX_READS = 8
"""How often a group is read again while writers move it."""

DECIDED = ("accepted", "rejected", "retired")


class Reader:
    """Reads one scope for one operation, checking all it reads. `heads` are those of the groups it has read."""

    def __init__(self, provider: MemoryProvider, scope: str) -> None:
        self.provider = provider
        self.scope = scope
        self.heads: dict[str, Head] = {}
        self.rows_read = 0
        self.headed = HEADS in provider.manifest()["capabilities"]
        self._policy: Policy | None = None
        self._threads: dict[str, Thread | None] = {}
        self._decided: list[CheckedRecord | StatedVersion] | None = None
        self._supersession: lifecycle.Supersession | None = None
        if not self.headed:
            self._check_whole_scope()

    def expect(self, *groups: str) -> dict[str, Head]:
        """The heads that a write must still find for groups that were read. Empty where heads are not kept."""
        return {group: self.heads[group] for group in groups} if self.headed else {}

    # Policy

    def policy(self) -> Policy:
        """Grants, withdrawals, identity adoptions and damage marks."""
        if self._policy is None:
            self._policy = derive_policy(self._read_group("policy", self._policy_rows))
        return self._policy

    def usable_policy(self) -> Policy:
        """The policy, unless damage was found that nobody has repaired. Raises `Damaged`, naming the records."""
        policy = self.policy()
        if policy.damage:
            raise Damaged(
                f"verify found damage in {', '.join(policy.damage[:3])}; repair it and run verify again.",
                record_id=policy.damage[0],
            )
        return policy

    def _policy_rows(self) -> list[tuple[int, CheckedRecord]]:
        rows = [*self._rows("grants", Query()), *self._rows("withdrawals", Query())]
        return rows + list(self._rows("audit", Query(operations=POLICY_OPERATIONS)))

    # Episodes

    def thread(self, episode_id: str) -> Thread | None:
        """One episode, resolved; None where the store holds none."""
        return self.threads([episode_id])[episode_id]

    def threads(self, episode_ids: Iterable[str]) -> dict[str, Thread | None]:
        """Episodes, resolved, in the order they were asked for."""
        wanted = list(dict.fromkeys(episode_ids))
        missing = [episode for episode in wanted if episode not in self._threads]
        for start in range(0, len(missing), 500):
            chunk = missing[start : start + 500]
            for episode, records in self._read_episodes(chunk).items():
                self._threads[episode] = resolve_thread(records) if records else None
        return {episode: self._threads[episode] for episode in wanted}

    def load_threads(self, episode_ids: Sequence[str]) -> dict[str, Thread | None]:
        """The same without keeping them, for whoever reads many."""
        found = self._read_episodes(list(episode_ids))
        return {episode: resolve_thread(records) if records else None for episode, records in found.items()}

    def all_threads(self) -> Iterator[Thread]:
        """Every episode of the scope, 500 at a time, without keeping them.

        An episode that was lost takes its events along: no head covers all of them, so the import receipts do.
        """
        ids = [record.id for _, record in self._rows("episodes", Query())]
        received = {
            item["id"]
            for _, entry in self._rows("audit", Query(operations=("import",)))
            for item in entry["records"]
            if item["stream"] == "episodes"
        }
        for episode in received.symmetric_difference(ids):
            raise Damaged(f"Episode {episode} is missing, or no import recorded it. Run verify.", record_id=episode)
        for start in range(0, len(ids), 500):
            for records in self._read_episodes(ids[start : start + 500]).values():
                yield resolve_thread(records)

    def find_episodes(self, comment_id: str) -> list[str]:
        """The episodes that hold a Hub comment. An index that finds nothing is not believed: all events are scanned."""
        found = dict.fromkeys(self.find_event_episodes(Query(comment_ids=(comment_id,))))
        if not found:
            for _, record in self._rows("events", Query()):
                if hub_comment_id(record.data) == comment_id:
                    found[record["episodeId"]] = None
        return list(found)

    def find_comments(self, comment_ids: Sequence[str]) -> list[tuple[str, Thread]]:
        """Those of some Hub comment IDs that are stored, each with its thread. Only the index is asked."""
        rows = self._rows("events", Query(comment_ids=tuple(comment_ids)))
        found = dict.fromkeys((str(hub_comment_id(record.data)), str(record["episodeId"])) for _, record in rows)
        threads = self.threads(episode for _, episode in found)
        return [(comment, thread) for comment, episode in found if (thread := threads[episode]) is not None]

    def find_event_episodes(self, query: Query) -> list[str]:
        """The episodes that hold the events of a query, each once."""
        return list(dict.fromkeys(str(record["episodeId"]) for _, record in self._rows("events", query)))

    def _read_episodes(self, ids: Sequence[str]) -> dict[str, list[CheckedRecord]]:
        def load() -> dict[str, list[tuple[int, CheckedRecord]]]:
            groups: dict[str, list[tuple[int, CheckedRecord]]] = {f"e:{episode}": [] for episode in ids}
            for row in self._rows("episodes", Query(ids=tuple(ids))):
                _add_row(groups, f"e:{row[1].id}", row)
            for row in self._rows("events", Query(groups=tuple(groups))):
                _add_row(groups, f"e:{row[1]['episodeId']}", row)
            return groups

        return {group[2:]: records for group, records in self._read_groups(load, [f"e:{i}" for i in ids]).items()}

    # Memories

    def memories(self, ids: Iterable[str]) -> dict[str, Memory]:
        """Whole histories of the named learnings; one that does not exist is left out."""
        wanted = tuple(dict.fromkeys(ids))
        found: dict[str, Memory] = {}
        for start in range(0, len(wanted), 500):
            chunk = wanted[start : start + 500]
            found.update(self._read_memories(chunk))
        return {memory: found[memory] for memory in wanted if memory in found}

    def _read_memories(self, ids: tuple[str, ...]) -> dict[str, Memory]:
        for _ in range(MAX_READS):
            heads = self._read_heads([f"m:{memory}" for memory in ids])
            rows: dict[str, list[bytes]] = {}
            for _, raw in self._raw_memories(MemoryQuery(ids=ids)):
                rows.setdefault(stated_id(raw), []).append(raw)
            memories = {
                memory: self._make_memory(memory, raws, heads) for memory, raws in rows.items() if memory in ids
            }
            if not self._moved(heads):
                lost = [m for m in ids if m not in memories and heads.get(f"m:{m}", EMPTY_HEAD).count]
                if lost:
                    raise Damaged(f"The versions of learning {lost[0]} are missing.", record_id=lost[0])
                return memories
        raise Damaged("The learnings kept changing while they were read; try again.", group=f"m:{ids[0]}")

    def _make_memory(self, memory_id: str, raws: list[bytes], heads: Mapping[str, Head]) -> Memory:
        versions: list[CheckedRecord | None] = []
        fault: str | None = None
        head = EMPTY_HEAD
        for number, raw in enumerate(raws, start=1):
            try:
                record: CheckedRecord | None = check("memory-record", raw, self.scope)
            except Damaged as error:
                record, fault = None, fault or f"version {number} fails its check ({error.code})"
            versions.append(record)
            if record is not None:
                head = advance(head, record.digest)
        intact = [record for record in versions if record is not None]
        if fault is None:
            fault = lifecycle.find_history_fault(intact)
        if fault is None and self.headed and head != heads.get(f"m:{memory_id}", EMPTY_HEAD):
            fault = "its versions do not add up to their head"
        return Memory(memory_id, tuple(versions), tuple(raws), fault)

    def decided(self) -> list[CheckedRecord]:
        """Every accepted, rejected and retired version that is intact as a record, in stored order.

        A damaged one is left out, but its stated digest must still add up, and what it states that it replaced stays
        replaced (`supersession`).
        """
        if self._decided is None:
            self._decided = self._read_decided()
        return [record for record in self._decided if isinstance(record, CheckedRecord)]

    def _read_decided(self) -> list[CheckedRecord | StatedVersion]:
        for _ in range(MAX_READS):
            heads = self._read_heads(["decided"])
            rows = [self._tolerate(raw) for _, raw in self._raw_memories(MemoryQuery(states=DECIDED))]
            head = EMPTY_HEAD
            for row in rows:
                head = advance(head, row.digest)
            if not self.headed or head == heads.get("decided", EMPTY_HEAD):
                self.heads.update(heads)
                return rows
            if not self._moved(heads):
                raise Damaged(
                    "A decided learning's version is missing, doubled or changed. Run verify.", group="decided"
                )
        raise Damaged("The learnings kept changing while they were read; try again.", group="decided")

    def _tolerate(self, raw: bytes) -> CheckedRecord | StatedVersion:
        try:
            return check("memory-record", raw, self.scope)
        except Damaged:
            return StatedVersion(raw)

    def all_memories(self) -> dict[str, Memory]:
        """Whole histories of all learnings and proposals, oldest first by their newest version."""
        ids = [stated_id(raw) for raw in self.latest_bytes()]
        found = self.memories(ids)
        for memory in ids:
            if memory not in found or len(found) < len(ids):
                raise Damaged(f"Learning {memory} does not stand where its bytes belong. Run verify.", record_id=memory)
        return found

    def latest_bytes(self) -> list[bytes]:
        """The newest version of each learning and proposal, unchecked, oldest first."""
        rows = [raw for _, raw in self._raw_memories(MemoryQuery(latest=True))]
        if not all(stated_id(raw) for raw in rows):
            raise Damaged("A stored learning states no ID. Run verify.")
        return rows

    def theme_memories(self, themes: Sequence[str]) -> list[str]:
        """The IDs of all learnings and proposals of the themes."""
        rows = self._raw_memories(MemoryQuery(themes=tuple(themes), latest=True))
        return [memory for memory in (stated_id(raw) for _, raw in rows) if memory]

    def supersession(self) -> lifecycle.Supersession:
        """How the claims of all decided learnings settle; what a history refutes claims nothing.

        What a damaged version states that it replaced counts as replaced, so that damage restores nothing.
        """
        if self._supersession is None:
            self._supersession = self._settle_claims()
        return self._supersession

    def _settle_claims(self) -> lifecycle.Supersession:
        claiming = [record for record in self.decided() if record.get("supersedes")]
        histories = self.memories(record.id for record in claiming)
        refuted = {v.digest for memory in histories.values() for v in lifecycle.refuted_part(memory.versions)}
        settled = lifecycle.derive_supersession(lifecycle.derive_claims(r for r in claiming if r.digest not in refuted))
        stated = {t: row.id for row in self._decided or () if isinstance(row, StatedVersion) for t in row.supersedes}
        return lifecycle.Supersession({**stated, **settled.replaced}, settled.conflicted, settled.void)

    # Collections, exports, audit

    def collections(self) -> list[CheckedRecord]:
        """Every collection, in stored order."""
        return self._read_group("collections", lambda: list(self._rows("collections", Query())))

    def exports(self) -> list[CheckedRecord]:
        """Every export manifest, in stored order."""
        return self._read_group("exports", lambda: list(self._rows("exports", Query())))

    def audit(self, **filters: Any) -> list[CheckedRecord]:
        """Audit entries by `ids` or `operations`. Not compared with a head: an entry proves only what it says."""
        return [record for _, record in self._rows("audit", Query(**filters))]

    def expect_change(self) -> dict[str, Head]:
        """The head of every audit entry but a recall's: while it stands, nothing that an answer depends on changed."""
        return dict(self._read_heads(["change"]))

    def adds_up(self, group: str) -> bool:
        """Whether a group's rows add up to its head, however many writers move it while it is read."""
        for _ in range(MAX_READS):
            heads = self._read_heads([group])
            head = EMPTY_HEAD
            for record in self._group_rows(group):
                if record is None:
                    return False
                head = advance(head, record.digest)
                if record.kind == "event" and is_redacted(record.data):
                    head = advance_redacted(head, record.digest)
            if head == heads.get(group, EMPTY_HEAD):
                return True
            if not self._moved(heads):
                return False
        return True

    def _group_rows(self, group: str) -> Iterator[CheckedRecord | None]:
        """A group's rows in stored order; None for one that is damaged."""
        kind, _, name = group.partition(":")
        queries: dict[str, list[tuple[str, Query | MemoryQuery]]] = {
            "e": [("episodes", Query(ids=(name,))), ("events", Query(groups=(group,)))],
            "m": [("memories", MemoryQuery(ids=(name,)))],
            "decided": [("memories", MemoryQuery(states=DECIDED))],
        }
        for stream, query in queries.get(kind, [("audit" if kind == "change" else kind, Query())]):
            rows = (
                self.provider.read_memory_versions(self.scope, query)
                if isinstance(query, MemoryQuery)
                else self.provider.read_records(self.scope, cast("Stream", stream), query)
            )
            for _, raw in self._raw(rows):
                try:
                    record = check(STREAM_KINDS[stream], raw, self.scope)
                except Damaged:
                    yield None
                    continue
                if kind != "change" or record["operation"] not in RECALL_OPERATIONS:
                    yield record

    # Groups against their heads

    def _read_group(self, group: str, load: Callable[[], list[tuple[int, CheckedRecord]]]) -> list[CheckedRecord]:
        return self._read_groups(lambda: {group: load()}, [group])[group]

    def _read_groups(
        self, load: Callable[[], dict[str, list[tuple[int, CheckedRecord]]]], groups: Sequence[str]
    ) -> dict[str, list[CheckedRecord]]:
        """Read groups until the heads before and after agree; what does not add up to its head is damaged."""
        for _ in range(MAX_READS):
            heads = self._read_heads(groups)
            found = {group: sorted(rows, key=lambda row: row[0]) for group, rows in load().items()}
            records = {group: [record for _, record in rows] for group, rows in found.items()}
            wrong = [g for g in groups if self.headed and compute_head(records[g]) != heads.get(g, EMPTY_HEAD)]
            if not wrong:
                self.heads.update({group: heads.get(group, EMPTY_HEAD) for group in groups})
                return records
            if not self._moved(heads):
                raise Damaged(
                    f"The stored records of {wrong[0]} do not add up: one is missing, doubled, changed or restored. "
                    "Run verify.",
                    group=wrong[0],
                )
        raise Damaged("The records kept changing while they were read; try again.", group=groups[0])

    def _read_heads(self, groups: Sequence[str]) -> Mapping[str, Head]:
        if not self.headed:
            return {}
        return cast("HeadedProvider", self.provider).read_heads(self.scope, groups)

    def _moved(self, heads: Mapping[str, Head]) -> bool:
        return self.headed and dict(self._read_heads(list(heads))) != dict(heads)

    def _rows(self, stream: Stream, query: Query) -> Iterator[tuple[int, CheckedRecord]]:
        kind = STREAM_KINDS[stream]
        for position, raw in self._raw(self.provider.read_records(self.scope, stream, query)):
            yield position, check(kind, raw, self.scope)

    def _raw_memories(self, query: MemoryQuery) -> Iterator[Row]:
        return self._raw(self.provider.read_memory_versions(self.scope, query))

    def _raw(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            if not _is_row(row):
                raise PluginFailed("The provider returned something else than (position, bytes) rows.")
            self.rows_read += 1
            yield row

    def _check_whole_scope(self) -> None:
        for stream in STREAMS:
            for _ in self._rows(stream, Query()):
                pass


def compute_head(records: Iterable[CheckedRecord]) -> Head:
    """The head that a group's records, in stored order, add up to."""
    head = EMPTY_HEAD
    for record in records:
        head = advance(head, record.digest)
        if record.kind == "event" and is_redacted(record.data):
            head = advance_redacted(head, record.digest)
    return head


def _add_row(groups: Mapping[str, list[tuple[int, CheckedRecord]]], group: str, row: tuple[int, CheckedRecord]) -> None:
    """Put a row into its group. Raises `Damaged` for a row of a group that was not asked for."""
    if group not in groups:
        raise Damaged(
            f"The stored {row[1].kind} {row[1].id} does not stand where its bytes belong. Run verify.",
            record_id=row[1].id,
        )
    groups[group].append(row)


def _is_row(row: Any) -> bool:
    return isinstance(row, tuple) and len(row) == 2 and type(row[0]) is int and type(row[1]) is bytes

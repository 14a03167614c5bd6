"""The SQLite store's tables: versions, indexes, repair of a damaged row, backups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from learning_core.errors import Damaged, InvalidArgument, NewerStore, NotFound, StorageFailed
from learning_core.provider import MEMORIES, MemoryQuery, Query
from learning_core.records import check
from providers.conformance.samples import Samples, moment
from providers.conformance.storage.suite import ANOTHER_HOST, compute_heads, read_everything
from providers.storage.sqlite import SqliteProvider, queries, schema
from providers.storage.sqlite.connection import reading
from providers.storage.sqlite.files import DATABASE, StoreFiles

SAMPLES = Samples()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with a store of two comments in it."""
    episode = SAMPLES.episode(1)
    batch = {"episodes": [episode], "events": [SAMPLES.comment(episode, n) for n in (1, 2)]}
    SqliteProvider(tmp_path / "data").append_batch(SAMPLES.scope, batch, [SAMPLES.audit("import", 1)])  # type: ignore[arg-type]
    return tmp_path / "data"


@contextmanager
def opened(data: Path) -> Iterator[apsw.Connection]:
    with closing(apsw.Connection(str(data / DATABASE))) as connection:
        yield connection


def write(data: Path) -> None:
    SqliteProvider(data).append_records(SAMPLES.scope, "grants", [SAMPLES.grant(1)], [])


def read(data: Path) -> int:
    return len(list(SqliteProvider(data).read_records(SAMPLES.scope, "events", Query())))


# Versions -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [write, read])
def test_a_newer_store_is_refused(data: Path, call: Callable[[Path], object]) -> None:
    newer = len(schema.MIGRATIONS) + 1
    with opened(data) as connection:
        connection.pragma("user_version", newer)
    with pytest.raises(NewerStore) as refusal:
        call(data)
    assert refusal.value.details == {"found": newer, "supported": newer - 1}
    assert SqliteProvider(data).health()["ok"] is False


@pytest.mark.parametrize("call", [write, read])
def test_an_older_store_is_brought_up_to_date(
    data: Path, call: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_everything(SqliteProvider(data), SAMPLES.scope)
    step = "CREATE TABLE added (note TEXT) STRICT; INSERT INTO added VALUES ('once')"
    monkeypatch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, step])
    for _ in range(2):
        call(data)
    with opened(data) as connection:
        assert connection.execute("SELECT note FROM added").fetchall() == [("once",)]
        assert connection.pragma("user_version") == len(schema.MIGRATIONS)
    assert read_everything(SqliteProvider(data), SAMPLES.scope)[:4] == before


def test_a_step_that_fails_leaves_the_store_as_it_was(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_everything(SqliteProvider(data), SAMPLES.scope)
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, "DELETE FROM rows; CREATE TABLE rows (again)"])
        with pytest.raises(StorageFailed):
            read(data)
    assert read_everything(SqliteProvider(data), SAMPLES.scope) == before


@pytest.mark.parametrize("call", [write, read])
def test_another_programs_database_is_refused(tmp_path: Path, call: Callable[[Path], object]) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    with opened(tmp_path / "data") as connection:
        connection.execute("CREATE TABLE theirs (a)")
    (tmp_path / "data" / DATABASE).chmod(0o600)
    with pytest.raises(StorageFailed, match="another program's database"):
        call(tmp_path / "data")


def test_tables_that_appear_between_two_looks_are_ours() -> None:
    """Another process may create the store while this one opens it."""

    class Growing:
        looks = iter([0, schema.APPLICATION_ID])

        def pragma(self, name: str) -> int:
            return next(self.looks) if name == "application_id" else schema.current_version()

        def execute(self, statement: str) -> Growing:
            return self

        def fetchone(self) -> tuple[int]:
            return (1,)

    assert schema.read_version(Growing()) == schema.current_version()  # type: ignore[arg-type]


def test_an_empty_file_reads_as_empty_and_may_be_written(tmp_path: Path) -> None:
    """What is left when a process dies before it made the tables."""
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / DATABASE).touch(mode=0o600)
    assert read(tmp_path / "data") == 0
    assert (tmp_path / "data" / DATABASE).stat().st_size == 0
    write(tmp_path / "data")
    with opened(tmp_path / "data") as connection:
        assert connection.pragma("journal_mode") == "wal"
        assert connection.pragma("page_size") == schema.PAGE_SIZE


def test_connections_are_set_as_designed(data: Path) -> None:
    with reading(StoreFiles(data), 1000) as connection:
        assert connection is not None
        assert connection.pragma("journal_mode") == "wal"
        assert connection.pragma("synchronous") == 2
        assert connection.pragma("secure_delete") == 1
        assert connection.pragma("temp_store") == 2
        tables = connection.execute("SELECT name, strict FROM pragma_table_list WHERE name NOT LIKE 'sqlite_%'")
        assert dict(tables) == dict.fromkeys(("scopes", "heads", "rows", "purge"), 1)


# Queries --------------------------------------------------------------------------------------------------------------

QUERIES: list[tuple[str, Query | MemoryQuery]] = [
    ("events", Query()),
    ("events", Query(ids=("a",))),
    ("events", Query(ids=("a", "b"), types=("comment",))),
    ("events", Query(groups=("e:a",))),
    ("events", Query(groups=("e:a", "e:b"), time_from=moment(1))),
    ("episodes", Query(groups=("e:a", "e:b"))),
    ("events", Query(parents=("a",))),
    ("events", Query(parents=("a", "b"), types=("label",))),
    ("events", Query(comment_ids=("a",))),
    ("events", Query(comment_ids=("a", "b"))),
    ("events", Query(types=("label",))),
    ("audit", Query(operations=("evidence.redact",))),
    ("audit", Query(operations=("evidence.redact", "import"), time_to=moment(1))),
    (MEMORIES, MemoryQuery()),
    (MEMORIES, MemoryQuery(latest=True)),
    (MEMORIES, MemoryQuery(ids=("a",), latest=True)),
    (MEMORIES, MemoryQuery(states=("accepted",), latest=True)),
    (MEMORIES, MemoryQuery(states=("accepted", "proposed"))),
    (MEMORIES, MemoryQuery(themes=("a",), states=("accepted",), latest=True)),
]


@pytest.mark.parametrize(("stream", "query"), QUERIES, ids=lambda value: "")
def test_no_query_scans_the_store(data: Path, stream: str, query: Query | MemoryQuery) -> None:
    selection = queries.select_keys(1, stream, query)
    assert selection is not None
    statement, bindings = selection
    plan = explain(data, statement, {**bindings, "after": 0, "limit": 10})
    assert any(step.startswith("SEARCH rows") for step in plan)
    assert [step for step in plan if step.startswith("SCAN") and "json_each" not in step] == []


@pytest.mark.parametrize(
    "query",
    [Query(groups=("e:a",)), Query(comment_ids=("a",)), Query(parents=("a",)), Query(types=("label",)), Query()],
)
def test_one_value_needs_neither_sorting_nor_the_rows_themselves(data: Path, query: Query) -> None:
    """So a page of a long result costs what the page costs."""
    selection = queries.select_keys(1, "events", query)
    assert selection is not None
    plan = explain(data, selection[0], {**selection[1], "after": 0, "limit": 10})
    assert "USE TEMP B-TREE FOR ORDER BY" not in plan
    assert any("COVERING INDEX" in step for step in plan if step.startswith("SEARCH rows"))


def test_pages_and_heads_are_searched(data: Path) -> None:
    from providers.storage.sqlite import writing

    for statement, bindings in [
        (queries._PAGE, ("[1]",)),
        (writing._HEADS, (1, "[]")),
        (writing._STORED, (1, 1, "[]")),
        (writing._LATEST_VERSION, (1, 8, "a")),
        (writing._ROW, (1, 1, "a", 0)),
    ]:
        plan = explain(data, statement, bindings)
        assert [step for step in plan if step.startswith("SCAN") and "json_each" not in step] == []


def explain(data: Path, statement: str, bindings: object) -> list[str]:
    with opened(data) as connection:
        rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", bindings)  # type: ignore[arg-type]
        return [row[3] for row in rows]


def test_a_long_read_is_paged_by_rows_and_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the sizes of the pages, the result is the same; and a page never holds much more than its bytes."""
    provider = SqliteProvider(tmp_path / "data")
    episode = SAMPLES.episode(1)
    events = [SAMPLES.comment(episode, n, body="x" * (n * 37 % 5000)) for n in range(60)]
    provider.append_records(SAMPLES.scope, "events", events, [])
    groups = (f"e:{episode.id}", "e:none")
    pages: list[int] = []
    real = queries.read_page

    def counting(*arguments: object) -> object:
        rows, taken = real(*arguments)  # type: ignore[arg-type]
        pages.append(sum(len(row.canonical) for row in rows))
        return rows, taken

    monkeypatch.setattr("providers.storage.sqlite.provider.read_page", counting)
    for keys, rows, size in [(7, 3, 1 << 20), (1, 1, 1), (60, 60, 6000), (59, 100, 1 << 20), (60, 7, 10_000)]:
        monkeypatch.setattr("providers.storage.sqlite.provider.KEYS_AT_ONCE", keys)
        monkeypatch.setattr(queries, "PAGE_ROWS", rows)
        monkeypatch.setattr(queries, "PAGE_BYTES", size)
        pages.clear()
        for query in (Query(), Query(groups=groups), Query(limit=60)):
            found = [row.canonical for row in provider.read_records(SAMPLES.scope, "events", query)]
            assert found == [event.canonical for event in events]
        limited = list(provider.read_records(SAMPLES.scope, "events", Query(groups=groups, after=10, limit=20)))
        assert [row.position for row in limited] == list(range(11, 31))
        assert max(pages) <= size + max(len(event.canonical) for event in events)


# Damage ---------------------------------------------------------------------------------------------------------------


def test_a_damaged_row_is_repaired_in_place(data: Path) -> None:
    provider = SqliteProvider(data)
    before = read_everything(provider, SAMPLES.scope)
    intact = SAMPLES.comment(SAMPLES.episode(1), 1)
    with opened(data) as connection:
        connection.execute("UPDATE rows SET canonical = x'ff', comment_id = 'other' WHERE id = ?", (intact.id,))
    with pytest.raises(Damaged):
        check("event", read_everything(provider, SAMPLES.scope)[1][2], SAMPLES.scope)
    entry = SAMPLES.audit("repair", 1)
    provider.restore_record(SAMPLES.scope, "events", intact, [entry])
    assert read_everything(provider, SAMPLES.scope) == [*before, (5, "audit", entry.canonical)]
    assert len(list(provider.read_records(SAMPLES.scope, "events", Query(comment_ids=("1",))))) == 1
    computed = compute_heads(provider, SAMPLES.scope)
    assert dict(provider.read_heads(SAMPLES.scope, list(computed))) == computed


@pytest.mark.parametrize("bytes_", [b"\xff", b"[]", b'{"id":"x"}'])
def test_a_write_that_meets_a_damaged_row_says_so(data: Path, bytes_: bytes) -> None:
    provider = SqliteProvider(data)
    intact = SAMPLES.comment(SAMPLES.episode(1), 1)
    with opened(data) as connection:
        connection.execute("UPDATE rows SET canonical = ? WHERE id = ?", (bytes_, intact.id))
    with pytest.raises(Damaged) as damage:
        provider.append_records(SAMPLES.scope, "events", [intact], [])
    assert damage.value.details["record_id"] == intact.id
    with pytest.raises(Damaged):
        provider.redact_record(SAMPLES.scope, SAMPLES.redacted(intact), [])


def test_a_redacted_row_that_is_damaged_does_not_get_its_text_back(data: Path) -> None:
    provider = SqliteProvider(data)
    intact = SAMPLES.comment(SAMPLES.episode(1), 1)
    provider.redact_record(SAMPLES.scope, SAMPLES.redacted(intact), [])
    with opened(data) as connection:
        connection.execute("UPDATE rows SET canonical = x'ff' WHERE id = ?", (intact.id,))
    with pytest.raises(Exception, match="redacted"):
        provider.restore_record(SAMPLES.scope, "events", intact, [])
    provider.restore_record(SAMPLES.scope, "events", SAMPLES.redacted(intact), [])
    computed = compute_heads(provider, SAMPLES.scope)
    assert dict(provider.read_heads(SAMPLES.scope, list(computed))) == computed


def test_a_row_that_is_gone_leaves_a_gap(data: Path) -> None:
    """The next write does not reuse its position, and the head still counts it."""
    with opened(data) as connection:
        connection.execute("DELETE FROM rows WHERE key = (SELECT max(key) FROM rows)")
    write(data)
    assert [position for position, _, _ in read_everything(SqliteProvider(data), SAMPLES.scope)] == [1, 2, 3, 5]
    assert SqliteProvider(data).read_heads(SAMPLES.scope, ["audit"])["audit"].count == 1


# Backups --------------------------------------------------------------------------------------------------------------


def test_a_backup_is_a_whole_store_in_one_private_file(tmp_path: Path, data: Path) -> None:
    write(data)
    ANOTHER = ANOTHER_HOST.grant(1)  # noqa: N806
    SqliteProvider(data).append_records(ANOTHER_HOST.scope, "grants", [ANOTHER], [])
    (tmp_path / "restored").mkdir(mode=0o700)
    SqliteProvider(data).backup(tmp_path / "restored" / DATABASE)
    assert [path.name for path in (tmp_path / "restored").iterdir()] == [DATABASE]
    assert (tmp_path / "restored" / DATABASE).stat().st_mode & 0o777 == 0o600
    restored = SqliteProvider(tmp_path / "restored")
    for scope in (SAMPLES.scope, ANOTHER_HOST.scope):
        assert read_everything(restored, scope) == read_everything(SqliteProvider(data), scope)
        computed = compute_heads(restored, scope)
        assert dict(restored.read_heads(scope, list(computed))) == computed
    restored.append_records(SAMPLES.scope, "grants", [SAMPLES.grant(2)], [])


def test_a_backup_is_made_beside_a_writer(tmp_path: Path, data: Path) -> None:
    from providers.storage.sqlite.connection import writing

    with writing(StoreFiles(data), 1000) as connection:
        connection.execute("UPDATE scopes SET last_position = 99")
        SqliteProvider(data).backup(tmp_path / "copy")
    with closing(apsw.Connection(str(tmp_path / "copy"))) as copy:
        assert copy.execute("SELECT last_position FROM scopes").get == 4


def test_a_backup_overwrites_nothing(tmp_path: Path, data: Path) -> None:
    (tmp_path / "target").write_text("kept")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for target in ("target", "link"):
        with pytest.raises(InvalidArgument):
            SqliteProvider(data).backup(tmp_path / target)
    assert (tmp_path / "target").read_text() == "kept"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "link", "target"]


def test_a_backup_that_fails_leaves_nothing(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, target: Path) -> None:
        raise OSError(5, "I/O error", str(target))

    with pytest.raises(StorageFailed):
        SqliteProvider(data).backup(tmp_path / "missing" / "copy")
    with pytest.raises(NotFound):
        SqliteProvider(tmp_path / "no store").backup(tmp_path / "copy")
    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(StorageFailed, match="I/O error"):
        SqliteProvider(data).backup(tmp_path / "copy")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]

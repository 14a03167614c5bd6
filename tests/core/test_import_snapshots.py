"""What makes a snapshot: its identity, its age, whether it is complete, and whose repository it is of."""

from __future__ import annotations

import json
from typing import Any

import pytest

from learning_core.errors import StorageFailed
from providers.storage.in_memory import InMemoryProvider
from tests.core.builders import MONA, Json, World, at_call, copy_json, page_of, refused, split_page


@pytest.fixture
def hub(loop: World) -> World:
    """A repository with two threads, one of which has a reply."""
    loop.hub.comment("101", "mona", "Old.")
    loop.hub.reply("102", "101", "octo")
    loop.hub.comment("103", "octo")
    return loop


def test_a_collection_describes_its_snapshot(hub: World) -> None:
    log = hub.hub.log(snapshotId="night-1")
    collection = hub.load(log)["collection"]
    assert collection == hub.records("collections")[0]
    assert (collection["snapshotId"], collection["capturedAt"]) == ("night-1", log["capturedAt"])
    assert (collection["complete"], collection["gaps"], collection["filters"]) == (True, [], {})
    assert collection["counts"] == {"comments": 2, "replies": 1}
    assert collection["importedBy"]["id"] == "github:mona"
    assert collection["reviewerIdentity"] == "stable-user-id"


def test_importing_the_same_snapshot_again_keeps_its_collection_and_audits_it(hub: World) -> None:
    log = hub.hub.log()
    first = hub.load(log)
    rows = hub.rows("episodes", "events", "collections")
    again = hub.load(log)
    assert again["collection"] == first["collection"]
    assert again["imported"] == {"episodes": 0, "events": 0}
    assert hub.rows("episodes", "events", "collections") == rows
    receipt, repeat = hub.audit("import")
    assert receipt["subject"] == repeat["details"]["collection"] == first["collection"]["id"]
    assert repeat["records"] == []
    hub.load(log)
    assert len(hub.audit("import")) == 3
    assert hub.store.verify(by=MONA)["ok"]


def test_another_log_of_the_same_snapshot_is_the_same_snapshot(hub: World) -> None:
    log = hub.hub.log()
    hub.load(log)
    comments, replies = copy_json(log)["pages"]
    comments["comments"].reverse()
    other = {**log, "pages": [replies, *split_page(comments, "comments", (1, 1))]}
    other["capturedAt"] = log["capturedAt"].replace("000000Z", "0Z")
    rows = hub.rows("collections", "events")
    assert hub.load(other)["imported"] == {"episodes": 0, "events": 0}
    assert hub.rows("collections", "events") == rows


CHANGES: dict[str, Json] = {
    "a text": {"body": "Another text."},
    "an author": {"author": {"login": "mona", "githubId": 9009}},
    "a target": {"target": {"kind": "element", "selector": "#x"}},
    "a status": {"status": "resolved"},
    "a build": {"build": {"number": 9}},
    "a missing reply": {"replyCount": 2},
}


@pytest.mark.parametrize("change", CHANGES)
def test_other_contents_under_a_known_snapshot_id_are_refused(hub: World, change: str) -> None:
    log = hub.hub.log()
    hub.load(log)
    log["pages"][0]["comments"][0].update(CHANGES[change])
    with hub.nothing_stored(), refused("snapshot_conflict"):
        hub.load(log)


HEADERS: dict[str, Json] = {
    "a filter": {"filters": {"status": "open"}},
    "a capture time": {"capturedAt": "2026-12-01T00:00:00Z"},
    "a hub": {"hubOrigin": "https://other.example.com"},
    "a page fewer": {"pages": [page_of(comments=[])]},
}


@pytest.mark.parametrize("change", HEADERS)
def test_another_header_under_a_known_snapshot_id_is_refused(hub: World, change: str) -> None:
    log = hub.hub.log()
    hub.load(log)
    with hub.nothing_stored(), refused("snapshot_conflict"):
        hub.load({**log, **HEADERS[change]})


def test_an_unseen_older_snapshot_is_refused(hub: World) -> None:
    older = hub.hub.log()
    hub.hub.edit("101", "New.")
    hub.collect()
    with hub.nothing_stored(), refused("snapshot_too_old"):
        hub.load(older)
    assert hub.events("comment", "101")[-1]["payload"]["body"] == "New."


def test_an_unseen_snapshot_as_old_as_the_newest_is_accepted(hub: World) -> None:
    newest = hub.hub.log()
    hub.load(newest)
    assert hub.load(hub.hub.log(capturedAt=newest["capturedAt"]))["imported"] == {"episodes": 0, "events": 0}
    assert len(hub.records("collections")) == 2


def test_age_is_compared_within_one_hub_repository(hub: World) -> None:
    older = hub.hub.log()
    hub.collect()
    other_hub = {**older, "hubOrigin": "https://other.example.com"}
    assert hub.load(other_hub)["imported"]["episodes"] == 2


def test_replaying_a_known_older_snapshot_changes_no_current_event(hub: World) -> None:
    older = hub.hub.log()
    hub.load(older)
    hub.hub.edit("101", "New.")
    hub.hub.delete("102")
    hub.hub.resolve("103")
    hub.collect()
    events = hub.rows("episodes", "events", "collections")
    assert hub.load(older)["imported"] == {"episodes": 0, "events": 0}
    assert hub.rows("episodes", "events", "collections") == events
    assert hub.collect()["imported"]["events"] == 0


GAPS: dict[str, tuple[Any, list[Json]]] = {
    "comments cut off": (
        lambda pages: [split_page(pages[0], "comments", (1, 1))[0], *pages[1:]],
        [{"list": "comments", "commentId": None}],
    ),
    "replies cut off": (
        lambda pages: [pages[0], split_page(pages[1], "replies", (1, 0))[0]],
        [{"list": "replies", "commentId": "101"}],
    ),
    "replies not listed": (lambda pages: pages[:1], [{"list": "replies", "commentId": "101"}]),
}


@pytest.mark.parametrize("gap", GAPS)
def test_a_list_that_is_not_complete_is_a_named_gap(hub: World, gap: str) -> None:
    change, gaps = GAPS[gap]
    log = hub.hub.log()
    collection = hub.load({**log, "pages": change(log["pages"])})["collection"]
    assert (collection["complete"], collection["gaps"]) == (False, gaps)


def test_a_listed_deleted_reply_counts_as_listed(hub: World) -> None:
    hub.hub.delete("102")
    assert hub.collect()["collection"]["complete"]


def test_a_filtered_capture_says_so(hub: World) -> None:
    filters = {"status": "open", "prototypeId": "p1", "since": "2026-11-01T09:00:00Z"}
    collection = hub.load(hub.hub.log(filters=filters))["collection"]
    assert collection["filters"] == {**filters, "since": "2026-11-01T09:00:00.000000Z"}
    assert collection["complete"]


def test_owner_and_name_compare_without_regard_to_case(hub: World) -> None:
    log = hub.hub.log(repository={"id": 4242, "owner": "ACME", "name": "Checkout-Prototypes"})
    assert hub.load(log)["imported"]["episodes"] == 2


def test_a_repository_named_by_its_id_survives_a_rename() -> None:
    world = World(InMemoryProvider(), scope="github.com/_id/4242")
    world.consent()
    world.hub.comment("101", "mona")
    assert world.collect()["imported"]["episodes"] == 1
    renamed = world.hub.log(repository={"id": 4242, "owner": "new-owner", "name": "new-name"})
    assert world.load(renamed)["imported"] == {"episodes": 0, "events": 0}
    other = world.hub.log(repository={"id": 4243, "owner": "acme", "name": "checkout-prototypes"})
    for number in (None, 4243):
        with world.nothing_stored(), refused("wrong_repository"):
            world.load(other, repository=number)


def test_the_host_may_name_the_repositorys_id(hub: World) -> None:
    renamed = hub.hub.log(repository={"id": 4242, "owner": "new", "name": "name"})
    with hub.nothing_stored(), refused("wrong_repository"):
        hub.load(renamed, repository=4243)
    assert hub.load(renamed, repository=4242)["imported"]["episodes"] == 2


def test_of_two_racing_imports_with_different_contents_one_is_stored(hub: World) -> None:
    log = hub.hub.log()
    other = copy_json(log)
    other["pages"][0]["comments"][0]["body"] = "Another text."
    race = at_call(1, lambda: hub.other_store().import_comments(MONA, json.dumps(other).encode()))
    with hub.meddling(race), refused("snapshot_conflict"):
        hub.load(log)
    assert hub.events("comment", "101")[0]["payload"]["body"] == "Another text."
    assert len(hub.records("collections")) == 1


def test_of_two_racing_imports_with_the_same_contents_both_succeed(hub: World) -> None:
    log = hub.hub.log()
    race = at_call(1, lambda: hub.other_store().import_comments(MONA, json.dumps(log).encode()))
    with hub.meddling(race):
        assert hub.load(log)["imported"] == {"episodes": 0, "events": 0}
    assert len(hub.records("collections")) == 1
    assert len(hub.events("comment")) == 3
    assert hub.store.verify(by=MONA)["ok"]


def test_a_write_that_fails_stores_nothing_and_can_be_repeated(hub: World) -> None:
    def fail() -> None:
        raise StorageFailed("The disk is full.")

    log = hub.hub.log()
    with hub.nothing_stored(), hub.meddling(at_call(1, fail)), refused("storage_failed"):
        hub.load(log)
    assert hub.load(log)["imported"] == {"episodes": 2, "events": 3}


def test_an_import_is_one_write(hub: World) -> None:
    writes: list[str] = []
    with hub.meddling(writes.append):
        hub.collect()
    assert writes == ["append_batch"]

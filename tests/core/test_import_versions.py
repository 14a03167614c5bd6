"""What an import makes of comments that are new, edited, deleted, resolved or unchanged."""

from __future__ import annotations

from typing import Any

import pytest

from learning_core.identifiers import comment_event_id, episode_id
from tests.core.builders import ORIGIN, SCOPE, Json, World, page_of, person, refused, split_page


def bodies(world: World, comment_id: str) -> list[str]:
    return [event["payload"]["body"] for event in world.events("comment", comment_id)]


def test_a_thread_becomes_an_episode_pinned_to_its_build(loop: World) -> None:
    loop.hub.comment(
        "101", "mona", "Too pale.", prototype="p1", build=7, target={"kind": "element", "selector": "#pay"}
    )
    loop.hub.reply("102", "101", "octo", "Agreed.")
    result = loop.collect()
    assert result["imported"] == {"episodes": 1, "events": 2}
    (episode,) = loop.records("episodes")
    build = {"number": 7, "commitSha": None}
    pin = {"hubOrigin": ORIGIN, "repositoryId": 4242, "prototypeId": "p1", "branch": "main", "build": build}
    assert (episode["pin"], episode["rootCommentId"], episode["kind"]) == (pin, "101", "review-thread")
    assert episode["id"] == episode_id(SCOPE, ORIGIN, "101")
    assert [actor["login"] for actor in episode["actors"]] == ["mona", "octo"]
    assert episode["grantIds"] == [loop.records("grants")[0]["id"]] == result["collection"]["grantIds"]
    root, reply = loop.events("comment")
    assert {root["episodeId"], reply["episodeId"]} == {episode["id"]}
    assert root["payload"]["target"] == {"kind": "element", "selector": "#pay"}
    assert (reply["payload"]["replyTo"], reply["payload"]["target"]) == ("101", None)
    assert root["id"] == comment_event_id(
        SCOPE, ORIGIN, "101", root["occurredAt"], "github-user:github.com/9001", root["payloadDigest"]
    )


def test_the_same_thread_on_another_host_is_another_episode() -> None:
    assert episode_id(SCOPE, ORIGIN, "101") != episode_id(SCOPE.replace("github.com", "ghe.example"), ORIGIN, "101")


def test_a_snapshot_without_news_adds_only_its_collection(loop: World) -> None:
    loop.hub.comment("101", "mona")
    loop.hub.edit("101", "Edited.")
    loop.hub.reply("102", "101", "octo")
    loop.hub.resolve("101")
    loop.collect()
    before = loop.rows("episodes", "events")
    assert loop.collect()["imported"] == {"episodes": 0, "events": 0}
    assert loop.rows("episodes", "events") == before
    assert len(loop.records("collections")) == 2


def test_an_edit_is_a_version_that_supersedes_the_one_before(loop: World) -> None:
    loop.hub.comment("101", "mona", "Old.")
    loop.collect()
    loop.hub.edit("101", "New.")
    assert loop.collect()["imported"] == {"episodes": 0, "events": 1}
    first, second = loop.events("comment", "101")
    assert (second["parentEventId"], second["payload"]["body"]) == (first["id"], "New.")
    assert second["occurredAt"] == second["payload"]["editedAt"] == loop.hub.find("101")["editedAt"]
    assert first["payload"]["body"] == "Old."
    assert "parentEventId" not in first


def test_an_edit_back_to_an_old_text_is_a_third_version(loop: World) -> None:
    loop.hub.comment("101", "mona", "A")
    loop.collect()
    for text in ("B", "A"):
        loop.hub.edit("101", text)
        loop.collect()
    loop.collect()
    assert bodies(loop, "101") == ["A", "B", "A"]
    ids = [event["id"] for event in loop.events("comment", "101")]
    assert len(set(ids)) == 3
    assert [event.get("parentEventId") for event in loop.events("comment", "101")] == [None, *ids[:2]]


def test_a_text_that_changed_without_an_edit_time_is_an_edit_when_it_was_captured(loop: World) -> None:
    loop.hub.comment("101", "mona", "A")
    loop.collect()
    logs = []
    for text in ("B", "A"):
        loop.hub.find("101")["body"] = text
        logs.append(loop.hub.log())
        loop.load(logs[-1])
    assert bodies(loop, "101") == ["A", "B", "A"]
    assert [event["occurredAt"] for event in loop.events("comment", "101")][1:] == [log["capturedAt"] for log in logs]
    assert loop.collect()["imported"]["events"] == 0
    assert bodies(loop, "101") == ["A", "B", "A"]


def test_an_edit_between_two_snapshots_with_an_older_edit_time_is_noticed(loop: World) -> None:
    loop.hub.comment("101", "mona", "A")
    loop.hub.edit("101", "B")
    loop.collect()
    loop.hub.find("101")["body"] = "C"
    log = loop.hub.log()
    loop.load(log)
    assert bodies(loop, "101") == ["B", "C"]
    assert loop.events("comment", "101")[-1]["occurredAt"] == log["capturedAt"]
    assert loop.collect()["imported"]["events"] == 0


def test_a_target_that_changed_is_a_new_version(loop: World) -> None:
    loop.hub.comment("101", "mona", "Here.", target={"kind": "file", "path": "a.css", "line": 3})
    loop.collect()
    loop.hub.find("101")["target"] = {"kind": "file", "path": "a.css", "line": None}
    assert loop.collect()["imported"]["events"] == 1
    assert loop.collect()["imported"]["events"] == 0


def test_times_are_normalized(loop: World) -> None:
    loop.hub.comment("101", "mona", at="2026-10-01T11:00:00+02:00")
    loop.hub.comment("102", "mona", at="2026-10-01T09:00:00.5Z")
    log = loop.hub.log(capturedAt="2026-11-01T10:00:00+01:00")
    assert loop.load(log)["collection"]["capturedAt"] == "2026-11-01T09:00:00.000000Z"
    times = [event["payload"]["createdAt"] for event in loop.events("comment")]
    assert times == ["2026-10-01T09:00:00.000000Z", "2026-10-01T09:00:00.500000Z"]
    loop.hub.find("101")["createdAt"] = "2026-10-01T09:00:00.000Z"
    assert loop.collect()["imported"]["events"] == 0


@pytest.mark.parametrize("keep_body", [False, True], ids=["body null", "body present"])
def test_a_deletion_is_a_retraction_and_final(loop: World, keep_body: bool) -> None:
    loop.hub.comment("101", "mona", "A")
    loop.collect()
    loop.hub.edit("101", "B")
    loop.collect()
    loop.hub.delete("101", by="octo", keep_body=keep_body)
    assert loop.collect()["imported"] == {"episodes": 0, "events": 1}
    (retraction,) = loop.events("retraction")
    assert retraction["parentEventId"] == loop.event("101") == retraction["payload"]["targetEventId"]
    assert retraction["payload"]["reason"] == "deleted"
    assert retraction["actor"]["id"] == "github-user:github.com/9002"
    assert retraction["occurredAt"] == loop.hub.find("101")["deletedAt"]
    with refused("not_found"):
        loop.label("101")
    assert loop.collect()["imported"]["events"] == 0
    loop.hub.find("101").update(deletedAt=None, deletedBy=None, body="C", editedAt=loop.clock())
    assert loop.collect()["imported"]["events"] == 0
    assert bodies(loop, "101") == ["A", "B"]


def test_a_deletion_with_its_label_stops_every_purpose(loop: World) -> None:
    learning = loop.learning()
    loop.consent("evaluation", "analytics", "training", "publication")
    loop.hub.delete("color-contrast-1")
    loop.collect()
    assert loop.recalled() == []
    shown = loop.store.show(learning)["memory"]
    assert (shown["text"], shown["withheld"], shown["refusals"]) == (None, True, ["deleted"])
    with refused("not_found"):
        loop.label("color-contrast-1")


@pytest.mark.parametrize("keep_body", [False, True], ids=["body null", "body present"])
def test_a_deleted_comment_never_stored_before_is_not_stored(loop: World, keep_body: bool) -> None:
    loop.hub.comment("101", "mona")
    loop.hub.reply("102", "101", "octo", "Sentinel.")
    loop.hub.comment("103", "mona", "Sentinel.")
    loop.hub.delete("102", keep_body=keep_body)
    loop.hub.delete("103", keep_body=keep_body)
    assert loop.collect()["imported"] == {"episodes": 1, "events": 1}
    assert all(b"Sentinel" not in raw and b'"103"' not in raw for _, _, raw in loop.rows())


def test_who_wrote_only_what_is_deleted_is_no_actor(loop: World) -> None:
    loop.hub.comment("101", "mona")
    loop.hub.reply("102", "101", "octo")
    loop.hub.reply("103", "101", None)
    loop.hub.delete("102")
    loop.collect()
    assert [actor["login"] for actor in loop.records("episodes")[0]["actors"]] == ["mona"]


def test_things_may_happen_in_the_instant_of_the_comment(loop: World) -> None:
    at = loop.hub.comment("101", "mona")["createdAt"]
    loop.hub.edit("101", "Edited.", at=at)
    loop.hub.resolve("101", at=at)
    assert loop.collect()["imported"]["events"] == 2


def test_a_reply_under_a_deleted_root_is_kept(loop: World) -> None:
    loop.hub.comment("101", "mona", "Sentinel.")
    loop.hub.reply("102", "101", "octo", "Still here.")
    loop.hub.delete("101", keep_body=True)
    assert loop.collect()["imported"] == {"episodes": 1, "events": 1}
    assert bodies(loop, "102") == ["Still here."]
    assert all(b"Sentinel" not in raw for _, _, raw in loop.rows())


def test_a_comment_that_a_complete_log_does_not_list_stays(loop: World) -> None:
    loop.hub.comment("101", "mona")
    loop.hub.comment("102", "octo")
    loop.collect()
    del loop.hub.roots["101"]
    with_101 = loop.rows("episodes", "events")
    loop.collect()
    assert loop.rows("episodes", "events") == with_101


def statuses(world: World) -> list[tuple[str, str, Any]]:
    return [
        (event["payload"]["status"], event["occurredAt"], event["actor"].get("id"))
        for event in world.events("status_change")
    ]


def test_resolutions_and_reopenings_are_recorded_in_order(loop: World) -> None:
    mona = "github-user:github.com/9001"
    loop.hub.comment("101", "mona")
    loop.collect()
    assert statuses(loop) == []
    loop.hub.resolve("101")
    loop.collect()
    loop.collect()
    first = loop.hub.find("101")["resolvedAt"]
    assert statuses(loop) == [("resolved", first, mona)]
    loop.hub.reopen("101")
    log = loop.hub.log()
    loop.load(log)
    loop.collect()
    assert statuses(loop)[1:] == [("open", log["capturedAt"], None)]
    loop.hub.resolve("101", by="octo")
    loop.collect()
    loop.collect()
    assert statuses(loop)[2:] == [("resolved", loop.hub.find("101")["resolvedAt"], "github-user:github.com/9002")]


def test_a_resolution_that_nobody_saw_reopened_is_recorded_again(loop: World) -> None:
    loop.hub.comment("101", "mona")
    loop.hub.resolve("101")
    loop.collect()
    loop.hub.resolve("101", by="octo")
    loop.collect()
    assert [status for status, _, _ in statuses(loop)] == ["resolved", "resolved"]
    assert loop.collect()["imported"]["events"] == 0


def test_a_resolution_without_a_time_is_recorded_once_when_it_was_captured(loop: World) -> None:
    loop.hub.comment("101", "mona")
    loop.hub.find("101").update(status="resolved", resolvedAt=None, resolvedBy=None)
    log = loop.hub.log()
    loop.load(log)
    loop.collect()
    assert statuses(loop) == [("resolved", log["capturedAt"], None)]


PINS: dict[str, Json] = {
    "prototype": {"prototypeId": "p2"},
    "branch": {"branch": "other"},
    "build": {"build": {"number": 8, "commitSha": None}},
    "creation time": {"createdAt": "2026-11-01T08:00:00Z"},
    "commit": {"build": {"number": 7, "commitSha": "b" * 40}},
}


@pytest.mark.parametrize("change", PINS)
def test_the_pin_of_a_known_comment_is_immutable(loop: World, change: str) -> None:
    loop.hub.comment("101", "mona")["build"]["commitSha"] = "a" * 40
    loop.hub.comment("103", "mona")
    loop.collect()
    loop.hub.find("101").update(PINS[change])
    loop.hub.comment("104", "octo")
    with loop.nothing_stored(), refused("invalid_log"):
        loop.collect()


def test_a_replys_creation_time_is_immutable(loop: World) -> None:
    loop.hub.comment("101", "mona")
    loop.hub.reply("102", "101", "octo")
    loop.collect()
    loop.hub.find("102")["createdAt"] = loop.clock()
    with loop.nothing_stored(), refused("invalid_log"):
        loop.collect()


def test_a_commit_that_becomes_known_later_is_no_contradiction(loop: World) -> None:
    loop.hub.comment("101", "mona")
    loop.collect()
    loop.hub.find("101")["build"]["commitSha"] = "a" * 40
    assert loop.collect()["imported"]["events"] == 0


def move_reply(world: World) -> None:
    """The reply 102 now stands under another root."""
    world.hub.replies["103"] = world.hub.replies.pop("101")


def promote_reply(world: World) -> None:
    """The reply 102 now is a root."""
    (reply,) = world.hub.replies.pop("101")
    world.hub.comment("102", None)
    world.hub.find("102").update(reply)


def demote_root(world: World) -> None:
    """The root 103 now is a reply."""
    root = world.hub.roots.pop("103")
    world.hub.reply("103", "101", None)
    world.hub.find("103").update({name: root[name] for name in ("author", "body", "createdAt")})


@pytest.mark.parametrize("move", [move_reply, promote_reply, demote_root])
def test_a_comment_never_moves_to_another_thread(loop: World, move: Any) -> None:
    loop.hub.comment("101", "mona")
    loop.hub.reply("102", "101", "octo")
    loop.hub.comment("103", "mona")
    loop.collect()
    move(loop)
    with loop.nothing_stored(), refused("invalid_log"):
        loop.collect()


def test_lists_on_several_pages_are_one_list(loop: World) -> None:
    for number in range(5):
        loop.hub.comment(f"root-{number}", "mona")
        loop.hub.reply(f"reply-{number}", "root-0", "octo")
    log = loop.hub.log()
    comments, replies = log["pages"]
    log["pages"] = [*split_page(replies, "replies", (2, 3)), *split_page(comments, "comments", (1, 0, 4))]
    result = loop.load(log)
    assert result["imported"] == {"episodes": 5, "events": 10}
    assert result["collection"]["complete"]
    assert [e["payload"]["commentId"] for e in loop.events("comment")][:6] == [
        "root-0", *(f"reply-{number}" for number in range(5))
    ]  # fmt: skip


def test_reviewer_avatars_and_other_targets_are_refused_not_dropped(loop: World) -> None:
    entry = loop.hub.comment("101", {**person("mona"), "avatarUrl": "https://example.com/a.png"})
    with loop.nothing_stored(), refused("invalid_record"):
        loop.collect()
    entry.update(author=person("mona"), target={"kind": "element", "selector": "#pay", "html": "<b>"})
    with loop.nothing_stored(), refused("invalid_record"):
        loop.collect()


def test_a_log_without_pages_is_incomplete(loop: World) -> None:
    assert loop.load(loop.hub.log(pages=[]))["collection"]["gaps"] == [{"list": "comments", "commentId": None}]
    assert loop.load(loop.hub.log(pages=[page_of(comments=[])]))["collection"]["complete"]

"""What the store refuses, and that a refusal leaves nothing behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from learning_core.identifiers import Principal
from tests.core.builders import AGENT, FOREVER, MONA, Json, Scripted, World, page_of, person, refused, split_page

Change = Callable[[Json], Json | bytes]


def encode(log: Json) -> bytes:
    return json.dumps(log).encode()


def set_member(*path: str | int, value: Any) -> Change:
    """Put a value into a log, at a path of member names and indexes."""

    def change(log: Json) -> Json:
        place: Any = log
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        return log

    return change


def drop_member(*path: str | int) -> Change:
    def change(log: Json) -> Json:
        place: Any = log
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]
        return log

    return change


def set_comment(**members: Any) -> Change:
    """Change the first root of the log."""

    def change(log: Json) -> Json:
        log["pages"][0]["comments"][0].update(members)
        return log

    return change


def replace_text(old: str, new: str) -> Change:
    def change(log: Json) -> bytes:
        raw = encode(log)
        assert old.encode() in raw
        return raw.replace(old.encode(), new.encode(), 1)

    return change


def set_pages(make: Callable[[Json], list[Json]]) -> Change:
    """Replace the page of comments."""

    def change(log: Json) -> Json:
        log["pages"] = [*make(log["pages"][0]), *log["pages"][1:]]
        return log

    return change


def repeat_last(log: Json) -> Json:
    log["pages"].append(log["pages"][-1])
    return log


EARLY = "2026-01-01T00:00:00Z"

BROKEN_LOGS: dict[str, tuple[str, Change]] = {
    "truncated": ("invalid_json", lambda log: encode(log)[:-1]),
    "empty": ("invalid_json", lambda log: b""),
    "not UTF-8": ("invalid_json", lambda log: encode(log).replace(b"Words", b"W\xff", 1)),
    "a repeated member": ("invalid_json", replace_text('{"id": "102"', '{"id": "101", "id": "102"')),
    "NaN": ("invalid_json", replace_text('"number": 7', '"number": NaN')),
    "Infinity": ("invalid_json", replace_text('"number": 7', '"number": Infinity')),
    "a float": ("invalid_json", replace_text('"number": 7', '"number": 7.0')),
    "a lone surrogate": ("invalid_json", replace_text("Words", "\\ud800")),
    "deep nesting": ("invalid_json", lambda log: b"[" * 100_000 + b"]" * 100_000),
    "a list": ("invalid_record", lambda log: b"[]"),
    "another version": ("invalid_record", set_member("schemaVersion", value="replica.hub-comment-log/v2")),
    "no hasMore": ("invalid_record", drop_member("pages", 0, "hasMore")),
    "hasMore unknown": ("invalid_record", set_member("pages", 0, "hasMore", value=None)),
    "no nextCursor": ("invalid_record", drop_member("pages", 0, "nextCursor")),
    "an unknown member": ("invalid_record", set_comment(reactions=3)),
    "an unknown member of the log": ("invalid_record", set_member("exportedBy", value="mona")),
    "a filter by author": ("invalid_record", set_member("filters", value={"author": "mona"})),
    "a huge text": ("invalid_record", set_comment(body="x" * 262_145)),
    "a live comment without text": ("invalid_record", set_comment(body=None)),
    "a time of no calendar": ("invalid_timestamp", set_comment(createdAt="2026-02-30T09:00:00Z")),
    "a login with an invisible character": (
        "invalid_record",
        set_comment(author={"login": "mo\u200bna", "githubId": 1}),
    ),
    "an author with two identities": ("invalid_record", set_comment(author={**person("mona"), "localId": 5})),
    "an author with the ID zero": ("invalid_record", set_comment(author={"login": "mona", "githubId": 0})),
    "an author with an unsafe ID": ("invalid_json", set_comment(author={"login": "mona", "githubId": 2**53})),
    "a local author on GitHub": ("invalid_log", set_comment(author={"login": "mona", "localId": 5})),
    "another identity policy": ("invalid_record", set_member("reviewerIdentity", value="login")),
    "more without a cursor": ("invalid_log", set_member("pages", 0, "hasMore", value=True)),
    "a cursor without more": ("invalid_log", set_member("pages", 0, "nextCursor", value="c")),
    "a first page with a cursor": ("invalid_log", set_member("pages", 0, "cursor", value="c")),
    "a page after the last": ("invalid_log", repeat_last),
    "pages in another order": ("invalid_log", set_pages(lambda page: split_page(page, "comments", (1, 1))[::-1])),
    "a page left out": (
        "invalid_log",
        set_pages(lambda page: [p for n, p in enumerate(split_page(page, "comments", (1, 0, 1))) if n != 1]),
    ),
    "a comment twice": ("invalid_log", set_pages(lambda page: [{**page, "comments": page["comments"] * 2}])),
    "a reply with the ID of its root": ("invalid_log", set_member("pages", 1, "replies", 0, "id", value="101")),
    "replies to nobody": ("invalid_log", set_member("pages", 1, "commentId", value="999")),
    "an edit before the comment": ("invalid_log", set_comment(editedAt=EARLY)),
    "a deletion before the comment": ("invalid_log", set_comment(deletedAt=EARLY)),
    "a resolution before the comment": ("invalid_log", set_comment(status="resolved", resolvedAt=EARLY)),
    "open and resolved": ("invalid_log", set_comment(resolvedBy=person("mona"))),
    "another owner": ("wrong_repository", set_member("repository", "owner", value="other")),
    "another name": ("wrong_repository", set_member("repository", "name", value="other")),
}


@pytest.mark.parametrize("flaw", BROKEN_LOGS)
def test_a_broken_log_is_refused_and_nothing_is_stored(loop: World, flaw: str) -> None:
    loop.hub.comment("101", "mona")
    loop.hub.comment("103", "octo")
    loop.hub.reply("102", "101", "octo")
    loop.collect()
    loop.hub.edit("101", "Edited.")
    loop.hub.comment("104", "ada")
    code, change = BROKEN_LOGS[flaw]
    log = change(loop.hub.log())
    with loop.nothing_stored(), refused(code):
        loop.load(log)
    assert loop.collect()["imported"] == {"episodes": 1, "events": 2}


def test_an_input_file_is_read_or_refused(loop: World, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    with loop.nothing_stored(), refused("not_found"):
        loop.store.import_comments(MONA, path)
    loop.hub.comment("101", "mona")
    path.write_bytes(encode(loop.hub.log()))
    assert loop.store.import_comments(MONA, path)["imported"] == {"episodes": 1, "events": 1}


def test_an_input_file_has_an_end(loop: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "input.json"
    loop.hub.comment("101", "mona")
    path.write_bytes(encode(loop.hub.log()))
    for module in ("json_stream", "store.base"):
        monkeypatch.setattr(f"learning_core.{module}.MAX_BYTES", path.stat().st_size - 1)
    for read in (loop.store.import_comments, loop.store.record_labels):
        with loop.nothing_stored(), refused("invalid_json") as caught:
            read(MONA, path)
        assert f"{path.stat().st_size - 1:,} bytes" in caught.value.message
    monkeypatch.undo()
    assert loop.store.import_comments(MONA, path)["imported"]["episodes"] == 1


def test_an_import_needs_consent_to_review(world: World) -> None:
    world.hub.comment("101", "mona")
    world.consent("instruction", "evaluation", "analytics", "training", "publication")
    with world.nothing_stored(), refused("not_permitted"):
        world.collect()


BROKEN_LABELS: dict[str, tuple[str, Json]] = {
    "an unknown category": ("invalid_record", {"category": "colour"}),
    "an unknown observation": ("invalid_record", {"observation": "praise"}),
    "a theme with capitals": ("invalid_record", {"theme": "Color"}),
    "a summary without words": ("invalid_record", {"summary": "\u200b"}),
    "a long summary": ("invalid_record", {"summary": "x" * 501}),
    "an unknown member": ("invalid_record", {"author": "mona"}),
    "a comment that does not exist": ("not_found", {"commentId": "999"}),
    "an event that does not exist": ("not_found", {"commentId": None, "eventId": "event_" + "0" * 64}),
}


@pytest.mark.parametrize("flaw", BROKEN_LABELS)
def test_a_labels_file_is_stored_whole_or_not_at_all(loop: World, flaw: str) -> None:
    loop.hub.comment("101", "mona")
    loop.collect()
    code, change = BROKEN_LABELS[flaw]
    good = {"commentId": "101", "category": "content", "theme": "tone", "observation": "problem", "summary": "Be kind."}
    bad = {name: value for name, value in {**good, **change}.items() if value is not None}
    with loop.nothing_stored(), refused(code):
        loop.label_file([good, bad])
    with loop.nothing_stored(), refused("invalid_json"):
        loop.store.record_labels(MONA, encode({"labels": [good]}).replace(b'"labels"', b'"labels": [], "labels"'))
    assert loop.label_file([good])["labeled"] == 1


PEOPLE_ONLY: dict[str, Callable[[World, Principal, str, str], object]] = {
    "grant": lambda w, by, *_: w.store.add_grant(by, purposes=["review"], reason="R."),
    "withdraw": lambda w, by, *_: w.store.withdraw_grant(by, w.records("grants")[0]["id"], reason="R."),
    "accept": lambda w, by, proposal, _: w.accept(proposal, by),
    "edit": lambda w, by, proposal, _: w.accept(proposal, by, text="Another text."),
    "reject": lambda w, by, proposal, _: w.reject(proposal, by),
    "retire": lambda w, by, _, learning: w.store.retire(by, learning, reason="R."),
    "supersede": lambda w, by, proposal, learning: w.store.supersede(by, learning, replaces=[proposal]),
    "redact an event": lambda w, by, *_: w.store.redact_event(by, w.event("tone-1"), reason="R."),
    "redact a comment": lambda w, by, *_: w.store.redact_comment(by, "tone-1", reason="R."),
}


@pytest.mark.parametrize("act", PEOPLE_ONLY)
def test_only_a_person_may(loop: World, act: str) -> None:
    learning, proposal = loop.learning("tone"), loop.proposal("wording")
    with loop.nothing_stored(), refused("person_required"):
        PEOPLE_ONLY[act](loop, AGENT, proposal, learning)
    disguised = Principal("human", "agent:builder", "asserted")
    with loop.nothing_stored(), refused("invalid_record"):
        PEOPLE_ONLY[act](loop, disguised, proposal, learning)


def test_an_agent_recalls_but_does_not_preview(loop: World) -> None:
    learning = loop.learning()
    with loop.nothing_stored(), refused("person_required"):
        loop.recall(by=AGENT, preview=True)
    assert loop.recalled(by=AGENT) == [learning]


BLANK: dict[str, Callable[[World, str, str], object]] = {
    "grant": lambda w, *_: w.store.add_grant(MONA, purposes=["review"], reason=" \n"),
    "withdraw": lambda w, *_: w.store.withdraw_grant(MONA, w.records("grants")[0]["id"], reason=" "),
    "reject": lambda w, proposal, _: w.reject(proposal, reason=""),
    "retire": lambda w, _, learning: w.store.retire(MONA, learning, reason="\t"),
    "redact": lambda w, *_: w.store.redact_event(MONA, w.event("tone-1"), reason=" "),
}


@pytest.mark.parametrize("act", BLANK)
def test_a_reason_is_needed(loop: World, act: str) -> None:
    learning, proposal = loop.learning("tone"), loop.proposal("wording")
    with loop.nothing_stored(), refused("reason_required"):
        BLANK[act](loop, proposal, learning)


def test_arguments_outside_what_is_accepted(loop: World) -> None:
    with loop.nothing_stored():
        with refused("invalid_argument"):
            loop.store.add_grant(MONA, purposes=["marketing"], reason="R.")
        with refused("invalid_record"):
            loop.store.add_grant(MONA, purposes=[], reason="R.")
        with refused("invalid_record"):
            loop.store.add_grant(MONA, purposes=["review"], sources=["email"], reason="R.")
        with refused("invalid_record"):
            loop.store.add_grant(MONA, purposes=["review"], time_from="2026-02-01", time_to="2026-02-01", reason="R.")
        with refused("invalid_timestamp"):
            loop.store.add_grant(MONA, purposes=["review"], time_from="yesterday", reason="R.")
        with refused("invalid_argument"):
            loop.consolidate(window=FOREVER[::-1])
        with refused("invalid_argument"):
            loop.consolidate(Scripted(lambda view: []), max_new=-1)
        with refused("not_found"):
            loop.store.show("memory_" + "0" * 64)
        with refused("not_found"):
            loop.store.withdraw_grant(MONA, "grant_" + "0" * 64, reason="R.")
        with refused("not_found"):
            loop.store.redact_event(MONA, "event_" + "0" * 64, reason="R.")


def test_an_identifier_with_an_invisible_character_is_refused(loop: World) -> None:
    for hidden in ("\u200b", "\u202e", "\U000e0041", "\n"):
        with loop.nothing_stored(), refused("invalid_record"):
            loop.store.add_grant(
                Principal("human", f"github:mo{hidden}na", "asserted"), purposes=["review"], reason="R."
            )
        with loop.nothing_stored(), refused("invalid_record"):
            loop.recall(by=Principal("agent", f"agent:bu{hidden}ilder", "asserted"))


def test_a_page_without_its_list_is_no_page(loop: World) -> None:
    assert set(page_of(comments=[])) == {"action", "cursor", "hasMore", "nextCursor", "comments"}
    with loop.nothing_stored(), refused("invalid_record"):
        loop.load(loop.hub.log(pages=[page_of(replies=[])]))

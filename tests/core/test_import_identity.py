"""Who wrote a comment: stable user IDs, old snapshots that know only logins, and the passage from one to the other."""

from __future__ import annotations

from typing import Any

import pytest

from learning_core.errors import InvalidLog
from learning_core.identity import author_of
from providers.storage.in_memory import InMemoryProvider
from tests.core.builders import MONA, ORIGIN, THEME, Json, ScriptedLabeler, World, page_of, person, refused

STABLE = "github-user:github.com/9001"
GHOST = {"login": "ghost", "githubId": 10137}
USES = ("instruction", "evaluation", "analytics", "training", "publication")


@pytest.fixture
def old(loop: World) -> World:
    """A Hub that names people by login only, with a learning that rests on two of them."""
    loop.hub.legacy = True
    return loop


def actors(world: World, comment_id: str) -> list[Any]:
    return [event["actor"].get("id") for event in world.events("comment", comment_id)]


def test_a_reviewer_is_the_user_id_and_the_login_is_for_display(loop: World) -> None:
    loop.hub.comment("101", "mona")
    loop.hub.comment("102", {"login": "mona-renamed", "githubId": 9001})
    loop.hub.comment("103", {"login": "mona", "githubId": 9009})
    loop.collect()
    found = [event["actor"] for event in loop.events("comment")]
    assert found[0] == {"kind": "human", "id": STABLE, "login": "mona"}
    assert found[1] == {"kind": "human", "id": STABLE, "login": "mona-renamed"}
    assert found[2]["id"] == "github-user:github.com/9009"


def test_a_renamed_account_is_one_reviewer_and_a_reused_login_is_two(loop: World) -> None:
    loop.hub.comment("101", "mona", prototype="p1")
    loop.hub.comment("102", {"login": "mona-renamed", "githubId": 9001}, prototype="p2")
    loop.collect()
    loop.label("101", "102")
    assert loop.consolidate()["stored"] == []
    loop.hub.comment("103", {"login": "mona", "githubId": 9009}, prototype="p2")
    loop.collect()
    loop.label("103")
    assert len(loop.consolidate()["stored"]) == 1


def test_local_people_have_ids_bound_to_their_hub() -> None:
    author = {"login": "dev", "localId": 5}
    assert (
        author_of(author, host="local", hub_origin="http://127.0.0.1:8000")["id"] == "hub-user:http://127.0.0.1:8000/5"
    )
    for person_, host in ((author, "github.com"), ({"login": "dev", "githubId": 5}, "local")):
        with pytest.raises(InvalidLog):
            author_of(person_, host=host, hub_origin=ORIGIN)
    world = World(InMemoryProvider(), scope="local/acme/checkout-prototypes")
    world.consent()
    world.hub.comment("101", author)
    world.collect()
    assert actors(world, "101") == [f"hub-user:{ORIGIN}/5"]


@pytest.mark.parametrize("author", [None, GHOST, {"login": "Ghost"}], ids=["nobody", "ghost", "ghost by login"])
def test_nobody_and_ghost_are_context_and_no_reviewer(loop: World, author: Json | None) -> None:
    loop.hub.comment("101", author, prototype="p1")
    loop.hub.comment("102", "mona", prototype="p2")
    loop.collect()
    assert loop.events("comment", "101")[0]["actor"]["kind"] == "unknown"
    loop.label("101", "102")
    assert loop.consolidate(minReviewers=1, minThreads=2)["stored"] == []
    assert loop.store.label(MONA, ScriptedLabeler(lambda request: []))["considered"] == 2


def test_a_bot_is_context_and_no_reviewer(loop: World) -> None:
    loop.hub.comment("101", {"login": "hubot", "githubId": 77, "bot": True}, prototype="p1")
    loop.hub.comment("102", "mona", prototype="p2")
    loop.collect()
    assert loop.events("comment", "101")[0]["actor"] == {
        "kind": "bot", "id": "github-user:github.com/77", "login": "hubot"
    }  # fmt: skip
    loop.label("101", "102")
    assert loop.consolidate(minReviewers=1)["stored"] == []


@pytest.mark.parametrize("later", [GHOST, None, {"login": "ghost"}], ids=["ghost", "nobody", "ghost by login"])
def test_an_author_who_becomes_a_ghost_keeps_the_identity(loop: World, later: Json | None) -> None:
    loop.hub.comment("101", "mona", "A")
    loop.collect()
    loop.hub.find("101")["author"] = later
    assert loop.collect()["imported"]["events"] == 0
    loop.hub.edit("101", "B")
    assert loop.collect()["imported"]["events"] == 1
    assert actors(loop, "101") == [STABLE, STABLE]


def test_old_snapshots_are_read_with_asserted_identities(old: World) -> None:
    old.hub.comment("101", person("mona", legacy=True))
    result = old.collect()
    assert result["collection"]["reviewerIdentity"] is None
    assert actors(old, "101") == ["github:mona"]
    assert old.audit("identity.adopt") == []
    assert old.recalled() == []


def test_a_store_that_adopted_nothing_uses_old_identities(old: World) -> None:
    learning = old.learning()
    assert old.recalled() == [learning]


ADOPTIONS: dict[str, Json] = {
    "empty": {"pages": [page_of(comments=[])]},
    "incomplete": {"pages": []},
    "filtered": {"filters": {"status": "resolved"}, "pages": [page_of(comments=[])]},
}


@pytest.mark.parametrize("capture", ADOPTIONS)
def test_a_valid_capture_adopts_stable_identities(old: World, capture: str) -> None:
    learning = old.learning()
    old.consent(*USES)
    log = old.hub.log(reviewerIdentity="stable-user-id", **ADOPTIONS[capture])
    collection = old.load(log)["collection"]
    assert collection["filters"] == log["filters"]
    assert collection["complete"] == (capture != "incomplete")
    (entry,) = old.audit("identity.adopt")
    assert entry["details"] == {"hubOrigin": ORIGIN, "repositoryId": 4242}
    assert old.recalled() == []
    shown = old.store.show(learning)["memory"]
    assert (shown["withheld"], shown["identityNeedsReview"], shown["inUse"]) == (False, True, False)
    assert {"code": "identity_needs_review", "memoryId": learning} in old.store.status()["attention"]
    assert old.latest(learning)["state"] == "accepted"


def test_numeric_ids_imply_the_adoption(old: World) -> None:
    learning = old.learning()
    old.hub.comment("101", person("ada"))
    old.collect()
    assert len(old.audit("identity.adopt")) == 1
    assert old.recalled() == []
    old.collect()
    assert len(old.audit("identity.adopt")) == 1
    assert learning in [row["id"] for row in old.store.memories()["memories"]]


def test_the_id_of_a_resolver_or_a_deleter_implies_the_adoption(old: World) -> None:
    old.hub.comment("101", "mona")
    old.hub.roots["101"].update(status="resolved", resolvedBy=person("ada"))
    old.collect()
    assert len(old.audit("identity.adopt")) == 1


def test_a_later_old_snapshot_does_not_undo_the_adoption(old: World) -> None:
    old.learning()
    old.load(old.hub.log(reviewerIdentity="stable-user-id", pages=[]))
    old.hub.comment("101", "ada")
    old.collect()
    old.label("101")
    assert old.recalled() == []
    assert old.consolidate(minReviewers=1, minThreads=1, minPrototypes=1)["stored"] == []


def test_a_bot_known_by_its_login_serves_review_only_too(old: World) -> None:
    old.hub.comment("101", {"login": "hubot", "bot": True})
    old.collect()
    memory = old.propose("101", theme="tone")
    old.accept(memory)
    assert old.recalled() == [memory]
    old.load(old.hub.log(reviewerIdentity="stable-user-id", pages=[]))
    assert old.recalled() == []
    assert old.store.show(memory)["memory"]["text"] == "Keep text readable."


def test_an_adoption_is_of_one_hub_and_repository(old: World) -> None:
    learning = old.learning()
    old.load(old.hub.log(reviewerIdentity="stable-user-id", hubOrigin="https://other.example.com", pages=[]))
    old.load(
        old.hub.log(
            reviewerIdentity="stable-user-id",
            repository={"id": 4243, "owner": "acme", "name": "checkout-prototypes"},
            pages=[],
        )
    )
    assert old.recalled() == [learning]


def test_a_refused_import_adopts_nothing(old: World) -> None:
    learning = old.learning()
    with old.nothing_stored(), refused("invalid_record"):
        old.load(old.hub.log(reviewerIdentity="stable-user-id", filters={"author": "mona"}))
    assert old.recalled() == [learning]


def test_adoption_needs_consent_to_review(world: World) -> None:
    with world.nothing_stored(), refused("not_permitted"):
        world.load(world.hub.log(pages=[]))


@pytest.fixture
def adopted(old: World) -> World:
    """A learning and a proposal on old identities, and then a snapshot that names the same people by ID."""
    old.learning()
    old.proposal("focus-order")
    old.hub.legacy = False
    for comment_id in (f"{THEME}-1", f"{THEME}-2"):
        entry = old.hub.find(comment_id)
        entry["author"] = person(entry["author"]["login"])
    return old


def test_a_matched_comment_is_corrected_and_replaced(adopted: World) -> None:
    before = adopted.events("comment", f"{THEME}-1")[0]
    result = adopted.collect()
    corrected, replacement = adopted.events("comment", f"{THEME}-1")
    assert corrected == before
    retraction = adopted.events("retraction")[0]
    assert (retraction["parentEventId"], retraction["payload"]["reason"]) == (before["id"], "identity_corrected")
    assert replacement["actor"] == {"kind": "human", "id": STABLE, "login": "mona"}
    assert replacement["payload"]["body"] == before["payload"]["body"]
    assert replacement["occurredAt"] == before["occurredAt"]
    assert replacement["parentEventId"] == before["id"]
    assert result["imported"] == {"episodes": 0, "events": 4}
    assert adopted.collect()["imported"]["events"] == 0


def test_the_import_reports_what_the_correction_affects(adopted: World) -> None:
    learning, proposal = (adopted.latest(record["id"]) for record in adopted.records("memories")[1:])
    cited = [reference["eventIds"][0] for reference in learning["evidence"]]
    (update,) = adopted.collect()["identityUpdates"]
    assert update == {"reason": "identity_corrected", "events": cited, "memories": [learning["id"]]}
    assert proposal["state"] == "proposed"
    assert adopted.collect()["identityUpdates"] == []


def test_an_affected_proposal_cannot_be_accepted(adopted: World) -> None:
    proposal = adopted.store.memories(states=["proposed"])["memories"][0]["id"]
    adopted.collect()
    with adopted.nothing_stored(), refused("evidence_unavailable"):
        adopted.accept(proposal)
    attention = adopted.store.status()["attention"]
    assert {"code": "identity_needs_review", "memoryId": proposal} in attention


def test_an_affected_learning_stops_until_it_is_rebuilt_and_reviewed(adopted: World) -> None:
    (learning,) = adopted.recalled()
    adopted.collect()
    assert adopted.recalled() == []
    assert adopted.store.show(learning)["memory"]["identityNeedsReview"]
    assert adopted.consolidate()["stored"] == []
    adopted.label(f"{THEME}-1", f"{THEME}-2", summary="Mind the color-contrast.")
    (rebuilt,) = adopted.consolidate()["stored"]
    assert adopted.latest(rebuilt["id"])["lifecycle"]["replaces"] == [learning]
    adopted.accept(rebuilt["id"])
    assert adopted.recalled() == [rebuilt["id"]]
    assert adopted.store.verify(by=MONA)["ok"]


def test_a_correction_is_no_new_corroboration(adopted: World) -> None:
    (learning,) = adopted.recalled()
    adopted.store.retire(MONA, learning, reason="No longer.")
    adopted.collect()
    adopted.label(f"{THEME}-1", f"{THEME}-2")
    result = adopted.consolidate()
    assert result["stored"] == []
    assert {item["reason"] for item in result["diagnostics"]} == {"retired"}


def test_an_edit_in_the_same_snapshot_keeps_its_own_time(adopted: World) -> None:
    adopted.hub.edit(f"{THEME}-1", "Edited.")
    adopted.collect()
    assert adopted.events("comment", f"{THEME}-1")[-1]["occurredAt"] == adopted.hub.find(f"{THEME}-1")["editedAt"]
    assert adopted.collect()["imported"]["events"] == 0


def test_every_legacy_version_of_an_edited_comment_is_corrected(adopted: World) -> None:
    name = "focus-order-1"
    adopted.hub.find(name)["author"] = person("mona", legacy=True)
    adopted.hub.edit(name, "Edited.")
    adopted.hub.find(f"{THEME}-1")["author"] = person("mona", legacy=True)
    adopted.hub.find(f"{THEME}-2")["author"] = person("octo", legacy=True)
    adopted.collect()
    adopted.hub.find(name)["author"] = person("mona")
    adopted.collect()
    versions = [event["id"] for event in adopted.events("comment", name)]
    assert [event["parentEventId"] for event in adopted.events("retraction")] == versions[:2]
    assert len(versions) == 3


def test_the_correction_of_a_redacted_comment_brings_no_text_back(adopted: World) -> None:
    adopted.store.redact_comment(MONA, f"{THEME}-1")
    events = adopted.events("comment", f"{THEME}-1")
    adopted.collect()
    assert adopted.events("comment", f"{THEME}-1") == events
    assert adopted.events("retraction")[0]["parentEventId"] == events[0]["id"]
    assert all(f"About {THEME}, says mona".encode() not in raw for _, _, raw in adopted.rows())
    assert adopted.collect()["imported"]["events"] == 0


def test_a_stable_author_is_never_rebound(adopted: World) -> None:
    adopted.collect()
    adopted.hub.find(f"{THEME}-1")["author"] = {"login": "mona", "githubId": 9009}
    adopted.hub.comment("104", "ada")
    with adopted.nothing_stored(), refused("invalid_log"):
        adopted.collect()


def test_a_stable_author_is_never_downgraded(adopted: World) -> None:
    adopted.collect()
    adopted.hub.find(f"{THEME}-1")["author"] = person("mona", legacy=True)
    assert adopted.collect()["imported"]["events"] == 0
    adopted.hub.edit(f"{THEME}-1", "Edited.")
    adopted.collect()
    assert actors(adopted, f"{THEME}-1")[1:] == [STABLE, STABLE]


def test_guidance_on_stable_identities_stays_unchanged(old: World) -> None:
    old.hub.legacy = False
    learning = old.learning()
    old.hub.comment("101", person("ada", legacy=True))
    old.collect()
    assert old.recalled() == [learning]


def test_a_withdrawal_still_applies_to_a_replacement(adopted: World) -> None:
    adopted.collect()
    adopted.label(f"{THEME}-1", f"{THEME}-2")
    adopted.store.withdraw_grant(MONA, adopted.records("grants")[0]["id"], purposes=["instruction"], reason="No more.")
    with refused("not_permitted"):
        adopted.consolidate()

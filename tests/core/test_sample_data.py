"""The synthetic review data: what each file promises, counted from the file, so that nobody thins it out later.

`hub_learning/sample/batches.json` fills an empty Hub. `tests/fixtures/logs/second*.json` tell one history twice, as
snapshots and as deliveries. `examples/synthetic_log*.json` are for the command-line demo.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.logs.reading import (
    BATCHES,
    CONTRACTS,
    LOGS,
    ROOT,
    SNAPSHOTS,
    TIMES,
    Item,
    changes,
    deliveries,
    fold,
    instants,
    is_reopening,
    labels_of,
    listed,
    load,
    offline_labels,
    pages,
    prototype,
    reviewers,
    roots,
    themes,
    validator,
)

PAIRS = [("second", "second.later"), ("synthetic", "synthetic.later")]
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
CONSTANT = ("replyTo", "prototype", "branch", "build", "author", "target", "createdAt", "url")


# Both formats


@pytest.mark.parametrize("path", sorted({*SNAPSHOTS.values(), *(p for paths in BATCHES.values() for p in paths)}))
def test_times_are_utc_text_with_six_digits(path: Path) -> None:
    found = list(instants(load(path)))
    assert found
    assert [instant for instant in found if not INSTANT.fullmatch(instant)] == []


@pytest.mark.parametrize("name", ["sample", "second", "second.later"])
def test_each_delivery_is_in_the_form_of_the_api(name: str) -> None:
    form = validator(ROOT / "hub_learning" / "api" / "comments.schema.json")
    for comments in deliveries(name):
        form.validate({"comments": comments})
        ids = [item["id"] for item in comments]
        assert ids
        assert len(set(ids)) == len(ids)
        for item in comments:
            assert (item["body"] is None) == (item["deletedAt"] is not None) == (item["deletedBy"] is not None)
            assert (item["status"] is None) == (item["target"] is None) == (item["replyTo"] is not None)


@pytest.mark.parametrize("name", ["sample", "second", "second.later"])
def test_deliveries_stand_in_the_order_they_happened(name: str) -> None:
    seen: dict[str, Item] = {}
    now = ""
    for item in (item for comments in deliveries(name) for item in comments):
        before = seen.get(item["id"], {})
        if before:
            assert item != before
            assert [item[member] for member in CONSTANT] == [before[member] for member in CONSTANT]
            assert before["deletedAt"] is None, "a deletion is final"
        else:
            assert item["replyTo"] is None or item["replyTo"] in seen
        happened = [item[member] for member in TIMES if item[member] not in (None, before.get(member))]
        assert len(happened) == (0 if is_reopening(before, item) else 1)
        assert [now, *happened] == sorted([now, *happened])
        now = max([now, *happened])
        seen[item["id"]] = item


@pytest.mark.parametrize("name", ["sample", *SNAPSHOTS])
def test_states_agree_with_themselves(name: str) -> None:
    state = fold(name) if name == "sample" else listed(name)
    for item in state.values():
        assert item["createdAt"] < (item["editedAt"] or "9")
        assert item["createdAt"] < (item["deletedAt"] or "9")
        assert item["createdAt"] < (item["resolvedAt"] or "9")
        assert (item["status"] == "resolved") == (item["resolvedAt"] is not None) == (item["resolvedBy"] is not None)
        assert item["body"] is None or item["body"].strip()
        if item["replyTo"] is not None:
            root = state[item["replyTo"]]
            assert root["replyTo"] is None
            assert root["createdAt"] < item["createdAt"]
            assert prototype(item) == prototype(root)
    people = [item[member] for item in state.values() for member in ("author", "deletedBy", "resolvedBy")]
    logins: dict[int, set[str]] = defaultdict(set)
    for person in filter(None, people):
        logins[person["localId" if name == "sample" else "githubId"]].add(person["login"])
    assert [names for names in logins.values() if len(names) > 1] == []
    assert len({login for names in logins.values() for login in names}) == len(logins)


@pytest.mark.parametrize("name", ["sample", *SNAPSHOTS])
def test_builds_of_a_prototype_are_numbered_in_the_order_seen(name: str) -> None:
    builds: dict[str, list[int]] = defaultdict(list)
    commits: dict[tuple[str, int], set[str | None]] = defaultdict(set)
    for item in sorted(
        roots(fold(name) if name == "sample" else listed(name)), key=lambda item: str(item["createdAt"])
    ):
        builds[prototype(item)].append(item["build"]["number"])
        commits[prototype(item), item["build"]["number"]].add(item["build"]["commitSha"])
    assert [numbers for numbers in builds.values() if numbers != sorted(numbers)] == []
    assert [shas for shas in commits.values() if len(shas) != 1] == []


@pytest.mark.parametrize("name", ["sample", "second", "synthetic"])
def test_labels_follow_their_schema_and_name_comments(name: str) -> None:
    labels = load(LOGS / f"{name}.labels.json")
    validator(CONTRACTS / "labels.schema.json").validate(labels)
    state = fold(name) if name == "sample" else {**listed(name), **listed(f"{name}.later")}
    assert {label["commentId"] for label in labels["labels"]} <= set(state)
    categories = defaultdict(set)
    for label in labels["labels"]:
        categories[label["theme"]].add(label["category"])
    assert [theme for theme, given in categories.items() if len(given) > 1] == []


# The sample of an empty Hub


def test_the_sample_is_large_and_varied() -> None:
    state = fold("sample")
    assert len(state) >= 90
    assert len(roots(state)) >= 25
    assert len({prototype(item) for item in state.values()}) >= 6
    assert len(reviewers(state)) >= 8
    assert "main" in {item["branch"] for item in state.values()}
    assert len({item["branch"] for item in state.values()}) >= 6
    assert {item["target"]["kind"] for item in roots(state)} == {"element", "file", "page"}
    assert None in {item["target"]["line"] for item in roots(state) if item["target"]["kind"] == "file"}
    assert {item["build"]["commitSha"] is None for item in state.values()} == {True, False}
    dates = [item[member] for item in state.values() for member in TIMES if item[member]]
    assert (min(dates)[:10], max(dates)[:10]) == ("2026-09-01", "2026-11-20")
    bodies = [item["body"] for item in state.values() if item["body"] is not None]
    assert [body for body, times in Counter(bodies).items() if times > 1] == []


def test_the_sample_uses_the_local_host_only() -> None:
    authors = [item["author"] for item in fold("sample").values()]
    assert {frozenset(author) for author in authors if author} == {
        frozenset({"login", "localId"}),
        frozenset({"login", "localId", "bot"}),
    }
    assert sum(author is None for author in authors) == 1
    assert {author["login"] for author in authors if author and author.get("bot")} == {"lint-bot"}


def test_the_sample_shows_every_thing_that_happens_to_comments() -> None:
    steps = list(changes("sample"))
    assert sum(item["editedAt"] != before["editedAt"] for before, item in steps) >= 3
    assert sum(item["status"] == "resolved" != before["status"] for before, item in steps) >= 20
    assert sum(is_reopening(before, item) for before, item in steps) == 1
    assert sum(item["deletedAt"] is not None for before, item in steps) == 1
    state = fold("sample")
    assert {item["status"] for item in roots(state)} == {"open", "resolved"}
    assert sum(item["replyTo"] is not None for item in state.values()) >= 30


def test_the_sample_speaks_as_people_do() -> None:
    bodies = [item["body"] for item in fold("sample").values() if item["body"]]
    assert sum("\r\n" in body for body in bodies) >= 3
    assert sum("\n" in body and "\r" not in body for body in bodies) >= 3
    assert any("\N{ZERO WIDTH JOINER}" in body for body in bodies)
    assert sum(any(ord(character) > 0xFFFF for character in body) for body in bodies) >= 5
    assert any(re.search("[\u0590-\u05ff]", body) for body in bodies), "a sentence in Hebrew"
    assert any(re.search("[\u0600-\u06ff]", body) for body in bodies), "a sentence in Arabic"
    assert sum("?" in body for body in bodies) >= 10
    assert {"+1", "Agreed."} <= set(bodies)


def test_a_comment_of_the_sample_only_praises() -> None:
    state = fold("sample")
    labelled = {label["commentId"] for label in labels_of("sample")}
    praise = [item for item in state.values() if "Lovely work" in (item["body"] or "")]
    assert len(praise) == 1
    assert praise[0]["id"] not in labelled


def test_themes_of_the_sample() -> None:
    found = themes(fold("sample"), labels_of("sample"))
    recurring = {name for name, theme in found.items() if theme.recurs}
    assert len(recurring) >= 8
    assert {name for name, theme in found.items() if theme.problem.recurs and theme.held_back} == {"loading-feedback"}
    assert {name for name in recurring if found[name].dissent} == {"target-size"}
    assert (found["target-size"].support, found["target-size"].dissent) == (4, 1)
    short = {name: theme.problem for name, theme in found.items() if not theme.problem.recurs}
    assert {name: (len(side.reviewers), len(side.threads), len(side.prototypes)) for name, side in short.items()} == {
        "text-alternatives": (1, 2, 2),
        "named-constants": (2, 2, 1),
    }


# The logs


@pytest.mark.parametrize("name", sorted(SNAPSHOTS))
def test_each_log_follows_its_schema(name: str) -> None:
    validator(CONTRACTS / "hub-comment-log.schema.json").validate(load(SNAPSHOTS[name]))


@pytest.mark.parametrize("name", sorted(SNAPSHOTS))
def test_each_log_is_complete(name: str) -> None:
    log = load(SNAPSHOTS[name])
    assert log["filters"] == {}
    comments = [comment for page in pages(log, "list_comments") for comment in page["comments"]]
    replies: dict[str, list[Any]] = defaultdict(list)
    for page in pages(log, "list_replies"):
        replies[page["commentId"]].append(page)
    for chain in (pages(log, "list_comments"), *replies.values()):
        assert [page["cursor"] for page in chain] == [None, *(page["nextCursor"] for page in chain[:-1])]
        assert [page["hasMore"] for page in chain] == [True] * (len(chain) - 1) + [False]
        assert [page["nextCursor"] is None for page in chain] == [not page["hasMore"] for page in chain]
    counts = {root: sum(len(page["replies"]) for page in chain) for root, chain in replies.items()}
    assert counts == {root["id"]: root["replyCount"] for root in comments if root["replyCount"]}
    ids = [*(one["id"] for one in comments), *(r["id"] for c in replies.values() for p in c for r in p["replies"])]
    assert len(set(ids)) == len(ids)
    assert max(instants(log["pages"])) < log["capturedAt"]


@pytest.mark.parametrize(("earlier", "later"), PAIRS)
def test_a_later_log_is_of_the_same_repository_and_keeps_what_cannot_change(earlier: str, later: str) -> None:
    one, two = load(SNAPSHOTS[earlier]), load(SNAPSHOTS[later])
    assert [one[member] for member in ("hubOrigin", "repository")] == [
        two[member] for member in ("hubOrigin", "repository")
    ]
    assert one["snapshotId"] != two["snapshotId"]
    assert one["capturedAt"] < two["capturedAt"]
    before, after = listed(earlier), listed(later)
    assert set(before) <= set(after)
    fixed = ("replyTo", "prototypeId", "branch", "build", "author", "target", "createdAt")
    for known in before:
        assert [before[known][member] for member in fixed] == [after[known][member] for member in fixed]
    assert all(one["capturedAt"] <= item["createdAt"] for known, item in after.items() if known not in before)


def test_the_second_log_is_large_and_varied() -> None:
    log, state = load(SNAPSHOTS["second"]), listed("second")
    assert len(state) >= 40
    assert len(roots(state)) >= 12
    assert len({prototype(item) for item in state.values()}) == 4
    assert len(reviewers(state)) == 6
    assert len(pages(log, "list_comments")) == 2
    assert 2 in Counter(page["commentId"] for page in pages(log, "list_replies")).values()
    people = [item["author"] for item in state.values()]
    assert sum(person is None for person in people) == 2
    assert {"login": "ghost", "githubId": 10137} in people
    assert any(person and person.get("bot") for person in people)
    deleted = [item for item in state.values() if item["deletedAt"]]
    assert sorted((item["replyTo"] is not None, item["body"] is None) for item in deleted) == [
        (False, False),
        (False, True),
        (True, True),
    ]
    assert sum(item["status"] == "resolved" for item in state.values()) >= 5
    assert sum(item["editedAt"] is not None for item in state.values()) >= 1
    assert sum(is_reopening(before, item) for before, item in changes("second")) == 1


def test_what_happened_between_the_two_second_logs() -> None:
    before, after = listed("second"), listed("second.later")
    moved = [(before[known], after[known]) for known in before if before[known] != after[known]]
    edits = [(old, new) for old, new in moved if old["editedAt"] != new["editedAt"]]
    assert sorted(old["body"] == new["body"] for old, new in edits) == [False, True]
    assert [new["body"] for old, new in moved if old["deletedAt"] != new["deletedAt"]] == [None]
    assert sorted((old["status"], new["status"]) for old, new in moved if old["status"] != new["status"]) == [
        ("open", "resolved"),
        ("resolved", "open"),
    ]
    assert len(moved) == 5
    assert len([new for known, new in after.items() if known not in before and new["replyTo"] is None]) == 1


def test_the_edit_back_is_delivered_in_both_steps() -> None:
    versions: dict[str, list[str]] = defaultdict(list)
    for item in (item for comments in deliveries("second.later") for item in comments):
        if item["body"] is not None and [item["body"]] != versions[item["id"]][-1:]:
            versions[item["id"]].append(item["body"])
    assert [len(set(bodies)) for bodies in versions.values() if len(bodies) == 3] == [2]
    assert [bodies[0] == bodies[2] for bodies in versions.values() if len(bodies) == 3] == [True]


@pytest.mark.parametrize("name", ["second", "second.later"])
def test_log_and_deliveries_say_the_same(name: str) -> None:
    delivered = {
        known: {member: value for member, value in item.items() if member not in ("prototype", "url")}
        | {"prototypeId": item["prototype"]["id"]}
        for known, item in fold(name).items()
    }
    in_log = {
        known: {member: value for member, value in item.items() if member != "replyCount"}
        | ({"body": None} if item["deletedAt"] else {})
        for known, item in listed(name).items()
    }
    assert delivered == in_log


def test_themes_of_the_second_log() -> None:
    for name in ("second", "second.later"):
        found = themes(listed(name), labels_of("second"))
        assert sum(theme.recurs for theme in found.values()) >= 3


def test_the_synthetic_log_is_small_and_has_its_themes() -> None:
    log, state = load(SNAPSHOTS["synthetic"]), listed("synthetic")
    assert log["hubOrigin"] == "https://hub.example.com"
    assert log["repository"] == {"id": 4242, "owner": "acme", "name": "checkout-prototypes"}
    assert (len(state), len(roots(state))) == (29, 10)
    assert len({prototype(item) for item in state.values()}) == 4
    assert len(reviewers(state)) == 5
    for name in ("synthetic", "synthetic.later"):
        found = themes(listed(name), labels_of("synthetic"))
        recurring = {key for key, theme in found.items() if theme.recurs}
        assert len(recurring) >= 3
        assert {key for key in recurring if found[key].dissent} == {"target-size"}


def test_the_synthetic_themes_are_of_the_default_categories() -> None:
    assert {label["category"] for label in labels_of("synthetic")} == {"accessibility", "visual-quality"}


def test_what_happened_between_the_two_synthetic_logs() -> None:
    before, after = listed("synthetic"), listed("synthetic.later")
    assert set(before) == set(after)
    moved = [(before[known], after[known]) for known in before if before[known] != after[known]]
    assert sorted((new["deletedAt"] is not None, new["editedAt"] is not None) for _, new in moved) == [
        (False, True),
        (True, False),
    ]
    cited = {label["commentId"] for label in labels_of("synthetic")}
    assert {new["id"] for _, new in moved} <= cited, "both touch what a learning cites"


# What the offline labeler hears


@pytest.mark.parametrize(("name", "least"), [("sample", 8), ("second", 3), ("synthetic", 3)])
def test_the_offline_labeler_hears_the_recurring_themes(name: str, least: int) -> None:
    state = fold(name) if name == "sample" else listed(name)
    ours, theirs = labels_of(name), offline_labels(state)
    recurring = [{key for key, theme in themes(state, labels).items() if theme.recurs} for labels in (ours, theirs)]
    assert len(recurring[0] & recurring[1]) >= least
    categories = {label["theme"]: label["category"] for label in theirs}
    assert [label for label in ours if categories.get(label["theme"], label["category"]) != label["category"]] == []


def test_the_offline_labeler_hears_who_disagrees() -> None:
    sample, synthetic = fold("sample"), listed("synthetic")
    heard = themes(sample, offline_labels(sample))
    assert {key for key, theme in heard.items() if theme.dissent} == {"loading-feedback", "target-size"}
    assert {key for key, theme in heard.items() if theme.problem.recurs and theme.held_back} == {"loading-feedback"}
    assert [key for key in ("text-alternatives", "named-constants") if heard[key].problem.recurs] == []
    assert themes(synthetic, offline_labels(synthetic))["target-size"].dissent == 1

"""The vectors of `contracts/v1/vectors` against this code, and against `rfc8785` and `hashlib` alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
import rfc8785

from learning_core import identifiers
from learning_core.canonical import canonical_bytes, derive_id, digest, parse_json
from learning_core.errors import InvalidJson
from learning_core.provider import EMPTY_HEAD, Head, advance, advance_redacted, record_groups
from learning_core.records import CONTENT_MEMBERS, REVIEW_MEMBERS, content_digest, record_digest, review_digest
from tests.core.contract_files import schemas, validators, vectors

Vector = dict[str, Any]
CANONICAL = vectors("canonical-json")
DIGESTS = vectors("digests")["digests"]
IDS = vectors("event-ids")["ids"]
HEADS = vectors("heads")


def name_vector(vector: Vector) -> str:
    return str(vector["name"])


def sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


# Canonical JSON ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", CANONICAL["accepted"], ids=name_vector)
def test_a_text_has_one_canonical_form(vector: Vector) -> None:
    canonical = vector["canonical"].encode()
    for text in (vector["json"], vector["json"].encode(), canonical):
        value = parse_json(text)
        assert canonical_bytes(value) == canonical
        assert digest(value) == vector["digest"]
    assert rfc8785.dumps(json.loads(vector["json"])) == canonical
    assert vector["digest"] == f"sha256:{sha256(canonical)}"


@pytest.mark.parametrize("vector", CANONICAL["refused"], ids=name_vector)
def test_a_text_is_refused(vector: Vector) -> None:
    raw = bytes.fromhex(vector["hex"]) if "hex" in vector else vector["json"].encode()
    assert vector["why"].endswith(".")
    with pytest.raises(InvalidJson):
        parse_json(raw)


# Digests -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", DIGESTS, ids=name_vector)
def test_a_digest_covers_what_the_rule_says(vector: Vector) -> None:
    record = vector["record"]
    if "of" in vector:
        covered = record[vector["of"]]
    elif "covers" in vector:
        covered = {name: record[name] for name in vector["covers"]}
    else:
        covered = {name: value for name, value in record.items() if name not in vector["omits"]}
    assert rfc8785.dumps(covered) == vector["canonical"].encode()
    assert vector["digest"] == f"sha256:{sha256(vector['canonical'].encode())}" == record[vector["member"]]


@pytest.mark.parametrize("vector", DIGESTS, ids=name_vector)
def test_a_digest_is_computed_here(vector: Vector) -> None:
    record, member = vector["record"], vector["member"]
    assert validators(vector["kind"]).verdicts(record) == (True, True)
    computed = {
        "digest": lambda: record_digest(vector["kind"], record),
        "payloadDigest": lambda: digest(record["payload"]),
        "contentDigest": lambda: content_digest(record),
        "reviewDigest": lambda: review_digest(record),
    }[member]()
    assert computed == vector["digest"]


def test_the_vectors_state_the_rules_of_this_code() -> None:
    covers = {vector["member"]: vector["covers"] for vector in DIGESTS if "covers" in vector}
    assert covers == {"contentDigest": [*CONTENT_MEMBERS], "reviewDigest": [*REVIEW_MEMBERS]}


def test_a_redaction_changes_no_digest() -> None:
    digests = {v["digest"] for v in DIGESTS if v["kind"] == "event" and v["record"]["type"] == "comment"} - {
        v["digest"] for v in DIGESTS if v["member"] == "payloadDigest"
    }
    forms = {("payload" in v["record"], "redaction" in v["record"]) for v in DIGESTS if v["digest"] in digests}
    assert len(digests) == 1
    assert forms == {(True, False), (False, True)}


# Derived IDs ---------------------------------------------------------------------------------------------------------

DERIVATIONS: dict[str, Callable[..., str]] = {
    "episode": lambda i: identifiers.episode_id(i["scope"], i["hubOrigin"], i["rootCommentId"]),
    "comment": lambda i: identifiers.comment_event_id(
        i["scope"], i["hubOrigin"], i["commentId"], i["time"], i["author"], i["payloadDigest"]
    ),
    "label": lambda i: identifiers.label_event_id(i["targetEventId"], i["labeler"], i["time"], i["payloadDigest"]),
    "statusChange": lambda i: identifiers.status_event_id(i["episodeId"], i["status"], i["time"], i["actor"]),
    "retraction": lambda i: identifiers.retraction_event_id(i["targetEventId"], i["reason"]),
    "memory": lambda i: identifiers.memory_id(i["scope"], i["kind"], i["category"], i["theme"], i["earlierDecided"]),
    "collection": lambda i: identifiers.collection_id(i["scope"], i["snapshotId"]),
    "audit": lambda i: identifiers.audit_id(i["scope"], i["operation"], i["subject"], i["chunk"]),
}


@pytest.mark.parametrize("vector", IDS, ids=name_vector)
def test_an_id_is_derived_from_its_parts(vector: Vector) -> None:
    prefix, *parts = vector["array"]
    assert rfc8785.dumps(vector["array"]) == vector["canonical"].encode()
    assert vector["id"] == f"{prefix}_{sha256(vector['canonical'].encode())}"
    assert vector["id"] == derive_id(prefix, *parts) == DERIVATIONS[vector["derives"]](vector["inputs"])


def test_every_derivation_has_a_vector_and_no_two_ids_are_equal() -> None:
    assert {vector["derives"] for vector in IDS} == set(DERIVATIONS)
    assert len({vector["id"] for vector in IDS}) == len(IDS)


# Heads ---------------------------------------------------------------------------------------------------------------


def head_of(data: dict[str, Any]) -> Head:
    return Head(data["count"], data["chain"], data["redacted"], data["redactedXor"])


@pytest.mark.parametrize("vector", HEADS["heads"], ids=name_vector)
def test_a_head_adds_up(vector: Vector) -> None:
    head = EMPTY_HEAD
    for step in vector["steps"]:
        if "append" in step:
            head = advance(head, step["append"])
        elif "appendRedacted" in step:
            head = advance(head, step["appendRedacted"], redacted=True)
        else:
            head = advance_redacted(head, step["redact"])
        assert head == head_of(step["head"])


@pytest.mark.parametrize("vector", HEADS["heads"], ids=name_vector)
def test_a_head_adds_up_without_this_code(vector: Vector) -> None:
    count, chain, redacted, marks = 0, "0" * 64, 0, 0
    for step in vector["steps"]:
        ((operation, record_digest_),) = ((name, value) for name, value in step.items() if name != "head")
        if operation != "redact":
            count, chain = count + 1, sha256((chain + record_digest_).encode("ascii"))
        if operation != "append":
            redacted, marks = redacted + 1, marks ^ int(sha256(record_digest_.encode("ascii")), 16)
        expected = {"count": count, "chain": chain, "redacted": redacted, "redactedXor": f"{marks:064x}"}
        assert step["head"] == expected


def test_a_group_without_rows_has_the_empty_head() -> None:
    assert head_of(HEADS["empty"]) == EMPTY_HEAD
    assert set(asdict(EMPTY_HEAD)) == {"count", "chain", "redacted", "redacted_xor"}


@pytest.mark.parametrize("vector", HEADS["groups"], ids=name_vector)
def test_a_record_advances_its_groups(vector: Vector) -> None:
    assert list(record_groups(vector["stream"], vector["record"])) == vector["groups"]


def test_every_stream_and_every_audit_operation_has_a_vector() -> None:
    audit = schemas()["audit-entry.schema.json"]["properties"]
    operations = {v["record"]["operation"] for v in HEADS["groups"] if v["stream"] == "audit"}
    assert operations == set(audit["operation"]["enum"])
    streams = {v["stream"] for v in HEADS["groups"]}
    assert streams == {*audit["records"]["items"]["properties"]["stream"]["enum"], "audit"}

"""Scopes, principals and the characters that no identifier may hold: the core and the contracts say the same."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learning_core.errors import InvalidIdentifier, NotAPerson
from learning_core.identifiers import check_person, has_refused_characters, parse_principal, parse_scope, scope_host
from tests.core.contract_files import Validators, compile_validators, schemas

DEFINITIONS = schemas()["common.schema.json"]["$defs"]
CHARACTERS = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]


def accepts(definition: str, value: Any) -> bool:
    """The verdict, equal in both validators, of one shared definition."""
    verdicts = validators_of(definition).verdicts(value)
    assert verdicts[0] == verdicts[1]
    return verdicts[0]


@cache
def validators_of(definition: str) -> Validators:
    wrapper = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://replica.example/learning/v1/wrapper.schema.json",
        "$ref": f"common.schema.json#/$defs/{definition}",
    }
    return compile_validators("wrapper", {**schemas(), "wrapper.schema.json": wrapper})


# Characters ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("definition", ["identifier", "login"])
def test_the_contracts_refuse_the_same_characters(definition: str) -> None:
    pattern = re.compile(DEFINITIONS[definition]["pattern"])
    differing = [hex(ord(c)) for c in CHARACTERS if (pattern.search(c) is None) != has_refused_characters(c)]
    assert differing == []


@pytest.mark.parametrize("definition", ["humanId", "agentId"])
def test_an_actor_id_refuses_the_same_characters(definition: str) -> None:
    pattern = re.compile(DEFINITIONS[definition]["pattern"])
    start = {"humanId": "github:", "agentId": "agent:"}[definition]
    differing = [hex(ord(c)) for c in CHARACTERS if (pattern.search(start + c) is None) != has_refused_characters(c)]
    assert differing == []


@pytest.mark.parametrize("definition", ["reason", "summary"])
def test_a_text_needs_one_character_that_can_be_seen(definition: str) -> None:
    pattern = re.compile(DEFINITIONS[definition]["pattern"])
    assert [hex(ord(c)) for c in CHARACTERS if (pattern.search(c) is None) != has_refused_characters(c)] == []
    assert DEFINITIONS["content"]["properties"]["text"]["pattern"] == DEFINITIONS[definition]["pattern"]


def test_every_control_format_and_space_character_is_refused() -> None:
    invisible = [c for c in CHARACTERS if unicodedata.category(c) in ("Cc", "Cf", "Zs", "Zl", "Zp")]
    assert len(invisible) > 200
    assert [hex(ord(c)) for c in invisible if not has_refused_characters(c)] == []


@pytest.mark.parametrize("code", [0x3164, 0xFFA0, 0x115F, 0x2800, 0xFE0F, 0xE0100, 0x180B, 0x034F, 0xD800, 0xDFFF])
def test_blank_letters_selectors_and_lone_surrogates_are_refused(code: int) -> None:
    assert has_refused_characters(f"mo{chr(code)}na")


@pytest.mark.parametrize("text", ["mona", "Ünïcode", "日本", "👀", "a-b_c.d", "x\u0301"])
def test_what_can_be_seen_is_allowed(text: str) -> None:
    assert not has_refused_characters(text)
    assert accepts("identifier", text)


# Scopes --------------------------------------------------------------------------------------------------------------

SCOPES = {
    "github.com/acme/checkout-prototypes": "github.com/acme/checkout-prototypes",
    "GitHub.COM/Acme/Checkout.Prototypes": "github.com/acme/checkout.prototypes",
    "github.com/_id/4242": "github.com/_id/4242",
    "local/_id/1": "local/_id/1",
    "ghe.example.com:8443/acme/.github": "ghe.example.com:8443/acme/.github",
    "github.com/acme/...": "github.com/acme/...",
    "github.com/some_owner/x": "github.com/some_owner/x",
}
NO_SCOPES = [
    *("", "acme/checkout", "github.com/acme", "github.com//x", "/acme/x", "github.com/acme/x/y", "github.com/acme/x/"),
    *("https://github.com/acme/x", "mona@github.com/acme/x", "mona:pw@github.com/acme/x", "git@github.com:acme/x"),
    *("github.com/acme/..", "github.com/acme/.", "github.com/../x", "../acme/x", "-github.com/acme/x"),
    *(
        "github.com/_id/0",
        "github.com/_id/007",
        "github.com/_id/x",
        "github.com/_id/99999999999999999",
        "github.com/_x/y",
    ),
    *("github.com/acme/x\n", " github.com/acme/x", "github.com/acme/x y", "github.com/acme/x?y", "github.com/acme/x#y"),
    *(
        "gıthub.com/acme/x",
        "github.com/acme/\u212aelvin",
        "github.com/acme/x\u200b",
        "github.com/acme/٢",
        "a" * 300 + "/b/c",
    ),
]


@pytest.mark.parametrize("text", SCOPES)
def test_a_scope_is_read_in_lower_case(text: str) -> None:
    assert parse_scope(text) == SCOPES[text]
    assert accepts("scope", SCOPES[text])
    assert scope_host(SCOPES[text]) == SCOPES[text].split("/")[0]


@pytest.mark.parametrize("text", NO_SCOPES, ids=ascii)
def test_what_is_no_scope_is_refused(text: str) -> None:
    with pytest.raises(InvalidIdentifier):
        parse_scope(text)
    assert not accepts("scope", text)


@given(st.text("aA09._-:/@ \nıK", max_size=20).map(lambda end: f"github.com/{end}"))
def test_the_core_and_the_contracts_agree_on_scopes(text: str) -> None:
    try:
        scope = parse_scope(text)
    except InvalidIdentifier:
        assert re.search(DEFINITIONS["scope"]["pattern"], text) is None
    else:
        assert re.search(DEFINITIONS["scope"]["pattern"], scope) is not None


# Principals ----------------------------------------------------------------------------------------------------------

PRINCIPALS = {
    "github:mona": ("human", "github:mona"),
    "github:Mona-Lisa": ("human", "github:mona-lisa"),
    "github-user:github.com/9001": ("human", "github-user:github.com/9001"),
    "hub-user:https://hub.example.com/7": ("human", "hub-user:https://hub.example.com/7"),
    "hub-user:http://localhost:8000/7": ("human", "hub-user:http://localhost:8000/7"),
    "agent:replica-learning": ("agent", "agent:replica-learning"),
    "agent:Copilot/gpt-5.2@eu": ("agent", "agent:Copilot/gpt-5.2@eu"),
}
NO_PRINCIPALS = [
    *(
        "",
        "mona",
        "github:",
        "agent:",
        "human:mona",
        "GITHUB:mona",
        "github: mona",
        "github:mona\n",
        "github:mo\u200bna",
    ),
    *("github:\u202eanom", "github:mona\U000e0041", "github:-mona", "agent:a b", "agent:a\u2060b", "agent:a\u3164"),
    *("github-user:9001", "github-user:github.com/mona", "github-user:github.com/0", "github-user:github.com/09001"),
    *(
        "github-user:github.com/٩",
        "hub-user:hub.example.com/7",
        "hub-user:https://hub.example.com/",
        "agent:" + "a" * 300,
    ),
]


@pytest.mark.parametrize("text", PRINCIPALS)
def test_a_principal_is_read(text: str) -> None:
    principal = parse_principal(text, assurance="asserted")
    assert (principal.kind, principal.id) == PRINCIPALS[text]
    assert accepts("principal", principal.data)


@pytest.mark.parametrize("text", NO_PRINCIPALS, ids=ascii)
def test_what_is_no_principal_is_refused(text: str) -> None:
    with pytest.raises(InvalidIdentifier):
        parse_principal(text, assurance="asserted")


@pytest.mark.parametrize("text", [text for text in NO_PRINCIPALS if text != "github:-mona"], ids=ascii)
def test_a_record_refuses_it_too(text: str) -> None:
    for kind in ("human", "agent"):
        assert not accepts("principal", {"kind": kind, "id": text, "assurance": "asserted"})


def test_a_login_is_kept_for_display_only() -> None:
    person = parse_principal("github:Mona", assurance="authenticated")
    assert person.data == {"kind": "human", "id": "github:mona", "assurance": "authenticated", "login": "Mona"}
    agent = parse_principal("agent:a", assurance="asserted", login="Mona")
    assert agent.data == {"kind": "agent", "id": "agent:a", "assurance": "asserted"}


def test_only_a_person_passes_for_a_person() -> None:
    check_person(parse_principal("github:mona", assurance="asserted"), "decide")
    with pytest.raises(NotAPerson, match="Only a person may decide"):
        check_person(parse_principal("agent:a", assurance="authenticated"), "decide")

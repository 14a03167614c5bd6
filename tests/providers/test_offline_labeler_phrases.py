"""The phrase language, how a comment is read into clauses, and that neither costs more than the length of the text."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.labelers.offline.matching import label_text
from providers.labelers.offline.phrases import (
    MAX_GAPS,
    MAX_PHRASE,
    MAX_REPEATS,
    Phrase,
    PhraseError,
    read_phrase,
)
from providers.labelers.offline.reading import MAX_LETTERS, MAX_OWN, MAX_TEXT, MAX_WORDS, Clause, read_clauses
from providers.labelers.offline.themes import PhraseIndex, Themes, load_themes

WORDS = {"should": "should|could|needs to", "docs": "docs|{manual}", "manual": "manual(s)|user guide"}


@cache
def shipped() -> Themes:
    return load_themes()


def found(phrase: str, text: str) -> bool:
    (clause,) = read_clauses(text)
    compiled = read_phrase(phrase, WORDS, ("nit", "we should"), ("not",))
    span = compiled.find(clause.text)
    assert (span is not None) == bool(list(PhraseIndex([(compiled, None)]).find(clause))), "the index loses nothing"
    return span is not None


@pytest.mark.parametrize(
    ("phrase", "yes", "no"),
    [
        ("contrast too low", "the contrast too low", "contrast is too low"),
        ("(low|quite poor) contrast", "a quite poor contrast", "poor contrast"),
        ("add (a|the)? test", "add test", "add some test"),
        ("add (a|new|small)* test", "add a new small test", "add a new new small small test"),
        ("renam*", "renaming", "name"),
        ("*less", "careless", "lessons"),
        ("comment(s|ed)", "comments", "commenter"),
        ("{should} be", "it needs to be", "it must be"),
        ("{docs}", "see the user guide", "see the guide"),
        ("add ... test", "add one or two more good test", "add one or two or three more test"),
        ("add ... test", "add test", "add not one test"),
        ("^ remove", "nit we should remove it", "please remove it"),
        ("typo $", "one typo", "typo here"),
        ("call it <code>", "call it `x`", "call it y"),
        ("call it <code>", 'call it "why"', "call it why"),
        ("drop <quoted>", "drop 'the'", "drop `the`"),
        ("<substitution>", "s/this/that/", "this/that"),
        ("don't care", "dont care", "do not care"),
        ("re-use", "re use it", "reuse it"),
        ("sql/html", "sql html", "sqlhtml"),
        ("Low Contrast", "LOW CONTRAST", "low"),
        ("(*less|foo) x", "careless x", "lesson x"),
        ("a (b|c (d|e)) f", "a c e f", "a c f"),
    ],
)
def test_what_phrases_match(phrase: str, yes: str, no: str) -> None:
    assert (found(phrase, yes), found(phrase, no)) == (True, False)


@pytest.mark.parametrize(
    ("phrase", "reason"),
    [
        ("", "empty"),
        ("()", "empty"),
        ("(a|)", "empty"),
        ("a|b", "parentheses"),
        ("(a", "without its"),
        ("a)", "too many"),
        ("?", "nothing before"),
        ("a **", "means nothing"),
        ("a. b", "means nothing"),
        ("{nowhere}", "no word list"),
        ("{loop}", "holds itself"),
        ("(a|b)(s)", "endings"),
        (" ... ".join("abcd"), f"more than {MAX_GAPS} gaps"),
        (" ".join("(a|b)*" for _ in range(MAX_REPEATS + 1)), f"more than {MAX_REPEATS} repetitions"),
        ("(((((((a)))))))", "deeper"),
        ("a " * MAX_PHRASE, f"longer than {MAX_PHRASE}"),
        (" ".join("{many}" for _ in range(40)), "words with its word lists"),
    ],
)
def test_phrases_that_are_refused(phrase: str, reason: str) -> None:
    with pytest.raises(PhraseError, match=re.escape(reason)):
        read_phrase(phrase, {"loop": "a|{loop}", "many": "|".join(f"w{n}" for n in range(99))})


@given(st.text(alphabet="ab ()|?*.^${}<>'-/", max_size=40))
def test_any_phrase_is_read_or_refused(phrase: str) -> None:
    try:
        compiled = read_phrase(phrase, WORDS)
    except PhraseError:
        return
    compiled.find(" a b a ")


# Reading -------------------------------------------------------------------------------------------------------------


def texts(comment: str) -> list[str]:
    return [clause.text.strip() for clause in read_clauses(comment)]


@pytest.mark.parametrize(
    ("comment", "clauses"),
    [
        ("One. Two! Three? Four", ["one", "two", "three", "four"]),
        ("Good, but slow; late", ["good", "slow", "late"]),
        ("- one\n- two\n3) three", ["one", "two", "three"]),
        ("a hard\nwrapped line\n\nanother", ["a hard wrapped line", "another"]),
        ("e.g. this, i.e. that", ["this that"]),
        ("> quoted\nmine", ["mine"]),
        ("before\n```python\ncode()\n```\nafter", ["before after"]),
        ("before\n```\nnever closed", ["before"]),
        ("```one line``` after", []),
        ("text\n\n    code\n\nmore", ["text", "more"]),
        ("- item\n\n    still the item", ["item", "still the item"]),
        ("`x` and ``y`` and foo_bar and a.b.c", ["¤ and ¤ and ¤ and ¤"]),
        ("call setUp() and run(a, b)", ["call setup and ¤"]),
        ("fix the warning(s)", ["fix the warning"]),
        ("comment/docstring of a/b/c.py", ["comment docstring of ¤"]),
        ("[a link](https://example.com/x) ![alt](y.png)", ["a link"]),
        ("<b>bold</b> a < b", ["bold a b"]),
        ("say \"hello\" or 'bye'", ["say ¤q or ¤q"]),
        ("don’t", ["don't"]),
        ("+1 for N+1", ["+1 for n+1"]),
        ("so\u200bft hy\u00adphen", ["soft hyphen"]),
        ("<!-- a --> b <!-- c", ["b"]),
        ("MyClass isn't JavaScript", ["¤ isn't ¤"]),
        ("これは。それは？", ["これは", "それは"]),
        ("?!... :-) 🙂", []),
    ],
)
def test_what_is_read(comment: str, clauses: list[str]) -> None:
    assert [text for text in texts(comment) if text] == clauses


def test_a_question_mark_belongs_to_the_last_part() -> None:
    assert [(clause.text.strip(), clause.question) for clause in read_clauses("Nice, but why? Ok. So？")] == [
        ("nice", False),
        ("why", True),
        ("ok", False),
        ("so", True),
    ]


# The cost ------------------------------------------------------------------------------------------------------------

ADVERSARIAL = [
    *(
        "a",
        "a ",
        "(",
        "[",
        "`",
        "``a",
        "<!--",
        "[a](",
        '"a',
        " 'a",
        "s/a/",
        "\n",
        "> a\n",
        "```\n",
        ".",
        ".a",
        "?! ",
        " but ",
    ),
    *(
        "http://",
        "a.b(",
        "AaBb",
        "\u200d",
        "- ",
        "/",
        "a/",
        "    code\n\n",
        "<a ",
        "👩‍👧 ",
        "test\r\n",
        "not ",
        "\ufdfa",
    ),
    *("add a new test for ", "should we also really just ", "this is too ", "don't think we need a "),
]


@pytest.mark.parametrize("unit", ADVERSARIAL)
def test_a_huge_comment_is_read_in_bounded_pieces(unit: str) -> None:
    clauses = read_clauses(unit * (2 * MAX_TEXT // len(unit)))
    assert sum(len(clause.words) for clause in clauses) <= MAX_OWN
    assert max((len(clause.words) for clause in clauses), default=0) <= MAX_WORDS
    assert max((len(word) for clause in clauses for word in clause.words), default=0) <= MAX_LETTERS


@pytest.mark.parametrize("unit", ["add a new test for ", "this is too ", "don't think we need a ", "contrast. "])
def test_the_work_grows_no_faster_than_the_text(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    searched = 0
    find = Phrase.find

    def count(self: Phrase, clause: str) -> Any:
        nonlocal searched
        searched += len(clause)
        return find(self, clause)

    monkeypatch.setattr(Phrase, "find", count)

    def cost(length: int) -> int:
        nonlocal searched
        searched = 0
        label_text(unit * (length // len(unit)), shipped())
        return searched

    short, long, huge, larger = cost(4_000), cost(8_000), cost(MAX_TEXT), cost(2 * MAX_TEXT)
    assert short < long <= 2.2 * short
    assert huge == larger


def test_no_phrase_repeats_without_a_bound() -> None:
    phrases = [phrase for theme in shipped().by_key.values() for phrase in theme.patterns + theme.topics + theme.vetoes]
    for phrase in phrases:
        pattern = phrase.compiled.pattern.replace("[^ ]+ ", "").replace(r"\+", "")
        assert not re.search(r"[*+]|\{\d+,\}", pattern), phrase.source


def test_the_index_finds_what_trying_every_phrase_finds() -> None:
    pairs = [
        (phrase, theme.key)
        for theme in shipped().by_key.values()
        for phrase in theme.patterns + theme.topics + theme.vetoes
    ]
    index = PhraseIndex(pairs)
    for theme in shipped().by_key.values():
        for text in theme.examples + theme.counterexamples:
            for clause in read_clauses(text):
                tried = [(phrase, key) for phrase, key in pairs if phrase.find(clause.text)]
                assert [(phrase, key) for phrase, key, _ in index.find(clause)] == tried


def test_the_keys_of_a_clause_have_no_apostrophes() -> None:
    assert Clause(("don't", "dont", "x"), question=False).keys == {"dont", "x"}

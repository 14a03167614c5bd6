"""The offline labeler over its protocol, and what a comment says: it asks, praises, contradicts, or none of these."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learning_core.errors import InvalidConfiguration
from learning_core.plugins import CATEGORIES, OBSERVATIONS, LabelComment, LabelRequest, LabelThread
from providers.labelers.offline import create_labeler
from providers.labelers.offline.matching import MAX_LABELS, Label, label_text
from providers.labelers.offline.themes import Themes, load_themes

ELEMENT = {"kind": "element", "selector": "#pay"}
FILE = {"kind": "file", "path": "shop/cart.py", "line": 7}


@cache
def shipped() -> Themes:
    return load_themes()


def hear(text: str, **options: Any) -> list[tuple[str, str]]:
    return [(label.theme, label.observation) for label in label_text(text, shipped(), **options)]


def comment(event_id: str, body: str, *, reply: bool = False, target: Any = None, ask: bool = True) -> LabelComment:
    return LabelComment(event_id, body, reply, target, ask)


def request(*threads: tuple[LabelComment, ...]) -> LabelRequest:
    return LabelRequest(tuple(LabelThread(f"episode_{n}", thread) for n, thread in enumerate(threads)), ())


# The protocol --------------------------------------------------------------------------------------------------------


def test_a_label_has_what_the_contract_asks_for() -> None:
    labeler = create_labeler({})
    answer = labeler.label(request((comment("event_1", "The contrast of this button is too low.", target=ELEMENT),)))
    theme = shipped().by_key["color-contrast"]
    assert [dict(label) for label in answer.labels] == [
        {
            "eventId": "event_1",
            "category": "accessibility",
            "theme": "color-contrast",
            "observation": "problem",
            "summary": theme.instruction,
            "explanation": f'matched "{theme.patterns[0].source}"',
        }
    ]
    assert (answer.usage.requests, answer.usage.nano_aiu, answer.model) == (0, 0, None)
    labeler.close()


def test_only_comments_that_are_asked_about_get_labels() -> None:
    thread = (
        comment("event_1", "The contrast is too low.", target=ELEMENT, ask=False),
        comment("event_2", "Agreed.", reply=True),
        comment("event_3", "There is no visible focus ring either.", reply=True),
    )
    answer = create_labeler({}).label(request(thread))
    assert [(label["eventId"], label["theme"]) for label in answer.labels] == [("event_3", "focus-visible")]


def test_a_reply_is_about_the_target_of_its_thread() -> None:
    def themes(target: Any) -> set[str]:
        thread = (comment("event_1", "Hm.", target=target), comment("event_2", "Fix the alignment.", reply=True))
        return {label["theme"] for label in create_labeler({}).label(request(thread)).labels}

    assert (themes(ELEMENT), themes(FILE)) == ({"element-alignment"}, {"code-layout"})


def test_it_sends_nothing_anywhere() -> None:
    assert create_labeler({}).manifest() == {"id": "offline", "version": "1", "sendsTo": []}


@pytest.mark.parametrize("options", [{"theme": "x.toml"}, {"themes": 1}])
def test_options_that_do_not_exist_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration):
        create_labeler(options)


def test_the_option_themes_adds_a_file(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text(
        '[themes.price-rounding]\ncategory = "content"\ninstruction = "Round prices to the cent."\n'
        'patterns = ["round* the price"]\n'
    )
    answer = create_labeler({"themes": str(file)}).label(request((comment("event_1", "Please round the price."),)))
    assert [label["theme"] for label in answer.labels] == ["price-rounding"]


# What a clause says --------------------------------------------------------------------------------------------------

PROBLEM, STRENGTH, DISAGREEMENT = OBSERVATIONS


@pytest.mark.parametrize(
    ("text", "theme"),
    [
        ("Contrast is too low here.", "color-contrast"),
        ("Agreed, the contrast is too low.", "color-contrast"),
        ("+1, we should use a constant here", "named-constants"),
        ("Could we use a constant here?", "named-constants"),
        ("why not use a constant", "named-constants"),
        ("Shouldn't this be a const?", "named-constants"),
        ("Isn't the contrast too low?", "color-contrast"),
        ("typo?", "clear-wording"),
        ("Please check the contrast of the footer.", "color-contrast"),
        ("LGTM, but please add a test.", "add-tests"),
        ("We should not use a modal here.", "dialogs"),
        ("dont hardcode this", "named-constants"),
        ("We don't need this.", "unneeded-code"),
        ("This would be a nice test to have: add a test for an empty cart.", "test-edge-cases"),
    ],
)
def test_problems(text: str, theme: str) -> None:
    assert (theme, PROBLEM) in hear(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Agreed.",
            "+1",
            "Done",
            "done, added a test",
            "LGTM",
            "thanks!",
            "Good catch",
            "ack",
            "Yes, fixed.",
            ":)",
            "",
        ),
        *("I've added a unit test.", "Added a docstring.", "We already renamed this method.", "I'll add a test."),
        *(
            "Is this used?",
            "Why do we need this file at all?",
            "Who wrote the docs?",
            "Does the contrast pass?",
            "What is a const?",
        ),
        *("Why is the contrast too low?", "Did you add a test?", "Do we have a docstring?"),
        "You should know that I looked at the whole page and at its contrast.",
        *("Not a typo.", "I don't see a typo.", "The spacing is not too tight.", "This is not a race condition."),
        *(
            "Note to self: add a test.",
            "I'm not asking you to add a test.",
            "The contrast.",
            "no need to change the name",
        ),
    ],
)
def test_nothing_is_asked_for(text: str) -> None:
    assert hear(text) == []


@pytest.mark.parametrize(
    ("text", "theme"),
    [
        ("Nice contrast!", "color-contrast"),
        ("I love the spacing here.", "spacing"),
        ("Thanks for adding tests.", "add-tests"),
        ("Looks good to me, nice tests!", "add-tests"),
        ("Great error message", "error-messages"),
        ("The focus ring is very clear.", "focus-visible"),
    ],
)
def test_strengths(text: str, theme: str) -> None:
    assert hear(text) == [(theme, STRENGTH)]


@pytest.mark.parametrize(
    ("text", "theme"),
    [
        ("I don't think we need more contrast here.", "color-contrast"),
        ("no need for a test here, it is covered", "add-tests"),
        ("No need to add a comment here.", "explain-with-comment"),
        ("We don't need a release note for this.", "release-notes"),
        ("The contrast is fine as it is.", "color-contrast"),
        ("I disagree with bigger touch targets.", "target-size"),
        ("Captions are not required.", "captions-and-transcripts"),
        ("A changelog entry isn't necessary.", "release-notes"),
        ("More contrast is not necessary.", "color-contrast"),
        ("An undo button is not needed here.", "undo"),
    ],
)
def test_disagreements(text: str, theme: str) -> None:
    assert hear(text) == [(theme, DISAGREEMENT)]


@pytest.mark.parametrize("text", ["I don't think we need this test.", "We don't need these tests any more."])
def test_dropping_one_test_is_no_disagreement_with_testing(text: str) -> None:
    assert DISAGREEMENT not in {observation for _, observation in hear(text)}


def test_a_turn_parts_praise_from_a_problem() -> None:
    found = hear("I like the contrast, but the spacing is too tight.", target="element")
    assert found == [("spacing", PROBLEM), ("color-contrast", STRENGTH)]


def test_a_question_in_a_reply_about_a_topic_asks_for_nothing() -> None:
    text = "Should we keep the contrast?"
    assert (hear(text), hear(text, is_reply=True)) == ([("color-contrast", PROBLEM)], [])
    assert hear("Could you add a test for this?", is_reply=True) == [("add-tests", PROBLEM)]


@pytest.mark.parametrize(
    "text",
    [
        "> The contrast is too low.\n\nDone.",
        "```suggestion\nadd a test\n```",
        "~~~\nThe contrast is too low.\n~~~",
        "Try this:\n\n    # the contrast is too low\n",
        "`contrast too low` is the title of the page",
        'The page says "the contrast is too low".',
        "See https://example.com/contrast-too-low",
        "![contrast too low](shot.png)",
        "<!-- the contrast is too low -->",
    ],
)
def test_other_peoples_words_are_not_heard(text: str) -> None:
    assert hear(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "The contrast\r\nis too low.",
        "THE CONTRAST IS TOO LOW",
        "👩‍👩‍👧 the con\u200btrast is too low 😉",
        "\u202bThe contrast is too low\u202c",
        "nit: contrast (here, too) is too low",
        "1. Hm.\n2. The contrast is too low.",
        "שלום: the contrast is too low.",
    ],
)
def test_how_it_is_written_does_not_matter(text: str) -> None:
    assert hear(text) == [("color-contrast", PROBLEM)]


def test_targets_narrow_what_can_be_meant() -> None:
    text = "The alignment is off."
    assert hear(text, target="element") == [("element-alignment", PROBLEM)]
    assert hear(text, target="file") == [("code-layout", PROBLEM)]
    assert {theme for theme, _ in hear(text)} <= {"element-alignment", "code-layout"} != set()


# The choice of labels ------------------------------------------------------------------------------------------------


def test_three_labels_at_most_and_the_problems_first() -> None:
    text = (
        "Nice focus ring! The contrast is too low. Please add a docstring. This should be documented in the changelog. "
        "There is a typo in the title. No need for an undo button."
    )
    found = hear(text)
    assert len(found) == MAX_LABELS
    assert {observation for _, observation in found} == {PROBLEM}


def test_a_problem_comes_before_praise() -> None:
    assert hear("Nice focus ring! Please check the contrast.") == [
        ("color-contrast", PROBLEM),
        ("focus-visible", STRENGTH),
    ]


def test_the_longest_phrase_wins_where_themes_overlap() -> None:
    assert hear("Please add a test for the empty cart.") == [("test-edge-cases", PROBLEM)]


def test_one_label_for_a_theme() -> None:
    assert hear("The contrast is too low. The contrast of the footer is too low too.") == [("color-contrast", PROBLEM)]
    assert hear("Nice contrast in the title. The contrast of the footer is too low.") == [("color-contrast", PROBLEM)]


# Any text ------------------------------------------------------------------------------------------------------------


@cache
def vocabulary() -> list[str]:
    phrases = [phrase.source for theme in shipped().by_key.values() for phrase in theme.patterns + theme.topics]
    examples = [text for theme in shipped().by_key.values() for text in theme.examples + theme.counterexamples]
    return sorted({word for text in phrases + examples for word in re.findall(r"[\w'<>]+", text)})


MARKS = [
    ".",
    "?",
    "!",
    "\n",
    "\n\n",
    "> ",
    "```\n",
    "`",
    '"',
    "- ",
    "but",
    "not",
    "nit:",
    "🙂",
    "\u200d",
    "\u202e",
    "\r\n",
]
texts = st.one_of(
    st.text(),
    st.lists(st.one_of(st.deferred(lambda: st.sampled_from(vocabulary())), st.sampled_from(MARKS)), max_size=60).map(
        " ".join
    ),
)


@given(texts, st.booleans(), st.sampled_from([None, "element", "file", "page"]))
def test_every_text_gets_sound_labels(text: str, is_reply: bool, target: str | None) -> None:
    themes = shipped()
    labels = label_text(text, themes, is_reply=is_reply, target=target)
    assert labels == label_text(text, themes, is_reply=is_reply, target=target)
    assert len(labels) <= MAX_LABELS
    assert len({label.theme for label in labels}) == len(labels)
    for label in labels:
        check_sound(label, themes, target)


def check_sound(label: Label, themes: Themes, target: str | None) -> None:
    theme = themes.by_key[label.theme]
    sources = {phrase.source for phrase in theme.patterns + theme.topics}
    assert label.explanation in {f'matched "{source}"' for source in sources}
    assert (label.category, label.summary) == (theme.category, theme.instruction)
    assert label.category in CATEGORIES
    assert label.observation in OBSERVATIONS
    assert target is None or not theme.targets or target in theme.targets

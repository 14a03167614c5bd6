"""The shipped themes hear their own examples; a team's file adds, replaces and is refused with a reason."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from learning_core.plugins import CATEGORIES
from providers.labelers.offline.matching import label_text
from providers.labelers.offline.themes import InvalidThemes, Theme, Themes, load_themes


@cache
def shipped() -> Themes:
    return load_themes()


def problems(text: str, theme: Theme, themes: Themes) -> set[str]:
    target = min(theme.targets, default=None)
    return {label.theme for label in label_text(text, themes, target=target) if label.observation == "problem"}


# The shipped file ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", list(load_themes().by_key))
def test_every_theme_hears_its_examples_and_no_counterexample(key: str) -> None:
    theme = shipped().by_key[key]
    assert theme.examples
    assert theme.counterexamples
    assert [text for text in theme.examples if key not in problems(text, theme, shipped())] == []
    assert [text for text in theme.counterexamples if key in problems(text, theme, shipped())] == []


def test_the_file_covers_prototypes_and_code() -> None:
    counts = Counter(theme.category for theme in shipped().by_key.values())
    assert counts.total() >= 110
    assert set(counts) == set(CATEGORIES)
    assert [category for category in CATEGORIES if category != "other" and counts[category] < 5] == []


def test_instructions_are_sentences_of_their_own() -> None:
    instructions = [theme.instruction for theme in shipped().by_key.values()]
    assert len(set(instructions)) == len(instructions)
    assert [text for text in instructions if not text.endswith(".") or not text[0].isupper()] == []


def test_every_phrase_compiles_and_an_explanation_fits_the_contract() -> None:
    for theme in shipped().by_key.values():
        for phrase in theme.patterns + theme.topics + theme.vetoes:
            assert phrase.compiled.pattern
            assert len(f'matched "{phrase.source}"') <= 500


# A team's file -------------------------------------------------------------------------------------------------------


def load(tmp_path: Path, text: str) -> Themes:
    file = tmp_path / "ours.toml"
    file.write_text(text, encoding="utf-8")
    return load_themes(file)


def hear(text: str, themes: Themes) -> list[tuple[str, str]]:
    return [(label.theme, label.observation) for label in label_text(text, themes)]


def test_a_theme_with_our_key_replaces_ours(tmp_path: Path) -> None:
    themes = load(
        tmp_path,
        '[themes.color-contrast]\ncategory = "accessibility"\ninstruction = "Ask Ada."\n'
        'patterns = ["(dim|murky) text"]\n',
    )
    assert hear("The contrast is too low.", themes) == []
    (label,) = label_text("The dim text again.", themes)
    assert (label.theme, label.summary, label.explanation) == (
        "color-contrast",
        "Ask Ada.",
        'matched "(dim|murky) text"',
    )


def test_a_theme_without_phrases_is_switched_off(tmp_path: Path) -> None:
    themes = load(tmp_path, '[themes.clear-wording]\ncategory = "documentation"\ninstruction = "Off."\npatterns = []\n')
    assert (hear("Typo.", shipped()), hear("Typo.", themes)) == ([("clear-wording", "problem")], [])


def test_word_lists_and_cues_are_shared_with_ours(tmp_path: Path) -> None:
    themes = load(
        tmp_path,
        '[words]\nbasket = "cart(s)|basket(s)"\n[cues]\nrequest = ["gimme"]\n'
        '[themes.cart]\ncategory = "content"\ninstruction = "Say basket."\npatterns = ["{missing} {some}* {basket}"]\n'
        'topics = ["basket wording"]\n',
    )
    assert hear("There is no small cart.", themes) == [("cart", "problem")]
    assert hear("Gimme basket wording.", themes) == [("cart", "problem")]
    assert hear("Please check the basket wording.", themes) == [("cart", "problem")]


GERMAN = """
[cues]
lead-in = ["bitte"]
praise = ["(schöner|toller)"]
against = ["(wir brauchen|hier braucht es) (keinen|nicht mehr)"]
stop = ["nicht", "kein", "keine"]
[themes.kontrast]
category = "accessibility"
instruction = "Text muss sich vom Hintergrund abheben, mit einem Kontrast von mindestens 4,5 zu 1."
patterns = ["kontrast ... (zu (gering|niedrig)|reicht nicht)", "^ kontrast (erhöhen|verbessern)"]
topics = ["kontrast"]
"""


@pytest.mark.parametrize(
    ("text", "observation"),
    [
        ("Der Kontrast des Knopfs ist zu gering.", "problem"),
        ("Bitte Kontrast erhöhen!", "problem"),
        ("Schöner Kontrast!", "strength"),
        ("Hier braucht es keinen Kontrast.", "disagreement"),
        ("Der Kontrast ist nicht zu gering.", None),
    ],
)
def test_another_language_is_a_themes_file(tmp_path: Path, text: str, observation: str | None) -> None:
    themes = load(tmp_path, GERMAN)
    assert hear(text, themes) == ([] if observation is None else [("kontrast", observation)])


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("*コントラスト*", "ボタンのコントラストが低すぎます。"),
        ("छोटा बटन", "यह छोटा बटन है"),
        ("تباين ضعيف", "هناك تباين ضعيف؟؟ هنا"),
        ("e\u0301cart trop petit", "Un écart trop petit gêne"),
        ("écart trop petit", "Un e\u0301cart trop petit gêne"),
    ],
)
def test_any_script(tmp_path: Path, phrase: str, text: str) -> None:
    themes = load(tmp_path, f'[themes.x]\ncategory = "other"\ninstruction = "Do."\npatterns = ["{phrase}"]\n')
    assert [label.theme for label in label_text(f"Nit: {text}", themes)] == ["x"]


def test_the_example_of_the_docs_works(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "labelers.md").read_text(encoding="utf-8")
    themes = load(tmp_path, text.split("```toml\n")[1].split("```")[0])
    theme = themes.by_key["rounded-prices"]
    assert [problems(example, theme, themes) for example in theme.examples] == [{"rounded-prices"}]
    assert [problems(example, theme, themes) for example in theme.counterexamples] == [set()]
    assert hear("The prices on this page are not rounded.", themes) == [("rounded-prices", "problem")]


# Refusals ------------------------------------------------------------------------------------------------------------

THEME = '[themes.x]\ncategory = "content"\ninstruction = "Do it."\n'


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("themes = 1", "themes"),
        ("[theme.x]", "theme"),
        ("not toml", "file"),
        ('[themes.Upper]\ncategory = "content"\ninstruction = "Do it."', "themes.Upper"),
        ('[themes]\nx = "content"', "themes.x"),
        ('[themes.x]\ninstruction = "Do it."', "themes.x"),
        ('[themes.x]\ncategory = "content"', "themes.x"),
        ('[themes.x]\ncategory = "colour"\ninstruction = "Do it."', "themes.x.category"),
        ('[themes.x]\ncategory = "content"\ninstruction = ""', "themes.x.instruction"),
        ('[themes.x]\ncategory = "content"\ninstruction = "Do\\nit."', "themes.x.instruction"),
        (f'[themes.x]\ncategory = "content"\ninstruction = "{"a" * 301}"', "themes.x.instruction"),
        ('[themes.x]\ncategory = 1\ninstruction = "Do it."', "themes.x.category"),
        (THEME + 'pattern = ["a"]', "themes.x.pattern"),
        (THEME + 'patterns = "a"', "themes.x.patterns"),
        (THEME + "patterns = [1]", "themes.x.patterns"),
        (THEME + 'patterns = ["(a"]', "themes.x.patterns"),
        (THEME + 'topics = ["{nowhere}"]', "themes.x.topics"),
        (THEME + 'not = ["a || b"]', "themes.x.not"),
        (THEME + 'targets = ["screen"]', "themes.x.targets"),
        ('[words]\nx = ["a"]', "words.x"),
        ('[words]\nx = "{x}"\n' + THEME + 'patterns = ["{x}"]', "themes.x.patterns"),
        ('[cues]\npraise = "good"', "cues.praise"),
        ('[cues]\nmood = ["good"]', "cues.mood"),
        ('[cues]\npraise = ["(good"]', "cues.praise"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_place(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(InvalidThemes) as refused:
        load(tmp_path, text)
    assert refused.value.code == "invalid_themes"
    assert refused.value.details == {"file": "ours.toml", "place": place}
    assert str(refused.value).startswith(f"The themes file ours.toml is refused at {place}: ")


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"# " + b"a" * 1_000_001])
def test_bytes_that_are_no_themes_file_are_refused(tmp_path: Path, raw: bytes) -> None:
    file = tmp_path / "ours.toml"
    file.write_bytes(raw)
    with pytest.raises(InvalidThemes):
        load_themes(file)


@pytest.mark.parametrize("name", ["missing.toml", "."])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidThemes):
        load_themes(tmp_path / name)

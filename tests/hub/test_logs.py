"""Log lines name exceptions and never quote them."""

from __future__ import annotations

import logging

import pytest

from hub_learning.logs import CodesOnlyFormatter, describe_failure
from learning_core.errors import LearningError, NotFound

SENTINEL = "quixotic-zebra-7731"


def fail() -> None:
    try:
        raise NotFound(SENTINEL, record_id=SENTINEL)
    except LearningError as error:
        raise ValueError(SENTINEL) from error


def test_a_formatted_exception_has_classes_codes_and_places_only() -> None:
    with pytest.raises(ValueError, match=SENTINEL) as failed:
        fail()
    exception = (failed.type, failed.value, failed.tb)
    record = logging.LogRecord("hub", logging.ERROR, __file__, 1, "it failed", None, exception)
    text = CodesOnlyFormatter().format(record)
    assert text.startswith("ERROR hub: it failed\nbuiltins.ValueError\n")
    assert "learning_core.errors.NotFound (not_found)" in text
    assert f"{__file__}:" in text
    assert SENTINEL not in text


def test_a_failure_in_one_line_says_where() -> None:
    with pytest.raises(ValueError, match=SENTINEL) as failed:
        fail()
    line = describe_failure(failed.value)
    assert line.startswith(f"builtins.ValueError at {__file__}:")
    assert line.endswith(" in fail")

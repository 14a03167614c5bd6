"""What people type: a text that nobody can see counts as empty."""

from __future__ import annotations

import pytest

from hub_learning.pages.forms import EditForm, RejectForm

DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize("text", ["", "   ", "\u200b", "\u2066\u2069\ufeff", "\u2800\u3164"])
def test_a_text_that_nobody_can_see_is_empty(text: str) -> None:
    rejection = RejectForm({"review_digest": DIGEST, "reason": text})
    assert set(rejection.errors) == {"reason"}
    edit = EditForm({"review_digest": DIGEST, "text": text}, contested=False)
    assert set(edit.errors) == {"text"}


def test_a_text_that_somebody_can_see_is_kept() -> None:
    rejection = RejectForm({"review_digest": DIGEST, "reason": "Not\u200dhere."})
    assert rejection.is_valid()
    assert rejection.cleaned_data["reason"] == "Not\u200dhere."

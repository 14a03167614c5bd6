"""The forms that people fill in. They check shape only; whether something is allowed, the core says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import QueryDict

from learning_core.display import clean_field

MAX_TEXT = 2000
PURPOSES = {
    "review": ("Review", "Administrators see the comments as evidence, and the labeler reads them to find themes."),
    "instruction": ("Instruction", "Themes become proposals, and agents get the learnings that you accept."),
    "evaluation": ("Evaluation", "Past comments become test cases that measure a learning before it goes live."),
    "analytics": ("Analytics", "Counts over time, for reports about reviews."),
    "training": ("Training", "Comments may leave the Hub to train a model. Nothing in the Hub trains one."),
    "publication": ("Publication", "Accepted learnings may be published where others read them."),
}


@dataclass(frozen=True, slots=True)
class Choice:
    """One box to tick."""

    name: str
    title: str
    meaning: str
    html_id: str
    checked: bool


class VisibleText(forms.CharField):
    """A text that a person can see. One of nothing but blank and invisible characters counts as empty."""

    def to_python(self, value: Any) -> str:
        """The text, or an empty one."""
        text = str(super().to_python(value))
        return text if clean_field(text).strip() else ""


def reason_field(label: str, missing: str, *, required: bool = True) -> VisibleText:
    """A sentence that is kept beside the person's name."""
    return VisibleText(
        label=label,
        required=required,
        help_text="One sentence. It is kept beside your name.",
        max_length=MAX_TEXT,
        error_messages={"required": missing},
        widget=forms.Textarea({"rows": 2, "dir": "auto"}),
    )


class DecisionForm(forms.Form):
    """One way to decide. `review_digest` is the version that the person was shown.

    `changed` adds the box to tick when that version is not the one that their form was first about. Whether a reason
    is needed, the core decides; the form only asks for it.
    """

    decision: str
    review_digest = forms.RegexField(r"\Asha256:[0-9a-f]{64}\Z", widget=forms.HiddenInput)

    def __init__(self, data: Mapping[str, Any] | None = None, *, changed: bool = False, **options: Any) -> None:
        super().__init__(data, auto_id=f"{self.decision}_%s", **options)
        self.add_fields()
        if changed:
            self.fields["changed"] = forms.CharField(widget=forms.HiddenInput, initial="yes")
            self.fields["confirmed"] = forms.BooleanField(
                label="I have read what changed",
                error_messages={"required": "Tick the box once you have read what changed."},
            )

    def add_fields(self) -> None:
        """The fields that depend on what is decided about."""

    def clean(self) -> dict[str, Any]:
        """Browsers send line breaks as CR LF; a text that nobody changed must come back as it was."""
        values = super().clean() or self.cleaned_data
        return {name: _normalize_breaks(value) for name, value in values.items()}


class AcceptForm(DecisionForm):
    """Accept the text as it is. A contested proposal asks why."""

    decision = "accept"

    def __init__(self, data: Mapping[str, Any] | None = None, *, contested: bool, **options: Any) -> None:
        self.contested = contested
        super().__init__(data, **options)

    def add_fields(self) -> None:
        if self.contested:
            # The browser asks for it; whether it may be missing, the store says.
            self.fields["reason"] = reason_field("Why accept it although someone disagrees?", "", required=False)
            self.fields["reason"].widget.attrs["required"] = True


class EditForm(AcceptForm):
    """Accept another text."""

    decision = "edit"
    text = VisibleText(
        label="The instruction, as agents will get it",
        max_length=MAX_TEXT,
        error_messages={"required": "Write the instruction that you accept."},
        widget=forms.Textarea({"rows": 4, "dir": "auto"}),
    )


class RejectForm(DecisionForm):
    """Reject it, and say why."""

    decision = "reject"
    reason = reason_field("Why not?", "Say in one sentence why you reject it.")


class RetireForm(DecisionForm):
    """Stop handing an accepted learning to agents."""

    decision = "retire"
    reason = reason_field(
        "Why should agents stop getting it?", "Say in one sentence why agents should stop getting it."
    )


class PurposesForm(forms.Form):
    """Which purposes a permission, or its end, is about, and why. `prefix` keeps the IDs of several forms apart."""

    reason = reason_field("Why?", "Say in one sentence why.")

    def __init__(
        self, data: Mapping[str, Any] | None, *, offered: Sequence[str], name: str, checked: Sequence[str]
    ) -> None:
        super().__init__(data, auto_id=f"{name}_%s")
        self.fields["purposes"] = forms.MultipleChoiceField(
            choices=[(purpose, purpose) for purpose in offered],
            error_messages={"required": "Choose at least one use."},
        )
        self.offered, self.name = offered, name
        self.checked = data.getlist("purposes") if isinstance(data, QueryDict) else checked

    @property
    def choices(self) -> list[Choice]:
        """One box a purpose, with its meaning."""
        return [
            Choice(purpose, *PURPOSES[purpose], f"{self.name}_{purpose}", purpose in self.checked)
            for purpose in self.offered
        ]


def _normalize_breaks(value: Any) -> Any:
    return value.replace("\r\n", "\n") if isinstance(value, str) else value

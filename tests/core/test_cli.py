"""The command: what may be typed, what is printed, and how it ends."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from learning_core.cli import Workspace, main
from learning_core.errors import Busy
from learning_core.plugins import LabelAnswer, LabelRequest, Usage
from providers.consolidators import recurrence
from providers.storage.in_memory import InMemoryProvider

LOG = Path(__file__).parents[2] / "examples" / "synthetic_log.json"
LABELS = Path(__file__).parents[1] / "fixtures" / "logs" / "synthetic.labels.json"
SCOPE = "github.example/acme/checkout-prototypes"
PERSON = ("--by", "github:mona")


class SilentLabeler:
    """Asks for nothing, labels nothing, and can be told to fail."""

    def __init__(self, failure: Exception | None = None, at_the_end: Exception | None = None) -> None:
        self.failure, self.at_the_end = failure, at_the_end
        self.closed = 0

    def manifest(self) -> dict[str, Any]:
        return {"id": "silent", "version": "1", "sendsTo": []}

    def label(self, request: LabelRequest) -> LabelAnswer:
        if self.failure is not None:
            raise self.failure
        return LabelAnswer([], Usage(requests=1, input_tokens=10))

    def close(self) -> None:
        self.closed += 1
        if self.at_the_end is not None:
            raise self.at_the_end


class Host:
    """A host over one store in memory."""

    def __init__(self) -> None:
        self.provider = InMemoryProvider()
        self.labeler = SilentLabeler()
        self.busy = False

    def open_workspace(self, repository: str | None, directory: str | None) -> Workspace:
        def take_turn(seconds: float) -> Any:
            if self.busy:
                raise Busy("The repository is being worked on; try again in a moment.")
            return nullcontext()

        return Workspace(
            repository or SCOPE,
            self.provider,
            {"store": "in-memory (a test)"},
            lambda: self.labeler,
            lambda: recurrence.create_consolidator({}),
            take_turn,
            lambda path: None,
        )


class Result:
    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.out)
        return value


Run = Callable[..., Result]


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
def run(host: Host) -> Run:
    def run_command(*arguments: str, stdin: str = "") -> Result:
        out, err = io.StringIO(), io.StringIO()
        status = main(arguments, host=host, stdin=io.StringIO(stdin), stdout=out, stderr=err)
        return Result(status, out.getvalue(), err.getvalue())

    return run_command


@pytest.fixture
def proposed(run: Run) -> list[dict[str, Any]]:
    """Proposals from the synthetic log."""
    purposes = ("--purpose", "review", "--purpose", "instruction")
    assert run("grants", "add", *purposes, "--source", "hub-comments", "--reason", "We agreed.", *PERSON).status == 0
    assert run("import", "hub-comments", str(LOG)).status == 0
    assert run("label", str(LABELS)).status == 0
    assert run("consolidate", "--from", "2026-01-01", "--to", "2026-11-01").status == 0
    rows: list[dict[str, Any]] = run("memories", "--json").json["memories"]
    assert rows
    return rows


# What may be typed ---------------------------------------------------------------------------------------------------


def usage_error(run: Run, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        run(*arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("grants", "add", "--purpose", "review", "--source", "hub-comments", "--reason", "x"),
        ("grants", "withdraw", "grant_1", "--reason", "x"),
        ("accept", "memory_1", "--review-digest", "sha256:0"),
        ("reject", "memory_1", "--review-digest", "sha256:0", "--reason", "x"),
        ("retire", "memory_1", "--reason", "x"),
        ("supersede", "memory_1", "--replaces", "memory_2"),
        ("redact", "--comment", "101"),
    ],
)
def test_what_people_do_needs_by(run: Run, capsys: pytest.CaptureFixture[str], arguments: Sequence[str]) -> None:
    assert "--by" in usage_error(run, capsys, *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nonsense",),
        ("grants",),
        ("import", "other-source", "log.json"),
        ("grants", "add", "--purpose", "marketing", "--source", "hub-comments", "--reason", "x", *PERSON),
        ("memories", "--state", "pending"),
        ("recall",),
        ("recall", "--task", "a", "--task-file", "b"),
        ("recall", "--task", "a", "--budget", "many"),
        ("redact", *PERSON),
        ("redact", "event_1", "--comment", "101", *PERSON),
        ("consolidate", "--from", "2026-01-01"),
        ("memor",),
    ],
)
def test_wrong_usage_ends_with_2(run: Run, capsys: pytest.CaptureFixture[str], arguments: Sequence[str]) -> None:
    assert usage_error(run, capsys, *arguments)


def test_common_options_stand_before_or_after_the_subcommand(run: Run) -> None:
    before = run("--json", "--repository", "github.com/acme/other", "doctor")
    after = run("doctor", "--json", "--repository", "github.com/acme/other")
    assert before.json == after.json
    assert before.json["scope"] == "github.com/acme/other"


@pytest.mark.parametrize(
    "by", ["mona", "github:mo\u200bna", "github:", "agent:", "human:1", "github-user:github.com/x"]
)
def test_a_malformed_principal_is_refused(run: Run, by: str) -> None:
    result = run("recall", "--task", "x", "--by", by)
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith("error: invalid_identifier: ")


def test_a_bot_is_no_person(run: Run) -> None:
    for by in ("github:copilot-swe-agent[bot]", "github:Copilot[BOT]"):
        purpose = ("--purpose", "review", "--source", "hub-comments", "--reason", "x")
        result = run("grants", "add", *purpose, "--by", by)
        assert (result.status, result.err.split(":")[1]) == (1, " invalid_identifier")
        assert "agent:<id>" in result.err
    assert run("grants", "list", "--json").json == {"grants": []}


# How it ends ---------------------------------------------------------------------------------------------------------


def test_a_refusal_prints_its_code_and_nothing_on_standard_output(run: Run) -> None:
    result = run("import", "hub-comments", str(LOG), "--json")
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith("error: not_permitted: ")


def test_a_missing_file_is_refused(run: Run, tmp_path: Path) -> None:
    assert run("import", "hub-comments", str(tmp_path / "none.json")).err.startswith("error: not_found: ")


def test_an_unexpected_error_shows_where_and_no_text(run: Run, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("a secret sentence")

    monkeypatch.setattr(host.provider, "health", fail)
    result = run("doctor")
    assert result.status == 1
    assert result.err.startswith("error: internal_error: RuntimeError at test_cli.py:")
    assert "secret" not in result.err
    assert "Traceback" not in result.err


def test_an_incomplete_window_ends_with_3_and_names_what_is_missing(run: Run, proposed: list[dict[str, Any]]) -> None:
    captured = json.loads(LOG.read_text())["capturedAt"]
    result = run("consolidate", "--from", "2026-01-01", "--to", "2026-12-24", "--json")
    assert result.status == 3
    assert result.json["complete"] is False
    assert result.json["missing"] == [{"from": captured, "to": "2026-12-24T00:00:00.000000Z"}]


def test_verify_ends_with_0_when_everything_holds(run: Run, proposed: list[dict[str, Any]]) -> None:
    result = run("verify", "--json")
    assert result.status == 0
    assert result.json["ok"] is True
    assert result.json["completeness"] == "checked"


@pytest.mark.parametrize(
    "arguments",
    [("import", "hub-comments", str(LOG)), ("label", str(LABELS)), ("label",), ("redact", "--comment", "1", *PERSON)],
)
def test_import_label_and_redact_take_the_turn(run: Run, host: Host, arguments: Sequence[str]) -> None:
    host.busy = True
    assert run(*arguments).err.startswith("error: busy: ")


def test_the_labeler_is_closed_once_before_the_result(run: Run, host: Host, proposed: list[dict[str, Any]]) -> None:
    result = run("label", "--json")
    assert host.labeler.closed == 1
    assert result.json["considered"] > 0
    assert result.json["labeled"] == 0
    assert result.json["usage"] == {"requests": 1, "inputTokens": 10, "outputTokens": 0, "nanoAiu": 0}


def test_a_failed_labelling_prints_the_partial_report(run: Run, host: Host, proposed: list[dict[str, Any]]) -> None:
    host.labeler = SilentLabeler(Busy("The service is busy.", usage=Usage(requests=1, input_tokens=7)))
    result = run("label", "--json")
    assert result.status == 1
    assert result.json["error"] == {"code": "busy", "message": "The service is busy."}
    assert result.json["usage"]["inputTokens"] == 7
    assert result.json["considered"] == 0
    assert result.json["remaining"] > 0
    assert result.err == "error: busy: The service is busy.\n"


@pytest.mark.parametrize(("raised", "code"), [(RuntimeError("a secret"), "plugin_failed"), (Busy("Later."), "busy")])
def test_a_labeler_that_cannot_be_closed_keeps_the_result(
    run: Run, host: Host, proposed: list[dict[str, Any]], raised: Exception, code: str
) -> None:
    host.labeler = SilentLabeler(at_the_end=raised)
    result = run("label", "--json")
    assert result.status == 1
    assert result.json["cleanupError"]["code"] == code
    assert result.json["considered"] > 0
    assert result.json["usage"]["inputTokens"] == 10
    assert result.err.startswith(f"error: {code}: ")
    assert "secret" not in result.out + result.err


def test_closing_never_hides_the_first_error(run: Run, host: Host, proposed: list[dict[str, Any]]) -> None:
    host.labeler = SilentLabeler(Busy("The service is busy."), at_the_end=RuntimeError())
    result = run("label", "--json")
    assert result.json["error"]["code"] == "busy"
    assert result.json["cleanupError"]["code"] == "plugin_failed"
    assert result.err == "error: busy: The service is busy.\n"
    refused = run("label", "--json", "--limit", "0")
    assert (refused.status, refused.out) == (1, "")
    assert refused.err.startswith("error: invalid_argument: ")


# What is printed -----------------------------------------------------------------------------------------------------


def test_each_command_prints_one_json_object(run: Run, proposed: list[dict[str, Any]]) -> None:
    uncontested = next(row for row in proposed if not row["contested"])
    digest = ("--review-digest", uncontested["reviewDigest"])
    members = {
        ("doctor",): {"scope", "choices", "provider", "sendsTo", "health"},
        ("grants", "list"): {"grants"},
        ("memories",): {"memories"},
        ("show", uncontested["id"], "--history"): {"memory"},
        ("accept", uncontested["id"], *digest, *PERSON): {"memory"},
        ("recall", "--task", "buttons"): {"text", "learnings"},
        ("redact", "--comment", "none-such", *PERSON): {"removed", "rebuild", "exports"},
        ("retire", uncontested["id"], "--reason", "x", *PERSON): {"memory"},
        ("status",): {"counts", "attention"},
        ("verify",): {"ok", "completeness", "checked", "problems"},
    }
    for arguments, expected in members.items():
        assert set(run(*arguments, "--json").json) == expected, arguments


def test_every_command_prints_lines_for_a_person(run: Run, proposed: list[dict[str, Any]]) -> None:
    first = next(row for row in proposed if not row["contested"])
    shown = run("show", first["id"], "--history")
    assert first["reviewDigest"] in shown.out
    assert first["theme"] in run("memories").out
    digest = ("--review-digest", first["reviewDigest"])
    assert "accepted" in run("accept", first["id"], *digest, *PERSON).out
    assert first["text"] in run("recall", "--task", first["text"]).out
    assert "Everything holds." in run("verify").out
    assert "accepted     1" in run("status").out
    assert "review, instruction" in run("grants", "list").out
    assert "scope" in run("doctor").out


def test_a_task_may_come_from_standard_input(run: Run, proposed: list[dict[str, Any]]) -> None:
    first = next(row for row in proposed if not row["contested"])
    run("accept", first["id"], "--review-digest", first["reviewDigest"], *PERSON)
    assert run("recall", "--task-file", "-", "--json", stdin=first["text"]).json["learnings"] == [first["id"]]


def test_an_edited_text_may_come_from_a_file(run: Run, proposed: list[dict[str, Any]], tmp_path: Path) -> None:
    first = next(row for row in proposed if not row["contested"])
    (tmp_path / "text").write_text("Say it like this.\n", "utf-8")
    digest = ("--review-digest", first["reviewDigest"])
    result = run("accept", first["id"], *digest, "--text-file", str(tmp_path / "text"), *PERSON, "--json")
    assert result.json["memory"]["text"] == "Say it like this."
    assert result.json["memory"]["approval"]["edited"] is True


def test_what_the_command_writes_is_asserted(run: Run, proposed: list[dict[str, Any]]) -> None:
    assert run("grants", "list", "--json").json["grants"][0]["grantedBy"]["assurance"] == "asserted"


def test_an_agent_may_not_decide_whatever_the_parser_lets_through(run: Run, proposed: list[dict[str, Any]]) -> None:
    digest = ("--review-digest", proposed[0]["reviewDigest"])
    result = run("accept", proposed[0]["id"], *digest, "--by", "agent:eager")
    assert result.err.startswith("error: person_required: ")
    assert run("memories", "--state", "accepted", "--json").json == {"memories": []}

"""What each command does: parse, call the store once, print.

Exit status: 0 done; 1 refused or failed; 2 wrong usage; 3 done, and something needs attention. A failure prints
`error: <code>: <message>` on standard error, and with `--json` whatever is known of a partly done labelling on standard
output.
"""

from __future__ import annotations

import argparse
import json
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TextIO

from learning_core.cli.arguments import make_parser
from learning_core.cli.rendering import render
from learning_core.display import clean_field
from learning_core.errors import InvalidArgument, LearningError, NotFound, PluginFailed, StorageFailed
from learning_core.identifiers import IMPORTER, Principal, parse_principal
from learning_core.plugins import MemoryConsolidator, MemoryLabeler
from learning_core.provider import MemoryProvider
from learning_core.store import LearningStore
from learning_core.store.base import read_input
from learning_core.timestamps import Clock, system_clock

DONE, FAILED, WRONG_USAGE, NEEDS_ATTENTION = 0, 1, 2, 3
WAIT_SECONDS = 10.0
"""How long a command waits for the repository's turn."""
MAX_TEXT = 1 << 20
"""Characters of a task or an edited text that are read."""


@dataclass(frozen=True)
class Workspace:
    """Where a command works: the scope and its provider, and how to make the plug-ins that the configuration names.

    `choices` tells, for `doctor`, what was chosen and why. `take_turn(seconds)` is the repository's turn: import, label
    and redact hold it. `check_output(path)` raises unless an export may be written there. `anchor()` is the count and
    chain of the store's audit that the host saw last, for `verify`; None if it remembers none.
    """

    scope: str
    provider: MemoryProvider
    choices: Mapping[str, str]
    create_labeler: Callable[[], MemoryLabeler]
    create_consolidator: Callable[[], MemoryConsolidator]
    take_turn: Callable[[float], AbstractContextManager[None]]
    check_output: Callable[[Path], None]
    anchor: Callable[[], tuple[int, str] | None] = lambda: None


class Host(Protocol):
    """Finds the workspace that the options name. Raises `LearningError`."""

    def open_workspace(self, repository: str | None, directory: str | None) -> Workspace: ...


@dataclass(frozen=True)
class _Call:
    """One parsed command with all that it needs."""

    options: argparse.Namespace
    workspace: Workspace
    store: LearningStore
    by: Principal
    stdin: TextIO


def main(
    arguments: Sequence[str],
    *,
    host: Host,
    stdin: TextIO,
    stdout: TextIO,
    stderr: TextIO,
    program: str = "replica-learning",
    clock: Clock = system_clock,
) -> int:
    """Run one command; the exit status."""
    parser = make_parser(program)
    if not all(_is_text(argument) for argument in arguments):
        return _fail(InvalidArgument.code, "An argument is not UTF-8 text.", stderr)
    options = parser.parse_args(list(arguments))
    if options.needs_person and options.by is None:
        parser.error(f"{options.command} needs --by: a person decides, for example --by github:mona")
    if options.command == "redact" and (options.event is None) == (options.comment is None):
        parser.error("redact takes an event ID or --comment, one of them")
    try:
        by = IMPORTER if options.by is None else parse_principal(options.by, assurance="asserted")
        workspace = host.open_workspace(options.repository, options.dir)
        store = LearningStore(workspace.provider, workspace.scope, clock=clock)
        result = _COMMANDS[_name(options)](_Call(options, workspace, store, by, stdin))
        if options.json:
            _print_json(result, stdout)
        else:
            stdout.write(render(_name(options), result))
        stdout.flush()
    except BrokenPipeError:
        raise
    except LearningError as error:
        report = error.details.get("labelingResult")
        if options.json and report is not None:
            _print_json({**report, "error": _describe_error(error)}, stdout)
        return _fail(error.code, error.message, stderr)
    except OSError as error:
        return _fail(StorageFailed.code, f"The system refused: {error.strerror}.", stderr)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}:{frame.lineno}"
        return _fail("internal_error", f"{type(error).__name__} at {place}; please report this", stderr)
    return _status(_name(options), result)


def _fail(code: str, message: str, stderr: TextIO) -> int:
    print(f"error: {code}: {clean_field(message)}", file=stderr)
    return FAILED


def _name(options: argparse.Namespace) -> str:
    action = getattr(options, "action", None)
    return options.command if action is None else f"{options.command} {action}"


def _status(name: str, result: Mapping[str, Any]) -> int:
    attention = (name == "consolidate" and not result["complete"]) or (name == "verify" and not result["ok"])
    return NEEDS_ATTENTION if attention else DONE


def _print_json(value: Mapping[str, Any], stdout: TextIO) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    try:
        text.encode(stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2)
    stdout.write(text + "\n")


def _is_text(argument: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in argument)


def _doctor(call: _Call) -> dict[str, Any]:
    manifest = call.store.manifest
    return {
        "scope": call.workspace.scope,
        "choices": dict(call.workspace.choices),
        "provider": manifest,
        "sendsTo": manifest["sendsTo"],
        "health": dict(call.workspace.provider.health()),
    }


def _grants_add(call: _Call) -> dict[str, Any]:
    options = call.options
    return call.store.add_grant(
        call.by,
        purposes=options.purpose,
        sources=options.source,
        time_from=options.time_from,
        time_to=options.time_to,
        reason=options.reason,
    )


def _grants_list(call: _Call) -> dict[str, Any]:
    return call.store.list_grants()


def _grants_withdraw(call: _Call) -> dict[str, Any]:
    return call.store.withdraw_grant(
        call.by, call.options.grant, purposes=call.options.purpose, reason=call.options.reason
    )


def _import_comments(call: _Call) -> dict[str, Any]:
    log = Path(call.options.log)
    if log.exists() and not log.is_file():
        # A pipe would wait for somebody to write, and a device never ends.
        raise NotFound(f"{log} cannot be read: it is no regular file.")
    with call.workspace.take_turn(WAIT_SECONDS):
        return call.store.import_comments(call.by, log, redact_deleted=call.options.redact_deleted)


def _label(call: _Call) -> dict[str, Any]:
    options = call.options
    if options.labels is not None:
        with call.workspace.take_turn(WAIT_SECONDS):
            return call.store.record_labels(call.by, Path(options.labels))
    labeler = call.workspace.create_labeler()
    try:
        with call.workspace.take_turn(WAIT_SECONDS):
            result = call.store.label(
                call.by,
                labeler,
                since=options.since,
                max_requests=options.max_requests,
                limit=options.limit,
                model=options.model,
            )
    except BaseException as error:
        failure = _close(labeler)
        report = error.details.get("labelingResult") if isinstance(error, LearningError) else None
        if failure is not None and report is not None:
            report["cleanupError"] = _describe_error(failure)
        raise
    failure = _close(labeler)
    if failure is not None:
        failure.details["labelingResult"] = {**result, "cleanupError": _describe_error(failure)}
        raise failure
    return result


def _close(labeler: MemoryLabeler) -> LearningError | None:
    """What went wrong when the labeler was closed."""
    try:
        labeler.close()
    except LearningError as error:
        return error
    except (Exception, SystemExit) as error:
        return PluginFailed(f"The labeler could not be closed: {type(error).__name__}.")
    return None


def _describe_error(error: LearningError) -> dict[str, str]:
    return {"code": error.code, "message": error.message}


def _consolidate(call: _Call) -> dict[str, Any]:
    return call.store.consolidate(
        call.by,
        call.workspace.create_consolidator(),
        time_from=call.options.time_from,
        time_to=call.options.time_to,
        max_new=call.options.max,
    )


def _redact(call: _Call) -> dict[str, Any]:
    options = call.options
    with call.workspace.take_turn(WAIT_SECONDS):
        if options.comment is not None:
            return call.store.redact_comment(call.by, options.comment, reason=options.reason)
        return call.store.redact_event(call.by, options.event, reason=options.reason or "")


def _memories(call: _Call) -> dict[str, Any]:
    return call.store.memories(states=call.options.state)


def _show(call: _Call) -> dict[str, Any]:
    return call.store.show(call.options.memory, history=call.options.history)


def _accept(call: _Call) -> dict[str, Any]:
    options = call.options
    text = options.text if options.text_file is None else _read_text(options.text_file, call.stdin)
    return call.store.accept(
        call.by, options.memory, review_digest=options.review_digest, text=text, reason=options.reason
    )


def _reject(call: _Call) -> dict[str, Any]:
    options = call.options
    return call.store.reject(call.by, options.memory, review_digest=options.review_digest, reason=options.reason)


def _retire(call: _Call) -> dict[str, Any]:
    return call.store.retire(call.by, call.options.memory, reason=call.options.reason)


def _supersede(call: _Call) -> dict[str, Any]:
    return call.store.supersede(call.by, call.options.memory, replaces=call.options.replaces)


def _revise(call: _Call) -> dict[str, Any]:
    options = call.options
    return call.store.revise(call.by, options.memory, text=options.text, reason=options.reason)


def _recall(call: _Call) -> dict[str, Any]:
    options = call.options
    task = options.task if options.task_file is None else _read_text(options.task_file, call.stdin)
    chosen = {} if options.budget is None else {"budget": options.budget}
    return call.store.recall(call.by, task, paths=options.path or (), preview=options.preview, **chosen)


def _observations(call: _Call) -> dict[str, Any]:
    options = call.options
    return call.store.observations(
        purpose=options.purpose,
        event_ids=options.event,
        episode_ids=options.episode,
        types=options.type,
        time_from=options.time_from,
        time_to=options.time_to,
    )


def _export(call: _Call) -> dict[str, Any]:
    options = call.options
    output = Path(options.output)
    call.workspace.check_output(output)
    if output.exists() or output.is_symlink():
        raise InvalidArgument(f"{output} exists already; an export writes a new file.")
    exported = call.store.export(call.by, purpose=options.purpose, learnings_only=options.learnings_only)
    _write_private(output, json.dumps(exported["bundle"], ensure_ascii=False, indent=1) + "\n")
    return {"manifest": exported["manifest"], "file": str(output)}


def _write_private(path: Path, text: str) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise StorageFailed(
            f"{path} cannot be written: {error.strerror}. The export is recorded; export again."
        ) from None


def _status_of_store(call: _Call) -> dict[str, Any]:
    return call.store.status()


def _verify(call: _Call) -> dict[str, Any]:
    return call.store.verify(by=call.by, anchor=call.workspace.anchor())


def _read_text(name: str, stdin: TextIO) -> str:
    if name == "-" and stdin.closed:
        raise NotFound("Standard input is closed.")
    try:
        raw = stdin.read(MAX_TEXT + 1) if name == "-" else read_input(Path(name))
        text = raw if isinstance(raw, str) else raw.decode("utf-8")
    except OSError as error:
        raise NotFound(f"Standard input cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InvalidArgument(f"{name} is not UTF-8 text.") from None
    if not _is_text(text):
        raise InvalidArgument(f"{name} is not UTF-8 text.")
    if len(text) > MAX_TEXT:
        raise InvalidArgument(f"{name} has more than {MAX_TEXT:,} characters.")
    return text.strip()


_COMMANDS: Mapping[str, Callable[[_Call], dict[str, Any]]] = {
    "doctor": _doctor,
    "grants add": _grants_add,
    "grants list": _grants_list,
    "grants withdraw": _grants_withdraw,
    "import hub-comments": _import_comments,
    "label": _label,
    "consolidate": _consolidate,
    "redact": _redact,
    "memories": _memories,
    "show": _show,
    "accept": _accept,
    "reject": _reject,
    "retire": _retire,
    "supersede": _supersede,
    "revise": _revise,
    "recall": _recall,
    "observations": _observations,
    "export": _export,
    "status": _status_of_store,
    "verify": _verify,
}

"""What may be typed. `--repository`, `--dir`, `--by` and `--json` stand before or after the subcommand.

Source: design.md, section 4, "Commands".
"""

from __future__ import annotations

import argparse
from typing import Any

from learning_core.policy import PURPOSES

EVENT_TYPES = ("comment", "label", "no_annotation", "status_change")
STATES = ("proposed", "accepted", "rejected", "retired")


def make_parser(program: str) -> argparse.ArgumentParser:
    """The whole parser. `command` of the result names the subcommand, `needs_person` whether it needs `--by`."""
    parser = argparse.ArgumentParser(
        prog=program, description=__doc__.splitlines()[0] and _DESCRIPTION, allow_abbrev=False
    )
    _add_common(parser, default=None)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (
        _add_store_commands,
        _add_evidence_commands,
        _add_learning_commands,
        _add_leaving_commands,
        _add_checking_commands,
    ):
        add(commands)
    return parser


_DESCRIPTION = "Turn a repository's review comments into learnings that a person accepted and agents recall."


def _add_common(parser: argparse.ArgumentParser, *, default: Any) -> None:
    group = parser.add_argument_group("for every command")
    group.add_argument(
        "--repository",
        metavar="HOST/OWNER/NAME",
        default=default,
        help="the repository, where it is not the checkout's",
    )
    group.add_argument("--dir", metavar="DIRECTORY", default=default, help="the store's directory")
    group.add_argument(
        "--by",
        metavar="PRINCIPAL",
        default=default,
        help="who acts: github:<login>, github-user:<host>/<id>, hub-user:<origin>/<id> or agent:<id>",
    )
    group.add_argument(
        "--json", action="store_true", default=False if default is None else default, help="print one JSON object"
    )


def _command(commands: Any, name: str, text: str, *, person: bool = False) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
    parser.set_defaults(needs_person=person)
    _add_common(parser, default=argparse.SUPPRESS)
    return parser


def _add_store_commands(commands: Any) -> None:
    _command(commands, "doctor", "Show the scope, the provider, where data goes, and why each was chosen.")
    grants = _command(commands, "grants", "Record, list and end consent for purposes.")
    actions = grants.add_subparsers(dest="action", required=True, metavar="ACTION")
    add = _command(actions, "add", "Record a person's permission.", person=True)
    add.add_argument(
        "--purpose", action="append", required=True, choices=PURPOSES, metavar="PURPOSE", help=", ".join(PURPOSES)
    )
    add.add_argument("--source", action="append", required=True, choices=("hub-comments",), help="hub-comments")
    add.add_argument("--from", dest="time_from", metavar="TIME", help="evidence written from then on")
    add.add_argument("--to", dest="time_to", metavar="TIME", help="evidence written before then")
    add.add_argument("--reason", required=True)
    _command(actions, "list", "List every grant.")
    withdraw = _command(actions, "withdraw", "End a grant, at once.", person=True)
    withdraw.add_argument("grant", metavar="GRANT-ID")
    withdraw.add_argument(
        "--purpose", action="append", choices=PURPOSES, metavar="PURPOSE", help="all that are left by default"
    )
    withdraw.add_argument("--reason", required=True)


def _add_evidence_commands(commands: Any) -> None:
    imports = _command(commands, "import", "Import a snapshot of review comments.")
    sources = imports.add_subparsers(dest="action", required=True, metavar="SOURCE")
    comments = _command(sources, "hub-comments", "Import a Hub comment log: all of it, or nothing.")
    comments.add_argument("log", metavar="LOG.JSON")
    comments.add_argument(
        "--redact-deleted", action="store_true", help="also remove the text of comments that the log shows as deleted"
    )
    label = _command(commands, "label", "Label each comment that was not asked about, or record the labels of a file.")
    label.add_argument("labels", metavar="LABELS.JSON", nargs="?")
    label.add_argument("--since", metavar="TIME", help="skip older comments")
    label.add_argument("--max-requests", type=int, metavar="N", help="stop after that many labeler requests")
    label.add_argument("--limit", type=int, metavar="N", help="ask about at most that many comments")
    label.add_argument("--model", metavar="NAME", help="the model to ask, where the labeler has a choice")
    consolidate = _command(commands, "consolidate", "Store proposals for the themes that recur in a window.")
    consolidate.add_argument("--from", dest="time_from", metavar="TIME", required=True)
    consolidate.add_argument("--to", dest="time_to", metavar="TIME", required=True)
    consolidate.add_argument(
        "--max", type=int, default=10, metavar="N", help="new or changed proposals stored, 10 by default"
    )
    redact = _command(commands, "redact", "Remove a comment's text: every version and its labels.", person=True)
    redact.add_argument("event", metavar="EVENT-ID", nargs="?")
    redact.add_argument("--comment", metavar="HUB-COMMENT-ID", help="name the comment by its Hub ID; needs no grant")
    redact.add_argument("--reason", help="why; for --comment, that it was deleted at its source by default")


def _add_learning_commands(commands: Any) -> None:
    memories = _command(commands, "memories", "List learnings and proposals.")
    memories.add_argument("--state", action="append", choices=STATES)
    show = _command(commands, "show", "Show one learning with its evidence and digests.")
    show.add_argument("memory", metavar="ID")
    show.add_argument("--history", action="store_true", help="show every version")
    accept = _command(commands, "accept", "Accept a proposal against exactly what you reviewed.", person=True)
    _add_review(accept)
    text = accept.add_mutually_exclusive_group()
    text.add_argument("--text", help="accept with this text instead")
    text.add_argument("--text-file", metavar="FILE", help="accept with the text of this file instead")
    accept.add_argument("--reason", help="needed where a reviewer disagrees")
    reject = _command(commands, "reject", "Reject a proposal against exactly what you reviewed.", person=True)
    _add_review(reject)
    reject.add_argument("--reason", required=True)
    retire = _command(commands, "retire", "Stop using an accepted learning.", person=True)
    retire.add_argument("memory", metavar="ID")
    retire.add_argument("--reason", required=True)
    supersede = _command(commands, "supersede", "Record that an accepted learning replaces others.", person=True)
    supersede.add_argument("memory", metavar="ID")
    supersede.add_argument("--replaces", action="append", required=True, metavar="ID")
    revise = _command(
        commands, "revise", "Propose a correction of an accepted learning: the same evidence.", person=True
    )
    revise.add_argument("memory", metavar="ID")
    revise.add_argument("--text", required=True, help="what it should say")
    revise.add_argument("--reason", required=True)
    recall = _command(commands, "recall", "Print the accepted learnings that fit a task.")
    task = recall.add_mutually_exclusive_group(required=True)
    task.add_argument("--task", metavar="TEXT")
    task.add_argument(
        "--task-file", metavar="FILE", help="- reads standard input and keeps the task out of the process list"
    )
    recall.add_argument("--budget", type=int, metavar="N", help="characters at most, 6,000 by default")
    recall.add_argument("--path", action="append", metavar="PATH", help="a file that the task touches")
    recall.add_argument("--preview", action="store_true", help="for a person: without recording a use")


def _add_leaving_commands(commands: Any) -> None:
    observations = _command(commands, "observations", "Read the events that a purpose may use.")
    observations.add_argument("--purpose", required=True, choices=PURPOSES, metavar="PURPOSE", help=", ".join(PURPOSES))
    observations.add_argument("--event", action="append", metavar="ID", help="at most 100")
    observations.add_argument("--episode", action="append", metavar="ID")
    observations.add_argument(
        "--type", action="append", choices=EVENT_TYPES, metavar="TYPE", help=", ".join(EVENT_TYPES)
    )
    observations.add_argument("--from", dest="time_from", metavar="TIME", help="evidence written from then on")
    observations.add_argument("--to", dest="time_to", metavar="TIME", help="evidence written before then")
    export = _command(commands, "export", "Write a bundle of what a purpose may use.", person=True)
    export.add_argument("--purpose", required=True, choices=PURPOSES, metavar="PURPOSE", help=", ".join(PURPOSES))
    export.add_argument("--learnings-only", action="store_true", help="leave out episodes and their comments")
    export.add_argument("--output", required=True, metavar="FILE", help="a new file")


def _add_checking_commands(commands: Any) -> None:
    _command(commands, "status", "Report counts and whatever needs attention.")
    _command(commands, "verify", "Re-check every record.")


def _add_review(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("memory", metavar="ID")
    parser.add_argument("--review-digest", required=True, metavar="DIGEST", help="the reviewDigest that you reviewed")

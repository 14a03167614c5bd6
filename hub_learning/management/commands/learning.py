"""`manage.py learning …`: the learning command on a repository of this Hub."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand

from hub_learning import stores
from hub_learning.models import Repository
from learning_core.cli import Workspace, main
from learning_core.errors import InvalidArgument, NotFound

PROGRAM = "manage.py learning"


class HubHost:
    """Finds the store of a repository that `--repository` names by number or as owner/name."""

    def open_workspace(self, repository: str | None, directory: str | None) -> Workspace:
        """The workspace. Raises `InvalidArgument` without `--repository`, `NotFound`."""
        if repository is None or directory is not None:
            raise InvalidArgument(
                "Name the repository with --repository, as its number or owner/name; --dir is the Hub's."
            )
        return stores.open_workspace(find_repository(repository))


def find_repository(text: str) -> Repository:
    """A repository by number, or by owner and name without regard to case. Raises `NotFound`."""
    if text.isascii() and text.isdecimal():
        found = list(Repository.objects.filter(pk=int(text)))
    else:
        owner, _, name = text.rpartition("/")
        found = list(Repository.objects.filter(owner__iexact=owner.rpartition("/")[2], name__iexact=name))
    if len(found) != 1:
        raise NotFound(f"This Hub has no repository {text[:80]!r}, or more than one; name it by its number.")
    return found[0]


class Command(BaseCommand):
    """Hands its arguments to `learning_core.cli` as they are."""

    help = "The learning command on a repository of this Hub: manage.py learning --repository <id> status"
    requires_system_checks = ()

    def run_from_argv(self, argv: Sequence[str]) -> None:
        arguments = list(argv[2:])
        names_repository = any(word.split("=")[0] == "--repository" for word in arguments)
        if "verify" in arguments and not names_repository:
            sys.exit(verify_all(arguments))
        sys.exit(run(arguments, sys.stdout))


def run(arguments: Sequence[str], stdout: Any) -> int:
    """One run of the command; its exit status."""
    return main(arguments, host=HubHost(), stdin=sys.stdin, stdout=stdout, stderr=sys.stderr, program=PROGRAM)


def verify_all(arguments: Sequence[str]) -> int:
    """Verify every repository. With `--json` one object, `{"repositories": {<id>: …}}`. The worst exit status."""
    status, results = 0, {}
    for repository in Repository.objects.order_by("pk"):
        out = io.StringIO()
        status = max(status, run([*arguments, "--repository", str(repository.pk)], out))
        if "--json" in arguments:
            results[str(repository.pk)] = json.loads(out.getvalue() or "null")
        else:
            sys.stdout.write(f"{repository} ({repository.pk}):\n{out.getvalue()}")
    if "--json" in arguments:
        sys.stdout.write(json.dumps({"repositories": results}, indent=2) + "\n")
    return status

"""`manage.py api_token`: a bearer token for a review tool or an agent."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from hub_learning.actions import do_create_token
from hub_learning.management.commands.learning import find_repository
from hub_learning.models import ApiToken
from learning_core.identifiers import parse_principal


class Command(BaseCommand):
    """Prints a new token. It cannot be shown again."""

    help = "Create a token: a source sends comments, an agent recalls."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--repository", required=True, help="its number, or owner/name")
        parser.add_argument("--kind", required=True, choices=ApiToken.Kind.values)
        parser.add_argument("--name", required=True, help="what it is for; an agent acts as agent:<name>")
        parser.add_argument("--by", required=True, help="who creates it, such as github:mona")

    def handle(self, *_: Any, **options: Any) -> None:
        by = parse_principal(options["by"], assurance="asserted")
        parse_principal(f"agent:{options['name']}", assurance="asserted")
        repository = find_repository(options["repository"])
        self.stdout.write(do_create_token(repository, by, kind=ApiToken.Kind(options["kind"]), name=options["name"]))

"""A program for the tests with real processes: reads `[verb, value]` lines, acts in the Hub, answers one line each."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from django.conf import settings
from django.core.management import call_command

from hub_learning import stores, sweep
from hub_learning.access import authenticated
from hub_learning.actions import Message, do_add_grant, do_add_repository, do_choose_labeler, do_record_comments
from hub_learning.environment import prepare_data_directory
from hub_learning.models import Repository
from hub_learning.sign_in import local_administrator


def set_up(_: Any) -> None:
    prepare_data_directory(settings.HUB.data_directory)
    call_command("migrate", verbosity=0)
    by = authenticated(local_administrator())
    repository = do_add_repository(by, 1, host="local", owner="acme", name="checkout")
    do_choose_labeler(by, "offline")
    do_add_grant(repository, by, purposes=["review", "instruction"], reason="test")


def send(items: Any) -> dict[str, int]:
    body = json.dumps(items).encode()
    return do_record_comments(Repository.objects.get(), Message(items, body, key=os.urandom(8).hex()))


def verify(_: Any) -> Any:
    repository = Repository.objects.get()
    by = authenticated(local_administrator())
    return stores.open_store(repository).verify(by=by)


def run_sweep(_: Any) -> None:
    sweep.sweep()


VERBS = {"set_up": set_up, "send": send, "verify": verify, "sweep": run_sweep}


def main() -> None:
    for line in sys.stdin:
        verb, value = json.loads(line)
        sys.stdout.write(json.dumps(VERBS[verb](value)) + "\n")
        sys.stdout.flush()

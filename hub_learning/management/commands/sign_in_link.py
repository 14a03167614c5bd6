"""`manage.py sign_in_link`: a new link for signing in without GitHub."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from hub_learning.access import AccessRefused
from hub_learning.sign_in import issue_local_link


class Command(BaseCommand):
    """Prints a link that works once."""

    help = "Print a new sign-in link for this machine; the one printed before stops working."
    requires_system_checks = ()

    def handle(self, *_: Any, **__: Any) -> None:
        if not settings.HUB.local_sign_in:
            raise AccessRefused("Signing in without GitHub is off (HUB_LOCAL_SIGN_IN).")
        self.stdout.write(issue_local_link(settings.HUB.data_directory, settings.HUB.origin, "/"))

#!/usr/bin/env python3
"""The Hub's commands: `run` starts everything, `learning` is the learning command, the rest is Django's."""

from __future__ import annotations

import os
import sys

from learning_core.errors import InvalidConfiguration, LearningError


def main() -> int:
    """Run a command. A refusal is one line on stderr and exit status 1; 2 if the configuration is refused."""
    os.umask(0o077)  # What the Hub writes is for its owner only.
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hub_learning.settings")
    try:
        import django
        from django.core.management import execute_from_command_line

        django.setup()
    except LearningError as error:
        sys.stderr.write(f"error: {error.code}: {error}\n")
        return 2
    try:
        execute_from_command_line(sys.argv)
    except LearningError as error:
        sys.stderr.write(f"error: {error.code}: {error}\n")
        return 2 if isinstance(error, InvalidConfiguration) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

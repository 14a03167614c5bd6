"""The console script: the core's command with the plug-ins of this package."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> int:
    """Run `replica-learning`; the exit status."""
    from learning_core.cli import main as run
    from providers.checkout import CheckoutHost

    try:
        return run(sys.argv[1:], host=CheckoutHost(Path.cwd()), stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr)
    except BrokenPipeError:
        # The reader went away, as `| head` does; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130

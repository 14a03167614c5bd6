"""The console script: the core's command with the plug-ins of this package, on streams that may be missing or full."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path


def main() -> int:
    """Run `replica-learning`; the exit status."""
    if not _prepare_streams():
        sys.stderr.write("error: storage_failed: Standard output is closed.\n")
        return 1
    try:
        status = _run()
    except SystemExit as ended:
        status = int(ended.code or 0)
    except BrokenPipeError:
        status = 1
    except KeyboardInterrupt:
        status = 130
    return _finish(status)


def _run() -> int:
    from learning_core.cli import main as run
    from providers.checkout import CheckoutHost

    return run(sys.argv[1:], host=CheckoutHost(Path()), stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr)


def _prepare_streams() -> bool:
    """Make every stream usable; whether anybody can read standard output.

    A closed descriptor is taken at once, so that no file of the store gets its number and is written to as a stream.
    """
    readable = sys.stdout is not None
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    if sys.stdin is None:
        sys.stdin = io.StringIO()
        sys.stdin.close()
    sys.stdout = sys.stdout or io.StringIO()
    sys.stderr = sys.stderr or io.StringIO()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    return readable


def _finish(status: int) -> int:
    """Flush what is left. A reader that went away, as `| head` does, is told nothing."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if status == 0 and not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"error: storage_failed: Standard output cannot be written: {error.strerror}.\n")
        return status or 1
    return status

"""The whole loop on synthetic review comments, in a temporary checkout: every command with its output.

Run it with `make demo`. Nothing outside the temporary directory is touched.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROGRAM = Path(sys.executable).with_name("replica-learning")
CATEGORIES = ["accessibility", "visual-quality", "content", "interaction", "correctness", "testing", "maintainability"]


class Demo:
    """Runs the command in a checkout and shows what it prints."""

    def __init__(self, checkout: Path) -> None:
        self._checkout = checkout

    def say(self, text: str) -> None:
        """A line that tells what comes next."""
        print(f"\n# {text}", flush=True)

    def run(self, *arguments: str, status: int = 0) -> None:
        """Run one command and print it with its output. Another exit status than expected ends the demo."""
        print(f"$ replica-learning {shlex.join(arguments)}", flush=True)
        done = self._call(arguments)
        print(done.stdout + done.stderr, end="", flush=True)
        if done.returncode != status:
            raise SystemExit(f"The command ended with {done.returncode}, not {status}.")

    def read(self, *arguments: str) -> dict[str, Any]:
        """The JSON that a command prints."""
        result: dict[str, Any] = json.loads(self._call((*arguments, "--json")).stdout)
        return result

    def _call(self, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(PROGRAM), *arguments], cwd=self._checkout, capture_output=True, text=True, check=False, timeout=120
        )


def main() -> None:
    """Run the demo."""
    with tempfile.TemporaryDirectory(prefix="replica-learning-demo-") as directory:
        checkout = Path(directory)
        _make_checkout(checkout)
        _run(Demo(checkout), checkout)


def _make_checkout(checkout: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(checkout)], check=True)
    remote = "git@github.example:acme/checkout-prototypes.git"
    subprocess.run(["git", "-C", str(checkout), "remote", "add", "origin", remote], check=True)
    (checkout / ".gitignore").write_text(".replica/\n")
    learning = checkout / ".replica" / "learning"
    learning.mkdir(parents=True, mode=0o700)
    configuration = {
        "schemaVersion": "replica.learning-config/v1",
        "consolidation": {"consolidator": "recurrence", "options": {"categories": CATEGORIES}},
    }
    (learning / "config.json").write_text(json.dumps(configuration))


def _run(demo: Demo, checkout: Path) -> None:
    person = ("--by", "github:mona")
    demo.say("Where this works, and where data goes.")
    demo.run("doctor")
    demo.say("Nothing may be used until a person says for what. So an import is refused.")
    demo.run("import", "hub-comments", str(HERE / "synthetic_log.json"), status=1)
    purposes = ("--purpose", "review", "--purpose", "instruction")
    demo.run("grants", "add", *purposes, "--source", "hub-comments", "--reason", "The team agreed.", *person)
    demo.run("import", "hub-comments", str(HERE / "synthetic_log.json"))
    demo.say("Label the themes, on this machine, and propose those that recur.")
    demo.run("label")
    captured = json.loads((HERE / "synthetic_log.json").read_text())["capturedAt"]
    demo.run("consolidate", "--from", "2026-01-01", "--to", captured)
    demo.run("memories")
    proposals = demo.read("memories", "--state", "proposed")["memories"]
    first = next(row for row in proposals if not row["contested"])
    demo.say("A person reads one proposal with its evidence, and decides on exactly what they saw.")
    demo.run("show", first["id"])
    demo.say("An agent may not decide, and neither does a digest of anything else than what was shown.")
    digest = ("--review-digest", first["reviewDigest"])
    demo.run("accept", first["id"], *digest, "--by", "agent:eager", status=1)
    demo.run("accept", first["id"], "--review-digest", "sha256:" + "0" * 64, *person, status=1)
    demo.run("accept", first["id"], *digest, *person)
    demo.say("What an agent gets with its next prompt.")
    demo.run("recall", "--task", f"Build the checkout page; mind the {first['theme'].replace('-', ' ')}.")
    cited = demo.read("show", first["id"])["memory"]["evidence"][0]["comment"]["commentId"]
    demo.say("A reviewer deletes a comment that the learning cites. Its text goes, and the learning stops at once.")
    demo.run("redact", "--comment", cited, *person)
    demo.run("recall", "--task", "Build the checkout page.")
    demo.say("Nothing was recalled: the only accepted learning needs rebuilding.")
    demo.run("status")
    demo.say("The next snapshot brings an edit and a deletion.")
    demo.run("import", "hub-comments", str(HERE / "synthetic_log_2.json"), "--redact-deleted")
    demo.run("label")
    captured = json.loads((HERE / "synthetic_log_2.json").read_text())["capturedAt"]
    demo.run("consolidate", "--from", "2026-01-01", "--to", captured)
    demo.say("Every record is still what its digest, its receipt and its head say.")
    demo.run("verify")
    print(f"\nDone. The store was {checkout / '.replica' / 'learning'}, and is gone.")


if __name__ == "__main__":
    main()

"""Where the command works: a checkout's own `.replica/learning/`, or a store that `--repository` and `--dir` name.

1. In a checkout the scope comes from the origin remote, and the configuration cannot change it. A user name or password
   in the remote's address is never shown.
2. Inside a checkout, data lies only under `.replica/`, after following links, and only where Git ignores that path.
3. Outside, the repository and the directory are named together.

Source: the learning guide, "Rules" and "Local storage".
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from learning_core.cli import Workspace
from learning_core.errors import InvalidArgument, InvalidConfiguration, UnsafeStorage
from learning_core.identifiers import parse_scope
from providers import registry
from providers.storage.sqlite.files import DATABASE, SIDE_FILES, StoreFiles
from providers.turn import take_turn

DATA_PATH = Path(".replica/learning")
_FILES = (DATABASE, *(DATABASE + suffix for suffix in SIDE_FILES), "turn.lock", registry.CONFIGURATION_FILE)
_REMOTE = re.compile(
    r"(?:[a-z+]+://)?(?:[^@/\\]*@)?(?P<host>[A-Za-z0-9.-]+)(?::(?P<port>[0-9]+)(?=/))?[:/]/?(?P<path>[^:?#\\]+?)(?:\.git)?/?"
)


class CheckoutHost:
    """Finds workspaces from a working directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def open_workspace(self, repository: str | None, directory: str | None) -> Workspace:
        """The workspace. Raises `InvalidArgument` outside a checkout, `UnsafeStorage`, `InvalidConfiguration`."""
        root = _find_root(self._directory)
        if repository is not None:
            if directory is None:
                raise InvalidArgument("--repository needs --dir, the directory of its store.")
            scope, why = parse_scope(repository), "named by --repository"
        elif root is None:
            raise InvalidArgument("This is no Git checkout; name the store with --repository and --dir.")
        else:
            scope, why = _scope_of_remote(root), "the origin remote of this checkout"
        data = (self._directory / directory) if directory is not None else _required(root) / DATA_PATH
        _check_place(data, root if repository is None else None)
        modules = root if directory is None else None
        configuration = registry.read_configuration(data / registry.CONFIGURATION_FILE)
        return Workspace(
            scope,
            registry.create_provider(configuration, data, modules),
            {"scope from": why, "data": str(data), **_describe(configuration)},
            lambda: registry.create_labeler(configuration, modules),
            lambda: registry.create_consolidator(configuration, modules),
            lambda seconds: _take_turn(data, seconds),
            lambda path: _check_output(self._directory / path),
        )


def _describe(configuration: Mapping[str, Any]) -> dict[str, str]:
    return {
        "store": registry.describe_choice(configuration, "memory", "provider", "sqlite"),
        "labeler": registry.describe_choice(configuration, "labeling", "labeler", "offline"),
        "consolidator": registry.describe_choice(configuration, "consolidation", "consolidator", "recurrence"),
    }


def _take_turn(data: Path, seconds: float) -> AbstractContextManager[None]:
    files = StoreFiles(data)
    files.create_directory()
    files.exist()
    return take_turn(files.directory / "turn.lock", wait_seconds=seconds)


def _check_place(data: Path, own: Path | None) -> None:
    """Raise `UnsafeStorage` for a directory inside a checkout that is not under `.replica/` or not ignored by Git.

    `own` is the checkout that the command works for, None where `--repository` names another store.
    """
    _check_paths(data, [data / name for name in _FILES], own)


def _check_output(path: Path) -> None:
    """The same for a file that an export is written to."""
    _check_paths(path.parent, [path])


def _check_paths(directory: Path, files: Sequence[Path], own: Path | None = None) -> None:
    place = directory.resolve()
    if ".git" in place.parts:
        raise UnsafeStorage(f"Learning data does not lie among Git's own files, in {place}.")
    for root in _find_checkouts(directory) | ({own} if own is not None else set()):
        inside = root / ".replica"
        if not place.is_relative_to(inside) or any(place / file.name == inside / DATABASE for file in files):
            raise UnsafeStorage(f"Inside a checkout, learning data lies only under .replica/, not in {place}.")
        _, ignored = _git(root, "check-ignore", "--no-index", *(str(place / file.name) for file in files))
        if ignored.count("\n") != len(files):
            raise UnsafeStorage(
                f"Git does not ignore {place} with every file of a store; add .replica/ to .gitignore first, "
                "so that no comment is committed."
            )


def _find_checkouts(directory: Path) -> set[Path]:
    """Each checkout that a path lies in: where it leads, and where each link on the way stands."""
    place, typed = directory.resolve(), directory.absolute()
    collapsed = Path(os.path.normpath(typed))
    ways = (typed, *typed.parents, collapsed, *collapsed.parents)
    existing = next(parent for parent in (place, *place.parents) if parent.is_dir())
    links = [parent.parent for parent in ways if parent.is_symlink()]
    roots = {_find_root(known) for known in {existing, *links}}
    return {root for root in roots if root is not None}


def _find_root(directory: Path) -> Path | None:
    status, found = _git(directory, "rev-parse", "--show-toplevel")
    return Path(found.removesuffix("\n")).resolve() if status == 0 else None


def _required(root: Path | None) -> Path:
    if root is None:
        raise InvalidArgument("This is no Git checkout; name the store with --repository and --dir.")
    return root


def _scope_of_remote(root: Path) -> str:
    _, found = _git(root, "config", "--get", "remote.origin.url")
    match = _REMOTE.fullmatch(found.strip())
    parts = match["path"].split("/") if match is not None else []
    if match is None or len(parts) != 2 or parts[0].lower() == "_id":
        raise InvalidConfiguration(
            "The origin remote names no host/owner/name; set one, or name the store with --repository and --dir."
        )
    port = f":{match['port']}" if match["port"] else ""
    return parse_scope(f"{match['host']}{port}/{parts[0]}/{parts[1]}")


def _git(directory: Path, *arguments: str) -> tuple[int, str]:
    """Git's exit status and what it printed; a byte that is no text stays as Python keeps it in file names."""
    try:
        # The arguments are ours, no shell reads them, and Git is the person's own, wherever it is.
        command = ["git", "-C", str(directory), *arguments]
        done = subprocess.run(command, capture_output=True, timeout=10, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InvalidConfiguration("Git is needed to find the checkout, and it did not answer.") from error
    return done.returncode, os.fsdecode(done.stdout)

"""Rules about the repository itself: who imports whom, what tracked files may not name, what is locked and packed."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCKS = ["runtime", "dev"]

# Written so that no pattern matches its own text.
NOT_TO_BE_NAMED = re.compile(
    rb"pypi[.]org|python[h]osted|npm[j]s[.]|deb[.]debian|registry[.]yarn"  # where packages are downloaded from
    rb"|/wor[k]/(main|shared|steering|[.]library)|/tmp/pla[n]|/roo[t]/|/opt/pyp[i]"  # paths of one machine
    rb"|sub[a]gent|[C]o-Authored-By"  # tools that made it
)


def tracked_files() -> list[Path]:
    """All files that are, or are about to be, in the repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    paths = [ROOT / name.decode() for name in listing.split(b"\0") if name]
    return [path for path in paths if path.is_file()]


def test_imports_run_one_way() -> None:
    lint_imports = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run(
        [lint_imports, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_files_name_no_download_host_or_machine() -> None:
    files = tracked_files()
    assert ROOT / "pyproject.toml" in files
    found = [
        f"{path.relative_to(ROOT)}: {match.group().decode()}"
        for path in files
        for match in NOT_TO_BE_NAMED.finditer(path.read_bytes())
    ]
    assert found == []


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_hold_no_address(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text()
    assert "://" not in text
    assert not re.search(r"^--", text, re.MULTILINE)


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_hold_what_the_project_declares(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text()
    locked = dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", text, re.MULTILINE))
    for requirement in declared_requirements(with_tools=lock == "dev"):
        name = canonicalize_name(requirement.name)
        assert name in locked, f"run `make lock`: {lock}.lock lacks {name}"
        assert requirement.specifier.contains(locked[name]), f"run `make lock`: {lock}.lock has {name} {locked[name]}"


def test_the_dev_lock_extends_the_runtime_lock() -> None:
    pins = [
        set(re.findall(r"^[a-z0-9.-]+==\S+", (ROOT / "requirements" / f"{lock}.lock").read_text(), re.MULTILINE))
        for lock in LOCKS
    ]
    assert pins[0] <= pins[1]


def declared_requirements(*, with_tools: bool) -> list[Requirement]:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = declared["dependency-groups"]
    texts = [
        *declared["project"]["dependencies"],
        *declared["project"]["optional-dependencies"]["hub"],
        *groups["build"],
    ]
    if with_tools:
        texts += [text for text in groups["dev"] if isinstance(text, str)]
    return [Requirement(text) for text in texts]


def test_the_wheel_holds_every_contract_and_module(tmp_path: Path) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    packed = {
        path.relative_to(ROOT).as_posix()
        for path in tracked_files()
        if path.relative_to(ROOT).parts[0] in {"contracts", "learning_core", "providers"}
    }
    for name in [*packed, "pyproject.toml", "README.md", "LICENSE"]:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    out.mkdir()
    build = f"from setuptools.build_meta import build_wheel; build_wheel({str(out)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True)
    (wheel,) = out.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert packed <= names
    assert any(name.endswith("entry_points.txt") for name in names)

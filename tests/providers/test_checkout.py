"""Where the command works: a checkout's own store, or one that is named; and the console script in a real checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from learning_core.errors import Busy, InvalidArgument, InvalidConfiguration, LearningError, PluginFailed, UnsafeStorage
from providers.checkout import CheckoutHost
from providers.turn import take_turn

PROGRAM = Path(sys.executable).with_name("replica-learning")


def git(directory: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(directory), *arguments], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    directory = tmp_path / "checkout"
    directory.mkdir()
    git(directory, "init", "--quiet")
    git(directory, "remote", "add", "origin", "git@github.example:Acme/Checkout-Prototypes.git")
    (directory / ".gitignore").write_text(".replica/\n")
    return directory


@pytest.mark.parametrize(
    ("remote", "scope"),
    [
        ("https://github.com/Acme/Site.git", "github.com/acme/site"),
        ("https://github.com/acme/site/", "github.com/acme/site"),
        ("https://mona:secret@github.com/acme/site", "github.com/acme/site"),
        ("git@github.com:acme/site.git", "github.com/acme/site"),
        ("ssh://git@github.example:2222/acme/site.git", "github.example:2222/acme/site"),
        ("git://github.com/acme/dotted.name.git", "github.com/acme/dotted.name"),
    ],
)
def test_the_scope_comes_from_the_origin_remote(checkout: Path, remote: str, scope: str) -> None:
    git(checkout, "remote", "set-url", "origin", remote)
    assert CheckoutHost(checkout).open_workspace(None, None).scope == scope


@pytest.mark.parametrize(
    "remote",
    [
        "/srv/git/site.git",
        "https://github.com/site",
        "https://github.com/a/b/c",
        "x",
        r"https://github.com\@evil.example/acme/x",
        r"https://evil.example\.github.com/acme/x",
        "https://github.com/_id/7",
        "git@github.com:_ID/7.git",
        os.fsdecode(b"https://github.com/acme/\xff"),
    ],
)
def test_a_remote_without_host_owner_and_name_is_refused(checkout: Path, remote: str) -> None:
    git(checkout, "remote", "set-url", "origin", remote)
    with pytest.raises(LearningError) as refused:
        CheckoutHost(checkout).open_workspace(None, None)
    assert refused.value.code in ("invalid_configuration", "invalid_identifier")


def test_a_password_in_the_remote_is_never_shown(checkout: Path) -> None:
    git(checkout, "remote", "set-url", "origin", "https://mona:tops3cret@github.com/acme")
    done = subprocess.run([str(PROGRAM), "doctor"], cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "tops3cret" not in done.stdout + done.stderr
    assert "mona" not in done.stdout + done.stderr


def test_outside_a_checkout_the_store_is_named(tmp_path: Path) -> None:
    host = CheckoutHost(tmp_path)
    for repository, directory in ((None, None), (None, "store"), ("github.com/acme/site", None)):
        with pytest.raises(InvalidArgument):
            host.open_workspace(repository, directory)
    assert host.open_workspace("github.com/acme/site", "store").scope == "github.com/acme/site"


def test_data_in_a_checkout_must_be_ignored_by_git(checkout: Path) -> None:
    (checkout / ".gitignore").write_text("")
    with pytest.raises(UnsafeStorage):
        CheckoutHost(checkout).open_workspace(None, None)


@pytest.mark.parametrize(
    "directory", [".", "data", "..data", ".replica", ".replica/../data", ".replicas/x", "build/.replica"]
)
def test_data_in_a_checkout_lies_only_under_replica(checkout: Path, directory: str) -> None:
    (checkout / ".gitignore").write_text("*\n")
    with pytest.raises(UnsafeStorage):
        CheckoutHost(checkout).open_workspace("github.com/acme/site", directory)


def test_a_link_out_of_replica_is_followed_before_the_check(checkout: Path) -> None:
    (checkout / "dist").mkdir()
    (checkout / ".replica").mkdir()
    (checkout / ".replica" / "learning").symlink_to(checkout / "dist")
    with pytest.raises(UnsafeStorage):
        CheckoutHost(checkout).open_workspace(None, None)


@pytest.mark.parametrize("inside", ["", "other/.replica"])
@pytest.mark.parametrize("directory", [None, ".replica/learning"])
def test_a_link_leads_out_of_no_checkout(checkout: Path, tmp_path: Path, inside: str, directory: str | None) -> None:
    if inside:
        (tmp_path / "other").mkdir()
        git(tmp_path / "other", "init", "--quiet")
        (tmp_path / "other" / ".gitignore").write_text(".replica/\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / (inside or "elsewhere")).mkdir(exist_ok=True)
    (checkout / ".replica").symlink_to(tmp_path / (inside or "elsewhere"))
    (checkout / ".gitignore").write_text(".replica\n")
    with pytest.raises(UnsafeStorage):
        CheckoutHost(checkout).open_workspace(None, directory)
    with pytest.raises(UnsafeStorage):
        CheckoutHost(tmp_path).open_workspace("github.com/acme/site", str(checkout / "none/../.replica/learning"))


@pytest.mark.parametrize("directory", [".git/replica", ".git"])
def test_data_never_lies_among_the_files_of_git(checkout: Path, directory: str) -> None:
    for host, named in ((CheckoutHost(checkout), directory), (CheckoutHost(Path("/")), str(checkout / directory))):
        with pytest.raises(UnsafeStorage):
            host.open_workspace("github.com/acme/site", named)
    with pytest.raises(UnsafeStorage):
        CheckoutHost(checkout).open_workspace(None, None).check_output(Path(directory) / "out.json")


def test_a_checkouts_own_store_lies_in_it(checkout: Path, tmp_path: Path) -> None:
    with pytest.raises(UnsafeStorage):
        CheckoutHost(checkout).open_workspace(None, str(tmp_path / "store"))
    other = CheckoutHost(checkout).open_workspace("github.com/acme/site", str(tmp_path / "store"))
    assert other.scope == "github.com/acme/site"


def test_every_file_of_the_store_must_be_ignored(checkout: Path) -> None:
    for ignored in (
        ".replica/**/learning.sqlite",
        ".replica/learning/*\n!.replica/learning/config.json",
        "*.sqlite\n*.sqlite-*",
    ):
        (checkout / ".gitignore").write_text(f"{ignored}\n")
        with pytest.raises(UnsafeStorage):
            CheckoutHost(checkout).open_workspace(None, None)


def test_the_turn_makes_private_directories(checkout: Path) -> None:
    with CheckoutHost(checkout).open_workspace(None, None).take_turn(0):
        for made in (".replica", ".replica/learning"):
            assert (checkout / made).stat().st_mode & 0o777 == 0o700


def test_an_open_directory_is_refused_before_anything_is_made_in_it(checkout: Path) -> None:
    store = checkout / ".replica" / "learning"
    store.mkdir(parents=True)
    store.chmod(0o755)
    workspace = CheckoutHost(checkout).open_workspace(None, None)
    with pytest.raises(UnsafeStorage), workspace.take_turn(0):
        pass
    assert list(store.iterdir()) == []


def test_reading_creates_nothing(checkout: Path) -> None:
    workspace = CheckoutHost(checkout).open_workspace(None, None)
    assert workspace.provider.health()["ok"] is True
    assert not (checkout / ".replica").exists()


def write_configuration(checkout: Path, text: str) -> None:
    directory = checkout / ".replica" / "learning"
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    (directory / "config.json").write_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"schemaVersion": "replica.learning-config/v2"}',
        '{"schemaVersion": "replica.learning-config/v1", "scope": "github.com/other/one"}',
        '{"schemaVersion": "replica.learning-config/v1", "memory": {"provider": "mongodb"}}',
        '{"schemaVersion": "replica.learning-config/v1", "memory": {"provider": {"module": "/etc/x.py"}}}',
        '{"schemaVersion": "replica.learning-config/v1", "memory": {}, "memory": {}}',
    ],
)
def test_a_wrong_configuration_is_refused(checkout: Path, text: str) -> None:
    write_configuration(checkout, text)
    with pytest.raises(InvalidConfiguration):
        CheckoutHost(checkout).open_workspace(None, None)


def test_a_consolidator_module_is_handed_the_built_in_ones(checkout: Path) -> None:
    section = {"consolidator": {"module": "./mine.py"}, "options": {"categories": ["testing"]}}
    write_configuration(checkout, json.dumps({"schemaVersion": "replica.learning-config/v1", "consolidation": section}))
    (checkout / "mine.py").write_text(
        "def create_consolidator(options, builtins):\n    return builtins['create_recurrence_consolidator'](options)\n"
    )
    made = CheckoutHost(checkout).open_workspace(None, None).create_consolidator()
    assert made.manifest()["id"] == "recurrence"


@pytest.mark.parametrize(
    ("module", "text"),
    [("./none.py", None), ("./../outside.py", "x = 1"), ("./broken.py", "raise SystemError"), ("./empty.py", "")],
)
def test_a_module_that_cannot_be_loaded_is_refused(checkout: Path, module: str, text: str | None) -> None:
    section = {"consolidator": {"module": module}}
    write_configuration(checkout, json.dumps({"schemaVersion": "replica.learning-config/v1", "consolidation": section}))
    if text is not None:
        (checkout / module).write_text(text)
    with pytest.raises(LearningError) as refused:
        CheckoutHost(checkout).open_workspace(None, None).create_consolidator()
    assert refused.value.code in ("invalid_configuration", "plugin_failed")


@pytest.mark.parametrize(
    "text",
    [
        "raise SystemExit(0)",
        "def create_labeler(options):\n    raise ValueError('a secret')",
        "def create_labeler(options):\n    raise SystemExit(0)",
        "def create_labeler(options):\n    return {}",
        "def create_labeler():\n    pass",
        "class Half:\n    manifest = lambda self: {'id': 'x'}\ndef create_labeler(options):\n    return Half()",
        "class Odd:\n    manifest = dict\n    label = close = print\ndef create_labeler(options):\n    return Odd()",
    ],
)
def test_a_labeler_module_that_fails_is_a_failed_plug_in(checkout: Path, text: str) -> None:
    section = {"labeler": {"module": "./mine.py"}}
    write_configuration(checkout, json.dumps({"schemaVersion": "replica.learning-config/v1", "labeling": section}))
    (checkout / "mine.py").write_text(text + "\n")
    with pytest.raises(PluginFailed) as refused:
        CheckoutHost(checkout).open_workspace(None, None).create_labeler()
    assert "secret" not in refused.value.message


# The turn ------------------------------------------------------------------------------------------------------------


def test_a_second_holder_is_told_that_it_is_busy(tmp_path: Path) -> None:
    with take_turn(tmp_path / "turn.lock"), pytest.raises(Busy), take_turn(tmp_path / "turn.lock"):
        pass
    with take_turn(tmp_path / "turn.lock"):
        pass


def test_a_holder_that_waits_gets_the_turn(tmp_path: Path) -> None:
    got = threading.Event()

    def wait() -> None:
        with take_turn(tmp_path / "turn.lock", wait_seconds=30):
            got.set()

    waiter = threading.Thread(target=wait)
    with take_turn(tmp_path / "turn.lock"):
        waiter.start()
        assert not got.wait(0.2)
    waiter.join(30)
    assert got.is_set()


def test_a_replaced_lock_file_excludes_nobody_wrongly(tmp_path: Path) -> None:
    path = tmp_path / "turn.lock"
    with take_turn(path):
        path.unlink()
        with take_turn(path), pytest.raises(Busy), take_turn(path):
            pass


def test_a_planted_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "turn.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeStorage), take_turn(tmp_path / "turn.lock"):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_the_turn_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "turn.lock"
    script = "import sys, time\nfrom pathlib import Path\nfrom providers.turn import take_turn\n"
    script += "with take_turn(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)\n"
    holder = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(Busy), take_turn(path):
        pass
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with take_turn(path):
        pass


# The console script --------------------------------------------------------------------------------------------------


def test_the_console_script_runs_in_a_subdirectory_and_keeps_files_private(checkout: Path) -> None:
    (checkout / "src").mkdir()
    command = [str(PROGRAM), "grants", "add", "--purpose", "review", "--source", "hub-comments"]
    command += ["--reason", "We agreed.", "--by", "github:mona", "--json"]
    done = subprocess.run(command, cwd=checkout / "src", capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["grant"]["scope"] == "github.example/acme/checkout-prototypes"
    store = checkout / ".replica" / "learning"
    assert store.stat().st_mode & 0o777 == 0o700
    assert (store / "learning.sqlite").stat().st_mode & 0o777 == 0o600


def test_help_needs_no_checkout_and_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    done = subprocess.run([str(PROGRAM), "--help"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "recall" in done.stdout
    reader, writer = os.pipe()
    os.close(reader)
    closed = subprocess.run(
        [str(PROGRAM), "--help"], cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert "Traceback" not in closed.stderr


SHELL_CASES = {
    "closed output": ('"$0" doctor >&-', "storage_failed"),
    "full output": ('"$0" doctor >/dev/full', "storage_failed"),
    "full output, json": ('"$0" doctor --json >/dev/full', "storage_failed"),
    "closed input": ('"$0" recall --task-file - <&-', "not_found"),
    "no text as input": ("printf '\\xff' | LC_ALL=C \"$0\" recall --task-file -", "invalid_argument"),
    "endless input": ('"$0" recall --task-file - </dev/zero', "invalid_argument"),
    "no working directory": ('mkdir x; cd x; rmdir ../x; "$0" status', ""),
    "no working directory, named": (
        'mkdir x; cd x; rmdir ../x; "$0" status --repository github.com/a/b --dir y',
        "",
    ),
    "no text as ID": ("\"$0\" show $'\\xff'", "invalid_argument"),
    "no text as text": ("\"$0\" accept m --review-digest d --by github:m --text $'\\xff'", "invalid_argument"),
    "long name": ('"$0" doctor --repository github.com/a/b --dir /tmp/$(printf "%0300d" 1)', ""),
    "long name, written": ('"$0" label --repository github.com/a/b --dir /tmp/$(printf "%0300d" 1)', ""),
    "no place": ('"$0" label --repository github.com/a/b --dir /proc/self/x', "storage_failed"),
    "odd remote": (
        "git config remote.origin.url $'https://github.com/acme/\\xff'; \"$0\" doctor",
        "invalid_identifier",
    ),
    "pipe as text": ('mkfifo p; "$0" recall --task-file p', "not_found"),
    "device as text": ('"$0" recall --task-file /dev/zero', "not_found"),
    "pipe as labels": ('mkfifo p; "$0" label p', "not_found"),
    "device as log": ('"$0" import hub-comments /dev/zero', ""),
    "pipe as log": ('mkfifo p; "$0" import hub-comments p', ""),
    "pipe as configuration": (
        'mkdir -pm700 .replica/learning; mkfifo .replica/learning/config.json; "$0" doctor',
        "invalid_configuration",
    ),
}


@pytest.mark.parametrize("case", SHELL_CASES)
def test_nothing_odd_ends_in_a_traceback_or_hangs(checkout: Path, case: str) -> None:
    line, code = SHELL_CASES[case]
    command = ["bash", "-c", line, str(PROGRAM)]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"error: {code}")
    assert "Traceback" not in done.stderr
    assert "internal_error" not in done.stderr


def test_what_a_terminal_cannot_show_is_escaped(checkout: Path) -> None:
    command = [str(PROGRAM), "grants", "add", "--purpose", "review", "--source", "hub-comments", "--reason", "Größe"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    run = [*command, "--by", "github:mona", "--json"]
    done = subprocess.run(run, cwd=checkout, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["grant"]["reason"] == "Größe"


# Exports -------------------------------------------------------------------------------------------------------------


def test_an_export_follows_no_link_out_of_the_checkout(checkout: Path, tmp_path: Path) -> None:
    workspace = CheckoutHost(checkout).open_workspace(None, None)
    (tmp_path / "elsewhere").mkdir()
    (checkout / ".replica").symlink_to(tmp_path / "elsewhere")
    (checkout / ".gitignore").write_text(".replica\n")
    with pytest.raises(UnsafeStorage):
        workspace.check_output(Path(".replica/out.json"))


def export(checkout: Path, output: str) -> subprocess.CompletedProcess[str]:
    command = [str(PROGRAM), "export", "--purpose", "review", "--output", output, "--by", "github:mona", "--json"]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


def test_an_export_in_a_checkout_lies_only_under_replica(checkout: Path) -> None:
    command = [str(PROGRAM), "grants", "add", "--purpose", "review", "--source", "hub-comments"]
    subprocess.run([*command, "--reason", "x", "--by", "github:mona"], cwd=checkout, check=True, capture_output=True)
    for place in ("out.json", "dist/out.json", ".replica/../out.json"):
        assert export(checkout, place).stderr.startswith("error: unsafe_storage: ")
    (checkout / "dist").mkdir()
    (checkout / ".replica" / "link").symlink_to(checkout / "dist")
    assert export(checkout, ".replica/link/out.json").stderr.startswith("error: unsafe_storage: ")
    done = export(checkout, ".replica/out.json")
    written = checkout / ".replica" / "out.json"
    assert json.loads(done.stdout) == {
        "manifest": json.loads(written.read_text())["manifest"],
        "file": ".replica/out.json",
    }
    assert written.stat().st_mode & 0o777 == 0o600
    assert export(checkout, ".replica/out.json").stderr.startswith("error: invalid_argument: ")

"""The environment variables: the local default, and what a production Hub must be told."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hub_learning.environment import (
    LONGEST_SOCKET_PATH,
    embedded_socket,
    prepare_data_directory,
    read_environment,
    stored_secret,
    write_private,
)
from learning_core.errors import InvalidConfiguration

ROOT = Path(__file__).parents[2]
PRODUCTION = {
    "HUB_SECRET_KEY": "k" * 50,
    "HUB_ORIGIN": "https://hub.example.com",
    "HUB_DATA_DIR": "/srv/hub",
    "HUB_BIND": "0.0.0.0:8000",
    "HUB_GITHUB_CLIENT_ID": "client",
    "HUB_GITHUB_CLIENT_SECRET": "s" * 40,
    "HUB_GITHUB_WEBHOOK_SECRET": "w" * 32,
    "HUB_ADMINISTRATORS": "github-user:github.com/9001, github-user:ghe.example.com/2",
}


def test_without_configuration_the_hub_is_local(tmp_path: Path) -> None:
    hub = read_environment({}, tmp_path)
    assert (hub.production, hub.local_sign_in, hub.embedded_redis) == (False, True, True)
    assert (hub.bind, hub.origin) == ("127.0.0.1:8000", "http://127.0.0.1:8000")
    assert hub.data_directory == tmp_path / ".hub-data"
    assert hub.database["NAME"] == tmp_path / ".hub-data" / "hub.sqlite"


def test_a_production_hub_that_is_told_everything_is_accepted(tmp_path: Path) -> None:
    hub = read_environment(PRODUCTION, tmp_path)
    assert (hub.production, hub.local_sign_in) == (True, False)
    assert hub.administrators == {"github-user:github.com/9001", "github-user:ghe.example.com/2"}


@pytest.mark.parametrize("name", sorted(set(PRODUCTION) - {"HUB_ORIGIN", "HUB_BIND"}))
@pytest.mark.parametrize("value", [None, " "])
def test_a_production_hub_names_what_is_missing(tmp_path: Path, name: str, value: str | None) -> None:
    variables = {key: text for key, text in PRODUCTION.items() if key != name}
    check_refused(variables if value is None else variables | {name: value}, name, tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HUB_SECRET_KEY", "short"),
        ("HUB_GITHUB_WEBHOOK_SECRET", "short"),
        ("HUB_GITHUB_CLIENT_SECRET", "short"),
        ("HUB_ORIGIN", "http://hub.example.com"),
        ("HUB_ORIGIN", "https://hub.example.com/path"),
        ("HUB_ORIGIN", "hub.example.com"),
        ("HUB_LOCAL_SIGN_IN", "on"),
        ("HUB_LOCAL_SIGN_IN", "perhaps"),
        ("HUB_ADMINISTRATORS", "mona"),
        ("HUB_BIND", "8000"),
        ("HUB_BIND", "127.0.0.1:99999"),
        ("DATABASE_URL", "mysql://x/y"),
        ("DATABASE_URL", "sqlite://relative.sqlite"),
    ],
)
def test_a_production_hub_names_what_is_unsafe(tmp_path: Path, name: str, value: str) -> None:
    check_refused(PRODUCTION | {name: value}, name, tmp_path)


@pytest.mark.parametrize("bind", ["0.0.0.0:8000", "[::]:8000", "192.0.2.1:80"])
def test_a_local_hub_answers_this_machine_only(tmp_path: Path, bind: str) -> None:
    check_refused({"HUB_BIND": bind}, "HUB_BIND", tmp_path)


@pytest.mark.parametrize("bind", ["127.0.0.1:1", "[::1]:8000", "localhost:8000"])
def test_loopback_is_this_machine(tmp_path: Path, bind: str) -> None:
    assert not read_environment({"HUB_BIND": bind}, tmp_path).production


def check_refused(variables: dict[str, str], name: str, base: Path) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        read_environment(variables, base)
    assert refused.value.message.startswith(f"{name} ")
    assert refused.value.details == {"variable": name}


def test_a_database_may_be_elsewhere(tmp_path: Path) -> None:
    local = read_environment({"DATABASE_URL": "sqlite:////srv/a%20b.sqlite"}, tmp_path).database
    assert local["NAME"] == Path("/srv/a b.sqlite")
    server = read_environment({"DATABASE_URL": "postgresql://u:p%40ss@db:5433/hub"}, tmp_path).database
    assert (server["ENGINE"], server["NAME"]) == ("django.db.backends.postgresql", "hub")
    assert (server["USER"], server["PASSWORD"], server["HOST"], server["PORT"]) == ("u", "p@ss", "db", "5433")


def test_the_embedded_socket_has_a_path_that_the_system_allows(tmp_path: Path) -> None:
    short, long = Path("/srv/hub"), tmp_path / ("x" * 100)
    assert embedded_socket(short) == short / "valkey" / "socket"
    assert len(os.fsencode(embedded_socket(long))) <= LONGEST_SOCKET_PATH
    assert embedded_socket(long) != embedded_socket(long / "y")


def test_the_data_directory_is_private_and_keeps_its_secret(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b"
    prepare_data_directory(directory)
    secret = stored_secret(directory)
    prepare_data_directory(directory)
    assert stored_secret(directory) == secret
    assert len(secret) >= 50
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / "secret-key").stat().st_mode) == 0o600


def test_a_data_directory_that_others_can_read_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with pytest.raises(InvalidConfiguration, match=r"^HUB_DATA_DIR "):
        prepare_data_directory(tmp_path)


def test_a_private_file_does_not_follow_a_link(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "token").symlink_to(target)
    (tmp_path / "token.new").symlink_to(target)
    write_private(tmp_path / "token", "secret")
    assert target.read_text() == "mine"
    assert (tmp_path / "token").read_text() == "secret"


def test_a_refusal_is_one_line_and_exit_status_2(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HUB_DATA_DIR": str(tmp_path / "new"), "HUB_BIND": "nowhere"}
    command = [sys.executable, str(ROOT / "manage.py"), "check"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr == "error: invalid_configuration: HUB_BIND is a host and a port, such as 127.0.0.1:8000.\n"
    assert not (tmp_path / "new").exists()

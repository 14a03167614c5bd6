"""`manage.py run`: an empty Hub becomes one that has proposals; and nothing is left when it ends."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.hub.processes import Hub, make_hub, running, wait_for

SENTINEL = "The white label on the green pay button"
"""From the sample's first comment."""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    hub = make_hub(tmp_path)
    yield hub
    assert hub.processes() == {}


def get(hub: Hub, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(hub.bind, timeout=20)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    response.body = response.read()  # type: ignore[attr-defined]
    connection.close()
    return response


def sign_in(hub: Hub, said: str) -> tuple[str, str]:
    """The session's cookie, and where the printed link leads."""
    link = re.search(rf"http://{hub.bind}(/sign-in/local\S+)", said)
    assert link is not None
    response = get(hub, link[1])
    assert response.status == 302
    cookies = [cookie.split(";")[0] for cookie in response.headers.get_all("Set-Cookie", [])]
    return "; ".join(cookies), response.headers["Location"]


def test_an_empty_hub_learns_from_the_sample_and_keeps_it(hub: Hub) -> None:
    with running(hub) as (process, said):
        assert "Taking in comments: done\n" in said
        for words in ("Reading comments", "Finding themes", "Proposing learnings"):
            assert f"{words}: done\n" in said
        assert get(hub, "/readyz").status == 200
        cookie, place = sign_in(hub, said)
        page = get(hub, place, Cookie=cookie)
        assert page.status == 200
        assert "proposed" in page.body.decode()  # type: ignore[attr-defined]
        assert get(hub, place).status in {302, 401, 403}
        check_text(hub)
        learned = hub.query("SELECT result FROM hub_learning_learningrun WHERE kind = 'consolidate'")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
    assert hub.processes() == {}
    with running(hub) as (process, said):
        assert "sample" not in said
        assert get(hub, urlsplit(place).path, Cookie=cookie).status == 200
        assert hub.query("SELECT result FROM hub_learning_learningrun WHERE kind = 'consolidate'") == learned
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def check_text(hub: Hub) -> None:
    """Text is in the Hub's database and the store, and in no other file."""
    holders = hub.holders(SENTINEL)
    kept = ("hub.sqlite", "repositories/1/learning.sqlite")
    assert holders
    assert [name for name in holders if not name.startswith(kept)] == []
    assert [name for name in hub.holders("hub_learning.jobs.run_turn_job") if name.startswith("valkey/")], "no control"


def test_a_running_hub_answers_commands_and_dies_whole(hub: Hub, tmp_path: Path) -> None:
    with running(hub) as (process, _):
        second = Hub(hub.directory, make_hub(tmp_path).bind).run("run")
        assert (second.returncode, second.stderr.split(":")[1]) == (1, " already_running")
        status = hub.run("learning", "--repository", "acme/checkout-prototypes", "status", "--json")
        assert (status.returncode, status.stderr) == (0, "")
        assert json.loads(status.stdout)["counts"]["proposed"] > 0
        verified = hub.run("learning", "verify", "--json")
        assert (verified.returncode, verified.stderr) == (0, "")
        assert json.loads(verified.stdout)["repositories"]["1"]["problems"] == []
        missing = hub.run("learning", "--repository", "7", "status")
        assert (missing.returncode, missing.stderr.split(":")[1]) == (1, " not_found")
        made = hub.run("api_token", "--repository", "1", "--kind", "agent", "--name", "builder", "--by", "github:mona")
        assert (made.returncode, made.stderr) == (0, "")
        for is_chunked in (False, True):
            assert recall(hub, made.stdout.strip(), is_chunked) == {"text": "", "learnings": []}
        open_to_others = [path for path in hub.directory.rglob("*") if path.lstat().st_mode & 0o077]
        assert [path for path in open_to_others if not path.is_socket()] == []
        process.kill()
        wait_for("all end", lambda: hub.processes() == {})


def recall(hub: Hub, token: str, is_chunked: bool) -> Any:
    connection = http.client.HTTPConnection(hub.bind, timeout=20)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = json.dumps({"task": "Build a form"}).encode()
    connection.request("POST", "/api/v1/repositories/1/recall", iter([body]) if is_chunked else body, headers)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def test_when_one_part_dies_all_end(hub: Hub) -> None:
    with running(hub) as (process, _):
        parts = hub.processes()
        assert len(parts) >= 7
        os.kill(next(number for number, line in parts.items() if "valkey-server" in line), signal.SIGKILL)
        assert process.stdout is not None
        rest = process.stdout.read()
        assert process.wait(timeout=30) == 1
        assert "\nerror: child_ended: The Valkey ended (signal SIGKILL), so the Hub stopped.\n" in "\n" + rest


def test_a_taken_port_is_told_before_anything_starts(hub: Hub) -> None:
    host, port = hub.bind.split(":")
    with socket.create_server((host, int(port))):
        result = hub.run("run")
    assert result.returncode == 2
    assert result.stderr.startswith(f"error: invalid_configuration: HUB_BIND is {hub.bind}, which cannot be used")
    assert not (hub.directory / "hub.sqlite").exists()


SUPERVISOR = """
import os, sys
from hub_learning import supervisor
supervisor.STOP_SECONDS = 1
def service(code):
    return [sys.executable, "-c", "import signal; " + code]
with supervisor.Children() as children:
    for name in ("a", "b"):
        children.start(name, service("signal.pause()"))
    stay = "signal.signal(signal.SIGTERM, signal.SIG_IGN); open('up', 'w'); signal.pause()"
    children.start("stubborn", service(stay))
    children.until_ready("stubborn", lambda: os.path.exists("up"))
    {then}
"""
"""Three services, one of which does not end when asked."""


def supervise(hub: Hub, then: str) -> subprocess.Popen[str]:
    hub.directory.mkdir()
    return hub.start("-c", SUPERVISOR.format(then=then), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_every_service(hub: Hub, number: signal.Signals) -> None:
    with supervise(hub, "print('up', flush=True); children.watch()") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        assert len(hub.processes()) == 4
        process.send_signal(number)
        assert process.wait(timeout=30) == 0


def test_a_command_that_fails_ends_every_service(hub: Hub) -> None:
    with supervise(hub, "children.run('migrate', service('raise SystemExit(3)'))") as process:
        _, err = process.communicate(timeout=30)
    assert "ChildEnded: migrate failed (exit status 3)" in err


def test_a_service_that_dies_during_a_command_ends_it(hub: Hub) -> None:
    then = "children.services[0][1].kill(); children.run('x', service('signal.pause()'))"
    with supervise(hub, then) as process:
        _, err = process.communicate(timeout=30)
    assert "ChildEnded: The a ended (signal SIGKILL)" in err


def test_services_die_with_the_supervisor(hub: Hub) -> None:
    with supervise(hub, "print('up', flush=True); children.watch()") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.kill()
        wait_for("all end", lambda: hub.processes() == {})

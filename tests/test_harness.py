"""The guards in `conftest.py` hold."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

OUTSIDE = "192.0.2.1"
"""Reserved for documentation (RFC 5737): no machine has it."""


def test_a_socket_cannot_reach_another_machine() -> None:
    with socket.socket() as connection, pytest.raises(PermissionError, match="this machine only"):
        connection.connect((OUTSIDE, 80))


def test_a_datagram_cannot_reach_another_machine() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as connection, pytest.raises(PermissionError, match="this machine only"):
        connection.sendto(b"x", (OUTSIDE, 80))


def test_a_server_cannot_listen_for_other_machines() -> None:
    with socket.socket() as server, pytest.raises(PermissionError, match="this machine only"):
        server.bind(("0.0.0.0", 0))


def test_a_name_cannot_be_looked_up_elsewhere() -> None:
    with pytest.raises(PermissionError, match="this machine only"):
        socket.getaddrinfo("example.com", 80)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_this_machine_can_be_reached(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection((host, server.getsockname()[1])):
        accepted, _ = server.accept()
        accepted.close()


def test_unix_sockets_can_be_used(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as connection:
        server.bind(path)
        server.listen()
        connection.connect(path)
        assert connection.getpeername() == path


SKIPPING_MODULES = {
    "test_call": "import pytest\ndef test_it(): pytest.skip('no browser')",
    "test_mark": "import pytest\n@pytest.mark.skip(reason='no browser')\ndef test_it(): pass",
    "test_module": "import pytest\npytest.skip('no browser', allow_module_level=True)",
    "test_xfail": "import pytest\n@pytest.mark.xfail(reason='no browser')\ndef test_it(): assert False",
}


@pytest.mark.parametrize("name", SKIPPING_MODULES)
def test_a_skip_fails_in_ci(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    pytester.makepyfile(**{name: SKIPPING_MODULES[name]})
    result = pytester.runpytest_subprocess("-p", "tests.conftest", "-n", "1")
    assert result.ret != 0
    assert "no browser" in result.stdout.str()
    assert "skipped" not in result.parseoutcomes()

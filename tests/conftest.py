"""What holds for every test: sockets reach this machine only, and nothing is skipped in CI."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Generator, Iterator
from ipaddress import ip_address
from typing import Any

import hypothesis
import pytest
from playwright.sync_api import Browser, sync_playwright

pytest_plugins = ["pytester"]

IN_CI = os.environ.get("CI") == "true"


def pytest_configure() -> None:
    sys.addaudithook(refuse_other_machines)
    # Examples are not timed, because the machine may be busy; in CI they are the same on every run.
    hypothesis.settings.register_profile("project", deadline=None, derandomize=IN_CI)
    hypothesis.settings.load_profile("project")


def refuse_other_machines(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse every socket call that names an address outside this machine; Unix sockets and socket pairs pass."""
    if event in {"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"}:
        connection, address = arguments[:2]
        if connection.family not in {socket.AF_INET, socket.AF_INET6} or address is None:
            return
        host = address[0]
    elif event in {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}:
        host = arguments[0]
    else:
        return
    if not is_loopback(host):
        raise PermissionError(f"{event}: tests reach this machine only, not {host!r}")


def is_loopback(host: str | bytes | None) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    if name is None or name == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip (or an expected failure) into a failure in CI: there, everything that a test needs is installed."""
    if IN_CI and report.skipped:
        report.outcome = "failed"
        if isinstance(report, pytest.TestReport) and hasattr(report, "wasxfail"):
            del report.wasxfail  # With it, pytest would print a failure and still exit with 0.
        report.longrepr = f"{report.nodeid} was skipped in CI: {report.longrepr}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    fail_if_skipped(report)
    return report


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, one for all tests of a process: Playwright runs one event loop in a thread."""
    # Django would take every query in that thread for one from a coroutine.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    found = [path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))]
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found[0] if found else None, args=flags)
        yield chromium
        chromium.close()

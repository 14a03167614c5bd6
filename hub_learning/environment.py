"""The Hub's environment variables: read once, checked, and refused by name when missing or unsafe.

There are two modes. Without configuration the Hub is *local*: it answers on a loopback address only, and everything
it needs runs beside it. `HUB_ORIGIN` naming another machine's address makes it a *production* Hub, which must be told
everything that decides who may do what.

Source: design.md, section 4, "Environment", and decision 17.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import unquote, urlsplit

from learning_core.errors import InvalidConfiguration

PRODUCTION_NEEDS = (
    "HUB_SECRET_KEY",
    "HUB_DATA_DIR",
    "HUB_GITHUB_CLIENT_ID",
    "HUB_GITHUB_CLIENT_SECRET",
    "HUB_GITHUB_WEBHOOK_SECRET",
    "HUB_ADMINISTRATORS",
)
SECRETS = {"HUB_SECRET_KEY": 50, "HUB_GITHUB_WEBHOOK_SECRET": 16, "HUB_GITHUB_CLIENT_SECRET": 16}
"""The fewest characters that a secret has in production."""

LONGEST_SOCKET_PATH = 100
"""Of the 108 bytes that the system allows, with room for its end mark."""

_ADMINISTRATOR = re.compile(r"github-user:[a-z0-9.-]+(?::[0-9]{1,5})?/[1-9][0-9]{0,15}")
_ORIGIN = re.compile(r"https?://(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[::1\])(?::[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Environment:
    """What the variables say, checked. Addresses are text; the data directory is absolute and may not exist yet."""

    production: bool
    secret_key: str | None
    """None: the one in the data directory, which `manage.py run` makes."""
    origin: str
    bind: str
    data_directory: Path
    database: Mapping[str, object]
    """Django's settings of the `default` database."""
    redis_url: str
    embedded_redis: bool
    local_sign_in: bool
    administrators: frozenset[str]
    """Principals."""


def read_environment(variables: Mapping[str, str], base: Path) -> Environment:
    """The environment, or `InvalidConfiguration` whose message begins with the variable's name.

    1. `HUB_BIND` is `host:port`; `HUB_ORIGIN` is an origin without a path.
    2. A Hub that other machines reach (bound to, or named by, another address than loopback) is a production Hub.
    3. A production Hub is named by https, has every variable that it needs, long secrets, and no local sign-in.
    """
    get = {name: value.strip() for name, value in variables.items() if value.strip()}.get
    bind = get("HUB_BIND") or "127.0.0.1:8000"
    host, port = split_bind(bind)
    if get("HUB_ORIGIN") is None and not is_loopback(host):
        raise refuse("HUB_BIND", f"is {bind}, which other machines reach; set HUB_ORIGIN to the address they use")
    origin = (get("HUB_ORIGIN") or f"http://{'localhost' if host == '::1' else host}:{port}").lower()
    if _ORIGIN.fullmatch(origin) is None:
        raise refuse("HUB_ORIGIN", "is an origin such as https://hub.example.com: scheme, host, optional port, no path")
    production = not is_loopback(urlsplit(origin).hostname or "")
    if not production and not is_loopback(host):
        raise refuse("HUB_BIND", f"is {bind}, which other machines reach, but HUB_ORIGIN is {origin}")
    local_sign_in = read_switch("HUB_LOCAL_SIGN_IN", get("HUB_LOCAL_SIGN_IN"), default=not production)
    if production:
        check_production({name: get(name) for name in PRODUCTION_NEEDS}, origin, local_sign_in=local_sign_in)
    directory = (base / (get("HUB_DATA_DIR") or ".hub-data")).absolute()
    redis_url = get("REDIS_URL")
    return Environment(
        production=production,
        secret_key=get("HUB_SECRET_KEY"),
        origin=origin,
        bind=bind,
        data_directory=directory,
        database=read_database(get("DATABASE_URL"), directory),
        redis_url=redis_url or f"unix://{embedded_socket(directory)}",
        embedded_redis=redis_url is None,
        local_sign_in=local_sign_in,
        administrators=read_administrators(get("HUB_ADMINISTRATORS")),
    )


def check_production(values: Mapping[str, str | None], origin: str, *, local_sign_in: bool) -> None:
    """Refuse a production Hub that is not told everything, or told something unsafe."""
    for name, value in values.items():
        if value is None:
            raise refuse(name, f"must be set, because HUB_ORIGIN is {origin}")
    for name, least in SECRETS.items():
        if len(values[name] or "") < least:
            raise refuse(name, f"must have at least {least} characters")
    if not origin.startswith("https://"):
        raise refuse("HUB_ORIGIN", f"is {origin}; people sign in there, so it must be https")
    if local_sign_in:
        raise refuse("HUB_LOCAL_SIGN_IN", f"must be off, because HUB_ORIGIN is {origin}")


def split_bind(bind: str) -> tuple[str, int]:
    """Host and port of `host:port` (an IPv6 host in brackets)."""
    host, colon, port = bind.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise refuse("HUB_BIND", "is a host and a port, such as 127.0.0.1:8000")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the host."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def read_switch(name: str, value: str | None, *, default: bool) -> bool:
    """`on` or `off` (also 1, 0, true, false, yes, no)."""
    if value is None:
        return default
    if value.lower() in {"on", "1", "true", "yes"}:
        return True
    if value.lower() in {"off", "0", "false", "no"}:
        return False
    raise refuse(name, "is on or off")


def read_administrators(value: str | None) -> frozenset[str]:
    """The Hub administrators' principals, separated by commas or spaces."""
    names = (value or "").replace(",", " ").split()
    for name in names:
        if _ADMINISTRATOR.fullmatch(name) is None:
            raise refuse("HUB_ADMINISTRATORS", "lists people as github-user:<host>/<id>")
    return frozenset(names)


def read_database(url: str | None, directory: Path) -> Mapping[str, object]:
    """Django's settings of a database: `sqlite:///<path>`, `postgresql://…`, or hub.sqlite in the directory."""
    parts = urlsplit(url or "")
    if url is None or parts.scheme == "sqlite":
        path = Path("/", unquote(parts.path).lstrip("/")) if url else directory / "hub.sqlite"
        if parts.netloc or path == Path("/"):
            raise refuse("DATABASE_URL", "names a SQLite file as sqlite:///absolute/path")
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": path,
            "OPTIONS": {
                # A commit survives a power failure, since it answers a webhook. Removed text is overwritten, and none
                # gets into temporary files.
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=ON;"
                " PRAGMA temp_store=MEMORY;",
                "transaction_mode": "IMMEDIATE",
                "timeout": 30,
            },
        }
    if parts.scheme in {"postgres", "postgresql"} and parts.path.strip("/"):
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.strip("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": parts.hostname or "",
            "PORT": str(parts.port or ""),
        }
    raise refuse("DATABASE_URL", "is sqlite:///absolute/path or postgresql://user:password@host/name")


def embedded_socket(directory: Path) -> Path:
    """Where the embedded Valkey listens: in the data directory, or in a private short one if that path is too long."""
    path = directory / "valkey" / "socket"
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    name = hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"hub-learning-{os.getuid()}-{name}" / "socket"


def stored_secret(directory: Path) -> str:
    """The secret key that `prepare_data_directory` made; before that, one that lasts as long as the process."""
    try:
        return (directory / "secret-key").read_text("ascii")
    except FileNotFoundError:
        return secrets.token_urlsafe(48)


def prepare_data_directory(directory: Path) -> None:
    """Make the data directory, for its owner only, and its secret key. Refuses a directory that others can read."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = directory.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise refuse("HUB_DATA_DIR", f"is {directory}, which other users can open; run: chmod 700 {directory}")
    if not (directory / "secret-key").exists():
        write_private(directory / "secret-key", secrets.token_urlsafe(48))


def write_private(path: Path, text: str) -> None:
    """Write a whole small file that only its owner can read, or leave what was there."""
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        os.write(descriptor, text.encode("ascii"))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    temporary.replace(path)


def refuse(name: str, why: str) -> InvalidConfiguration:
    """The refusal of one variable."""
    return InvalidConfiguration(f"{name} {why}.", variable=name)

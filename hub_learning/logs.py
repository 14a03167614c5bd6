"""Log lines that cannot carry comment text: an exception is shown by class, code and place, never by its message.

Exceptions of drivers and frameworks may quote the values they were given. The core's own carry IDs by contract; they
are treated the same, because a contract is not a guard.
"""

from __future__ import annotations

import logging
import traceback
from types import TracebackType


class CodesOnlyFormatter(logging.Formatter):
    """Formats a record as `level logger: message`, and an exception as its chain of classes with the places."""

    def __init__(self) -> None:
        super().__init__("{levelname} {name}: {message}", style="{")

    def formatException(  # noqa: N802 - the name is logging's
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None],
    ) -> str:
        error = ei[1]
        lines: list[str] = []
        while error is not None:
            lines.append(name_failure(error))
            lines += [f"  at {place}" for place in list_places(error)]
            error = error.__cause__ or error.__context__
        return "\n".join(lines)


def describe_failure(error: BaseException) -> str:
    """An exception in one line: its name, and where it was raised."""
    places = list_places(error)
    return f"{name_failure(error)} at {places[-1]}" if places else name_failure(error)


def list_places(error: BaseException) -> list[str]:
    """The places that an exception passed, where it was raised last."""
    return [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]


def name_failure(error: BaseException) -> str:
    """The class of an exception, and its code if it is a refusal."""
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    code = getattr(error, "code", None)
    return f"{name} ({code})" if isinstance(code, str) else name

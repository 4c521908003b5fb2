"""The errors Moot raises on purpose. Each says what happened and what the reader can do about it.

Anything that is not an `AppError` is a defect and is treated as one. HTTP status: `shared/presentation/errors.py`.
"""

import sys
from enum import StrEnum
from typing import Any, NamedTuple

from moot.shared.domain.messages import Locale, Message, in_words


class ErrorKind(StrEnum):
    """Of which nature an error is; what to do about each is a text of its own."""

    TIMEOUT = "timeout"
    CONNECTION = "connection"
    RATE_LIMIT = "rate_limit"
    PERMISSION = "permission"
    BREAKER = "breaker"
    BUDGET = "budget"
    MEMORY = "memory"
    DATA = "data"
    ANSWER = "answer"
    NOT_FOUND = "not_found"
    INPUT = "input"
    OTHER = "other"


class AppError(Exception):
    """Base of the family; `code` is for programs, the message for people, `details` for both.

    `passing`: the same may succeed in a moment, and nobody has tried that where it arose.
    """

    code = "INTERNAL_ERROR"
    kind = ErrorKind.OTHER
    passing = False

    def __init_subclass__(
        cls, *, code: str | None = None, kind: ErrorKind | None = None, passing: bool | None = None
    ) -> None:
        """A kind of error says in its first line what is its own; all else it has from its base."""
        said = {"code": code, "kind": kind, "passing": passing}
        for name, value in said.items():
            if value is not None:
                setattr(cls, name, value)

    def __init__(self, message: str | Message, *, code: str | None = None, **details: Any) -> None:
        super().__init__(" ".join(str(message).split()))  # one line, for a log or a traceback
        self.message = message
        self.code = code or type(self).code
        self.details = details

    def in_locale(self, locale: Locale) -> str:
        return str(in_words(self.message, locale))


class InvalidInput(AppError, code="INVALID_REQUEST", kind=ErrorKind.INPUT):
    """The caller asked for something that cannot be done as asked; nothing was started."""


class Unauthenticated(AppError, code="UNAUTHENTICATED", kind=ErrorKind.PERMISSION):
    """Nobody can tell who asks."""


class Forbidden(AppError, code="FORBIDDEN", kind=ErrorKind.PERMISSION):
    """It is known who asks, and that they may not."""


class DecisionRejected(Forbidden, code="DECISION_REJECTED"):
    """The rules say no. `details` hold each broken rule, why it is, and what would be allowed instead."""


class NotFound(AppError, code="NOT_FOUND", kind=ErrorKind.NOT_FOUND): ...


class Unavailable(AppError, code="UNAVAILABLE", kind=ErrorKind.CONNECTION, passing=True):
    """Something Moot depends on is missing or not ready; the same request may succeed later."""


class Conflict(AppError, code="CONFLICT"):
    """What was asked for contradicts what is already there."""


class TooManyRequests(AppError, code="TOO_MANY_REQUESTS", kind=ErrorKind.RATE_LIMIT, passing=True):
    """The caller may ask again, later: `retry_after` seconds from now."""


class UpstreamFailed(AppError, code="UPSTREAM_FAILED", kind=ErrorKind.ANSWER):
    """A service outside answered, but not with what it promises."""


class Nature(NamedTuple):
    kind: ErrorKind
    passing: bool


def nature_of(error: BaseException) -> Nature:
    """Of one of ours, what it says itself; of any other, what it is a kind of."""
    if isinstance(error, AppError):
        return Nature(error.kind, error.passing)
    for module, kinds in FOREIGN.items():
        loaded = sys.modules.get(module)
        for name, kind in kinds.items():
            if loaded is not None and isinstance(error, getattr(loaded, name)):
                return Nature(kind, kind in PASSING)
    return Nature(ErrorKind.OTHER, passing=False)


PASSING = frozenset({ErrorKind.TIMEOUT, ErrorKind.CONNECTION, ErrorKind.RATE_LIMIT})
FOREIGN: dict[str, dict[str, ErrorKind]] = {
    "json": {"JSONDecodeError": ErrorKind.ANSWER},
    "builtins": {
        "TimeoutError": ErrorKind.TIMEOUT,
        "PermissionError": ErrorKind.PERMISSION,
        "ConnectionError": ErrorKind.CONNECTION,
        "FileNotFoundError": ErrorKind.NOT_FOUND,
        "MemoryError": ErrorKind.MEMORY,
        "ValueError": ErrorKind.INPUT,
        "TypeError": ErrorKind.INPUT,
        "LookupError": ErrorKind.INPUT,
    },
    "socket": {"gaierror": ErrorKind.CONNECTION},
    "httpx": {"TimeoutException": ErrorKind.TIMEOUT, "TransportError": ErrorKind.CONNECTION},
    "aiohttp": {"ClientConnectionError": ErrorKind.CONNECTION},
    "sqlalchemy.exc": {"DataError": ErrorKind.DATA, "IntegrityError": ErrorKind.DATA},
}
"""What libraries raise, the nearer first. One that nobody has loaded has raised nothing, and is not loaded here."""

"""The errors Moot raises on purpose. Each says what happened and what the reader can do about it.

Anything that is not an `AppError` is a defect and is treated as one. HTTP status: `shared/presentation/errors.py`.
"""

from typing import Any

from moot.shared.domain.messages import Locale, Message


class AppError(Exception):
    """Base of the family; `code` is for programs, the message for people, `details` for both."""

    code = "INTERNAL_ERROR"

    def __init__(self, message: str | Message, *, code: str | None = None, **details: Any) -> None:
        super().__init__(str(message))
        self.message = message
        self.code = code or type(self).code
        self.details = details

    def in_locale(self, locale: Locale) -> str:
        return self.message if isinstance(self.message, str) else self.message.in_locale(locale)


class InvalidInput(AppError):
    """The caller asked for something that cannot be done as asked; nothing was started."""

    code = "INVALID_REQUEST"


class Unauthenticated(AppError):
    """Nobody can tell who asks."""

    code = "UNAUTHENTICATED"


class Forbidden(AppError):
    """It is known who asks, and that they may not."""

    code = "FORBIDDEN"


class DecisionRejected(Forbidden):
    """The rules say no. `details` hold each broken rule, why it is, and what would be allowed instead."""

    code = "DECISION_REJECTED"


class NotFound(AppError):
    code = "NOT_FOUND"


class Unavailable(AppError):
    """Something Moot depends on is missing or not ready; the same request may succeed later."""

    code = "UNAVAILABLE"


class Conflict(AppError):
    """What was asked for contradicts what is already there."""

    code = "CONFLICT"


class TooManyRequests(AppError):
    """The caller may ask again, later: `retry_after` seconds from now."""

    code = "TOO_MANY_REQUESTS"


class UpstreamFailed(AppError):
    """A service outside answered, but not with what it promises."""

    code = "UPSTREAM_FAILED"

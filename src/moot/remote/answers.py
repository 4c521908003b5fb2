"""Reading what a served desk answers: the same shapes and the same errors as from a desk of one's own."""

from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from moot.modules.coordinator.domain import exceptions
from moot.modules.governance.application.coordinator_agent import PersonAsked
from moot.modules.intake.application.intake_service import NoSuchConversation, NotItsTurn
from moot.remote.texts import SAY
from moot.shared.domain.errors import AppError, TooManyRequests, Unavailable, UpstreamFailed
from moot.shared.presentation.errors import STATUS, ErrorBody

M = TypeVar("M", bound=BaseModel)

BY_STATUS = {status: kind for kind, status in STATUS.items()}
BY_CODE: dict[str, type[AppError]] = {
    kind.code: kind
    for kind in vars(exceptions).values()
    if isinstance(kind, type) and issubclass(kind, AppError) and kind.__module__ == exceptions.__name__
} | {kind.code: kind for kind in (PersonAsked, NoSuchConversation, NotItsTurn)}
"""What only the coordinator or intake raises, and the one error that comes with 202."""
FROM_A_PROXY: dict[int, type[AppError]] = {502: Unavailable, 503: Unavailable, 504: Unavailable}
"""Without a body of Moot's these say that the desk behind a proxy does not answer."""


def read(kind: type[M], response: httpx.Response, url: str) -> M:
    """Raises the error that the response tells of, be it with 202, or `UpstreamFailed` for one not of a desk."""
    if not response.is_success:
        raise trouble(response, url)
    try:
        return kind.model_validate_json(response.content)
    except ValidationError:
        raise trouble(response, url) from None


def trouble(response: httpx.Response, url: str) -> AppError:
    if response.is_redirect:
        location = response.headers["location"]
        return UpstreamFailed(SAY("redirected", url=url, location=location), url=url)
    try:
        body = ErrorBody.model_validate_json(response.content)
    except ValidationError:
        return _foreign(response, url)
    kind = BY_CODE.get(body.code) or BY_STATUS.get(response.status_code, AppError)
    return _said(kind, body, response.headers.get("retry-after", ""))


def _said(kind: type[AppError], body: ErrorBody, retry_after: str) -> AppError:
    """An error put together in another process: its own constructor has run there already."""
    error = kind.__new__(kind)
    AppError.__init__(error, body.message, code=body.code)
    error.details = body.details
    if retry_after or issubclass(kind, TooManyRequests):
        error.details["retry_after"] = _seconds(body.details.get("retry_after", retry_after))
    return error


def _seconds(stated: Any) -> float:
    """A second, where nobody says how many."""
    try:
        return max(float(stated), 0.0)
    except (TypeError, ValueError):
        return 1.0


def _foreign(response: httpx.Response, url: str) -> AppError:
    kind = FROM_A_PROXY.get(response.status_code, UpstreamFailed)
    said = SAY("not_a_desk", url=url, status=response.status_code)
    return kind(said, url=url, status=response.status_code)

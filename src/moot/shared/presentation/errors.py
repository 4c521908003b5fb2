"""One mapping from what went wrong to what HTTP says: `{"success": false, "code", "message", "details"}`."""

from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from moot.shared.domain.errors import (
    AppError,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    TooLarge,
    TooManyRequests,
    TooSlow,
    Unauthenticated,
    Unavailable,
    UpstreamFailed,
)
from moot.shared.domain.messages import LOCALES, Locale
from moot.shared.domain.texts import SAY
from moot.shared.domain.validation import invalid_input
from moot.shared.presentation.caller import reader_of

logger = structlog.get_logger(__name__)

STATUS: dict[type[AppError], int] = {
    InvalidInput: 400,
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    TooSlow: 408,
    Conflict: 409,
    TooLarge: 413,
    TooManyRequests: 429,
    AppError: 500,
    UpstreamFailed: 502,
    Unavailable: 503,
}


class ErrorBody(BaseModel):
    """What every error looks like from outside."""

    success: bool = False
    code: str
    message: str
    details: dict[str, Any]


def install_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(AppError)
    async def on_app_error(request: Request, error: AppError) -> JSONResponse:
        return answer(request, error)

    @app.exception_handler(RequestValidationError)
    async def on_bad_request(request: Request, error: RequestValidationError) -> JSONResponse:
        return answer(request, invalid_input(error.errors()), asked=error.body)

    @app.exception_handler(HTTPException)
    async def on_http_error(request: Request, error: HTTPException) -> JSONResponse:
        message = SAY("no_such_page", method=request.method, path=request.url.path)
        return answer(request, NotFound(message, code=f"HTTP_{error.status_code}"), error.status_code)

    @app.exception_handler(Exception)
    async def on_defect(request: Request, error: Exception) -> JSONResponse:
        logger.error("unexpected error", path=request.url.path, exc_info=error)
        return answer(request, AppError(SAY("unexpected")))


def answer(
    request: Request, error: AppError, status: int | None = None, *, asked: Any = None
) -> JSONResponse:
    """The error as a response, for handlers and for what stands before the routes."""
    locale = _locale(request, asked)
    body = ErrorBody(code=error.code, message=error.in_locale(locale), details=error.details)
    later = error.details.get("retry_after")
    headers = {} if later is None else {"Retry-After": str(later)}
    return JSONResponse(body.model_dump(mode="json"), status or _status(error), headers)


def _status(error: AppError) -> int:
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def _locale(request: Request, asked: Any) -> Locale:
    """The language the request asks for, the one its reader prefers, or ours."""
    wanted = asked.get("locale") if isinstance(asked, dict) else getattr(request.state, "locale", None)
    return next((locale for locale in LOCALES if locale == wanted), None) or reader_of(request)

"""One mapping from what went wrong to what HTTP says: `{"success": false, "code", "message", "details"}`."""

from collections.abc import Callable, Mapping
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import iter_route_contexts
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import Match

from moot.shared.domain import errors
from moot.shared.domain.errors import AppError, InvalidInput, NotFound
from moot.shared.domain.messages import LOCALES, Locale, nearest, shorten
from moot.shared.domain.texts import SAY
from moot.shared.domain.validation import invalid_input, suggest
from moot.shared.presentation.caller import reader_of, wants_page

logger = structlog.get_logger(__name__)

STATUS: dict[type[AppError], int] = {
    InvalidInput: 400,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    NotFound: 404,
    errors.Conflict: 409,
    errors.TooManyRequests: 429,
    AppError: 500,
    errors.UpstreamFailed: 502,
    errors.Unavailable: 503,
}
STATUS_OF_CODE = {"HTTP_405": 405, "TOO_SLOW": 408, "TOO_LARGE": 413}
"""Kinds of input that HTTP tells apart and nobody else has to."""


class ErrorBody(BaseModel):
    """What every error looks like from outside."""

    success: bool = False
    code: str
    message: str
    details: dict[str, Any]


Responses = dict[int | str, dict[str, Any]]


def refusals(why: Mapping[int, str]) -> Responses:
    """What a route may answer instead, by status, as its documentation tells it."""
    return {status: {"model": ErrorBody, "description": said} for status, said in why.items()}


def install_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(AppError)
    async def on_app_error(request: Request, error: AppError) -> Response:
        return answer(request, error)

    @app.exception_handler(RequestValidationError)
    async def on_bad_request(request: Request, error: RequestValidationError) -> Response:
        return answer(request, invalid_input(error.errors()), asked=error.body)

    @app.exception_handler(HTTPException)
    async def on_http_error(request: Request, error: HTTPException) -> Response:
        here = {"method": shorten(request.method), "path": shorten(request.url.path)}
        if error.status_code != 405:
            known = (route.path or "" for route in iter_route_contexts(request.app.routes))
            near = nearest(here["path"], known, cutoff=0.6)  # an id is not like the name of one
            told, code = suggest(SAY("no_such_page", **here), near), f"HTTP_{error.status_code}"
            missing = NotFound(told, code=code, **({"nearest": near} if near else {}))
            return answer(request, missing, error.status_code)
        allowed = _find_methods(request)
        refused = InvalidInput(
            SAY("no_such_method", **here, allowed=allowed), code="HTTP_405", allowed=allowed
        )
        response = answer(request, refused)
        response.headers["Allow"] = ", ".join(allowed)
        return response

    @app.exception_handler(Exception)
    async def on_defect(request: Request, error: Exception) -> Response:
        logger.error("unexpected error", path=request.url.path, exc_info=error)
        return answer(request, AppError(SAY("unexpected")))


def _find_methods(request: Request) -> list[str]:
    """Those that some route has at this path: each route knows only its own."""
    routes, scope = request.app.routes, request.scope
    return [
        method
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in routes)
    ]


def answer(request: Request, error: AppError, status: int | None = None, *, asked: Any = None) -> Response:
    """The error as a response, for handlers and for what stands before the routes; as a page, where one was asked
    for and the application has some."""
    locale = _locale(request, asked)
    body = ErrorBody(code=error.code, message=error.in_locale(locale), details=error.details)
    later = error.details.get("retry_after")
    headers = {} if later is None else {"Retry-After": str(later)}
    of_kind = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    said = status or STATUS_OF_CODE.get(error.code, of_kind)
    show: Callable[[Request, AppError, int], Response] | None = getattr(request.app.state, "error_page", None)
    if show is not None and wants_page(request):
        page = show(request, error, said)
        page.headers.update(headers)
        return page
    return JSONResponse(body.model_dump(mode="json"), said, headers)


def _locale(request: Request, asked: Any) -> Locale:
    """The language the request asks for, the one its reader prefers, or ours."""
    wanted = asked.get("locale") if isinstance(asked, dict) else getattr(request.state, "locale", None)
    return next((locale for locale in LOCALES if locale == wanted), None) or reader_of(request)

"""Stands before every route, whoever adds it: lets a request in, and says for which workspace it is.

This machine needs no key while nobody else can reach the server and no key was ever given out; everybody else does,
always. A browser on this machine also carries what pages of other sites ask for: those are not this machine.
"""

import ipaddress
import re

import structlog
from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from moot.modules.access.application import AccessService
from moot.modules.access.domain import SAY, SCOPES
from moot.modules.access.domain import Scope as KeyScope
from moot.shared.domain.errors import AppError, Forbidden, Unauthenticated
from moot.shared.domain.messages import shorten
from moot.shared.presentation.caller import is_api, wants_page
from moot.shared.presentation.errors import answer

logger = structlog.get_logger(__name__)

BY_A_PROXY = re.compile(
    r".*forward.*|.*proxy.*|via|(x-)?(cf|cdn|envoy|original|real|remote)-.*|.*(ip|addr|address)"
)
"""Headers that tell of somebody in between, or for whom: the request is not from the machine that delivers it."""
PORT = re.compile(r":\d+$")

OPEN = re.compile(r"/|/healthz|/readyz|/openapi\.json|/docs(/assets/.*)?|/static/.*|/login|/preferences")
"""For everybody: they tell nothing about anybody's work. At `/` a program finds the API, and a person their desk."""
LOGIN_COOKIE = "moot_login"

READING = frozenset({"GET", "HEAD", "OPTIONS"})
SENDING = frozenset({"POST"})
NEEDS: tuple[tuple[frozenset[str], str, KeyScope], ...] = (
    (READING, r"/api/v1/coordinator/intake/metrics(/.*)?", "admin"),
    (READING, r"(?s:.*)", "read"),
    (SENDING, r"/api/v1/coordinator/research(/.+/(retry|contest|cancel))?", "research"),
    (SENDING, r"/api/v1/research/[^/]+", "research"),
    (SENDING, r"/api/v1/coordinator/intake(/[^/]+/(feedback|resume))?", "research"),
    (SENDING, r"/api/v1/llm-platform/(chat/generate|web-search)", "research"),
    (SENDING, r"/api/v1/market-data/sql", "research"),
    (frozenset({"POST", "DELETE"}), r"/api/v1/watchlists", "research"),
    (SENDING, r"/api/v1/batches(/[^/]+/(pause|resume|cancel))?", "research"),
    (frozenset({"POST", "DELETE"}), r"/api/v1/schedules(/[^/]+(/(pause|resume|run))?)?", "research"),
    (SENDING, r"/api/v1/coordinator/(decisions|rules/generate|rulesets/(check|[^/]+/simulate))", "research"),
    (SENDING, r"/research|/sessions/[^/]+/(retry|cancel|contest|replay|pack)|/watch(/remove)?", "research"),
    (SENDING, r"/ask(/[^/]+/(feedback|resume))?", "research"),
    (SENDING, r"/batches(/[^/]+/(pause|resume|cancel))?", "research"),
    (SENDING, r"/schedules(/[^/]+/(pause|resume|run|remove))?", "research"),
    (SENDING, r"/logout", "read"),
    (SENDING, r"/rules/(check|sets/[^/]+/simulate)", "research"),
    (SENDING, r"/data/check|/settings/models/test", "research"),
    (SENDING, r"/approvals/[^/]+", "approve"),
    (SENDING, r"/api/v1/coordinator/escalations/[^/]+/(approve|reject|edit)", "approve"),
)
"""What a request needs: the one table of it. Whatever it does not name needs the most."""


class Guard:
    """ASGI middleware. Needs `access`, `open_to_loopback` and `open_with_keys` in the application's state."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            request = Request(scope)
            try:
                await _admit(request)
            except AppError as e:
                await _refuse(request, e, receive, send)
                return
        await self._app(scope, receive, send)


def is_open(path: str) -> bool:
    return OPEN.fullmatch(path) is not None


def find_scope(method: str, path: str) -> KeyScope:
    found = (scope for methods, named, scope in NEEDS if method in methods and re.fullmatch(named, path))
    return next(found, "admin")


async def _admit(request: Request) -> None:
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    if request.method in SENDING and not is_api(path):
        _refuse_forgery(request)
    if is_open(path) and not (path == "/" and wants_page(request)):
        return
    key = _find_key(request)
    if key is None and await _needs_none(request):
        _refuse_other_sites(request)
        request.state.scopes = SCOPES
        return
    access: AccessService = request.app.state.access
    needed, token = find_scope(request.method, path), request.cookies.get(LOGIN_COOKIE)
    holder = await access.admit_login(token, needed) if key is None and token and not is_api(path) else None
    if holder is None:
        holder = await access.admit(key, needed, request.client.host if request.client else "")
    request.state.workspace, request.state.caller = holder.workspace_id, holder.name
    request.state.scopes = tuple(scope for scope in SCOPES if holder.allows(scope))


async def _refuse(request: Request, error: AppError, receive: Receive, send: Send) -> None:
    logger.info("request refused", code=error.code, method=request.method, path=request.url.path)
    response = answer(request, error)
    if isinstance(error, Unauthenticated):
        response.headers["WWW-Authenticate"] = "Bearer"
    await response(request.scope, receive, send)


def _find_key(request: Request) -> str | None:
    """Whatever stands there as `Authorization` has to be one: nobody is let in who says who they are and is not."""
    authorization = request.headers.get("authorization")
    if authorization is None:
        return request.headers.get("x-api-key")
    scheme, _, bearer = authorization.partition(" ")
    return bearer.strip() if scheme.lower() == "bearer" else ""


async def _needs_none(request: Request) -> bool:
    state, client = request.app.state, request.client
    if not state.open_to_loopback or any(map(BY_A_PROXY.fullmatch, request.headers)):
        return False
    if client is None or not is_loopback(client.host):
        return False
    return bool(state.open_with_keys or not await state.access.has_keys())


def _refuse_other_sites(request: Request) -> None:
    """A page may have had its own name point here, to read (DNS rebinding), or may send without reading (forgery)."""
    host = shorten(request.headers.get("host", "").lower())
    if not is_loopback(PORT.sub("", host).removeprefix("[").removesuffix("]")):
        raise Forbidden(SAY("sites.host", host=host), code="HOST_REFUSED", host=host)
    origin = request.headers.get("origin")
    if request.method in READING or origin is None or origin.lower().partition("://")[2] == host:
        return
    said = shorten(origin)
    raise Forbidden(SAY("sites.origin", origin=said, host=host), code="ORIGIN_REFUSED", origin=said)


def _refuse_forgery(request: Request) -> None:
    """A form is sent from a page of this desk, as the browser says that sends it. A page of another site may have it
    sent, with the reader's cookie, but cannot make the browser say so."""
    said = request.headers.get("sec-fetch-site")
    host, origin = request.headers.get("host", "").lower(), request.headers.get("origin", "")
    if said == "same-origin" or (said is None and origin.lower().partition("://")[2] == host != ""):
        return
    raise Forbidden(SAY("sites.form"), code="ORIGIN_REFUSED", origin=shorten(origin))


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine and no other. A name other than localhost may point anywhere."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

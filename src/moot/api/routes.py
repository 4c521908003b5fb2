"""Every route of the desk, registered in one place; and the OpenAPI document, with what the guard asks for: which
key, with which scope, and what it says otherwise.

`/docs` shows it, served whole from here: a closed network gets it too, and nobody else is told. `swagger_ui/` holds
the files of swagger-ui-dist 5.34.1 (Apache-2.0, its licence and notice beside them), unchanged but for the references
to source maps.
"""

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request, params
from fastapi.dependencies.utils import get_flat_params
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.routing import BaseRoute

from moot.modules.access.presentation import find_scope, is_open
from moot.modules.coordinator.presentation.rest import research_routes, session_routes
from moot.modules.governance.application.rule_files import LARGEST
from moot.modules.governance.presentation import decision_routes, rule_routes
from moot.modules.intake.presentation import routes as intake_routes
from moot.modules.jobs import presentation as jobs
from moot.modules.llm_platform.presentation import routes as llm_routes
from moot.modules.market_data.presentation import routes as market_data_routes
from moot.shared.domain.validation import refuse_field
from moot.shared.presentation.errors import ErrorBody
from moot.shared.presentation.limits import MOST_BYTES

PREFIX = "/api/v1"
RULE_FILES = re.compile(rf"{PREFIX}/coordinator/rulesets(/check)?")
ESCAPED = 6
"""Bytes that JSON may need for one character of a file."""
WITHOUT_VERSION = "/api"
"""Where the state of governance is found too, by its first name."""
ELSEWHERE = (params.Path, params.Header, params.Cookie)
ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorBody, "description": "what was asked cannot be done; the message says why"}
}

ROUTERS = (
    research_routes.router,
    research_routes.expert_router,
    session_routes.router,
    decision_routes.status_router,
    rule_routes.router,
    decision_routes.router,
    decision_routes.escalation_router,
    intake_routes.router,
    market_data_routes.router,
    llm_routes.router,
    jobs.batching,
    jobs.watching,
    jobs.timing,
    jobs.telling,
)

health = APIRouter(tags=["health"])


@health.get("/", summary="What this is, and where to look")
async def root(request: Request) -> dict[str, str]:
    app: FastAPI = request.app
    return {
        "name": app.title,
        "version": app.version,
        "summary": app.summary or "",
        "api": PREFIX,
        "docs": "/docs",
        "openapi": "/openapi.json",
        "health": "/healthz",
        "ready": "/readyz",
    }


@health.get("/healthz", summary="Is the process alive?")
async def healthz() -> dict[str, str]:
    return {"status": "ok"}


@health.get("/readyz", summary="Can it serve? 503 says what is missing", responses={503: {}})
async def readyz(request: Request) -> JSONResponse:
    checks: dict[str, Any] = await request.app.state.desk.readiness()
    ready = all(check["ok"] for check in checks.values())
    body = {"status": "ready" if ready else "not ready", "checks": checks}
    return JSONResponse(body, 200 if ready else 503)


def refuse_unknown_query(request: Request) -> None:
    """What no route knows was meant to be something else; unread, it would change nothing and nobody would know."""
    if not request.query_params:
        return
    fields = get_flat_params(request.scope["route"].dependant)
    known = [field.alias for field in fields if not isinstance(field.field_info, ELSEWHERE)]
    if unknown := [name for name in request.query_params if name not in known]:
        raise refuse_field("unknown_field", "query", None, got=unknown, allowed=known)


def bound_body(path: str) -> int:
    """How many bytes may be sent there. A file of rules has a limit of its own, in characters."""
    return ESCAPED * LARGEST if RULE_FILES.fullmatch(path) else MOST_BYTES


@cache
def _routes() -> list[BaseRoute]:
    """The same for all applications of a process: to work them out for a first request takes a while."""
    whole = APIRouter()
    whole.include_router(health)
    told: dict[str, Any] = {"responses": ERRORS, "dependencies": [Depends(refuse_unknown_query)]}
    for router in ROUTERS:
        whole.include_router(router, prefix=PREFIX, **told)
    whole.include_router(decision_routes.status_router, prefix=WITHOUT_VERSION, **told)
    return whole.routes


def register_routes(app: FastAPI) -> None:
    app.router.routes.extend(_routes())
    _document_keys(app)
    _serve_docs(app)


Document = dict[str, Any]

SCHEMES: Document = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "A key made with `moot keys create`. On loopback none is needed while there is none.",
    },
    "key": {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "The same key, for clients that cannot send `Authorization`.",
    },
}
ERROR = {"application/json": {"schema": {"$ref": f"#/components/schemas/{ErrorBody.__name__}"}}}
SECONDS = {"description": "seconds until the next try", "schema": {"type": "integer"}}


def _document_keys(app: FastAPI) -> None:
    """From then on `app` says in its document who may do what, on the routes of today and of later."""
    plain = app.openapi

    def describe() -> Document:
        document = plain()
        document["components"]["securitySchemes"] = SCHEMES
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                _tell_errors_in_json(operation)
                if not is_open(path):
                    _guard(operation, find_scope(method.upper(), path))
        return document

    app.openapi = describe  # type: ignore[method-assign]


def _tell_errors_in_json(operation: Document) -> None:
    """FastAPI takes the errors of a stream of events to be events too."""
    for status, answer in operation["responses"].items():
        if not status.startswith("2") and "text/event-stream" in answer.get("content", {}):
            answer["content"] = ERROR


def _guard(operation: Document, scope: str) -> None:
    operation["security"] = [{scheme: [scope]} for scheme in SCHEMES]
    refusals: Document = {
        "401": {
            "description": "no key, or one that is not valid",
            "headers": {"WWW-Authenticate": {"schema": {"type": "string"}}},
        },
        "403": {"description": f"the key has not the scope `{scope}`; or, without a key, another site asks"},
        "429": {"description": "too many requests in a minute", "headers": {"Retry-After": SECONDS}},
    }
    for status, refusal in refusals.items():
        operation["responses"].setdefault(status, {**refusal, "content": ERROR})


ASSETS = "/docs/assets"
SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def _serve_docs(app: FastAPI) -> None:
    app.mount(ASSETS, StaticFiles(directory=Path(__file__).parent / "swagger_ui"))

    page = get_swagger_ui_html(
        openapi_url=app.openapi_url or "/openapi.json",
        title=app.title,
        swagger_js_url=f"{ASSETS}/swagger-ui-bundle.js",
        swagger_css_url=f"{ASSETS}/swagger-ui.css",
        swagger_favicon_url=f"{ASSETS}/favicon-32x32.png",
    )
    headers = {"Content-Security-Policy": _policy(bytes(page.body)), "X-Content-Type-Options": "nosniff"}

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(page.body, headers=headers)


def _policy(page: bytes) -> str:
    """The page runs its own scripts and no others, calls this desk alone, and is shown in nobody's frame."""
    digests = (b64encode(sha256(script).digest()).decode() for script in SCRIPT.findall(page))
    scripts = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src 'self' {scripts}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; font-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )

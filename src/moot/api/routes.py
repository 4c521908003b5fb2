"""Every route of the desk, registered in one place."""

import re
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request, params
from fastapi.dependencies.utils import get_flat_params
from fastapi.responses import JSONResponse

from moot.api.openapi import document_keys
from moot.modules.coordinator.presentation.rest import research_routes, session_routes
from moot.modules.governance.application.rule_files import LARGEST
from moot.modules.governance.presentation import decision_routes, rule_routes
from moot.modules.intake.presentation.rest import intake_routes
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
    session_routes.router,
    decision_routes.status_router,
    rule_routes.router,
    decision_routes.router,
    decision_routes.escalation_router,
    intake_routes.router,
    market_data_routes.router,
    llm_routes.router,
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


def register_routes(app: FastAPI) -> None:
    app.include_router(health)
    told: dict[str, Any] = {"responses": ERRORS, "dependencies": [Depends(refuse_unknown_query)]}
    for router in ROUTERS:
        app.include_router(router, prefix=PREFIX, **told)
    app.include_router(decision_routes.status_router, prefix=WITHOUT_VERSION, **told)
    document_keys(app)

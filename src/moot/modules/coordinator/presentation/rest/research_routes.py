"""One request, the whole desk."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from moot.modules.coordinator.application.dtos.research_dtos import ResearchBody, ResearchResult
from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.application.sessions import Sessions
from moot.modules.coordinator.container import CoordinatorContainer
from moot.modules.coordinator.presentation.rest.waiting import (
    RECEIPT,
    AskedMode,
    IdempotencyKey,
    Prefer,
    chosen,
    receipt,
    unless_gone,
)
from moot.shared.presentation.caller import Caller, Workspace
from moot.shared.presentation.errors import ErrorBody

router = APIRouter(prefix="/coordinator")


def container(request: Request) -> CoordinatorContainer:
    found: CoordinatorContainer = request.app.state.coordinator
    return found


def research_service(
    coordinator: Annotated[CoordinatorContainer, Depends(container)],
) -> ResearchOrchestrationService:
    return coordinator.research_orchestration_service()


def sessions_door(coordinator: Annotated[CoordinatorContainer, Depends(container)]) -> Sessions:
    return coordinator.sessions


Service = Annotated[ResearchOrchestrationService, Depends(research_service)]
Runs = Annotated[Sessions, Depends(sessions_door)]


class ResearchOrder(ResearchBody):
    mode: AskedMode = "sync"


@router.post(
    "/research",
    tags=["research"],
    summary="Research a symbol",
    response_model=ResearchResult,
    responses={
        **RECEIPT,
        400: {"model": ErrorBody, "description": "the request cannot be accepted; nothing was started"},
        409: {
            "model": ErrorBody,
            "description": "the key stands for another request, or the run was cancelled",
        },
        429: {
            "model": ErrorBody,
            "description": "the desk is at its limit; Retry-After says when to come back",
        },
        500: {"model": ErrorBody, "description": "every selected expert failed, or Moot itself did"},
        503: {"model": ErrorBody, "description": "the desk is closing, or cannot store what it accepts"},
    },
)
async def research(
    request: Request,
    body: ResearchOrder,
    service: Service,
    runs: Runs,
    workspace: Workspace,
    caller: Caller,
    idempotency_key: IdempotencyKey = None,
    prefer: Prefer = None,
) -> ResearchResult | Response:
    """Ask the selected experts in parallel, let bull and bear argue over the findings, and have a judge rule."""
    if "locale" in body.model_fields_set:
        request.state.locale = body.locale
    asked = body.model_dump(exclude_unset=True, exclude={"mode"})
    mode = chosen(body.mode, prefer, idempotency_key)
    if mode == "sync":
        return await unless_gone(request, service.execute(asked, workspace=workspace, requested_by=caller))
    session = await service.start(
        asked, workspace=workspace, requested_by=caller, idempotency_key=idempotency_key
    )
    if mode == "async":
        return receipt(request, session)
    return await unless_gone(request, runs.outcome(session.id, workspace))

"""One request, the whole desk."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from moot.modules.coordinator.application.dtos.research_dtos import ResearchBody, ResearchResult
from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.container import CoordinatorContainer
from moot.shared.presentation.caller import Workspace
from moot.shared.presentation.errors import ErrorBody

router = APIRouter(prefix="/coordinator")


def container(request: Request) -> CoordinatorContainer:
    found: CoordinatorContainer = request.app.state.coordinator
    return found


def research_service(
    coordinator: Annotated[CoordinatorContainer, Depends(container)],
) -> ResearchOrchestrationService:
    return coordinator.research_orchestration_service()


@router.post(
    "/research",
    tags=["research"],
    summary="Research a symbol",
    responses={
        400: {"model": ErrorBody, "description": "the request cannot be accepted; nothing was started"},
        500: {"model": ErrorBody, "description": "every selected expert failed, or Moot itself did"},
    },
)
async def research(
    request: Request,
    body: ResearchBody,
    service: Annotated[ResearchOrchestrationService, Depends(research_service)],
    workspace: Workspace,
) -> ResearchResult:
    """Ask the selected experts in parallel, let bull and bear argue over the findings, and have a judge rule."""
    if "locale" in body.model_fields_set:
        request.state.locale = body.locale
    return await service.execute(body.model_dump(exclude_unset=True), workspace=workspace)

"""Running again what failed."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends
from pydantic import Field, StrictBool

from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.presentation.rest.research_routes import research_service
from moot.shared.domain.validation import Strict
from moot.shared.presentation.caller import Workspace
from moot.shared.presentation.errors import ErrorBody

router = APIRouter(prefix="/coordinator")


class RetryBody(Strict):
    """May be left out."""

    skip_debate: StrictBool = Field(default=False, description="leave out debate and verdict")


DEFAULTS = RetryBody()


@router.post(
    "/research/{session_id}/retry",
    tags=["research"],
    summary="Run again what failed in a session",
    responses={
        400: {"model": ErrorBody, "description": "nothing failed in that session, or this is not an id"},
        404: {"model": ErrorBody, "description": "there is no such session"},
        409: {"model": ErrorBody, "description": "the session is still running"},
        500: {"model": ErrorBody, "description": "every expert failed again, or Moot itself did"},
    },
)
async def retry(
    session_id: UUID,
    service: Annotated[ResearchOrchestrationService, Depends(research_service)],
    workspace: Workspace,
    body: RetryBody = DEFAULTS,
) -> ResearchResult:
    """Opens a new session, as of the same moment, and answers with it; what had succeeded is reused."""
    return await service.retry(session_id, skip_debate=body.skip_debate, workspace=workspace)

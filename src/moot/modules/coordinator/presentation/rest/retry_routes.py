"""Running again what failed."""

from uuid import UUID

from fastapi import APIRouter, Request, Response
from pydantic import Field, StrictBool

from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.presentation.rest.research_routes import Runs, Service
from moot.modules.coordinator.presentation.rest.waiting import (
    RECEIPT,
    AskedMode,
    IdempotencyKey,
    Prefer,
    chosen,
    receipt,
    unless_gone,
)
from moot.shared.domain.validation import Strict
from moot.shared.presentation.caller import Caller, Workspace
from moot.shared.presentation.errors import ErrorBody

router = APIRouter(prefix="/coordinator/research")


class RetryBody(Strict):
    """May be left out."""

    skip_debate: StrictBool = Field(default=False, description="leave out debate and verdict")
    mode: AskedMode = "sync"


DEFAULTS = RetryBody()


@router.post(
    "/sessions/{session_id}/retry",
    tags=["sessions"],
    summary="Another path to the same",
    response_model=ResearchResult,
    responses=RECEIPT,
)
@router.post(
    "/{session_id}/retry",
    tags=["research"],
    summary="Run again what failed in a session",
    response_model=ResearchResult,
    responses={
        **RECEIPT,
        400: {"model": ErrorBody, "description": "nothing failed in that session, or this is not an id"},
        404: {"model": ErrorBody, "description": "there is no such session"},
        409: {"model": ErrorBody, "description": "the session is still running"},
        500: {"model": ErrorBody, "description": "every expert failed again, or Moot itself did"},
    },
)
async def retry(
    request: Request,
    session_id: UUID,
    service: Service,
    runs: Runs,
    workspace: Workspace,
    caller: Caller,
    body: RetryBody = DEFAULTS,
    idempotency_key: IdempotencyKey = None,
    prefer: Prefer = None,
) -> ResearchResult | Response:
    """Opens a new session, as of the same moment, and answers with it; what had succeeded is reused."""
    mode, skip_debate = chosen(body.mode, prefer, idempotency_key), body.skip_debate
    if mode == "sync":
        again = service.retry(session_id, skip_debate=skip_debate, workspace=workspace, requested_by=caller)
        return await unless_gone(request, again)
    session = await service.start_retry(
        session_id,
        skip_debate=skip_debate,
        workspace=workspace,
        requested_by=caller,
        idempotency_key=idempotency_key,
    )
    if mode == "async":
        return receipt(request, session)
    return await unless_gone(request, runs.outcome(session.id, workspace))

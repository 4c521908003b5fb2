"""One request, the whole desk; and the sessions it has had."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request

from moot.modules.coordinator.application.dtos.research_dtos import ResearchBody, ResearchResult
from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.application.session_history import (
    SessionDetail,
    SessionFilter,
    SessionHistory,
    SessionPage,
)
from moot.modules.coordinator.container import CoordinatorContainer
from moot.shared.domain.audit import Verification
from moot.shared.domain.messages import Locale
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


def session_history(coordinator: Annotated[CoordinatorContainer, Depends(container)]) -> SessionHistory:
    return coordinator.session_history()


History = Annotated[SessionHistory, Depends(session_history)]


@router.get(
    "/research/sessions",
    tags=["sessions"],
    summary="List sessions, newest first",
    responses={400: {"model": ErrorBody}},
)
async def sessions(
    history: History,
    workspace: Workspace,
    symbol: str | None = None,
    start_date: Annotated[date | None, Query(description="first day (UTC)")] = None,
    end_date: Annotated[date | None, Query(description="last day (UTC)")] = None,
    page: Annotated[int, Query(ge=1)] = 1,
    page_size: Annotated[int, Query(ge=1, le=200)] = 20,
) -> SessionPage:
    return await history.sessions(
        SessionFilter(
            workspace_id=workspace,
            symbol=symbol,
            created_from=_midnight(start_date) if start_date else None,
            created_before=_midnight(end_date) + timedelta(days=1) if end_date else None,
            page=page,
            page_size=page_size,
        )
    )


@router.get(
    "/research/sessions/{session_id}",
    tags=["sessions"],
    summary="One session with all its nodes",
    responses={400: {"model": ErrorBody}, 404: {"model": ErrorBody}},
)
async def session(session_id: UUID, history: History, workspace: Workspace) -> SessionDetail:
    return await history.session(session_id, workspace)


INCLUDE_TEXT = Query(description="false leaves prompts, answers and responses out")


@router.get(
    "/research/sessions/{session_id}/llm-calls",
    tags=["sessions"],
    summary="Every model call of a session, in order",
    responses={400: {"model": ErrorBody}, 404: {"model": ErrorBody}},
)
async def llm_calls(
    session_id: UUID,
    history: History,
    workspace: Workspace,
    include_text: Annotated[bool, INCLUDE_TEXT] = True,
) -> list[dict[str, Any]]:
    return await history.llm_calls(session_id, workspace, include_text=include_text)


@router.get(
    "/research/sessions/{session_id}/api-calls",
    tags=["sessions"],
    summary="Every other call to the outside of a session, in order",
    responses={400: {"model": ErrorBody}, 404: {"model": ErrorBody}},
)
async def api_calls(
    session_id: UUID,
    history: History,
    workspace: Workspace,
    include_text: Annotated[bool, INCLUDE_TEXT] = True,
) -> list[dict[str, Any]]:
    return await history.api_calls(session_id, workspace, include_text=include_text)


@router.get(
    "/research/sessions/{session_id}/verification",
    tags=["sessions"],
    summary="Is the record of a session still what was written?",
    responses={400: {"model": ErrorBody}, 404: {"model": ErrorBody}},
)
async def verification(
    session_id: UUID,
    history: History,
    workspace: Workspace,
    locale: Annotated[Locale | None, Query()] = None,
) -> Verification:
    """Checks the chain over calls, nodes and the session itself, and names the first entry that does not hold."""
    return await history.verify(session_id, workspace, locale)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)

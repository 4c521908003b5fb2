"""The history of a workspace's sessions."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query

from moot.modules.coordinator.application.session_history import (
    SessionDetail,
    SessionFilter,
    SessionHistory,
    SessionPage,
)
from moot.modules.coordinator.container import CoordinatorContainer
from moot.modules.coordinator.presentation.rest.research_routes import container
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE
from moot.shared.presentation.errors import ErrorBody

router = APIRouter(prefix="/coordinator/research/sessions", tags=["sessions"])


def session_history(coordinator: Annotated[CoordinatorContainer, Depends(container)]) -> SessionHistory:
    return coordinator.session_history()


History = Annotated[SessionHistory, Depends(session_history)]


@router.get("", summary="List sessions, newest first", responses={400: {"model": ErrorBody}})
async def sessions(
    history: History,
    symbol: str | None = None,
    start_date: Annotated[date | None, Query(description="first day (UTC)")] = None,
    end_date: Annotated[date | None, Query(description="last day (UTC)")] = None,
    page: Annotated[int, Query(ge=1)] = 1,
    page_size: Annotated[int, Query(ge=1, le=200)] = 20,
) -> SessionPage:
    return await history.sessions(
        SessionFilter(
            workspace_id=DEFAULT_WORKSPACE,
            symbol=symbol,
            created_from=_midnight(start_date) if start_date else None,
            created_before=_midnight(end_date) + timedelta(days=1) if end_date else None,
            page=page,
            page_size=page_size,
        )
    )


@router.get(
    "/{session_id}",
    summary="One session with all its nodes",
    responses={400: {"model": ErrorBody}, 404: {"model": ErrorBody}},
)
async def session(session_id: UUID, history: History) -> SessionDetail:
    return await history.session(session_id, DEFAULT_WORKSPACE)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)

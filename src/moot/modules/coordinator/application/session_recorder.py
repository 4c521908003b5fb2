"""Opens a session before a run and closes it after, whatever happens in between."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

import structlog

from moot.modules.coordinator.application.research_run import Watch, error_text, research_run
from moot.modules.coordinator.application.retry import reused_nodes
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest, ResearchResult
from moot.modules.coordinator.domain.model.session import ResearchSession
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.infrastructure.execution_context import (
    ExecutionContext,
    count_audit_gap,
    current_execution_ctx,
)

logger = structlog.get_logger(__name__)


@dataclass
class Recording:
    """What the block being recorded leaves behind; without a result it did not come to an end."""

    context: ExecutionContext
    result: ResearchResult | None = None


class SessionRecorder:
    """A store that fails is logged and counted on the session; it never stops research.

    Without a repository nothing is stored and the session has no id.
    """

    def __init__(self, repository: IResearchSessionRepository | None, clock: Clock) -> None:
        self._repository = repository
        self._clock = clock

    @asynccontextmanager
    async def recording(
        self, request: ResearchRequest, as_of: datetime, watch: Watch | None
    ) -> AsyncIterator[Recording]:
        session = _opened(request, as_of, self._clock.now())
        context = _context(str(session.id) if self._repository else "", session, request)
        token = current_execution_ctx.set(context)
        try:
            with research_run(watch):
                recording = Recording(context)
                await self._opening(session)
                try:
                    await self._reuse(request, session)
                    yield recording
                except (Exception, asyncio.CancelledError) as e:
                    await self._closing(_broken_off(session, e), context)
                    raise
                await self._closing(_ended(session, recording.result), context)
        finally:
            current_execution_ctx.reset(token)

    async def _opening(self, session: ResearchSession) -> None:
        if self._repository:
            await _best_effort(self._repository.save_session(session), session)

    async def _reuse(self, request: ResearchRequest, session: ResearchSession) -> None:
        if self._repository:
            for node in reused_nodes(request, session.id, self._clock.now()):
                await _best_effort(self._repository.save_node_execution(node), session, row="node")

    async def _closing(self, session: ResearchSession, context: ExecutionContext) -> None:
        if self._repository:
            now = self._clock.now()
            took = round((now - session.created_at).total_seconds() * 1000)
            closed = session.model_copy(
                update={"completed_at": now, "duration_ms": took, "audit_gaps": context.tally.audit_gaps}
            )
            await _best_effort(self._repository.update_session(closed), session)


async def _best_effort(write: Awaitable[None], session: ResearchSession, *, row: str = "session") -> None:
    try:
        await write
    except Exception:  # bulkhead: the record must never stop the research
        count_audit_gap()
        logger.error(f"{row} not stored", session_id=str(session.id), symbol=session.symbol, exc_info=True)


def _opened(request: ResearchRequest, as_of: datetime, now: datetime) -> ResearchSession:
    return ResearchSession(
        id=uuid4(),
        symbol=request.symbol,
        status="running",
        selected_experts=[expert.value for expert in request.experts],
        options=request.options,
        trigger_source=request.trigger_source,
        workspace_id=request.workspace,
        as_of=as_of,
        locale=request.locale,
        retry_count=request.retry_count,
        parent_session_id=request.parent_session_id,
        created_at=now,
    )


def _context(session_id: str, session: ResearchSession, request: ResearchRequest) -> ExecutionContext:
    return ExecutionContext(
        session_id=session_id,
        as_of=session.as_of,
        locale=session.locale,
        workspace=session.workspace_id,
        experts=tuple(dict.fromkeys([*(request.pre_populated_results or {}), *session.selected_experts])),
        max_cost=request.max_cost,
    )


def _ended(session: ResearchSession, result: ResearchResult | None) -> ResearchSession:
    assert result is not None, "a recording that ended without an error has a result"
    return session.model_copy(
        update={
            "status": result.overall_status,
            "verdict_status": result.verdict_status,
            "verdict_action": result.verdict["action"] if result.verdict else None,
            "reason": result.reason,
        }
    )


def _broken_off(session: ResearchSession, error: BaseException) -> ResearchSession:
    if isinstance(error, asyncio.CancelledError):
        said, status = SAY("no_verdict.cancelled"), "cancelled"
    else:
        why = error_text(error, session.locale) if isinstance(error, Exception) else repr(error)
        said, status = SAY("no_verdict.crashed", why=why), "failed"
    return session.model_copy(
        update={"status": status, "verdict_status": "failed", "reason": said.in_locale(session.locale)}
    )

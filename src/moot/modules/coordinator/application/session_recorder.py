"""Opens a session before a run and closes it after, whatever happens in between."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from uuid import uuid4

import structlog

from moot.modules.coordinator.application.event_log import EventLog
from moot.modules.coordinator.application.live_runs import LiveRuns
from moot.modules.coordinator.application.research_run import (
    ResearchRun,
    Watch,
    research_run,
)
from moot.modules.coordinator.application.retry import reused_nodes
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest, ResearchResult
from moot.modules.coordinator.domain.exceptions import ApprovalNeeded, SessionCancelled, SessionStopped
from moot.modules.coordinator.domain.model.session import NodeExecution, ResearchSession, SessionStatus
from moot.modules.coordinator.domain.ports.research_session_repository import (
    IdempotencyKey,
    IResearchSessionRepository,
)
from moot.modules.coordinator.domain.ports.session_leases import Lease
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.messages import Locale, Message
from moot.shared.infrastructure.execution_context import ExecutionContext, Tally, current_execution_ctx
from moot.shared.infrastructure.redaction import error_text

logger = structlog.get_logger(__name__)


@dataclass
class Opened:
    """A session that is ready to run here, and may run while it is being stored: what follows is stored after it.

    `recorded` is what its nodes did before an earlier process died.
    """

    session: ResearchSession
    request: ResearchRequest
    events: EventLog | None = None
    lease_token: int | None = None
    recorded: Mapping[str, NodeExecution] | None = None
    tally: Tally = field(default_factory=Tally)
    storing: asyncio.Task[bool] | None = None

    async def stored(self) -> None:
        """Return when it is, or cannot be, stored."""
        if self.storing is not None:
            await asyncio.wait([self.storing])

    def context(self, session_id: str) -> ExecutionContext:
        session, reused = self.session, self.request.pre_populated_results or {}
        return ExecutionContext(
            session_id=session_id,
            as_of=session.as_of,
            locale=session.locale,
            workspace=session.workspace_id,
            experts=tuple(dict.fromkeys([*reused, *session.selected_experts])),
            max_cost=self.request.max_cost,
            caller=session.requested_by or "",
            began_at=session.created_at,
            answers="live" if self.recorded is None else "resume",
            lease_token=self.lease_token,
            tally=self.tally,
        )


@dataclass
class Recording:
    """What the block being recorded leaves behind; without a result it did not come to an end."""

    context: ExecutionContext
    result: ResearchResult | None = None


class SessionRecorder:
    """A store that fails is logged and counted on the session; it never stops research.

    Without a repository nothing is stored and the session has no id.
    """

    def __init__(self, repository: IResearchSessionRepository | None, clock: Clock, live: LiveRuns) -> None:
        self._repository, self._clock, self._live = repository, clock, live

    async def open(
        self,
        request: ResearchRequest,
        as_of: datetime,
        *,
        status: SessionStatus = "running",
        lease: Lease | None = None,
        key: IdempotencyKey | None = None,
        must_be_stored: bool = False,
    ) -> Opened:
        """Store a new session together with the results it reuses; raises `KeyTaken` when it has been already."""
        now = self._clock.now()
        session = _opened(request, as_of, now, status)
        opened = Opened(session, request, lease_token=lease.token if lease else None)
        if self._repository is None:
            return opened
        opened.events = EventLog(self._repository, session.id, self._clock)
        nodes = list(reused_nodes(request, session.id, now))
        told = [opened.events.opening(session)]
        for node in nodes:
            told += opened.events.of_node(node)
        awaited = must_be_stored or key is not None
        saving = self._repository.save_session(
            session, nodes=nodes, events=told, lease=lease, key=key, at_leisure=not awaited
        )
        if awaited:
            await saving
        else:
            opened.storing = asyncio.create_task(_best_effort(saving, opened))
        return opened

    @asynccontextmanager
    async def recording(self, opened: Opened, watch: Watch | None = None) -> AsyncIterator[Recording]:
        context = opened.context(str(opened.session.id) if self._repository else "")
        with research_run(watch, events=opened.events, recorded=opened.recorded or {}) as run:
            context = context.model_copy(update={"on_retry": _retry_teller(run, context.locale)})
            token = current_execution_ctx.set(context)
            try:
                recording = Recording(context)
                try:
                    yield recording
                except SessionStopped as e:
                    await opened.stored()
                    await self._close(_broken_off(opened.session, e.error), opened)
                    raise
                except ApprovalNeeded:
                    await self._pause(opened)
                    raise
                except (Exception, asyncio.CancelledError) as e:
                    await opened.stored()
                    if self._live.why_stopped(opened.session.id) not in ("interrupted", "taken over"):
                        await self._close(_broken_off(opened.session, e), opened)
                    raise
                await self._close(_ended(opened.session, recording.result), opened)
            finally:
                current_execution_ctx.reset(token)

    async def _pause(self, opened: Opened) -> None:
        """Leave the session as it stands, for a person to decide; all it has told is stored by then."""
        await opened.stored()
        if self._repository is not None:
            await self._repository.settle()
        await self._live.pause(opened.session.id, opened.lease_token)

    async def _close(self, session: ResearchSession, opened: Opened) -> None:
        if self._repository is None:
            return
        now = self._clock.now()
        took = round((now - session.created_at).total_seconds() * 1000)
        gaps = opened.tally.audit_gaps
        closed = session.model_copy(update={"completed_at": now, "duration_ms": took, "audit_gaps": gaps})
        told = [opened.events.closing(closed)] if opened.events else []
        store = self._repository.update_session
        if not await _best_effort(store(closed, events=told), opened):
            self._live.store_later(closed.id, lambda: store(closed, events=told))


async def _best_effort(write: Awaitable[None], opened: Opened) -> bool:
    try:
        await write
    except Exception:  # bulkhead: the record must never stop the research
        opened.tally.audit_gaps += 1
        session = opened.session
        logger.error("session not stored", session_id=str(session.id), symbol=session.symbol, exc_info=True)
        return False
    return True


def _retry_teller(run: ResearchRun, locale: Locale) -> Callable[[int, str | Message], None]:
    def tell(attempt: int, why: str | Message) -> None:
        run.retrying(attempt, why if isinstance(why, str) else why.in_locale(locale))

    return tell


def _opened(
    request: ResearchRequest, as_of: datetime, now: datetime, status: SessionStatus
) -> ResearchSession:
    return ResearchSession(
        id=uuid4(),
        symbol=request.symbol,
        status=status,
        selected_experts=[expert.value for expert in request.experts],
        options=request.options,
        skip_debate=request.skip_debate,
        max_cost=request.max_cost,
        trigger_source=request.trigger_source,
        requested_by=request.requested_by,
        workspace_id=request.workspace,
        as_of=as_of,
        locale=request.locale,
        retry_count=request.retry_count,
        parent_session_id=request.parent_session_id,
        created_at=now,
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
    if isinstance(error, asyncio.CancelledError | SessionCancelled):
        said, status = SAY("no_verdict.cancelled"), "cancelled"
    else:
        why = error_text(error, session.locale) if isinstance(error, Exception) else repr(error)
        said, status = SAY("no_verdict.crashed", why=why), "failed"
    return session.model_copy(
        update={"status": status, "verdict_status": "failed", "reason": said.in_locale(session.locale)}
    )

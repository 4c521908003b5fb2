"""What is stored of the sessions that run here: opening, end, and whose they are; and what was asked, asked again."""

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable, Iterator
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import structlog

from moot.modules.coordinator.application.results import from_columns, tally_of, to_columns
from moot.modules.coordinator.application.run import Run, Watch, tell_end, tell_node, tell_start
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest, ResearchResult
from moot.modules.coordinator.domain.exceptions import (
    ApprovalNeeded,
    SessionCancelled,
    SessionNotRetryable,
    SessionStopped,
)
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.session import (
    NodeExecution,
    ResearchSession,
    SessionEvent,
    SessionStatus,
)
from moot.modules.coordinator.domain.ports.research_session_repository import (
    IdempotencyKey,
    IResearchSessionRepository,
    Past,
)
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError
from moot.shared.domain.leases import Lease, LeaseHolder, passed
from moot.shared.infrastructure.execution_context import LeaseLost
from moot.shared.infrastructure.redaction import error_text

logger = structlog.get_logger(__name__)

STORE_AGAIN = (1, 2, 4, 8, *[15] * 240)
"""Seconds between attempts to store what a database that is gone did not take: for an hour."""


class Journal:
    """A store that fails is logged and counted on the session; it never stops research.

    The sessions in `unstored` have ended, and nobody should take them for unfinished until that is stored.
    """

    def __init__(self, repository: IResearchSessionRepository, clock: Clock, lease_seconds: float) -> None:
        self.repository, self.clock = repository, clock
        self.held = LeaseHolder(repository, clock, lease_seconds)
        self.unstored: dict[UUID, asyncio.Task[None]] = {}
        self._closing = asyncio.Event()

    async def open(
        self,
        request: ResearchRequest,
        *,
        status: SessionStatus = "running",
        key: IdempotencyKey | None = None,
        watch: Watch | None = None,
    ) -> Run:
        """A new session, stored together with the results it reuses; one that is `running` runs here, and need not
        be stored yet when this returns. Raises `KeyTaken` when `key` has a session already."""
        now, lease = self.clock.now(), self.held.first() if status == "running" else None
        run = Run(uuid4(), self.repository, self.clock, watch, lease_token=lease.token if lease else None)
        run.request = request
        run.session = ResearchSession(
            id=run.session_id, status=status, created_at=now, **request.pick_asked()
        )
        nodes = list(copy_reused(request, run.session_id, now))
        told = run.events(
            [("session", tell_start(run.session)), *(e for node in nodes for e in tell_node(node))]
        )
        at_leisure = lease is not None and key is None
        saving = self.repository.save_session(
            run.session, nodes=nodes, events=told, lease=lease, key=key, at_leisure=at_leisure
        )
        if at_leisure:
            run.storing = asyncio.create_task(_best_effort(saving, run))
        else:
            await saving
        run.tell(told)
        return run

    async def reopen(self, run: Run, lease: Lease) -> None:
        """Make `run` that of its session as the record leaves it; calls that nobody has completed are closed."""
        session = await self.repository.require_session(run.session_id, None)
        nodes = await self.repository.get_node_executions_by_session(session.id)
        told = await self.repository.events_after(session.id, 0)
        await self.repository.close_calls(session.id)
        calls = await self.repository.llm_calls(session.id, include_text=False)
        run.session = session.model_copy(update={"status": "running"})
        run.request = request_of(session, nodes)
        run.lease_token = lease.token
        run.recorded = {node.node_type: node for node in nodes}
        run.tally = tally_of(calls)
        run.told = told[-1].seq if told else 0
        run.tell(told)
        run.note("session", **tell_start(run.session, resumed=bool(nodes or calls)))

    async def keep(self, run: Run, work: Coroutine[Any, Any, ResearchResult]) -> ResearchResult:
        """What `work` comes to, done in the context of the run. However it ends is stored."""
        with run.context().active():
            try:
                result = await work
            except SessionStopped as e:
                await self._close(run, _outcome_of_error(run.session, e.error))
                raise
            except ApprovalNeeded:
                await self._pause(run)
                raise
            except (Exception, asyncio.CancelledError) as e:
                await run.wait_until_stored()
                if run.stopped not in ("interrupted", "taken over"):
                    await self._close(run, _outcome_of_error(run.session, e))
                raise
            await self._close(run, _outcome(result))
            return result

    async def end(self, run: Run, error: AppError) -> None:
        """Close a session that will not be run."""
        with run.context().active():
            await self._close(run, _outcome_of_error(run.session, error))

    async def close(self, *, release: bool) -> None:
        self._closing.set()
        if self.unstored:
            await asyncio.wait(self.unstored.values())
        await self.held.close(release=release)

    async def _pause(self, run: Run) -> None:
        """Leave the session as it stands, for a person to decide."""
        await run.wait_until_stored()
        if run.lease_token is not None:
            await self.repository.pause(run.session_id, run.lease_token)

    async def _close(self, run: Run, outcome: dict[str, Any]) -> None:
        await run.wait_until_stored()
        now = self.clock.now()
        took = round((now - run.session.created_at).total_seconds() * 1000)
        outcome |= {"completed_at": now, "duration_ms": took, "audit_gaps": run.tally.audit_gaps}
        closed = run.session.model_copy(update=outcome)
        told = run.events([("done", tell_end(closed))])
        if not await _best_effort(self.repository.update_session(closed, events=told), run):
            task = asyncio.create_task(self._store_later(closed, told))
            self.unstored[closed.id] = task
            task.add_done_callback(lambda _: self._give_up(closed.id))
        run.tell(told)

    async def _store_later(self, closed: ResearchSession, told: list[SessionEvent]) -> None:
        for pause in STORE_AGAIN:
            if await passed(self._closing, pause):
                break
            try:
                await self.repository.update_session(closed, events=told)
                break
            except AppError as e:
                logger.warning("end of session not stored yet", session_id=str(closed.id), error=str(e))
            except LeaseLost:
                break

    def _give_up(self, session_id: UUID) -> None:
        del self.unstored[session_id]
        self.held.let_go(session_id)


async def _best_effort(write: Awaitable[None], run: Run) -> bool:
    try:
        await write
    except Exception:  # bulkhead: the record must never stop the research
        run.tally.audit_gaps += 1
        session = run.session
        logger.error("session not stored", session_id=str(session.id), symbol=session.symbol, exc_info=True)
        return False
    return True


def _outcome(result: ResearchResult) -> dict[str, Any]:
    return {
        "status": result.overall_status,
        "verdict_status": result.verdict_status,
        "verdict_action": result.verdict["action"] if result.verdict else None,
        "reason": result.reason,
    }


def _outcome_of_error(session: ResearchSession, error: BaseException) -> dict[str, Any]:
    if isinstance(error, asyncio.CancelledError | SessionCancelled):
        said, status = SAY("no_verdict.cancelled"), "cancelled"
    else:
        why = error_text(error, session.locale) if isinstance(error, Exception) else repr(error)
        said, status = SAY("no_verdict.crashed", why=why), "failed"
    return {"status": status, "verdict_status": "failed", "reason": said.in_locale(session.locale)}


def request_of(session: ResearchSession, nodes: Iterable[NodeExecution]) -> ResearchRequest:
    """What the session was asked."""
    reused = [node for node in nodes if node.reused]
    return ResearchRequest(
        **session.pick_asked(),
        pre_populated_results=dict(_answers(reused)) or None,
        debate_outcome=_debate(reused),
    )


def request_again(past: Past, *, skip_debate: bool | None = None) -> ResearchRequest:
    """The same question, as of the same moment, to those who owe an answer: failed, or never heard of again.

    The debate is skipped if it was, unless told; it is held again where an expert was missing in it. Where all had
    answered and no verdict could be reached, it runs alone, or the judge does if the debate had come to its end.
    """
    session, reused = past.session, dict(_answers(past.nodes))
    skip_debate = session.skip_debate if skip_debate is None else skip_debate
    owing = [expert for expert in session.experts if expert not in reused]
    no_verdict = session.verdict_status == "failed" and bool(reused)
    if not owing and (skip_debate or not no_verdict):
        raise SessionNotRetryable(session.id)
    return request_of(session, ()).model_copy(
        update={
            "experts": owing,
            "skip_debate": skip_debate,
            "pre_populated_results": reused,
            "debate_outcome": None if owing else _debate(past.nodes),
            "parent_session_id": session.id,
            "retry_count": session.retry_count + 1,
        }
    )


def copy_reused(request: ResearchRequest, session_id: UUID, now: datetime) -> Iterator[NodeExecution]:
    """Reused results as rows of the session that reuses them, so that it can be retried without its parents."""
    debate = {"debate": request.debate_outcome} if request.debate_outcome else {}
    for node_type, result in {**(request.pre_populated_results or {}), **debate}.items():
        yield NodeExecution(
            id=uuid4(),
            session_id=session_id,
            node_type=node_type,
            status="success",
            reused=True,
            started_at=now,
            completed_at=now,
            duration_ms=0,
            **to_columns(result),
        )


def _debate(nodes: Iterable[NodeExecution]) -> dict[str, Any] | None:
    held = (node for node in nodes if node.node_type == "debate" and node.status == "success")
    return next(map(from_columns, held), None)


def _answers(nodes: Iterable[NodeExecution]) -> Iterator[tuple[str, dict[str, Any]]]:
    """In the order of the desk, not of the clock: the debate must not depend on who was quicker."""
    stored = {node.node_type: node for node in nodes if node.status == "success" and node.result_data}
    for expert in ExpertType:
        if expert in stored:
            yield expert.value, from_columns(stored[expert])

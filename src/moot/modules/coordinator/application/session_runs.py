"""Runs sessions: while somebody waits, in the background, and again where a process died. And stops them."""

import asyncio
from datetime import datetime
from uuid import UUID

import structlog

from moot.modules.coordinator.application.admission import Admission, Turn
from moot.modules.coordinator.application.live_runs import LiveRuns, passed
from moot.modules.coordinator.application.research_run import NodeEvent, Watch, nodes_of, notices, usage
from moot.modules.coordinator.application.resume import reopened
from moot.modules.coordinator.application.session_history import SessionHistory
from moot.modules.coordinator.application.session_recorder import Opened, SessionRecorder
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest, ResearchResult
from moot.modules.coordinator.domain.exceptions import (
    AllExpertsFailed,
    KeyReused,
    KeyTaken,
    SessionCancelled,
    SessionEnded,
    SessionGivenUp,
    SessionHeld,
    SessionInterrupted,
    SessionNotFound,
    SessionWaiting,
)
from moot.modules.coordinator.domain.model.session import ResearchSession
from moot.modules.coordinator.domain.ports.permission import AllowAll, NodePolicy
from moot.modules.coordinator.domain.ports.research_orchestration import IResearchOrchestrationPort
from moot.modules.coordinator.domain.ports.research_session_repository import (
    IdempotencyKey,
    IResearchSessionRepository,
)
from moot.modules.coordinator.domain.ports.session_leases import ISessionLeases
from moot.modules.coordinator.domain.ports.session_record import SessionRecord
from moot.modules.coordinator.domain.ports.session_runner import ISessionRunner
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.clock import Clock, SystemClock
from moot.shared.domain.errors import AppError, Unavailable

logger = structlog.get_logger(__name__)

MOST_OWNERS = 10
"""A session that so many processes died of, or closed on, is taken to be the cause."""
LOOK_AGAIN = 1.0
"""Seconds between two looks at a session that runs elsewhere."""
AT_MOST_LEFT_BEHIND = 500


class SessionRuns(ISessionRunner):
    """Also the runner of a desk that is one process: what is submitted runs here. Without a repository nothing is
    stored, and only what somebody waits for can run."""

    def __init__(
        self,
        orchestrator: IResearchOrchestrationPort,
        *,
        repository: IResearchSessionRepository | None = None,
        leases: ISessionLeases | None = None,
        record: SessionRecord | None = None,
        clock: Clock | None = None,
        currency: str = "",
        lease_seconds: float = 15.0,
        admission: Admission | None = None,
        runner: ISessionRunner | None = None,
        policy: NodePolicy | None = None,
    ) -> None:
        self._orchestrator, self._currency = orchestrator, currency
        self._repository, self._leases, self._record = repository, leases, record
        self._clock = clock or SystemClock()
        self._live = LiveRuns(leases, self._clock, lease_seconds)
        self._admission = admission or Admission()
        self._recorder = SessionRecorder(repository, self._clock, self._live)
        self._runner = runner or self
        self._policy = policy or AllowAll()
        self._closed = asyncio.Event()

    async def answer(
        self,
        request: ResearchRequest,
        as_of: datetime,
        *,
        key: IdempotencyKey | None = None,
        watch: Watch | None = None,
    ) -> ResearchResult:
        """Run `request` here and now. Under a known `key` it is not run again: the answer is that session's."""
        if known := await self._opened_under(key, request.workspace):
            return await self.outcome(known.id, request.workspace)
        try:
            async with self._admission.admitted() as turn:
                lease = self._live.first_lease()
                opened = await self._recorder.open(request, as_of, lease=lease, key=key)
                work = self._run(opened, turn, watch)
                return await self._live.begin(opened.session.id, work, leased=lease is not None).result()
        except KeyTaken:
            return await self.answer(request, as_of, key=key, watch=watch)

    async def start(
        self, request: ResearchRequest, as_of: datetime, *, key: IdempotencyKey | None = None
    ) -> ResearchSession:
        """Accept `request` and return; it is stored by then, so that whatever happens it will be run."""
        if known := await self._opened_under(key, request.workspace):
            return known
        self._kept()
        try:
            with self._admission.place():
                opened = await self._recorder.open(
                    request, as_of, status="queued", key=key, must_be_stored=True
                )
                self._runner.submit(opened.session.id)
                await asyncio.sleep(0)  # until the run stands in the line itself
        except KeyTaken:
            return await self.start(request, as_of, key=key)
        return opened.session

    def submit(self, session_id: UUID) -> None:
        if session_id not in self._live and not self.closing:
            self._live.begin_unattended(session_id, self._carry_on(session_id))

    async def resume(self, session_id: UUID, workspace: str, *, watch: Watch | None = None) -> ResearchResult:
        """Go on with a session whose process died. Raises `SessionEnded`, or `SessionHeld` while somebody runs it."""
        session = await self._known(session_id, workspace)
        if session.ended:
            raise SessionEnded(session_id, session.status)
        if session_id in self._live:
            raise SessionHeld(session_id)
        if session.status == "waiting":
            raise SessionWaiting(session_id)
        return await self._live.begin(session_id, self._carry_on(session_id, watch), leased=False).result()

    async def wake(self, session_id: UUID) -> None:
        """Somebody has decided what a session was waiting for: it goes on."""
        if self._leases is not None and await self._leases.wake(session_id):
            self._runner.submit(session_id)

    async def left_behind(self) -> list[UUID]:
        """Sessions that nobody runs and that have not ended, of all workspaces."""
        if self._leases is None:
            return []
        found = await self._leases.left_behind(self._clock.now(), AT_MOST_LEFT_BEHIND)
        return [session_id for session_id in found if session_id not in self._live]

    async def interrupted(self, workspace: str) -> list[ResearchSession]:
        """Those of one workspace."""
        found = [await self._kept().get_session_by_id(i, workspace) for i in await self.left_behind()]
        return [session for session in found if session is not None]

    async def cancel(self, session_id: UUID, workspace: str) -> None:
        """Stop a session, wherever it runs; elsewhere that takes until its owner looks up. Raises `SessionEnded`."""
        session = await self._known(session_id, workspace)
        if session.status == "cancelled":
            return
        if session.ended or self._leases is None:
            raise SessionEnded(session_id, session.status)
        await self._leases.wake(session_id)
        await self._live.stop(session_id, "cancelled")
        if (await self._known(session_id, workspace)).ended:
            return
        await self._leases.request_cancel(session_id)
        if taken := await self._live.take(session_id):
            opened = await reopened(session, taken.lease, self._kept(), self._record, self._clock)
            await self._end(opened, SessionCancelled(session_id))

    async def outcome(self, session_id: UUID, workspace: str) -> ResearchResult:
        """The answer of a session, when it has one; one that was left behind is run on here."""
        while not (session := await self._known(session_id, workspace)).ended:
            if session.status == "waiting":
                raise SessionWaiting(session_id)
            if session_id not in self._live:
                if self.closing:
                    raise SessionInterrupted(session_id)
                self._runner.submit(session_id)
            await self._live.wait(session_id, LOOK_AGAIN)
            if session_id not in self._live and not (await self._known(session_id, workspace)).ended:
                await self._kept().wait_for_events(session_id, LOOK_AGAIN)  # somebody else runs it
        if session.status == "cancelled":
            raise SessionCancelled(session_id)
        history = SessionHistory(self._repository, self._record, self._currency)
        return _answered(await history.result(session_id, workspace))

    async def look_after(self, seconds: float) -> None:
        """Go on with whatever is left behind, now and from time to time, until the desk closes."""
        while True:
            try:
                await self._policy.upkeep()
                for session_id in await self.left_behind():
                    logger.info("session taken up again", session_id=str(session_id))
                    self._runner.submit(session_id)
            except AppError as e:  # the store may be back next time
                logger.warning("no look at what was left behind", error=str(e))
            if await passed(self._closed, seconds):
                return

    def close_doors(self) -> None:
        """Take on nothing more."""
        self._admission.closed = True
        self._closed.set()

    @property
    def closing(self) -> bool:
        return self._closed.is_set()

    async def close(self, *, grace: float = 0.0) -> None:
        """Let what runs come to its end for so long; what has not is left to be resumed."""
        self.close_doors()
        await self._live.drain(grace)
        await self._live.close()

    async def _carry_on(self, session_id: UUID, watch: Watch | None = None) -> ResearchResult:
        async with self._admission.admitted(accepted=True) as turn:
            taken = await self._live.take(session_id)
            if taken is None:
                raise SessionHeld(session_id)
            session = await self._known(session_id, None)
            opened = await reopened(session, taken.lease, self._kept(), self._record, self._clock)
            if taken.cancel_requested:
                await self._end(opened, SessionCancelled(session_id))
                raise SessionCancelled(session_id)
            if taken.lease.token > MOST_OWNERS:
                await self._end(opened, given_up := SessionGivenUp(session_id, MOST_OWNERS))
                raise given_up
            return await self._run(opened, turn, watch)

    async def _run(self, opened: Opened, turn: Turn, watch: Watch | None) -> ResearchResult:
        session, request = opened.session, opened.request

        def seen(event: NodeEvent) -> None:
            turn.under_way()
            if watch is not None:
                watch(event)

        async with self._recorder.recording(opened, seen) as recording:
            outcome = await self._governed(request)
            await opened.stored()
            recording.result = result = outcome.model_copy(
                update={
                    "session_id": recording.context.session_id,
                    "as_of": session.as_of,
                    "locale": request.locale,
                    "audit_gaps": opened.tally.audit_gaps,
                    "usage": usage(opened.tally, self._currency),
                    "notices": notices(request.symbol, request.locale),
                }
            )
        return _answered(result)

    async def _governed(self, request: ResearchRequest) -> ResearchResult:
        await self._policy.session_begins(nodes_of(request))
        try:
            return await self._orchestrator.run(await self._policy.admit(request))
        finally:
            await self._policy.session_ends()

    async def _end(self, opened: Opened, error: AppError) -> None:
        """Close a session that will not be run."""
        try:
            async with self._recorder.recording(opened):
                raise error
        except AppError as e:
            if e is not error:
                raise

    async def _opened_under(self, key: IdempotencyKey | None, workspace: str) -> ResearchSession | None:
        if key is None:
            return None
        known = await self._kept().get_session_by_key(workspace, key.key)
        if known is not None and known.digest != key.digest:
            raise KeyReused(known.session.id)
        return known.session if known else None

    async def _known(self, session_id: UUID, workspace: str | None) -> ResearchSession:
        session = await self._kept().get_session_by_id(session_id, workspace)
        if session is None:
            raise SessionNotFound(session_id)
        return session

    def _kept(self) -> IResearchSessionRepository:
        if self._repository is None:
            raise Unavailable(SAY("persistence_off"), code="PERSISTENCE_OFF")
        return self._repository


def _answered(result: ResearchResult) -> ResearchResult:
    if result.overall_status == "failed":
        raise AllExpertsFailed(result)
    return result

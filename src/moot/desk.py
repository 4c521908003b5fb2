"""The desk: composition root of everything, and the SDK.

    async with Moot() as desk:
        result = await desk.research("900001.DEMO")

CLI, REST and whatever comes later get their services from here.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import structlog
from pydantic import SecretStr

from moot.modules.jobs.application.watch import DEFAULT_LIST
from moot.remote.desk import Body, Desk, Id, as_id
from moot.shared.domain.audit import Seal
from moot.shared.domain.clock import Clock, SystemClock
from moot.shared.domain.errors import AppError
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale
from moot.shared.domain.validation import refuse_field, validate
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.call_audit import CallAudit, ExternalCalls
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE
from moot.shared.infrastructure.home import make_private_folder, write_private
from moot.shared.infrastructure.logging import configure_quietly
from moot.shared.infrastructure.rate_limit_store import SqlTurns
from moot.shared.infrastructure.redaction import REDACT
from moot.shared.infrastructure.settings import Settings, load_settings, split_names

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path
    from uuid import UUID

    from moot.modules.access.application import AccessService
    from moot.modules.coordinator.application.contest import ContestResult, Move
    from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
    from moot.modules.coordinator.application.replay import Replay
    from moot.modules.coordinator.application.run import Watch
    from moot.modules.coordinator.application.session_history import (
        ResearchSession,
        SessionDetail,
        SessionEvent,
        SessionPage,
    )
    from moot.modules.coordinator.container import CoordinatorContainer, Neighbours
    from moot.modules.evaluation.container import EvaluationContainer
    from moot.modules.governance.application.circuit_breaker import Breakers
    from moot.modules.governance.application.coordinator_agent import Escalation
    from moot.modules.governance.container import GovernanceContainer
    from moot.modules.intake.application.intake_service import Conversation
    from moot.modules.intake.container import IntakeContainer
    from moot.modules.jobs.application.batches import BatchPage, BatchResults, BatchView
    from moot.modules.jobs.application.schedules import ScheduleList, ScheduleService, ScheduleView
    from moot.modules.jobs.application.watch import Watchlist
    from moot.modules.jobs.application.worker import Worker
    from moot.modules.jobs.container import Engine, JobsContainer
    from moot.modules.llm_platform.application.speaker import EngineChoice, Speaker
    from moot.modules.llm_platform.container import LLMPlatformContainer
    from moot.modules.market_data.application.sql import DatabaseTool, QueryResult, SqlDoor
    from moot.modules.market_data.container import MarketDataContainer
    from moot.modules.research.container import ResearchContainer
    from moot.shared.domain.audit import Verification

logger = structlog.get_logger(__name__)

ASKED_IN = "en-US"
"""The language of a question that gives no hint of its own, unless the settings name one."""
REQUESTER = "desk"
"""Who asks the rules for whoever is at the desk: nobody is kept from answering in their own name."""


class Moot(Desk):
    """`trigger_source`: how sessions are said to have been started that are asked for here."""

    def __init__(
        self, settings: Settings | None = None, *, clock: Clock | None = None, trigger_source: str = "sdk"
    ) -> None:
        self.settings = settings or load_settings()
        configure_quietly(self.settings.log_level)
        self.locale: Locale = self.settings.locale or DEFAULT_LOCALE
        self._trigger_source = trigger_source
        self.clock = clock or SystemClock()
        self._opened_later = AsyncExitStack()
        self._queue: Engine | None = None
        self._worker: Worker | None = None
        secrets = [value.get_secret_value() for _, value in self.settings if isinstance(value, SecretStr)]
        REDACT.learn(*secrets)  # what the settings hold in confidence is written down nowhere
        self.database = Database(self.settings.resolved_database_url) if self.settings.persistence else None
        key = self.settings.audit_key.get_secret_value()
        self.trail = AuditTrail(self.database, Seal(key) if key else None) if self.database else None
        strict = self.settings.audit == "strict"
        self._audit = CallAudit(self.trail, self.clock, strict=strict) if self.trail else None
        self._optional_nodes = _optional_nodes(self.settings)
        if self.trail:
            from moot.modules.jobs.container import follow_causes

            follow_causes(self.trail)
        if self.settings.goal_alignment == "embeddings":
            _ = self.governance  # says at once where that cannot be

    @cached_property
    def market_data(self) -> MarketDataContainer:
        from moot.modules.market_data.container import MarketDataContainer, Sources

        settings = self.settings
        return MarketDataContainer(
            self.clock,
            demo_seed=settings.demo_seed,
            lake=settings.home.expanduser() / "lake",
            sources=Sources(
                tushare_token=settings.tushare_token,
                tushare_url=settings.tushare_url,
                more=split_names(settings.data_sources),
                files=settings.data_files,
                order=settings.data_order,
                per_minute=settings.data_requests_per_minute,
            ),
            calls=ExternalCalls(self._audit),
            guard=self._breakers.guard,
            turns=SqlTurns(self.database) if self.database and settings.data_requests_per_minute else None,
        )

    @cached_property
    def llm_platform(self) -> LLMPlatformContainer:
        from moot.modules.llm_platform.container import LLMPlatformContainer

        return LLMPlatformContainer(
            self.settings, audit=self._audit, clock=self.clock, guard=self._breakers.guard
        )

    @cached_property
    def governance(self) -> GovernanceContainer:
        from moot.modules.coordinator.container import workflow_journal
        from moot.modules.governance.application.error_handler import ErrorHandlingPolicy
        from moot.modules.governance.container import GovernanceContainer, RuleBook, alignment_opinion
        from moot.modules.market_data.application.sql import DATABASE_TOOL, TABLES

        return GovernanceContainer(
            book=RuleBook({"database": DATABASE_TOOL}, tables={"database": TABLES}),
            trail=self.trail,
            clock=self.clock,
            strict=self.settings.audit == "strict",
            # some chance in every pause, so that those who failed together do not return together
            policy=ErrorHandlingPolicy(jitter=0.2, skippable_node_types=self._optional_nodes),
            journal=workflow_journal(self.trail) if self.trail else None,
            on_answer=self._go_on,
            breakers=self._breakers,
            opinion=alignment_opinion(self.settings.goal_alignment, self.llm_platform.llm_service()),
        )

    @cached_property
    def coordinator(self) -> CoordinatorContainer:
        from moot.modules.coordinator.container import CoordinatorContainer

        return CoordinatorContainer(
            trail=self.trail,
            neighbours=self._neighbours,
            llm_platform=self.llm_platform,
            clock=self.clock,
            settings=self.settings,
            queue=self._open_queue if self.trail else None,
            lease_clock=self._lease_clock,
        )

    @property
    def _lease_clock(self) -> Clock:
        """The one that all share, unless somebody else sets the time."""
        if self.database and isinstance(self.clock, SystemClock):
            return self.database.clock
        return self.clock

    def _open_queue(self) -> Engine:
        from moot.modules.jobs.container import Engine

        assert self.trail is not None
        if self._queue is None:
            self._queue = Engine(self.trail)
        return self._queue

    def work(self) -> None:
        """Take sessions from the queue from now on, unless others are to."""
        if self._worker is None and self.trail is not None and self.settings.worker:
            self._worker = self.jobs.worker()
            self._worker.start()

    def _neighbours(self) -> Neighbours:
        from moot.modules.coordinator.container import Neighbours
        from moot.modules.debate.container import DebateContainer
        from moot.modules.judge.container import JudgeContainer

        models, market = self.llm_platform, self.market_data

        def voice() -> tuple[EngineChoice, Speaker]:
            return models.engine_choice(), models.speaker()

        def research(_sessions: object) -> ResearchContainer:
            from moot.modules.research.container import ResearchContainer  # not before somebody researches

            return ResearchContainer(market.market_data(), *voice(), models.web_to_search())

        return Neighbours(
            market_data=market.market_data(),
            governance=self.governance.agent,
            research=research,
            debate=lambda _: DebateContainer(*voice()),
            judge=lambda _: JudgeContainer(self.settings.judge_quorum, *voice(), self.settings.calibration),
        )

    @cached_property
    def access(self) -> AccessService:
        from moot.modules.access.container import access_service

        access = access_service(self.database, self.clock)
        self._opened_later.push_async_callback(access.finish)
        return access

    @cached_property
    def evaluation(self) -> EvaluationContainer:
        from moot.modules.evaluation.container import EvaluationContainer

        return EvaluationContainer(self.market_data, self.coordinator, self.clock)

    @cached_property
    def jobs(self) -> JobsContainer:
        from moot.modules.jobs.container import JobsContainer

        near = self.market_data, self.coordinator, self.llm_platform
        return JobsContainer(
            self.database, self.clock, *near, self._open_queue if self.trail else None, self.settings
        )

    @cached_property
    def database_tool(self) -> DatabaseTool:
        return self.market_data.database()

    @cached_property
    def sql_door(self) -> SqlDoor:
        from moot.modules.governance.application.coordinator_agent import ToolCalls
        from moot.modules.market_data.application.sql import SqlDoor

        return SqlDoor(self.database_tool, ToolCalls(self.governance.agent, self.clock), self.clock)

    @cached_property
    def intake(self) -> IntakeContainer:
        from moot.modules.intake.container import IntakeContainer

        intake = IntakeContainer(
            trail=self.trail,
            url=self.settings.resolved_database_url if self.database else None,
            home=self.settings.home.expanduser(),
            clock=self.clock,
            lease_clock=self._lease_clock,
            lease_seconds=self.settings.lease_seconds,
            llm_platform=self.llm_platform,
            market_data=self.market_data,
            governance=self.governance.agent,
            research=self.coordinator.research_orchestration_service(),
            default_locale=self.settings.locale or ASKED_IN,
            plan_repairs=self.settings.plan_repairs,
        )
        self._opened_later.push_async_callback(intake.close)
        return intake

    @cached_property
    def _breakers(self) -> Breakers:
        from moot.modules.governance.application.circuit_breaker import Breakers

        return Breakers(SystemClock())

    async def __aenter__(self) -> Self:
        """A database that is not ready does not keep the desk from opening: research goes on without a record.

        Raises `Unavailable` for one that another build has made: what is asked for here would be lost, unnoticed.
        """
        with suppress(OSError):  # whoever needs a place there says so
            make_private_folder(self.settings.home.expanduser())
        if self.database is not None:
            try:
                await self.database.prepare()
                await self.llm_platform.open()
            except AppError as e:
                if e.code == "DATABASE_OTHER_BUILD":  # it never will be
                    raise
                logger.error("database not ready, sessions will not be stored", error=str(e))
                self.database.patience.lose()
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Sessions that still run are interrupted, and can be resumed by the next desk."""
        await self.rest()
        await self._opened_later.aclose()
        for part in ("jobs", "coordinator", "market_data", "llm_platform"):
            if part in vars(self):
                await getattr(self, part).close()
        if self.database is not None:
            await self.database.close()  # before the queue: what is written at last may go there
        if self._queue is not None:
            await self._queue.close()

    async def rest(self, *, grace: float = 0.0) -> None:
        """Take on nothing more; what runs may come to its end for so long, and the rest is left to others."""
        if self.database is not None:
            self.database.patience.end(within=grace)
        if self._worker is not None:
            await self._worker.stop(grace=grace)
        elif "coordinator" in vars(self):
            await self.coordinator.close(grace=grace)

    async def _go_on(self, escalation: Escalation) -> None:
        """A person has decided what a session waits for."""
        if escalation.session_id is not None:
            self.work()
            await self.coordinator.sessions.wake(escalation.session_id)

    async def _research(self, question: Body, watch: Watch | None) -> ResearchResult:
        service = self.coordinator.research_orchestration_service()
        return await service.execute(question, trigger_source=self._trigger_source, watch=watch)

    async def _start(self, question: Body, idempotency_key: str | None) -> UUID:
        self.work()
        service = self.coordinator.research_orchestration_service()
        session = await service.start(
            question, trigger_source=self._trigger_source, idempotency_key=idempotency_key
        )
        return session.id

    async def retry(
        self, session_id: Id, *, skip_debate: bool | None = None, watch: Watch | None = None
    ) -> ResearchResult:
        service = self.coordinator.research_orchestration_service()
        return await service.retry(
            as_id(session_id), skip_debate=skip_debate, trigger_source=self._trigger_source, watch=watch
        )

    async def contest(self, session_id: Id, moves: Sequence[Move | Mapping[str, Any]]) -> ContestResult:
        service = self.coordinator.contest_service()
        return await service.contest(as_id(session_id), moves, workspace=DEFAULT_WORKSPACE)

    async def resume(self, session_id: Id, *, watch: Watch | None = None) -> ResearchResult:
        """Go on with a session whose process died: what is on its record is neither run nor paid again.

        Raises `SessionEnded`, or `SessionHeld` while somebody runs it or did so a moment ago.
        """
        return await self.coordinator.sessions.resume(as_id(session_id), DEFAULT_WORKSPACE, watch=watch)

    async def find_interrupted(self) -> list[ResearchSession]:
        """Sessions of this workspace that have not ended and that nobody runs."""
        return await self.coordinator.sessions.find_interrupted(DEFAULT_WORKSPACE)

    async def cancel(self, session_id: Id) -> SessionDetail:
        await self.coordinator.sessions.cancel(as_id(session_id), DEFAULT_WORKSPACE)
        return await self.session(as_id(session_id))

    async def result(self, session_id: Id) -> ResearchResult:
        return await self.coordinator.session_history().result(as_id(session_id), DEFAULT_WORKSPACE)

    def events(self, session_id: Id, *, after: int = 0) -> AsyncIterator[SessionEvent]:
        return self.coordinator.session_history().events(as_id(session_id), DEFAULT_WORKSPACE, after=after)

    async def sessions(self, symbol: str | None = None, *, page: int = 1, page_size: int = 20) -> SessionPage:
        from moot.modules.coordinator.application.session_history import SessionFilter

        wanted = SessionFilter(workspace_id=DEFAULT_WORKSPACE, symbol=symbol, page=page, page_size=page_size)
        return await self.coordinator.session_history().sessions(wanted)

    async def session(self, session_id: Id) -> SessionDetail:
        return await self.coordinator.session_history().session(as_id(session_id), DEFAULT_WORKSPACE)

    async def verify(self, session_id: Id) -> Verification:
        return await self.coordinator.session_history().verify(as_id(session_id), DEFAULT_WORKSPACE)

    async def replay(self, session_id: Id) -> Replay:
        """Run a session again from its record, with the network off, and compare it node by node."""
        return await self.coordinator.replay_service().replay(as_id(session_id), DEFAULT_WORKSPACE)

    async def export(self, session_id: Id) -> bytes:
        """A session as a ZIP that proves itself: report, result, every row, and the chain over them."""
        packs = self.coordinator.session_packs()
        return (await packs.pack(as_id(session_id), DEFAULT_WORKSPACE, self.locale)).data

    async def _ask(self, question: Body) -> Conversation:
        from moot.modules.intake.application.intake_service import Question

        return await self.intake.service.ask(validate(Question, question), workspace=DEFAULT_WORKSPACE)

    async def _answer_plan(self, thread: UUID, said: Body) -> Conversation:
        from moot.modules.intake.application.intake_service import Feedback

        return await self.intake.service.feedback(
            thread, validate(Feedback, said), workspace=DEFAULT_WORKSPACE
        )

    async def conversation(self, thread: UUID) -> Conversation:
        return await self.intake.service.conversation(thread, DEFAULT_WORKSPACE)

    async def watchlist(self, list_name: str | None = None) -> Watchlist:
        return await self.jobs.watchlists().list(list_name)

    async def add_to_watchlist(self, *symbols: str, list_name: str = DEFAULT_LIST) -> Watchlist:
        return await self.jobs.watchlists().add(symbols, list_name)

    async def remove_from_watchlist(self, *symbols: str, list_name: str = DEFAULT_LIST) -> Watchlist:
        return await self.jobs.watchlists().remove(symbols, list_name)

    async def _start_batch(self, request: Body) -> BatchView:
        batch = await self.jobs.batches().start(request)
        self.work()
        return batch

    async def batches(self, name: str | None = None, *, page: int = 1, page_size: int = 20) -> BatchPage:
        return await self.jobs.batches().find_all(name, page=page, page_size=page_size)

    async def batch(self, batch_id: UUID) -> BatchView:
        return await self.jobs.batches().find(batch_id)

    async def batch_results(self, batch_id: UUID) -> BatchResults:
        return await self.jobs.batches().results(batch_id)

    async def pause_batch(self, batch_id: UUID) -> BatchView:
        return await self.jobs.batches().pause(batch_id)

    async def resume_batch(self, batch_id: UUID) -> BatchView:
        batch = await self.jobs.batches().resume(batch_id)
        self.work()
        return batch

    async def cancel_batch(self, batch_id: UUID) -> BatchView:
        return await self.jobs.batches().cancel(batch_id)

    def _schedules(self) -> ScheduleService:
        return self.jobs.schedules(caller=self._trigger_source)

    async def schedules(self) -> ScheduleList:
        return await self._schedules().list()

    async def schedule(self, name: str) -> ScheduleView:
        return await self._schedules().find(name)

    async def _add_schedule(self, body: Body) -> ScheduleView:
        return await self._schedules().add(body)

    async def pause_schedule(self, name: str) -> ScheduleView:
        return await self._schedules().pause(name)

    async def resume_schedule(self, name: str) -> ScheduleView:
        return await self._schedules().resume(name)

    async def remove_schedule(self, name: str) -> ScheduleView:
        return await self._schedules().remove(name)

    async def run_schedule(self, name: str) -> ScheduleView:
        return await self._schedules().run_now(name)

    async def _query(self, query: Body, locale: Locale | None) -> QueryResult:
        spoken = locale or self.locale
        return await self.sql_door.query(
            query, requester=REQUESTER, workspace=DEFAULT_WORKSPACE, locale=spoken
        )

    def write_report(self, result: ResearchResult) -> Path:
        """Write the report of `result` as Markdown below the desk's home and say where; raises `OSError`."""
        from moot.modules.coordinator.application.report import render_report

        day = f"{result.as_of:%Y%m%d}" if result.as_of else "undated"
        name = "-".join(part for part in (result.symbol, day, result.session_id[:8]) if part)
        path = self.settings.home.expanduser() / "reports" / f"{name}.md"
        make_private_folder(path.parent)
        write_private(path, render_report(result))
        return path

    async def readiness(self) -> dict[str, dict[str, Any]]:
        """What the desk needs in order to serve, and whether it has it."""
        closing = self.coordinator.sessions.closing
        doors = {"ok": not closing, "detail": "closing, takes no new work" if closing else "open"}
        return {"desk": doors, "database": await self._database_state()}

    async def _database_state(self) -> dict[str, Any]:
        if self.database is None:
            return {"ok": True, "detail": "persistence is off"}
        try:
            current = await self.database.current()
        except AppError as e:
            return {"ok": False, "detail": str(e)}
        head = self.database.head()
        needed = "" if current == head else f", needs {head}: moot db upgrade"
        return {"ok": not needed, "detail": f"revision {current}{needed}"}


def _optional_nodes(settings: Settings) -> tuple[str, ...]:
    optional = split_names(settings.optional_nodes)
    known = [*ExpertType, "debate", "judge", "research", "equity", "processing"]
    if unknown := [name for name in optional if name not in known]:
        raise refuse_field("literal_error", "MOOT_OPTIONAL_NODES", ", ".join(unknown), allowed=known)
    return tuple(optional)

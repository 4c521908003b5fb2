"""A session whose process died goes on from its record: on both databases, with a real journal."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import update

from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.application.session_history import SessionHistory
from moot.modules.coordinator.application.sessions import MOST_OWNERS, SUSPICIOUS, Sessions
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.domain.exceptions import (
    Abstention,
    AllExpertsFailed,
    SessionCancelled,
    SessionEnded,
    SessionGivenUp,
    SessionHeld,
    SessionInterrupted,
    SessionNotFound,
    SessionTakenOver,
)
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.session import NodeExecution, ResearchSession, SessionEvent
from moot.modules.coordinator.domain.ports.permission import NodePolicy
from moot.modules.coordinator.infrastructure.orchestration.graph_builder import NodeLayers
from moot.modules.coordinator.infrastructure.orchestration.langgraph_orchestrator import (
    LangGraphResearchOrchestrator,
)
from moot.modules.coordinator.infrastructure.session_repository import (
    SqlResearchSessionRepository,
)
from moot.modules.coordinator.infrastructure.tables import ResearchSessionRow
from moot.shared.domain.errors import AppError, Unavailable
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.audit_verification import verify
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import current_execution_ctx
from tests.coordinator.test_session_repository import a_session
from tests.fakes.clock import PATIENCE, settle, until
from tests.fakes.coordinator import (
    CATALYST,
    FINANCIAL,
    MACRO,
    TECHNICAL,
    VALUATION,
    Answer,
    FakeDebate,
    FakeJudge,
    FakeResearch,
)
from tests.fakes.queue import OwnQueue

WORKSPACE = "default"
ALL = list(ExpertType)
FOUND = {"signal": "BULLISH", "narrative_report": "in words", "evidence": [{"id": "a.b", "value": 1.5}]}
DOWN = AppError("the provider is down")


class HandClock:
    """Stands still until somebody moves it."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment


class Stops:
    """A place where a run stands still until the test has seen it there."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()

    async def __call__(self) -> None:
        self.reached.set()
        await asyncio.Event().wait()


class StoppingResearch(FakeResearch):
    def __init__(self, stops: Mapping[ExpertType, Stops], answers: Mapping[ExpertType, Answer]) -> None:
        super().__init__(answers)
        self._stops = stops
        self.started: list[ExpertType] = []

    async def run_expert(
        self, expert_type: ExpertType, symbol: str, options: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        self.started.append(expert_type)
        if expert_type in self._stops:
            await self._stops[expert_type]()
        return await super().run_expert(expert_type, symbol, options)


class StoppingDebate(FakeDebate):
    def __init__(self, stop: Stops) -> None:
        super().__init__()
        self._stop = stop

    async def run_debate(self, symbol: str, expert_results: dict[str, Any]) -> dict[str, Any]:
        await self._stop()
        return await super().run_debate(symbol, expert_results)


class StoppingJudge(FakeJudge):
    def __init__(self, stop: Stops) -> None:
        super().__init__()
        self._stop = stop

    async def run_verdict(self, symbol: str, debate_outcome: dict[str, Any]) -> dict[str, Any]:
        await self._stop()
        return await super().run_verdict(symbol, debate_outcome)


class Silent(SqlResearchSessionRepository):
    """The record of a desk whose experts call nobody."""

    async def calls(self, session_id: UUID, to: str, *, include_text: bool) -> list[dict[str, Any]]:
        return []

    async def close_calls(self, session_id: UUID) -> None:
        return None


PROCESSES: list["Process"] = []


@pytest.fixture(autouse=True)
async def closed_in_the_end(database: Database) -> AsyncIterator[None]:
    """What a process of this test still does must not outlive its database."""
    yield
    while PROCESSES:
        process = PROCESSES.pop()
        await process.sessions.close()
        await process.trail.finish()


class Process:
    """One process at a database that others use too."""

    def __init__(
        self,
        database: Database,
        clock: HandClock,
        research: FakeResearch | None = None,
        debate: FakeDebate | None = None,
        judge: FakeJudge | None = None,
        policy: NodePolicy | None = None,
        trail: AuditTrail | None = None,
    ) -> None:
        policy = policy or NodePolicy()
        self.research = research or FakeResearch(dict.fromkeys(ALL, FOUND))
        self.debate, self.judge = debate or FakeDebate(), judge or FakeJudge()
        self.trail = trail or AuditTrail(database)
        self.repository = Silent(self.trail)
        layers = NodeLayers(repository=self.repository, clock=clock, policy=policy)
        engine = LangGraphResearchOrchestrator(self.research, self.debate, self.judge, layers=layers)
        self.queue = OwnQueue()
        self.sessions = self.queue.sessions = Sessions(
            engine,
            repository=self.repository,
            queue=lambda: self.queue,
            clock=clock,
            lease_seconds=60,
            policy=policy,
        )
        self.service = ResearchOrchestrationService(
            engine, repository=self.repository, clock=clock, sessions=self.sessions
        )
        PROCESSES.append(self)

    async def ask(self, *experts: ExpertType, **more: Any) -> ResearchResult:
        return await self.service.execute(question(*experts, **more))

    async def die_at(self, stop: Stops, *experts: ExpertType, **more: Any) -> UUID:
        """Run until `stop`, and then no further: the process is gone, and its lease runs on."""
        return await self._die(stop, self.ask(*experts, **more))

    async def die_again(self, stop: Stops, session_id: UUID) -> None:
        """The same with a session that another process left behind."""
        await self._die(stop, self.sessions.resume(session_id, WORKSPACE))

    async def _die(self, stop: Stops, work: Coroutine[Any, Any, ResearchResult]) -> UUID:
        running = asyncio.create_task(work)
        await asyncio.wait_for(stop.reached.wait(), PATIENCE)
        for _ in range(5):  # what ended before it is on the record
            await settle()
            await self.trail.finish()
        (run,) = self.sessions._runs.values()
        run.stop("interrupted")
        with pytest.raises(SessionInterrupted):
            await running
        return run.session_id

    async def nodes(self, session_id: UUID) -> dict[str, NodeExecution]:
        found = await self.repository.get_node_executions_by_session(session_id)
        assert len({node.node_type for node in found}) == len(found), "one row a node"
        return {node.node_type: node for node in found}

    async def session(self, session_id: UUID) -> ResearchSession:
        found = await self.repository.get_session_by_id(session_id, WORKSPACE)
        assert found is not None
        return found


def question(*experts: ExpertType, **more: Any) -> dict[str, Any]:
    return {"symbol": "900001.DEMO", "experts": list(experts or ALL), "locale": "en-US", **more}


@pytest.fixture
def hours(clock) -> HandClock:
    return HandClock(clock.now())


def later(hours: HandClock) -> None:
    hours.moment += timedelta(minutes=2)


def said(result: ResearchResult) -> dict[str, Any]:
    return result.model_dump(mode="json", exclude={"session_id"})


class TestASessionThatDied:
    async def test_goes_on_with_the_experts_that_were_under_way(self, database: Database, hours) -> None:
        undisturbed = await Process(database, hours).ask()
        stop = Stops()
        research = StoppingResearch({MACRO: stop, CATALYST: stop}, dict.fromkeys(ALL, FOUND))
        first = Process(database, hours, research)
        session_id = await first.die_at(stop)
        before = await first.nodes(session_id)
        assert set(before) == {TECHNICAL, FINANCIAL, VALUATION}
        later(hours)
        second = Process(database, hours)
        result = await second.sessions.resume(session_id, WORKSPACE)
        assert said(result) == said(undisturbed)
        assert second.research.asked == {MACRO, CATALYST}
        after = await second.nodes(session_id)
        assert {name: after[name].id for name in before} == {name: row.id for name, row in before.items()}
        assert set(after) == {*ALL, "debate", "judge"}
        ended = await second.session(session_id)
        assert (ended.status, ended.verdict_action, ended.audit_gaps) == ("completed", "BUY", 0)
        assert (await verify(second.trail, session_id)).intact

    async def test_between_debate_and_judge_only_asks_the_judge(self, database: Database, hours) -> None:
        stop = Stops()
        session_id = await Process(database, hours, judge=StoppingJudge(stop)).die_at(stop)
        later(hours)
        second = Process(database, hours)
        result = await second.sessions.resume(session_id, WORKSPACE)
        assert (second.research.asked, second.debate.calls, len(second.judge.calls)) == (set(), [], 1)
        assert result.verdict_status == "judged"

    async def test_with_everything_on_record_is_only_closed(self, database: Database, hours) -> None:
        """It died between the last node and the end of the session."""
        stop, process = Stops(), Process(database, hours)

        class NoEnd(SqlResearchSessionRepository):
            async def update_session(self, session: ResearchSession, **_: Any) -> None:
                await stop()

        process.sessions._journal.repository = NoEnd(process.trail)
        session_id = await process.die_at(stop)
        later(hours)
        second = Process(database, hours)
        result = await second.sessions.resume(session_id, WORKSPACE)
        assert (second.research.calls, second.debate.calls, second.judge.calls) == ([], [], [])
        assert result.verdict is not None
        assert (await second.session(session_id)).status == "completed"

    async def test_keeps_what_had_failed(self, database: Database, hours) -> None:
        """A failure on record is not tried again: that is what a retry is for."""
        stop = Stops()
        answers: dict[ExpertType, Answer] = {**dict.fromkeys(ALL, FOUND), TECHNICAL: DOWN}
        session_id = await Process(database, hours, FakeResearch(answers), StoppingDebate(stop)).die_at(stop)
        later(hours)
        second = Process(database, hours)
        result = await second.sessions.resume(session_id, WORKSPACE)
        assert (result.overall_status, second.research.asked) == ("partial", set())
        (failed,) = [item for item in result.expert_results.values() if item.status == "failed"]
        assert (failed.expert_type, failed.error) == (TECHNICAL, "the provider is down")

    async def test_keeps_an_abstention(self, database: Database, hours) -> None:
        stop, process = Stops(), Process(database, hours, judge=FakeJudge(Abstention("too few experts")))

        class NoEnd(SqlResearchSessionRepository):
            async def update_session(self, session: ResearchSession, **_: Any) -> None:
                await stop()

        process.sessions._journal.repository = NoEnd(process.trail)
        session_id = await process.die_at(stop)
        later(hours)
        result = await Process(database, hours).sessions.resume(session_id, WORKSPACE)
        assert (result.verdict_status, result.reason, result.verdict) == (
            "abstained",
            "too few experts",
            None,
        )

    async def test_is_asked_what_it_was_asked(self, database: Database, hours) -> None:
        stop = Stops()
        options = {"financial_auditor": {"limit": 3}}
        asked = {"options": options, "skip_debate": True, "max_cost": 2.5, "as_of": "2026-05-29"}
        first = Process(database, hours, StoppingResearch({FINANCIAL: stop}, {}))
        session_id = await first.die_at(stop, FINANCIAL, MACRO, **asked)
        later(hours)
        seen: list[Any] = []

        class Looking(FakeResearch):
            async def run_expert(self, *arguments: Any) -> dict[str, Any]:
                context = current_execution_ctx.get()
                assert context is not None
                seen.append((context.as_of, context.max_cost, context.locale, context.answers))
                return await super().run_expert(*arguments)

        second = Process(database, hours, Looking())
        result = await second.sessions.resume(session_id, WORKSPACE)
        assert second.research.calls == [(FINANCIAL, "900001.DEMO", {"limit": 3})]
        assert seen == [((await second.session(session_id)).as_of, 2.5, "en-US", "resume")]
        assert (result.verdict_status, second.debate.calls) == ("skipped", [])

    async def test_while_it_retried_another_still_reuses_what_that_had(
        self, database: Database, hours
    ) -> None:
        answers: dict[ExpertType, Answer] = {TECHNICAL: FOUND, MACRO: DOWN}
        parent = await Process(database, hours, FakeResearch(answers)).ask(TECHNICAL, MACRO)
        stop = Stops()
        first = Process(database, hours, StoppingResearch({MACRO: stop}, {}))
        retrying = asyncio.create_task(first.service.retry(UUID(parent.session_id)))
        await asyncio.wait_for(stop.reached.wait(), PATIENCE)
        (run,) = first.sessions._runs.values()
        run.stop("interrupted")
        with pytest.raises(SessionInterrupted):
            await retrying
        later(hours)
        second = Process(database, hours)
        result = await second.sessions.resume(run.session_id, WORKSPACE)
        assert second.research.asked == {MACRO}
        assert [item.expert_type for item in result.expert_results.values()] == [TECHNICAL, MACRO]
        assert (result.retry_count, result.overall_status) == (1, "completed")

    async def test_can_die_again_and_again(self, database: Database, hours) -> None:
        stop = Stops()
        research = StoppingResearch({CATALYST: stop}, dict.fromkeys(ALL, FOUND))
        session_id = await Process(database, hours, research).die_at(stop)
        for stopping in ({"debate": StoppingDebate}, {"judge": StoppingJudge}):
            later(hours)
            stop = Stops()
            again = Process(database, hours, **{name: kind(stop) for name, kind in stopping.items()})
            await again.die_again(stop, session_id)
        later(hours)
        last = Process(database, hours)
        result = await last.sessions.resume(session_id, WORKSPACE)
        assert (result.verdict_status, last.research.calls, last.debate.calls) == ("judged", [], [])
        assert (await verify(last.trail, session_id)).intact

    async def test_and_in_which_nobody_finds_anything_is_failed(self, database: Database, hours) -> None:
        stop = Stops()
        session_id = await Process(database, hours, StoppingResearch({MACRO: stop}, {})).die_at(stop, MACRO)
        later(hours)
        second = Process(database, hours, FakeResearch({MACRO: DOWN}))
        with pytest.raises(AllExpertsFailed):
            await second.sessions.resume(session_id, WORKSPACE)
        assert (await second.session(session_id)).status == "failed"


class TestOwnersThatDied:
    """A session may be the cause when process after process dies at work on it."""

    async def test_at_work_one_after_the_other_are_too_many_in_the_end(
        self, database: Database, hours
    ) -> None:
        stop = Stops()
        session_id = await Process(database, hours, StoppingResearch({MACRO: stop}, {})).die_at(stop, MACRO)
        for _ in range(MOST_OWNERS - 1):
            later(hours)
            stop = Stops()
            again = Process(database, hours, StoppingResearch({MACRO: stop}, {}))
            await again.die_again(stop, session_id)
        later(hours)
        last = Process(database, hours)
        with pytest.raises(SessionGivenUp):
            await last.sessions.resume(session_id, WORKSPACE)
        session = await last.session(session_id)
        assert (session.status, session.verdict_status, last.research.calls) == ("failed", "failed", [])
        assert str(MOST_OWNERS) in (session.reason or "")

    async def test_before_they_had_set_to_work_do_not_count(self, database: Database, hours) -> None:
        process = Process(database, hours)
        waiting = a_session(status="queued", workspace_id=WORKSPACE)
        await process.repository.save_session(waiting)
        for _ in range(3 * MOST_OWNERS):
            assert await process.sessions._journal.held.take(waiting.id)
            later(hours)
        assert (await process.sessions.resume(waiting.id, WORKSPACE)).overall_status == "completed"

    async def test_after_a_node_had_ended_do_not_count(self, database: Database, hours) -> None:
        stop = Stops()
        session_id = await Process(
            database, hours, StoppingResearch({TECHNICAL: stop, MACRO: stop}, {})
        ).die_at(stop, TECHNICAL, MACRO)
        await died_of_it(database, session_id, MOST_OWNERS - 1)
        later(hours)
        stop = Stops()
        again = Process(database, hours, StoppingResearch({MACRO: stop}, {}))
        await again.die_again(stop, session_id)
        assert (await again.session(session_id)).begun == 0
        assert set(await again.nodes(session_id)) == {TECHNICAL}

    async def test_do_not_matter_where_all_that_is_left_is_to_close_it(
        self, database: Database, hours
    ) -> None:
        """All its nodes are equal to those of a session that nobody disturbed: so is its end."""
        undisturbed = await Process(database, hours).ask()
        stop, process = Stops(), Process(database, hours)

        class NoEnd(SqlResearchSessionRepository):
            async def update_session(self, session: ResearchSession, **_: Any) -> None:
                await stop()

        process.sessions._journal.repository = NoEnd(process.trail)
        session_id = await process.die_at(stop)
        await died_of_it(database, session_id, 3 * MOST_OWNERS)
        later(hours)
        result = await Process(database, hours).sessions.resume(session_id, WORKSPACE)
        ends = [
            (end.overall_status, end.verdict_status, end.reason, end.verdict) for end in (result, undisturbed)
        ]
        assert ends[0] == ends[1]

    async def test_are_not_those_that_closed(self, database: Database, hours) -> None:
        stop = Stops()
        process = Process(database, hours, StoppingResearch({MACRO: stop}, {}))
        running = asyncio.create_task(process.ask(MACRO))
        await asyncio.wait_for(stop.reached.wait(), PATIENCE)
        ((session_id, _),) = process.sessions._runs.items()
        await process.trail.finish()
        await died_of_it(database, session_id, MOST_OWNERS)
        await process.sessions.close()
        with pytest.raises(SessionInterrupted):
            await running
        assert (await process.session(session_id)).begun == 0

    async def test_of_several_sessions_are_told_apart(self, database: Database, hours) -> None:
        """Of those that might be the cause one works at a time, until it gets somewhere."""
        stop, process = Stops(), Process(database, hours)
        suspects = [a_session(status="queued", workspace_id=WORKSPACE) for _ in range(3)]
        fresh = a_session(status="queued", workspace_id=WORKSPACE)
        for session in (*suspects, fresh):
            await process.repository.save_session(session)
        for session in suspects:
            await died_of_it(database, session.id, SUSPICIOUS, lease_token=SUSPICIOUS)
        doomed = Process(database, hours, StoppingResearch({TECHNICAL: stop}, {}))
        resuming = [
            asyncio.create_task(doomed.sessions.resume(session.id, WORKSPACE))
            for session in (*suspects, fresh)
        ]
        await until(lambda: len(doomed.research.started) == 2 and len(doomed.sessions._runs) == len(resuming))
        await settle()
        counts = [(await doomed.session(session.id)).begun for session in suspects]
        assert sorted(counts) == [SUSPICIOUS, SUSPICIOUS, SUSPICIOUS + 1], "the others wait, and lose nothing"
        assert (await doomed.session(fresh.id)).begun == 1, "nobody else waits with them"
        for run in list(doomed.sessions._runs.values()):
            run.stop("interrupted")
        await asyncio.wait(resuming)
        later(hours)
        ended = [process.sessions.resume(session.id, WORKSPACE) for session in (*suspects, fresh)]
        assert {result.verdict_status for result in await asyncio.gather(*ended)} == {"judged"}


async def died_of_it(database: Database, session_id: UUID, times: int, **more: int) -> None:
    async with database.session() as db, db.begin():
        mine = update(ResearchSessionRow).where(ResearchSessionRow.id == session_id)
        await db.execute(mine.values(begun=times, **more))


class TestResuming:
    async def test_is_refused_while_somebody_may_still_run_the_session(
        self, database: Database, hours
    ) -> None:
        stop = Stops()
        session_id = await Process(database, hours, StoppingResearch({MACRO: stop}, {})).die_at(stop, MACRO)
        second = Process(database, hours)
        with pytest.raises(SessionHeld):
            await second.sessions.resume(session_id, WORKSPACE)
        assert await second.sessions.find_left_behind() == []
        later(hours)
        assert await second.sessions.find_left_behind() == [session_id]

    async def test_is_refused_for_what_has_ended_or_is_not_here(self, database: Database, hours) -> None:
        process = Process(database, hours)
        done = UUID((await process.ask(MACRO)).session_id)
        with pytest.raises(SessionEnded):
            await process.sessions.resume(done, WORKSPACE)
        with pytest.raises(SessionNotFound):
            await process.sessions.resume(done, "another")

    async def test_shows_whoever_watches_all_nodes(self, database: Database, hours) -> None:
        stop = Stops()
        research = StoppingResearch({MACRO: stop}, dict.fromkeys(ALL, FOUND))
        session_id = await Process(database, hours, research).die_at(stop)
        later(hours)
        seen: list[SessionEvent] = []
        await Process(database, hours).sessions.resume(session_id, WORKSPACE, watch=seen.append)
        ended = [event.data["node"] for event in seen if event.type == "node_finished"]
        assert sorted(ended) == sorted([*ALL, "debate", "judge"])
        assert [event.seq for event in seen] == list(range(1, len(seen) + 1))

    async def test_happens_by_itself_where_a_desk_looks_after_it(self, database: Database, hours) -> None:
        stop = Stops()
        research = StoppingResearch({MACRO: stop}, dict.fromkeys(ALL, FOUND))
        session_id = await Process(database, hours, research).die_at(stop)
        later(hours)
        second = Process(database, hours)
        await second.sessions.look_after()
        await asyncio.wait(second.queue.working)
        outcome = await second.sessions.outcome(session_id, WORKSPACE)
        assert (outcome.verdict_status, second.research.asked) == ("judged", {MACRO})

    async def test_waits_a_lease_for_owners_that_could_not_renew_while_the_store_was_gone(
        self, database: Database, hours, monkeypatch
    ) -> None:
        stop = Stops()
        research = StoppingResearch({MACRO: stop}, dict.fromkeys(ALL, FOUND))
        session_id = await Process(database, hours, research).die_at(stop)
        later(hours)
        second = Process(database, hours)

        async def fail(_taken: object) -> list[UUID]:
            raise Unavailable("gone")

        with monkeypatch.context() as gone:
            gone.setattr(second.sessions, "find_left_behind", fail)
            await second.sessions.look_after()
        await second.sessions.look_after()
        assert not second.queue.working
        later(hours)
        await second.sessions.look_after()
        await asyncio.wait(second.queue.working)
        assert (await second.sessions.outcome(session_id, WORKSPACE)).verdict_status == "judged"

    async def test_of_one_that_should_be_cancelled_cancels_it(self, database: Database, hours) -> None:
        stop = Stops()
        session_id = await Process(database, hours, StoppingResearch({MACRO: stop}, {})).die_at(stop, MACRO)
        second = Process(database, hours)
        await second.sessions.cancel(session_id, WORKSPACE)
        assert (await second.session(session_id)).status == "running", "its owner may still be there"
        later(hours)
        with pytest.raises(SessionCancelled):
            await second.sessions.resume(session_id, WORKSPACE)
        assert ((await second.session(session_id)).status, second.research.calls) == ("cancelled", [])


async def test_an_owner_that_was_away_for_too_long_stops_and_says_so(database: Database, hours) -> None:
    stop = Stops()
    proceed = asyncio.Event()

    class Pausing(FakeResearch):
        async def run_expert(self, *arguments: Any) -> dict[str, Any]:
            stop.reached.set()
            await proceed.wait()
            return await super().run_expert(*arguments)

    away = Process(database, hours, Pausing(dict.fromkeys(ALL, FOUND)))
    running = asyncio.create_task(away.ask(MACRO))
    await asyncio.wait_for(stop.reached.wait(), PATIENCE)
    later(hours)
    other = Process(database, hours)
    while not (found := await other.sessions.find_left_behind()):
        await asyncio.sleep(0.01)
    (session_id,) = found
    finished = await other.sessions.resume(session_id, WORKSPACE)
    proceed.set()
    with pytest.raises(SessionTakenOver):
        await running
    assert (away.debate.calls, away.judge.calls) == ([], [])
    nodes = await other.nodes(session_id)
    assert set(nodes) == {MACRO, "debate", "judge"}
    assert finished.verdict_status == "judged"
    assert (await verify(other.trail, session_id)).intact


async def test_what_a_closing_desk_interrupts_can_be_resumed_at_once(database: Database, hours) -> None:
    stop = Stops()
    first = Process(database, hours, StoppingResearch({MACRO: stop}, dict.fromkeys(ALL, FOUND)))
    running = asyncio.create_task(first.ask())
    await asyncio.wait_for(stop.reached.wait(), PATIENCE)
    await first.sessions.close()
    with pytest.raises(SessionInterrupted):
        await running
    second = Process(database, hours)
    (session,) = await second.sessions.find_interrupted(WORKSPACE)
    result = await second.sessions.resume(session.id, WORKSPACE)
    assert (result.verdict_status, second.research.asked) == ("judged", {MACRO})


async def test_the_story_of_a_resumed_session_is_told_once(database: Database, hours) -> None:
    stop = Stops()
    research = StoppingResearch({MACRO: stop}, dict.fromkeys(ALL, FOUND))
    session_id = await Process(database, hours, research).die_at(stop)
    later(hours)
    second = Process(database, hours)
    await second.sessions.resume(session_id, WORKSPACE)
    told = [event async for event in SessionHistory(second.repository).events(session_id, WORKSPACE)]
    assert [event.seq for event in told] == list(range(1, len(told) + 1))
    ended = [event.data["node"] for event in told if event.type == "node_finished"]
    assert sorted(ended) == sorted([*ALL, "debate", "judge"])
    assert [event.data["resumed"] for event in told if event.type == "session"] == [False, True]
    started = [event.data["node"] for event in told if event.type == "node_started"]
    assert started.count(MACRO) == 2
    assert told[-1].type == "done"

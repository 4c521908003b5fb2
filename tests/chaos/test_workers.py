"""Workers at one PostgreSQL, killed and stopped again and again: every session ends once, as if nobody had."""

import asyncio
import os
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select

from moot.desk import Moot
from moot.modules.coordinator.infrastructure.tables import ResearchSessionRow
from moot.modules.llm_platform.infrastructure.tables import LLMCallLog
from moot.shared.infrastructure.settings import Settings
from tests.chaos.crew import Crew, TakeOvers, at_work, count_going_on, query
from tests.chaos.desks import CALLS, NODES, QUESTION, careful_after, settings_of
from tests.chaos.outages import Outages
from tests.chaos.results import essence
from tests.entry.forked import Forge
from tests.fakes.clock import PATIENCE, until
from tests.fakes.llm_server import LLMServer

SESSIONS = int(os.environ.get("MOOT_TEST_SESSIONS", "6"))
"""How many four workers run while they are killed; `make chaos` wants two thousand, and takes its time."""
MANY = SESSIONS >= 100
WORKERS, A_LIFE, MOST_DEATHS, OUTAGES = (4, (2, 5), 10**6, 2) if MANY else (2, (0, 1.5), 2, 1)
IN_TIME = 120 * PATIENCE if MANY else 6 * PATIENCE


@pytest.fixture
async def settings(home: Path, outages: Outages, llm_server: LLMServer) -> AsyncIterator[Settings]:
    llm_server.default = careful_after(0.1)
    url = await outages.create()
    seconds = {} if MANY else {"lease_seconds": 2}
    yield settings_of(home, llm_server, url, worker_sessions=4, **seconds)
    await outages.drop(url)


async def have_ended(desk: Moot, sessions: Sequence[UUID]) -> None:
    for session_id in sessions:
        while not (await desk.session(session_id)).ended:
            await asyncio.sleep(0.1)


async def are_whole(desk: Moot, sessions: Sequence[UUID], undisturbed: Any) -> None:
    """Nothing is missing, and nothing is there twice."""
    found = [
        (session_id, wrong) for session_id in sessions if (wrong := await ails(desk, session_id, undisturbed))
    ]
    assert found == []


async def ails(desk: Moot, session_id: UUID, undisturbed: Any) -> list[Any]:
    """What tells a session from one that nobody disturbed."""
    session, result = await desk.session(session_id), await desk.result(session_id)
    now, then = essence(result), essence(undisturbed)
    wrong: list[Any] = [node.error_message for node in session.nodes if node.error_message]
    wrong += [(name, now[name], then[name]) for name in then if now[name] != then[name]]
    if (session.status, session.verdict_status) != ("completed", "judged"):
        wrong.append((session.status, session.verdict_status, session.reason))
    if (nodes := Counter(node.node_type for node in session.nodes)) != Counter(NODES):
        wrong.append(nodes)
    if session.audit_gaps:
        wrong.append(f"{session.audit_gaps} gaps")
    if not (verified := await desk.verify(session_id)).intact:
        wrong.append(verified.explanation)
    return wrong


async def disturb(crew: Crew, desk: Moot, outages: Outages, takeovers: TakeOvers) -> int:
    """Kill a worker every now and then until all have ended, and take the database away in between; how many died."""
    chance = random.Random(SESSIONS)
    deaths, left, gone = 0, SESSIONS, 0
    while left:
        if deaths < MOST_DEATHS:
            await asyncio.sleep(chance.uniform(*A_LIFE))
            await takeovers.note_death(await crew.kill(chance.randrange(len(crew.alive))))
            await crew.hire()
            deaths += 1
        while takeovers.pending:
            await asyncio.sleep(0.1)
            await takeovers.look()
        left = await count_going_on(desk)
        if gone < OUTAGES and left * (OUTAGES + 1) <= SESSIONS * (OUTAGES - gone):
            gone += 1
            await outages.stop()
            await outages.start()
        await asyncio.sleep(0.1)
    assert gone == OUTAGES
    return deaths


async def test_sessions_of_workers_that_are_killed_end_once_and_like_any_other(
    forge: Forge,
    settings: Settings,
    llm_server: LLMServer,
    outages: Outages,
    undisturbed: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = len(llm_server.requests)
    async with at_work(forge, settings, WORKERS, IN_TIME) as (crew, desk):
        started = [(await desk.start(**QUESTION)).id for _ in range(SESSIONS)]
        deaths = await disturb(crew, desk, outages, takeovers := TakeOvers(desk))
        again = len(llm_server.requests) - asked - CALLS * SESSIONS
        [(lost,)] = await query(desk, select(func.count()).where(LLMCallLog.status == "unknown"))
        took = sorted(takeovers.lasted) or [0.0]
        with capsys.disabled():
            sys.stdout.write(
                f"\n{SESSIONS} sessions, {deaths} deaths, {OUTAGES} outages: {again} calls made again of {lost} in "
                f"flight; {len(takeovers.lasted)} taken over within "
                f"{took[len(took) // 2]:.1f} s (median), {took[-1]:.1f} s at most\n"
            )
        assert 0 <= again <= lost
        await are_whole(desk, started, undisturbed)


async def test_a_worker_that_was_stopped_past_its_lease_writes_nothing_late(
    forge: Forge, settings: Settings, llm_server: LLMServer, undisturbed: Any
) -> None:
    asked = len(llm_server.requests)
    async with at_work(forge, settings, 1, IN_TIME) as (crew, desk):
        session_id = (await desk.start(**QUESTION)).id
        await until(lambda: len(llm_server.requests) > asked)
        (first,) = crew.alive
        os.kill(first, SIGSTOP)
        try:
            await crew.hire()
            await have_ended(desk, [session_id])
        finally:
            os.kill(first, SIGCONT)
        await are_whole(desk, [session_id], undisturbed)


OFF = """
import time
from datetime import timedelta
from moot.shared.domain.clock import SystemClock
now, seconds = SystemClock.now, time.time
SystemClock.now = lambda clock: now(clock) + timedelta(hours={hours})
time.time = lambda: seconds() + {hours} * 3600
"""


async def test_workers_whose_clocks_are_off_by_an_hour_keep_their_leases_and_the_order(
    forge: Forge, settings: Settings, undisturbed: Any
) -> None:
    """Leases go by the clock of the database, and so does the line."""
    settings = settings.model_copy(update={"worker_sessions": 1})
    row = ResearchSessionRow
    lasts = select(row.lease_expires_at, func.clock_timestamp()).where(row.status == "running")
    async with at_work(forge, settings, 0, IN_TIME) as (crew, desk):
        started = [(await desk.start(**QUESTION)).id for _ in range(4)]
        await crew.hire(OFF.format(hours=1))
        await crew.hire(OFF.format(hours=-1))
        begun: list[UUID] = []
        while await count_going_on(desk):
            for until_then, now in await query(desk, lasts):
                left = (until_then - now).total_seconds()
                assert left <= settings.lease_seconds, "nobody holds a session for an hour"
            waiting = {found for (found,) in await query(desk, select(row.id).where(row.status == "queued"))}
            begun += [one for one in started if one not in waiting and one not in begun]
            earlier = started[: started.index(begun[-1])] if begun else []
            taken_too = 1  # by the other worker, which has not said so yet
            assert len(waiting.intersection(earlier)) <= taken_too, "first come, first served"
            await asyncio.sleep(0.05)
        await are_whole(desk, started, undisturbed)
        tokens = await query(desk, select(row.lease_token))
        assert [token for (token,) in tokens] == [1] * 4, "none was taken from its worker"


DYING = {
    "as it takes the session": "Sessions.work_on = lambda *_: die()",
    "before it stores whose it is": "SqlResearchSessionRepository.acquire = lambda *_: die()",
    "before it reads the record": "SqlResearchSessionRepository._read = lambda *_: die()",
}
IMPORTS = """
from moot.modules.coordinator.application.sessions import Sessions
from moot.modules.coordinator.infrastructure.session_repository import SESSION_END, SqlResearchSessionRepository
from tests.chaos.crash_points import CrashPoint, die, die_at
"""


@pytest.mark.parametrize("moment", DYING)
async def test_a_worker_that_dies_before_the_first_step_leaves_the_session_to_the_next(
    forge: Forge, settings: Settings, llm_server: LLMServer, undisturbed: Any, moment: str
) -> None:
    asked = len(llm_server.requests)
    async with at_work(forge, settings, 0, IN_TIME) as (crew, desk):
        session_id = (await desk.start(**QUESTION)).id
        await crew.has_died(await crew.hire(IMPORTS + DYING[moment]))
        assert (await desk.session(session_id)).status == "queued"
        await crew.hire()
        await have_ended(desk, [session_id])
        await are_whole(desk, [session_id], undisturbed)
        assert len(llm_server.requests) - asked == CALLS


@pytest.mark.parametrize("when", ["before", "inside", "after"])
async def test_a_worker_that_dies_while_it_cancels_leaves_the_session_cancelled(
    forge: Forge, settings: Settings, llm_server: LLMServer, when: str
) -> None:
    llm_server.default = careful_after(PATIENCE)
    asked = len(llm_server.requests)
    async with at_work(forge, settings, 0, IN_TIME) as (crew, desk):
        session_id = (await desk.start(**QUESTION)).id
        doomed = await crew.hire(f"{IMPORTS}die_at(CrashPoint({when!r}, SESSION_END))")
        await until(lambda: len(llm_server.requests) == asked + 5)
        await desk.cancel(session_id)
        await crew.has_died(doomed)
        await crew.hire()
        await have_ended(desk, [session_id])
        session = await desk.session(session_id)
        assert (session.status, session.nodes) == ("cancelled", [])
        assert len(llm_server.requests) == asked + 5, "nothing was asked for once more"
        assert (await desk.verify(session_id)).intact


async def test_what_somebody_asked_to_cancel_before_they_died_is_never_begun(
    forge: Forge, settings: Settings, llm_server: LLMServer
) -> None:
    asked = len(llm_server.requests)
    async with at_work(forge, settings, 0, IN_TIME) as (crew, desk):
        session_id = (await desk.start(**QUESTION)).id
        await desk.coordinator._repository.request_cancel(session_id)
        await crew.hire()
        await have_ended(desk, [session_id])
        assert (await desk.session(session_id)).status == "cancelled"
        assert len(llm_server.requests) == asked

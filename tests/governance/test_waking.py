"""A session that stops for a person is woken once, whoever comes when: each test forces one order of events."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from moot.modules.coordinator.domain.exceptions import SessionHeld, SessionWaiting
from moot.modules.coordinator.domain.model.session import SessionFilter
from moot.shared.domain.errors import Unavailable
from moot.shared.infrastructure.audit_verification import verify
from moot.shared.infrastructure.database import Database
from tests.coordinator.test_resume import closed_in_the_end, hours  # noqa: F401
from tests.fakes.clock import PATIENCE, settle
from tests.governance import test_coordinator_integration as rules
from tests.governance.test_coordinator_integration import WORKSPACE, Desk

Step = Callable[[], Awaitable[None]]


def a_desk(database: Database, hours: Any) -> Desk:  # noqa: F811
    return Desk(database, hours, rules.TestAPersonIsAsked.asks)


def force(who: object, name: str, *, before: Step | None = None, after: Step | None = None) -> None:
    """Let something happen just before or after somebody does `name`."""
    real = getattr(who, name)

    async def forced(*arguments: Any) -> Any:
        if before:
            await before()
        done = await real(*arguments)
        if after:
            await after()
        return done

    setattr(who, name, forced)


async def ask(desk: Desk) -> UUID:
    with pytest.raises(SessionWaiting) as stopped:
        await desk.ask()
    return UUID(stopped.value.details["session_id"])


async def approve(desk: Desk) -> None:
    (open_,) = (await desk.governance.escalations.list_waiting(WORKSPACE)).items
    await desk.governance.escalations.approve(open_.id, WORKSPACE, by="Li", reason="small fund")


async def the_session(desk: Desk) -> UUID:
    (session,) = (await desk.repository.list_sessions(SessionFilter(workspace_id=WORKSPACE))).items
    return session.id


async def rest(desk: Desk) -> None:
    """Until nothing runs there that nobody waits for."""
    await settle()
    while going_on := desk.queue.working:
        await asyncio.wait(going_on, timeout=PATIENCE)


@pytest.mark.parametrize("moment", ["pause", "wake"])
async def test_a_heartbeat_that_comes_late_does_not_hold_what_was_let_go(database: Database, hours, moment):  # noqa: F811
    desk = a_desk(database, hours)
    held = desk.sessions._journal.held

    async def beat() -> None:
        """One now, and one with what was held when it set out."""
        await held._renew()
        lease = held.first()
        await desk.repository.renew(lease.owner, [await the_session(desk)], lease.expires_at)

    force(desk.repository, moment, after=beat)
    session_id = await ask(desk)
    await approve(desk)
    woken = desk.sessions._runs[session_id]
    assert (await woken.result()).verdict_status == "judged"
    assert (await verify(desk.trail, session_id)).intact


async def test_an_answer_before_the_session_has_stopped_for_it_is_heard(database: Database, hours):  # noqa: F811
    desk = a_desk(database, hours)
    force(desk.repository, "pause", before=lambda: approve(desk))
    session_id = await ask(desk)
    await rest(desk)
    assert (await desk.session(session_id)).verdict_status == "judged"


async def test_and_one_while_its_run_has_still_to_end(database: Database, hours):  # noqa: F811
    desk, woken = a_desk(database, hours), asyncio.Event()

    async def note() -> None:
        woken.set()

    async def answer() -> None:
        answering.append(asyncio.create_task(approve(desk)))
        await asyncio.wait_for(woken.wait(), PATIENCE)

    answering: list[asyncio.Task[None]] = []
    force(desk.repository, "wake", after=note)
    force(desk.repository, "pause", after=answer)
    session_id = await ask(desk)
    await asyncio.gather(*answering)
    await rest(desk)
    assert (await desk.session(session_id)).verdict_status == "judged"


@pytest.mark.parametrize("come_back", ["outcome", "resume"])
async def test_an_answer_nobody_could_be_told_of_is_found_by_whoever_comes_back(database, hours, come_back):  # noqa: F811
    desk = a_desk(database, hours)
    session_id = await ask(desk)
    wake, desk.repository.wake = desk.repository.wake, fail
    await approve(desk)
    desk.repository.wake = wake
    result = await getattr(desk.sessions, come_back)(session_id, WORKSPACE)
    assert result.verdict_status == "judged"


async def test_an_answer_while_somebody_looks_what_is_waited_for_is_no_reason_to_refuse(database, hours):  # noqa: F811
    desk = a_desk(database, hours)
    session_id = await ask(desk)
    force(desk.sessions._policy, "waits_for", before=lambda: approve(desk))
    assert (await desk.sessions.outcome(session_id, WORKSPACE)).verdict_status == "judged"


async def fail(*_: Any) -> bool:
    raise Unavailable("the database is restarted")


async def test_of_two_that_are_woken_one_goes_on_and_the_other_ends_quietly(database: Database, hours):  # noqa: F811
    """A desk that looks after what is left behind finds the session between the answer and whoever it woke."""
    asked, other = a_desk(database, hours), a_desk(database, hours)

    async def look_after() -> None:
        (found,) = await other.sessions.find_left_behind()
        await other.sessions.work_on(found)
        ended.append(await other.sessions.outcome(found, WORKSPACE))

    ended: list[Any] = []
    session_id = await ask(asked)
    force(asked.repository, "acquire", before=look_after)
    await approve(asked)
    woken = asked.sessions._runs[session_id]
    result = await asked.sessions.outcome(session_id, WORKSPACE)
    with pytest.raises(SessionHeld):
        await woken.result()
    assert [result] == ended
    assert (result.verdict_status, len(asked.judge.calls), len(other.judge.calls)) == ("judged", 1, 1)
    assert (await verify(asked.trail, session_id)).intact

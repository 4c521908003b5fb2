"""A desk takes on so much and no more."""

import asyncio
from uuid import UUID

import pytest

from moot.modules.coordinator.application import sessions
from moot.modules.coordinator.application.sessions import Sessions
from moot.modules.coordinator.domain.dtos.research_dtos import (
    ExpertResultItem,
    ResearchRequest,
    ResearchResult,
)
from moot.modules.coordinator.domain.exceptions import DeskBusy, DeskClosing
from moot.modules.coordinator.domain.model.session import Recorded
from moot.modules.coordinator.domain.ports.research_orchestration import IResearchOrchestrationPort
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.leases import Lease, Taken
from tests.coordinator.test_session_repository import a_session
from tests.fakes.clock import until
from tests.fakes.coordinator import MACRO, FakeSessions


class Doors(IResearchOrchestrationPort):
    """Runs that last until they are let go, told apart by how often they were retried."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self.sessions = Sessions(self, repository=FakeSessions(), at_once=at_once, waiting=waiting)
        self.running: list[int] = []
        self._end = {n: asyncio.Event() for n in range(20)}

    async def run(self, request: ResearchRequest) -> ResearchResult:
        self.running.append(request.retry_count)
        await self._end[request.retry_count].wait()
        item = ExpertResultItem(expert_type=MACRO, status="success", data={})
        return ResearchResult(symbol=request.symbol, overall_status="completed", expert_results=[item])

    def enter(self, n: int) -> "asyncio.Task[ResearchResult]":
        return asyncio.create_task(self.sessions.answer(question(n)))

    async def leave(self, n: int) -> None:
        self._end[n].set()
        await settled()


def question(n: int) -> ResearchRequest:
    now = SystemClock().now()
    return ResearchRequest(symbol="900001.DEMO", experts=[MACRO], as_of=now, retry_count=n)


async def settled() -> None:
    for _ in range(40):
        await asyncio.sleep(0)


async def test_so_many_run_at_once_and_the_others_wait_in_order() -> None:
    doors = Doors(2, 3)
    tasks = [doors.enter(n) for n in range(5)]
    await settled()
    assert (doors.running, doors.sessions.waiting) == ([0, 1], 3)
    await doors.leave(1)
    assert doors.running == [0, 1, 2]
    for n in (0, 2, 3, 4):
        await doors.leave(n)
    await asyncio.gather(*tasks)
    assert doors.running == [0, 1, 2, 3, 4]


async def test_what_would_wait_too_long_is_refused_until_there_is_room_again() -> None:
    doors = Doors(1, 1)
    tasks = [doors.enter(0), doors.enter(1)]
    await settled()
    with pytest.raises(DeskBusy) as refused:
        await doors.enter(2)
    assert refused.value.details["retry_after"] >= 1
    await doors.leave(0)
    tasks.append(doors.enter(3))
    for n in (1, 3):
        await settled()
        await doors.leave(n)
    await asyncio.gather(*tasks)
    assert doors.running == [0, 1, 3]


class Free(FakeSessions):
    """Whose sessions anybody may take."""

    async def acquire(self, row_id: UUID, owner: str, now, until) -> Taken:
        return Taken(Lease(owner, 2, until), False, Recorded(self.sessions[row_id], [], []))


async def test_what_was_accepted_before_is_never_refused() -> None:
    doors, store = Doors(1, 0), Free()
    doors.sessions = Sessions(doors, repository=store, at_once=1, waiting=0)
    await store.save_session(accepted := a_session(status="queued", retry_count=1, experts=[MACRO]))
    first = doors.enter(0)
    await settled()
    working = asyncio.create_task(doors.sessions.work_on(accepted.id))
    await settled()
    assert doors.running == [0]
    await doors.leave(0)
    assert doors.running == [0, 1]
    await doors.leave(1)
    await asyncio.gather(first, working)


class Gone(Free):
    """Whose store is gone for a moment."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures

    async def acquire(self, row_id: UUID, owner: str, now, until) -> Taken:
        self.failures -= 1
        if self.failures >= 0:
            raise Unavailable("connection refused")
        return await super().acquire(row_id, owner, now, until)


async def test_what_could_not_be_begun_is_begun_when_the_store_is_back(monkeypatch) -> None:
    monkeypatch.setattr(sessions, "LOOK_AGAIN", 0.001)
    doors, store = Doors(1, 0), Gone(failures=3)
    doors.sessions = Sessions(doors, repository=store, at_once=1, waiting=0)
    await store.save_session(accepted := a_session(status="queued", retry_count=1, experts=[MACRO]))
    working = asyncio.create_task(doors.sessions.work_on(accepted.id))
    await until(lambda: doors.running == [1])
    await doors.leave(1)
    await working
    assert store.sessions[accepted.id].ended


async def test_whoever_gives_up_waiting_leaves_no_trace() -> None:
    doors = Doors(1, 1)
    first, waiting = doors.enter(0), doors.enter(1)
    await settled()
    waiting.cancel()
    await settled()
    third = doors.enter(2)
    await settled()
    await doors.leave(0)
    await doors.leave(2)
    await asyncio.gather(first, third)
    assert doors.running == [0, 2]


async def test_nobody_gets_in_once_the_doors_are_closed() -> None:
    doors = Doors(1, 1)
    doors.sessions.close_doors()
    with pytest.raises(DeskClosing):
        await doors.enter(0)

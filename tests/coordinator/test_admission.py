"""A desk takes on so much and no more."""

import asyncio

import pytest

from moot.modules.coordinator.application.admission import Admission
from moot.modules.coordinator.domain.exceptions import DeskBusy, DeskClosing


class Doors:
    """Runs that last until they are let go."""

    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self.running: list[int] = []
        self._end = {n: asyncio.Event() for n in range(20)}

    def enter(self, n: int, *, accepted: bool = False) -> "asyncio.Task[None]":
        async def run() -> None:
            async with self.admission.admitted(accepted=accepted):
                self.running.append(n)
                await self._end[n].wait()

        return asyncio.create_task(run())

    async def leave(self, n: int) -> None:
        self._end[n].set()
        await settled()


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_so_many_run_at_once_and_the_others_wait_in_order() -> None:
    doors = Doors(Admission(2, 3))
    tasks = [doors.enter(n) for n in range(5)]
    await settled()
    assert doors.running == [0, 1]
    await doors.leave(1)
    assert doors.running == [0, 1, 2]
    for n in (0, 2, 3, 4):
        await doors.leave(n)
    await asyncio.gather(*tasks)
    assert doors.running == [0, 1, 2, 3, 4]


async def test_what_would_wait_too_long_is_refused_until_there_is_room_again() -> None:
    doors = Doors(Admission(1, 1))
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


async def test_what_was_accepted_before_is_never_refused() -> None:
    doors = Doors(Admission(1, 0))
    tasks = [doors.enter(0)]
    await settled()
    tasks.append(doors.enter(1, accepted=True))
    await settled()
    await doors.leave(0)
    await doors.leave(1)
    await asyncio.gather(*tasks)
    assert doors.running == [0, 1]


async def test_whoever_gives_up_waiting_leaves_no_trace() -> None:
    doors = Doors(Admission(1, 1))
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
    admission = Admission()
    admission.closed = True
    with pytest.raises(DeskClosing):
        admission.require_room()

"""A process is stopped in the middle of a model call, for longer than its lease, and wakes up again."""

import asyncio
from signal import SIGCONT
from typing import Any

import pytest

from moot.modules.coordinator.domain.exceptions import SessionHeld
from moot.shared.infrastructure.tables import Base
from tests.chaos.desks import here_and_there
from tests.chaos.results import essence
from tests.chaos.scene import Scene, expire_leases

MOMENTS = {"the experts": 5, "bull and bear": 7, "the verdict": 9}
"""Who waits for an answer when the process is stopped, and how many requests there are by then."""


async def everything(scene: Scene) -> dict[str, list[Any]]:
    """All rows of all tables."""
    async with scene.database.session() as db:
        rows = {table.name: list(await db.execute(table.select())) for table in Base.metadata.sorted_tables}
    return {name: sorted(map(repr, found)) for name, found in rows.items()}


@pytest.mark.parametrize(("waiting", "database"), here_and_there(MOMENTS), indirect=["database"])
async def test_an_owner_that_lost_its_session_while_it_was_stopped_writes_nothing(
    scene, undisturbed, waiting
):
    await scene.stop_waiting(MOMENTS[waiting])
    await expire_leases(scene.database)
    left = await scene.left()
    assert essence(await scene.resume(left)) == essence(undisturbed)
    before, asked = await everything(scene), len(scene.server.requests)

    scene.nursery.signal(SIGCONT)
    said = await scene.nursery.end()
    assert said == {"raised": "SESSION_TAKEN_OVER", "status": 0}
    assert len(scene.server.requests) == asked
    assert await everything(scene) == before
    await scene.is_whole(left)


async def test_an_owner_that_nobody_replaced_while_it_was_stopped_goes_on(scene, undisturbed):
    await scene.stop_waiting(MOMENTS["the experts"])
    await expire_leases(scene.database)
    scene.nursery.signal(SIGCONT)
    assert (await scene.nursery.end())["status"] == 0
    left = await scene.left()
    async with scene.desk() as desk:
        assert essence(await desk.result(*left.sessions)) == essence(undisturbed)
    await scene.is_whole(left)


async def test_of_two_that_want_to_go_on_with_a_session_one_does(scene, undisturbed):
    await scene.start(point="after the first node's row")
    left = await scene.killed()
    async with scene.desk() as one, scene.desk() as other:
        ends = await asyncio.gather(
            *(desk.resume(*left.sessions) for desk in (one, other)), return_exceptions=True
        )
    won, refused = sorted(ends, key=lambda end: isinstance(end, SessionHeld))
    assert isinstance(refused, SessionHeld)
    assert essence(won) == essence(undisturbed)
    await scene.is_whole(left)

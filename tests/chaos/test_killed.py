"""A process is killed, as by the kernel out of memory, at every step of a session and at any moment of it."""

import asyncio
import random
from signal import SIGKILL

import pytest

from moot.main import create_app
from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from tests.chaos.crash_points import POINTS
from tests.chaos.desks import A_RUN, KILLS, QUESTION, here_and_there
from tests.chaos.results import essence
from tests.chaos.scene import Left, Scene
from tests.conftest import BACKENDS
from tests.fakes.clock import PATIENCE

NOTHING_STORED = ["before the session is stored", "while the session is stored"]
PERHAPS_STORED = ["before the first intent", "while an intent is committed"]
"""The experts set out while their session is being stored; no model is asked before that is done."""
ENDED = "after the session's end"
UNFINISHED = [point for point in POINTS if point not in [*NOTHING_STORED, *PERHAPS_STORED, ENDED]]
TWICE = [
    "before the first outcome, then after the first outcome",
    "after the first node's row, then before the first node's row",
    "after the last expert's row, then before the first node's row",
    "after the debate's row, then before the session's end",
]
ACCEPTED = "once they are accepted"


@pytest.mark.parametrize(("point", "database"), here_and_there(UNFINISHED), indirect=["database"])
async def test_a_session_goes_on_from_its_record_to_the_same_result(scene, undisturbed, point):
    await scene.start(point=point)
    left = await scene.killed()
    assert list(left.sessions.values()) == ["running"]
    assert essence(await scene.resume(left)) == essence(undisturbed)
    await scene.is_whole(left)


@pytest.mark.parametrize(("point", "database"), here_and_there(NOTHING_STORED), indirect=["database"])
async def test_a_session_that_was_never_stored_leaves_nothing_behind(scene, undisturbed, point):
    await scene.start(point=point)
    left = await scene.killed()
    assert left == ({}, {}, set(), 0)
    async with scene.desk() as desk:
        assert await desk.find_interrupted() == []
        assert essence(await desk.research(**QUESTION)) == essence(undisturbed)


@pytest.mark.parametrize(("point", "database"), here_and_there(PERHAPS_STORED), indirect=["database"])
async def test_a_session_goes_on_or_was_never_there_and_asked_no_model(scene, undisturbed, point):
    await scene.start(point=point)
    left = await scene.killed()
    if left.sessions:
        assert essence(await scene.resume(left)) == essence(undisturbed)
        await scene.is_whole(left)
    else:
        assert left == ({}, {}, set(), 0)
        async with scene.desk() as desk:
            assert essence(await desk.research(**QUESTION)) == essence(undisturbed)


async def test_a_session_that_had_ended_is_not_touched_again(scene, undisturbed):
    await scene.start(point=ENDED)
    left = await scene.killed()
    assert list(left.sessions.values()) == ["completed"]
    async with scene.desk() as desk:
        assert await desk.find_interrupted() == []
        assert essence(await desk.result(*left.sessions)) == essence(undisturbed)
    await scene.is_whole(left)


@pytest.mark.parametrize(("points", "database"), here_and_there(TWICE), indirect=["database"])
async def test_a_resume_that_is_killed_too_is_resumed(scene, undisturbed, points):
    first, second = points.split(", then ")
    await scene.start(point=first)
    left = await scene.killed()
    await scene.start(*left.sessions, point=second)
    left = await scene.killed()
    assert essence(await scene.resume(left)) == essence(undisturbed)
    await scene.is_whole(left)


@pytest.mark.parametrize(
    ("point", "database"), here_and_there([ACCEPTED, "before the first request"]), indirect=["database"]
)
async def test_sessions_that_waited_for_their_turn_are_run_too(scene, undisturbed, point):
    scene.settings = scene.settings.model_copy(update={"worker": True, "worker_sessions": 1})
    await scene.start(in_background=3, point=point if point in POINTS else "")
    if point == ACCEPTED:
        assert len((await scene.nursery.heard())["started"]) == 3
        scene.nursery.signal(SIGKILL)
    left = await scene.killed()
    assert set(left.sessions.values()) <= {"queued", "running"}
    assert "queued" in left.sessions.values()
    async with scene.desk() as desk:
        begun = {session_id for session_id, status in left.sessions.items() if status == "running"}
        assert {session.id for session in await desk.find_interrupted()} == begun
        for session_id in left.sessions:
            assert essence(await desk.resume(session_id)) == essence(undisturbed)
            assert (await desk.verify(session_id)).intact


async def test_the_next_server_goes_on_without_being_asked(scene, undisturbed):
    await scene.start(point="after the last expert's row")
    left = await scene.killed()
    scene.settings = scene.settings.model_copy(update={"worker": True})
    app = create_app(scene.desk())
    async with asyncio.timeout(PATIENCE), app.router.lifespan_context(app):
        async for _ in app.state.desk.events(*left.sessions):
            pass
        assert essence(await app.state.desk.result(*left.sessions)) == essence(undisturbed)
    await scene.is_whole(left)


@pytest.mark.parametrize(
    ("kill", "database"), [(kill, BACKENDS[kill % 2]) for kill in range(KILLS)], indirect=["database"]
)
async def test_a_session_killed_at_a_random_moment_goes_on(scene, undisturbed, kill):
    chance = random.Random(kill)
    left = await killed_at(chance.uniform(0, A_RUN), scene)
    if list(left.sessions.values()) == ["running"] and kill % 3 == 0:
        left = await killed_at(chance.uniform(0, A_RUN), scene, left)
    result = await ended(scene, left)
    assert essence(result) == essence(undisturbed)
    if left.sessions:
        await scene.is_whole(left)


async def killed_at(seconds: float, scene: Scene, before: Left | None = None) -> Left:
    await scene.start(*(before.sessions if before else ()))
    await asyncio.sleep(seconds)
    scene.nursery.signal(SIGKILL)
    return await scene.killed(surely=False)


async def ended(scene: Scene, left: Left) -> ResearchResult:
    """However far it had come."""
    if "running" in left.sessions.values():
        return await scene.resume(left)
    async with scene.desk() as desk:
        assert await desk.find_interrupted() == []
        return await (desk.result(*left.sessions) if left.sessions else desk.research(**QUESTION))

"""A desk at its limit: so many run, so many wait, the rest is told when to come back."""

import asyncio

import pytest

from moot.shared.infrastructure.settings import Settings
from tests.entry.serving import MACRO, ON_SQLITE, RESEARCH, Served, question, serving, until

SYMBOLS = [f"9000{n:02}.DEMO" for n in range(1, 7)]


@pytest.fixture
async def desk(home, database):
    limits = {"max_sessions": 2, "max_waiting": 2, "worker_sessions": 2}
    settings = Settings(home=home, database_url=database.safe_url, log_level="error", **limits)
    async with serving(settings, worker=True) as served:
        yield served


def one_expert(symbol: str, **more: str) -> dict:
    return question(symbol, experts=[MACRO], **more)


async def refused(desk: Served, body: dict) -> None:
    answer = await desk.http.post(RESEARCH, json=body)
    assert (answer.status_code, answer.json()["code"]) == (429, "DESK_BUSY")
    seconds = int(answer.headers["retry-after"])
    assert seconds >= 1
    assert str(seconds) in answer.json()["message"]


async def test_what_is_begun_waits_in_the_queue_and_is_never_refused(desk: Served, gate):
    sessions = [await desk.start(one_expert(symbol)) for symbol in SYMBOLS[:5]]
    await gate.reached(2)
    assert set(gate.symbols) == set(SYMBOLS[:2])
    states = [(await desk.detail(session))["status"] for session in sessions]
    assert states == ["running", "running", "queued", "queued", "queued"]
    assert (await desk.http.get("/readyz")).status_code == 200

    for turn in (0, 1, 2):
        await gate.let(SYMBOLS[turn])
        assert (await desk.ended(sessions[turn]))["status"] == "completed"
        await gate.reached(turn + 3)
        assert gate.symbols[turn + 2 :] == [SYMBOLS[turn + 2]], "first come, first served"
    await gate.open()
    assert [(await desk.ended(session))["status"] for session in sessions] == ["completed"] * 5


@ON_SQLITE
async def test_those_that_wait_for_an_answer_wait_in_the_same_line(desk: Served, gate):
    line, waiting = desk.desk.coordinator.sessions, []
    for asked, symbol in enumerate(SYMBOLS[:4], 1):
        waiting.append(asyncio.create_task(desk.http.post(RESEARCH, json=one_expert(symbol))))
        await gate.reached(min(asked, 2))
        await until(lambda asked=asked: line.waiting == max(0, asked - 2))
    await refused(desk, one_expert(SYMBOLS[4]))
    for turn, symbol in enumerate(SYMBOLS[:4], 1):
        await gate.let(symbol)
        await waiting[turn - 1]
        await gate.reached(min(turn + 2, 4))
    answers = await asyncio.gather(*waiting)
    assert [answer.status_code for answer in answers] == [200] * 4
    assert [answer.json()["symbol"] for answer in answers] == SYMBOLS[:4]
    assert gate.symbols == SYMBOLS[:4], "first come, first served"


async def test_a_rush_is_not_let_in_beyond_the_limit(desk: Served, gate):
    rush = [asyncio.create_task(desk.http.post(RESEARCH, json=one_expert(SYMBOLS[0]))) for _ in range(20)]
    await until(lambda: sum(task.done() for task in rush) == 16)
    await gate.open()
    answers = await asyncio.gather(*rush)
    assert sorted(answer.status_code for answer in answers) == [200] * 4 + [429] * 16
    assert await desk.count() == 4


@ON_SQLITE
async def test_one_that_gives_up_its_place_makes_room(desk: Served, gate):
    sessions = [await desk.start(one_expert(symbol)) for symbol in SYMBOLS[:4]]
    await gate.reached(2)
    assert (await desk.cancel(sessions[2])).json()["status"] == "cancelled"
    assert (await desk.cancel(sessions[0])).json()["status"] == "cancelled"
    await gate.reached(3)
    assert gate.symbols[2:] == [SYMBOLS[3]]
    await gate.open()
    assert (await desk.ended(sessions[3]))["status"] == "completed"

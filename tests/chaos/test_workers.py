"""Workers at one PostgreSQL, killed and stopped again and again: every session ends once, as if nobody had."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM
from typing import Any
from uuid import UUID

import pytest

from moot.desk import Moot
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.settings import Settings
from tests.chaos.desks import CALLS, IN_FULL, KILLS, NODES, QUESTION, careful_after, settings_of
from tests.chaos.results import essence
from tests.entry.forked import Forge
from tests.fakes.clock import PATIENCE, until
from tests.fakes.llm_server import LLMServer

WORKERS, SESSIONS, DEATHS = (4, 2000, KILLS) if IN_FULL else (2, 6, 2)
A_LIFE = 1.5
IN_TIME = 60 * PATIENCE if IN_FULL else 5 * PATIENCE


class Crew:
    """Workers, of which one may be replaced at any moment."""

    def __init__(self, forge: Forge, settings: Settings) -> None:
        self._forge, self._settings = forge, settings
        self.alive: list[int] = []

    async def hire(self) -> None:
        given = self._settings.model_dump(exclude_unset=True)
        env = {f"MOOT_{name.upper()}": str(value) for name, value in given.items()}
        log = self._settings.home / "worker.txt"
        self.alive.append(await self._forge.start("worker", log=log, **env))

    async def kill(self, place: int) -> None:
        doomed = self.alive.pop(place)
        os.kill(doomed, SIGKILL)
        assert await self._forge.ended(doomed) == -SIGKILL

    async def dismiss(self) -> None:
        for pid in self.alive:
            os.kill(pid, SIGTERM)
        assert [await self._forge.ended(pid) for pid in self.alive] == [0] * len(self.alive)


@pytest.fixture
def settings(home: Path, postgres_database: Database, llm_server: LLMServer) -> Settings:
    llm_server.default = careful_after(0.1)
    return settings_of(home, llm_server, postgres_database.safe_url, lease_seconds=2, worker_sessions=4)


@asynccontextmanager
async def at_work(forge: Forge, settings: Settings, workers: int) -> AsyncIterator[tuple[Crew, Moot]]:
    crew = Crew(forge, settings)
    async with asyncio.timeout(IN_TIME), Moot(settings) as desk:
        for _ in range(workers):
            await crew.hire()
        yield crew, desk
        await crew.dismiss()


async def have_ended(desk: Moot, sessions: Sequence[UUID]) -> None:
    for session_id in sessions:
        while not (await desk.session(session_id)).ended:
            await asyncio.sleep(0.1)


async def are_whole(desk: Moot, sessions: Sequence[UUID], undisturbed: Any) -> None:
    for session_id in sessions:
        session = await desk.session(session_id)
        assert (session.status, session.verdict_status, session.reason) == ("completed", "judged", None)
        assert Counter(node.node_type for node in session.nodes) == Counter(NODES), "no node ran twice"
        assert essence(await desk.result(session_id)) == essence(undisturbed)
        assert (await desk.verify(session_id)).intact


async def test_sessions_of_workers_that_are_killed_end_once_and_like_any_other(
    forge: Forge, settings: Settings, llm_server: LLMServer, undisturbed: Any
) -> None:
    chance = random.Random(KILLS)
    asked = len(llm_server.requests)
    async with at_work(forge, settings, WORKERS) as (crew, desk):
        started = [(await desk.start(**QUESTION)).id for _ in range(SESSIONS)]
        for _ in range(DEATHS):
            await asyncio.sleep(chance.uniform(0, A_LIFE))
            await crew.kill(chance.randrange(len(crew.alive)))
            await crew.hire()
        await have_ended(desk, started)
        await are_whole(desk, started, undisturbed)
        most_in_flight = settings.worker_sessions * 5  # each at its five experts
        again = len(llm_server.requests) - asked - CALLS * SESSIONS
        assert 0 <= again <= DEATHS * most_in_flight


async def test_a_worker_that_was_stopped_past_its_lease_writes_nothing_late(
    forge: Forge, settings: Settings, llm_server: LLMServer, undisturbed: Any
) -> None:
    asked = len(llm_server.requests)
    async with at_work(forge, settings, 1) as (crew, desk):
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

"""Two servers at one PostgreSQL, killed again and again: every session ends as if nobody had disturbed it."""

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from signal import SIGKILL
from typing import Any
from uuid import UUID

from moot.desk import Moot
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.shared.infrastructure.database import Database
from tests.chaos.desks import KILLS, NODES, QUESTION, careful_after, settings_of
from tests.chaos.results import essence
from tests.entry.forked import Forge, Server, server
from tests.fakes.clock import PATIENCE
from tests.fakes.llm_server import LLMServer

DEATHS = max(3, KILLS // 5)
SESSIONS = 2 * DEATHS
A_LIFE = 1.5
"""Seconds, or less, until one of the two is killed: time for some sessions to begin, and for none to be safe."""
RESEARCH = "/api/v1/coordinator/research"


class Pair:
    """Two servers, of which one may be replaced at any moment."""

    def __init__(self, forge: Forge, home: Path, stack: AsyncExitStack, env: dict[str, str]) -> None:
        self._forge, self._home, self._stack, self._env = forge, home, stack, env
        self.alive: list[Server] = []

    async def open(self) -> None:
        self.alive.append(await self._stack.enter_async_context(server(self._forge, self._home, **self._env)))

    async def kill(self, place: int) -> None:
        doomed = self.alive.pop(place)
        doomed.signal(SIGKILL)
        assert await doomed.exit_code() == -SIGKILL

    async def start_session(self) -> UUID:
        body = {**QUESTION, "experts": list(ExpertType), "mode": "async"}
        answer = await self.alive[0].http.post(RESEARCH, json=body)
        assert answer.status_code == 202, answer.text
        return UUID(answer.json()["session_id"])


async def test_sessions_of_servers_that_are_killed_end_like_any_other(
    forge: Forge, home: Path, postgres_database: Database, llm_server: LLMServer, undisturbed: Any
) -> None:
    llm_server.default, chance = careful_after(0.1), random.Random(KILLS)
    settings = settings_of(home, llm_server, postgres_database.safe_url, lease_seconds=1, worker=True)
    env = {
        f"MOOT_{name.upper()}": str(value) for name, value in settings.model_dump(exclude_unset=True).items()
    }
    async with AsyncExitStack() as stack, asyncio.timeout(5 * PATIENCE):
        pair = Pair(forge, home, stack, env)
        await pair.open()
        await pair.open()
        started = [await pair.start_session() for _ in range(SESSIONS)]
        for _ in range(DEATHS):
            await asyncio.sleep(chance.uniform(0, A_LIFE))
            await pair.kill(chance.randrange(2))
            await pair.open()
        async with Moot(settings) as desk:
            for session_id in started:
                while not (await desk.session(session_id)).ended:
                    await asyncio.sleep(0.1)
            await pair.kill(0)
            await pair.kill(0)
            for session_id in started:
                session = await desk.session(session_id)
                assert (session.status, session.verdict_status, session.reason) == (
                    "completed",
                    "judged",
                    None,
                )
                assert Counter(node.node_type for node in session.nodes) == Counter(NODES), (
                    "no node ran twice"
                )
                assert essence(await desk.result(session_id)) == essence(undisturbed)
                assert (await desk.verify(session_id)).intact

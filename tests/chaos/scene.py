"""A desk on its own database, workers that run sessions on it and die, and what they leave behind."""

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import make_url, select, text, update

from moot.desk import Moot
from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.infrastructure.tables import NodeExecutionRow, ResearchSessionRow
from moot.modules.llm_platform.infrastructure.tables import LLMCallLog
from moot.shared.infrastructure.database import Database
from tests.chaos.desks import CALLS, NODES, careful_after, settings_of
from tests.chaos.nursery import Nursery
from tests.fakes.clock import settle, until
from tests.fakes.llm_server import LLMServer, Say

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
UNDER_WAY = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid() AND state <> 'idle'"
)


class Left(NamedTuple):
    """What is on the record at one moment, and what the model had been asked by then."""

    sessions: dict[UUID, str]
    nodes: dict[str, UUID]
    answered: set[str]
    requests: int

    @property
    def in_flight(self) -> int:
        """Requests that the model received and whose answers are not on the record."""
        return self.requests - len(self.answered)


class Scene:
    def __init__(self, home: Path, database: Database, server: LLMServer, nursery: Nursery) -> None:
        self.database, self.server, self.nursery = database, server, nursery
        server.default = careful_after()
        self.settings = settings_of(home, server, database.safe_url)

    def desk(self) -> Moot:
        return Moot(self.settings)

    async def start(self, session_id: UUID | None = None, **order: Any) -> None:
        """Let a worker ask, or resume that session, or whatever else it is told."""
        given = self.settings.model_dump(mode="json", exclude_unset=True)
        await self.nursery.start(given, session_id=session_id and str(session_id), **order)

    async def killed(self, *, surely: bool = True) -> Left:
        """What is left of a worker that SIGKILL ended."""
        said = await self.nursery.end()
        assert said["status"] in ([-SIGKILL] if surely else [-SIGKILL, 0]), said
        await expire_leases(self.database)
        await settle()  # what it had sent is read
        await self.database_at_rest()  # and its last commit, on a server that outlives it, is over
        return await self.left()

    async def stop_waiting(self, request: int) -> None:
        """Let a worker ask, and stop it when this request waits for its answer and nothing is being stored."""
        answer, stopped = careful_after(), asyncio.Event()

        def held(body: dict[str, Any]) -> Say:
            last = len(self.server.requests) == request
            return replace(answer(body), held_until=stopped if last else None)

        self.server.default = held
        await self.start()
        await until(lambda: len(self.server.requests) == request)
        self.nursery.signal(SIGSTOP)
        while not await self._at_rest():
            self.nursery.signal(SIGCONT)
            await asyncio.sleep(0.02)
            self.nursery.signal(SIGSTOP)
        stopped.set()
        self.server.default = answer

    async def database_at_rest(self) -> None:
        while not await self._at_rest():
            await asyncio.sleep(0.02)

    async def _at_rest(self) -> bool:
        """Whether nobody is in the middle of a transaction."""
        if "sqlite" in self.database.safe_url:
            with closing(sqlite3.connect(str(make_url(self.database.safe_url).database), timeout=0)) as db:
                try:
                    db.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError:
                    return False
                return True
        async with self.database.session() as db:
            return not await db.scalar(UNDER_WAY)

    async def left(self) -> Left:
        answers = select(LLMCallLog.prompt_text).where(
            LLMCallLog.status == "success", LLMCallLog.origin == "live"
        )
        async with self.database.session() as db:
            sessions = await db.execute(select(ResearchSessionRow.id, ResearchSessionRow.status))
            nodes = await db.execute(select(NodeExecutionRow.node_type, NodeExecutionRow.id))
            answered = list(await db.scalars(answers))
            assert len(answered) == len(set(answered)), "an answer on record was asked for again"
            return Left(
                dict(map(tuple, sessions)), dict(map(tuple, nodes)), set(answered), len(self.server.requests)
            )

    async def resume(self, left: Left) -> ResearchResult:
        """Let a new desk go on with the one session that was left."""
        async with self.desk() as desk:
            interrupted = [session.id for session in await desk.find_interrupted()]
            assert interrupted == list(left.sessions)
            return await desk.resume(interrupted[0])

    async def is_whole(self, left: Left) -> None:
        """Every node ran once, those recorded did not run again, no answer on record was asked for again."""
        (session_id,) = left.sessions
        now = await self.left()
        asked_later = {seen.prompt for seen in self.server.requests[left.requests :]}
        assert asked_later & left.answered == set()
        assert now.requests - CALLS == left.in_flight, "only what was in flight is asked for twice"
        assert {**now.nodes, **left.nodes} == now.nodes, "a recorded row keeps its place"
        async with self.desk() as desk:
            stored = await desk.session(session_id)
            assert (stored.status, stored.verdict_status) == ("completed", "judged")
            assert Counter(node.node_type for node in stored.nodes) == Counter(NODES)
            verified = await desk.verify(session_id)
            assert verified.intact, verified.explanation
            calls = await desk.coordinator.session_history().calls(session_id, "default", "models")
            assert {call["status"] for call in calls} <= {"success", "unknown"}, "nothing is left open"
            await _told_whole(desk, session_id)


async def expire_leases(database: Database) -> None:
    """Nobody waits for them to run out."""
    async with database.session() as db, db.begin():
        await db.execute(update(ResearchSessionRow).values(lease_expires_at=LONG_AGO))


async def _told_whole(desk: Moot, session_id: UUID) -> None:
    """Whoever joins late hears it all, in order and to the end."""
    events = [event async for event in desk.events(session_id)]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    ends = [event.type for event in events].count("done")
    assert (ends, events[-1].type) == (1, "done")
    finished = Counter(event.data["node"] for event in events if event.type == "node_finished")
    assert finished == Counter(NODES)

"""Workers of one PostgreSQL, of which one may be replaced at any moment, and how long what a dead one held was
nobody's."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from signal import SIGKILL, SIGTERM
from typing import Any
from uuid import UUID

from sqlalchemy import func, select

from moot.desk import Moot
from moot.modules.coordinator.infrastructure.tables import ResearchSessionRow
from moot.shared.infrastructure.settings import Settings
from tests.entry.forked import Forge

ROW = ResearchSessionRow
GOES_ON = ROW.status.in_(("queued", "running"))
LIKE_ANY_OTHER = "from moot.cli.worker import worker; worker()"


class Crew:
    def __init__(self, forge: Forge, settings: Settings) -> None:
        self._forge, self._settings = forge, settings
        self.alive: list[int] = []

    async def hire(self, code: str = "") -> int:
        """A worker, in whose process `code` is run before it sets to work."""
        given = self._settings.model_dump(exclude_unset=True)
        env = {f"MOOT_{name.upper()}": str(value) for name, value in given.items()}
        log = self._settings.home / "worker.txt"
        arguments = ("-c", f"{code}\n{LIKE_ANY_OTHER}") if code else ("worker",)
        self.alive.append(await self._forge.start(*arguments, log=log, **env))
        return self.alive[-1]

    async def kill(self, place: int) -> int:
        doomed = self.alive.pop(place)
        os.kill(doomed, SIGKILL)
        assert await self._forge.ended(doomed) == -SIGKILL
        return doomed

    async def has_died(self, pid: int) -> None:
        """By its own hand."""
        self.alive.remove(pid)
        assert await self._forge.ended(pid) == -SIGKILL

    async def dismiss(self) -> None:
        """One that has just been hired, and does not listen yet, dies of it."""
        for pid in self.alive:
            os.kill(pid, SIGTERM)
        assert {await self._forge.ended(pid) for pid in self.alive} <= {0, -SIGTERM}


@asynccontextmanager
async def at_work(
    forge: Forge, settings: Settings, workers: int, within: float
) -> AsyncIterator[tuple[Crew, Moot]]:
    crew = Crew(forge, settings)
    async with asyncio.timeout(within), Moot(settings) as desk:
        for _ in range(workers):
            await crew.hire()
        yield crew, desk
        await crew.dismiss()


async def query(desk: Moot, statement: Any) -> Sequence[Any]:
    assert desk.database is not None
    async with desk.database.session() as db:
        return (await db.execute(statement)).all()


async def count_going_on(desk: Moot) -> int:
    [(left,)] = await query(desk, select(func.count()).where(GOES_ON))
    return int(left)


class TakeOvers:
    """Seconds from the death of a worker until another had its sessions, by the clock of the database."""

    def __init__(self, desk: Moot) -> None:
        self._desk = desk
        self._left: dict[UUID, tuple[int, datetime]] = {}
        self.lasted: list[float] = []

    @property
    def pending(self) -> bool:
        return bool(self._left)

    async def note_death(self, pid: int) -> None:
        held = select(ROW.id, ROW.lease_token, func.clock_timestamp())
        held = held.where(GOES_ON, ROW.lease_owner.like(f"%-{pid}-%"))
        self._left |= {row[0]: (row[1], row[2]) for row in await query(self._desk, held)}

    async def look(self) -> None:
        found = select(ROW.id, ROW.lease_token, ROW.status, func.clock_timestamp()).where(
            ROW.id.in_(self._left)
        )
        for session_id, token, status, now in await query(self._desk, found):
            before, died_at = self._left[session_id]
            if token > before:
                self.lasted.append((now - died_at).total_seconds())
            if token > before or status != "running":  # its last commit was on the way
                del self._left[session_id]

    def forget(self) -> None:
        """The database is about to be gone: what is not taken over yet will take as long as that lasts."""
        self._left.clear()

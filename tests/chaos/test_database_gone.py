"""PostgreSQL is stopped at once, as by a power cut, while sessions run, and comes back."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sized
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select

from moot.desk import Moot
from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.application.session_history import SessionDetail
from moot.modules.coordinator.domain.exceptions import SessionNotFound
from moot.shared.infrastructure.audit_trail import AuditTrail, Kind, Record
from moot.shared.infrastructure.tables import AuditEntryRow
from tests.chaos.desks import KILLS, NODES, QUESTION, careful_after, settings_of
from tests.chaos.outages import Outages
from tests.fakes.clock import PATIENCE, until

OUTAGES = max(1, KILLS // 10)
AT_ONCE = 6
ENDINGS = {"session_outcome", "model_answer"}


class Watched:
    """Notes which rows the trail said it had committed, and how many of each session it never did."""

    def __init__(self, trail: AuditTrail) -> None:
        self.acknowledged: list[tuple[UUID, str, UUID]] = []
        self.ever_refused: set[tuple[UUID, str, UUID]] = set()
        self._append, self._note = trail.append, trail.note
        trail.append = self.append  # type: ignore[method-assign]
        trail.note = self.note  # type: ignore[method-assign]

    async def append(self, kind: Kind, values: Any, **how: Any) -> None:
        link = (how["session_id"], kind.name, values["id"])
        try:
            await self._append(kind, values, **how)
        except Exception:
            self.ever_refused.add(link)
            raise
        self.acknowledged.append(link)

    def note(self, record: Record, **how: Any) -> "asyncio.Future[None]":
        written = self._note(record, **how)
        if record.kind.name != "decision" or record.session_id is None:
            return written  # an event that is lost is no gap
        link = (record.session_id, record.kind.name, record.values["id"])

        def heard(done: "asyncio.Future[None]") -> None:
            if done.exception() is None:
                self.acknowledged.append(link)
            else:
                self.ever_refused.add(link)

        written.add_done_callback(heard)
        return written

    @property
    def refused(self) -> Counter[UUID]:
        return Counter(link[0] for link in self.ever_refused - set(self.acknowledged))


@pytest.fixture
async def desk(outages, llm_server, home) -> AsyncIterator[Moot]:
    llm_server.default = careful_after(0.05)
    url = await outages.create()
    async with Moot(settings_of(home, llm_server, url)) as desk:
        yield desk
    await outages.drop(url)


async def keep_asking(desk: Moot, over: asyncio.Event) -> list[ResearchResult]:
    results = []
    while not over.is_set():
        results.append(await desk.research(**QUESTION))
    return results


async def disturbed(desk: Moot, outages: Outages, watched: Watched) -> list[ResearchResult]:
    """`AT_ONCE` sessions at any moment, while the database goes away and comes back, which each time is felt."""
    over = asyncio.Event()
    asking = [asyncio.create_task(keep_asking(desk, over)) for _ in range(AT_ONCE)]
    for _ in range(OUTAGES):
        await grows(watched.acknowledged)
        await outages.stop()
        await grows(watched.ever_refused)
        await outages.start()
    await grows(watched.acknowledged)
    over.set()
    return [result for results in await asyncio.gather(*asking) for result in results]


async def grows(noted: Sized) -> None:
    before = len(noted)
    await until(lambda: len(noted) > before + AT_ONCE)


async def links(desk: Moot) -> Counter[tuple[UUID, str, UUID]]:
    chain = select(AuditEntryRow.session_id, AuditEntryRow.kind, AuditEntryRow.row_id)
    async with desk.database.session() as db:
        return Counter(tuple(row) for row in await db.execute(chain))


async def test_a_database_that_is_stopped_under_load_loses_nothing_it_had_acknowledged(desk, outages):
    watched = Watched(desk.trail)
    results = await disturbed(desk, outages, watched)
    assert {(result.overall_status, result.verdict_status) for result in results} == {("completed", "judged")}
    assert watched.refused, "the outage was felt"

    kept = await links(desk)
    lost = set(watched.acknowledged) - set(kept)
    assert lost == set()
    twice = {link for link, times in kept.items() if times > 1 and link[1] not in ENDINGS}
    assert twice == set()

    for result in results:
        await is_honest(desk, result, watched)
    after = await desk.research(**QUESTION)
    assert (await stored(desk, after)).audit_gaps == 0


async def is_honest(desk: Moot, result: ResearchResult, watched: Watched) -> None:
    """A session says what it could not store; an end that found no database is stored when there is one again."""
    try:
        session = await ended(desk, result)
    except SessionNotFound:
        assert result.audit_gaps > 0
        return
    refused = watched.refused[session.id]  # by now: an end that was refused at first has been stored
    assert session.audit_gaps == result.audit_gaps == refused
    assert Counter(node.node_type for node in session.nodes) <= Counter(NODES)
    assert (await desk.verify(session.id)).intact


async def ended(desk: Moot, result: ResearchResult) -> SessionDetail:
    async with asyncio.timeout(PATIENCE):
        while (session := await desk.session(UUID(result.session_id))).status == "running":
            await asyncio.sleep(0.1)
    return session


async def found(desk: Moot, result: ResearchResult) -> SessionDetail:
    """However long the server took to come back."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(SessionNotFound):
                return await ended(desk, result)
            await asyncio.sleep(0.1)


async def stored(desk: Moot, result: ResearchResult) -> SessionDetail:
    session = await desk.session(UUID(result.session_id))
    assert (session.status, {node.node_type for node in session.nodes}) == ("completed", NODES)
    return session


async def test_a_session_begun_while_the_database_was_gone_is_stored_when_it_ends(desk, outages, llm_server):
    llm_server.default = careful_after(0.5)
    await outages.stop()
    asking = asyncio.create_task(desk.research(**QUESTION))
    while not llm_server.requests:
        await asyncio.sleep(0.02)
    await outages.start()
    result = await asking
    session = await found(desk, result)
    assert (session.status, session.verdict_status) == ("completed", "judged")
    assert session.audit_gaps == result.audit_gaps > 0
    assert (await desk.verify(session.id)).intact

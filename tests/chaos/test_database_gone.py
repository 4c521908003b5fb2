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
from moot.modules.coordinator.domain.exceptions import SessionInterrupted, SessionNotFound
from moot.shared.infrastructure import transactions
from moot.shared.infrastructure.audit_trail import AuditTrail, Kind
from moot.shared.infrastructure.tables import AuditEntryRow
from tests.chaos.desks import KILLS, NODES, QUESTION, careful_after, settings_of
from tests.chaos.outages import Outages
from tests.fakes.clock import PATIENCE, until

OUTAGES = max(1, KILLS // 10)
AT_ONCE = 6


class Watched:
    """Notes which rows the trail said it had committed."""

    def __init__(self, trail: AuditTrail) -> None:
        self.acknowledged: list[tuple[UUID, str, UUID]] = []
        self._append = trail.append
        trail.append = self.append  # type: ignore[method-assign]

    async def append(self, kind: Kind, values: Any, **how: Any) -> None:
        await self._append(kind, values, **how)
        self.acknowledged.append((how["session_id"], kind.name, values["id"]))


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
        await is_felt(desk)
        await outages.start()
    await grows(watched.acknowledged)
    over.set()
    return [result for results in await asyncio.gather(*asking) for result in results]


async def grows(noted: Sized) -> None:
    before = len(noted)
    await until(lambda: len(noted) > before + AT_ONCE)


async def is_felt(desk: Moot) -> None:
    await until(lambda: desk.database.patience._gone_since is not None)


async def links(desk: Moot) -> Counter[tuple[UUID, str, UUID]]:
    chain = select(AuditEntryRow.session_id, AuditEntryRow.kind, AuditEntryRow.row_id)
    async with desk.database.session() as db:
        return Counter(tuple(row) for row in await db.execute(chain))


async def test_a_database_that_is_stopped_under_load_costs_no_session_a_row(desk, outages):
    watched = Watched(desk.trail)
    results = await disturbed(desk, outages, watched)
    assert {(result.overall_status, result.verdict_status) for result in results} == {("completed", "judged")}

    kept = await links(desk)
    lost = set(watched.acknowledged) - set(kept)
    assert lost == set()
    twice = {link for link, times in kept.items() if times > 1}
    assert twice == set()
    for result in results:
        await is_whole(desk, result)


async def is_whole(desk: Moot, result: ResearchResult) -> None:
    session = await desk.session(UUID(result.session_id))
    assert (session.status, session.audit_gaps, result.audit_gaps) == ("completed", 0, 0)
    assert Counter(node.node_type for node in session.nodes) == Counter(NODES)
    assert (await desk.verify(session.id)).intact


async def test_a_session_begun_while_the_database_was_gone_is_stored_when_it_is_back(desk, outages):
    await outages.stop()
    asking = asyncio.create_task(desk.research(**QUESTION))
    await is_felt(desk)
    await outages.start()
    await is_whole(desk, await asking)


async def test_a_session_that_waited_long_enough_goes_on_and_says_what_is_missing(
    desk, outages, llm_server, monkeypatch
):
    """Its end is stored when there is a database again."""
    monkeypatch.setattr(transactions, "OUTAGE", 0)
    llm_server.default = careful_after(0.5)
    await outages.stop()
    asking = asyncio.create_task(desk.research(**QUESTION))
    await until(lambda: llm_server.requests)
    await outages.start()
    result = await asking
    session = await found(desk, result)
    assert (session.status, session.verdict_status) == ("completed", "judged")
    assert session.audit_gaps == result.audit_gaps > 0
    assert Counter(node.node_type for node in session.nodes) <= Counter(NODES)
    assert (await desk.verify(session.id)).intact


async def found(desk: Moot, result: ResearchResult) -> SessionDetail:
    """However long the server took to come back."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(SessionNotFound):
                session = await desk.session(UUID(result.session_id))
                if session.status != "running":
                    return session
            await asyncio.sleep(0.1)


async def test_a_desk_that_found_no_database_does_not_wait_for_it(desk, outages, home, llm_server):
    await outages.stop()
    async with Moot(desk.settings) as late:
        result = await late.research(**QUESTION)
    assert (result.verdict_status, result.audit_gaps > 0) == ("judged", True)


async def test_a_desk_closes_while_its_database_is_gone(desk, outages, llm_server, monkeypatch):
    monkeypatch.setattr(transactions, "ASK_AGAIN", 10**6)
    async with Moot(desk.settings) as leaving:
        llm_server.default = careful_after(0.5)
        asking = asyncio.create_task(leaving.research(**QUESTION))
        await until(lambda: llm_server.requests)
        await outages.stop()
        await is_felt(leaving)
    with pytest.raises(SessionInterrupted):
        await asking

"""A database that is gone for a while is waited for: what was to be stored is, once, and nobody waits for ever."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, insert, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from moot.modules.coordinator.domain.model.session import SessionEvent
from moot.modules.coordinator.infrastructure.session_repository import SESSION, SqlResearchSessionRepository
from moot.modules.coordinator.infrastructure.tables import ResearchSessionRow
from moot.modules.llm_platform.domain.budget import Amount, Limits
from moot.modules.llm_platform.infrastructure.spending_store import SqlBudget
from moot.modules.llm_platform.infrastructure.tables import SpendingRow
from moot.shared.domain.errors import Unavailable
from moot.shared.infrastructure import transactions
from moot.shared.infrastructure.audit_trail import AuditTrail, Fenced
from moot.shared.infrastructure.audit_verification import verify
from moot.shared.infrastructure.call_audit import EXTERNAL_ANSWER, EXTERNAL_CALL, CallAudit, ExternalCalls
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import ExecutionContext, LeaseLost
from moot.shared.infrastructure.tables import AuditEntryRow, ExternalAPICallLog
from moot.shared.infrastructure.transactions import OUTAGE, Gone, Patience
from tests.chaos.outages import Outages
from tests.coordinator.test_session_repository import a_session
from tests.fakes.clock import FixedClock, leap, until

NOW = datetime(2026, 6, 30, 10, 0, tzinfo=UTC)
DONE: dict[str, Any] = {"status": "success", "latency_ms": 5, "status_code": 200, "response_data": "答"}
LOST = ConnectionResetError("connection lost")


@pytest.fixture
def outages(postgres: Any) -> Outages:
    return Outages(postgres)


@pytest.fixture
async def database(outages: Outages) -> AsyncIterator[Database]:
    """Of a server that has written what it acknowledged."""
    url = await outages.create()
    database = Database(url)
    yield database
    await outages.start()
    await database.close()
    await outages.drop(url)


@pytest.fixture
def lose(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Let connections be lost at their next commits, after these or before; and list the commits that are tried."""
    real = AsyncSession.commit

    def at(*moments: str) -> list[str]:
        left, tried = list(moments), list[str]()

        async def commit(session: AsyncSession) -> None:
            moment = left.pop(0) if left else "never"
            tried.append(moment)
            if moment != "before":
                await real(session)
            if moment != "never":
                raise LOST

        monkeypatch.setattr(AsyncSession, "commit", commit)
        return tried

    return at


async def make_calls(calls: ExternalCalls, count: int) -> None:
    for number in range(count):
        await calls.end(await calls.begin("service", "daily", {"n": number}), **DONE)


async def waiting(database: Database) -> None:
    await until(lambda: database.patience.tried)


async def count(database: Database, table: type[Any]) -> int:
    async with database.session() as db:
        return await db.scalar(select(func.count()).select_from(table)) or 0


async def test_what_was_to_be_stored_while_the_server_was_down_is_there_after_it_is_back(
    trail: AuditTrail,
    calls: ExternalCalls,
    session: ExecutionContext,
    outages: Outages,
    database: Database,
) -> None:
    await make_calls(calls, 1)
    await outages.stop()
    going_on = asyncio.gather(*(make_calls(calls, 2) for _ in range(5)))
    await waiting(database)
    assert not going_on.done()
    await outages.start()
    await going_on
    found = await verify(trail, UUID(session.session_id))
    assert (found.intact, found.links, session.tally.audit_gaps) == (True, 22, 0)


async def test_who_would_open_a_session_is_told_at_once_and_waits_behind_nobody(
    trail: AuditTrail,
    calls: ExternalCalls,
    session: ExecutionContext,
    outages: Outages,
    database: Database,
) -> None:
    repository, new = SqlResearchSessionRepository(trail), a_session()
    await outages.stop()
    with pytest.raises(Unavailable):
        await repository.save_session(new)
    going_on = asyncio.create_task(make_calls(calls, 1))
    await waiting(database)
    with pytest.raises(Unavailable):
        await repository.save_session(new)
    assert not going_on.done()
    await outages.start()
    await going_on
    await repository.save_session(new)
    assert (await verify(trail, new.id, workspace=new.workspace_id)).links == 1


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_commit_whose_connection_is_lost_is_made_once(
    trail: AuditTrail,
    calls: ExternalCalls,
    session: ExecutionContext,
    database: Database,
    lose: Callable[..., list[str]],
    moment: str,
) -> None:
    tried = lose(moment, "never", moment, moment)
    await make_calls(calls, 1)
    assert tried == [moment, "never", moment, moment, "never"]
    found = await verify(trail, UUID(session.session_id))
    assert (found.intact, found.links, session.tally.audit_gaps) == (True, 2, 0)


async def test_what_is_new_in_a_group_is_stored_beside_what_was_there(
    trail: AuditTrail, session: ExecutionContext, database: Database, lose: Callable[..., list[str]]
) -> None:
    """As when the patience with a commit in doubt came to an end, and its rows are tried again later."""
    session_id = UUID(session.session_id)
    old, new = ({**INTENT, "id": uuid4(), "session_id": session_id} for _ in range(2))
    trail.database.patience.lose()
    lose("after", "after")
    with pytest.raises(Unavailable):
        await trail.append(EXTERNAL_CALL, old, session_id=session_id)
    again = (trail.append(EXTERNAL_CALL, row, session_id=session_id) for row in (old, new))
    await asyncio.gather(*again)
    assert await count(database, ExternalAPICallLog) == 2
    trail.vouches_for(EXTERNAL_CALL, EXTERNAL_ANSWER)
    assert (await verify(trail, session_id)).links == 2


INTENT: dict[str, Any] = {
    "workspace_id": "default",
    "created_at": NOW,
    "attempt": 1,
    "request_digest": None,
    "origin": "live",
    "service_name": "s",
    "operation": "o",
    "request_params": {},
    "status": "started",
}


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_call_outside_of_a_session_is_stored_once(
    calls: ExternalCalls, database: Database, lose: Callable[..., list[str]], moment: str
) -> None:
    lose(moment, "never", moment)
    await make_calls(calls, 1)
    async with database.session() as db:
        rows = (await db.execute(text("SELECT status, session_id FROM external_api_call_logs"))).all()
    assert (rows, await count(database, AuditEntryRow)) == ([("success", None)], 0)


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_session_is_opened_and_closed_once_with_its_events_and_whoever_acts_on_it(
    trail: AuditTrail, database: Database, lose: Callable[..., list[str]], moment: str
) -> None:
    def put(db: Any, rows: Any) -> None:
        db.execute(insert(SpendingRow), [{"key": str(row["id"])} for row in rows])

    trail.follow(SESSION.name, put)
    repository, session = SqlResearchSessionRepository(trail), a_session()
    told = [SessionEvent(seq=n, type="session", at=NOW, data={}) for n in (1, 2, 3)]
    lose(moment, "never", moment)
    await repository.save_session(session, events=told[:2])
    await repository.update_session(session.model_copy(update={"status": "completed"}), events=told[2:])
    assert await count(database, SpendingRow) == await count(database, ResearchSessionRow) == 1
    assert [event.seq for event in await repository.events_after(session.id, 0)] == [1, 2, 3]
    found = await verify(trail, session.id, workspace=session.workspace_id)
    assert (found.intact, found.links) == (True, 5), found.explanation


async def test_who_has_lost_the_session_is_told_at_once_when_the_server_is_back(
    trail: AuditTrail, session: ExecutionContext, database: Database, lose: Callable[..., list[str]]
) -> None:
    looks = []

    def fence(_db: Any, tokens: Any) -> None:
        looks.append(tokens)
        if len(looks) > 1:
            raise Fenced("another process carries on")

    trail.set_fence(fence)
    with session.model_copy(update={"lease_token": 1}).active():
        tried = lose("before")
        with pytest.raises(LeaseLost, match="carries on"):
            await CallAudit(trail, FixedClock(NOW)).begin(EXTERNAL_CALL, INTENT)
    assert tried == ["before"], "and nothing was committed after it"
    assert session.tally.audit_gaps == 0


async def test_closing_waits_for_no_server_that_is_down(
    calls: ExternalCalls,
    session: ExecutionContext,
    outages: Outages,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await make_calls(calls, 1)
    monkeypatch.setattr(transactions, "ASK_AGAIN", 10**6)
    await outages.stop()
    call = asyncio.create_task(calls.begin("service", "daily", {}))
    await waiting(database)
    await database.close()
    assert await call is None
    assert session.tally.audit_gaps == 1


async def test_what_is_set_aside_and_spent_while_the_server_is_down_is_counted(
    session: ExecutionContext, outages: Outages, database: Database
) -> None:
    budget = SqlBudget(database, FixedClock(NOW), Limits(session_tokens=100), "CNY")
    await outages.stop()
    reserving = asyncio.create_task(budget.reserve(Amount(tokens=10)))
    await waiting(database)
    await outages.start()
    await budget.settle(await reserving, Amount(tokens=10), Amount(tokens=4))
    assert await stands(database) == (4, 0)


async def test_who_needs_no_database_does_not_make_an_outage_seem_over(
    session: ExecutionContext, database: Database
) -> None:
    database.patience.lose()
    budget = SqlBudget(database, FixedClock(NOW), Limits(), "CNY")
    await budget.settle(await budget.reserve(Amount(tokens=10)), Amount(tokens=10), Amount(tokens=4))
    assert database.patience._gone_since is not None


async def stands(database: Database) -> tuple[int, int]:
    async with database.session() as db:
        row = (await db.execute(select(SpendingRow.tokens_spent, SpendingRow.tokens_reserved))).one()
        return row[0], row[1]


@pytest.mark.parametrize(("moment", "left"), [("before", (0, 10)), ("after", (4, 0))])
async def test_what_may_have_been_paid_is_not_paid_twice(
    session: ExecutionContext,
    database: Database,
    lose: Callable[..., list[str]],
    moment: str,
    left: tuple[int, int],
) -> None:
    """At worst what was set aside stands: no limit is ever exceeded."""
    budget = SqlBudget(database, FixedClock(NOW), Limits(session_tokens=100), "CNY")
    reservation = await budget.reserve(Amount(tokens=10))
    lose(moment)
    await budget.settle(reservation, Amount(tokens=10), Amount(tokens=4))
    assert await stands(database) == left


class Store:
    """Is gone for as many attempts as it is told."""

    def __init__(self, gone: float) -> None:
        self.gone, self.asked = gone, 0

    async def __call__(self) -> str:
        self.asked += 1
        await asyncio.sleep(0)
        if self.asked <= self.gone:
            raise Gone("gone")
        return "there"


NEVER = float("inf")


@pytest.fixture
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "ASK_AGAIN", 0)


async def fails(attempt: Awaitable[Any]) -> None:
    with pytest.raises(Gone):
        await attempt


class TestPatience:
    async def test_asks_until_the_database_is_back(self, in_haste: None) -> None:
        assert await Patience().outlast(store := Store(3)) == "there"
        assert store.asked == 4

    async def test_is_used_up_once_and_not_by_each(self, in_haste: None) -> None:
        patience, first = Patience(), Store(NEVER)
        waits = asyncio.create_task(patience.outlast(first))
        await until(lambda: first.asked > 2)
        leap(OUTAGE)
        await fails(waits)
        for later in (Store(NEVER), Store(NEVER)):
            await fails(patience.outlast(later))
            assert later.asked == 1
        assert await patience.outlast(Store(0)) == "there"
        assert await patience.outlast(Store(1)) == "there", "another outage, another wait"

    async def test_of_many_who_wait_one_asks_again(self) -> None:
        patience, stores = Patience(), [Store(NEVER) for _ in range(50)]
        waits = [asyncio.create_task(patience.outlast(store)) for store in stores]
        await until(lambda: all(store.asked for store in stores))
        await until(lambda: sum(store.asked for store in stores) > 52)
        assert sum(store.asked for store in stores) < 75, "each in its turn"
        for store in stores:
            store.gone = 0
        assert await asyncio.gather(*waits) == ["there"] * 50
        assert max(store.asked for store in stores) <= 3

    async def test_has_an_end_for_what_loses_its_connection_while_others_keep_theirs(
        self, in_haste: None
    ) -> None:
        patience, poison = Patience(), Store(NEVER)
        waits = asyncio.create_task(patience.outlast(poison))
        await until(lambda: poison.asked > 2)
        assert await patience.outlast(Store(0)) == "there"
        leap(OUTAGE)
        assert await patience.outlast(Store(0)) == "there"
        await fails(waits)

    async def test_that_was_lost_is_there_again_after_a_success(self, in_haste: None) -> None:
        patience, store = Patience(), Store(1)
        patience.lose()
        await fails(patience.outlast(store))
        assert await patience.outlast(store) == "there"
        assert await patience.outlast(Store(2)) == "there"

    async def test_that_is_at_its_end_tries_once(self) -> None:
        patience, store = Patience(), Store(NEVER)
        patience.end()
        await fails(patience.outlast(store))
        assert store.asked == 1
        assert await patience.outlast(Store(0)) == "there"

    async def test_other_errors_are_told_at_once(self) -> None:
        async def refuse() -> None:
            raise Unavailable("another trouble")

        with pytest.raises(Unavailable, match="another"):
            await Patience().outlast(refuse)


async def test_a_row_that_found_no_server_in_time_is_counted_and_the_call_goes_on(
    calls: ExternalCalls,
    session: ExecutionContext,
    outages: Outages,
    database: Database,
) -> None:
    await make_calls(calls, 1)
    await outages.stop()
    first = asyncio.create_task(calls.begin("service", "daily", {}))
    await waiting(database)
    leap(OUTAGE)
    assert await first is None
    assert await calls.begin("service", "daily", {}) is None
    assert session.tally.audit_gaps == 2
    await outages.start()
    await make_calls(calls, 1)
    assert session.tally.audit_gaps == 2

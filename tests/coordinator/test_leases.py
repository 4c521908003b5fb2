"""Who runs a session: one owner at a time, and whoever has lost it cannot write. On both databases."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select, update

from moot.modules.coordinator.domain.model.session import ResearchSession
from moot.modules.coordinator.infrastructure.session_repository import (
    SqlResearchSessionRepository,
)
from moot.modules.coordinator.infrastructure.tables import NodeExecutionRow, ResearchSessionRow
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.leases import Lease, LeaseHolder, Loss
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.audit_verification import verify
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import ExecutionContext, LeaseLost, current_execution_ctx
from moot.shared.infrastructure.transactions import transaction
from tests.coordinator.test_session_repository import NOON, a_node, a_session
from tests.fakes.clock import PATIENCE

MINUTE = timedelta(minutes=1)


class Store:
    """One process's view of the database."""

    def __init__(self, database: Database) -> None:
        self.trail = AuditTrail(database)
        self.repository = SqlResearchSessionRepository(self.trail)

    async def a_session(self, owner: str | None = "first", **values) -> ResearchSession:
        session = a_session(status="running", **values)
        lease = Lease(owner, 1, NOON + MINUTE) if owner else None
        await self.repository.save_session(session, lease=lease)
        return session

    async def nodes(self, session_id: UUID) -> int:
        counted = select(func.count()).where(NodeExecutionRow.session_id == session_id)
        async with self.trail.database.session() as db:
            return await db.scalar(counted) or 0


@pytest.fixture
def store(database: Database) -> Store:
    return Store(database)


@contextmanager
def running(session: ResearchSession, token: int) -> Iterator[None]:
    reset = current_execution_ctx.set(ExecutionContext(session_id=str(session.id), lease_token=token))
    try:
        yield
    finally:
        current_execution_ctx.reset(reset)


class TestALease:
    async def test_is_not_given_while_somebody_holds_it(self, store: Store) -> None:
        session = await store.a_session()
        assert await store.repository.acquire(session.id, "second", NOON, NOON + MINUTE) is None

    async def test_is_given_when_it_has_run_out_with_a_newer_token(self, store: Store) -> None:
        session = await store.a_session()
        later = NOON + 2 * MINUTE
        taken = await store.repository.acquire(session.id, "second", later, later + MINUTE)
        assert taken is not None
        assert taken.lease == Lease("second", 2, later + MINUTE)
        assert not taken.cancel_requested
        assert await store.repository.acquire(session.id, "third", later, later + MINUTE) is None

    async def test_has_one_winner_however_many_want_it(self, store: Store) -> None:
        session = await store.a_session(owner=None)
        wanting = [
            store.repository.acquire(session.id, f"process {n}", NOON, NOON + MINUTE) for n in range(20)
        ]
        winners = [taken for taken in await asyncio.gather(*wanting) if taken]
        assert len(winners) == 1
        assert winners[0].lease.token == 1

    async def test_makes_a_queued_session_run(self, store: Store) -> None:
        session = a_session(status="queued")
        await store.repository.save_session(session)
        await store.repository.acquire(session.id, "first", NOON, NOON + MINUTE)
        found = await store.repository.get_session_by_id(session.id, None)
        assert found is not None
        assert found.status == "running"

    @pytest.mark.parametrize("status", ["completed", "partial", "failed", "cancelled"])
    async def test_of_a_session_that_has_ended_is_nobodys(self, store: Store, status: str) -> None:
        session = a_session(status=status)
        await store.repository.save_session(session)
        assert await store.repository.acquire(session.id, "first", NOON, NOON + MINUTE) is None

    async def test_is_kept_by_renewing_it(self, store: Store) -> None:
        session = await store.a_session()
        renewal = await store.repository.renew("first", [session.id, uuid4()], NOON + 3 * MINUTE)
        assert renewal == {}
        assert (
            await store.repository.acquire(session.id, "second", NOON + 2 * MINUTE, NOON + 4 * MINUTE) is None
        )

    async def test_that_was_lost_is_noticed_when_it_is_renewed(self, store: Store) -> None:
        session = await store.a_session()
        later = NOON + 2 * MINUTE
        await store.repository.acquire(session.id, "second", later, later + MINUTE)
        renewal = await store.repository.renew("first", [session.id], later + MINUTE)
        assert renewal == {session.id: "taken over"}
        still = await store.repository.acquire(session.id, "third", later, later + MINUTE)
        assert still is None, "what the loser renewed must not shorten the winner's lease"

    async def test_tells_its_owner_that_the_session_should_be_cancelled(self, store: Store) -> None:
        session = await store.a_session()
        await store.repository.request_cancel(session.id)
        assert await store.repository.renew("first", [session.id], NOON) == {session.id: "cancelled"}

    async def test_that_is_released_can_be_taken_at_once(self, store: Store) -> None:
        mine, other = await store.a_session(), await store.a_session(owner="second")
        await store.repository.release("first", NOON)
        assert await store.repository.find_left_behind(NOON, 10) == [mine.id]
        assert other.id not in await store.repository.find_left_behind(NOON, 10)


async def test_what_is_held_anew_is_not_lost_with_the_lease_before(store: Store) -> None:
    """As when a session stops for a person, and is woken, while a heartbeat is on its way."""
    session = await store.a_session(owner=None)
    asked, answer = asyncio.Event(), asyncio.Event()
    renew = store.repository.renew

    async def renew_slowly(*given: Any) -> dict[UUID, Loss]:
        losses = await renew(*given)
        asked.set()
        await answer.wait()
        return losses

    store.repository.renew = renew_slowly  # type: ignore[method-assign]
    holder = LeaseHolder(store.repository, SystemClock(), seconds=0.03)
    lost: list[str] = []
    holder.hold(session.id, lambda loss: lost.append(f"before: {loss}"))
    await asyncio.wait_for(asked.wait(), PATIENCE)
    holder.let_go(session.id)
    holder.hold(session.id, lambda loss: lost.append(f"anew: {loss}"))
    assert await holder.take(session.id)
    asked.clear()
    answer.set()
    await asyncio.wait_for(asked.wait(), PATIENCE)  # the next one finds it held
    await holder.close(release=False)
    assert lost == []


async def test_what_is_left_behind_is_found_oldest_first(store: Store) -> None:
    sessions = [await store.a_session(created_at=NOON + n * MINUTE) for n in (2, 0, 1)]
    await store.a_session(created_at=NOON - MINUTE, owner="second")
    await store.repository.renew("second", [], NOON)
    expired = NOON + MINUTE
    found = await store.repository.find_left_behind(expired, 4)
    assert [s for s in found if s in {session.id for session in sessions}] == [
        sessions[1].id,
        sessions[2].id,
        sessions[0].id,
    ]
    assert len(await store.repository.find_left_behind(expired, 2)) == 2
    assert await store.repository.find_left_behind(NOON, 4) == []


class TestAnOwnerThatLostItsLease:
    async def test_cannot_write_and_leaves_the_record_intact(self, store: Store) -> None:
        session = await store.a_session()
        with running(session, 1):
            await store.repository.save_node_execution(a_node(session.id))
        later = NOON + 2 * MINUTE
        await store.repository.acquire(session.id, "second", later, later + MINUTE)
        with running(session, 1), pytest.raises(LeaseLost):
            await store.repository.save_node_execution(a_node(session.id, node_type="debate"))
        with running(session, 1), pytest.raises(LeaseLost):
            await store.repository.update_session(session.model_copy(update={"status": "completed"}))
        assert await store.nodes(session.id) == 1
        found = await store.repository.get_session_by_id(session.id, None)
        assert found is not None
        assert found.status == "running"
        with running(session, 2):
            await store.repository.save_node_execution(a_node(session.id, node_type="judge"))
        assert (await verify(store.trail, session.id)).intact

    async def test_takes_no_other_session_down_with_it(self, store: Store) -> None:
        """They are committed together, and one of them is refused."""
        lost, kept = await store.a_session(), await store.a_session()
        later = NOON + 2 * MINUTE
        await store.repository.acquire(lost.id, "second", later, later + MINUTE)

        async def write(session: ResearchSession) -> None:
            with running(session, 1):
                await store.repository.save_node_execution(a_node(session.id))

        outcomes = await asyncio.gather(write(lost), write(kept), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [LeaseLost, type(None)]
        assert (await store.nodes(lost.id), await store.nodes(kept.id)) == (0, 1)

    async def test_is_stopped_by_a_process_with_another_view_of_the_database(
        self, database: Database
    ) -> None:
        paused, other = Store(database), Store(database)
        session = await paused.a_session()
        later = NOON + 2 * MINUTE
        taken = await other.repository.acquire(session.id, "second", later, later + MINUTE)
        assert taken is not None
        with running(session, 2):
            await other.repository.save_node_execution(a_node(session.id))
        with running(session, 1), pytest.raises(LeaseLost):
            await paused.repository.save_node_execution(a_node(session.id, node_type="debate"))
        assert (await verify(other.trail, session.id)).intact

    async def test_never_gets_a_row_in_between_a_takeover(self, database: Database) -> None:
        """Every row that was committed under the old token was committed before the new owner had its own."""
        owner, taker = Store(database), Store(database)
        session = await owner.a_session()
        later = NOON + 2 * MINUTE

        async def write(n: int) -> bool:
            with running(session, 1):
                try:
                    await owner.repository.save_node_execution(a_node(session.id, node_type=f"node {n}"))
                except LeaseLost:
                    return False
            return True

        writing = [asyncio.create_task(write(n)) for n in range(30)]
        await asyncio.sleep(0)
        await taker.repository.acquire(session.id, "second", later, later + MINUTE)
        seen = await taker.nodes(session.id)
        written = sum(await asyncio.gather(*writing))
        assert seen == written == await taker.nodes(session.id)

    async def test_waits_for_a_takeover_that_is_under_way(self, database: Database) -> None:
        """Its statement may see the row as it was before; what counts is the row when both have come to their end."""
        owner, taker = Store(database), Store(database)
        session = await owner.a_session()
        taken, may_end = asyncio.Event(), asyncio.Event()

        async def take_slowly() -> None:
            raised = update(ResearchSessionRow).values(lease_token=2)
            async with transaction(database.session) as db:
                await db.execute(raised.where(ResearchSessionRow.id == session.id))
                taken.set()
                await may_end.wait()

        async def write() -> None:
            with running(session, 1):
                await owner.repository.save_node_execution(a_node(session.id))

        taking = asyncio.create_task(take_slowly())
        await taken.wait()
        writing = asyncio.create_task(write())
        await asyncio.sleep(0.2)
        may_end.set()
        await taking
        with pytest.raises(LeaseLost):
            await writing
        assert await taker.nodes(session.id) == 0

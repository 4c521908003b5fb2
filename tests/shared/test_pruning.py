"""A link that takes the place of others, and the room that rows take up."""

from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import select, text

from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.audit_verification import verify
from moot.shared.infrastructure.call_audit import EXTERNAL_BODIES, EXTERNAL_KINDS, CallAudit, ExternalCalls
from moot.shared.infrastructure.tables import ExternalAPICallLog
from tests.fakes.clock import FixedClock

NOW = datetime(2026, 6, 30, 10, 0, tzinfo=UTC)


async def a_call(trail: AuditTrail, response: str | None = "x" * 2000) -> None:
    calls = ExternalCalls(CallAudit(trail, FixedClock(NOW)))
    call_id = await calls.begin("service", "daily", {"share": 0.1})
    await calls.end(call_id, status="success", latency_ms=5, status_code=200, response_data=response)


async def emptied(trail: AuditTrail, session_id: UUID) -> None:
    async with trail.database.session() as db:
        rows = (await db.execute(select(ExternalAPICallLog.__table__))).mappings().all()
    for row in rows:
        left = {name: row[name] for name in EXTERNAL_BODIES.kind.columns} | {"response_data": None}
        await trail.append(EXTERNAL_BODIES.kind, left, session_id=session_id, write="update")


async def test_a_link_that_replaces_others_stands_for_the_row(trail, session_id):
    await a_call(trail)
    await emptied(trail, session_id)
    found = await verify(trail, session_id)
    assert (found.intact, found.links, found.pruned) == (True, 3, 1)


async def test_the_links_it_replaces_must_still_be_there(trail, session_id, database):
    await a_call(trail)
    await emptied(trail, session_id)
    async with database.session() as db, db.begin():
        await db.execute(text("DELETE FROM audit_chain WHERE seq = 2"))
    found = await verify(trail, session_id)
    assert found.first_break is not None
    assert (found.first_break.problem, found.first_break.seq) == ("removed", 2)


async def test_what_comes_after_it_is_examined_again(trail, session_id):
    await a_call(trail)
    await emptied(trail, session_id)
    async with trail.database.session() as db:
        (call_id,) = await db.scalars(select(ExternalAPICallLog.id))
    late = {"status": "failed", "latency_ms": 1, "status_code": None, "response_data": "late"}
    calls = CallAudit(trail, FixedClock(NOW))
    await calls.end(EXTERNAL_KINDS[1], call_id, {**late, "error_message": None})
    found = await verify(trail, session_id)
    assert found.first_break is not None
    assert (found.first_break.kind, found.first_break.seq) == ("pruned_external_call", 3)


async def test_rows_without_texts_have_nothing_to_lose(trail, session_id, database):
    await a_call(trail, response=None)
    await a_call(trail)
    table = EXTERNAL_BODIES.kind.rows
    async with database.session() as db:
        rows = (await db.execute(select(table).where(EXTERNAL_BODIES.remain()))).mappings().all()
    assert [row["response_data"] for row in rows] == ["x" * 2000]
    assert EXTERNAL_BODIES.weigh(rows) == 2002


async def test_room_is_measured_and_on_sqlite_given_back(trail, session_id, database):
    for _ in range(20):
        await a_call(trail, response="x" * 50_000)
    full = await database.size()
    assert full > 100_000
    await emptied(trail, session_id)
    await database.reclaim()
    after = await database.size()
    if "sqlite" in database.safe_url:
        assert after < full - 900_000
    assert (await verify(trail, session_id)).intact

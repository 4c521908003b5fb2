"""Long texts of a session that has ended: kept in less room, read as they were, gone when they are taken out."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import CursorResult, select, text, update

from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.audit_verification import read_chain, verify
from moot.shared.infrastructure.call_audit import CallAudit, ExternalCalls
from moot.shared.infrastructure.kept_texts import SIGN
from moot.shared.infrastructure.tables import ExternalAPICallLog, TextRow
from tests.fakes.clock import FixedClock

NOW = datetime(2026, 6, 30, 10, 0, tzinfo=UTC)
LONG = "收盘价 20.59 元在 20 日均线之下。\n" * 1000
HOSTILE = {
    "one that looks packed": f"{SIGN}AAAAAAAAAAAAAAAA:0:10{SIGN}" + LONG,
    "the sign twice": SIGN * 2 + LONG,
    "the sign within": LONG + SIGN + LONG,
    "a NUL and half a pair": "\x00\ud800" + LONG,
    "an object": '{"": "AAAAAAAAAAAAAAAA:0:10"}' + LONG,
    "one megabyte of noise": random.Random(1).randbytes(500_000).hex(),
    "beyond the first plane": "𝒜🂡" * 10_000,
}


async def call(trail: AuditTrail, *responses: str | None) -> None:
    calls = ExternalCalls(CallAudit(trail, FixedClock(NOW)))
    for response in responses:
        call_id = await calls.begin("service", "daily", {"share": 0.1})
        await calls.end(call_id, status="success", latency_ms=5, status_code=200, response_data=response)


async def run(trail: AuditTrail, statement: Any) -> list[Any]:
    async with trail.database.session() as db, db.begin():
        found = await db.execute(statement)
        silent = isinstance(found, CursorResult) and not found.returns_rows
        return [] if silent else [tuple(row) for row in found]


async def bare(trail: AuditTrail) -> list[str]:
    """What stands in the cells."""
    found = await run(trail, text("SELECT response_data FROM external_api_call_logs"))
    return [response for (response,) in found]


async def responses(trail: AuditTrail) -> set[str | None]:
    return {response for (response,) in await run(trail, select(ExternalAPICallLog.response_data))}


@pytest.mark.parametrize("name", HOSTILE)
async def test_whatever_it_says_it_reads_as_before(trail, session_id, name):
    await call(trail, HOSTILE[name], LONG, "short", "", None, SIGN, SIGN + "short")
    before, record = await responses(trail), await read_chain(trail, session_id)
    assert {"short", "", None, SIGN, SIGN + "short", LONG} < before
    await trail.pack(session_id)
    assert max(len(cell or "") for cell in await bare(trail)) < 50
    assert await responses(trail) == before
    assert await read_chain(trail, session_id) == record
    assert (await verify(trail, session_id)).intact


async def test_what_rows_share_is_kept_once(trail, session_id):
    noise = HOSTILE["one megabyte of noise"][:200_000]
    await call(trail, *(f"{noise}{n}" for n in range(5)))
    await trail.pack(session_id)
    (kept,) = await run(trail, select(TextRow.data))
    assert 100_000 < len(kept[0]) < 120_000


async def test_little_is_left_where_it_stands(trail, session_id):
    await call(trail, "x" * 5000)
    await trail.pack(session_id)
    assert await bare(trail) == ["x" * 5000]
    assert await run(trail, select(TextRow.id)) == []


async def test_what_comes_later_is_packed_beside_it(trail, session_id):
    await call(trail, LONG)
    await trail.pack(session_id)
    first = await run(trail, select(TextRow.id))
    await call(trail, LONG[::-1])
    await trail.pack(session_id)
    found = await run(trail, select(TextRow.id))
    assert len(found) == 2 and set(first) < set(found)
    assert await responses(trail) == {LONG, LONG[::-1]}


async def test_packed_anew_nothing_is_left_of_what_has_gone(trail, session_id):
    noise = HOSTILE["one megabyte of noise"]
    await call(trail, noise[:50_000], noise[50_000:100_000])
    await trail.pack(session_id)
    ((whole,),) = await run(trail, select(TextRow.data))
    call_id, *_ = await run(trail, select(ExternalAPICallLog.id))
    await run(trail, update(ExternalAPICallLog).values(response_data=None).filter_by(id=call_id[0]))
    await trail.pack(session_id, anew=True)
    ((left,),) = await run(trail, select(TextRow.data))
    assert len(left) < 0.6 * len(whole)
    assert len(await responses(trail) & {noise[:50_000], noise[50_000:100_000]}) == 1


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DELETE FROM texts", "unreadable"),
        ("UPDATE texts SET data = substr(data, 1, 40)", "unreadable"),
        ("UPDATE external_api_call_logs SET response_data = 'other'", "changed"),
        ("UPDATE external_api_call_logs SET response_data = replace(response_data, ':0:', ':3:')", "changed"),
    ],
)
async def test_a_hand_in_it_is_found(trail, session_id, statement, problem):
    await call(trail, LONG)
    await trail.pack(session_id)
    await run(trail, text(statement.replace(":", r"\:")))
    found = await verify(trail, session_id)
    assert found.first_break is not None
    assert found.first_break.problem == problem

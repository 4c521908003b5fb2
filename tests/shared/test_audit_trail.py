"""The chain over a session's record: what was written holds, and what was touched afterwards is named."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from moot.shared.domain.errors import NotFound, Unavailable
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.audit_verification import verify
from moot.shared.infrastructure.call_audit import EXTERNAL_ANSWER, EXTERNAL_CALL, CallAudit, ExternalCalls
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import current_execution_ctx
from moot.shared.infrastructure.redaction import REDACT
from tests.fakes.clock import FixedClock

NOW = datetime(2026, 6, 30, 10, 0, tzinfo=UTC)
A_DIGEST = "8ea0a4ef59526d858c43e989619d9fe4ee128d271a0deb77173d92f69b59ced4"
Touch = Callable[[Database, UUID], Awaitable[None]]


async def make_calls(calls: ExternalCalls, count: int = 4) -> None:
    for number in range(count):
        call_id = await calls.begin("service", "daily", {"n": number, "share": 0.1, "big": 1e22})
        await calls.end(
            call_id, status="success", latency_ms=5, status_code=200, response_data=f"答 {number}"
        )


def sql(*statements: str) -> Touch:
    async def touch(database: Database, session_id: UUID) -> None:
        def work(db):
            for statement in statements:
                db.execute(text(statement))

        await database.write(work)

    return touch


async def test_what_was_written_verifies(trail, calls, session_id):
    await make_calls(calls)
    found = await verify(trail, session_id)
    assert (found.intact, found.links, found.first_break) == (True, 8, None)


async def test_fifty_calls_at_once_make_one_unbroken_chain(trail, calls, session_id):
    await asyncio.gather(*(make_calls(calls, 2) for _ in range(50)))
    found = await verify(trail, session_id)
    assert (found.intact, found.links) == (True, 200)


async def test_two_processes_may_write_to_one_chain(database, session_id):
    here, there = (ExternalCalls(CallAudit(AuditTrail(database), FixedClock(NOW))) for _ in range(2))
    for writer in (here, there, here, there):
        await make_calls(writer, 1)
    trail = AuditTrail(database)
    trail.vouches_for(EXTERNAL_CALL, EXTERNAL_ANSWER)
    assert (await verify(trail, session_id)).links == 8


FLIPPED = "UPDATE external_api_call_logs SET response_data = '答 9' WHERE response_data = '答 2'"
ASKED = "UPDATE external_api_call_logs SET operation = 'weekly' WHERE response_data = '答 1'"
GONE = "DELETE FROM external_api_call_logs WHERE response_data = '答 1'"
LINK = "DELETE FROM audit_chain WHERE seq = 3"
TAIL = "DELETE FROM audit_chain WHERE seq > 6"
SWAP = [f"UPDATE audit_chain SET seq = {new} WHERE seq = {old}" for old, new in ((3, 30), (4, 3), (30, 4))]
FORGED = "UPDATE audit_chain SET digest = '" + "f" * 64 + "' WHERE seq = 5"
HEAD = "UPDATE audit_heads SET hash = '" + "f" * 64 + "'"
PLANTED = (
    "INSERT INTO external_api_call_logs"
    " (id, session_id, service_name, operation, request_params, status, created_at)"
    " SELECT {id}, session_id, 'x', 'x', request_params, 'success', created_at"
    " FROM external_api_call_logs WHERE response_data = '答 0'"
)


@pytest.mark.parametrize(
    ("touch", "problem", "seq"),
    [
        (sql(FLIPPED), "changed", 6),
        (sql(ASKED), "changed", 3),
        (sql(GONE), "removed", 3),
        (sql(LINK), "removed", 3),
        (sql(TAIL), "cut_off", 7),
        (sql(*SWAP), "reordered", 3),
        (sql(FORGED), "changed", 5),
        (sql(HEAD), "changed", 8),
    ],
    ids=[
        "flipped byte",
        "other question",
        "row deleted",
        "link deleted",
        "tail cut",
        "pair swapped",
        "forged",
        "head",
    ],
)
async def test_the_first_entry_that_was_touched_is_named(
    trail, calls, session_id, database, touch: Touch, problem, seq
):
    await make_calls(calls)
    await touch(database, session_id)
    found = await verify(trail, session_id, "en-US")
    assert not found.intact
    assert found.first_break is not None
    assert (found.first_break.problem, found.first_break.seq) == (problem, seq)
    assert str(seq) in found.explanation


async def test_a_row_that_nobody_recorded_is_named(trail, calls, session_id, database):
    await make_calls(calls)
    planted = "'" + uuid4().hex + "'" if "sqlite" in database.safe_url else "gen_random_uuid()"
    await sql(PLANTED.format(id=planted))(database, session_id)
    found = await verify(trail, session_id)
    assert found.first_break is not None
    assert (found.first_break.problem, found.first_break.kind) == ("added", "external_call")


async def test_a_session_without_a_record_is_not_found(trail):
    with pytest.raises(NotFound, match="no record"):
        await verify(trail, uuid4())


async def test_a_call_outside_of_a_session_has_a_row_and_no_chain(trail, calls, database):
    await make_calls(calls, 1)
    async with database.session() as db:
        rows = (await db.execute(text("SELECT session_id, status FROM external_api_call_logs"))).all()
        links = (await db.execute(text("SELECT count(*) FROM audit_chain"))).scalar()
    assert (rows, links) == ([(None, "success")], 0)


async def test_an_intent_is_committed_before_the_call_and_left_open_until_its_outcome(
    calls, session_id, database
):
    call_id = await calls.begin("service", "daily", {})
    async with database.session() as db:
        row = (await db.execute(text("SELECT status, latency_ms FROM external_api_call_logs"))).one()
    assert tuple(row) == ("started", None)
    assert call_id is not None


async def test_a_call_that_nobody_completed_is_closed_as_unknown(trail, calls, session_id, database):
    await calls.begin("service", "daily", {})
    later = CallAudit(trail, FixedClock(NOW))
    assert await later.close_abandoned(EXTERNAL_CALL, EXTERNAL_ANSWER, before=NOW) == 0, (
        "it may still be under way"
    )
    after = datetime(2026, 6, 30, 11, 0, tzinfo=UTC)
    assert await later.close_abandoned(EXTERNAL_CALL, EXTERNAL_ANSWER, before=after) == 1
    async with database.session() as db:
        assert (await db.execute(text("SELECT status FROM external_api_call_logs"))).scalar() == "unknown"
    assert (await verify(trail, session_id)).intact


@pytest.mark.accepts("A2-33")
async def test_a_row_that_cannot_be_written_is_counted_and_the_call_goes_on(trail, session_id, database):
    await sql("DROP TABLE external_api_call_logs")(database, session_id)
    call_id = await ExternalCalls(CallAudit(trail, FixedClock(NOW))).begin("service", "daily", {})
    context = current_execution_ctx.get()
    assert context is not None
    assert (call_id, context.tally.audit_gaps) == (None, 1)


async def test_a_strict_audit_refuses_a_call_it_cannot_record(trail, session_id, database):
    await sql("DROP TABLE external_api_call_logs")(database, session_id)
    strict = ExternalCalls(CallAudit(trail, FixedClock(NOW), strict=True))
    with pytest.raises(Unavailable, match="MOOT_AUDIT"):
        await strict.begin("service", "daily", {})


async def test_secrets_and_characters_a_database_refuses_never_reach_a_row(
    trail, calls, session_id, database
):
    REDACT.learn("canary-in-a-coal/mine")
    call_id = await calls.begin("s", "o", {"url": "https://x.example/?token=abc123&q=1", "n": "a\x00b"})
    said = (
        "Bearer abcdefgh12345678 canary-in-a-coal/mine canary-in-a-coal%2Fmine \ud800 sk-abcdefghijklmnop1234"
    )
    await calls.end(call_id, status="failed", latency_ms=1, error_message=said)
    async with database.session() as db:
        row = (
            await db.execute(text("SELECT request_params, error_message FROM external_api_call_logs"))
        ).one()
    kept = str(row)
    assert not [s for s in ("canary", "abc123", "abcdefgh", "\x00") if s in kept]
    assert "q=1" in kept
    assert (await verify(trail, session_id)).intact


@pytest.mark.parametrize(
    "said",
    [
        *(f"https://x.example/?q=1&{name}=canary-1" for name in ("api_key", "api-key", "APIKEY", "key")),
        "密钥sk-canary-1canary-1",
        "凭证Bearer canary-1canary-1",
        *(f"see ?{name}=canary-1" for name in ("Access_Token", "accesstoken", "TOKEN", "secret")),
        *(f"a;{name}=canary-1" for name in ("password", "Signature")),
        *(f"{scheme} canary-1canary" for scheme in ("Bearer", "BASIC")),
        *(f"{kind}-canary-1canary-1canary" for kind in ("sk", "pk", "RK")),
        f"moot_abcdefgh_{'canary-1' * 5}abc",
        "postgresql://somebody:canary-1@db.example/moot",
        '{"api_key": "canary-1"}',
    ],
)
def test_whatever_looks_like_a_secret_is_found_by_itself_and_deep_within_a_row(said):
    assert "canary" not in REDACT.text(f"x = 1, {said}")
    assert "canary" not in str(REDACT({"deep": [{"er": f"x = 1, {said}"}]}))


def test_a_row_has_the_digest_it_always_had():
    """Or every chain that is there would seem to be broken."""
    row = {
        "id": UUID(int=2**127 + 5),
        "session_id": UUID(int=7),
        "workspace_id": "default",
        "created_at": datetime(2026, 1, 1, 2, 3, 4, 5, tzinfo=UTC),
        "attempt": 3,
        "request_digest": None,
        "origin": "live",
        "service_name": "一",
        "operation": "daily",
        "request_params": {"b": 1.0, "a": [1, 2.5, True, None, {"z": UUID(int=3)}, float("nan"), 2**60]},
    }
    assert EXTERNAL_CALL.digest(row) == A_DIGEST
    assert EXTERNAL_CALL.digest({**row, "id": str(row["id"]), "attempt": 3.0}) == A_DIGEST

"""SQL over HTTP and from the SDK: as the rules allow it, on the record before it runs, as known at a moment."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from moot.desk import Moot
from moot.modules.governance.application.coordinator_agent import PersonAsked
from moot.modules.market_data.application.sql import TABLES, QueryResult, SqlDoor
from moot.remote.client import RemoteMoot
from moot.shared.domain.errors import Conflict, DecisionRejected, Forbidden, InvalidInput
from moot.shared.infrastructure.settings import Settings
from tests.access.desk import HERE, calling, new_key, open_app
from tests.fakes.clock import FixedClock

SQL = "/api/v1/market-data/sql"
DECISIONS = "/api/v1/coordinator/decisions"
ESCALATIONS = "/api/v1/coordinator/escalations"
NAMES = "SELECT symbol FROM companies WHERE symbol = '900001.DEMO'"
LAST_DAY = "SELECT max(trade_date) AS last FROM bars"
ASKS = {
    "id": "ours.ask",
    "name": "Ask first",
    "category": "tool",
    "condition": "payload.tool == 'database'",
    "action": "reject",
    "requires_human": True,
    "decision_types": ["tool_call"],
    "examples": [
        {"violates": True, "payload": {"tool": "database"}},
        {"violates": False, "payload": {"tool": "theirs"}},
    ],
}


@pytest.fixture
async def app(home, clock: FixedClock) -> AsyncIterator[FastAPI]:
    async with open_app(home, clock) as app:
        yield app


@pytest.fixture
async def client(app) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(app, address=HERE) as client:
        yield client


async def recorded(client: httpx.AsyncClient) -> list[tuple[str, str, str]]:
    items = (await client.get(DECISIONS)).json()["items"]
    return [(item["status"], item["requester"], item["payload"]["args"]["sql"]) for item in items]


async def test_a_select_is_answered_and_its_decision_is_on_the_record(client, clock):
    answer = await client.post(SQL, json={"sql": NAMES})
    body = answer.json()
    assert answer.status_code == 200, body
    assert (body["columns"], body["rows"], body["truncated"]) == (["symbol"], [["900001.DEMO"]], False)
    assert (body["sql"], body["notices"]) == (NAMES, [])
    assert datetime.fromisoformat(body["as_of"]) == clock.now()
    (decision,) = (await client.get(DECISIONS)).json()["items"]
    assert decision["payload"] == {"tool": "database", "args": {"sql": NAMES}}
    assert (decision["decision_type"], decision["status"], decision["requester"]) == (
        "tool_call",
        "approved",
        "api",
    )
    assert "goal" not in decision["context"]
    assert datetime.fromisoformat(decision["context"]["as_of"]) == clock.now()


async def test_the_decision_is_committed_before_the_query_runs(app, client, monkeypatch):
    tool, seen = app.state.desk.database_tool, []
    run = tool.query

    async def looking(sql: str, **more: Any) -> Any:
        seen.extend(await recorded(client))
        return await run(sql, **more)

    monkeypatch.setattr(tool, "query", looking)
    await client.post(SQL, json={"sql": NAMES})
    assert seen == [("approved", "api", NAMES)]


async def test_a_star_is_spelt_out_and_the_answer_says_so(client):
    body = (await client.post(SQL, json={"sql": "SELECT * FROM macro LIMIT 1"})).json()
    assert body["columns"] == TABLES["macro"]
    assert body["sql"].startswith("SELECT macro.event_time, ")
    (notice,) = body["notices"]
    assert "SQL that only reads (tools.sql_guard@1: SELECT * on a table" in notice
    assert (await recorded(client))[0] == ("modified", "api", "SELECT * FROM macro LIMIT 1")
    chinese = await client.post(
        SQL, json={"sql": "SELECT * FROM macro LIMIT 1"}, headers={"Accept-Language": "zh"}
    )
    assert "只读 SQL" in chinese.json()["notices"][0]


@pytest.mark.parametrize(
    ("sql", "because"),
    [
        ("DROP TABLE bars", "Only a single SELECT may run here."),
        ("SELECT 1; SELECT 2", "Only a single SELECT may run here."),
        ("SELECT a FROM passwords", "The table passwords may not be read."),
        ("SELECT a FROM read_csv('x')", ""),
        ("\u202eSELECT 1", "cannot be seen"),
    ],
)
async def test_what_the_rules_refuse_does_not_run(app, client, monkeypatch, sql, because):
    monkeypatch.setattr(app.state.desk.database_tool, "query", None)
    answer = await client.post(SQL, json={"sql": sql})
    body = answer.json()
    assert (answer.status_code, body["code"]) == (403, "DECISION_REJECTED")
    assert because in body["message"]
    (violation,) = body["details"]["violations"]
    assert violation["rule_id"] == "tools.sql_guard"
    assert body["message"].endswith(body["details"]["suggestions"][0])
    assert [status for status, _, _ in await recorded(client)] == ["rejected"]
    found = (await client.get(DECISIONS)).json()["items"][0]["id"]
    assert body["details"]["record_id"] == found


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"sql": ""},
        {"sql": " \n"},
        {"sql": 1},
        {"sql": "SELECT '\x00'"},
        {"sql": "SELECT 1" + " " * 100_000},
        {"sql": NAMES, "as_of": "soon"},
        {"sql": NAMES, "as_of": 1_700_000_000},
        {"sql": NAMES, "as_of": "2026-01-01T00:00:00"},
        {"sql": NAMES, "as_of": "2026-07-01"},
        {"sql": NAMES, "as_of": "2026-06-30T10:00:01+00:00"},
        {"sql": NAMES, "as_of": "0001-01-01T00:00:00+14:00"},
        {"sql": NAMES, "as_of": "9999-12-31T23:59:59-12:00"},
        {"sql": NAMES, "limit": 3},
    ],
)
async def test_what_cannot_be_asked_is_a_sentence_and_no_decision(client, wrong):
    answer = await client.post(SQL, json=wrong)
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST"), answer.text
    assert await recorded(client) == []


async def test_what_is_allowed_but_does_not_run_says_why(client):
    answer = await client.post(SQL, json={"sql": "SELECT nothing FROM bars"})
    assert (answer.status_code, answer.json()["code"]) == (400, "SQL_REFUSED")
    assert [status for status, _, _ in await recorded(client)] == ["approved"]


@pytest.mark.parametrize(
    ("as_of", "moment", "last"),
    [
        ("2024-07-01", "2024-07-01T15:59:59.999999+00:00", "2024-07-01"),
        ("2024-07-01T07:00:00+08:00", "2024-06-30T23:00:00+00:00", "2024-06-28"),
        ("2026-06-30", "2026-06-30T10:00:00+00:00", "2026-06-29"),
        (None, "2026-06-30T10:00:00+00:00", "2026-06-29"),
    ],
)
async def test_it_sees_what_was_known_at_the_moment(client, as_of, moment, last):
    body = (await client.post(SQL, json={"sql": LAST_DAY, "as_of": as_of})).json()
    assert datetime.fromisoformat(body["as_of"]) == datetime.fromisoformat(moment)
    assert body["rows"] == [[last]]


async def test_values_that_json_has_no_word_for_come_through(client, clock):
    sql = """SELECT CAST('nan' AS DOUBLE) AS none, CAST('inf' AS DOUBLE) AS endless, 1.50 AS decimal,
        DATE '2026-01-05' AS day, CAST('2026-01-05 10:00:00' AS TIMESTAMP) AS moment, NULL AS nothing, TRUE AS yes"""
    body = (await client.post(SQL, json={"sql": sql})).json()
    row = [None, None, 1.5, "2026-01-05", "2026-01-05T10:00:00+00:00", None, True]
    assert body.get("rows") == [row], body
    nested = ([date(2026, 1, 5), {"close": math.nan}], time(10, 30), timedelta(days=1), b"x")
    facts = {"sql": sql, "as_of": clock.now(), "columns": tuple("abcd"), "truncated": False, "took_ms": 1.0}
    result = QueryResult(rows=(nested,), **facts)
    assert result.model_dump(mode="json")["rows"] == [
        [["2026-01-05", {"close": None}], "10:30:00", "1 day, 0:00:00", "b'x'"]
    ]
    assert result.model_dump()["rows"] == (nested,), "in Python they stay what they are"


async def test_whoever_needs_a_person_is_told_where_it_waits_and_goes_on_once_approved(app, client):
    await client.post("/api/v1/coordinator/rules", json=ASKS)
    asked = await client.post(SQL, json={"sql": NAMES})
    body = asked.json()
    assert (asked.status_code, body["code"], body["success"]) == (202, "APPROVAL_NEEDED", False)
    waiting = body["details"]["escalation_id"]
    assert waiting in body["message"]
    assert asked.headers["Location"] == f"{ESCALATIONS}/{waiting}"
    assert (await client.get(asked.headers["Location"])).json()["status"] == "pending"
    assert (await client.post(SQL, json={"sql": NAMES})).json()["details"]["escalation_id"] == waiting
    await client.post(f"{ESCALATIONS}/{waiting}/approve", json={"by": "ann", "reason": "fine"})
    done = await client.post(SQL, json={"sql": NAMES})
    assert (done.status_code, done.json()["rows"]) == (200, [["900001.DEMO"]])
    assert "approved by a person" in done.json()["notices"][0]
    assert (await client.post(SQL, json={"sql": NAMES})).status_code == 202, "once means once"


async def test_what_a_person_wrote_instead_is_what_runs(app, client):
    await client.post("/api/v1/coordinator/rules", json=ASKS)
    waiting = (await client.post(SQL, json={"sql": NAMES})).json()["details"]["escalation_id"]
    instead = {"tool": "database", "args": {"sql": "SELECT 42 AS answer"}}
    edited = await client.post(
        f"{ESCALATIONS}/{waiting}/edit", json={"by": "ann", "reason": "less", "payload": instead}
    )
    assert edited.status_code == 200, edited.text
    body = (await client.post(SQL, json={"sql": NAMES})).json()
    assert (body["sql"], body["rows"]) == ("SELECT 42 AS answer", [[42]])


async def test_a_key_asks_in_its_own_name_and_workspace(app, client):
    async with calling(app, await new_key(app, "research", workspace="theirs")) as theirs:
        assert (await theirs.post(SQL, json={"sql": NAMES})).status_code == 200
        assert await recorded(theirs) == [("approved", "test", NAMES)]
    assert await recorded(client) == []


async def test_the_tables_are_told_with_their_columns(app, client):
    assert (await client.get("/api/v1/market-data/tables")).json() == TABLES
    async with calling(app, await new_key(app, "read")) as reader:
        assert (await reader.get("/api/v1/market-data/tables")).status_code == 200


@asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[RemoteMoot]:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", ws="none", lifespan="off"))
    running = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        async with RemoteMoot(f"http://127.0.0.1:{port}", locale="en-US") as desk:
            yield desk
    finally:
        server.should_exit = True
        await running


async def test_a_desk_elsewhere_answers_and_refuses_as_ones_own(app, client):
    own = app.state.desk
    sql = (
        "SELECT symbol, trade_date, close FROM bars WHERE symbol = '900001.DEMO' ORDER BY trade_date LIMIT 2"
    )
    here = await own.query(sql, as_of=date(2024, 7, 1), locale="en-US")
    assert here.rows[0][:2] == ("900001.DEMO", date(2018, 1, 2))
    assert here.as_of == datetime(2024, 7, 1, 15, 59, 59, 999_999, UTC)
    async with served(app) as desk:
        there = await desk.query(sql, as_of=date(2024, 7, 1))
        assert there.model_dump(mode="json", exclude={"took_ms"}) == here.model_dump(
            mode="json", exclude={"took_ms"}
        )
        with pytest.raises(Forbidden) as refused_there:
            await desk.query("DROP TABLE bars")
        with pytest.raises(DecisionRejected) as refused_here:
            await own.query("DROP TABLE bars", locale="en-US")
        assert refused_there.value.code == refused_here.value.code
        assert str(refused_there.value) == refused_here.value.in_locale("en-US")
        with pytest.raises(InvalidInput, match="lies in the future"):
            await desk.query(sql, as_of="2027-01-01")
        await client.post("/api/v1/coordinator/rules", json=ASKS)
        with pytest.raises(PersonAsked) as waits:
            await desk.query(NAMES)
        pending = (await client.get(f"{ESCALATIONS}/{waits.value.details['escalation_id']}")).json()
        assert (pending["status"], pending["requester"]) == ("pending", "api")
        with pytest.raises(Conflict) as waits_here:
            await own.query(NAMES)
        assert waits_here.value.details.keys() == {"escalation_id", "reason"}


async def test_without_a_record_the_rules_hold_and_nobody_can_be_asked(home, clock):
    async with Moot(Settings(home=home, log_level="error", persistence=False), clock=clock) as desk:
        assert (await desk.query(NAMES)).rows == (("900001.DEMO",),)
        with pytest.raises(DecisionRejected, match="Only a single SELECT"):
            await desk.query("DROP TABLE bars", locale="en-US")
        for _ in range(5):
            with pytest.raises(ConnectionError):
                async with desk.governance.agent.breakers.of("tushare").call(counts=lambda _error: True):
                    raise ConnectionError
        assert (await desk.query(NAMES)).rows == (("900001.DEMO",),), "what is kept needs no source outside"


class Loose:
    """Rules that take the statement away, as a corrector may where nothing guards SQL."""

    def __init__(self, **args: Any) -> None:
        self.args = args

    async def allow(self, *_args: Any, **_names: Any) -> tuple[dict[str, Any], None]:
        return self.args, None


@pytest.mark.parametrize("left", [{}, {"sql": None}, {"sql": "SELECT 1", "limit": 3}])
async def test_a_call_that_was_changed_beyond_recognition_is_refused(app, clock, left):
    door = SqlDoor(app.state.desk.database_tool, Loose(**left), clock)
    with pytest.raises(InvalidInput):
        await door.query({"sql": NAMES}, requester="desk", workspace="default", locale="en-US")

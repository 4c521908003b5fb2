"""Decisions over HTTP: what an agent is told, and what can be found afterwards."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.access.desk import HERE, calling, open_app
from tests.fakes.clock import FixedClock, TickingClock

V1 = "/api/v1/coordinator"
DECISIONS = f"{V1}/decisions"
NOBODY = "7d3c8a52-0c3e-4f0e-9d0a-5b1f6a1c2e3d"
DROP = {"tool": "database", "args": {"sql": "DROP TABLE bars"}}
READ = {"tool": "database", "args": {"sql": "SELECT 1"}}
ASKS = {"open_breakers": ["tushare"]}
"""A person is asked while something is broken."""

BUY = {
    "symbol": "900001.DEMO",
    "action": "BUY",
    "position_percent": 0.35,
    "confidence": 0.8,
    "stop_loss": "9.10",
    "take_profit": "12.40",
    "entry_strategy": "at once",
    "time_horizon": "3 months",
    "risk_warnings": ["liquidity"],
    "reasoning": "cheap",
    "engine": "rubric",
}


@pytest.fixture
async def app(home, clock: FixedClock) -> AsyncIterator[FastAPI]:
    async with open_app(home, TickingClock(clock.now())) as app:
        yield app


@pytest.fixture
async def client(app) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(app, address=HERE) as client:
        yield client


async def decide(
    client: httpx.AsyncClient, payload: dict[str, Any], *, dry_run: bool = False, **changes: Any
) -> httpx.Response:
    body = {"decision_type": "tool_call", "payload": payload, **changes}
    return await client.post(DECISIONS, json=body, params={"dry_run": dry_run})


async def found(client: httpx.AsyncClient, **conditions: str) -> list[str]:
    page = (await client.get(DECISIONS, params=conditions)).json()
    assert page["total"] >= len(page["items"])
    return [item["decision_id"] for item in page["items"]]


async def test_what_breaks_no_rule_is_approved_and_on_the_record(client):
    answer = await decide(client, READ, decision_id="d-1", requester="analyst")
    body = answer.json()
    assert (answer.status_code, body["status"], body["violations"]) == (200, "approved", [])
    assert (body["modified_payload"], body["escalation_id"]) == (None, None)
    assert body["explanation"] == "approved: no rule is broken"
    asked = body["original_request"]
    assert (asked["decision_id"], asked["requester"], asked["payload"]) == ("d-1", "analyst", READ)
    (item,) = (await client.get(DECISIONS)).json()["items"]
    assert (item["id"], item["decision_id"], item["ruleset_digest"]) == (
        body["record_id"],
        "d-1",
        body["ruleset"],
    )


async def test_what_the_rules_change_is_told_with_who_changed_what(client):
    body = (await decide(client, BUY, decision_type="verdict")).json()
    assert (body["status"], body["modified_payload"]["position_percent"]) == ("modified", 0.2)
    (change,) = body["changes"]
    assert (change["op"], change["path"], change["value"], change["was"], change["rule"]) == (
        "replace",
        "/position_percent",
        0.2,
        0.35,
        "risk.position_cap@1",
    )
    capped = "position 35% → 20%: Position cap (risk.position_cap@1: payload.position_percent > 0.2)"
    assert body["explanation"] == capped


async def test_what_is_rejected_is_an_error_that_holds_the_whole_result(client):
    answer = await decide(client, DROP)
    body = answer.json()
    assert (answer.status_code, body["success"], body["code"]) == (403, False, "DECISION_REJECTED")
    assert body["message"].startswith("rejected: SQL that only reads (tools.sql_guard@1: ")
    result = body["details"]
    assert (result["status"], result["explanation"]) == ("rejected", body["message"])
    assert [violation["rule_id"] for violation in result["violations"]] == ["tools.sql_guard"]
    assert result["suggestions"] != []
    assert (await client.get(DECISIONS)).json()["items"][0]["id"] == result["record_id"]


async def test_the_reader_s_language_is_that_of_the_answer(client):
    answer = await client.post(
        DECISIONS,
        json={"decision_type": "tool_call", "payload": DROP},
        headers={"Accept-Language": "zh"},
    )
    assert answer.json()["message"].startswith("拒绝：")
    assert answer.json()["details"]["violations"][0]["rule_name"] != "SQL that only reads"


async def test_what_needs_a_person_is_accepted_but_not_allowed(client):
    answer = await decide(client, READ, context=ASKS)
    body = answer.json()
    assert (answer.status_code, body["status"]) == (202, "escalated")
    assert answer.headers["location"] == f"{V1}/escalations/{body['escalation_id']}"
    waiting = (await client.get(answer.headers["location"])).json()
    assert (waiting["status"], waiting["payload"], waiting["requester"]) == ("pending", READ, "api")
    assert waiting["decision_row_id"] == body["record_id"]


async def test_a_dry_run_only_tells(client):
    for payload, context, status in (
        (READ, {}, "approved"),
        (DROP, {}, "rejected"),
        (READ, ASKS, "escalated"),
    ):
        answer = await decide(client, payload, context=context, dry_run=True)
        body = answer.json()
        assert (answer.status_code, body["status"]) == (200, status)
        assert (body["record_id"], body["escalation_id"]) == (None, None)
        assert body["explanation"].startswith(status.removeprefix("escalated"))
    assert (await client.get(DECISIONS)).json()["total"] == 0
    assert (await client.get(f"{V1}/escalations")).json()["total"] == 0


async def test_nobody_says_for_which_workspace_they_ask(client):
    body = (await decide(client, READ, context={"workspace": "theirs", "goal": "SELECT 1"})).json()
    assert body["original_request"]["context"] == {
        "locale": "en-US",
        "workspace": "default",
        "goal": "SELECT 1",
        "open_breakers": [],
    }


async def test_whoever_has_a_key_asks_in_its_name(app):
    issued = await app.state.access.create("desk bot", ["research"])
    async with calling(app, issued.secret) as client:
        own = (await decide(client, READ)).json()["original_request"]["requester"]
        agents = (await decide(client, READ, requester="Wang")).json()["original_request"]["requester"]
    assert (own, agents) == ("desk bot", "desk bot/Wang")


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("decision_type", '{"payload": {}}'),
        ("payload", '{"decision_type": "tool_call"}'),
        ("payload", '{"decision_type": "tool_call", "payload": []}'),
        ("payload", '{"decision_type": "tool_call", "payload": {"x": NaN}}'),
        ("body", '{"decision_type": "tool_call", "payload": {"x": "\\ud800"}}'),
        ("payload", '{"decision_type": "tool_call", "payload": {"x": ' + "[" * 60 + "]" * 60 + "}}"),
        ("payload", '{"decision_type": "tool_call", "payload": {"\\u0000": 1}}'),
        ("decision_type", '{"decision_type": " ", "payload": {}}'),
        ("requester", '{"decision_type": "tool_call", "payload": {}, "requester": "a\\u0000"}'),
        ("context", '{"decision_type": "tool_call", "payload": {}, "context": {"x": Infinity}}'),
        ("decision_id", '{"decision_type": "tool_call", "payload": {}, "decision_id": ""}'),
        ("body", '{"decision_type": "tool_call", "payload": {}, "approved": true}'),
    ],
)
async def test_what_is_no_decision_is_refused_and_not_decided(client, field, body):
    answer = await client.post(DECISIONS, content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")
    assert answer.json()["details"]["errors"][0]["field"] == field
    assert (await client.get(DECISIONS)).json()["total"] == 0


@pytest.mark.parametrize(
    ("asked", "first"),
    [("tool_cal", "tool_call"), ("Verdict", "verdict"), ("research_requests", "research_request")],
)
async def test_a_type_of_decision_nobody_makes_is_refused_with_those_there_are(client, asked, first):
    answer = await client.post(DECISIONS, json={"decision_type": asked, "payload": {}})
    assert answer.status_code == 400
    said = f"decision_type: '{asked}' is not known. Did you mean {first}? Allowed: research_request, "
    assert answer.json()["message"].startswith(said)
    [error] = answer.json()["details"]["errors"]
    known = ["research_request", "plan", "node", "tool_call", "verdict"]
    assert (error["nearest"], error["allowed"]) == ([first], known)


async def test_a_call_of_a_tool_nobody_told_anything_about_says_so(client):
    unknown = (await decide(client, {"tool": "fax", "args": {"number": "1"}})).json()
    assert unknown["explanation"].startswith("approved: no rule is broken; nothing about this tool was known")
    [kept] = (await client.get(DECISIONS)).json()["items"]
    assert (kept["explanation"], kept["result"]["notes"]) == (unknown["explanation"], unknown["notes"])
    told = await decide(client, {"tool": "fax", "args": {}}, context={"goal": "Fax it"})
    assert told.json().get("notes", []) == []


async def test_decisions_are_found_by_what_they_were_and_when(client):
    await decide(client, READ, decision_id="d-1", requester="one")
    await decide(client, DROP, decision_id="d-2", requester="two")
    await decide(client, BUY, decision_type="verdict", decision_id="d-3", requester="one")
    assert await found(client) == ["d-3", "d-2", "d-1"]
    assert await found(client, status="rejected") == ["d-2"]
    assert await found(client, type="verdict") == ["d-3"]
    assert await found(client, requester="one") == ["d-3", "d-1"]
    assert await found(client, requester="one", type="tool_call") == ["d-1"]
    assert await found(client, **{"from": "2026-06-30", "to": "2026-06-30"}) == ["d-3", "d-2", "d-1"]
    assert await found(client, **{"from": "2026-07-01"}) == await found(client, to="2026-06-29") == []
    assert await found(client, session=NOBODY) == []


async def test_a_list_comes_in_pages(client):
    for number in range(3):
        await decide(client, READ, decision_id=f"d-{number}")
    page = (await client.get(DECISIONS, params={"page": 2, "page_size": 2})).json()
    assert (page["total"], page["total_is_more"], page["page"], page["page_size"]) == (3, False, 2, 2)
    assert [item["decision_id"] for item in page["items"]] == ["d-0"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", "fine"),
        ("session", "s-1"),
        ("from", "soon"),
        ("page", "0"),
        ("page_size", "201"),
        ("type", "\0"),
    ],
)
async def test_a_list_nobody_can_make_is_refused(client, name, value):
    answer = await client.get(DECISIONS, params={name: value})
    (problem,) = answer.json()["details"]["errors"]
    assert answer.status_code == 400
    assert name == problem["field"] or name in problem["got"]


async def test_a_filter_nobody_knows_is_named(client):
    answer = await client.get(DECISIONS, params={"x": "1"})
    [error] = answer.json()["details"]["errors"]
    assert (answer.status_code, error["got"]) == (400, ["x"])


async def test_a_session_s_decisions_explain_themselves_in_the_reader_s_language(client):
    question = {"symbol": "900001.DEMO", "experts": ["macro_intelligence"], "skip_debate": True}
    done = (await client.post(f"{V1}/research", json=question)).json()
    path = f"{V1}/research/sessions/{done['session_id']}/decisions"
    listed = (await client.get(path)).json()
    assert [each["decision_id"] for each in listed] == ["research_request", "node:macro_intelligence"]
    assert {each["explanation"] for each in listed} == {"approved: no rule is broken"}
    assert await found(client, session=done["session_id"]) == ["node:macro_intelligence", "research_request"]
    chinese = (await client.get(path, headers={"Accept-Language": "zh"})).json()
    assert {each["explanation"] for each in chinese} == {"通过：未违反任何规则"}


async def test_decisions_of_no_session_are_not_found(client):
    answer = await client.get(f"{V1}/research/sessions/{NOBODY}/decisions")
    assert (answer.status_code, answer.json()["code"]) == (404, "SESSION_NOT_FOUND")
    assert (await client.get(f"{V1}/research/sessions/x/decisions")).status_code == 400

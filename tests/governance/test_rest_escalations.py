"""A person's answer over HTTP: who may give it, how often, and what follows from it."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.access.desk import HERE, calling, open_app
from tests.fakes.clock import FixedClock, TickingClock

V1 = "/api/v1/coordinator"
ESCALATIONS = f"{V1}/escalations"
NOBODY = "7d3c8a52-0c3e-4f0e-9d0a-5b1f6a1c2e3d"
READ = {"tool": "database", "args": {"sql": "SELECT 1"}}
OTHER = {"tool": "database", "args": {"sql": "SELECT 2"}}
DROP = {"tool": "database", "args": {"sql": "DROP TABLE bars"}}
WHY = {"reason": "known outage"}
SYMBOLS = ("900001.DEMO", "900002.DEMO")


@pytest.fixture
async def app(home, clock: FixedClock) -> AsyncIterator[FastAPI]:
    async with open_app(home, TickingClock(clock.now())) as app:
        yield app


@pytest.fixture
async def client(app) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(app, address=HERE) as client:
        yield client


async def keyed(app: FastAPI, name: str, *scopes: str) -> httpx.AsyncClient:
    issued = await app.state.access.create(name, scopes)
    return calling(app, issued.secret)


async def ask(client: httpx.AsyncClient, payload: dict[str, Any] = READ, **changes: Any) -> httpx.Response:
    context = {"open_breakers": ["tushare"]}
    body = {"decision_type": "tool_call", "payload": payload, "context": context, **changes}
    return await client.post(f"{V1}/decisions", json=body)


async def waiting(client: httpx.AsyncClient, **changes: Any) -> str:
    """The path of a new escalation."""
    return str((await ask(client, **changes)).headers["location"])


async def test_what_a_person_approves_may_be_done_once(client):
    path = await waiting(client)
    approved = await client.post(f"{path}/approve", json=WHY)
    body = approved.json()
    assert (approved.status_code, body["status"]) == (200, "approved")
    assert (body["decided_by"], body["reason"]) == ("local", "known outage")
    done = await ask(client)
    assert (done.status_code, done.json()["status"]) == (200, "approved")
    assert done.json()["explanation"].startswith("approved by a person: ")
    assert (await ask(client)).status_code == 202


async def test_what_a_person_rejects_is_rejected(client):
    path = await waiting(client)
    rejected = (await client.post(f"{path}/reject", json={**WHY, "by": "Li Ming"})).json()
    assert (rejected["status"], rejected["decided_by"]) == ("rejected", "Li Ming")
    assert (await ask(client)).status_code == 403


async def test_a_person_can_have_something_else_done_instead(client):
    path = await waiting(client)
    edited = (await client.post(f"{path}/edit", json={**WHY, "payload": OTHER})).json()
    assert (edited["status"], edited["payload"], edited["approved_payload"]) == ("approved", READ, OTHER)
    done = (await ask(client)).json()
    assert (done["status"], done["modified_payload"]) == ("modified", OTHER)


async def test_what_the_rules_forbid_a_person_cannot_put_in_its_place(client):
    path = await waiting(client)
    answer = await client.post(f"{path}/edit", json={**WHY, "payload": DROP})
    assert (answer.status_code, answer.json()["code"]) == (403, "EDIT_REJECTED")
    assert [violation["rule"] for violation in answer.json()["details"]["violations"]] == [
        "tools.sql_guard@1"
    ]
    assert (await client.get(path)).json()["status"] == "pending"


@pytest.mark.parametrize("requester", [None, "agent 7"])
async def test_whose_key_asked_cannot_answer_with_it(app, requester):
    names = {"requester": requester} if requester else {}
    async with await keyed(app, "Li Ming", "research", "approve") as client:
        path = await waiting(client, **names)
        for deed, more in (("approve", {}), ("reject", {}), ("edit", {"payload": OTHER})):
            answer = await client.post(f"{path}/{deed}", json={**WHY, **more})
            assert (answer.status_code, answer.json()["code"]) == (403, "OWN_REQUEST")
    async with await keyed(app, "Wang Fang", "approve") as client:
        approved = await client.post(f"{path}/approve", json=WHY)
    assert (approved.status_code, approved.json()["decided_by"]) == (200, "Wang Fang")


async def test_on_this_machine_too_who_asked_cannot_answer(client):
    path = await waiting(client, requester="Li Ming")
    answer = await client.post(f"{path}/approve", json={**WHY, "by": "li ming"})
    assert (answer.status_code, answer.json()["code"]) == (403, "OWN_REQUEST")


async def test_a_key_answers_in_nobody_else_s_name(app, client):
    path = await waiting(client)
    async with await keyed(app, "Wang Fang", "approve") as theirs:
        answer = await theirs.post(f"{path}/approve", json={**WHY, "by": "Li Ming"})
        assert answer.status_code == 400
        assert answer.json()["message"].startswith("Li Ming is not whose key this is")
        own = await theirs.post(f"{path}/approve", json={**WHY, "by": "Wang Fang"})
    assert own.json()["decided_by"] == "Wang Fang"


async def test_an_answer_is_given_once(client):
    path = await waiting(client)
    await client.post(f"{path}/reject", json=WHY)
    for deed, more in (("approve", {}), ("reject", {}), ("edit", {"payload": OTHER})):
        answer = await client.post(f"{path}/{deed}", json={**WHY, **more})
        assert (answer.status_code, answer.json()["code"]) == (409, "ESCALATION_CLOSED")


@pytest.mark.parametrize("body", [{}, {"reason": ""}, {"reason": "  "}, {"reason": "x", "approved": True}])
async def test_an_answer_needs_a_reason_and_nothing_else(client, body):
    path = await waiting(client)
    assert (await client.post(f"{path}/approve", json=body)).status_code == 400
    assert (await client.post(f"{path}/edit", json=WHY)).status_code == 400
    assert (await client.get(path)).json()["status"] == "pending"


async def test_what_waits_is_listed_oldest_first_until_it_is_answered(client):
    first, second = await waiting(client), await waiting(client, payload=OTHER)
    page = (await client.get(ESCALATIONS)).json()
    assert [f"{ESCALATIONS}/{item['id']}" for item in page["items"]] == [first, second]
    assert (page["total"], page["page"], page["page_size"]) == (2, 1, 20)
    await client.post(f"{first}/reject", json=WHY)
    page = (await client.get(ESCALATIONS, params={"page_size": 1})).json()
    assert (page["total"], [item["payload"] for item in page["items"]]) == (1, [OTHER])
    assert (await client.get(ESCALATIONS, params={"page_size": 0})).status_code == 400


async def test_what_was_decided_is_listed_by_how_it_stands(client):
    paths = {name: await waiting(client, requester=name) for name in ("waits", "yes", "no", "done")}
    await client.post(f"{paths['no']}/reject", json={"reason": "not this quarter"})
    for name in ("yes", "done"):
        await client.post(f"{paths[name]}/approve", json=WHY)
    assert (await ask(client, requester="done")).status_code == 200

    async def listed(**asked: str) -> list[str]:
        page = (await client.get(ESCALATIONS, params=asked)).json()
        assert page["total"] == len(page["items"])
        return [item["requester"] for item in page["items"]]

    assert await listed() == await listed(status="pending") == ["waits"]
    assert await listed(status="decided") == ["done", "yes", "no"]
    assert sorted(await listed(status="all")) == ["done", "no", "waits", "yes"]
    assert [await listed(status=s) for s in ("approved", "rejected", "used", "expired")] == [
        ["yes"],
        ["no"],
        ["done"],
        [],
    ]
    [no] = (await client.get(ESCALATIONS, params={"status": "rejected"})).json()["items"]
    assert (no["decided_by"], no["reason"]) == ("local", "not this quarter")
    unknown = await client.get(ESCALATIONS, params={"status": "open"})
    assert (unknown.status_code, "decided" in unknown.json()["message"]) == (400, True)


async def test_a_person_s_reason_is_told_to_whoever_asks_again(client):
    path = await waiting(client)
    await client.post(f"{path}/reject", json={"reason": "not this quarter", "by": "Li Ming"})
    refused = await ask(client)
    assert refused.json()["details"]["notes"] == ["Li Ming said: not this quarter"]
    assert refused.json()["message"].endswith("; Li Ming said: not this quarter")
    path = await waiting(client, payload=OTHER)
    await client.post(f"{path}/approve", json={"reason": "known outage", "by": "Li Ming"})
    done = (await ask(client, payload=OTHER)).json()
    assert done["notes"] == ["Li Ming said: known outage"]
    kept = (await client.get(f"{V1}/decisions")).json()["items"]
    assert [item["result"]["notes"] for item in kept[:2]] == [
        ["Li Ming said: known outage"],
        [],
    ]


async def test_an_escalation_nobody_has_is_not_found(client):
    for answer in (
        await client.get(f"{ESCALATIONS}/{NOBODY}"),
        await client.post(f"{ESCALATIONS}/{NOBODY}/approve", json=WHY),
        await client.post(f"{ESCALATIONS}/{NOBODY}/edit", json={**WHY, "payload": OTHER}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "ESCALATION_NOT_FOUND")
    assert (await client.get(f"{ESCALATIONS}/x")).status_code == 400


async def test_who_may_ask_may_not_answer_for_that(app, client):
    path = await waiting(client)
    async with await keyed(app, "agent", "research") as agent:
        assert (await agent.post(f"{path}/approve", json=WHY)).status_code == 403
    async with await keyed(app, "person", "approve") as person:
        assert (await ask(person)).status_code == 403
        assert (await person.post(f"{path}/approve", json=WHY)).status_code == 200


async def test_a_session_that_waits_says_why_and_for_which_escalation(client):
    examples = [{"violates": symbol == "900001.DEMO", "payload": {"symbol": symbol}} for symbol in SYMBOLS]
    asks = {
        "id": "house.asks",
        "name": "Ask first",
        "category": "behavior",
        "action": "reject",
        "requires_human": True,
        "condition": "payload.symbol == '900001.DEMO'",
        "decision_types": ["research_request"],
        "examples": examples,
    }
    assert (await client.post(f"{V1}/rules", json=asks)).status_code == 201
    order = {"symbol": "900001.DEMO", "experts": ["macro_intelligence"], "locale": "en-US"}
    receipt = await client.post(f"{V1}/research", json=order)
    body = receipt.json()
    [item] = (await client.get(ESCALATIONS)).json()["items"]
    assert (receipt.status_code, body["status"], body["escalation_id"]) == (202, "waiting", item["id"])
    assert body["reason"].startswith("waits for a person: Ask first (house.asks@1: payload.symbol == ")
    session = (await client.get(f"{V1}/research/sessions/{body['session_id']}")).json()
    assert (session["status"], session["reason"]) == ("waiting", item["why"][0])
    assert session["escalation_id"] == item["id"]

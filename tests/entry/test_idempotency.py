"""The same key and question are one session, however often they are sent."""

import asyncio
from collections import Counter

import pytest

from moot.shared.infrastructure.settings import Settings
from tests.entry.serving import (
    MACRO,
    ON_SQLITE,
    RESEARCH,
    SESSIONS,
    VALUATION,
    Served,
    calling,
    question,
    serving,
)

MANY = 50
KEY = {"Idempotency-Key": "order-66"}
THIRD_DAY = "2018-01-04"
"""Too early for the technical analyst."""


@pytest.fixture
async def desk(home, database):
    async with serving(
        Settings(home=home, database_url=database.safe_url, log_level="error"), worker=True
    ) as served:
        yield served


async def test_asked_again_the_answer_is_the_same_and_nobody_runs_twice(desk: Served, gate):
    await gate.open()
    first = await desk.http.post(RESEARCH, json=question(), headers=KEY)
    again = await desk.http.post(RESEARCH, json=question(), headers=KEY)
    reordered = dict(reversed(question().items()))
    once_more = await desk.http.post(RESEARCH, json=reordered, headers=KEY)
    later = await desk.http.post(RESEARCH, json=question(mode="async"), headers=KEY)
    assert [a.status_code for a in (first, again, once_more, later)] == [200, 200, 200, 202]
    assert first.json() == again.json() == once_more.json()
    assert later.json()["session_id"] == first.json()["session_id"]
    assert later.json()["status"] == "completed"
    assert Counter(gate.arrived) == {("900001.DEMO", MACRO): 1, ("900001.DEMO", VALUATION): 1}


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_many_at_once_are_one_session_and_one_run(desk: Served, gate, mode):
    asking = [
        asyncio.create_task(desk.http.post(RESEARCH, json=question(mode=mode), headers=KEY))
        for _ in range(MANY)
    ]
    await gate.reached(2)
    await gate.open()
    answers = await asyncio.gather(*asking)
    assert {answer.status_code for answer in answers} == {200 if mode == "sync" else 202}
    assert len({answer.json()["session_id"] for answer in answers}) == 1
    session = await desk.ended(answers[0].json()["session_id"])
    assert (await desk.count(), session["status"]) == (1, "completed")
    assert Counter(gate.arrived) == {("900001.DEMO", MACRO): 1, ("900001.DEMO", VALUATION): 1}
    if mode == "sync":
        assert all(answer.json() == answers[0].json() for answer in answers)


async def test_a_key_stands_for_one_question(desk: Served):
    first = await desk.http.post(RESEARCH, json=question(), headers=KEY)
    for other in (question("900002.DEMO"), question(experts=[MACRO]), question(skip_debate=False)):
        for mode in ("sync", "async"):
            answer = await desk.http.post(RESEARCH, json={**other, "mode": mode}, headers=KEY)
            body = answer.json()
            assert (answer.status_code, body["code"]) == (409, "IDEMPOTENCY_KEY_REUSED")
            assert body["details"]["session_id"] == first.json()["session_id"]
    assert await desk.count() == 1


@ON_SQLITE
async def test_a_failure_is_the_same_failure_again(desk: Served):
    asked = question(experts=["technical_analyst"], as_of=THIRD_DAY)
    first = await desk.http.post(RESEARCH, json=asked, headers=KEY)
    again = await desk.http.post(RESEARCH, json=asked, headers=KEY)
    assert (first.status_code, first.json()["code"]) == (500, "ALL_EXPERTS_FAILED")
    assert (again.status_code, again.json()) == (500, first.json())
    assert await desk.count() == 1


@ON_SQLITE
async def test_what_was_cancelled_under_a_key_stays_cancelled(desk: Served, gate):
    session = await desk.start(**KEY)
    await gate.reached(2)
    waiting = asyncio.create_task(desk.http.post(RESEARCH, json=question(), headers=KEY))
    assert (await desk.cancel(session)).json()["status"] == "cancelled"
    for answer in (await waiting, await desk.http.post(RESEARCH, json=question(), headers=KEY)):
        assert (answer.status_code, answer.json()["code"]) == (409, "SESSION_CANCELLED")
        assert answer.json()["details"]["session_id"] == session


@ON_SQLITE
async def test_a_retry_has_keys_too(desk: Served):
    asked = question(experts=["technical_analyst", MACRO], as_of=THIRD_DAY)
    parent = (await desk.http.post(RESEARCH, json=asked)).json()["session_id"]
    path = f"{RESEARCH}/{parent}/retry"
    answers = await asyncio.gather(
        *(desk.http.post(path, json={"skip_debate": True}, headers=KEY) for _ in range(5))
    )
    assert {answer.status_code for answer in answers} == {200}
    assert [a.json()["session_id"] for a in answers[:1] * 5] == [a.json()["session_id"] for a in answers]
    assert len((await desk.detail(parent))["retries"]) == 1
    other = await desk.http.post(path, json={"skip_debate": False}, headers=KEY)
    assert (other.status_code, other.json()["code"]) == (409, "IDEMPOTENCY_KEY_REUSED")


async def test_each_workspace_has_its_own_keys(desk: Served):
    ours = (await desk.http.post(RESEARCH, json=question(), headers=KEY)).json()["session_id"]
    issued = await desk.desk.access.create("theirs", ["research"], "theirs")
    async with calling(desk.http.base_url.port or 0, issued.secret) as http:
        answer = await http.post(RESEARCH, json=question("900002.DEMO"), headers=KEY)
        theirs = answer.json()["session_id"]
        assert answer.status_code == 200
        assert theirs != ours
        assert (await http.get(f"{SESSIONS}/{ours}")).status_code == 404
        assert (await http.get(SESSIONS)).json()["total"] == 1


@pytest.mark.parametrize("mode", ["sync", "async"])
@ON_SQLITE
async def test_a_malformed_key_is_a_400_and_stores_nothing(desk: Served, mode):
    for key in (b"", b"k" * 256, "schlüssel".encode("latin-1"), b"tab\there"):
        answer = await desk.http.post(RESEARCH, json=question(mode=mode), headers={"Idempotency-Key": key})
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST"), key
    longest = {"Idempotency-Key": "k" * 255}
    assert (await desk.http.post(RESEARCH, json=question(), headers=longest)).status_code == 200
    assert await desk.count() == 1

"""Sessions in the background over REST: a receipt at once, progress meanwhile, the answer later, or a stop."""

import asyncio
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import select

from moot.desk import Moot
from moot.modules.coordinator.application import sessions
from moot.modules.llm_platform.infrastructure.tables import SpendingRow
from moot.shared.infrastructure.settings import Settings
from tests.entry.serving import (
    IN_TIME,
    MACRO,
    NOBODY,
    ON_SQLITE,
    RESEARCH,
    SESSIONS,
    VALUATION,
    Served,
    frames,
    question,
    serving,
    until,
)
from tests.fakes.careful_model import careful
from tests.fakes.llm_server import Hang

THIRD_DAY = "2018-01-04"
"""Too early for the technical analyst, now and on every retry."""


@pytest.fixture
def settings(home, database):
    return Settings(home=home, database_url=database.safe_url, log_level="error", lease_seconds=1)


@pytest.fixture
async def desk(settings):
    async with serving(settings, worker=True) as served:
        yield served


@pytest.mark.parametrize(
    ("more", "headers"),
    [({"mode": "async"}, {}), ({}, {"Prefer": "respond-async, wait=10"})],
    ids=["mode", "prefer"],
)
@ON_SQLITE
async def test_a_receipt_comes_at_once_and_its_links_lead_to_the_answer(desk: Served, gate, more, headers):
    answer = await desk.http.post(RESEARCH, json=question(**more), headers=headers)
    assert answer.status_code == 202
    body = answer.json()
    here = f"{SESSIONS}/{body['session_id']}"
    assert (body["status"], answer.headers["location"]) == ("queued", here)
    assert body["links"] == {
        "session": here,
        "events": f"{here}/events",
        "report": f"{here}/report",
        "decisions": f"{here}/decisions",
        "cancel": f"{here}/cancel",
    }
    early = await desk.http.get(body["links"]["report"])
    assert (early.status_code, early.json()["code"]) == (409, "SESSION_RUNNING")
    await gate.open()
    assert frames((await desk.http.get(body["links"]["events"])).text)[-1].event == "done"
    report = await desk.http.get(body["links"]["report"], headers={"Accept": "application/json"})
    assert (report.status_code, report.json()["overall_status"]) == (200, "completed")
    late = await desk.http.post(body["links"]["cancel"])
    assert (late.status_code, late.json()["code"]) == (409, "SESSION_ENDED")


@ON_SQLITE
async def test_the_answer_is_that_of_a_synchronous_run(desk: Served):
    asked = question(as_of="2026-06-30", skip_debate=False)
    waited = (await desk.http.post(RESEARCH, json=asked)).json()
    detached = (await desk.http.post(RESEARCH, json={**asked, "mode": "detached"})).json()
    session = await desk.start(asked)
    await desk.ended(session)
    report = await desk.http.get(f"{SESSIONS}/{session}/report", headers={"Accept": "application/json"})
    different = {name for name in waited if waited[name] != report.json()[name]}
    assert different == {"session_id"}
    assert {name for name in waited if waited[name] != detached[name]} == {"session_id"}


@ON_SQLITE
async def test_a_detached_answer_comes_when_the_session_ends_and_not_a_while_later(desk: Served, monkeypatch):
    monkeypatch.setattr(sessions, "LOOK_AGAIN", IN_TIME)
    async with asyncio.timeout(IN_TIME / 2):
        answer = await desk.http.post(RESEARCH, json=question(mode="detached"))
    assert answer.status_code == 200


@ON_SQLITE
async def test_progress_shows_every_node_with_its_times(desk: Served, gate):
    session = await desk.start(question(skip_debate=False))
    await gate.reached(2)

    async def progress() -> dict[str, dict]:
        detail = await desk.detail(session)
        assert detail["progress"], detail
        return {node["node"]: node for node in detail["progress"]}

    async with asyncio.timeout(IN_TIME):
        while (meanwhile := await progress())[MACRO]["status"] == "waiting":
            await asyncio.sleep(0.01)
    assert {name: node["status"] for name, node in meanwhile.items()} == {
        MACRO: "running",
        VALUATION: "running",
        "debate": "waiting",
        "judge": "waiting",
    }
    assert meanwhile[MACRO]["started_at"] and meanwhile[MACRO]["ended_at"] is None
    assert (meanwhile["judge"]["started_at"], meanwhile["judge"]["ended_at"]) == (None, None)
    await gate.open()
    ended = await desk.ended(session)
    assert ended["status"] == "completed"
    at_last = await progress()
    assert [node["status"] for node in at_last.values()] == ["success"] * 4
    for node in at_last.values():
        assert datetime.fromisoformat(node["started_at"]) <= datetime.fromisoformat(node["ended_at"])


@ON_SQLITE
async def test_bad_input_is_refused_before_anything_is_stored(desk: Served):
    for body in (
        question(mode="async", symbol="nonsense"),
        question(mode="async", experts=["palm_reader"]),
        question(mode="later"),
        question(mode="async", as_of="2199-01-01"),
        {"mode": "async", "experts": [MACRO]},
    ):
        answer = await desk.http.post(RESEARCH, json=body)
        assert (answer.status_code, answer.json()["success"]) == (400, False), body
    assert await desk.count() == 0


@ON_SQLITE
async def test_a_retry_runs_in_the_background_too_and_under_both_paths(desk: Served):
    first = await desk.http.post(
        RESEARCH, json=question(experts=["technical_analyst", MACRO], as_of=THIRD_DAY)
    )
    parent = first.json()["session_id"]
    children = []
    for path in (f"{RESEARCH}/{parent}/retry", f"{SESSIONS}/{parent}/retry"):
        answer = await desk.http.post(path, json={"mode": "async", "skip_debate": True})
        assert answer.status_code == 202, answer.text
        child = await desk.ended(answer.json()["session_id"])
        assert (child["parent_session_id"], child["retry_count"], child["status"]) == (parent, 1, "partial")
        children.append(child)
    reports = [
        (await desk.http.get(f"{SESSIONS}/{c['id']}/report", headers={"Accept": "application/json"})).json()
        for c in children
    ]
    assert {name for name in reports[0] if reports[0][name] != reports[1][name]} == {"session_id"}
    assert [c["id"] for c in children] == (await desk.detail(parent))["retries"]
    waited = await desk.http.post(f"{SESSIONS}/{parent}/retry", json={"skip_debate": True})
    assert (waited.status_code, waited.json()["retry_count"]) == (200, 1)


async def the_only_session(desk: Served) -> dict[str, Any]:
    """Its experts may set out a moment before it is in the list."""
    async with asyncio.timeout(IN_TIME):
        while not (items := (await desk.http.get(SESSIONS)).json()["items"]):
            await asyncio.sleep(0.01)
    (session,) = items
    return session


async def test_a_running_session_is_cancelled_and_says_so_to_all(desk: Served, gate):
    waiting = asyncio.create_task(desk.http.post(RESEARCH, json=question()))
    await gate.reached(2)
    session = await the_only_session(desk)
    answer = await desk.cancel(session["id"])
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    told = await waiting
    assert (told.status_code, told.json()["code"]) == (409, "SESSION_CANCELLED")
    last = frames(await desk.story(session["id"]))[-1]
    assert (last.event, last.data["status"], last.data["reason"]) == (
        "done",
        "cancelled",
        "The run was cancelled.",
    )
    again = await desk.cancel(session["id"])
    assert (again.status_code, again.json()["status"]) == (200, "cancelled")
    record = await desk.http.get(f"{SESSIONS}/{session['id']}/verification")
    assert record.json()["intact"] is True


async def test_cancelling_breaks_off_model_calls_and_settles_what_was_set_aside(home, database, llm_server):
    llm_server.default = Hang()
    settings = Settings(
        home=home,
        database_url=database.safe_url,
        log_level="error",
        llm_base_url=llm_server.url,
        llm_model="slow-1",
        llm_concurrency=16,
        budget_day_tokens=10_000_000,
        budget_session_tokens=1_000_000,
    )
    async with serving(settings, worker=True) as desk:
        session = await desk.start()
        await until(lambda: llm_server.in_flight == 2)
        answer = await desk.cancel(session)
        assert answer.json()["status"] == "cancelled"
        await until(lambda: llm_server.in_flight == 0)
        assert llm_server.broken_off == 2
        calls = (await desk.http.get(f"{SESSIONS}/{session}/llm-calls")).json()
        assert [call["status"] for call in calls] == ["unknown", "unknown"]
        async with database.session() as db:
            rows = list(await db.scalars(select(SpendingRow)))
        assert sorted(row.key.partition(":")[0] for row in rows) == ["day", "session"]
        assert [(row.tokens_reserved, row.cost_reserved) for row in rows] == [(0, 0), (0, 0)]
        assert all(row.tokens_spent > 0 for row in rows), "the vendor may charge for what was broken off"
        llm_server.default = careful
        assert (await desk.ended(await desk.start()))["status"] == "completed"


async def test_a_queued_session_is_cancelled_before_it_starts(home, database, gate):
    limited = Settings(home=home, database_url=database.safe_url, log_level="error", worker_sessions=1)
    async with serving(limited, worker=True) as desk:
        first = await desk.start(question("900001.DEMO"))
        await gate.reached(2)
        second = await desk.start(question("900002.DEMO"))
        assert (await desk.detail(second))["status"] == "queued"
        answer = await desk.cancel(second)
        assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
        assert frames(await desk.story(second))[-1].data["status"] == "cancelled"
        await gate.open()
        assert (await desk.ended(first))["status"] == "completed"
    assert gate.symbols == ["900001.DEMO"]


async def test_a_session_of_another_process_is_cancelled_when_its_owner_looks_up(
    desk: Served, gate, settings
):
    async with Moot(settings) as other:
        session = await other.start("900001.DEMO", [MACRO], skip_debate=True)
        await gate.reached(1)
        answer = await desk.cancel(str(session.id))
        told = (answer.status_code, answer.json()["status"])
        assert told in [(202, "running"), (200, "cancelled")], (
            "unless the owner happened to look up meanwhile"
        )
        assert (await desk.ended(str(session.id)))["status"] == "cancelled"


async def test_a_session_that_nobody_runs_is_cancelled_at_once(settings, gate):
    async with Moot(settings.model_copy(update={"worker": True})) as other:
        session = str((await other.start("900001.DEMO", [MACRO], skip_debate=True)).id)
        await gate.reached(1)
    async with Moot(settings) as later:
        assert [str(s.id) for s in await later.find_interrupted()] == [session]
        (left,) = await later.find_interrupted()
        assert (await later.cancel(left.id)).status == "cancelled"
        assert await later.find_interrupted() == []


@ON_SQLITE
async def test_what_is_not_there_cannot_be_cancelled(desk: Served):
    unknown, malformed = await desk.cancel(NOBODY), await desk.cancel("not-an-id")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "SESSION_NOT_FOUND")
    assert malformed.status_code == 400


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (question(), {}, "cancelled"),
        (question(mode="detached"), {}, "completed"),
        (question(), {"Idempotency-Key": "my-line-is-bad"}, "completed"),
    ],
    ids=["sync", "detached", "with a key"],
)
@ON_SQLITE
async def test_hanging_up_cancels_only_what_nobody_will_come_back_for(
    desk: Served, gate, body, headers, status
):
    waiting = asyncio.create_task(desk.http.post(RESEARCH, json=body, headers=headers))
    await gate.reached(2)
    session = await the_only_session(desk)
    waiting.cancel()
    await asyncio.wait({waiting})
    if status == "completed":
        with pytest.raises(TimeoutError):
            await desk_ended(desk, session["id"], within=0.3)
        await gate.open()
    assert (await desk.ended(session["id"]))["status"] == status


async def desk_ended(desk: Served, session_id: str, *, within: float) -> dict:
    async with asyncio.timeout(within):
        return await desk.ended(session_id)

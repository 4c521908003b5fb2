"""What a session tells while it runs, as server-sent events: complete, in order, and the same for whoever listens."""

import asyncio
from datetime import datetime

import fastapi.routing
import pytest

from moot.modules.llm_platform.application import llm_service
from moot.shared.infrastructure.settings import Settings
from tests.entry.serving import (
    IN_TIME,
    MACRO,
    NOBODY,
    ON_SQLITE,
    SESSIONS,
    VALUATION,
    Client,
    Served,
    calling,
    frames,
    question,
    serving,
)
from tests.fakes.careful_model import careful
from tests.fakes.llm_server import Status

WHOLE = question(skip_debate=False, as_of="2026-06-30")
THIRD_DAY = "2018-01-04"
"""Too early for the technical analyst."""


@pytest.fixture
def settings(home, database):
    return Settings(home=home, database_url=database.safe_url, log_level="error")


@pytest.fixture
async def desk(settings):
    async with serving(settings, worker=True) as served:
        yield served


async def test_a_session_tells_its_whole_story_in_order(desk: Served):
    session = await desk.start(WHOLE)
    text = await desk.story(session)
    told = frames(text)
    assert text.startswith("retry: 2000\n\nevent: session\n")
    assert [frame.id for frame in told] == list(range(1, len(told) + 1))
    assert [frame.event for frame in told[:2]] == ["session", "session"]
    assert [frame.data["status"] for frame in told[:2]] == ["queued", "running"]
    assert told[0].data["experts"] == [MACRO, VALUATION]
    assert {(f.event, f.data["node"]) for f in told[2:6]} == {
        (kind, node) for kind in ("node_started", "node_finished") for node in (MACRO, VALUATION)
    }
    assert [(f.event, f.data.get("node")) for f in told[6:]] == [
        ("node_started", "debate"),
        ("node_finished", "debate"),
        ("debate", None),
        ("node_started", "judge"),
        ("node_finished", "judge"),
        ("verdict", None),
        ("done", None),
    ]
    report = await desk.http.get(f"{SESSIONS}/{session}/report", headers={"Accept": "application/json"})
    verdict = report.json()["verdict"]
    assert told[-2].data["action"] == verdict["action"] == told[-1].data["verdict_action"]
    assert (told[-1].data["status"], told[-1].data["verdict_status"]) == ("completed", "judged")
    times = [datetime.fromisoformat(frame.data["at"]) for frame in told]
    assert times == sorted(times)


@ON_SQLITE
async def test_a_node_that_fails_is_told_with_its_reason(desk: Served):
    session = await desk.start(question(experts=["technical_analyst", MACRO], as_of=THIRD_DAY))
    told = frames(await desk.story(session))
    (failed,) = [frame for frame in told if frame.event == "node_failed"]
    assert failed.data["node"] == "technical_analyst"
    (node,) = [n for n in (await desk.detail(session))["nodes"] if n["node_type"] == "technical_analyst"]
    assert failed.data["error"] == node["error_message"] != ""


@ON_SQLITE
async def test_events_arrive_while_the_session_runs_and_late_listeners_hear_the_same(desk: Served, gate):
    session = await desk.start()
    await gate.reached(2)
    early = []
    async with (
        asyncio.timeout(IN_TIME),
        desk.http.stream("GET", f"{SESSIONS}/{session}/events") as stream,
    ):
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert "no-store" in stream.headers["cache-control"]
        async for line in stream.aiter_lines():
            early.append(line)
            if early.count("event: node_started") == 2 and line == "":
                await gate.open()
    assert "event: done" in early
    late = await desk.story(session)
    assert late == "\n".join(early) + "\n"


async def test_a_listener_goes_on_where_it_left(desk: Served):
    session = await desk.start(WHOLE)
    told = frames(await desk.story(session))
    for last in (0, 3, len(told) - 1):
        by_header = await desk.story(session, **{"Last-Event-ID": str(last)})
        by_query = await desk.http.get(f"{SESSIONS}/{session}/events", params={"after": last})
        assert frames(by_header) == frames(by_query.text) == told[last:]
    for beyond in (len(told), 10_000):
        assert frames(await desk.story(session, **{"Last-Event-ID": str(beyond)})) == []


async def test_the_stream_is_the_same_after_a_restart(settings):
    async with serving(settings, worker=True) as before:
        session = await before.start(WHOLE)
        first = await before.story(session)
    async with serving(settings, worker=True) as after:
        assert await after.story(session) == first
        assert (await after.story(session, **{"Last-Event-ID": "5"})).endswith(first.partition("id: 6\n")[2])


@ON_SQLITE
async def test_whoever_heard_the_end_does_not_hear_it_again(desk: Served):
    session = await desk.start()
    last = frames(await desk.story(session))[-1]
    assert (last.event, frames(await desk.story(session, **{"Last-Event-ID": str(last.id)}))) == ("done", [])


async def test_trying_again_is_told_with_the_reason(home, llm_server, monkeypatch):
    monkeypatch.setattr(llm_service, "PAUSES", (0.01, 0.01))
    llm_server.script(Status(500, "out of order"), Status(429, "slow down"))
    llm_server.default = careful
    settings = Settings(home=home, log_level="error", llm_base_url=llm_server.url, llm_model="careful-1")
    async with serving(settings, worker=True) as desk:
        session = await desk.start(question(experts=[MACRO]))
        told = frames(await desk.story(session))
        detail = await desk.detail(session)
    again = [frame.data for frame in told if frame.event == "node_retrying"]
    assert [(data["node"], data["attempt"]) for data in again] == [(MACRO, 2), (MACRO, 3)]
    assert "500" in again[0]["reason"]
    assert "429" in again[1]["reason"]
    assert [(node["status"], node["said"]) for node in detail["progress"]] == [("success", None)]
    assert len(llm_server.requests) == 3


@ON_SQLITE
async def test_a_quiet_stream_shows_that_it_lives(desk: Served, gate, monkeypatch):
    monkeypatch.setattr(fastapi.routing, "_PING_INTERVAL", 0.1)
    session = await desk.start()
    async with (
        asyncio.timeout(IN_TIME),
        desk.http.stream("GET", f"{SESSIONS}/{session}/events") as stream,
    ):
        lines = stream.aiter_lines()
        while await anext(lines) != ": ping":
            pass
        assert await anext(lines) == ""
        await gate.open()
        rest = [line async for line in lines]
    assert rest.count("event: done") == 1


@ON_SQLITE
async def test_a_last_event_that_cannot_be_is_a_400(desk: Served):
    session = await desk.start()
    path = f"{SESSIONS}/{session}/events"
    for last in ("", "x", "-1", "1.5", "²", "9" * 30):
        by_header = await desk.http.get(path, headers={"Last-Event-ID": last.encode()})
        by_query = await desk.http.get(path, params={"after": last})
        assert (by_header.status_code, by_query.status_code) == (400, 400), last
        assert by_header.json()["code"] == by_query.json()["code"] == "INVALID_REQUEST"
    await desk.ended(session)


@ON_SQLITE
async def test_what_is_not_there_tells_nothing(desk: Served):
    unknown = await desk.http.get(f"{SESSIONS}/{NOBODY}/events")
    malformed = await desk.http.get(f"{SESSIONS}/not-an-id/events")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "SESSION_NOT_FOUND")
    assert (malformed.status_code, malformed.json()["code"]) == (400, "INVALID_REQUEST")


@ON_SQLITE
async def test_another_workspace_neither_hears_nor_stops_a_session(desk: Served, gate):
    session = await desk.start()
    issued = await desk.desk.access.create("theirs", ["research"], "theirs")
    async with asyncio.timeout(IN_TIME), calling(desk.http.base_url.port or 0, issued.secret) as http:
        events = await http.get(f"{SESSIONS}/{session}/events")
        cancel = await Client(http).cancel(session)
        retry = await http.post(f"{SESSIONS}/{session}/retry")
    assert [answer.status_code for answer in (events, cancel, retry)] == [404, 404, 404]
    await gate.open()
    assert (await desk.ended(session))["status"] == "completed"

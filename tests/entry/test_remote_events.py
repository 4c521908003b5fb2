"""Following a session over HTTP, against a server that cuts lines, goes silent and tells things twice."""

import asyncio
import json
from datetime import UTC, datetime
from uuid import UUID

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from moot.modules.coordinator.application.session_history import SessionEvent
from moot.modules.coordinator.domain.exceptions import AllExpertsFailed, SessionCancelled, SessionNotFound
from moot.remote import connection
from moot.remote.client import RemoteMoot
from moot.shared.domain.errors import Conflict, Unavailable, UpstreamFailed
from tests.fakes.clock import PATIENCE

SESSION = UUID("7d3c8a52-0c3e-4f0e-9d0a-5b1f6a1c2e3d")
NOON = "2026-06-30T12:00:00Z"
MACRO = {"macro_env": "FAVORABLE", "confidence": 0.7}


def told(seq: int, kind: str, **data: object) -> bytes:
    written = json.dumps({**data, "at": NOON}, ensure_ascii=False)
    return f"id: {seq}\nevent: {kind}\ndata: {written}\n\n".encode()


STORY = [
    told(1, "session", status="running", symbol="900001.DEMO", experts=["macro_intelligence"], resumed=False),
    told(2, "node_finished", node="technical_analyst", status="success", duration_ms=0, reused=True),
    told(3, "node_started", node="macro_intelligence"),
    told(4, "node_finished", node="macro_intelligence", status="success", duration_ms=12, reused=False),
    told(5, "node_retrying", node="debate", reason="busy", attempt=2),
    told(6, "node_failed", node="debate", error="无法辩论", duration_ms=3),
    told(7, "node_finished", node="judge", status="skipped", duration_ms=0, reused=False),
    told(8, "done", status="completed", verdict_status="failed", verdict_action=None, reason="x"),
]
WHOLE = b"".join(STORY)

CUT, END, SILENCE = "cut", "end", "silence"
Line = tuple[bytes, str] | web.Response
"""What one connection gives and how it ends, or an answer that is no stream."""


def refusal(status: int, code: str) -> web.Response:
    body = {"success": False, "code": code, "message": "no", "details": {}}
    return web.json_response(body, status=status)


class Elsewhere:
    """A desk that answers by script: one line after the other, and the last one for ever."""

    width = 7
    """Bytes that are written at a time."""

    def __init__(self, *lines: Line, overall: str = "completed", status: str = "running") -> None:
        self._lines, self._overall, self._status = list(lines), overall, status
        self.heard_from: list[str | None] = []
        self.asked: list[tuple[str, dict[str, object]]] = []
        self.headers: list[str | None] = []
        self.cancelled = asyncio.Event()

    async def __aenter__(self) -> str:
        app, base = web.Application(), "/api/v1/coordinator/research"
        app.router.add_get(f"{base}/sessions/{SESSION}/events", self._events)
        app.router.add_get(f"{base}/sessions/{SESSION}", self._session)
        app.router.add_get(f"{base}/sessions/{SESSION}/report", self._report)
        app.router.add_post(f"{base}/sessions/{SESSION}/cancel", self._cancel)
        app.router.add_post(base, self._accept)
        app.router.add_post(f"{base}/{SESSION}/retry", self._accept)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _events(self, request: web.Request) -> web.StreamResponse:
        self.heard_from.append(request.headers.get("Last-Event-ID"))
        line = self._lines.pop(0) if len(self._lines) > 1 else self._lines[0]
        if isinstance(line, web.Response):
            return line
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        text, ending = line
        for at in range(0, len(text), self.width):
            await answer.write(text[at : at + self.width])
        if ending == SILENCE:
            await asyncio.sleep(3600)
        if ending == CUT and request.transport:
            request.transport.abort()
        return answer

    async def _accept(self, request: web.Request) -> web.Response:
        self.asked.append((request.path, await request.json()))
        self.headers.append(request.headers.get("Idempotency-Key"))
        return web.json_response({"session_id": str(SESSION), "status": "queued", "links": {}}, status=202)

    async def _session(self, _request: web.Request) -> web.Response:
        return web.json_response(detail(self._status))

    async def _report(self, _request: web.Request) -> web.Response:
        item = {"status": "success", "data": MACRO}
        body = {"symbol": "900001.DEMO", "overall_status": self._overall, "session_id": str(SESSION)}
        return web.json_response({**body, "expert_results": {"macro_intelligence": item}})

    async def _cancel(self, _request: web.Request) -> web.Response:
        self.cancelled.set()
        return web.json_response(detail("cancelled"))


def detail(status: str) -> dict[str, object]:
    node = {
        "id": str(SESSION),
        "session_id": str(SESSION),
        "node_type": "macro_intelligence",
        "status": "success",
        "result_data": MACRO,
        "started_at": NOON,
    }
    return {
        "id": str(SESSION),
        "symbol": "900001.DEMO",
        "status": status,
        "selected_experts": ["macro_intelligence"],
        "options": {},
        "trigger_source": "api",
        "workspace_id": "default",
        "as_of": NOON,
        "created_at": NOON,
        "nodes": [node],
        "progress": [],
        "retries": [],
        "notices": [],
    }


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    monkeypatch.setattr(connection, "PAUSES", (0.01, 0.02, 0.03))
    monkeypatch.setattr(connection, "SILENCE_SECONDS", 0.3)


async def seqs(desk: RemoteMoot, after: int = 0) -> list[int]:
    return [event.seq async for event in desk.events(SESSION, after=after)]


async def test_a_session_is_told_from_beginning_to_end():
    async with Elsewhere((WHOLE, END)) as address, RemoteMoot(address) as desk:
        events = [event async for event in desk.events(SESSION)]
    assert [event.seq for event in events] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert (events[5].type, events[5].at) == ("node_failed", datetime(2026, 6, 30, 12, tzinfo=UTC))
    assert events[5].data == {"node": "debate", "error": "无法辩论", "duration_ms": 3}


@pytest.mark.parametrize("width", [1, 2, 5, len(WHOLE)])
async def test_events_are_read_wherever_the_stream_is_cut(width, monkeypatch):
    monkeypatch.setattr(Elsewhere, "width", width)
    async with Elsewhere((b": ping\n\n" + WHOLE, END)) as address, RemoteMoot(address) as desk:
        events = [event async for event in desk.events(SESSION)]
    assert [event.seq for event in events] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert events[5].data["error"] == "无法辩论"


@pytest.mark.parametrize("ending", [CUT, END, SILENCE])
async def test_a_line_that_breaks_is_taken_up_where_it_broke(ending):
    """Within an event, wherever: what is not whole is told again."""
    half = len(STORY[0] + STORY[1]) + 40
    elsewhere = Elsewhere((WHOLE[:half], ending), (b": nothing new\n\n", ending), (b"".join(STORY[2:]), END))
    async with elsewhere as address, RemoteMoot(address) as desk:
        assert await seqs(desk) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert elsewhere.heard_from == [None, "2", "2"]


async def test_what_was_told_before_is_not_told_again():
    elsewhere = Elsewhere((WHOLE, END))
    async with elsewhere as address, RemoteMoot(address) as desk:
        assert await seqs(desk, after=6) == [7, 8]
    assert elsewhere.heard_from == ["6"]


async def test_a_session_that_has_ended_has_no_more_to_tell():
    elsewhere = Elsewhere((b"", END), status="completed")
    async with elsewhere as address, RemoteMoot(address) as desk:
        assert await seqs(desk, after=8) == []
    assert elsewhere.heard_from == ["8", "8"]


async def test_a_desk_that_starts_again_is_waited_for():
    down = web.Response(status=502, text="<html>")
    elsewhere = Elsewhere((STORY[0], CUT), down, refusal(503, "DESK_CLOSING"), (b"".join(STORY[1:]), END))
    async with elsewhere as address, RemoteMoot(address) as desk:
        assert await seqs(desk) == [1, 2, 3, 4, 5, 6, 7, 8]


async def test_signs_of_life_keep_the_line_open_and_silence_does_not():
    alive = Elsewhere(*[(b": still here\n\n", CUT)] * 10, (WHOLE, END))
    async with alive as address, RemoteMoot(address) as desk:
        assert (await seqs(desk))[-1] == 8
    dead = Elsewhere((b"", END))
    async with dead as address, RemoteMoot(address) as desk:
        with pytest.raises(Unavailable, match="stopped telling"):
            await seqs(desk)
    assert len(dead.heard_from) == 4


async def test_a_refusal_is_final():
    elsewhere = Elsewhere(refusal(404, "SESSION_NOT_FOUND"))
    async with elsewhere as address, RemoteMoot(address) as desk:
        with pytest.raises(SessionNotFound):
            await seqs(desk)
    assert len(elsewhere.heard_from) == 1


@pytest.mark.parametrize("data", ["{", "[]", "{}", '{"at": "noon"}', "1"])
async def test_an_event_that_makes_no_sense_is_an_error(data):
    text = f"id: 1\nevent: session\ndata: {data}\n\n".encode()
    async with Elsewhere((text, END)) as address, RemoteMoot(address) as desk:
        with pytest.raises(UpstreamFailed):
            await seqs(desk)


async def test_events_of_a_kind_from_the_future_are_passed_over():
    text = told(1, "poem", text="…") + told(2, "done")
    async with Elsewhere((text, END)) as address, RemoteMoot(address) as desk:
        assert await seqs(desk) == [2]


async def test_who_hears_enough_may_leave():
    async with Elsewhere((WHOLE, SILENCE)) as address, RemoteMoot(address) as desk:
        async for event in desk.events(SESSION):
            if event.seq == 3:
                break
        assert (await desk.session(SESSION)).id == SESSION


async def test_research_begun_in_the_background_is_found_by_its_key():
    elsewhere = Elsewhere((WHOLE, END))
    async with elsewhere as address, RemoteMoot(address, locale="en-US") as desk:
        session = await desk.start("900001.DEMO", ["macro_intelligence"], idempotency_key="订单-1")
    assert (session.id, session.status, session.nodes[0].result_data) == (SESSION, "running", MACRO)
    [(path, body)] = elsewhere.asked
    assert (path, body["mode"], body["locale"]) == ("/api/v1/coordinator/research", "async", "en-US")
    assert elsewhere.headers[0].encode("utf-8", "surrogateescape").decode() == "订单-1"


async def test_a_run_elsewhere_can_be_watched_node_by_node():
    seen: list[SessionEvent] = []
    elsewhere = Elsewhere((WHOLE[:200], CUT), (WHOLE, END))
    async with elsewhere as address, RemoteMoot(address) as desk:
        result = await desk.research("900001.DEMO", ["macro_intelligence"], watch=seen.append)
        again = await desk.retry(SESSION, watch=seen.append)
    assert result == again
    assert (result.session_id, result.expert_results["macro_intelligence"].data) == (str(SESSION), MACRO)
    assert seen[:8] == seen[8:]
    assert [(event.seq, event.type, event.data.get("node")) for event in seen[2:7]] == [
        (3, "node_started", "macro_intelligence"),
        (4, "node_finished", "macro_intelligence"),
        (5, "node_retrying", "debate"),
        (6, "node_failed", "debate"),
        (7, "node_finished", "judge"),
    ]
    assert [body["mode"] for _, body in elsewhere.asked] == ["async", "async"]


async def test_one_who_watches_badly_changes_nothing():
    def stumble(_event: SessionEvent) -> None:
        raise RuntimeError("I look away")

    async with Elsewhere((WHOLE, END)) as address, RemoteMoot(address) as desk:
        with capture_logs() as logs:
            result = await desk.research("900001.DEMO", watch=stumble)
    assert (result.overall_status, {entry["event"] for entry in logs}) == ("completed", {"watcher failed"})


async def test_a_watched_run_fails_like_any_other():
    async with Elsewhere((WHOLE, END), overall="failed") as address, RemoteMoot(address) as desk:
        with pytest.raises(AllExpertsFailed) as failed:
            await desk.research("900001.DEMO", watch=lambda _event: None)
    assert failed.value.details["session_id"] == str(SESSION)


async def test_a_watched_run_that_somebody_cancels_says_so():
    async with Elsewhere((told(1, "done", status="cancelled"), END)) as address, RemoteMoot(address) as desk:
        with pytest.raises(SessionCancelled):
            await desk.research("900001.DEMO", watch=lambda _event: None)


async def test_a_watched_run_that_is_lost_sight_of_can_be_found_again():
    async with Elsewhere((b"", CUT)) as address, RemoteMoot(address) as desk:
        with pytest.raises(Unavailable) as lost:
            await desk.research("900001.DEMO", watch=lambda _event: None)
    assert lost.value.details["session_id"] == str(SESSION)


async def test_who_stops_waiting_for_a_watched_run_stops_it(monkeypatch):
    monkeypatch.setattr(connection, "SILENCE_SECONDS", 60)
    elsewhere = Elsewhere((b"".join(STORY[:3]), SILENCE))
    async with elsewhere as address, RemoteMoot(address) as desk:
        told = asyncio.Event()
        watching = asyncio.create_task(desk.research("900001.DEMO", watch=lambda _event: told.set()))
        await asyncio.wait_for(told.wait(), PATIENCE)
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching
        assert elsewhere.cancelled.is_set()


async def test_a_session_is_cancelled():
    async with Elsewhere((WHOLE, END)) as address, RemoteMoot(address) as desk:
        assert (await desk.cancel(SESSION)).status == "cancelled"


async def test_a_key_that_stands_for_another_question_is_a_conflict():
    async def refuse(_request):
        return refusal(409, "IDEMPOTENCY_KEY_REUSED")

    elsewhere = Elsewhere((WHOLE, END))
    elsewhere._accept = refuse
    async with elsewhere as address, RemoteMoot(address) as desk:
        with pytest.raises(Conflict) as e:
            await desk.start("900001.DEMO", idempotency_key="k")
    assert e.value.code == "IDEMPOTENCY_KEY_REUSED"

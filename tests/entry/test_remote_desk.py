"""The SDK against a desk elsewhere: the real application behind a real server, and servers that are no desk."""

import asyncio
import inspect
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from typing import Any
from uuid import UUID

import pytest
import uvicorn
from aiohttp import web
from fastapi import FastAPI
from structlog.testing import capture_logs

import moot
from moot import desk as local
from moot.main import create_app, create_closed_app
from moot.modules.access.domain import mint
from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.application.session_history import SessionEvent
from moot.modules.coordinator.domain.exceptions import (
    AllExpertsFailed,
    KeyReused,
    SessionEnded,
    SessionNotFound,
    SessionNotRetryable,
)
from moot.remote.client import RemoteMoot
from moot.remote.desk import Desk
from moot.shared.domain.errors import (
    AppError,
    Forbidden,
    InvalidInput,
    NotFound,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
    UpstreamFailed,
)
from moot.shared.infrastructure.settings import Settings
from tests.access.desk import new_key
from tests.fakes.clock import PATIENCE, TickingClock, leap

NOBODY = UUID("7d3c8a52-0c3e-4f0e-9d0a-5b1f6a1c2e3d")
THIRD_DAY = "2018-01-04"
"""On the third day of the market the technical analyst has too few bars to go by."""


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", ws="none"))
    running = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    await running


@asynccontextmanager
async def answering(answer) -> AsyncIterator[str]:
    """A server of somebody else's."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.fixture
async def app(home, clock):
    return create_app(
        local.Moot(Settings(home=home, log_level="error", worker=True), clock=TickingClock(clock.now()))
    )


@pytest.fixture
async def address(app):
    async with serving(app) as address:
        yield address


@pytest.fixture
async def desk(address):
    async with RemoteMoot(address, locale="en-US") as desk:
        yield desk


def kept(app: FastAPI):
    return app.state.desk.coordinator.session_history()


async def test_a_desk_elsewhere_gives_the_answer_it_gave_there(app, desk):
    result = await desk.research("900001.DEMO")
    assert (result.overall_status, result.verdict_status, result.locale) == ("completed", "judged", "en-US")
    assert [item.status for item in result.expert_results.values()] == ["success"] * 5
    there = await kept(app).result(UUID(result.session_id), "default")
    assert result.model_dump(mode="json") == there.model_dump(mode="json")
    assert await desk.result(UUID(result.session_id)) == result


async def test_a_result_can_be_read_back_from_its_own_json(app, desk):
    result = await desk.research("900001.DEMO", ["technical_analyst", "macro_intelligence"], as_of=THIRD_DAY)
    assert {item.status for item in result.expert_results.values()} == {"success", "failed"}
    assert ResearchResult.model_validate_json(result.model_dump_json()) == result
    assert ResearchResult.model_validate(result.model_dump()) == result


async def test_a_question_arrives_as_it_was_asked(app, desk):
    result = await desk.research(
        "900001.DEMO",
        ["technical_analyst"],
        options={"technical_analyst": {"analysis_date": date(2026, 3, 30)}},
        skip_debate=True,
        as_of=date(2026, 3, 31),
        locale="zh-CN",
        max_cost=2.5,
    )
    stored = await kept(app).session(UUID(result.session_id), "default")
    assert stored.options == {"technical_analyst": {"analysis_date": "2026-03-30"}}
    assert (stored.locale, stored.as_of) == ("zh-CN", result.as_of)
    assert (result.as_of.isoformat(), result.verdict_status) == (
        "2026-03-31T15:59:59.999999+00:00",
        "skipped",
    )


async def test_the_history_is_read_as_it_is_kept(app, desk):
    done = [await desk.research(symbol, ["macro_intelligence"]) for symbol in ("900001.DEMO", "900002.DEMO")]
    page = await desk.sessions(page_size=1)
    assert (page.total, [str(item.id) for item in page.items]) == (2, [done[1].session_id])
    assert [str(item.id) for item in (await desk.sessions("900001.DEMO")).items] == [done[0].session_id]
    known = UUID(done[0].session_id)
    assert await desk.session(known) == await kept(app).session(known, "default")
    assert await desk.verify(known) == await kept(app).verify(known, "default")


async def test_what_failed_is_run_again(desk):
    partial = await desk.research("900001.DEMO", ["technical_analyst", "macro_intelligence"], as_of=THIRD_DAY)
    again = await desk.retry(UUID(partial.session_id), skip_debate=True)
    assert (partial.overall_status, again.overall_status, again.retry_count) == ("partial", "partial", 1)
    assert (await desk.session(UUID(partial.session_id))).retries == [UUID(again.session_id)]


async def test_research_in_the_background_is_followed_to_its_end(app, desk):
    question = {"symbol": "900001.DEMO", "experts": ["macro_intelligence", "valuation_modeler"]}
    session = await desk.start(**question, idempotency_key="order-1")
    events = [event async for event in desk.events(session.id)]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert (events[0].type, events[-1].type, events[-1].data["status"]) == ("session", "done", "completed")
    assert events == [event async for event in app.state.desk.events(session.id)]
    assert [event async for event in desk.events(session.id, after=3)] == events[3:]
    assert [event async for event in desk.events(session.id, after=len(events))] == []
    assert (await desk.start(**question, idempotency_key="order-1")).id == session.id
    assert (await desk.result(session.id)).verdict_status == "judged"
    with pytest.raises(KeyReused):
        await desk.start("900002.DEMO", idempotency_key="order-1")
    for wrong in ("订单", " ", "a\nb", "k" * 256):
        with pytest.raises(InvalidInput):
            await desk.start(**question, idempotency_key=wrong)
    with pytest.raises(SessionEnded):
        await desk.cancel(session.id)
    with pytest.raises(SessionNotFound):
        await anext(aiter(desk.events(NOBODY)))


async def test_one_who_watches_from_elsewhere_sees_what_is_seen_on_the_spot(app, desk):
    question = {"symbol": "900001.DEMO", "experts": ["technical_analyst", "macro_intelligence"]}
    here, there = [], []
    watched = await desk.research(**question, as_of=THIRD_DAY, watch=there.append)
    spot = await app.state.desk.research(**question, as_of=THIRD_DAY, locale="en-US", watch=here.append)
    assert without_time(there) == without_time(here)
    assert {event.type for event in there} >= {
        "session",
        "node_started",
        "node_finished",
        "node_failed",
        "done",
    }
    differing = {"session_id"}
    assert watched.model_dump(mode="json", exclude=differing) == spot.model_dump(
        mode="json", exclude=differing
    )
    there.clear()
    again = await desk.retry(UUID(watched.session_id), watch=there.append)
    assert (again.retry_count, again.overall_status) == (1, "partial")
    ran = {event.data["node"] for event in there if event.type == "node_started"}
    assert ran == {"technical_analyst", "debate", "judge"}


def without_time(seen: list[SessionEvent]) -> list[tuple[str, dict[str, Any]]]:
    """Who is quicker differs from run to run, and what is run in the background was queued first."""
    timeless = [(e.type, {**e.data, "duration_ms": None}) for e in seen if e.type != "session"]
    return sorted(timeless, key=str)


async def test_what_waits_can_be_cancelled(home, clock):
    settings = Settings(home=home, log_level="error", worker=True, worker_sessions=1)
    app = create_app(local.Moot(settings, clock=TickingClock(clock.now())))
    async with serving(app) as address, RemoteMoot(address, locale="en-US") as desk:
        started = [await desk.start("900001.DEMO") for _ in range(4)]
        cancelled = await desk.cancel(started[-1].id)
        endings = [[event async for event in desk.events(session.id)][-1] for session in started]
    assert (cancelled.id, cancelled.status) == (started[-1].id, "cancelled")
    assert [end.data["status"] for end in endings] == ["completed"] * 3 + ["cancelled"]


async def test_when_every_expert_failed_the_error_is_that_of_a_desk_of_ones_own(home, clock, desk):
    question = {"symbol": "900001.DEMO", "experts": ["technical_analyst"], "as_of": THIRD_DAY}
    with pytest.raises(AllExpertsFailed) as there:
        await desk.research(**question)
    async with local.Moot(Settings(home=home / "own"), clock=clock) as own:
        with pytest.raises(AllExpertsFailed) as here:
            await own.research(**question, locale="en-US")
    assert there.value.code == here.value.code == "ALL_EXPERTS_FAILED"
    said, expected = [
        error.value.in_locale("en-US").replace(error.value.details["session_id"], "ID")
        for error in (there, here)
    ]
    assert said == expected and said.endswith("moot sessions retry ID")
    assert there.value.details["expert_results"] == here.value.details["expert_results"]
    assert UUID(there.value.details["session_id"]) != UUID(here.value.details["session_id"])


async def test_errors_are_of_the_same_kind_as_on_a_desk_of_ones_own(desk):
    done = await desk.research("900001.DEMO", ["macro_intelligence"], skip_debate=True)
    with pytest.raises(SessionNotRetryable) as nothing_failed:
        await desk.retry(UUID(done.session_id))
    assert nothing_failed.value.details == {"session_id": done.session_id}
    for ask in (desk.session, desk.result, desk.verify, desk.retry):
        with pytest.raises(SessionNotFound, match=str(NOBODY)):
            await ask(NOBODY)
    with pytest.raises(InvalidInput) as unknown:
        await desk.research("900099.DEMO")
    assert unknown.value.code == "SYMBOL_UNKNOWN"


@pytest.mark.parametrize("wrong", [{"experts": []}, {"experts": ["wizard"]}, {"max_cost": math.nan}])
async def test_what_is_wrong_with_a_question_is_said_in_the_language_of_the_question(desk, wrong):
    with pytest.raises(InvalidInput) as english:
        await desk.research("900001.DEMO", **wrong)
    field = english.value.details["errors"][0]["field"]
    assert field.startswith(next(iter(wrong)))
    assert str(english.value).startswith(f"{field}: ")
    with pytest.raises(InvalidInput, match=f"^{field}："):
        await desk.research("900001.DEMO", **wrong, locale="zh-CN")


async def test_the_language_is_that_of_the_settings_unless_said_otherwise(app, address, home, monkeypatch):
    monkeypatch.setenv("MOOT_HOME", str(home))
    async with RemoteMoot(address) as desk:
        with pytest.raises(SessionNotFound, match="没有"):
            await desk.session(NOBODY)
    app.state.locale = "en-US"  # the desk's own, when nobody here has named one
    async with RemoteMoot(address) as desk:
        with pytest.raises(SessionNotFound, match="There is no"):
            await desk.session(NOBODY)
        theirs = await desk.research("900001.DEMO", ["macro_intelligence"], skip_debate=True)
    assert theirs.locale == "en-US"
    app.state.locale = None
    monkeypatch.setenv("MOOT_LOCALE", "en-US")
    async with RemoteMoot(address) as desk:
        result = await desk.research("900001.DEMO", ["macro_intelligence"], skip_debate=True)
    assert result.locale == "en-US"


@pytest.fixture
async def closed_app(home, monkeypatch):
    monkeypatch.setenv("MOOT_HOME", str(home))
    monkeypatch.setenv("MOOT_LOG_LEVEL", "error")
    return create_closed_app()


async def test_a_closed_desk_opens_to_a_key_with_the_scope(closed_app):
    async with serving(closed_app) as address:
        reader, theirs = await new_key(closed_app, "read"), await new_key(closed_app, "admin", workspace="b")
        mine = await new_key(closed_app, "research")
        async with RemoteMoot(address, locale="en-US") as desk:
            with pytest.raises(Unauthenticated, match="needs a key"):
                await desk.sessions()
            with pytest.raises(Unauthenticated, match="需要访问密钥"):
                await desk.research("900001.DEMO", locale="zh-CN")
        async with RemoteMoot(address, reader, locale="en-US") as desk:
            assert (await desk.sessions()).total == 0
            with pytest.raises(Forbidden) as refused:
                await desk.research("900001.DEMO")
            assert refused.value.details == {"needed": "research", "scopes": ["read"]}
        async with RemoteMoot(address, f"{mine}\n", locale="en-US") as desk:
            done = await desk.research("900001.DEMO", ["macro_intelligence"])
        async with RemoteMoot(address, theirs, locale="en-US") as desk:
            with pytest.raises(SessionNotFound):
                await desk.session(UUID(done.session_id))


async def test_the_key_is_shown_nowhere(address):
    key = mint()
    desk = RemoteMoot(address, key, locale="en-US")
    with capture_logs() as logs, pytest.raises(Unauthenticated) as refused:
        await desk.sessions()
    await desk.__aexit__(None, None, None)
    unreachable = RemoteMoot("http://127.0.0.1:1", key, locale="en-US")
    with pytest.raises(Unavailable) as nobody:
        await unreachable.sessions()
    await unreachable.__aexit__(None, None, None)
    assert repr(desk) == f"RemoteMoot('{address}')"
    for shown in (repr(desk), repr(vars(desk)), logs, chain(refused.value), chain(nobody.value)):
        assert key not in repr(shown)


def chain(error: AppError) -> list[object]:
    return [error, error.details, error.__cause__, error.__suppress_context__ or error.__context__]


async def test_a_desk_that_cannot_be_reached_is_named():
    async with RemoteMoot("http://127.0.0.1:1/", locale="en-US") as desk:
        with pytest.raises(Unavailable, match=r"The desk at http://127\.0\.0\.1:1 cannot be reached"):
            await desk.research("900001.DEMO")


async def test_a_desk_that_does_not_answer_is_given_up():
    asked = asyncio.Event()

    async def late(_request):
        asked.set()
        await asyncio.Event().wait()

    async with answering(late) as address, RemoteMoot(address, timeout=60.0) as desk:
        asking = asyncio.create_task(desk.research("900001.DEMO"))
        await asyncio.wait_for(asked.wait(), PATIENCE)
        leap(60.0)
        with pytest.raises(Unavailable) as gone:
            await asking
    assert gone.value.in_locale("en-US") == f"The desk at {address} did not answer within 60 seconds."
    assert gone.value.details == {"url": address}


@pytest.mark.parametrize("prefix", ["", "/", "/desks/one", "/desks/one/"])
async def test_an_address_may_have_a_path_and_end_in_a_slash(prefix):
    asked = []

    async def page(request):
        asked.append((request.path_qs, request.headers.get("Authorization")))
        return web.json_response({"total": 0, "page": 2, "page_size": 20, "items": []})

    key = mint()
    async with answering(page) as address, RemoteMoot(address + prefix, key) as desk:
        assert (await desk.sessions(page=2)).page == 2
    path = f"{prefix.rstrip('/')}/api/v1/coordinator/research/sessions"
    assert asked == [(f"{path}?page=2&page_size=20", f"Bearer {key}")]


async def test_nobody_is_followed_with_the_key():
    asked = []

    async def elsewhere(request):
        asked.append(request.path)
        raise web.HTTPTemporaryRedirect("http://127.0.0.1:1/other")

    async with answering(elsewhere) as address, RemoteMoot(address, mint()) as desk:
        with pytest.raises(UpstreamFailed, match=r"elsewhere, to http://127\.0\.0\.1:1/other"):
            await desk.sessions()
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, "<html>", UpstreamFailed),
        (200, "[]", UpstreamFailed),
        (200, '{"expert_results": {"macro_intelligence": 1}}', UpstreamFailed),
        (404, "<html>", UpstreamFailed),
        (502, "<html>", Unavailable),
        (503, "", Unavailable),
        (500, '{"detail": "x"}', UpstreamFailed),
    ],
)
async def test_what_is_no_desk_is_told_from_one(status, body, kind):
    async def page(_request):
        return web.Response(status=status, text=body)

    async with answering(page) as address, RemoteMoot(address) as desk:
        with pytest.raises(kind, match=rf"What {address} answered \(HTTP {status}\)") as e:
            await desk.result(NOBODY)
    assert e.value.details == {"url": address, "status": status}


@pytest.mark.parametrize(
    ("status", "code", "details", "kind"),
    [
        (429, "TOO_MANY_REQUESTS", {"retry_after": 3}, TooManyRequests),
        (429, "TOO_MANY_REQUESTS", {}, TooManyRequests),
        (404, "HTTP_404", {"code": "x", "message": "y"}, NotFound),
        (409, "SOMETHING_NEW", {}, AppError),
        (418, "SOMETHING_NEW", {}, AppError),
    ],
)
async def test_code_message_and_details_come_through(status, code, details, kind):
    async def refuse(_request):
        body = {"success": False, "code": code, "message": "so it is {here}", "details": details}
        return web.json_response(body, status=status, headers={"Retry-After": "3"})

    async with answering(refuse) as address, RemoteMoot(address) as desk:
        with pytest.raises(kind) as e:
            await desk.sessions()
    assert (e.value.code, str(e.value), e.value.in_locale("zh-CN")) == (code, *["so it is {here}"] * 2)
    assert e.value.details == {**details, "retry_after": 3}


@pytest.mark.parametrize(
    "base_url",
    [
        "",
        "desk",
        "localhost:8000",
        "ftp://desk",
        "http://",
        "http://a:b",
        "http://u:secret@h",
        "http://h?key=secret",
        "http://h#x",
    ],
)
def test_what_is_no_address_is_refused_without_repeating_a_secret(base_url):
    with pytest.raises(InvalidInput, match=r"^base_url: ") as e:
        RemoteMoot(base_url)
    assert "secret" not in str(e.value)


@pytest.mark.parametrize("key", ["moot_ключ", "moot_a\nb", "moot a"])
def test_what_is_no_key_is_refused_without_repeating_it(key):
    with pytest.raises(InvalidInput, match=r"^api_key: ") as e:
        RemoteMoot("http://desk", key)
    assert key not in str(e.value)


async def test_one_name_opens_either_desk(home, address):
    settings = Settings(home=home)
    assert isinstance(moot.Moot(settings), local.Moot)
    async with moot.Moot(base_url=address, api_key="", locale="en-US", timeout=30) as desk:
        assert isinstance(desk, RemoteMoot)
        assert isinstance(desk, moot.Desk)
        assert (await desk.sessions()).total == 0
    with pytest.raises(TypeError):
        moot.Moot(settings, base_url=address)
    with pytest.raises(TypeError):
        moot.Moot(api_key="only a desk elsewhere wants one")


def asked_of(kind: type, method: str) -> dict[str, tuple[object, ...]]:
    """The parameters of a method, as its callers see them."""
    signature = inspect.signature(getattr(kind, method))
    return {name: (p.kind, p.default, p.annotation) for name, p in signature.parameters.items()}


@pytest.mark.parametrize("method", sorted(Desk.__abstractmethods__))
@pytest.mark.parametrize("kind", [local.Moot, RemoteMoot])
def test_both_desks_are_asked_alike(kind, method):
    assert asked_of(kind, method) == asked_of(Desk, method)
    returned = inspect.signature(getattr(kind, method)).return_annotation
    assert returned == inspect.signature(getattr(Desk, method)).return_annotation

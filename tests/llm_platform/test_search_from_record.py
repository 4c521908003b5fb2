"""A session that goes on, or is replayed, is told by the web what it was told before."""

import json
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Literal
from uuid import UUID, uuid4

import pytest
from pydantic import SecretStr
from sqlalchemy import update

from moot.modules.llm_platform.application.web_search import (
    Searches,
    WebSearchProvider,
    WebSearchRequest,
    WebSearchResponse,
    WebSearchService,
)
from moot.modules.llm_platform.domain.call_record import ExternalCallItem
from moot.modules.llm_platform.domain.exceptions import (
    ReplayMismatch,
    WebSearchConnectionError,
    WebSearchError,
)
from moot.modules.llm_platform.infrastructure.web_searches import (
    BochaSearch,
    SearxngSearch,
    SqlSearches,
)
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.call_audit import CallAudit, ExternalCalls
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import ExecutionContext
from moot.shared.infrastructure.tables import ExternalAPICallLog
from moot.shared.infrastructure.transactions import transaction
from tests.fakes.clock import FixedClock
from tests.fakes.search_server import LocalWeb, Reply, local_web
from tests.llm_platform.call_rows import journal_of

NOW = datetime(2026, 6, 30, 10, tzinfo=UTC)
REQUEST = WebSearchRequest(query="白酒 行业 景气", freshness="oneWeek", count=5)
SESSION = uuid4()
DATED, UNDATED = "dated", "undated"

Answers = Literal["live", "resume", "replay"]


@pytest.fixture
async def server() -> AsyncIterator[LocalWeb]:
    async with local_web() as served:
        find(served, DATED, UNDATED)
        yield served


def find(server: LocalWeb, *titles: str) -> None:
    """What both services find from now on, each in its own words."""
    day = "2026-06-29T10:00:00+00:00"
    pages = [(title, f"https://web.example/{title}", day if title == DATED else None) for title in titles]
    results = [{"title": t, "url": u, "content": "…", "publishedDate": d} for t, u, d in pages]
    value = [{"name": t, "url": u, "snippet": "…", "datePublished": d or ""} for t, u, d in pages]
    server.replies = {
        "/search": Reply(json.dumps({"results": results})),
        "/v1/web-search": Reply(json.dumps({"code": 200, "data": {"webPages": {"value": value}}})),
    }


class Forgetful(SqlSearches):
    """Keeps nothing for the next one who asks; the record is as it is."""

    async def get(self, key: str) -> WebSearchResponse | None:
        return None


class Desk:
    """A search service on a database, whose clock can be set."""

    def __init__(self, database: Database, server: LocalWeb) -> None:
        self.database, self.trail = database, AuditTrail(database)
        self.services: dict[str, WebSearchProvider] = {
            "searxng": SearxngSearch(server.url),
            "bochai": BochaSearch(server.url, SecretStr("canary-bocha-0002")),
        }

    async def search(
        self,
        answers: Answers = "live",
        *,
        later: float = 0,
        service: str = "searxng",
        session: UUID = SESSION,
        as_of: datetime = NOW,
        cached: bool = False,
        request: WebSearchRequest = REQUEST,
    ) -> WebSearchResponse:
        """Ask for a session, `later` days after `NOW`."""
        clock = FixedClock(NOW + timedelta(days=later))
        door = WebSearchService(
            self.services[service],
            ExternalCalls(CallAudit(self.trail, clock)),
            (SqlSearches if cached else Forgetful)(self.database, clock),
            clock,
        )
        with in_session(session, answers):
            return await door.search(request, as_of=as_of)

    async def calls(self, session: UUID = SESSION) -> list[ExternalCallItem]:
        return await journal_of(self.database).external_calls.get_by_session_id(session)


@pytest.fixture
async def desk(database: Database, server: LocalWeb) -> AsyncIterator[Desk]:
    opened = Desk(database, server)
    yield opened
    for service in opened.services.values():
        await service.aclose()
    await opened.trail.finish()


def in_session(session: UUID, answers: Answers) -> AbstractContextManager[ExecutionContext]:
    return ExecutionContext(session_id=str(session), answers=answers).active()


def titles(response: WebSearchResponse) -> list[str]:
    return [item.title for item in response.results]


@pytest.mark.parametrize("service", ["searxng", "bochai"])
@pytest.mark.parametrize("answers", ["resume", "replay"])
async def test_weeks_later_a_session_is_told_the_very_same(desk, server, service, answers):
    told = await desk.search(service=service)
    find(server, "published meanwhile")
    assert titles(told) == [DATED, UNDATED]
    assert await desk.search(answers, later=40, service=service) == told
    assert len(server.asked) == 1


async def test_a_session_of_the_past_stays_one_of_the_past(desk, server):
    then = {"as_of": NOW - timedelta(hours=20)}
    past = {"as_of": NOW - timedelta(days=3)}
    find(server, DATED, UNDATED, "of the day before")
    present = await desk.search(**then)
    assert UNDATED in titles(present)
    assert (await desk.search("replay", later=100, **then)) == present

    other = uuid4()
    filtered = await desk.search(session=other, **past)
    assert (titles(filtered), server.asked[-1].query.get("time_range")) == ([], None)
    assert (await desk.search("replay", later=100, session=other, **past)) == filtered


async def test_a_question_without_a_limit_is_judged_by_the_moment_it_was_asked(desk, server):
    request = REQUEST.model_copy(update={"freshness": "noLimit"})
    told = await desk.search(request=request)
    assert UNDATED in titles(told)
    assert await desk.search("replay", later=100, request=request) == told


async def test_going_on_is_noted_and_does_not_move_the_moment(desk, server):
    told = await desk.search()
    assert await desk.search("resume", later=5) == told
    live, noted = await desk.calls()
    assert (live.origin, noted.origin, noted.status, noted.latency_ms) == ("live", "record", "success", 0)
    assert noted.request_digest == live.request_digest
    assert WebSearchResponse.model_validate_json(noted.response_data or "").results == told.results
    assert await desk.search("replay", later=50) == told
    assert len(await desk.calls()) == 2, "a replay leaves no trace"


async def test_what_the_cache_had_answered_is_read_back_too(desk, server):
    await desk.search(session=uuid4(), cached=True)
    told = await desk.search(cached=True)
    assert [call.origin for call in await desk.calls()] == ["cache"]
    assert await desk.search("replay", later=30) == told
    assert len(server.asked) == 1


async def test_another_service_by_now_makes_no_difference(desk, server):
    told = await desk.search(service="bochai")
    assert await desk.search("replay", service="searxng") == told
    assert (await desk.search("resume", service="searxng")) == told
    assert (await desk.calls())[-1].service_name == "bochai"
    assert [asked.path for asked in server.asked] == ["/v1/web-search"]


async def test_a_replay_asks_nobody_what_is_not_on_record(desk, server):
    await desk.search(session=uuid4())
    with pytest.raises(ReplayMismatch, match="白酒 行业 景气") as mismatch:
        await desk.search("replay")
    assert mismatch.value.details["difference"] == []
    assert len(server.asked) == 1
    assert titles(await desk.search("resume")) == [DATED, UNDATED], "going on, it is asked"
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply("overloaded", status=503), WebSearchError),
        (Reply(reset=True), WebSearchConnectionError),
    ],
)
async def test_a_failure_is_repeated_by_a_replay_and_mended_by_going_on(desk, server, reply, kind):
    server.replies["/search"] = reply
    with pytest.raises(kind) as first:
        await desk.search()
    find(server, DATED)
    with pytest.raises(kind) as again:
        await desk.search("replay")
    assert str(again.value) == str(first.value)
    assert getattr(again.value, "status_code", None) == getattr(first.value, "status_code", None)
    mended = await desk.search("resume")
    assert titles(mended) == [DATED]
    assert await desk.search("replay", later=9) == mended


@pytest.mark.parametrize("body", [None, "", "no longer JSON", "[]"])
async def test_a_body_that_is_gone_is_no_answer(desk, server, database, body):
    await desk.search()
    async with transaction(database.session) as db:
        await db.execute(update(ExternalAPICallLog).values(response_data=body))
    with pytest.raises(ReplayMismatch):
        await desk.search("replay")
    assert len(server.asked) == 1
    assert titles(await desk.search("resume")) == [DATED, UNDATED]


async def test_what_looks_like_a_secret_is_seen_as_the_record_holds_it(desk, server):
    leak = {"title": "leak", "url": "https://web.example/x?token=abcdef123", "content": "Bearer abcdef123456"}
    server.replies["/search"] = Reply(json.dumps({"results": [leak]}))
    told = await desk.search()
    assert told.results[0].snippet == "Bearer ***"
    assert await desk.search("replay") == told


async def test_without_a_session_a_replay_asks_nobody_either(desk, server):
    clock = FixedClock(NOW)
    door = WebSearchService(desk.services["searxng"], ExternalCalls(None), Searches(), clock)
    with ExecutionContext(session_id="", answers="replay").active(), pytest.raises(ReplayMismatch):
        await door.search(REQUEST)
    assert server.asked == []

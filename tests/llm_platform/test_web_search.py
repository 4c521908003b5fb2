"""One door for searches: what is kept of the results, what is on the record, and what the cache may do."""

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from structlog.testing import capture_logs

from moot.modules.llm_platform.application.web_search import (
    Searches,
    WebSearchRequest,
    WebSearchResponse,
    WebSearchResultItem,
    WebSearchService,
    refine,
    same_page,
)
from moot.modules.llm_platform.domain.exceptions import (
    WebSearchConfigError,
    WebSearchConnectionError,
    WebSearchError,
)
from moot.modules.llm_platform.presentation.routes import router
from moot.shared.presentation.errors import install_error_handlers
from tests.fakes.clock import FixedClock
from tests.fakes.search_server import FakeCache, FakeSearch, FakeSearchAudit

NOW = datetime(2026, 6, 30, 10, tzinfo=UTC)
REQUEST = WebSearchRequest(query="白酒 行业 景气", freshness="oneWeek", count=5)


def found(title: str, days_ago: float | None = 1, **changes: object) -> WebSearchResultItem:
    published = None if days_ago is None else NOW - timedelta(days=days_ago)
    raw = {"title": title, "url": f"https://example.com/{title}", "snippet": "…", "published_date": published}
    return WebSearchResultItem.model_validate(raw | changes)


def titles(items: list[WebSearchResultItem]) -> list[str]:
    return [item.title for item in items]


def refined(items: list[WebSearchResultItem], **also: Any) -> list[str]:
    return titles(refine(WebSearchResponse(query="", results=items), **also).results)


def service(search: FakeSearch, audit: FakeSearchAudit | None = None, cache: FakeCache | None = None):
    return WebSearchService(search, audit or FakeSearchAudit(), cache or Searches(), FixedClock(NOW))


class TestWhatIsKept:
    @pytest.mark.accepts("W12")
    def test_newest_first_and_undated_last(self):
        items = [found("undated", None), found("old", 30), found("new", 1), found("older", 90)]
        assert refined(items) == [
            "new",
            "old",
            "older",
            "undated",
        ]

    @pytest.mark.accepts("W12")
    def test_a_page_is_kept_once_but_another_query_string_is_another_page(self):
        items = [
            found("a", 3, url="https://example.com/news?id=1"),
            found("a again", 2, url="HTTPS://EXAMPLE.com:443/news?id=1#top"),
            found("b", 1, url="https://example.com/news?id=2"),
        ]
        assert refined(items) == ["b", "a"]

    @pytest.mark.parametrize(
        ("one", "other", "same"),
        [
            ("http://a.com", "http://A.com:80/", True),
            ("https://a.com/x", "https://a.com/x#y", True),
            ("https://a.com/x", "https://a.com/x/", False),
            ("https://a.com/x", "https://a.com/X", False),
            ("https://a.com/x", "http://a.com/x", False),
            ("https://a.com:80/x", "https://a.com/x", False),
            ("https://a.com/?a=1&b=2", "https://a.com/?b=2&a=1", False),
            ("http://[broken", "http://[broken", True),
        ],
    )
    def test_only_what_makes_no_difference_is_ignored_in_a_url(self, one, other, same):
        assert (same_page(one) == same_page(other)) is same

    def test_what_has_no_title_or_says_nothing_is_dropped(self):
        items = [
            found(" ", url="https://example.com/1"),
            found("empty", snippet=" ", summary=" "),
            found("summary only", 1, snippet="", summary="…"),
            found("snippet only", 2, summary=None),
        ]
        assert refined(items) == [
            "summary only",
            "snippet only",
        ]

    def test_a_blank_duplicate_does_not_take_the_place_of_a_good_one(self):
        url = "https://example.com/same"
        assert titles(
            refine(WebSearchResponse(query="", results=[found("", url=url), found("good", url=url)])).results
        ) == ["good"]

    def test_in_the_past_only_what_was_certainly_public_is_known(self):
        items = [found("later", 9), found("undated", None), found("that moment", 10), found("before", 11)]
        assert refined(items, as_of=NOW - timedelta(days=10)) == ["that moment", "before"]


class TestTheRecord:
    @pytest.mark.accepts("A2-02", "A2-04")
    async def test_a_search_is_on_the_record_with_what_was_asked_and_what_came_back(self):
        audit = FakeSearchAudit()
        await service(FakeSearch([found("a")], name="bochai"), audit).search(REQUEST)
        call = audit.only
        assert (call["service_name"], call["operation"], call["origin"]) == ("bochai", "web-search", "live")
        assert call["request_params"] == {
            "query": "白酒 行业 景气",
            "freshness": "oneWeek",
            "summary": True,
            "count": 5,
        }
        assert (call["status"], call["status_code"], call["response_data"]) == ("success", 200, "as it came")
        assert call["latency_ms"] >= 0
        assert call["error_message"] is None

    @pytest.mark.accepts("A2-05")
    async def test_it_is_there_before_the_search_begins_and_timed_to_its_end(self):
        audit = FakeSearchAudit()
        seen: list[str] = []

        class Slow(FakeSearch):
            async def search(self, request):
                seen.append(audit.only["status"])
                await asyncio.sleep(0.05)
                return await super().search(request)

        await service(Slow([]), audit).search(REQUEST)
        assert seen == ["started"]
        assert audit.only["latency_ms"] >= 50

    @pytest.mark.parametrize(
        ("error", "status_code"),
        [
            (WebSearchError("no money", status_code=403), 403),
            (WebSearchConnectionError("unreachable"), None),
            (RuntimeError("a defect"), None),
        ],
    )
    @pytest.mark.accepts("W8", "A2-05")
    async def test_a_failure_is_on_the_record_with_its_status_and_passes_on(self, error, status_code):
        audit, cache = FakeSearchAudit(), FakeCache()
        with pytest.raises(type(error)):
            await service(FakeSearch(error), audit, cache).search(REQUEST)
        call = audit.only
        assert (call["status"], call["status_code"], call["response_data"]) == ("failed", status_code, None)
        assert call["error_message"] == str(error)
        assert cache.kept == {}

    async def test_a_search_that_is_broken_off_is_not_left_open(self):
        audit = FakeSearchAudit()
        with pytest.raises(asyncio.CancelledError):
            await service(FakeSearch(asyncio.CancelledError()), audit).search(REQUEST)
        assert (audit.only["status"], audit.only["error_message"]) == ("failed", "CancelledError")

    async def test_where_nothing_may_go_unrecorded_there_is_no_search(self):
        search = FakeSearch([])
        with pytest.raises(RuntimeError, match="unrecorded"):
            await service(search, FakeSearchAudit(broken=True)).search(REQUEST)
        assert search.asked == []


class TestTheCache:
    @pytest.mark.accepts("W8")
    async def test_the_second_time_nobody_is_asked_and_the_record_says_so(self):
        search, audit, cache = FakeSearch([found("a")]), FakeSearchAudit(), FakeCache()
        door = service(search, audit, cache)
        assert await door.search(REQUEST) == await door.search(REQUEST)
        assert len(search.asked) == 1
        live, cached = audit.calls.values()
        assert (live["origin"], live["status_code"]) == ("live", 200)
        assert (cached["origin"], cached["status"], cached["status_code"]) == ("cache", "success", None)
        kept = WebSearchResponse.model_validate_json(cached["response_data"])
        assert titles(kept.results) == ["a"]
        assert live["request_digest"] == cached["request_digest"]

    def test_the_key_tells_every_question_and_every_provider_apart(self):
        changes = [{}, {"query": "x"}, {"freshness": None}, {"summary": False}, {"count": 6}]
        keys = {REQUEST.model_copy(update=change).key(p) for change in changes for p in ("bochai", "searxng")}
        assert len(keys) == 10
        said = "白酒 行业 景气|oneWeek|True|5|bochai"
        assert REQUEST.key("bochai") == hashlib.sha256(said.encode()).hexdigest()

    async def test_a_broken_cache_costs_nothing_but_a_warning(self):
        with capture_logs() as logs:
            response = await service(FakeSearch([found("a")]), cache=FakeCache(fails=True)).search(REQUEST)
        assert titles(response.results) == ["a"]
        warnings = [log["event"] for log in logs if log["log_level"] == "warning"]
        assert warnings == ["search cache not read", "search cache not written"]

    async def test_what_was_found_is_kept_whole_for_whoever_asks_next(self):
        items = [found("new", 1), found("undated", None), found("old", 20)]
        door = service(FakeSearch(items), cache=FakeCache())
        then = await door.search(REQUEST, as_of=NOW - timedelta(days=10))
        now = await door.search(REQUEST)
        assert titles(then.results) == ["old"]
        assert titles(now.results) == ["new", "old", "undated"]


class TestTheMomentOfTheSession:
    async def test_a_session_of_today_sees_the_web_of_today(self):
        items = [found("an hour ago", 1 / 24), found("undated", None)]
        response = await service(FakeSearch(items)).search(REQUEST, as_of=NOW - timedelta(hours=23))
        assert titles(response.results) == ["an hour ago", "undated"]

    async def test_a_session_of_the_past_does_not(self):
        items = [found("an hour ago", 1 / 24), found("undated", None), found("then", 3)]
        response = await service(FakeSearch(items)).search(REQUEST, as_of=NOW - timedelta(hours=25))
        assert titles(response.results) == ["then"]


class TestOverHttp:
    @staticmethod
    async def post(search: FakeSearch, body: object, **headers: str) -> httpx.Response:
        app = FastAPI()
        app.include_router(router, prefix="/api/v1")
        install_error_handlers(app)
        app.state.llm_platform = SimpleNamespace(web_search=service(search))
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://desk") as client:
            return await client.post("/api/v1/llm-platform/web-search", json=body, headers=headers)

    async def test_a_query_is_enough(self):
        search = FakeSearch([found("a", 1)])
        answer = await self.post(search, {"query": " 白酒 "})
        assert answer.status_code == 200
        assert answer.json() == {
            "query": "白酒",
            "total_matches": 1,
            "results": [
                {
                    "title": "a",
                    "url": "https://example.com/a",
                    "snippet": "…",
                    "summary": None,
                    "site_name": None,
                    "published_date": "2026-06-29T10:00:00Z",
                }
            ],
        }
        assert search.asked == [WebSearchRequest(query="白酒", freshness=None, summary=True, count=10)]

    @pytest.mark.parametrize("body", [{}, {"query": "  "}, {"query": "x" * 401}, {"query": None}, []])
    async def test_without_a_query_nobody_is_asked(self, body):
        search = FakeSearch([])
        answer = await self.post(search, body)
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")
        assert search.asked == []

    @pytest.mark.parametrize(
        ("field", "value"), [("freshness", "lately"), ("count", 51), ("count", 0), ("page", 2)]
    )
    async def test_what_cannot_be_asked_is_refused_by_name(self, field, value):
        answer = await self.post(FakeSearch([]), {"query": "x", field: value})
        assert answer.status_code == 400
        assert field in answer.json()["message"]

    @pytest.mark.parametrize(
        ("error", "status", "code"),
        [
            (WebSearchError("no", status_code=429), 502, "WEB_SEARCH_FAILED"),
            (WebSearchConnectionError("no"), 503, "WEB_SEARCH_UNREACHABLE"),
            (WebSearchConfigError("no"), 503, "WEB_SEARCH_NOT_CONFIGURED"),
        ],
    )
    async def test_a_failure_has_its_status(self, error, status, code):
        answer = await self.post(FakeSearch(error), {"query": "x"})
        assert (answer.status_code, answer.json()["code"]) == (status, code)

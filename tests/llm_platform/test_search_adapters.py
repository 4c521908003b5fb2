"""Search services over real HTTP, with their careless answers and their errors."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import SecretStr

from moot.modules.llm_platform.application.web_search import WebSearchRequest, WebSearchResultItem
from moot.modules.llm_platform.domain.exceptions import (
    WebSearchConfigError,
    WebSearchConnectionError,
    WebSearchError,
)
from moot.modules.llm_platform.infrastructure.web_searches import BochaSearch, SearxngSearch
from moot.shared.domain.messages import LOCALES
from tests.fakes.search_server import LocalWeb, Reply, local_web

NOW = datetime(2026, 6, 30, 10, tzinfo=UTC)
KEY = "canary-bocha-0001"
BOCHA, SEARXNG = "/v1/web-search", "/search"
REQUEST = WebSearchRequest(query="白酒 景气", freshness="oneMonth", summary=True, count=3)
PAGE = {"name": "标题", "url": "https://example.com/a", "snippet": "片段"}


@pytest.fixture
async def server() -> AsyncIterator[LocalWeb]:
    async with local_web() as served:
        yield served


@pytest.fixture
async def bocha(server) -> AsyncIterator[BochaSearch]:
    search = BochaSearch(server.url, SecretStr(KEY), timeout=60)
    yield search
    await search.aclose()


@pytest.fixture
async def searxng(server) -> AsyncIterator[SearxngSearch]:
    search = SearxngSearch(f"{server.url}/", timeout=60)
    yield search
    await search.aclose()


def envelope(*pages: Any, **changes: Any) -> Reply:
    found = {"_type": "SearchResponse", "webPages": {"totalEstimatedMatches": 42, "value": list(pages)}}
    return Reply(json.dumps({"code": 200, "log_id": "x", "msg": None, "data": found} | changes))


def hits(*results: Any, **changes: Any) -> Reply:
    return Reply(json.dumps({"query": "q", "number_of_results": 0, "results": list(results)} | changes))


class TestBocha:
    async def test_asks_as_the_service_wants_to_be_asked(self, server, bocha):
        server.replies[BOCHA] = envelope()
        answer = await bocha.search(REQUEST)
        (asked,) = server.asked
        assert (asked.method, asked.path) == ("POST", BOCHA)
        assert asked.headers["Authorization"] == f"Bearer {KEY}"
        assert asked.json == {"query": "白酒 景气", "freshness": "oneMonth", "summary": True, "count": 3}
        assert answer.response.results == []
        assert answer.status_code == 200
        assert json.loads(answer.body)["log_id"] == "x"

    async def test_no_freshness_is_not_sent_as_null(self, server, bocha):
        server.replies[BOCHA] = envelope()
        await bocha.search(WebSearchRequest(query="x"))
        assert server.asked[0].json == {"query": "x", "summary": True, "count": 10}

    async def test_a_page_is_read_with_all_that_is_said_about_it(self, server, bocha):
        server.replies[BOCHA] = envelope(
            PAGE | {"summary": "摘要", "siteName": "示例网", "datePublished": "2026-06-03T08:00:00+08:00"}
        )
        response = (await bocha.search(REQUEST)).response
        assert (response.query, response.total_matches) == ("白酒 景气", 42)
        assert response.results == [
            WebSearchResultItem(
                title="标题",
                url="https://example.com/a",
                snippet="片段",
                summary="摘要",
                site_name="示例网",
                published_date=datetime(2026, 6, 3, 0, 0, tzinfo=UTC),
            )
        ]

    @pytest.mark.parametrize(
        "dates",
        [
            {},
            {"datePublished": None},
            {"datePublished": ""},
            {"datePublished": "yesterday"},
            {"datePublished": 1717372800},
            {"datePublished": "0001-01-01T00:00:00+08:00"},
            {"dateLastCrawled": "2026-06-03T08:00:00Z"},
        ],
    )
    async def test_a_page_of_which_nobody_says_when_is_undated(self, server, bocha, dates):
        server.replies[BOCHA] = envelope(PAGE | dates)
        (item,) = (await bocha.search(REQUEST)).response.results
        assert item.published_date is None

    async def test_a_time_without_a_zone_is_the_latest_it_can_mean(self, server, bocha):
        server.replies[BOCHA] = envelope(PAGE | {"datePublished": "2026-06-03T08:00:00"})
        (item,) = (await bocha.search(REQUEST)).response.results
        assert item.published_date == datetime(2026, 6, 3, 20, 0, tzinfo=UTC)

    @pytest.mark.parametrize(
        "changes",
        [{"data": None}, {"data": {}}, {"data": {"webPages": None}}, {"data": {"webPages": {"value": None}}}],
    )
    async def test_nothing_found_is_an_empty_list(self, server, bocha, changes):
        server.replies[BOCHA] = envelope(**changes)
        response = (await bocha.search(REQUEST)).response
        assert (response.results, response.total_matches) == ([], None)

    async def test_what_is_no_page_of_the_web_is_left_out(self, server, bocha):
        strange = [None, "text", {}, PAGE | {"url": None}, PAGE | {"url": "javascript:alert(1)"}]
        server.replies[BOCHA] = envelope(*strange, {"url": "http://a.com", "name": 7, "snippet": None})
        (item,) = (await bocha.search(REQUEST)).response.results
        assert (item.title, item.url, item.snippet) == ("", "http://a.com", "")

    @pytest.mark.parametrize("status", [400, 401, 403, 429, 500, 302])
    async def test_an_http_error_carries_its_status_and_the_services_words(self, server, bocha, status):
        server.replies[BOCHA] = Reply(json.dumps({"code": str(status), "message": "no money"}), status=status)
        with pytest.raises(WebSearchError, match="no money") as failed:
            await bocha.search(REQUEST)
        assert failed.value.status_code == status

    async def test_a_200_with_an_error_in_it_is_an_error(self, server, bocha):
        server.replies[BOCHA] = Reply(json.dumps({"code": 403, "msg": "not enough", "data": None}))
        with pytest.raises(WebSearchError, match=r"403.*not enough") as failed:
            await bocha.search(REQUEST)
        assert failed.value.status_code == 200

    @pytest.mark.parametrize("body", ["", "<html>sign in</html>", "[]", "null", "[" * 100_000])
    async def test_what_is_no_search_result_is_an_error(self, server, bocha, body):
        server.replies[BOCHA] = Reply(body)
        with pytest.raises(WebSearchError):
            await bocha.search(REQUEST)

    async def test_the_key_is_never_repeated(self, server, bocha):
        server.replies[BOCHA] = Reply(f"invalid key {KEY}", status=401)
        with pytest.raises(WebSearchError) as failed:
            await bocha.search(REQUEST)
        assert all(KEY not in failed.value.in_locale(locale) for locale in LOCALES)

    @pytest.mark.parametrize("reply", [Reply(hang=True), Reply(reset=True)])
    async def test_a_service_that_does_not_answer_is_unreachable(self, server, reply):
        search = BochaSearch(server.url, SecretStr(KEY), timeout=0.2)
        server.replies[BOCHA] = reply
        with pytest.raises(WebSearchConnectionError):
            await search.search(REQUEST)
        await search.aclose()

    async def test_nobody_there_is_unreachable(self):
        search = BochaSearch("http://127.0.0.1:1", SecretStr(KEY), timeout=60)
        with pytest.raises(WebSearchConnectionError):
            await search.search(REQUEST)
        await search.aclose()

    async def test_a_missing_key_is_found_out_when_it_is_needed(self, server):
        search = BochaSearch(server.url, SecretStr(" "))
        with pytest.raises(WebSearchConfigError, match="MOOT_BOCHA_API_KEY"):
            await search.search(REQUEST)
        assert server.asked == []


class TestSearxng:
    @pytest.mark.parametrize(
        ("freshness", "time_range"),
        [
            ("oneDay", "day"),
            ("oneWeek", "week"),
            ("oneMonth", "month"),
            ("oneYear", "year"),
            ("noLimit", None),
            (None, None),
        ],
    )
    async def test_freshness_becomes_a_time_range(self, server, searxng, freshness, time_range):
        server.replies[SEARXNG] = hits()
        await searxng.search(REQUEST.model_copy(update={"freshness": freshness}))
        (asked,) = server.asked
        assert (asked.method, asked.path) == ("GET", SEARXNG)
        assert asked.query.get("time_range") == time_range
        assert (asked.query["q"], asked.query["format"]) == ("白酒 景气", "json")

    async def test_a_result_is_read(self, server, searxng):
        server.replies[SEARXNG] = hits(
            {
                "title": "Baijiu",
                "url": "https://example.com/b",
                "content": "rises",
                "publishedDate": "2026-06-03T08:00:00",
                "engine": "bing",
            },
            {"title": "Undated", "url": "https://example.com/c", "content": "…", "publishedDate": None},
            number_of_results=12,
        )
        response = (await searxng.search(REQUEST)).response
        first, second = response.results
        assert first == WebSearchResultItem(
            title="Baijiu",
            url="https://example.com/b",
            snippet="rises",
            site_name="bing",
            published_date=datetime(2026, 6, 3, 20, tzinfo=UTC),
        )
        assert second.published_date is None
        assert response.total_matches == 12

    async def test_no_more_than_asked_for_are_kept_and_zero_matches_means_unsaid(self, server, searxng):
        many = [{"title": str(n), "url": f"https://a.com/{n}", "content": "…"} for n in range(30)]
        server.replies[SEARXNG] = hits(*many)
        response = (await searxng.search(REQUEST)).response
        assert [item.title for item in response.results] == ["0", "1", "2"]
        assert response.total_matches is None

    async def test_an_instance_without_json_says_so_by_its_status(self, server, searxng):
        server.replies[SEARXNG] = Reply("<h1>Forbidden</h1>", status=403)
        with pytest.raises(WebSearchError) as failed:
            await searxng.search(REQUEST)
        assert failed.value.status_code == 403

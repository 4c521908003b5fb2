"""Search responses in the database: kept for their time, replaced by newer ones, and cleaned away."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from moot.modules.llm_platform.application.web_search import (
    CACHE_HOURS,
    WebSearchRequest,
    WebSearchResponse,
    WebSearchResultItem,
)
from moot.modules.llm_platform.infrastructure.tables import WebSearchCacheRow
from moot.modules.llm_platform.infrastructure.web_searches import SqlSearches
from moot.shared.domain.errors import Unavailable
from moot.shared.infrastructure.database import Database
from tests.fakes.clock import FixedClock

NOW = datetime(2026, 6, 30, 10, tzinfo=UTC)
REQUEST = WebSearchRequest(query="白酒", freshness="oneDay", count=5)
KEY = REQUEST.key("bochai")


def response(*titles: str) -> WebSearchResponse:
    items = [WebSearchResultItem(title=t, url=f"https://a.com/{t}", published_date=NOW) for t in titles]
    return WebSearchResponse(query="白酒", total_matches=7, results=items)


def at(database: Database, moment: datetime) -> SqlSearches:
    return SqlSearches(database, FixedClock(moment))


async def test_what_is_put_comes_back_the_same(database):
    assert await at(database, NOW).get(KEY) is None
    await at(database, NOW).put(KEY, REQUEST, response("a", "b"))
    assert await at(database, NOW).get(KEY) == response("a", "b")
    assert await at(database, NOW).get(REQUEST.key("searxng")) is None


@pytest.mark.parametrize(
    ("freshness", "hours"),
    [("oneDay", 4), ("oneWeek", 12), ("oneMonth", 24), ("oneYear", 48), ("noLimit", 24), (None, 24)],
)
async def test_it_is_good_for_its_time_and_not_a_moment_longer(sqlite_database, freshness, hours):
    assert CACHE_HOURS[freshness] == hours
    request = REQUEST.model_copy(update={"freshness": freshness})
    await at(sqlite_database, NOW).put(KEY, request, response("a"))
    end = NOW + timedelta(hours=hours)
    assert await at(sqlite_database, end - timedelta(seconds=1)).get(KEY) == response("a")
    assert await at(sqlite_database, end).get(KEY) is None


async def test_a_newer_answer_takes_the_place_of_the_old_one(database):
    later = NOW + timedelta(hours=3)
    await at(database, NOW).put(KEY, REQUEST, response("old"))
    await at(database, later).put(KEY, REQUEST, response("new"))
    async with database.session() as db:
        (row,) = (await db.scalars(select(WebSearchCacheRow))).all()
    assert (row.created_at, row.expires_at) == (later, later + timedelta(hours=4))
    assert row.request_params == {"query": "白酒", "freshness": "oneDay", "summary": True, "count": 5}
    assert await at(database, later).get(KEY) == response("new")


async def test_only_what_has_expired_is_cleaned_away(database):
    await at(database, NOW).put("short", REQUEST, response("a"))
    await at(database, NOW).put("long", REQUEST.model_copy(update={"freshness": "oneYear"}), response("b"))
    await at(database, NOW + timedelta(hours=4)).cleanup_expired()
    assert await kept(database) == ["long"]


async def test_writing_cleans_away_what_has_expired(database):
    await at(database, NOW).put("old", REQUEST, response("a"))
    await at(database, NOW + timedelta(hours=3)).put("newer", REQUEST, response("b"))
    await at(database, NOW + timedelta(hours=5)).put("new", REQUEST, response("c"))
    assert await kept(database) == ["new", "newer"]


async def kept(database: Database) -> list[str]:
    async with database.session() as db:
        return list(await db.scalars(select(WebSearchCacheRow.cache_key).order_by("cache_key")))


async def test_a_database_without_the_table_says_that_it_failed(empty_sqlite_url):
    database = Database(empty_sqlite_url)
    try:
        with pytest.raises(Unavailable):
            await at(database, NOW).get(KEY)
    finally:
        await database.close()

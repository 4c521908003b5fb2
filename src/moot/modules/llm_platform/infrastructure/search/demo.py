"""A web search that needs no web: it looks through what the demo market publishes."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import count

from moot.modules.llm_platform.domain.search import (
    Freshness,
    SearchAnswer,
    WebSearchRequest,
    WebSearchResponse,
    WebSearchResultItem,
)
from moot.modules.llm_platform.domain.texts import SAY
from moot.modules.market_data.application.market_data import MarketData
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale
from moot.shared.domain.symbol import Symbol
from moot.shared.infrastructure.execution_context import current_execution_ctx

LOOK_BACK: dict[Freshness | None, timedelta] = {
    "oneDay": timedelta(days=1),
    "oneWeek": timedelta(days=7),
    "oneMonth": timedelta(days=31),
    "oneYear": timedelta(days=366),
    "noLimit": timedelta(days=3653),
    None: timedelta(days=366),
}
RELEASE_LAG = timedelta(days=62)
"""A macro figure is found by its period, and comes out weeks after that began."""

FIRST_CODE = 900001
"""The demo market numbers its companies from here on, without gaps."""

COMMON_WORDS = frozenset(
    {"the", "and", "for", "with", "from", "of", "in", "on", "to", "by", "is", "an", "at"}
)

Items = dict[str, WebSearchResultItem]
"""By URL: what concerns an industry is published once, and found with each of its companies."""


class DemoSearch:
    """Finds what was public at the session's moment. So its answers differ by session, and no cache may keep them."""

    name = "demo"

    def __init__(self, market_data: MarketData, clock: Clock) -> None:
        self._market_data, self._clock = market_data, clock

    async def search(self, request: WebSearchRequest) -> SearchAnswer:
        context = current_execution_ctx.get()
        as_of = (context.as_of if context else None) or self._clock.now()
        published = await self._published(as_of - LOOK_BACK[request.freshness], as_of)
        hits = _ranked(request.query, published)
        response = WebSearchResponse(
            query=request.query, total_matches=len(hits), results=hits[: request.count]
        )
        return SearchAnswer(response=response, body=response.model_dump_json())

    async def aclose(self) -> None:
        return None

    async def _published(self, since: datetime, as_of: datetime) -> list[WebSearchResultItem]:
        items: Items = {}
        for symbol in await self._listed(as_of):
            items |= await self._news(symbol, since, as_of) | await self._figures(symbol, since, as_of)
        return [item for item in items.values() if item.published_date and item.published_date >= since]

    async def _listed(self, as_of: datetime) -> list[Symbol]:
        listed = []
        for code in count(FIRST_CODE):
            symbol = Symbol.parse(f"{code}.DEMO")
            try:
                await self._market_data.company(symbol, as_of=as_of)
            except InvalidInput as e:
                if e.code == "SYMBOL_NOT_LISTED":
                    continue
                break
            listed.append(symbol)
        return listed

    async def _news(self, symbol: Symbol, since: datetime, as_of: datetime) -> Items:
        company = await self._market_data.company(symbol, as_of=as_of)
        days = (as_of - since).days + 1
        about = f"{company.symbol} {company.industry} {company.industry_en}"
        return {
            news.url: _item(
                {"zh-CN": news.title, "en-US": news.title_en or news.title},
                news.url,
                news.available_at,
                about if news.symbol else "",
            )
            for news in await self._market_data.news(symbol, days, as_of=as_of)
        }

    async def _figures(self, symbol: Symbol, since: datetime, as_of: datetime) -> Items:
        company = await self._market_data.company(symbol, as_of=as_of)
        industries: dict[Locale, str] = {"zh-CN": company.industry, "en-US": company.industry_en}
        days = (as_of - since + RELEASE_LAG).days
        return {
            figure.url: _item(
                _titles(figure.series, f"{figure.period:%Y-%m}", figure.value, figure.unit, industries),
                figure.url,
                figure.available_at,
            )
            for figure in await self._market_data.macro(symbol, days, as_of=as_of)
            if figure.industry in (None, company.industry)
        }


def words(text: str) -> set[str]:
    """Words of letters and digits, and pairs of Chinese characters, which has no spaces between words."""
    latin = re.findall(r"[a-z][a-z0-9]+|\d{6}", text.lower())
    runs = re.findall(r"[\u4e00-\u9fff]+", text)
    pairs = {run[i : i + 2] for run in runs for i in range(max(1, len(run) - 1))}
    return (set(latin) | pairs) - COMMON_WORDS


def _ranked(query: str, items: list[WebSearchResultItem]) -> list[WebSearchResultItem]:
    """Those that share a word with the query; most words first, then the newest."""
    wanted = words(query)
    scored = [(len(wanted & words(item.snippet)), item.published_date, item) for item in items]
    hits = [hit for hit in scored if hit[0]]
    return [item for _, _, item in sorted(hits, key=lambda hit: hit[:2], reverse=True)]


def _titles(
    series: str, period: str, value: float, unit: str, industries: Mapping[Locale, str]
) -> dict[Locale, str]:
    shown = f"{value:g}%" if unit == "%" else f"{value:g}"
    return {
        locale: SAY(
            "search.figure",
            series=SAY(f"search.series.{series}", industry=industry),
            period=period,
            value=shown,
        ).in_locale(locale)
        for locale, industry in industries.items()
    }


def _item(
    titles: Mapping[Locale, str], url: str, published: datetime, about: str = ""
) -> WebSearchResultItem:
    """Titled in the reader's language, and found by the words of either."""
    context = current_execution_ctx.get()
    return WebSearchResultItem(
        title=titles[context.locale if context else DEFAULT_LOCALE],
        url=url,
        snippet=" · ".join(filter(None, [*titles.values(), about])),
        site_name="demo",
        published_date=published,
    )

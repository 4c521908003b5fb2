"""What research reads of other contexts.

Facts come through the point-in-time door of market data; pages are found by the search service of the model platform,
each as one line of untrusted text.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Final, TypeVar

import structlog

from moot.modules.llm_platform.application.web_search import WebSearchRequest, WebSearchService
from moot.modules.market_data.application.market_data import MarketData
from moot.modules.research.application.expert_service import Findings, Passage, WebSearch
from moot.modules.research.domain.facts import Bar, Company, Fact, MacroFigure, News, Report, Valuation
from moot.shared.domain.errors import AppError
from moot.shared.domain.symbol import Symbol

F = TypeVar("F", bound=Fact)
logger = structlog.get_logger(__name__)

LONGEST: Final = 300
MOST: Final = 4
"""Passages of a dimension that are read: everybody after the expert is shown them too, and pays for them."""
SOURCE: Final = "web"
ADDRESS: Final = r"""://[^\s<>"`\\]{1,500}"""
REAL_PAGE: Final = re.compile(rf"(?i:https?){ADDRESS}")
MADE_UP_PAGE: Final = re.compile(rf"demo{ADDRESS}")


class MarketDataFacts:
    def __init__(self, market_data: MarketData) -> None:
        self._market_data = market_data

    async def company(self, symbol: Symbol, *, as_of: datetime) -> Company:
        return Company.model_validate(await self._market_data.company(symbol, as_of=as_of))

    async def bars(self, symbol: Symbol, start: date, end: date, *, as_of: datetime) -> list[Bar]:
        bars = await self._market_data.daily_bars(symbol, start, end, as_of=as_of)
        return _read(Bar, [bar for bar in bars if not bar.suspended])

    async def valuations(self, symbol: Symbol, start: date, end: date, *, as_of: datetime) -> list[Valuation]:
        return _read(Valuation, await self._market_data.daily_valuations(symbol, start, end, as_of=as_of))

    async def reports(self, symbol: Symbol, periods: int, *, as_of: datetime) -> list[Report]:
        return _read(Report, await self._market_data.financial_reports(symbol, periods, as_of=as_of))

    async def macro(self, symbol: Symbol, days: int, *, as_of: datetime) -> list[MacroFigure]:
        company = await self._market_data.company(symbol, as_of=as_of)
        figures = await self._market_data.macro(symbol, days, as_of=as_of)
        return _read(MacroFigure, [f for f in figures if f.industry in (None, company.industry)])

    async def news(self, symbol: Symbol, days: int, *, as_of: datetime) -> list[News]:
        return _read(News, await self._market_data.news(symbol, days, as_of=as_of))


def _read(kind: type[F], facts: Iterable[object]) -> list[F]:
    return [kind.model_validate(fact) for fact in facts]


async def find_on_web(
    service: WebSearchService, queries: Mapping[WebSearch, str], symbol: Symbol, as_of: datetime
) -> Findings:
    """All at the same time."""
    searches = [_search(service, search, query, symbol, as_of) for search, query in queries.items()]
    return dict(zip(queries, await asyncio.gather(*searches), strict=True))


async def _search(
    service: WebSearchService, search: WebSearch, query: str, symbol: Symbol, as_of: datetime
) -> list[Passage]:
    request = WebSearchRequest(query=query, freshness=search.freshness, count=search.count)
    try:
        response = await service.search(request, as_of=as_of)
    except AppError as e:
        logger.warning("web search failed", query=query, dimension=search.dimension, error=str(e))
        return []
    page = MADE_UP_PAGE if symbol.synthetic else REAL_PAGE
    return [
        Passage(
            text=_text(item.title, (item.summary or "").strip() or item.snippet),
            url=item.url,
            source=SOURCE,
            published=item.published_date and symbol.local_date(item.published_date),
            available_at=item.published_date or as_of,
        )
        for item in response.results
        # an address that cannot end a quotation, in the world the symbol belongs to
        if item.url.isprintable()
        and page.fullmatch(item.url)
        # a page without a date is left to the search, which lets none pass to a session of the past
        and (item.published_date is None or item.published_date <= as_of)
    ][:MOST]


def _text(title: str, said: str) -> str:
    """Many a text begins with its title. A number that is cut in two would be another number."""
    heading, text = _line(title), _line(said)
    whole = text if text.startswith(heading) else f"{heading}: {text}"
    if len(whole) <= LONGEST:
        return whole
    return whole[: LONGEST - 1].rstrip("0123456789.,%+- ") + "…"


def _line(text: str) -> str:
    """Nothing in it ends a line, or hides."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())

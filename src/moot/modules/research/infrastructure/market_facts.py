"""Research's facts, read through the point-in-time door of market data."""

from collections.abc import Iterable
from datetime import date, datetime
from typing import TypeVar

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.research.domain.facts import Bar, Company, Fact, MacroFigure, News, Report, Valuation
from moot.shared.domain.symbol import Symbol

F = TypeVar("F", bound=Fact)


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

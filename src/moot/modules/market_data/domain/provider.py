"""The seam between Moot and a source of market data."""

from collections.abc import Sequence
from datetime import date
from typing import Protocol

from moot.modules.market_data.domain.facts import (
    Company,
    DailyBar,
    DailyValuation,
    FinancialReport,
    MacroObservation,
    NewsItem,
)


class MarketDataProvider(Protocol):
    """Returns everything it has for the asked range, oldest first; point in time is the caller's business.

    An unknown symbol gives an empty answer, a source that cannot answer raises `Unavailable`.
    """

    async def companies(self) -> Sequence[Company]: ...

    async def daily_bars(self, symbol: str, start: date, end: date) -> Sequence[DailyBar]: ...

    async def daily_valuations(self, symbol: str, start: date, end: date) -> Sequence[DailyValuation]: ...

    async def financial_reports(self, symbol: str) -> Sequence[FinancialReport]: ...

    async def macro(self, start: date, end: date) -> Sequence[MacroObservation]: ...

    async def news(self, start: date, end: date) -> Sequence[NewsItem]: ...

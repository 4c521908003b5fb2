"""Prices of the past, as the desk's own data has them by now."""

from collections.abc import Sequence
from datetime import date, datetime

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.application.upkeep import MarketDataUpkeep
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.facts import DailyBar
from moot.shared.domain.symbol import Market, Symbol

BARS = "bars"


class PastPrices:
    def __init__(self, market_data: MarketData, upkeep: MarketDataUpkeep, now: datetime) -> None:
        self._market_data, self._upkeep, self._now = market_data, upkeep, now

    async def list_symbols(self, start: date, end: date) -> list[Symbol]:
        kept = [held.coverage for held in await self._upkeep.holdings() if held.coverage.dataset == BARS]
        spans = {one.subject: one.span for one in kept}
        inside = [
            name for name, (first, last) in spans.items() if first and last and first <= end and last >= start
        ]
        return sorted(map(Symbol.parse, inside), key=str)

    def list_sessions(self, market: Market, start: date, end: date) -> list[date]:
        return self._market_data.calendar_of(market).within(start, end)

    async def read_bars(self, symbol: Symbol, start: date, end: date) -> Sequence[DailyBar]:
        try:
            return await self._market_data.daily_bars(symbol, start, end, as_of=self._now, adjusted=False)
        except Unavailable:
            return []

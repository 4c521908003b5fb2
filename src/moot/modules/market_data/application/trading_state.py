"""What can be traded, and how, at a moment: for whoever decides whether a trade makes sense at all."""

from collections.abc import Callable
from datetime import datetime, timedelta

from pydantic import BaseModel, ConfigDict

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.domain.calendar import TradingCalendar
from moot.modules.market_data.domain.trading_rules import (
    LOTS,
    SETTLEMENT,
    board_of,
    is_limit_down,
    is_limit_up,
    price_limit,
)
from moot.shared.domain.symbol import Market, Symbol

LOOK_BACK = timedelta(days=15)


class TradingState(BaseModel):
    """As of the last session known then. None: there is none. Percentages are of the day's reference price.

    `t_plus`: sessions before shares bought may be sold again.
    """

    model_config = ConfigDict(frozen=True)

    st: bool
    suspended: bool
    days_listed: int
    limit_percent: float | None
    change_percent: float
    at_limit_up: bool
    at_limit_down: bool
    t_plus: int
    lot_size: int | None


class TradingStates:
    def __init__(self, market_data: MarketData, calendar_of: Callable[[Market], TradingCalendar]) -> None:
        self._market_data, self._calendar_of = market_data, calendar_of

    async def of(self, symbol: Symbol, *, as_of: datetime) -> TradingState | None:
        """None when there has been no session lately. Raises `InvalidInput` for what cannot be researched."""
        today = symbol.local_date(as_of)
        company = await self._market_data.company(symbol, as_of=as_of)
        bars = await self._market_data.daily_bars(
            symbol, today - LOOK_BACK, today, as_of=as_of, adjusted=False
        )
        if not bars:
            return None
        bar, board = bars[-1], board_of(symbol)
        band = price_limit(
            symbol,
            bar.trade_date,
            is_st=bar.is_st,
            listed_on=company.list_date,
            calendar=self._calendar_of(symbol.market),
        )
        return TradingState(
            st=bar.is_st,
            suspended=bar.suspended,
            days_listed=(today - company.list_date).days,
            limit_percent=float(band.up) if band else None,
            change_percent=round((bar.close / bar.pre_close - 1) * 100, 4),
            at_limit_up=is_limit_up(bar, band),
            at_limit_down=is_limit_down(bar, band),
            t_plus=SETTLEMENT[symbol.market],
            lot_size=LOTS[board] if board else None,
        )

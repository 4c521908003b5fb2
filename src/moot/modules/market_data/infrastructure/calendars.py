"""Which days each exchange trades: a rule for the demo market, a table of closed days for real ones."""

import tomllib
from datetime import date, timedelta
from functools import cache
from pathlib import Path

from moot.modules.market_data.domain.trading_rules import TradingCalendar
from moot.modules.market_data.infrastructure.demo.market import trading_days
from moot.shared.domain.symbol import Market

CLOSED_DAYS = Path(__file__).with_name("closed_days.toml")
DEMO_ENDS = date(2049, 12, 31)


@cache
def trading_calendar(market: Market) -> TradingCalendar:
    """Its own rule for the demo market; for real exchanges a table of closed days, read when first asked for."""
    return TradingCalendar(market, trading_days(DEMO_ENDS) if market is Market.DEMO else _read_days(market))


def _read_days(market: Market) -> list[date]:
    """`closed` has a line for each year: the year, then its closed days as MMDD."""
    known = tomllib.loads(CLOSED_DAYS.read_text(encoding="utf-8"))[market.value]
    first, last, lines = known["first"], known["last"], map(str.split, known["closed"].splitlines())
    closed = {date.fromisoformat(year + day) for year, *days in lines for day in days}
    every = (first + timedelta(days=n) for n in range((last - first).days + 1))
    return [day for day in every if day.weekday() < 5 and day not in closed]

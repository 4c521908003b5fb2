"""The calendars of the markets: a table of closed days for real exchanges, its own rule for the demo market."""

import tomllib
from collections.abc import Iterator
from datetime import date, timedelta
from functools import cache
from pathlib import Path

from moot.modules.market_data.domain.trading_rules import TradingCalendar
from moot.modules.market_data.infrastructure.demo.market import trading_days
from moot.shared.domain.symbol import Market

TABLE = Path(__file__).with_name("closed_days.toml")
DEMO_ENDS = date(2099, 12, 31)


@cache
def trading_calendar(market: Market) -> TradingCalendar:
    """Read when first asked for."""
    return TradingCalendar(market, trading_days(DEMO_ENDS) if market is Market.DEMO else _read(market))


def _read(market: Market) -> list[date]:
    known = tomllib.loads(TABLE.read_text(encoding="utf-8"))[market.value]
    first, last, closed = known["first"], known["last"], set(_dates(known["closed"]))
    days = (first + timedelta(days=n) for n in range((last - first).days + 1))
    return [day for day in days if day.weekday() < 5 and day not in closed]


def _dates(table: str) -> Iterator[date]:
    for line in table.splitlines():
        year, *days = line.split()
        yield from (date(int(year), int(day[:2]), int(day[2:])) for day in days)

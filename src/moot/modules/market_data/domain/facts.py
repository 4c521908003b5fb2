"""The kinds of market data, one line each at the end: how one is kept, fetched and asked for follows from its line.

What they are made of are the facts of `moot.shared.domain.facts`, which whoever reads them knows too.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.domain.trading_rules import TradingCalendar
from moot.shared.domain.facts import (
    Company,
    DailyBar,
    DailyValuation,
    Dividend,
    EarningsNotice,
    FinancialReport,
    FlowDay,
    HolderCount,
    HolderTrade,
    IndexBar,
    MacroObservation,
    MarginDay,
    NewsItem,
    Pledge,
    Statement,
    Unlock,
)
from moot.shared.domain.messages import Message
from moot.shared.domain.symbol import TIME_ZONES, Market


def local_day(told: Any, market: Market) -> Any:
    """The exchange's day of a moment; anything else, as a day, is what it is."""
    return told.astimezone(TIME_ZONES[market]).date() if isinstance(told, datetime) else told


@dataclass(frozen=True)
class Age:
    """How old the newest row may be at the moment of a question before it is no data at all, by its `day`."""

    sessions: int | None = None
    days: int | None = None

    @property
    def most(self) -> int:
        return self.sessions or self.days or 0

    def measure(self, day: date, today: date, calendar: TradingCalendar) -> int:
        """How old that day is, in the unit of the limit."""
        if self.sessions is None or day >= today:
            return (today - day).days
        return calendar.count(day + timedelta(days=1), today)


M_co = TypeVar("M_co", bound=BaseModel, covariant=True)


@dataclass(frozen=True)
class Dataset(Generic[M_co]):
    """`key` names a row; of rows that share it, the one known first holds, or else the one stored last. `day` orders
    them, oldest first.

    A restated report is another version, not the same row: its key has the moment it became known. `by_symbol`: kept
    per symbol, otherwise per market. `whole`: comes all at once, otherwise for a range of days. `late_by` is how long
    after a day something about it may still come out: until then, it is not complete. `limit` is how old it may be;
    None where having nothing new is nothing special.
    """

    name: str
    model: type[M_co]
    key: tuple[str, ...]
    day: str
    by_symbol: bool = True
    whole: bool = False
    late_by: timedelta = timedelta()
    limit: Age | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def label(self) -> Message:
        """As people call it."""
        return SAY(f"dataset.{self.name}")

    def covers(self, day: Any, start: date, end: date, market: Market) -> bool:
        """Whether a row of that day is asked for; one without a day is, to be refused by name."""
        day = local_day(day, market)
        return self.whole or not isinstance(day, date) or start <= day <= end


FILED: dict[str, Any] = {"key": ("period_end", "available_at"), "day": "period_end", "whole": True}
"""By period, in every version that was told."""
FILED_QUARTERLY = FILED | {"limit": Age(days=230)}
DAILY: dict[str, Any] = {"key": ("trade_date",), "day": "trade_date", "limit": Age(sessions=5)}
COMPANIES = Dataset("companies", Company, ("symbol",), "symbol", by_symbol=False, whole=True)
BARS = Dataset("bars", DailyBar, **DAILY)
VALUATIONS = Dataset("valuations", DailyValuation, **DAILY)
REPORTS = Dataset("reports", FinancialReport, **FILED_QUARTERLY)
STATEMENTS = Dataset("statements", Statement, **FILED_QUARTERLY)
NOTICES = Dataset("notices", EarningsNotice, ("kind", "period_end", "available_at"), "period_end", whole=True)
DIVIDENDS = Dataset("dividends", Dividend, **FILED)
MACRO = Dataset(
    "macro",
    MacroObservation,
    ("series", "industry", "period", "available_at"),
    "period",
    by_symbol=False,
    late_by=timedelta(days=75),
    limit=Age(days=100),
)
NEWS = Dataset("news", NewsItem, ("url",), "available_at", late_by=timedelta(days=2))
INDEX_BARS = Dataset(
    "index_bars",
    IndexBar,
    **DAILY | {"key": ("index", "trade_date"), "by_symbol": False, "late_by": timedelta(days=2)},
)
PLEDGES = Dataset("pledges", Pledge, ("day",), "day", whole=True, limit=Age(days=45))
UNLOCKS = Dataset(
    "unlocks", Unlock, ("unlock_date", "announced_on", "holder", "shares"), "unlock_date", whole=True
)
HOLDERS = Dataset("holders", HolderCount, **FILED_QUARTERLY)
HOLDER_TRADES = Dataset(
    "holder_trades",
    HolderTrade,
    ("announced_on", "holder", "direction", "shares"),
    "announced_on",
    whole=True,
)
NEXT_SESSION = timedelta(days=12)
"""What is published in the next session may take the longest holiday."""
MARGIN = Dataset("margin", MarginDay, **DAILY, late_by=NEXT_SESSION)
FLOWS = Dataset("flows", FlowDay, **DAILY, late_by=NEXT_SESSION)

VERSIONED = (REPORTS, STATEMENTS)
"""A row of these may tell a part of what a company reported; what was known before holds beside it."""
CORE = (COMPANIES, BARS, VALUATIONS, REPORTS, DIVIDENDS, MACRO, NEWS)
"""What every source of a market has, or is asked for; the rest deepens it where a source has it."""
DEEP = (STATEMENTS, NOTICES, INDEX_BARS, PLEDGES, UNLOCKS, HOLDERS, HOLDER_TRADES, MARGIN, FLOWS)
DATASETS: dict[str, Dataset[Any]] = {dataset.name: dataset for dataset in (*CORE, *DEEP)}
"""Those of periods are limited by the law: the report of a third quarter is the newest until the end of April."""
BY_MODEL: dict[type[BaseModel], Dataset[Any]] = {dataset.model: dataset for dataset in DATASETS.values()}

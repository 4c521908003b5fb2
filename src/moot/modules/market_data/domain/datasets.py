"""The kinds of data there are, one line each: how a kind is kept, fetched and asked for follows from its line."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from operator import attrgetter
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from moot.modules.market_data.domain.facts import (
    Company,
    DailyBar,
    DailyValuation,
    Dividend,
    FinancialReport,
    MacroObservation,
    NewsItem,
)
from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.messages import Message
from moot.shared.domain.symbol import TIME_ZONES, Market

M_co = TypeVar("M_co", bound=BaseModel, covariant=True)


@dataclass(frozen=True)
class Dataset(Generic[M_co]):
    """`key` names a row; where two rows share it, the one stored later holds. `day` orders them, oldest first.

    A restated report is another version, not the same row: its key has the moment it became known. `by_symbol`: kept
    per symbol, otherwise per market. `whole`: comes all at once, otherwise for a range of days. `late_by` is how long
    after a day something about it may still come out: until then, it is not complete.
    """

    name: str
    model: type[M_co]
    key: tuple[str, ...]
    day: str
    by_symbol: bool = True
    whole: bool = False
    late_by: timedelta = timedelta()

    def __str__(self) -> str:
        return self.name

    @property
    def label(self) -> Message:
        """As people call it."""
        return SAY(f"dataset.{self.name}")

    def between(self, facts: Sequence[Any], start: date, end: date, market: Market) -> Sequence[Any]:
        """Of facts in the order of their days, those of the days asked for."""
        if self.whole:
            return facts
        first, last = start, end
        if self.model.model_fields[self.day].annotation is not date:
            zone = TIME_ZONES[market]
            first, last = datetime.combine(start, time.min, zone), datetime.combine(end, time.max, zone)
        day = attrgetter(self.day)
        return facts[bisect_left(facts, first, key=day) : bisect_right(facts, last, key=day)]

    def covers(self, day: Any, start: date, end: date, market: Market) -> bool:
        """Whether a row of that day is asked for; one without a day is, to be refused by name."""
        if isinstance(day, datetime):
            day = day.astimezone(TIME_ZONES[market]).date()
        return self.whole or not isinstance(day, date) or start <= day <= end


COMPANIES = Dataset("companies", Company, ("symbol",), "symbol", by_symbol=False, whole=True)
BARS = Dataset("bars", DailyBar, ("trade_date",), "trade_date")
VALUATIONS = Dataset("valuations", DailyValuation, ("trade_date",), "trade_date")
REPORTS = Dataset("reports", FinancialReport, ("period_end", "available_at"), "period_end", whole=True)
DIVIDENDS = Dataset("dividends", Dividend, ("period_end", "available_at"), "period_end", whole=True)
MACRO = Dataset(
    "macro",
    MacroObservation,
    ("series", "industry", "period", "available_at"),
    "period",
    by_symbol=False,
    late_by=timedelta(days=75),
)
NEWS = Dataset("news", NewsItem, ("url",), "available_at", late_by=timedelta(days=2))

DATASETS: dict[str, Dataset[Any]] = {
    dataset.name: dataset for dataset in (COMPANIES, BARS, VALUATIONS, REPORTS, DIVIDENDS, MACRO, NEWS)
}

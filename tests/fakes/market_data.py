"""A provider that returns what a test gave it, and short ways to write a fact."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, TypeVar

from pydantic import BaseModel

from moot.modules.market_data.domain.facts import Dataset
from moot.modules.market_data.domain.provider import Batch
from moot.shared.domain.facts import (
    Company,
    DailyBar,
    DailyValuation,
    Dividend,
    FinancialReport,
    MacroObservation,
    NewsItem,
)

SYMBOL = "900001.DEMO"
M = TypeVar("M", bound=BaseModel)


@dataclass
class FakeMarketDataProvider:
    directory: list[Company] = field(default_factory=list)
    bars: list[DailyBar] = field(default_factory=list)
    valuations: list[DailyValuation] = field(default_factory=list)
    reports: list[FinancialReport] = field(default_factory=list)
    observations: list[MacroObservation] = field(default_factory=list)
    items: list[NewsItem] = field(default_factory=list)

    payouts: list[Dividend] = field(default_factory=list)
    deep: dict[str, list[Any]] = field(default_factory=dict)
    """What else there is, by dataset."""
    name: str = "fake"

    async def read(
        self, dataset: Dataset[M], subject: str, start: date = date.min, end: date = date.max
    ) -> Batch[M]:
        every: list[Any] = self._facts().get(dataset.name, [])
        mine = [fact for fact in every if getattr(fact, "symbol", None) in (subject, None)]
        facts = mine if dataset.by_symbol else every
        return Batch(f for f in facts if dataset.whole or start <= _day(f, dataset.day) <= end)

    def _facts(self) -> dict[str, list[Any]]:
        return {
            "companies": self.directory,
            "bars": self.bars,
            "valuations": self.valuations,
            "reports": self.reports,
            "dividends": self.payouts,
            "macro": self.observations,
            "news": self.items,
            **self.deep,
        }


def _day(fact: Any, field: str) -> date:
    """News goes by the day it happened on."""
    day: date = fact.event_time.date() if field == "available_at" else getattr(fact, field)
    return day


def a_company(symbol: str = SYMBOL, **changes: Any) -> Company:
    fields: dict[str, Any] = {
        "name": "幻山酒业",
        "name_en": "Mirage Hill Distillers",
        "industry": "白酒",
        "industry_en": "Liquor",
        "list_date": date(2004, 6, 18),
        "synthetic": True,
    }
    return Company(symbol=symbol, **fields | changes)


def a_bar(day: date, available_at: datetime | None = None, **changes: Any) -> DailyBar:
    price = changes.pop("price", 10.0)
    prices = dict.fromkeys(("open", "high", "low", "close", "pre_close"), price)
    fields = {"symbol": SYMBOL, "volume": 100, "amount": 100 * price, "adj_factor": 1.0} | prices | changes
    return DailyBar(trade_date=day, **_times(day, available_at), **fields)


def a_valuation(day: date, available_at: datetime | None = None, **changes: Any) -> DailyValuation:
    fields = {"symbol": SYMBOL, "close": 10.0, "total_mv": 1e9} | changes
    return DailyValuation(trade_date=day, **_times(day, available_at), **fields)


def a_report(period_end: date, available_at: datetime, **changes: Any) -> FinancialReport:
    return FinancialReport(
        symbol=SYMBOL,
        period_end=period_end,
        announced_on=available_at.date(),
        **_times(period_end, available_at),
        **changes,
    )


def an_observation(period: date, available_at: datetime, **changes: Any) -> MacroObservation:
    fields = {"series": "cpi_yoy", "value": 1.5, "unit": "%", "url": "demo://macro/cpi_yoy"} | changes
    return MacroObservation(period=period, **_times(period, available_at), **fields)


def a_news_item(day: date, available_at: datetime, **changes: Any) -> NewsItem:
    fields = {"kind": "news", "title": "标题", "url": "demo://news/1", "symbol": SYMBOL} | changes
    return NewsItem(**_times(day, available_at), **fields)


def _times(day: date, available_at: datetime | None) -> dict[str, Any]:
    closed = datetime(day.year, day.month, day.day, 7, tzinfo=UTC)
    happened = min(closed, available_at or closed)
    return {
        "event_time": happened,
        "available_at": available_at or closed.replace(hour=8),
        "source": "fake",
    }

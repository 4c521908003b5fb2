"""The kinds of data there are, and what tells one row of a kind from another."""

from dataclasses import dataclass
from enum import StrEnum

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


class Dataset(StrEnum):
    COMPANIES = "companies"
    BARS = "bars"
    VALUATIONS = "valuations"
    REPORTS = "reports"
    DIVIDENDS = "dividends"
    MACRO = "macro"
    NEWS = "news"


@dataclass(frozen=True)
class Shape:
    """`key` names a row; where two rows share it, the one stored later holds. `by_symbol`: kept per symbol.

    A restated report is another version, not the same row: its key has the moment it became known.
    """

    model: type[BaseModel]
    key: tuple[str, ...]
    by_symbol: bool = True


SHAPES: dict[Dataset, Shape] = {
    Dataset.COMPANIES: Shape(Company, ("symbol",), by_symbol=False),
    Dataset.BARS: Shape(DailyBar, ("trade_date",)),
    Dataset.VALUATIONS: Shape(DailyValuation, ("trade_date",)),
    Dataset.REPORTS: Shape(FinancialReport, ("period_end", "available_at")),
    Dataset.DIVIDENDS: Shape(Dividend, ("period_end", "available_at")),
    Dataset.MACRO: Shape(MacroObservation, ("series", "industry", "period", "available_at"), by_symbol=False),
    Dataset.NEWS: Shape(NewsItem, ("url",)),
}

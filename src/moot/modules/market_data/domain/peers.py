"""How a company stands in its industry at a moment: multiples, growth and returns of everybody, measured alike."""

import calendar
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from statistics import median
from typing import TypeVar

from moot.shared.domain.facts import DailyBar, DailyValuation, FinancialReport, quarter_of
from moot.shared.domain.peers import Peer, Place

MULTIPLES = ("pe_ttm", "pb", "ps_ttm", "dv_ratio", "total_mv")
GROWTH = {"revenue_yoy": "total_revenue", "profit_yoy": "net_profit"}
RETURNS = {"return_1m": 1, "return_3m": 3, "return_6m": 6, "return_12m": 12}
LATELY = timedelta(days=15)
"""How long a price stands for the days after it: five sessions and the longest holidays."""

Measures = Mapping[str, float | None]
Priced = TypeVar("Priced", DailyBar, DailyValuation)


@dataclass(frozen=True)
class Sight:
    """What is seen at a moment: facts public by then, of days up to `today`; reports of periods since `recent`."""

    as_of: datetime
    today: date
    recent: date

    def look_back(self, months: int) -> date:
        """The same day so many months ago, or the last one of a shorter month."""
        year, month = divmod(self.today.year * 12 + self.today.month - 1 - months, 12)
        return date(year, month + 1, min(self.today.day, calendar.monthrange(year, month + 1)[1]))


def measure(
    valuations: Sequence[DailyValuation],
    reports: Sequence[FinancialReport],
    bars: Sequence[DailyBar],
    sight: Sight,
) -> Measures:
    """From what is seen of one company, oldest first."""
    last, now = _stands_on(sight.today, valuations), _price_on(sight.today, bars)
    returns = {n: _change(now, _price_on(sight.look_back(months), bars)) for n, months in RETURNS.items()}
    return {**{n: getattr(last, n, None) for n in MULTIPLES}, **_growth(reports, sight), **returns}


def _stands_on(day: date, facts: Sequence[Priced]) -> Priced | None:
    return next((fact for fact in reversed(facts) if day - LATELY <= fact.trade_date <= day), None)


def _price_on(day: date, bars: Sequence[DailyBar]) -> float | None:
    bar = _stands_on(day, bars)
    return None if bar is None else bar.close * bar.adj_factor


def _growth(reports: Sequence[FinancialReport], sight: Sight) -> Measures:
    versions = sorted(reports, key=lambda report: (report.period_end, report.available_at))
    if not versions or versions[-1].period_end < sight.recent:
        return {}
    held = {quarter_of(report.period_end): report for report in versions}
    (year, quarter), last = quarter_of(versions[-1].period_end), versions[-1]
    before = held.get((year - 1, quarter))
    return {name: _change(getattr(last, f), getattr(before, f, None)) for name, f in GROWTH.items()}


def _change(now: float | None, before: float | None) -> float | None:
    """In per cent; there is none from nothing, or from a loss."""
    return None if now is None or before is None or before <= 0 else (now / before - 1) * 100


def find_place(measure: str, own: Peer, peers: Sequence[Peer]) -> Place:
    mine, theirs = getattr(own, measure), [v for peer in peers if (v := getattr(peer, measure)) is not None]
    if not theirs:
        return Place(count=0)
    below = None if mine is None else 100 * sum((v < mine) + (v == mine) / 2 for v in theirs) / len(theirs)
    return Place(count=len(theirs), median=median(theirs), percentile=below)

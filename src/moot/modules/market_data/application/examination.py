"""Can these data be trusted? Gaps, moves no exchange allows, units that cannot be right, sources that disagree."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise

from moot.modules.market_data.domain.calendar import TradingCalendar
from moot.modules.market_data.domain.datasets import BARS
from moot.modules.market_data.domain.facts import Company, DailyBar, DailyValuation
from moot.modules.market_data.domain.provider import MarketDataProvider
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.domain.trading_rules import price_limit
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.messages import Message
from moot.shared.domain.symbol import Symbol

TOLERANCE = 0.005
SHARES_MAY_CHANGE = 3.0
SAMPLE = timedelta(days=60)


@dataclass(frozen=True)
class Remark:
    """Something to look at: on which day, and what."""

    kind: str
    day: date
    text: Message


@dataclass(frozen=True)
class Case:
    """What is examined: raw bars and valuations of one company, oldest first."""

    symbol: Symbol
    company: Company
    bars: Sequence[DailyBar]
    valuations: Sequence[DailyValuation]
    calendar: TradingCalendar


def examine(case: Case) -> list[Remark]:
    """Every remark, oldest first. A gap may be a suspension: sources differ in whether they show those."""
    checks: list[Callable[[Case], Iterable[Remark]]] = [gaps, moves, units, factors, shares]
    return sorted((remark for check in checks for remark in check(case)), key=lambda remark: remark.day)


def gaps(case: Case) -> Iterator[Remark]:
    if not case.bars:
        return
    there = {bar.trade_date for bar in case.bars}
    for day in case.calendar.sessions(case.bars[0].trade_date, case.bars[-1].trade_date):
        if day not in there:
            yield _remark("gap", day)


def moves(case: Case) -> Iterator[Remark]:
    """Closes beyond the price limit of the day."""
    for bar in case.bars:
        band = price_limit(
            case.symbol,
            bar.trade_date,
            is_st=bar.is_st,
            listed_on=case.company.list_date,
            calendar=case.calendar,
        )
        if band is None:
            continue
        low, high = band.prices(bar.pre_close)
        if not low - 0.011 <= bar.close <= high + 0.011:
            move = 100 * (bar.close / bar.pre_close - 1)
            yield _remark("move", bar.trade_date, move=move, low=low, high=high, close=bar.close)


def units(case: Case) -> Iterator[Remark]:
    """Amount over volume is the day's mean price: outside of low and high, one of the two is in other units."""
    for bar in case.bars:
        if bar.volume and bar.amount:
            mean = bar.amount / bar.volume
            if not bar.low * (1 - TOLERANCE) <= mean <= bar.high * (1 + TOLERANCE):
                yield _remark("unit", bar.trade_date, mean=mean, low=bar.low, high=bar.high)


def factors(case: Case) -> Iterator[Remark]:
    """A reference price below the previous close and the step of the factor tell the same story, or one is wrong."""
    for before, bar in pairwise(case.bars):
        if case.calendar.next_session(before.trade_date) != bar.trade_date:
            continue  # what happened in between is not known
        by_price = before.close / bar.pre_close
        by_factor = bar.adj_factor / before.adj_factor
        if abs(by_price / by_factor - 1) > TOLERANCE:
            yield _remark("factor", bar.trade_date, by_price=by_price, by_factor=by_factor)


def shares(case: Case) -> Iterator[Remark]:
    """Market value over price is the number of shares; it does not triple overnight."""
    for before, day in pairwise(case.valuations):
        ratio = (day.total_mv / day.close) / (before.total_mv / before.close)
        if not 1 / SHARES_MAY_CHANGE <= ratio <= SHARES_MAY_CHANGE:
            yield _remark("shares", day.trade_date, ratio=ratio)


async def disagreements(symbol: Symbol, sources: Mapping[str, MarketDataProvider], end: date) -> list[Remark]:
    """Closes of the last weeks that two sources tell differently; a source that cannot answer is left out."""
    told: dict[str, dict[date, float]] = {}
    for name, source in sources.items():
        try:
            bars = await source.read(BARS, symbol.text, end - SAMPLE, end)
        except Unavailable:
            continue
        told[name] = {bar.trade_date: bar.close for bar in bars}
    return [
        _remark("disagree", day, one=one, other=other, a=told[one][day], b=told[other][day])
        for one, other in pairwise(told)
        for day in sorted(told[one].keys() & told[other].keys())
        if abs(told[one][day] / told[other][day] - 1) > TOLERANCE
    ]


def _remark(kind: str, day: date, **values: object) -> Remark:
    return Remark(kind, day, SAY(f"remark.{kind}", day=day.isoformat(), **values))

"""A series of daily bars: made whole, and joined to another.

Whole: with the days without a bar while the exchange traded, and ST by the name of the day. Joined: each series has
adjustment factors from a base of its own, and where two meet they are brought to one.
"""

from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, timedelta
from itertools import pairwise
from typing import NamedTuple

from moot.modules.market_data.domain.provider import A_DAY, Range
from moot.modules.market_data.domain.spelling import tells_trouble
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.domain.trading_rules import TradingCalendar
from moot.shared.domain.errors import Conflict
from moot.shared.domain.facts import Company, DailyBar, SpecialTreatment
from moot.shared.domain.symbol import TIME_ZONES, Market

SILENCE = timedelta(days=30)
"""How long a share in a file of several may be silent at an end and count as suspended; longer, it may be cut off."""


def cover(own: Range | None, file: Range | None) -> Range | None:
    """What is known of a share: from its first day to its last, and around as far as its file goes, for a while."""
    if own is None or file is None:
        return None
    return max(file[0], own[0] - SILENCE), min(file[1], own[1] + SILENCE)


def find_earlier(
    bars: Sequence[DailyBar], covered: Sequence[Range], calendar: TradingCalendar, start: date
) -> Range | None:
    """The known days before `start`, where the last close stands, if the series does not begin with its own."""
    first, last = next((known for known in covered if known[0] < start <= known[1]), (start, start))
    silent = calendar.within(start, bars[0].trade_date - A_DAY if bars else last)
    return (first, start - A_DAY) if first < start and silent else None


def make_whole(
    bars: Sequence[DailyBar], covered: Sequence[Range], calendar: TradingCalendar, company: Company | None
) -> list[DailyBar]:
    """With a suspended bar for every known session that has none, up to delisting; and with ST told by the name."""
    days = [bar.trade_date for bar in bars]
    ended = (company and company.delist_date) or date.max
    begun, there = days[0] if days else date.max, set(days)
    known = ((max(first, begun), min(last, ended - A_DAY)) for first, last in covered)
    silent = [day for span in known for day in calendar.within(*span) if day not in there]
    filled = (_suspend(bars[bisect(days, day) - 1], day, calendar.market) for day in silent)
    whole = sorted([*bars, *filled], key=lambda bar: bar.trade_date)
    return [
        bar.model_copy(update={"is_st": True}) if company and was_st(company, bar.trade_date) else bar
        for bar in whole
    ]


def _suspend(bar: DailyBar, day: date, market: Market) -> DailyBar:
    """The last close again, known when the bars of that session came out."""
    later, zone = day - bar.trade_date, TIME_ZONES[market]
    moments = {name: getattr(bar, name).astimezone(zone) + later for name in ("event_time", "available_at")}
    times = {name: moment.astimezone(UTC) for name, moment in moments.items()}
    prices = dict.fromkeys(("open", "high", "low", "close", "pre_close"), bar.close)
    still = {"trade_date": day, "volume": 0, "amount": 0.0, "suspended": True}
    return bar.model_copy(update={**times, **prices, **still})


def was_st(company: Company, on: date) -> bool:
    """By what it was called on that day, or by the spells a source tells of."""
    called = max((known for known in company.names if known.start <= on), key=lambda n: n.start, default=None)
    return in_spell(company.st_history, on) or (called is not None and tells_trouble(called.name))


def in_spell(spells: Iterable[SpecialTreatment], on: date) -> bool:
    return any(spell.start <= on < (spell.end or date.max) for spell in spells)


def date_spell(company: Company, kept: tuple[SpecialTreatment, ...], on: date) -> Company:
    """Where a source tells only the present name: a spell begins on the day it was first told with the mark of ST.

    It ends when the name is told without it. What a source tells of former names or spells stands.
    """
    if company.names or company.st_history not in ((), kept):
        return company
    troubled, last = tells_trouble(company.name), kept[-1] if kept else None
    spells = kept
    if troubled and (last is None or last.end):
        spells = (*kept, SpecialTreatment(start=on))
    elif last and not last.end and not troubled:
        spells = (*kept[:-1], SpecialTreatment(start=last.start, end=on))
    return company.model_copy(update={"st_history": spells})


TOLERANCE = 0.005
"""How far two sources may differ in a close or a step of the factor: rounding, no more."""
HALF_A_CENT = 0.006
"""How far a reference price may be off by rounding, and a little more."""
STARTS_ANEW = "files"
"""Whose factors begin at 1 in each file; every other source counts from the listing on."""


class Point(NamedTuple):
    close: float
    pre_close: float
    adj_factor: float
    source: str


Series = Mapping[date, Point]
CountGap = Callable[[date, date], int]
"""How many sessions between two days nothing is known of."""


def ex_step(before: Point | DailyBar, bar: Point | DailyBar) -> float:
    """By how much the factor moves: where rights go ex, the reference price is not the close before."""
    return before.close / bar.pre_close


def find_scales(symbol: str, kept: Series, told: Series, count_gap: CountGap) -> list[float]:
    """By what the factor of each day is to be multiplied when what is told stands over what is kept, oldest first.

    The base is that of the first day. Raises `Conflict` where the two tell different closes or steps of the same
    days, or have a gap between them. What replaces all that is kept meets nothing.
    """
    rows, scales = {**kept, **told}, [1.0]
    days = sorted(rows)
    if len(told) == len(days):
        return scales * len(days)
    for before, day in pairwise([days[0], *days]):
        steps = [s[day].adj_factor / s[before].adj_factor for s in (kept, told) if {before, day} <= s.keys()]
        if day in kept and day in told:
            _agree(symbol, day, kept[day], told[day], close=(kept[day].close, told[day].close))
            _agree(symbol, day, kept[day], told[day], step=(steps[0], steps[-1]) if steps else (1, 1))
        jump = 1.0
        if (before in told) != (day in told):
            step = steps[0] if steps else _step(symbol, before, day, rows, count_gap(before, day))
            jump = step / (rows[day].adj_factor / rows[before].adj_factor)
        scales.append(scales[-1] * jump)
    return scales[1:]


def _agree(symbol: str, day: date, one: Point, other: Point, **values: tuple[float, float]) -> None:
    """A source may correct itself; two files are two sources."""
    for what, (a, b) in values.items():
        if abs(b / a - 1) > TOLERANCE and not one.source == other.source != STARTS_ANEW:
            raise _refuse(what, symbol, one, other, day=day, a=a, b=b)


def _step(symbol: str, before: date, day: date, rows: Series, missing: int) -> float:
    """The step of the factor from the last day of one series to the first of the other.

    Prices tell it, if no session is missing: on an ex-right day rounded, so that factors which differ by no more have
    one base already. Over a gap, a source has one base, whatever days it is asked for; so has a file whose factor is
    the same on both sides and not 1, where those without factors of their own begin.
    """
    one, other = rows[before], rows[day]
    own, by_price = other.adj_factor / one.adj_factor, ex_step(one, other)
    if missing and not (one.source == other.source != STARTS_ANEW or one.adj_factor == other.adj_factor != 1):
        raise _refuse("gap", symbol, one, other, before=before, day=day, count=missing)
    rounded = abs(by_price - 1) > 1e-9 and abs(by_price / own - 1) <= HALF_A_CENT / other.pre_close
    return own if missing or rounded else by_price


def _refuse(why: str, symbol: str, one: Point, other: Point, **values: object) -> Conflict:
    said = SAY(f"series.{why}", symbol=symbol, one=one.source, other=other.source, **values)
    return Conflict(said, code="SERIES_DO_NOT_MEET", symbol=symbol)

"""Where two series of bars meet: each has adjustment factors from a base of its own, and they are brought to one."""

from collections.abc import Callable, Mapping
from datetime import date
from itertools import pairwise
from typing import NamedTuple

from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.errors import Conflict
from moot.shared.domain.facts import DailyBar

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

"""What the exchanges allow, by board and date: trading days, price limits, lots, when shares may be sold again.

Bands and lots are those of continuous auctions in A-shares. Days with rules of their own that no table here knows:
the first day after a resumed listing or a share reform, and the first day of a delisting period (no limit).
"""

import re
import tomllib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from enum import StrEnum
from functools import cache
from pathlib import Path

from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.facts import DailyBar
from moot.shared.domain.symbol import TIME_ZONES, Market, Symbol

CLOSES: dict[Market, time] = {Market.CN: time(15), Market.DEMO: time(15), Market.US: time(16)}


class TradingCalendar:
    """Sessions from `first` to `last`; a question about a day outside raises `Unavailable`, never guesses."""

    def __init__(self, market: Market, sessions: Sequence[date]) -> None:
        self.market = market
        self._days = tuple(sessions)

    @property
    def first(self) -> date:
        return self._days[0]

    @property
    def last(self) -> date:
        return self._days[-1]

    def sessions(self, start: date, end: date) -> list[date]:
        """Both ends included."""
        self._require(start)
        self._require(end)
        return self.within(start, end)

    def within(self, start: date, end: date) -> list[date]:
        """The sessions known between two days, both included; none where they come in the wrong order."""
        return list(self._days[bisect_left(self._days, start) : bisect_right(self._days, end)])

    def count(self, start: date, end: date) -> int:
        """The sessions between two days, both included; beyond the table every weekday is taken for one."""
        inside = bisect_right(self._days, end) - bisect_left(self._days, start)
        days = (start + timedelta(days=n) for n in range((end - start).days + 1))
        return inside + sum(day.weekday() < 5 for day in days if not self.first <= day <= self.last)

    def next_session(self, day: date) -> date:
        """The first session after `day`."""
        self._require(day)
        if day == self.last:
            raise self._refuse("ended", day, last=self.last)
        return self._days[bisect_right(self._days, day)]

    def close_of(self, day: date) -> datetime:
        """When a session on that day ends; where it ended early, later than that."""
        return datetime.combine(day, CLOSES[self.market], TIME_ZONES[self.market])

    def _require(self, day: date) -> None:
        if day < self.first:
            raise self._refuse("not_begun", day, first=self.first)
        if day > self.last:
            raise self._refuse("ended", day, last=self.last)

    def _refuse(self, why: str, day: date, **edge: date) -> Unavailable:
        said = SAY(f"calendar.{why}", market=self.market.value, day=day, **edge)
        told = {name: end.isoformat() for name, end in edge.items()}
        return Unavailable(said, code=f"CALENDAR_{why.upper()}", market=self.market.value, **told)


CLOSED_DAYS = Path(__file__).with_name("closed_days.toml")
DEMO_BEGINS, DEMO_ENDS = date(2018, 1, 2), date(2049, 12, 31)
DEMO_HOLIDAYS = {1: range(1, 2), 5: range(1, 4), 10: range(1, 8)}  # days of a month, each year


@cache
def trading_calendar(market: Market) -> TradingCalendar:
    """A rule for the demo market; for real exchanges a table of closed days, read when first asked for."""
    return TradingCalendar(market, demo_days(DEMO_ENDS) if market is Market.DEMO else _read_days(market))


def _read_days(market: Market) -> list[date]:
    """`closed` has a line for each year: the year, then its closed days as MMDD."""
    known = tomllib.loads(CLOSED_DAYS.read_text(encoding="utf-8"))[market.value]
    first, last, lines = known["first"], known["last"], map(str.split, known["closed"].splitlines())
    closed = {date.fromisoformat(year + day) for year, *days in lines for day in days}
    every = (first + timedelta(days=n) for n in range((last - first).days + 1))
    return [day for day in every if day.weekday() < 5 and day not in closed]


@cache
def demo_days(until: date) -> tuple[date, ...]:
    """Every trading day of the demo market, from its first one to `until`."""
    every = (DEMO_BEGINS + timedelta(days=n) for n in range((until - DEMO_BEGINS).days + 1))
    return tuple(day for day in every if is_demo_day(day))


def is_demo_day(day: date) -> bool:
    """Weekdays, except New Year, 1-3 May, 1-7 October and the spring festival.

    The festival is the first Monday of February with the Tuesday and Wednesday after it.
    """
    if day.weekday() >= 5:
        return False
    festival = day.month == 2 and day.weekday() <= 2 and 1 <= day.day - day.weekday() <= 7
    return not festival and day.day not in DEMO_HOLIDAYS.get(day.month, ())


TICK = Decimal("0.01")


class Board(StrEnum):
    MAIN = "main"
    CHINEXT = "chinext"
    STAR = "star"
    BSE = "bse"
    DEMO = "demo"


@dataclass(frozen=True)
class LimitBand:
    """How far a price may move from the day's reference, in per cent. `inward`: never past the exact limit."""

    up: int
    down: int
    inward: bool = False

    def prices(self, pre_close: float) -> tuple[float, float]:
        """The lowest and the highest of a day. At least a tick either way, and never below a tick."""
        reference = Decimal(str(pre_close))
        down, up = (reference * (100 + percent) / 100 for percent in (-self.down, self.up))
        low = down.quantize(TICK, ROUND_CEILING if self.inward else ROUND_HALF_UP)
        high = up.quantize(TICK, ROUND_FLOOR if self.inward else ROUND_HALF_UP)
        return float(max(min(low, reference - TICK), TICK)), float(max(high, reference + TICK))


@dataclass(frozen=True)
class Rule:
    """From `since` on, this band or none; `sessions`: the first ones of shares listed from then on."""

    since: date
    band: LimitBand | None
    sessions: int = 0


BOARDS: dict[Board, re.Pattern[str]] = {
    Board.STAR: re.compile(r"68[89]\d{3}\.SH"),
    Board.CHINEXT: re.compile(r"30\d{4}\.SZ"),  # 300, 301; 302 was given to a renumbered company
    Board.MAIN: re.compile(r"60\d{4}\.SH|00\d{4}\.SZ"),  # 002, the former SME board, had these rules too
    Board.BSE: re.compile(r"(4|8|920)\d+\.BJ"),  # 920 since 2024; the older numbers moved there in 2025
    Board.DEMO: re.compile(r"\d{6}\.DEMO"),
}

LIMITS: dict[Board, tuple[Rule, ...]] = {
    Board.MAIN: (Rule(date(1996, 12, 16), LimitBand(10, 10)),),  # 10 % from this day, no limit before
    Board.CHINEXT: (
        Rule(date(2009, 10, 30), LimitBand(10, 10)),  # opened with the main board's 10 %
        Rule(date(2020, 8, 24), LimitBand(20, 20)),  # registration reform: old and new shares alike
    ),
    Board.STAR: (Rule(date(2019, 7, 22), LimitBand(20, 20)),),  # opened with 20 %
    # 30 % since the select tier of the NEEQ, whose rules the exchange kept when it opened on 2021-11-15.
    # Beijing cuts its limit prices inward to the fen instead of rounding them.
    Board.BSE: (Rule(date(2020, 7, 27), LimitBand(30, 30, inward=True)),),
    Board.DEMO: (Rule(date.min, LimitBand(10, 10)),),
}

# A board that is not here treats shares under special treatment like all others.
ST_LIMITS: dict[Board, tuple[Rule, ...]] = {
    Board.MAIN: (
        Rule(date(1998, 4, 22), LimitBand(5, 5)),  # special treatment begins, with 5 %
        # Trading rules of both exchanges, published 2026-04-24, in force 2026-07-06: 10 % as for other shares.
        Rule(date(2026, 7, 6), LimitBand(10, 10)),
    ),
    Board.DEMO: (Rule(date.min, LimitBand(5, 5)),),
}

FIRST_DAYS: dict[Board, tuple[Rule, ...]] = {
    Board.MAIN: (
        Rule(date(1996, 12, 16), None, 1),  # no limit on the first day
        Rule(date(2014, 1, 1), LimitBand(44, 36), 1),  # 144 % and 64 % of the issue price
        Rule(date(2023, 4, 10), None, 5),  # registration for all boards: five days without a limit
    ),
    Board.CHINEXT: (
        Rule(date(2009, 10, 30), None, 1),  # as on the main board
        Rule(date(2014, 1, 1), LimitBand(44, 36), 1),  # as on the main board
        Rule(date(2020, 8, 24), None, 5),  # registration reform: five days without a limit
    ),
    Board.STAR: (Rule(date(2019, 7, 22), None, 5),),  # five days without a limit, from the opening on
    Board.BSE: (Rule(date(2020, 7, 27), None, 1),),  # the first day without a limit
}

LOTS: dict[Board, int] = {  # the fewest shares that may be bought
    Board.MAIN: 100,  # in round lots of 100
    Board.CHINEXT: 100,  # in round lots of 100
    Board.STAR: 200,  # or more, share by share
    Board.BSE: 100,  # or more, share by share
    Board.DEMO: 100,
}

SETTLEMENT: dict[Market, int] = {  # sessions that must pass before shares may be sold
    Market.CN: 1,  # T+1: shares bought today may be sold from the next session on
    Market.DEMO: 1,
    Market.US: 0,  # shares may be sold on the day they were bought; money settles later
}


def board_of(symbol: Symbol) -> Board | None:
    """`None` for a market without boards, and for what is no A-share."""
    return next((board for board, codes in BOARDS.items() if codes.fullmatch(symbol.text)), None)


def price_limit(bar: DailyBar, listed_on: date, calendar: TradingCalendar) -> LimitBand | None:
    """The band of its day; `None` where prices were free. The calendar counts the first sessions after listing."""
    board, day = board_of(Symbol.parse(bar.symbol)), bar.trade_date
    if board is None:
        return None
    first = _in_force(FIRST_DAYS.get(board, ()), listed_on)
    if first and _session_number(listed_on, day, calendar) <= first.sessions:
        return first.band
    special = _in_force(ST_LIMITS.get(board, ()), day) if bar.is_st else None
    limit = special or _in_force(LIMITS[board], day)
    return limit.band if limit else None


def is_limit_up(bar: DailyBar, band: LimitBand | None) -> bool:
    """Closed at the highest price allowed. The bar must have raw prices; a suspended day has no limit to reach."""
    return band is not None and not bar.suspended and round(bar.close, 2) >= band.prices(bar.pre_close)[1]


def is_limit_down(bar: DailyBar, band: LimitBand | None) -> bool:
    """Closed at the lowest price allowed; see `is_limit_up`."""
    return band is not None and not bar.suspended and round(bar.close, 2) <= band.prices(bar.pre_close)[0]


def _in_force(rows: Iterable[Rule], day: date) -> Rule | None:
    """The last row that had begun; rows are in order of time."""
    return next((row for row in reversed(tuple(rows)) if row.since <= day), None)


def _session_number(listed_on: date, day: date, calendar: TradingCalendar) -> int:
    """1 on the day of listing; counted for a month, which is longer than any rule for new shares."""
    return len(calendar.sessions(listed_on, min(day, listed_on + timedelta(days=30))))

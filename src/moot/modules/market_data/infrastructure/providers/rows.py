"""How the rows of every source become ours: a table of columns and units, one reader, the two times of each kind.

Values are read by the type of our field; what is wrong with a row stays in it, to be refused by name. The times are
those of the market, for the sources that tell a day but no time of day.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import polars as pl
from pydantic import BaseModel

from moot.modules.market_data.application.columns import schema_of
from moot.modules.market_data.domain.facts import COMPANIES, MARGIN, PLEDGES, Dataset
from moot.modules.market_data.domain.provider import NO_DAY
from moot.modules.market_data.domain.trading_rules import CLOSES, trading_calendar
from moot.modules.market_data.infrastructure.providers.outside import Row
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.facts import Observed, report_due
from moot.shared.domain.symbol import TIME_ZONES, Market

Columns = Mapping[str, str | tuple[str, float]]
"""By our field: the column it is in, and how many of our units make one of its."""

BLANK = {"", "-", "--", "nan", "none", "null", "n/a", "nat"}
DAY_FORMATS = ("%Y/%m/%d", "%Y年%m月%d日")
DECIMALS = 6
CLOSE_AND_RELEASE: dict[Market, tuple[time, time]] = {
    market: (close, close.replace(hour=close.hour + 1)) for market, close in CLOSES.items()
}
LONGEST_HOLIDAY = timedelta(days=12)
"""How far the day printed on an announcement may lie from the day it became visible."""
ANNOUNCED_BY = time(18)
"""An announcement is dated, not timed: by this hour of its day it is out."""
BEFORE_OPENING, END_OF_DAY = time(9), time(23, 59, 59)
NEXT_SESSION = {PLEDGES: ANNOUNCED_BY, MARGIN: BEFORE_OPENING}
"""What is counted at a close and told in the session after it, by that hour."""
NORTHBOUND = {"northbound_shares", "northbound_percent"}
"""What is held by way of Hong Kong is told the morning after."""
MARKET_INDEXES = {
    "000001.SH": "上证指数",
    "000300.SH": "沪深300",
    "000905.SH": "中证500",
    "399001.SZ": "深证成指",
    "399006.SZ": "创业板指",
}
US_ANNUAL_DAYS, US_QUARTERLY_DAYS = 60, 40
"""A large accelerated filer's days for a 10-K and a 10-Q."""


@dataclass(frozen=True)
class Source:
    """Who tells the rows, and of which market they are."""

    name: str
    market: Market

    def row(self, dataset: Dataset[Any], columns: Columns, raw: Row, **given: Any) -> dict[str, Any]:
        """A row of `dataset` by its columns. What is blank is left out: the model says whether it can do without."""
        return self.tell(dataset, {**read_columns(dataset, columns, raw), **given})

    def tell(self, dataset: Dataset[Any], fields: Row) -> dict[str, Any]:
        """With the two times of its kind, unless it has them; without, and so refused, where its day is none."""
        row = {"source": self.name, **fields}
        if dataset is COMPANIES:
            return {"name_en": "", "industry": "", "industry_en": "", **row}
        if "available_at" in row:
            return row
        filed = "announced_on" in dataset.model.model_fields
        if filed and not issubclass(dataset.model, Observed):  # known as it is announced
            return row | known_from(self.moment(row.get("announced_on")))
        day = row.get(dataset.day)
        if not isinstance(day, date):
            return row
        close, release = (self.moment(day, at) for at in CLOSE_AND_RELEASE[self.market])
        if not filed:
            later = NEXT_SESSION.get(dataset) if NORTHBOUND.isdisjoint(row) else BEFORE_OPENING
            at_once = {"event_time": close, "available_at": release}
            return row | (self._tell_next_session(day, later) if later else at_once)
        announced = row.get("announced_on") or statutory_deadline(day, self.market)
        return row | {"announced_on": announced, "event_time": close, "available_at": self.moment(announced)}

    def _tell_next_session(self, day: date, at: time) -> dict[str, Any]:
        """Where the exchange has not told its days yet, the next weekday stands for it."""
        try:
            following = trading_calendar(self.market).next_session(day)
        except Unavailable:
            following = day + timedelta(days=1 if day.weekday() < 4 else 7 - day.weekday())
        close, _ = CLOSE_AND_RELEASE[self.market]
        return {"event_time": self.moment(day, close), "available_at": self.moment(following, at)}

    def moment(self, on: Any, at: time = ANNOUNCED_BY) -> datetime | None:
        return moment(on, at, self.market) if isinstance(on, date) else None

    def read_moment(self, raw: Any) -> datetime | None:
        """Exchange time unless it names its zone; midnight sharp is a day without a time, and so none."""
        try:
            found = datetime.fromisoformat(re.sub(r"(:\d\d:\d\d):(\d+)$", r"\1.\2", str(raw)))
        except ValueError:
            return None
        if found.tzinfo is None and found.time() == time():
            return None
        zoned = found if found.tzinfo else found.replace(tzinfo=TIME_ZONES[self.market])
        return zoned.astimezone(UTC)


def read_columns(
    dataset: Dataset[BaseModel], columns: Columns, raw: Row, date_format: str | None = None
) -> dict[str, Any]:
    kinds = schema_of(dataset.model)
    row = {}
    for ours, column in columns.items():
        theirs, unit = (column, 1.0) if isinstance(column, str) else column
        value = _read_value(kinds.get(ours), raw.get(theirs), unit, date_format)
        if value is not None:
            row[ours] = value
    return row


def is_blank(raw: Any) -> bool:
    return raw is None or (isinstance(raw, str) and raw.strip().lower() in BLANK)


def _read_value(kind: pl.DataType | None, raw: Any, unit: float, date_format: str | None) -> Any:
    if is_blank(raw):
        return None
    if kind == pl.Date:
        return read_day(raw, date_format)
    if kind == pl.String:
        return str(raw).strip()
    number = read_number(raw, unit)
    if not isinstance(number, float) or not math.isfinite(number) or kind == pl.Float64:
        return number
    return round(number) if kind == pl.Int64 else bool(number)


def read_number(raw: Any, unit: float = 1.0) -> Any:
    """The number in our units; what is no number stays as it is, which no fact accepts."""
    try:
        number = float(raw.replace(",", "") if isinstance(raw, str) else raw)
    except (TypeError, ValueError):
        return raw
    return number if unit == 1 else round(number * unit, DECIMALS)


def read_day(raw: Any, date_format: str | None = None) -> date | str | None:
    """A day, or what is there instead, worded so that nobody takes it for one."""
    if raw is None or type(raw) is date:
        return raw
    if isinstance(raw, datetime):
        return raw.date()
    text = str(raw).strip()
    if date_format is None:
        try:
            return datetime.fromisoformat(text).date()
        except ValueError:
            pass
    for spelling in (date_format,) if date_format else DAY_FORMATS:
        try:
            return datetime.strptime(text, spelling).date()  # noqa: DTZ007 - a calendar date
        except ValueError:
            continue
    return f"{NO_DAY}{text}" if text else None


def read_frame(frame: Any) -> list[Row]:
    """The rows of a pandas table, `None` for every hole in it."""
    found: list[Row] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return found


def reference_price(last: Row, factor: Any, decimals: int) -> float | None:
    """The close before, moved by the step of the adjustment factor; none where one of them is no price or factor."""
    known = last.get("close"), last.get("adj_factor"), factor
    if not all(isinstance(number, float) and number > 0 for number in known):
        return None
    return float(round(last["close"] * last["adj_factor"] / factor, decimals))


def estimate_amount(row: Row) -> float | None:
    """Volume times the mean of high, low and close, for tables without the traded amount."""
    prices: list[Any] = [row.get(name) for name in ("high", "low", "close")]
    if row.get("volume") is None or not all(isinstance(price, float) for price in prices):
        return None
    return float(row["volume"] * sum(prices) / len(prices))


def moment(day: date, at: time, market: Market) -> datetime:
    """Exchange time on `day`, as UTC."""
    return datetime.combine(day, at, TIME_ZONES[market]).astimezone(UTC)


def known_from(moment: datetime | None) -> dict[str, datetime]:
    """Both times of what is public as it happens; none, so that it is refused, where the moment is not told."""
    return {} if moment is None else {"event_time": moment, "available_at": moment}


def statutory_deadline(period_end: date, market: Market, *, annual: bool | None = None) -> date:
    """The last day a report of the period may come out: when it was public at the latest, if no date is known."""
    if market is Market.US:
        full_year = period_end.month == 12 if annual is None else annual
        return period_end + timedelta(days=US_ANNUAL_DAYS if full_year else US_QUARTERLY_DAYS)
    return report_due(period_end)


@dataclass(frozen=True)
class MacroRelease:
    """When a Chinese macro figure is out at the latest: on a day of the month after its own, or on its own day.

    `late` are the months whose figures wait for a holiday: January's for spring festival, September's for October.
    """

    unit: str
    at: time
    next_month_on: int | None = None
    late: Mapping[int, int] = field(default_factory=dict)

    @property
    def monthly(self) -> bool:
        return self.next_month_on is not None

    def times(self, period: date) -> dict[str, datetime]:
        """A month's figure happens at its end, another one when it comes out."""
        if self.next_month_on is None:
            return known_from(moment(period, self.at, Market.CN))
        ended = (period.replace(day=1) + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        day = self.late.get(period.month, self.next_month_on)
        out = moment((ended + timedelta(days=1)).replace(day=day), self.at, Market.CN)
        return {"event_time": moment(ended, CLOSE_AND_RELEASE[Market.CN][0], Market.CN), "available_at": out}


LATE_PRICES = {1: 18, 9: 16}
MACRO_RELEASES: dict[str, MacroRelease] = {
    "pmi_manufacturing": MacroRelease("index", time(9, 30), next_month_on=1),
    "cpi_yoy": MacroRelease("%", time(9, 30), next_month_on=12, late=LATE_PRICES),
    "ppi_yoy": MacroRelease("%", time(9, 30), next_month_on=12, late=LATE_PRICES),
    "cpi_mom": MacroRelease("%", time(9, 30), next_month_on=12, late=LATE_PRICES),
    "ppi_mom": MacroRelease("%", time(9, 30), next_month_on=12, late=LATE_PRICES),
    "gdp_yoy": MacroRelease("%", time(10), next_month_on=20, late={9: 24}),
    "m2_yoy": MacroRelease("%", time(17), next_month_on=16, late={1: 20, 9: 18}),
    "lpr_1y": MacroRelease("%", time(11, 30)),
    "cgb_10y": MacroRelease("%", time(18)),
}
"""Sources tell the period, not the release."""


@dataclass(frozen=True)
class Series:
    """`column` of `table` holds a macro figure, `dated` its month or day; `asking` narrows the question."""

    name: str
    table: str
    column: str
    url: str
    dated: str
    asking: Mapping[str, str] = field(default_factory=dict)

    def observations(self, rows: Iterable[Row], source: str) -> Iterator[dict[str, Any]]:
        """A day without a value is one on which this rate was not quoted."""
        release = MACRO_RELEASES[self.name]
        for row in rows:
            value, raw = read_number(row.get(self.column)), row.get(self.dated)
            if value is None and not release.monthly:
                continue
            period = _read_month(raw) if release.monthly else read_day(raw)
            told = {"series": self.name, "period": period, "value": value, "unit": release.unit}
            times = release.times(period) if isinstance(period, date) else {}
            yield {**told, "url": self.url.format(period=period), "source": source, **times}


def _read_month(raw: Any) -> date | str:
    """2024-03, 202403, 2024年03月份, or any day of it."""
    found = re.match(r"(\d{4})[-/年]?(1[0-2]|0?[1-9])(月|$|[-/]\d|\d\d$)", str(raw).strip())
    return date(int(found[1]), int(found[2]), 1) if found else f"not a month: {raw}"

"""What the demo market stands on: its months and moments, and the invented companies with their characters.

The companies are read from `companies.toml`. Nothing here needs numpy: who is listed is told before that is loaded.
"""

import tomllib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel

from moot.shared.domain.facts import Company
from moot.shared.domain.symbol import TIME_ZONES, Market

SOURCE = "demo"
ZONE = TIME_ZONES[Market.DEMO]
M = TypeVar("M", bound=BaseModel)
FIRST_YEAR = 2014  # of the economy and the books; trading begins later, so that trailing years exist at once


def months(until: date) -> list[date]:
    """The first day of every month since the start of the first year whose last day is not after `until`."""
    firsts = (date(year, month, 1) for year in range(FIRST_YEAR, until.year + 1) for month in range(1, 13))
    return [first for first in firsts if month_end(first) <= until]


def month_end(first: date) -> date:
    return (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)


def quarter_ends(until: date) -> list[date]:
    """Every quarter's last day since the start of the first year, up to `until`."""
    return [month_end(first) for first in months(until) if first.month % 3 == 0]


@cache
def moment(day: date, hour: int, minute: int = 0) -> datetime:
    """Exchange time on `day`, as UTC."""
    return datetime.combine(day, time(hour, minute), ZONE).astimezone(UTC)


def told(happened: datetime, known: datetime) -> dict[str, Any]:
    """What every fact has: its two times, and who tells it."""
    return {"event_time": happened, "available_at": known, "source": SOURCE}


def filed(symbol: str, period_end: date, announced_on: date) -> dict[str, Any]:
    """What everything has that is about a period and told on the evening of a day."""
    times = told(moment(period_end, 15), moment(announced_on, 18))
    return {"symbol": symbol, "period_end": period_end, "announced_on": announced_on, **times}


class History(Generic[M]):
    """Facts in the order of their days; each is made when it is first read, as most of a history never is."""

    def __init__(self, days: Sequence[date], make: Callable[[int], M]) -> None:
        self.days, self.make = days, cache(make)

    def between(self, start: date, end: date) -> Iterable[M]:
        return map(self.make, range(bisect_left(self.days, start), bisect_right(self.days, end)))


def tell_daily(
    model: type[M],
    days: Sequence[date],
    columns: Mapping[str, Sequence[object]],
    later: timedelta = timedelta(),
    hour: int = 16,
    **same: object,
) -> History[M]:
    """The columns as the fields of one fact a day, with its date, its times, and what is the same on all days."""

    def make(n: int) -> M:
        times = told(moment(days[n], 15), moment(days[n] + later, hour))
        return model(
            trade_date=days[n], **same, **times, **{name: values[n] for name, values in columns.items()}
        )

    return History(days, make)


Knots = tuple[tuple[float, float], ...]
"""(year, value) points of a line; flat before the first and after the last."""


class _Row(BaseModel, frozen=True, extra="forbid"):
    pass


class WorkingCapital(_Row):
    """How a business that is not a bank ties up money. Shares are fractions."""

    inventory_days: float
    receivable_days: float
    current_ratio: float
    quick_share: float
    debt_share: float
    cash_share: float
    capex: float
    spent_on: tuple[float, float]  # selling and research, of what is left for them and for administration


class Industry(_Row):
    name: str
    name_en: str
    seasons: tuple[float, float, float, float]
    products: tuple[tuple[str, str], ...]
    working_capital: WorkingCapital | None = None

    @property
    def slug(self) -> str:
        return self.name_en.lower().replace(" ", "-")


class Firm(_Row):
    """A company and its character: what drives its accounts, and how its share trades.

    Money and shares are in hundred millions, at the start of the first year. `normal_pb` is paid for `normal_roe`;
    volatility and turnover are daily, in per cent.
    """

    company: Company
    industry: Industry
    equity: float
    shares: float
    margin: Knots
    margin_noise: float
    cyclicality: float
    asset_turnover: Knots
    leverage: float
    payout: float
    bonus_chance: float
    cash_margin: float
    gross_margin: float | None = None
    revenue_half_yearly: bool = False
    normal_pb: float
    normal_roe: float
    beta: float
    volatility: float
    turnover: float
    halts_per_year: float
    special_treatment: tuple[date, date] = (date.max, date.max)

    @property
    def symbol(self) -> str:
        return self.company.symbol

    def listed_on(self, day: date) -> bool:
        return self.company.list_date <= day < (self.company.delist_date or date.max)

    def under_special_treatment(self, day: date) -> bool:
        first, end = self.special_treatment
        return first <= day < end


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("companies.toml").read_text(encoding="utf-8"))


@cache
def firms() -> dict[str, Firm]:
    table = _table()
    kinds = {key: Industry(**row) for key, row in table["industry"].items()}
    return {row["symbol"]: _firm(row, kinds[row["industry"]]) for row in table["company"]}


def list_holders() -> list[tuple[str, Literal["executive", "person", "company"], float]]:
    """Who may tell of buying and selling: what they are called, what they are, how much of the trading they make."""
    return [(name, kind, most) for name, kind, most in _table()["holders"]]


def industries() -> list[Industry]:
    return list({firm.industry.name: firm.industry for firm in firms().values()}.values())


def _firm(row: dict[str, Any], industry: Industry) -> Firm:
    character = {**row["books"], **row["trading"]}
    spell = character.get("special_treatment")
    named = {"industry": industry.name, "industry_en": industry.name_en, "synthetic": True}
    treated = {"st_history": [{"start": spell[0], "end": spell[1]}] if spell else ()}
    told = {name: value for name, value in row.items() if name not in ("books", "trading")}
    return Firm(company=Company(**told | named | treated), industry=industry, **character)

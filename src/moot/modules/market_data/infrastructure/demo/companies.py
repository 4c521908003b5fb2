"""The invented companies and their characters, read from `companies.toml`."""

import tomllib
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from moot.modules.market_data.domain.facts import Company
from moot.modules.market_data.infrastructure.demo.noise import Array

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


class Industry(_Row):
    name: str
    name_en: str
    seasons: tuple[float, float, float, float]
    products: tuple[tuple[str, str], ...]
    working_capital: WorkingCapital | None = None

    @property
    def slug(self) -> str:
        return self.name_en.lower().replace(" ", "-")


class Books(_Row):
    """What drives the accounts. Money and shares are in hundred millions, at the start of the first year."""

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


class Trading(_Row):
    """How the share trades: `normal_pb` is paid for `normal_roe`; volatility and turnover are daily, in per cent."""

    normal_pb: float
    normal_roe: float
    beta: float
    volatility: float
    turnover: float
    halts_per_year: float
    special_treatment: tuple[date, date] | None = None


class Firm(_Row):
    company: Company
    industry: Industry
    books: Books
    trading: Trading

    @property
    def symbol(self) -> str:
        return self.company.symbol

    def listed_on(self, day: date) -> bool:
        gone = self.company.delist_date
        return self.company.list_date <= day and (gone is None or day < gone)

    def under_special_treatment(self, day: date) -> bool:
        period = self.trading.special_treatment
        return period is not None and period[0] <= day < period[1]


@cache
def firms() -> dict[str, Firm]:
    table = tomllib.loads(Path(__file__).with_name("companies.toml").read_text(encoding="utf-8"))
    industries = {key: Industry(**row) for key, row in table["industry"].items()}
    loaded = (_firm(row, industries[row["industry"]]) for row in table["company"])
    return {firm.symbol: firm for firm in loaded}


def industries() -> list[Industry]:
    return list({firm.industry.name: firm.industry for firm in firms().values()}.values())


def at_years(knots: Knots, years: Array) -> Array:
    return np.interp(years, [year for year, _ in knots], [value for _, value in knots])


def _firm(row: dict[str, Any], industry: Industry) -> Firm:
    books, trading = Books(**row.pop("books")), Trading(**row.pop("trading"))
    named = row | {"industry": industry.name, "industry_en": industry.name_en}
    return Firm(company=Company(**named, synthetic=True), industry=industry, books=books, trading=trading)

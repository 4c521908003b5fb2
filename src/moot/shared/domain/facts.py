"""Market facts, frozen and checked at the edge: no NaN, no negative price, no naive time gets past here.

Every fact has two times: `event_time`, when it happened, and `available_at`, when the public could know it.
Money is CNY (or the market's own currency), volume is shares, ratios and margins are per cent.
"""

from datetime import date, datetime
from typing import Annotated, Literal, Protocol, Self

from pydantic import AwareDatetime, BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError

from moot.shared.domain import units
from moot.shared.domain.messages import Locale
from moot.shared.domain.symbol import Symbol

Price = Annotated[float, Field(gt=0)]
Percent = float

VALUE_SLACK = 2
"""How far market value may lie from price times shares before one of them is in other units."""
LIKELY_UNITS = {1e-3: "thousand", 1e-4: "ten_thousand", 1e-6: "million", 1e-8: "hundred_million"}
"""What a market value is likely to be told in, by how many times price times shares it seems to be."""
UNIT_SLACK = 5
"""How far the mean price of a day may seem to lie outside its range before its units are wrong."""


class Fact(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    event_time: AwareDatetime
    available_at: AwareDatetime
    source: str


class Observed(Fact):
    """A fact about something that is over when it becomes known."""

    @model_validator(mode="after")
    def _not_known_before_it_happened(self) -> Self:
        if self.available_at < self.event_time:
            raise PydanticCustomError("too_early", "available before it happened")
        return self


class OfDay(Observed):
    """About a company, on a trading day."""

    symbol: str
    trade_date: date


class DailyBar(OfDay):
    """One trading day. Prices are raw; `adj_factor` makes days comparable across ex-right dates.

    `pre_close` is the reference price of the day: on an ex-right day it is not the previous close.
    A suspended day repeats the last close with zero volume.
    """

    open: Price
    high: Price
    low: Price
    close: Price
    pre_close: Price
    volume: int = Field(ge=0)
    amount: float = Field(ge=0)
    adj_factor: float = Field(gt=0)
    suspended: bool = False
    is_st: bool = False

    @model_validator(mode="after")
    def _range_holds_open_and_close(self) -> Self:
        if not self.low <= min(self.open, self.close) <= max(self.open, self.close) <= self.high:
            raise PydanticCustomError("range", "low <= open, close <= high does not hold")
        return self

    @model_validator(mode="after")
    def _amount_fits_volume(self) -> Self:
        """Amount over volume is a price: lots taken for shares, or thousands for yuan, are far off it."""
        if self.volume and self.amount:
            mean = self.amount / self.volume
            if not self.low / UNIT_SLACK <= mean <= self.high * UNIT_SLACK:
                raise PydanticCustomError(
                    "units", "amount and volume are not in the same units as the prices"
                )
        return self


class DailyValuation(OfDay):
    """What the market paid on a day; a ratio is absent where its denominator was unknown, negative PE is kept."""

    close: Price
    total_mv: float = Field(gt=0)
    circ_mv: float | None = Field(default=None, gt=0)
    pe: float | None = None
    pe_ttm: float | None = None
    pb: float | None = None
    ps_ttm: float | None = None
    dv_ratio: Percent | None = None
    turnover_rate: Percent | None = None
    shares: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _value_is_price_times_shares(self) -> Self:
        if self.shares:
            times = self.total_mv / (self.close * self.shares)
            if not 1 / VALUE_SLACK <= times <= VALUE_SLACK:
                near = (
                    unit for by, unit in LIKELY_UNITS.items() if 1 / VALUE_SLACK <= times / by <= VALUE_SLACK
                )
                told = {"value": self.total_mv, "times": times, "unit": next(near, "yuan")}
                raise PydanticCustomError(
                    "market_value", "total_mv is {times} times price times shares", told
                )
        return self


def quarter_of(day: date) -> tuple[int, int]:
    return day.year, (day.month - 1) // 3 + 1


REPORTS_DUE = {3: (0, 4, 30), 6: (0, 8, 31), 9: (0, 10, 31), 12: (1, 4, 30)}
"""In China, by the month in which a period ends: years later, month, day; the last is that of the annual report."""


def report_due(period_end: date) -> date:
    """The last day on which a Chinese company may report of the period."""
    years, month, day = REPORTS_DUE.get(period_end.month, REPORTS_DUE[12])
    return date(period_end.year + years, month, day)


class Filed(Fact):
    """About a period, told when it was announced."""

    symbol: str
    period_end: date
    announced_on: date


class Figures(BaseModel, frozen=True, allow_inf_nan=False):
    """What a quarter's report states; flows (eps, profit, revenue, cash, returns) run from the start of the year.

    Per-share figures are on the shares of the report date. `None` means that the company did not report it.
    """

    gross_margin: units.Percent = None
    netprofit_margin: units.Percent = None
    roe_waa: units.Percent = None
    roic: units.Percent = None
    eps: units.Price = None
    bps: units.Price = None
    profit_dedt: units.Amount = None
    ocfps: units.Price = None
    fcff_ps: units.Price = None
    fcff: units.Amount = None
    current_ratio: units.Ratio = None
    quick_ratio: units.Ratio = None
    debt_to_assets: units.Percent = None
    interestdebt: units.Amount = None
    netdebt: units.Amount = None
    invturn_days: units.Days = None
    arturn_days: units.Days = None
    assets_turn: units.Ratio = None
    total_revenue_ps: units.Price = None


class FinancialReport(Figures, Filed, Observed):
    """A quarterly report: amounts in the currency of the company, as `Figures` are stated."""

    total_revenue: float | None = None
    operate_profit: float | None = None
    net_profit: float | None = None
    total_assets: float | None = None
    total_liab: float | None = None
    equity: float | None = None
    n_cashflow_act: float | None = None
    capex: float | None = None


class Statement(Filed, Observed):
    """Income, balance sheet and cash flow as a company reported them; flows run from the start of the year.

    `net_profit` is all of it; `net_profit_parent` and `equity` are what belongs to the company's own shareholders.
    """

    revenue: float | None = None
    cost_of_sales: float | None = None
    selling_expense: float | None = None
    admin_expense: float | None = None
    research_expense: float | None = None
    finance_expense: float | None = None
    interest_expense: float | None = None
    operating_profit: float | None = None
    profit_before_tax: float | None = None
    income_tax: float | None = None
    net_profit: float | None = None
    net_profit_parent: float | None = None
    cash: float | None = None
    receivables: float | None = None
    inventory: float | None = None
    current_assets: float | None = None
    fixed_assets: float | None = None
    intangibles: float | None = None
    goodwill: float | None = None
    total_assets: float | None = None
    short_debt: float | None = None
    payables: float | None = None
    current_liabilities: float | None = None
    long_debt: float | None = None
    bonds: float | None = None
    total_liabilities: float | None = None
    retained_earnings: float | None = None
    minority_interest: float | None = None
    equity: float | None = None
    shares: float | None = None
    operating_cash: float | None = None
    investing_cash: float | None = None
    financing_cash: float | None = None
    capex: float | None = None
    depreciation: float | None = None
    cash_change: float | None = None


class EarningsNotice(Filed):
    """What a company says of a period before its report: a forecast, often before the period ends, or an express
    report. Changes are against the same period of the year before."""

    kind: Literal["forecast", "express"]
    net_profit_low: float | None = None
    net_profit_high: float | None = None
    change_low: Percent | None = None
    change_high: Percent | None = None
    revenue: float | None = None
    eps: float | None = None
    says: str = ""


class Dividend(Filed):
    """What one share gets for a period: cash before tax, and new shares per share held."""

    ex_date: date | None = None
    record_date: date | None = None
    cash_per_share: float = Field(default=0.0, ge=0)
    bonus_per_share: float = Field(default=0.0, ge=0)


class IndexBar(Observed):
    """A day of an index; `industry` is that of an industry's index, None for one of the market."""

    index: str
    name: str
    industry: str | None = None
    trade_date: date
    open: Price
    high: Price
    low: Price
    close: Price
    pre_close: Price
    volume: float = Field(default=0.0, ge=0)
    amount: float = Field(default=0.0, ge=0)


class Pledge(Observed):
    """How much of a company's shares its holders have pledged."""

    symbol: str
    day: date
    pledged_shares: float = Field(ge=0)
    pledged_percent: Percent = Field(ge=0)


class Unlock(Fact):
    """Shares that may be sold from a day on, known from its announcement."""

    symbol: str
    unlock_date: date
    announced_on: date
    shares: float = Field(gt=0)
    percent: Percent | None = None
    holder: str = ""


class HolderCount(Filed):
    """How many hold the share at the end of a period, or on another day the company tells."""

    holders: int = Field(gt=0)


class HolderTrade(Fact):
    """An insider or a large holder bought or sold; `percent` is of all shares."""

    symbol: str
    announced_on: date
    holder: str
    kind: Literal["executive", "person", "company"]
    direction: Literal["buy", "sell"]
    shares: float = Field(gt=0)
    percent: Percent | None = None
    average_price: float | None = None


class MarginDay(OfDay):
    """Shares bought with borrowed money, and sold without being owned, at the end of a day."""

    financing_balance: float = Field(ge=0)
    financing_bought: float | None = None
    short_balance: float | None = None


class FlowDay(OfDay):
    """Whose money went in or out on a day: `net_inflow` of large orders, and what is held by way of Hong Kong."""

    net_inflow: float | None = None
    northbound_shares: float | None = None
    northbound_percent: Percent | None = None


class MacroObservation(Fact):
    """A figure for a reference period, known from its release on. `industry` narrows an industry series."""

    series: str
    period: date
    value: float
    unit: str
    url: str
    industry: str | None = None


class NewsItem(Fact):
    """Something published: a company's announcement, a piece of news, a policy notice for an industry."""

    kind: Literal["announcement", "news", "policy"]
    title: str = Field(min_length=1)
    title_en: str | None = None
    url: str
    symbol: str | None = None
    industry: str | None = None


class SpecialTreatment(BaseModel, frozen=True, extra="forbid"):
    """A spell under ST, from `start` to the day before `end`; `None` means that it lasts."""

    start: date
    end: date | None = None


class NameSince(BaseModel, frozen=True, extra="forbid"):
    """What a company is called from a day on, until the next one."""

    name: str
    start: date


class Company(BaseModel, frozen=True, extra="forbid"):
    """A listed company, as the directory knows it. `aliases` are former and other names, `pinyin` the initials.

    `names` tell what it was called when, oldest first; empty where no source tells.
    """

    symbol: str
    name: str
    name_en: str
    industry: str
    industry_en: str
    list_date: date
    delist_date: date | None = None
    board: str = ""
    pinyin: str = ""
    aliases: tuple[str, ...] = ()
    st_history: tuple[SpecialTreatment, ...] = ()
    names: tuple[NameSince, ...] = ()
    source: str = "demo"
    synthetic: bool = False

    @property
    def label(self) -> str:
        """Both names, for messages whose reader is not known yet."""
        return f"{self.name} {self.name_en}".strip()

    def is_listed(self, day: date) -> bool:
        return self.list_date <= day and not (self.delist_date and self.delist_date <= day)

    def name_in(self, locale: Locale) -> str:
        return self.name if locale == "zh-CN" else self.name_en or self.name

    def industry_in(self, locale: Locale) -> str:
        return self.industry if locale == "zh-CN" else self.industry_en or self.industry


class SymbolDirectory(Protocol):
    """Market data's directory, as others see it."""

    async def symbol(self, text: str) -> Symbol:
        """The share that a person means by a code in any spelling, or by a name; raise `InvalidInput` that names what
        is near otherwise."""

    async def company(self, symbol: Symbol, *, as_of: datetime) -> Company:
        """Raise `InvalidInput` that helps where there was none then, or none that can be researched."""

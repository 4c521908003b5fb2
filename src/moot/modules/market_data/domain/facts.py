"""Market facts, frozen and checked at the edge: no NaN, no negative price, no naive time gets past here.

Every fact has two times: `event_time`, when it happened, and `available_at`, when the public could know it.
Money is CNY (or the market's own currency), volume is shares, ratios and margins are per cent. The kinds of data are
listed at the end, one line each: how a kind is kept, fetched and asked for follows from its line.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import AwareDatetime, BaseModel, Field, model_validator

from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.messages import Message
from moot.shared.domain.symbol import TIME_ZONES, Market

Price = Annotated[float, Field(gt=0)]
Percent = float

UNIT_SLACK = 5
"""How far the mean price of a day may seem to lie outside its range before its units are wrong."""


class Fact(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    event_time: AwareDatetime
    available_at: AwareDatetime
    source: str

    def known_at(self, as_of: datetime) -> bool:
        return self.available_at <= as_of


class Observed(Fact):
    """A fact about something that is over when it becomes known."""

    @model_validator(mode="after")
    def _not_known_before_it_happened(self) -> Self:
        if self.available_at < self.event_time:
            raise ValueError("available before it happened")
        return self


class DailyBar(Observed):
    """One trading day. Prices are raw; `adj_factor` makes days comparable across ex-right dates.

    `pre_close` is the reference price of the day: on an ex-right day it is not the previous close.
    A suspended day repeats the last close with zero volume.
    """

    symbol: str
    trade_date: date
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
            raise ValueError("low <= open, close <= high does not hold")
        return self

    @model_validator(mode="after")
    def _amount_fits_volume(self) -> Self:
        """Amount over volume is a price: lots taken for shares, or thousands for yuan, are far off it."""
        if self.volume and self.amount:
            mean = self.amount / self.volume
            if not self.low / UNIT_SLACK <= mean <= self.high * UNIT_SLACK:
                raise ValueError("amount and volume are not in the same units as the prices")
        return self


class DailyValuation(Observed):
    """What the market paid on a day; a ratio is absent where its denominator was unknown, negative PE is kept."""

    symbol: str
    trade_date: date
    close: Price
    total_mv: float = Field(gt=0)
    circ_mv: float | None = Field(default=None, gt=0)
    pe: float | None = None
    pe_ttm: float | None = None
    pb: float | None = None
    ps_ttm: float | None = None
    dv_ratio: Percent | None = None
    turnover_rate: Percent | None = None


class FinancialReport(Observed):
    """A quarterly report. Flows (eps, profit, revenue, cash flow) are cumulative from the start of the year.

    Per-share figures are on the shares of the report date. `None` means that the company did not report it.
    """

    symbol: str
    period_end: date
    announced_on: date
    gross_margin: Percent | None = None
    netprofit_margin: Percent | None = None
    roe_waa: Percent | None = None
    roic: Percent | None = None
    eps: float | None = None
    bps: float | None = None
    profit_dedt: float | None = None
    ocfps: float | None = None
    fcff_ps: float | None = None
    fcff: float | None = None
    current_ratio: float | None = None
    quick_ratio: float | None = None
    debt_to_assets: Percent | None = None
    interestdebt: float | None = None
    netdebt: float | None = None
    invturn_days: float | None = None
    arturn_days: float | None = None
    assets_turn: float | None = None
    total_revenue_ps: float | None = None
    total_revenue: float | None = None
    operate_profit: float | None = None
    net_profit: float | None = None
    total_assets: float | None = None
    total_liab: float | None = None
    equity: float | None = None
    n_cashflow_act: float | None = None
    capex: float | None = None


class Dividend(Fact):
    """What one share gets for a period: cash before tax, and new shares per share held."""

    symbol: str
    period_end: date
    announced_on: date
    ex_date: date | None = None
    record_date: date | None = None
    cash_per_share: float = Field(default=0.0, ge=0)
    bonus_per_share: float = Field(default=0.0, ge=0)


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


class Company(BaseModel, frozen=True, extra="forbid"):
    """A listed company, as the directory knows it. `aliases` are former and other names, `pinyin` the initials."""

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
    source: str = "demo"
    synthetic: bool = False

    @property
    def label(self) -> str:
        """Both names, for messages whose reader is not known yet."""
        return f"{self.name} {self.name_en}".strip()


M_co = TypeVar("M_co", bound=BaseModel, covariant=True)


@dataclass(frozen=True)
class Dataset(Generic[M_co]):
    """`key` names a row; where two rows share it, the one stored later holds. `day` orders them, oldest first.

    A restated report is another version, not the same row: its key has the moment it became known. `by_symbol`: kept
    per symbol, otherwise per market. `whole`: comes all at once, otherwise for a range of days. `late_by` is how long
    after a day something about it may still come out: until then, it is not complete.
    """

    name: str
    model: type[M_co]
    key: tuple[str, ...]
    day: str
    by_symbol: bool = True
    whole: bool = False
    late_by: timedelta = timedelta()

    def __str__(self) -> str:
        return self.name

    @property
    def label(self) -> Message:
        """As people call it."""
        return SAY(f"dataset.{self.name}")

    def covers(self, day: Any, start: date, end: date, market: Market) -> bool:
        """Whether a row of that day is asked for; one without a day is, to be refused by name."""
        if isinstance(day, datetime):
            day = day.astimezone(TIME_ZONES[market]).date()
        return self.whole or not isinstance(day, date) or start <= day <= end


COMPANIES = Dataset("companies", Company, ("symbol",), "symbol", by_symbol=False, whole=True)
BARS = Dataset("bars", DailyBar, ("trade_date",), "trade_date")
VALUATIONS = Dataset("valuations", DailyValuation, ("trade_date",), "trade_date")
REPORTS = Dataset("reports", FinancialReport, ("period_end", "available_at"), "period_end", whole=True)
DIVIDENDS = Dataset("dividends", Dividend, ("period_end", "available_at"), "period_end", whole=True)
MACRO = Dataset(
    "macro",
    MacroObservation,
    ("series", "industry", "period", "available_at"),
    "period",
    by_symbol=False,
    late_by=timedelta(days=75),
)
NEWS = Dataset("news", NewsItem, ("url",), "available_at", late_by=timedelta(days=2))

DATASETS: dict[str, Dataset[Any]] = {
    dataset.name: dataset for dataset in (COMPANIES, BARS, VALUATIONS, REPORTS, DIVIDENDS, MACRO, NEWS)
}

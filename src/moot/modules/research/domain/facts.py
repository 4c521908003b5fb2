"""The facts research reads and the port they come through. Prices are adjusted, days without trading left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, Protocol

from pydantic import AwareDatetime, BaseModel, ConfigDict

from moot.shared.domain.messages import Locale
from moot.shared.domain.symbol import Symbol


class Fact(BaseModel):
    model_config = ConfigDict(frozen=True, from_attributes=True, allow_inf_nan=False)

    available_at: AwareDatetime
    source: str

    @property
    def citation(self) -> str:
        """What a reader can look up."""
        return self.source


class Bar(Fact):
    trade_date: date
    open: float
    high: float
    low: float
    close: float
    volume: int


class Valuation(Fact):
    """What the market paid on a day; prices as quoted, `total_mv` in CNY."""

    trade_date: date
    close: float
    total_mv: float
    pe_ttm: float | None
    pb: float | None
    ps_ttm: float | None
    dv_ratio: float | None


class Report(Fact):
    """A quarterly report; flows (eps, profit, revenue, cash flow, returns) run from the start of the year."""

    period_end: date
    announced_on: date
    gross_margin: float | None
    netprofit_margin: float | None
    roe_waa: float | None
    roic: float | None
    eps: float | None
    bps: float | None
    profit_dedt: float | None
    ocfps: float | None
    fcff_ps: float | None
    fcff: float | None
    current_ratio: float | None
    quick_ratio: float | None
    debt_to_assets: float | None
    interestdebt: float | None
    netdebt: float | None
    invturn_days: float | None
    arturn_days: float | None
    assets_turn: float | None
    total_revenue_ps: float | None

    @property
    def shares(self) -> float | None:
        """The share count, told by free cash flow being reported both ways; None where that is too coarse."""
        if self.fcff is None or self.fcff_ps is None or abs(self.fcff_ps) < 0.01:
            return None
        return self.fcff / self.fcff_ps


class Cited(Fact):
    url: str

    @property
    def citation(self) -> str:
        return self.url


class MacroFigure(Cited):
    series: str
    period: date
    value: float
    unit: str
    industry: str | None


class News(Cited):
    """`symbol` and `industry` say whom it is about; neither means the market as a whole."""

    kind: Literal["announcement", "news", "policy"]
    published: date
    titles: Mapping[Locale, str]
    symbol: str | None
    industry: str | None


class Company(BaseModel):
    model_config = ConfigDict(frozen=True)

    symbol: str
    names: Mapping[Locale, str]
    industry: str
    industries: Mapping[Locale, str]


@dataclass(frozen=True)
class Case:
    """Whom an expert was asked about, the moment asked for, the exchange's date then, and the reader's language."""

    symbol: Symbol
    company: Company
    as_of: datetime
    today: date
    locale: Locale

    @property
    def stock_name(self) -> str:
        return self.company.names[self.locale]

    @property
    def industry(self) -> str:
        return self.company.industries[self.locale]


class MarketFacts(Protocol):
    """The market as research sees it: nothing that became known after `as_of`.

    A symbol nobody lists raises `InvalidInput`; a range without facts is an empty answer.
    """

    async def company(self, symbol: Symbol, *, as_of: datetime) -> Company: ...

    async def bars(self, symbol: Symbol, start: date, end: date, *, as_of: datetime) -> Sequence[Bar]:
        """Traded days only, oldest first, adjusted to the last of them."""

    async def valuations(
        self, symbol: Symbol, start: date, end: date, *, as_of: datetime
    ) -> Sequence[Valuation]:
        """Oldest first."""

    async def reports(self, symbol: Symbol, periods: int, *, as_of: datetime) -> Sequence[Report]:
        """Newest period first."""

    async def macro(self, symbol: Symbol, days: int, *, as_of: datetime) -> Sequence[MacroFigure]:
        """Figures of the symbol's home market and of its industry."""

    async def news(self, symbol: Symbol, days: int, *, as_of: datetime) -> Sequence[News]:
        """About the company, its industry or the market."""

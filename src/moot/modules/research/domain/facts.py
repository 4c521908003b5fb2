"""The facts research reads, the port they come through, and reports compared over time.

Prices are adjusted, days without trading left out. Flows are cumulative, so a quarter is only ever compared with
itself a year before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Literal, Protocol

from pydantic import AwareDatetime, BaseModel

from moot.modules.research.domain import units
from moot.shared.domain.messages import Catalogue, Locale
from moot.shared.domain.symbol import Symbol

COMMON = Path(__file__).parent / "texts"
SAY = Catalogue(COMMON)
"""What all experts say to people alike; what only one of them says stands in its own folder."""


class Fact(BaseModel, frozen=True, from_attributes=True, allow_inf_nan=False):
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


class Figures(BaseModel, frozen=True, allow_inf_nan=False):
    """What a quarter's report states; flows (eps, profit, revenue, cash, returns) run from the start of the year."""

    gross_margin: units.Percent
    netprofit_margin: units.Percent
    roe_waa: units.Percent
    roic: units.Percent
    eps: units.Price
    bps: units.Price
    profit_dedt: units.Amount
    ocfps: units.Price
    fcff_ps: units.Price
    fcff: units.Amount
    current_ratio: units.Ratio
    quick_ratio: units.Ratio
    debt_to_assets: units.Percent
    interestdebt: units.Amount
    netdebt: units.Amount
    invturn_days: units.Days
    arturn_days: units.Days
    assets_turn: units.Ratio
    total_revenue_ps: units.Price


class Report(Fact, Figures):
    period_end: date
    announced_on: date

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
    title: str
    title_en: str | None
    symbol: str | None
    industry: str | None


class Company(BaseModel, frozen=True, from_attributes=True):
    symbol: str
    name: str
    name_en: str
    industry: str
    industry_en: str

    def name_in(self, locale: Locale) -> str:
        return self.name if locale == "zh-CN" else self.name_en

    def industry_in(self, locale: Locale) -> str:
        return self.industry if locale == "zh-CN" else self.industry_en


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
        return self.company.name_in(self.locale)

    @property
    def industry(self) -> str:
        return self.company.industry_in(self.locale)


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


Quarter = tuple[int, int]

SHARES_CHANGED = 0.03
"""A share count that differs by more than this was changed; less is the rounding of per-share figures."""


def quarter_of(day: date) -> Quarter:
    return day.year, (day.month - 1) // 3 + 1


def quarter_name(day: date) -> str:
    year, quarter = quarter_of(day)
    return f"{year}Q{quarter}"


class Periods:
    """Reports by quarter; whatever a comparison lacks makes it None."""

    def __init__(self, reports: Sequence[Report]) -> None:
        self._by_quarter = {quarter_of(report.period_end): report for report in reports}

    def growth(self, report: Report, field: str) -> float | None:
        """Growth over the same quarter a year before, in per cent; from a base of zero or less there is none."""
        now, base = _figure(report, field), positive(_figure(self._year_before(report), field))
        return None if now is None or base is None else round(100 * (now / base - 1), 1)

    def revenue_growth(self, report: Report) -> float | None:
        """Growth of revenue per share; once the share count has changed, of revenue, so that an issue is no loss."""
        before = self._year_before(report)
        growth = self.growth(report, "total_revenue_ps")
        if growth is None or before is None or not report.shares or not before.shares:
            return growth
        shares = report.shares / before.shares
        return growth if abs(shares - 1) < SHARES_CHANGED else round((100 + growth) * shares - 100, 1)

    def change(self, report: Report, field: str) -> float | None:
        """The difference to the same quarter a year before, in the field's own unit."""
        now, base = _figure(report, field), _figure(self._year_before(report), field)
        return None if now is None or base is None else round(now - base, 2)

    def trailing_year(self, report: Report, field: str) -> float | None:
        """A flow over the last four quarters: this year so far, plus last year, less last year so far."""
        year, quarter = quarter_of(report.period_end)
        now = _figure(report, field)
        if quarter == 4:
            return now
        full = _figure(self._by_quarter.get((year - 1, 4)), field)
        part = _figure(self._year_before(report), field)
        return None if now is None or full is None or part is None else round(now + full - part, 4)

    def _year_before(self, report: Report) -> Report | None:
        year, quarter = quarter_of(report.period_end)
        return self._by_quarter.get((year - 1, quarter))


def annualise(report: Report, field: str) -> float | None:
    """A cumulative return as if the rest of the year went like the part reported."""
    value = _figure(report, field)
    return None if value is None else round(value * 4 / quarter_of(report.period_end)[1], 1)


def ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else round(part / whole, 2)


def difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def positive(value: float | None) -> float | None:
    """A base that can be divided by without turning the meaning of the sign around."""
    return value if value is not None and value > 0 else None


def _figure(report: Report | None, field: str) -> float | None:
    value: float | None = getattr(report, field) if report else None
    return value

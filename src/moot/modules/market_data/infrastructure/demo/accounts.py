"""A company's books, quarter by quarter: what it owns, earns, pays out, and what it publishes of that.

Equity is what is carried on: assets follow from it by leverage, revenue by turnover, profit by margin,
and what is not paid out becomes the next quarter's equity. Reports are ratios and per-share figures drawn from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np

from moot.modules.market_data.domain import trading_rules
from moot.modules.market_data.infrastructure.demo import market, noise
from moot.modules.market_data.infrastructure.demo.market import Firm, WorkingCapital
from moot.shared.domain.facts import Dividend, FinancialReport

HUNDRED_MILLION = 100_000_000
WORST_QUARTER = -0.06  # of equity: nobody loses everything at once
ONE_OFF = 0.01  # of revenue: gains that do not recur, at most
PROSPECTUS_YEARS = 3  # the history that a new company publishes ...
PROSPECTUS_LEAD = timedelta(days=21)  # ... so long before its listing
EX_SEASON = ((6, 1), (7, 25))  # when shares go ex-right, in the year after the one they are paid for
BONUS_PER_TEN = (2, 3, 4, 5)

LAG_CHANCES = (0.0, 0.05, 0.50, 0.95, 1.0)
LAG_DAYS = {
    3: (14, 21, 28, 30, 30),
    6: (30, 41, 59, 62, 62),
    9: (15, 22, 29, 31, 31),
    12: (56, 70, 90, 120, 120),
}
"""Days from a period's end to its announcement, by the period's last month; the last is the statutory deadline."""


@dataclass(frozen=True)
class Statement:
    """Flows since the start of the year, stocks at the period's end, in CNY."""

    quarter: int  # counted from the start of the first year
    period_end: date
    announced_on: date
    shares: int
    equity: float
    assets: float
    opening_equity: float
    opening_assets: float
    revenue: float = 0.0
    net_profit: float = 0.0
    one_off: float = 0.0
    operating_cash: float = 0.0
    revenue_published: bool = True

    @property
    def mean_equity(self) -> float:
        return (self.opening_equity + self.equity) / 2

    @property
    def published_revenue(self) -> float | None:
        return self.revenue if self.revenue_published else None


@dataclass(frozen=True)
class Payout:
    """What the profit of a fiscal year brings the shareholders on `ex_date`, per ten shares."""

    fiscal_year: int
    ex_date: date
    cash_per_ten: float
    bonus_per_ten: int
    shares_before: int

    @property
    def cash(self) -> float:
        return self.cash_per_ten / 10 * self.shares_before

    @property
    def shares_after(self) -> int:
        return self.shares_before * (10 + self.bonus_per_ten) // 10


@dataclass(frozen=True)
class Accounts:
    """`statements` are in the order of their periods, which is the order in which they are announced."""

    first_shares: int
    statements: tuple[Statement, ...]
    payouts: tuple[Payout, ...]


Quarter = Mapping[str, float]
"""What drives the books in a quarter, by name."""


def keep_accounts(firm: Firm, seed: int, until: date) -> Accounts:
    ends = market.quarter_ends(until)
    drivers = _drivers(firm, seed, len(ends))
    opening = last = _opening(firm)
    statements: list[Statement] = []
    payouts: list[Payout] = []
    for end, driven in list(zip(ends, drivers, strict=True))[opening.quarter + 1 :]:
        last = _next(firm, driven, last, end, payouts[-1] if payouts else None)
        statements.append(last)
        if end.month == 12:
            payouts += _declare(firm, seed, last)
    gone = firm.company.delist_date or date.max
    return Accounts(opening.shares, tuple(s for s in statements if s.announced_on < gone), tuple(payouts))


def sum_trailing_years(statements: Sequence[Statement], flow: str) -> list[float | None]:
    """By statement: the flow of the four quarters up to it; None where a part of it was not published."""
    told = [getattr(statement, flow) for statement in statements]
    return [_sum_trailing(told, n, s.period_end.month // 3) for n, s in enumerate(statements)]


def _sum_trailing(told: Sequence[float | None], n: int, quarter: int) -> float | None:
    if quarter == 4:
        return told[n]
    so_far, full_year, year_ago = (told[n], told[n - quarter], told[n - 4]) if n >= 4 else (None,) * 3
    if so_far is None or full_year is None or year_ago is None:
        return None
    return so_far + full_year - year_ago


def _drivers(firm: Firm, seed: int, count: int) -> list[Quarter]:
    key = (seed, firm.symbol)
    years = market.FIRST_YEAR + (np.arange(count) + 0.5) / 4
    tide = noise.industry_tide(seed, firm.industry.name, 3 * count).reshape(-1, 3).mean(axis=1)
    own = noise.wander(noise.normals(count, *key, "margin"), 0.75)
    drivers = {
        "margin": _at_years(firm.margin, years) + firm.cyclicality * tide + firm.margin_noise * own,
        "asset_turnover": _at_years(firm.asset_turnover, years)
        * np.exp(0.04 * noise.normals(count, *key, "turnover")),
        "equity_share": (1 - firm.leverage)
        * np.exp(0.06 * noise.wander(noise.normals(count, *key, "leverage"), 0.9)),
        "one_off": ONE_OFF * noise.uniforms(count, *key, "one-off"),
        "cash_margin": firm.cash_margin + (0.02 + firm.cash_margin) * noise.normals(count, *key, "cash"),
        "lag_chance": noise.uniforms(count, *key, "announcement"),
    }
    rows = zip(*(values.tolist() for values in drivers.values()), strict=True)
    return [dict(zip(drivers, row, strict=True)) for row in rows]


def _at_years(knots: market.Knots, years: noise.Array) -> noise.Array:
    return np.interp(years, [year for year, _ in knots], [value for _, value in knots])


def _opening(firm: Firm) -> Statement:
    """The balance on the eve of the first year that is told; its quarter is the one before."""
    year = max(market.FIRST_YEAR, firm.company.list_date.year - PROSPECTUS_YEARS)
    quarter = (year - market.FIRST_YEAR) * 4 - 1
    equity = firm.equity * HUNDRED_MILLION
    assets = equity / (1 - firm.leverage)
    eve = date(year - 1, 12, 31)
    return Statement(quarter, eve, eve, round(firm.shares * HUNDRED_MILLION), equity, assets, equity, assets)


def _next(firm: Firm, driven: Quarter, last: Statement, end: date, payout: Payout | None) -> Statement:
    quarter, new_year = last.quarter + 1, end.month == 3
    revenue = last.assets * driven["asset_turnover"] * firm.industry.seasons[quarter % 4]
    profit = max(revenue * driven["margin"], WORST_QUARTER * last.equity)
    paid = payout if payout and last.period_end < payout.ex_date <= end else None
    equity = last.equity + profit - (paid.cash if paid else 0.0)
    so_far = 0.0 if new_year else 1.0
    lag = np.interp(driven["lag_chance"], LAG_CHANCES, LAG_DAYS[end.month])
    prospectus = firm.company.list_date - PROSPECTUS_LEAD
    return Statement(
        quarter=quarter,
        period_end=end,
        # never before the previous period's announcement or the prospectus
        announced_on=max(end + timedelta(days=round(float(lag))), last.announced_on, prospectus),
        shares=paid.shares_after if paid else last.shares,
        equity=equity,
        assets=equity / driven["equity_share"],
        opening_equity=last.equity if new_year else last.opening_equity,
        opening_assets=last.assets if new_year else last.opening_assets,
        revenue=so_far * last.revenue + revenue,
        net_profit=so_far * last.net_profit + profit,
        one_off=so_far * last.one_off + revenue * driven["one_off"],
        operating_cash=so_far * last.operating_cash + profit + revenue * driven["cash_margin"],
        revenue_published=end.month in (6, 12) or not firm.revenue_half_yearly,
    )


def _declare(firm: Firm, seed: int, full_year: Statement) -> list[Payout]:
    """The year's payout; none after a loss, and none to people who cannot hold the share."""
    year = full_year.period_end.year
    pick_day, pick_bonus, pick_size = noise.uniforms(3, seed, firm.symbol, "payout", year).tolist()
    season = _ex_season(year + 1)
    ex_date = season[int(pick_day * len(season))]
    if full_year.net_profit <= 0 or not firm.listed_on(ex_date):
        return []
    cash = round(firm.payout * full_year.net_profit / full_year.shares * 10, 2)
    with_bonus = pick_bonus < firm.bonus_chance and ex_date > trading_rules.DEMO_BEGINS
    bonus = BONUS_PER_TEN[int(pick_size * len(BONUS_PER_TEN))] if with_bonus else 0
    return [Payout(year, ex_date, cash, bonus, full_year.shares)] if cash or bonus else []


def _ex_season(year: int) -> list[date]:
    first, last = (date(year, *day) for day in EX_SEASON)
    days = (first + timedelta(days=n) for n in range((last - first).days + 1))
    return [day for day in days if trading_rules.is_demo_day(day)]


INTEREST = 0.04
AFTER_TAX = 0.75
PASS_THROUGH = 0.8  # of a change in the net margin, how much was one in the gross margin


def publish_reports(firm: Firm, seed: int, accounts: Accounts) -> list[FinancialReport]:
    count = accounts.statements[-1].quarter + 1 if accounts.statements else 0
    drift = np.exp(0.08 * noise.wander(noise.normals(count, seed, firm.symbol, "working capital"), 0.8))
    return [_report(firm, statement, float(drift[statement.quarter])) for statement in accounts.statements]


def _report(firm: Firm, s: Statement, drift: float) -> FinancialReport:
    figures = _figures(firm, s)
    if firm.industry.working_capital:
        figures |= _business_figures(firm, firm.industry.working_capital, s, drift)
    return FinancialReport(
        **market.filed(firm.symbol, s.period_end, s.announced_on),
        profit_dedt=round(s.net_profit - s.one_off, 2),
        **{name: None if value is None else round(value, 4) for name, value in figures.items()},
    )


def _figures(firm: Firm, s: Statement) -> dict[str, Any]:
    """The gross margin is the usual one, moved by what moved the net margin away from where it stood at first."""
    usual, moved = firm.gross_margin, s.net_profit / s.revenue - firm.margin[0][1]
    sold = s.published_revenue
    return {
        "eps": s.net_profit / s.shares,
        "bps": s.equity / s.shares,
        "ocfps": s.operating_cash / s.shares,
        "total_revenue_ps": None if sold is None else sold / s.shares,
        "total_revenue": sold,
        "net_profit": s.net_profit,
        "equity": s.equity,
        "n_cashflow_act": s.operating_cash,
        "netprofit_margin": 100 * s.net_profit / s.revenue,
        "roe_waa": 100 * s.net_profit / s.mean_equity,
        "debt_to_assets": 100 * (1 - s.equity / s.assets),
        "assets_turn": s.revenue / ((s.opening_assets + s.assets) / 2),
        "gross_margin": None if usual is None else 100 * min(max(usual + PASS_THROUGH * moved, 0.01), 0.97),
    }


def _business_figures(
    firm: Firm, business: WorkingCapital, s: Statement, drift: float
) -> dict[str, float | None]:
    """Goods and bills lie longer, and cash is shorter, while the company earns less than is normal for it."""
    yearly = s.net_profit / s.equity * 12 / s.period_end.month
    strain = 1 + max(firm.normal_roe - yearly, 0.0)
    current = business.current_ratio / drift / strain
    debt = business.debt_share * (s.assets - s.equity)
    interest = debt * INTEREST * AFTER_TAX * s.period_end.month / 12
    fcff = s.operating_cash - business.capex * s.revenue + interest
    return {
        "invturn_days": business.inventory_days * drift * strain,
        "arturn_days": business.receivable_days * drift * strain,
        "current_ratio": current,
        "quick_ratio": current * business.quick_share,
        "interestdebt": debt,
        "netdebt": debt - business.cash_share * s.assets,
        "fcff": fcff,
        "fcff_ps": fcff / s.shares,
        "roic": 100 * (s.net_profit + interest) / (s.mean_equity + debt),
    }


def declare_dividends(firm: Firm, accounts: Accounts) -> list[Dividend]:
    """Announced in the evening a week before the share goes ex."""
    return [
        Dividend(
            symbol=firm.symbol,
            period_end=date(payout.fiscal_year, 12, 31),
            announced_on=announced,
            ex_date=payout.ex_date,
            cash_per_share=round(payout.cash_per_ten / 10, 4),
            bonus_per_share=payout.bonus_per_ten / 10,
            **market.told(market.moment(announced, 18), market.moment(announced, 18)),
        )
        for payout in accounts.payouts
        for announced in [payout.ex_date - timedelta(days=7)]
    ]

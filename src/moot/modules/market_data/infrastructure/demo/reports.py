"""The published reports: ratios and per-share figures drawn from the books."""

from datetime import date, timedelta
from typing import Any

import numpy as np

from moot.modules.market_data.domain.facts import Dividend, FinancialReport
from moot.modules.market_data.infrastructure.demo.accounts import Accounts, Statement
from moot.modules.market_data.infrastructure.demo.calendar import SOURCE, moment
from moot.modules.market_data.infrastructure.demo.companies import Firm, WorkingCapital
from moot.modules.market_data.infrastructure.demo.noise import normals, wander

INTEREST = 0.04
AFTER_TAX = 0.75
PASS_THROUGH = 0.8  # of a change in the net margin, how much was one in the gross margin


def published_reports(firm: Firm, seed: int, accounts: Accounts) -> list[FinancialReport]:
    count = accounts.statements[-1].quarter + 1 if accounts.statements else 0
    drift = np.exp(0.08 * wander(normals(count, seed, firm.symbol, "working capital"), 0.8))
    return [_report(firm, statement, float(drift[statement.quarter])) for statement in accounts.statements]


def _report(firm: Firm, s: Statement, drift: float) -> FinancialReport:
    business = firm.industry.working_capital
    figures = _per_share(s) | _returns(s) | _statements(s) | {"gross_margin": _gross_margin(firm, s)}
    if business:
        figures |= _working_capital(firm, business, s, drift) | _free_cash(business, s)
    return FinancialReport(
        symbol=firm.symbol,
        period_end=s.period_end,
        announced_on=s.announced_on,
        event_time=moment(s.period_end, 15),
        available_at=moment(s.announced_on, 18),
        source=SOURCE,
        profit_dedt=round(s.net_profit - s.one_off, 2),
        **{name: None if value is None else round(value, 4) for name, value in figures.items()},
    )


def declared_dividends(firm: Firm, accounts: Accounts) -> list[Dividend]:
    """Announced in the evening a week before the share goes ex."""
    return [
        Dividend(
            symbol=firm.symbol,
            period_end=date(payout.fiscal_year, 12, 31),
            announced_on=announced,
            ex_date=payout.ex_date,
            cash_per_share=round(payout.cash_per_ten / 10, 4),
            bonus_per_share=payout.bonus_per_ten / 10,
            event_time=moment(announced, 18),
            available_at=moment(announced, 18),
            source=SOURCE,
        )
        for payout in accounts.payouts
        for announced in [payout.ex_date - timedelta(days=7)]
    ]


def _per_share(s: Statement) -> dict[str, Any]:
    return {
        "eps": s.net_profit / s.shares,
        "bps": s.equity / s.shares,
        "ocfps": s.operating_cash / s.shares,
        "total_revenue_ps": s.revenue / s.shares if s.revenue_published else None,
    }


def _statements(s: Statement) -> dict[str, Any]:
    return {
        "total_revenue": s.revenue if s.revenue_published else None,
        "net_profit": s.net_profit,
        "equity": s.equity,
        "n_cashflow_act": s.operating_cash,
    }


def _returns(s: Statement) -> dict[str, Any]:
    return {
        "netprofit_margin": 100 * s.net_profit / s.revenue,
        "roe_waa": 100 * s.net_profit / _mean(s.opening_equity, s.equity),
        "debt_to_assets": 100 * (1 - s.equity / s.assets),
        "assets_turn": s.revenue / _mean(s.opening_assets, s.assets),
    }


def _gross_margin(firm: Firm, s: Statement) -> float | None:
    """The usual gross margin, moved by what moved the net margin away from where it stood at first."""
    usual = firm.books.gross_margin
    if usual is None:
        return None
    moved = s.net_profit / s.revenue - firm.books.margin[0][1]
    return 100 * min(max(usual + PASS_THROUGH * moved, 0.01), 0.97)


def _working_capital(firm: Firm, business: WorkingCapital, s: Statement, drift: float) -> dict[str, Any]:
    """Goods and bills lie longer, and cash is shorter, while the company earns less than is normal for it."""
    yearly = s.net_profit / s.equity * 12 / s.period_end.month
    strain = 1 + max(firm.trading.normal_roe - yearly, 0.0)
    current = business.current_ratio / drift / strain
    return {
        "invturn_days": business.inventory_days * drift * strain,
        "arturn_days": business.receivable_days * drift * strain,
        "current_ratio": current,
        "quick_ratio": current * business.quick_share,
    }


def _free_cash(business: WorkingCapital, s: Statement) -> dict[str, Any]:
    debt = business.debt_share * (s.assets - s.equity)
    interest = debt * INTEREST * AFTER_TAX * s.period_end.month / 12
    fcff = s.operating_cash - business.capex * s.revenue + interest
    return {
        "interestdebt": debt,
        "netdebt": debt - business.cash_share * s.assets,
        "fcff": fcff,
        "fcff_ps": fcff / s.shares,
        "roic": 100 * (s.net_profit + interest) / (_mean(s.opening_equity, s.equity) + debt),
    }


def _mean(a: float, b: float) -> float:
    return (a + b) / 2

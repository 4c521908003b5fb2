"""The books in full: income, balance sheet and cash flow, from which the published ratios could have been worked out.

What the ratios leave open is filled so that all of it adds up: administration takes what is left of the gross profit,
long-term assets nobody asks about what is left of the assets, investing what is left of the change in cash. Where a
quarter's liabilities are too few for its liquidity ratios, goods and cash beyond that room count as long-term assets.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from moot.modules.market_data.infrastructure.demo import accounts as books
from moot.modules.market_data.infrastructure.demo import market, noise
from moot.modules.market_data.infrastructure.demo.market import Firm, WorkingCapital
from moot.modules.market_data.infrastructure.demo.prices import Share
from moot.shared.domain.facts import FinancialReport, Statement

DAYS_A_YEAR = 360
SHORT_AT_MOST, CURRENT_AT_MOST = 0.98, 0.92  # of the liabilities, of the assets
LONG_SHARE, BOND_SHARE = 0.45, 0.3  # of the debt, and of the long one
PAYABLE_SHARE = 0.6  # of what is due soon and bears no interest
DEPOSIT_RATE = 0.012
PAID_IN = 0.6  # of the first equity: what the shareholders once brought
WEAR = 0.09  # of plant and machines, a year
PLANT_AT_FIRST, PLANT_AT_MOST, INTANGIBLE, GOODWILL = 0.5, 0.8, 0.08, 0.1  # of the long-term assets
BANK = {"cash": 0.07, "plant": 0.008, "bonds": 0.06, "capex": 0.02}
"""Of assets, assets, liabilities and revenue."""
UNTOLD_WITHOUT_REVENUE = ("revenue", "cost_of_sales", "selling_expense", "admin_expense", "research_expense")

Lines = Mapping[str, float]


def publish_statements(share: Share) -> list[Statement]:
    """One for each report, known with it."""
    firm, pairs = share.firm, list(zip(share.accounts.statements, share.reports, strict=True))
    if not pairs:
        return []
    first, report = pairs[0]
    last = _balance(firm, replace(first, assets=first.opening_assets, equity=first.opening_equity), report)
    last |= {"fixed_assets": PLANT_AT_FIRST * last["plant_room"] / PLANT_AT_MOST}
    moods = np.exp(0.06 * noise.normals(2 * (pairs[-1][0].quarter + 1), share.seed, firm.symbol, "expenses"))
    told: list[Statement] = []
    eve = last
    for s, report in pairs:
        if s.period_end.month == 3:
            eve = last = {**last, "capex": 0.0, "depreciation": 0.0}
        lines = _cents(_balance(firm, s, report))
        lines |= {"retained_earnings": s.equity - PAID_IN * first.opening_equity, "shares": s.shares}
        lines |= _cents(_income(firm, s, report, lines, *moods.reshape(-1, 2)[s.quarter].tolist()))
        lines |= _cents(_plant(firm, s, lines, last))
        lines |= _cents(_cash_flow(s, lines, eve))
        told.append(_tell(firm, s, _cents(lines)))
        last = lines
    return told


def _cents(lines: Lines) -> dict[str, float]:
    return {name: round(value, 2) for name, value in lines.items()}


def _tell(firm: Firm, s: books.Statement, lines: dict[str, float]) -> Statement:
    silent = () if s.revenue_published else UNTOLD_WITHOUT_REVENUE
    return Statement(
        symbol=firm.symbol,
        period_end=s.period_end,
        announced_on=s.announced_on,
        **market.told(market.moment(s.period_end, 15), market.moment(s.announced_on, 18)),
        **{
            name: value
            for name, value in lines.items()
            if name in Statement.model_fields and name not in silent
        },
    )


def _balance(firm: Firm, s: books.Statement, report: FinancialReport) -> dict[str, float]:
    business, owed = firm.industry.working_capital, s.assets - s.equity
    whole = {
        "total_assets": s.assets,
        "total_liabilities": round(s.assets, 2) - round(s.equity, 2),
        "equity": s.equity,
        "minority_interest": 0.0,
    }
    if business:
        return whole | _business_balance(business, s, report)
    shares = {"cash": BANK["cash"] * s.assets, "bonds": BANK["bonds"] * owed}
    return whole | shares | {"plant_room": 2 * BANK["plant"] * s.assets}


def _business_balance(
    business: WorkingCapital, s: books.Statement, report: FinancialReport
) -> dict[str, float]:
    """Current assets have room for the goods and for what is liquid, and are no more than the ratios allow."""
    ratios = {name: value or 0.0 for name, value in report.model_dump(include=RATIOS).items()}
    days, owed, quick = DAYS_A_YEAR * s.period_end.month / 12, s.assets - s.equity, business.quick_share
    goods = ratios["invturn_days"] * _cost(s, report) / days
    bills = ratios["arturn_days"] * s.revenue / days
    cash = ratios["interestdebt"] - ratios["netdebt"]
    room = min(ratios["current_ratio"] * SHORT_AT_MOST * owed, CURRENT_AT_MOST * s.assets)
    current = min(max(goods / (1 - quick), (cash + bills) / quick), room)
    due = current / ratios["current_ratio"]
    long = min(LONG_SHARE * ratios["interestdebt"], owed - due)
    rest = s.assets - current
    return {
        "cash": min(cash, quick * current - bills),
        "receivables": bills,
        "inventory": min(goods, (1 - quick) * current),
        "current_assets": current,
        "intangibles": INTANGIBLE * rest,
        "goodwill": min(GOODWILL * rest, INTANGIBLE * s.opening_assets),
        "plant_room": PLANT_AT_MOST * rest,
        "short_debt": ratios["interestdebt"] - long,
        "payables": PAYABLE_SHARE * (due - ratios["interestdebt"] + long),
        "current_liabilities": due,
        "long_debt": (1 - BOND_SHARE) * long,
        "bonds": BOND_SHARE * long,
    }


RATIOS = {"invturn_days", "arturn_days", "interestdebt", "netdebt", "current_ratio"}


def _cost(s: books.Statement, report: FinancialReport) -> float:
    return s.revenue * (1 - (report.gross_margin or 0.0) / 100)


def _income(
    firm: Firm,
    s: books.Statement,
    report: FinancialReport,
    lines: Lines,
    selling_mood: float,
    research_mood: float,
) -> dict[str, float]:
    """A loss is not taxed. What does not recur lies between operating profit and profit before tax."""
    business, year = firm.industry.working_capital, s.period_end.month / 12
    kept = books.AFTER_TAX if s.net_profit > 0 else 1.0
    profit, before_tax = round(s.net_profit, 2), round(s.net_profit / kept, 2)
    operating = round(before_tax - s.one_off / kept, 2)
    spent = {}
    if business:
        selling, research = business.spent_on
        interest = (report.interestdebt or 0.0) * books.INTEREST * year
        spent = {
            "cost_of_sales": _cost(s, report),
            "finance_expense": interest - DEPOSIT_RATE * lines["cash"] * year,
        }
        left = s.revenue - operating - sum(spent.values())
        spent |= {
            "selling_expense": selling * selling_mood * left,
            "research_expense": research * research_mood * left,
        }
        spent = _cents(spent)
    return {
        "revenue": s.revenue,
        **spent,
        **({"interest_expense": interest} if business else {}),
        "admin_expense": round(s.revenue, 2) - operating - sum(spent.values()),
        "operating_profit": operating,
        "profit_before_tax": before_tax,
        "income_tax": before_tax - profit,
        "net_profit": profit,
        "net_profit_parent": profit,
    }


def _plant(firm: Firm, s: books.Statement, lines: Lines, last: Lines) -> dict[str, float]:
    """What is bought is added and worn off; what the assets have no room for is written off with it."""
    business = firm.industry.working_capital
    capex = round((business.capex if business else BANK["capex"]) * s.revenue, 2)
    owned = last["fixed_assets"] + capex - last["capex"]
    worn = round(max(WEAR / 4 * last["fixed_assets"], owned - lines["plant_room"]), 2)
    return {"capex": capex, "fixed_assets": owned - worn, "depreciation": last["depreciation"] + worn}


def _cash_flow(s: books.Statement, lines: Lines, eve: Lines) -> dict[str, float]:
    """Dividends and interest are paid out of financing."""
    paid = s.opening_equity + s.net_profit - s.equity
    financing = round(_debt(lines) - _debt(eve) - paid - lines.get("interest_expense", 0.0), 2)
    operating, change = round(s.operating_cash, 2), lines["cash"] - eve["cash"]
    return {
        "operating_cash": operating,
        "investing_cash": change - operating - financing,
        "financing_cash": financing,
        "cash_change": change,
    }


def _debt(lines: Lines) -> float:
    return sum(lines.get(name, 0.0) for name in ("short_debt", "long_debt", "bonds"))

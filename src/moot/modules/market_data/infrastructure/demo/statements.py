"""The books in full: income, balance sheet and cash flow, from which the published ratios could have been worked out;
and what a company says of its profit before the report: it must where the change is large or there is a loss.

What the ratios leave open is filled so that all of it adds up: administration takes what is left of the gross profit,
long-term assets nobody asks about what is left of the assets, investing what is left of the change in cash. Where a
quarter's liabilities are too few for its liquidity ratios, goods and cash beyond that room count as long-term assets.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from math import ceil, floor
from typing import Any

import numpy as np

from moot.modules.market_data.infrastructure.demo import accounts as books
from moot.modules.market_data.infrastructure.demo import market, noise
from moot.modules.market_data.infrastructure.demo.market import Firm, WorkingCapital
from moot.modules.market_data.infrastructure.demo.news import phrases, tell_outcome
from moot.modules.market_data.infrastructure.demo.prices import Share
from moot.shared.domain.facts import EarningsNotice, FinancialReport, Statement

DAYS_A_YEAR = 360
SHORT_AT_MOST, CURRENT_AT_MOST = 0.98, 0.92  # of the liabilities, of the assets
LONG_SHARE, BOND_SHARE = 0.45, 0.3  # of the debt, and of the long one
PAYABLE_SHARE = 0.6  # of what is due soon and bears no interest
DEPOSIT_RATE = 0.012
PAID_IN = 0.6  # of the first equity: what the shareholders once brought
WEAR = 0.09  # of plant and machines, a year
PLANT_AT_MOST, INTANGIBLE, GOODWILL = 0.8, 0.08, 0.1  # of the long-term assets
PLANT_AT_FIRST = 0.6  # of the most
BANK = {"cash": 0.07, "plant": 0.016, "bonds": 0.06, "capex": 0.02}
"""Of assets, assets, liabilities and revenue."""
SILENT_WITH_REVENUE = ("revenue", "cost_of_sales", "selling_expense", "admin_expense", "research_expense")

LARGE = 50  # per cent of last year's profit: a change that must be told
FORECAST_DAYS = {3: (1, 15), 6: (1, 15), 9: (8, 15), 12: (5, 31)}
"""After the end of a period: when its forecast is due, by the period's last month."""
EXPRESS_DAYS, EXPRESS_CHANCE = (40, 59), 0.4
WIDTH = (0.05, 0.25)  # of the profit: how far apart the ends of a forecast are
TEN_THOUSAND = 10_000

Lines = Mapping[str, float]


def publish_statements(share: Share) -> list[Statement]:
    """One for each report, known with it. What is no line of a statement stays here."""
    firm, books_ = share.firm, share.accounts.statements
    drawn = noise.normals(2 * (books_[-1].quarter + 1) if books_ else 0, share.seed, firm.symbol, "expenses")
    moods, told = np.exp(0.06 * drawn).reshape(-1, 2).tolist(), []
    last: Lines = {}
    for s, report in zip(books_, share.reports, strict=True):
        if s.period_end.month == 3:
            eve = last = {**(last or _open(firm, s, report)), "capex": 0.0, "depreciation": 0.0}
        lines = _cents(_balance(firm, s, report))
        lines |= _cents(_income(firm.industry.working_capital, s, lines, moods[s.quarter]))
        lines |= _cents(_plant(firm.industry.working_capital, s, lines, last))
        last = lines = lines | _cents(_cash_flow(s, lines, eve))
        unsaid = {"plant_room", *(() if s.revenue_published else SILENT_WITH_REVENUE)}
        said = {name: value for name, value in lines.items() if name not in unsaid}
        told.append(Statement(**market.filed(firm.symbol, s.period_end, s.announced_on), **said))
    return told


def _cents(lines: Lines) -> dict[str, float]:
    return {name: round(value, 2) for name, value in lines.items()}


def _open(firm: Firm, first: books.Statement, report: FinancialReport) -> dict[str, float]:
    """The balance that the first quarter began with, had it been much like the quarter's own."""
    eve = replace(first, assets=first.opening_assets, equity=first.opening_equity)
    lines = _balance(firm, eve, report)
    return {**lines, "fixed_assets": PLANT_AT_FIRST * lines["plant_room"]}


def _balance(firm: Firm, s: books.Statement, report: FinancialReport) -> dict[str, float]:
    owed, business = round(s.assets, 2) - round(s.equity, 2), firm.industry.working_capital
    paid_in = PAID_IN * firm.equity * books.HUNDRED_MILLION
    whole = {
        "total_assets": s.assets,
        "total_liabilities": owed,
        "equity": s.equity,
        "minority_interest": 0.0,
    }
    whole |= {"retained_earnings": s.equity - paid_in, "shares": s.shares}
    if business:
        return whole | _tie_up(business, s, {name: value or 0.0 for name, value in report if name in RATIOS})
    cash, plant = BANK["cash"] * s.assets, BANK["plant"] * s.assets
    return whole | {"cash": cash, "bonds": BANK["bonds"] * owed, "plant_room": plant}


RATIOS = ("invturn_days", "arturn_days", "interestdebt", "netdebt", "current_ratio", "gross_margin")


def _tie_up(business: WorkingCapital, s: books.Statement, ratios: Lines) -> dict[str, float]:
    """Current assets have room for the goods and for what is liquid, and are no more than the ratios allow."""
    year, owed, quick = s.period_end.month / 12, s.assets - s.equity, business.quick_share
    cost, debt = s.revenue * (1 - ratios["gross_margin"] / 100), ratios["interestdebt"]
    goods = ratios["invturn_days"] * cost / (DAYS_A_YEAR * year)
    bills = ratios["arturn_days"] * s.revenue / (DAYS_A_YEAR * year)
    room = min(ratios["current_ratio"] * SHORT_AT_MOST * owed, CURRENT_AT_MOST * s.assets)
    current = min(max(goods / (1 - quick), (debt - ratios["netdebt"] + bills) / quick), room)
    cash, rest = min(debt - ratios["netdebt"], quick * current - bills), s.assets - current
    due, interest = current / ratios["current_ratio"], debt * books.INTEREST * year
    long = min(LONG_SHARE * debt, owed - due)
    return {
        "cost_of_sales": cost,
        "interest_expense": interest,
        "finance_expense": interest - DEPOSIT_RATE * cash * year,
        "cash": cash,
        "receivables": bills,
        "inventory": min(goods, (1 - quick) * current),
        "current_assets": current,
        "intangibles": INTANGIBLE * rest,
        "goodwill": min(GOODWILL * rest, INTANGIBLE * s.opening_assets),
        "plant_room": PLANT_AT_MOST * rest,
        "short_debt": debt - long,
        "payables": PAYABLE_SHARE * (due - debt + long),
        "current_liabilities": due,
        "long_debt": (1 - BOND_SHARE) * long,
        "bonds": BOND_SHARE * long,
    }


def _income(
    business: WorkingCapital | None, s: books.Statement, lines: Lines, moods: list[float]
) -> dict[str, float]:
    """A loss is not taxed. What does not recur lies between operating profit and profit before tax."""
    kept = books.AFTER_TAX if s.net_profit > 0 else 1.0
    revenue, profit, before_tax = (round(sum_, 2) for sum_ in (s.revenue, s.net_profit, s.net_profit / kept))
    operating = round(before_tax - s.one_off / kept, 2)
    left = revenue - operating - lines.get("cost_of_sales", 0.0) - lines.get("finance_expense", 0.0)
    spent = {}
    if business:
        selling, research = (part * mood * left for part, mood in zip(business.spent_on, moods, strict=True))
        spent = _cents({"selling_expense": selling, "research_expense": research})
    told = {"revenue": revenue, "operating_profit": operating, "profit_before_tax": before_tax, **spent}
    told |= {"admin_expense": left - sum(spent.values()), "income_tax": before_tax - profit}
    return told | {"net_profit": profit, "net_profit_parent": profit}


def _plant(
    business: WorkingCapital | None, s: books.Statement, lines: Lines, last: Lines
) -> dict[str, float]:
    """What is bought is added and worn off; what the assets have no room for is written off with it."""
    capex = round((business.capex if business else BANK["capex"]) * s.revenue, 2)
    owned = last["fixed_assets"] + capex - last["capex"]
    worn = round(max(WEAR / 4 * last["fixed_assets"], owned - lines["plant_room"]), 2)
    return {"capex": capex, "fixed_assets": owned - worn, "depreciation": last["depreciation"] + worn}


def _cash_flow(s: books.Statement, lines: Lines, eve: Lines) -> dict[str, float]:
    """Dividends and interest are paid out of financing."""
    borrowed = sum(lines.get(n, 0.0) - eve.get(n, 0.0) for n in ("short_debt", "long_debt", "bonds"))
    dividends = s.opening_equity + s.net_profit - s.equity
    financing = round(borrowed - dividends - lines.get("interest_expense", 0.0), 2)
    operating, change = round(s.operating_cash, 2), lines["cash"] - eve["cash"]
    told = {"operating_cash": operating, "financing_cash": financing, "cash_change": change}
    return told | {"investing_cash": change - operating - financing}


def list_notices(share: Share) -> list[EarningsNotice]:
    """Each on a day that is due and before the report; nobody tells before the share is listed, or after."""
    statements, found = share.accounts.statements, []
    for now, before in zip(statements[4:], statements, strict=False):
        for said, (first, last), pick in _say(share, now, before):
            due = now.period_end + timedelta(days=first + int(pick * (last - first + 1)))
            day = min(due, now.announced_on - timedelta(days=1))
            if share.firm.listed_on(day) and day > now.period_end:
                found.append(EarningsNotice(**said, **market.filed(share.firm.symbol, now.period_end, day)))
    return found


def _say(
    share: Share, now: books.Statement, before: books.Statement
) -> Iterator[tuple[dict[str, Any], tuple[int, int], float]]:
    """What is said, between which days after the period's end, and which of them is picked."""
    profit, key = now.net_profit, (share.seed, share.firm.symbol, "notice", now.period_end)
    day, express_day, chance, width, place = noise.uniforms(5, *key).tolist()
    if profit < 0 or abs(_change(profit, before)) >= LARGE:
        whole = (WIDTH[0] + width * (WIDTH[1] - WIDTH[0])) * abs(profit)
        low = floor((profit - place * whole) / TEN_THOUSAND) * TEN_THOUSAND
        high = ceil((profit + (1 - place) * whole) / TEN_THOUSAND) * TEN_THOUSAND
        says = phrases().forecast[tell_outcome(profit, before.net_profit)]
        told = {"kind": "forecast", "says": says, **_range(low, high, before)}
        yield told, FORECAST_DAYS[now.period_end.month], day
    if now.period_end.month == 12 and chance < EXPRESS_CHANCE:
        figures = {"revenue": round(now.revenue, 2), "eps": round(profit / now.shares, 4)}
        told = {"kind": "express", **figures, **_range(profit, profit, before)}
        yield told, EXPRESS_DAYS, express_day


def _range(low: float, high: float, before: books.Statement) -> dict[str, float]:
    changes = {"change_low": _change(low, before), "change_high": _change(high, before)}
    figures = {"net_profit_low": low, "net_profit_high": high, **changes}
    return {name: round(value, 2) for name, value in figures.items()}


def _change(profit: float, before: books.Statement) -> float:
    return 100 * (profit - before.net_profit) / abs(before.net_profit)

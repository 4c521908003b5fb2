"""The demo market's statements add up, tie to one another and to the ratios, the notices and the prices."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from itertools import pairwise

import pytest

from moot.modules.market_data.domain.facts import (
    COMPANIES,
    DIVIDENDS,
    NOTICES,
    REPORTS,
    STATEMENTS,
    VALUATIONS,
)
from moot.shared.domain.facts import EarningsNotice, FinancialReport, Statement
from tests.market_data.demo import demo_market

Told = dict[str, list[tuple[Statement, FinancialReport]]]
CENT = 0.011
BANKS = {"900002.DEMO", "920104.DEMO", "920105.DEMO", "920106.DEMO"}
NEVER_OF_BANKS = (
    "cost_of_sales",
    "receivables",
    "inventory",
    "current_assets",
    "current_liabilities",
    "payables",
)


@pytest.fixture(scope="module", params=[1, 7])
def seed(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture(scope="module")
def told(seed: int) -> Told:
    return asyncio.run(read_all(seed))


async def read_all(seed: int) -> Told:
    market = demo_market(seed)
    return {
        c.symbol: list(
            zip(await market.read(STATEMENTS, c.symbol), await market.read(REPORTS, c.symbol), strict=True)
        )
        for c in await market.read(COMPANIES, "DEMO")
    }


def each(told: Told, *, banks: bool = True) -> Iterator[tuple[Statement, FinancialReport]]:
    for symbol, pairs in told.items():
        if banks or symbol not in BANKS:
            yield from pairs


def test_there_is_one_for_every_report_known_with_it(told: Told) -> None:
    for s, r in each(told):
        assert (s.period_end, s.announced_on, s.available_at) == (
            r.period_end,
            r.announced_on,
            r.available_at,
        )


def test_income_adds_up_from_revenue_to_profit(told: Told) -> None:
    for s, _ in each(told):
        costs = (s.cost_of_sales, s.selling_expense, s.admin_expense, s.research_expense, s.finance_expense)
        if s.revenue is not None:
            assert s.revenue - sum(cost or 0.0 for cost in costs) == pytest.approx(
                s.operating_profit, abs=CENT
            )
            assert min(cost or 0.0 for cost in costs[:4]) >= 0
        assert s.profit_before_tax - s.income_tax == pytest.approx(s.net_profit, abs=CENT)
        assert (s.income_tax > 0) == (s.net_profit > 0)
        assert s.net_profit == s.net_profit_parent


def test_the_balance_sheet_balances_and_its_parts_fit_in(told: Told) -> None:
    for s, _ in each(told):
        assert s.total_assets == pytest.approx(s.total_liabilities + s.minority_interest + s.equity, abs=CENT)
    for s, _ in each(told, banks=False):
        assert s.cash + s.receivables + s.inventory <= s.current_assets + 1
        assert s.current_assets + s.fixed_assets + s.intangibles + s.goodwill <= s.total_assets + 1
        assert s.short_debt + s.payables <= s.current_liabilities + 1
        assert s.current_liabilities + s.long_debt + s.bonds <= s.total_liabilities + 1
        parts = (s.cash, s.receivables, s.inventory, s.fixed_assets, s.short_debt, s.payables, s.long_debt)
        assert min(parts) > 0


def test_cash_flows_make_the_change_in_cash_since_the_new_year(told: Told) -> None:
    for pairs in told.values():
        eve = None
        for s, _ in pairs:
            flows = s.operating_cash + s.investing_cash + s.financing_cash
            assert flows == pytest.approx(s.cash_change, abs=CENT)
            assert eve is None or s.cash_change == pytest.approx(s.cash - eve.cash, abs=CENT)
            if eve is not None:
                retained = s.retained_earnings - eve.retained_earnings
                dividends, interest = s.net_profit - retained, s.interest_expense or 0.0
                assert s.financing_cash == pytest.approx(debt(s) - debt(eve) - dividends - interest, abs=0.05)
            eve = s if s.period_end.month == 12 else eve


def debt(s: Statement) -> float:
    return sum(part or 0.0 for part in (s.short_debt, s.long_debt, s.bonds))


async def test_what_is_earned_and_not_paid_out_is_retained(told: Told, seed: int) -> None:
    for symbol, pairs in told.items():
        last = pairs[-1][0].period_end
        paid: dict[date, float] = defaultdict(float)
        shares = {s.period_end: s.shares for s, _ in pairs}
        for d in await demo_market(seed).read(DIVIDENDS, symbol):
            if d.period_end in shares:
                quarter = next((end for end in shares if end >= d.ex_date), last)
                paid[quarter] += d.cash_per_share * shares[d.period_end]
        for (before, _), (s, _) in pairwise(pairs):
            earned = s.net_profit - (0 if s.period_end.month == 3 else before.net_profit)
            kept = s.retained_earnings - before.retained_earnings
            assert kept == pytest.approx(s.equity - before.equity, abs=CENT)
            assert kept == pytest.approx(earned - paid[s.period_end], rel=1e-6, abs=1e4)


def test_plant_grows_by_what_is_bought_and_shrinks_by_wear(told: Told) -> None:
    for pairs in told.values():
        for (before, _), (s, _) in pairwise(pairs):
            opening = 0 if s.period_end.month == 3 else 1
            bought, worn = s.capex - opening * before.capex, s.depreciation - opening * before.depreciation
            assert s.fixed_assets - before.fixed_assets == pytest.approx(bought - worn, abs=2 * CENT)
            assert worn >= 0


def test_the_published_ratios_follow_from_the_statements(told: Told) -> None:
    for s, r in each(told):
        assert r.debt_to_assets == pytest.approx(100 * s.total_liabilities / s.total_assets, abs=1e-4)
        assert (r.eps, r.bps) == pytest.approx((s.net_profit / s.shares, s.equity / s.shares), abs=1e-4)
        assert r.ocfps == pytest.approx(s.operating_cash / s.shares, abs=1e-4)
    for s, r in each(told, banks=False):
        interest = 0.75 * s.interest_expense
        assert r.current_ratio == pytest.approx(s.current_assets / s.current_liabilities, abs=1e-4)
        assert r.interestdebt == pytest.approx(s.short_debt + s.long_debt + s.bonds, abs=3 * CENT)
        assert r.fcff == pytest.approx(s.operating_cash - s.capex + interest, abs=3 * CENT)
        if s.revenue is not None:
            days = 360 * s.period_end.month / 12
            assert r.gross_margin == pytest.approx(100 * (1 - s.cost_of_sales / s.revenue), abs=1e-4)
            assert r.arturn_days == pytest.approx(s.receivables * days / s.revenue, abs=1e-3)


def test_goods_and_cash_are_what_the_ratios_say_wherever_there_is_room_for_them(told: Told) -> None:
    """Liquidity ratios of a few quarters leave too little room: the rest stands among long-term assets."""
    exact = defaultdict(list)
    for s, r in each(told, banks=False):
        quick = r.quick_ratio * s.current_liabilities
        assert s.cash + s.receivables <= quick * 1.001
        assert s.inventory <= (s.current_assets - quick) * 1.001
        assert s.cash <= r.interestdebt - r.netdebt + CENT
        exact["cash"].append(s.cash == pytest.approx(r.interestdebt - r.netdebt, abs=CENT))
        if s.cost_of_sales is not None:
            lain = s.inventory * 360 * s.period_end.month / 12 / s.cost_of_sales
            assert lain <= r.invturn_days + 1e-3
            exact["goods"].append(lain == pytest.approx(r.invturn_days, abs=1e-3))
    assert all(sum(found) / len(found) > 0.97 for found in exact.values())


def test_a_bank_reports_what_banks_report(told: Told) -> None:
    for symbol in BANKS:
        for s, _ in told[symbol]:
            assert {getattr(s, name) for name in NEVER_OF_BANKS} == {None}
            assert s.cash > 0 < s.bonds


async def test_shares_are_those_of_the_market_value(told: Told, seed: int) -> None:
    for symbol in ("900001.DEMO", "900006.DEMO"):
        worth = {v.trade_date: v.total_mv / v.close for v in await demo_market(seed).read(VALUATIONS, symbol)}
        known = [(s.shares, worth[s.period_end]) for s, _ in told[symbol] if s.period_end in worth]
        assert len(known) > 5
        assert all(shares == pytest.approx(valued, rel=1e-6) for shares, valued in known)


async def notices_with_reports(told: Told, seed: int) -> list[tuple[EarningsNotice, Statement, Statement]]:
    found = []
    for symbol, pairs in told.items():
        by_end = {s.period_end: s for s, _ in pairs}
        for notice in await demo_market(seed).read(NOTICES, symbol):
            year_ago = notice.period_end.replace(year=notice.period_end.year - 1)
            if notice.period_end in by_end:  # otherwise its report is not out yet
                found.append((notice, by_end[notice.period_end], by_end[year_ago]))
    return found


async def test_notices_come_before_the_report_and_it_bears_them_out(told: Told, seed: int) -> None:
    found = await notices_with_reports(told, seed)
    assert {notice.kind for notice, _, _ in found} == {"forecast", "express"}
    for notice, s, before in found:
        assert s.period_end < notice.announced_on < s.announced_on
        assert notice.available_at < s.available_at
        assert notice.net_profit_low - CENT <= s.net_profit <= notice.net_profit_high + CENT
        change = 100 * (s.net_profit - before.net_profit) / abs(before.net_profit)
        assert notice.change_low - 0.01 <= change <= notice.change_high + 0.01
        if notice.kind == "express":
            assert s.period_end.month == 12
            assert notice.eps == pytest.approx(s.net_profit / s.shares, abs=1e-4)
            assert notice.revenue in (s.revenue, None)


async def test_a_loss_or_a_large_change_is_always_told_before(told: Told, seed: int) -> None:
    found = await notices_with_reports(told, seed)
    forecasts = {(n.symbol, n.period_end) for n, _, _ in found if n.kind == "forecast"}
    for symbol, pairs in told.items():
        for (before, _), (s, _) in zip(pairs, pairs[4:], strict=False):
            large = s.net_profit < 0 or abs(s.net_profit / before.net_profit - 1) >= 0.5
            listed = s.announced_on.year >= 2018 and symbol in ("900003.DEMO", "900005.DEMO")
            assert not large or not listed or (symbol, s.period_end) in forecasts
            assert large or (symbol, s.period_end) not in forecasts

"""The scores of Altman, Beneish and Piotroski on the demo market, as financetoolkit works them out."""

from collections.abc import Mapping
from itertools import pairwise

import pandas as pd
import pytest
from financetoolkit.models import altman_model, beneish_model, piotroski_model
from financetoolkit.ratios import liquidity_model, profitability_model, solvency_model

from moot.modules.market_data.domain.facts import COMPANIES, DIVIDENDS, STATEMENTS, VALUATIONS
from moot.shared.domain.facts import Company, Statement
from moot.shared.domain.scores import (
    ALTMAN,
    ALTMAN_OTHERS,
    BENEISH,
    BENEISH_BASE,
    Ratios,
    list_altman_ratios,
    list_beneish_ratios,
    list_piotroski_ratios,
    list_piotroski_signals,
    score,
)
from tests.market_data.demo import demo_market

SYMBOLS = ("900001.DEMO", "900003.DEMO", "900004.DEMO", "900005.DEMO", "900012.DEMO", "920110.DEMO")
BANK = "900002.DEMO"


async def years_of(symbol: str) -> list[Statement]:
    told = await demo_market().read(STATEMENTS, symbol)
    return [statement for statement in told if statement.period_end.month == 12]


class Table:
    """The lines of a company's years as financetoolkit wants them: a row, and a column a year."""

    def __init__(self, years: list[Statement]) -> None:
        self._years = years

    def __getitem__(self, name: str) -> pd.DataFrame:
        values = [getattr(year, name) for year in self._years]
        return pd.DataFrame([values], columns=[year.period_end.year for year in self._years])


def agree(ours: list[Ratios], theirs: Mapping[str, pd.DataFrame]) -> int:
    """How many figures did, within a millionth; where they have none, we have none."""
    compared = 0
    for name, table in theirs.items():
        for mine, reference in zip([ratios[name] for ratios in ours], table.iloc[0].tolist(), strict=True):
            if pd.isna(reference):
                continue
            assert mine == pytest.approx(reference, rel=1e-6, abs=1e-6), name
            compared += 1
    return compared


@pytest.mark.parametrize("symbol", SYMBOLS)
async def test_altman(symbol: str) -> None:
    years = await years_of(symbol)
    valued = {v.trade_date: v.total_mv for v in await demo_market().read(VALUATIONS, symbol)}
    worth = [
        next((valued[day] for day in sorted(valued, reverse=True) if day <= year.period_end), None)
        for year in years
    ]
    ours = [list_altman_ratios(year, value) for year, value in zip(years, worth, strict=True)]
    table, market = (
        Table(years),
        pd.DataFrame([worth], columns=[y.period_end.year for y in years], dtype=float),
    )
    ebit = table["net_profit"] + table["income_tax"] + table["interest_expense"]
    theirs = {
        "working_capital": altman_model.get_working_capital_to_total_assets_ratio(
            table["current_assets"] - table["current_liabilities"], table["total_assets"]
        ),
        "retained": altman_model.get_retained_earnings_to_total_assets_ratio(
            table["retained_earnings"], table["total_assets"]
        ),
        "ebit": altman_model.get_earnings_before_interest_and_taxes_to_total_assets_ratio(
            ebit, table["total_assets"]
        ),
        "market_to_liabilities": altman_model.get_market_value_of_equity_to_book_value_of_total_liabilities_ratio(
            market, table["total_liabilities"]
        ),
        "sales": altman_model.get_sales_to_total_assets_ratio(table["revenue"], table["total_assets"]),
    }
    assert agree(ours, theirs) > 50
    scored = [{"z": score(ALTMAN, ratios)} for ratios in ours]
    assert agree(scored, {"z": altman_model.get_altman_z_score(*theirs.values())}) >= 8
    first = ours[-1]
    by_hand = 6.56 * first["working_capital"] + 3.26 * first["retained"] + 6.72 * first["ebit"]
    by_hand += 1.05 * years[-1].equity / years[-1].total_liabilities
    assert score(ALTMAN_OTHERS, first) == pytest.approx(by_hand, rel=1e-9)


@pytest.mark.parametrize("symbol", SYMBOLS)
async def test_beneish(symbol: str) -> None:
    years = await years_of(symbol)
    ours = [list_beneish_ratios(now, before) for before, now in pairwise(years)]
    table = Table(years)
    long_debt, spent = table["long_debt"] + table["bonds"], table["selling_expense"] + table["admin_expense"]
    sold, assets, plant = table["revenue"], table["total_assets"], table["fixed_assets"]
    theirs = {
        "receivables": beneish_model.get_days_sales_in_receivables_index(table["receivables"], sold),
        "gross_margin": beneish_model.get_gross_margin_index(sold, table["cost_of_sales"]),
        "asset_quality": beneish_model.get_asset_quality_index(table["current_assets"], plant, assets),
        "sales": beneish_model.get_sales_growth_index(sold),
        "depreciation": beneish_model.get_depreciation_index(table["depreciation"], plant),
        "expenses": beneish_model.get_selling_general_and_administrative_expenses_index(spent, sold),
        "leverage": beneish_model.get_leverage_index(table["current_liabilities"], long_debt, assets),
        "accruals": beneish_model.get_total_accruals_to_total_assets(
            table["net_profit"], table["operating_cash"], assets
        ),
    }
    assert agree(ours, {name: figures.iloc[:, 1:] for name, figures in theirs.items()}) == 8 * len(ours) > 60
    scored = [{"m": score(BENEISH, ratios, BENEISH_BASE)} for ratios in ours]
    assert agree(scored, {"m": beneish_model.get_beneish_m_score(*theirs.values()).iloc[:, 1:]}) == len(ours)


@pytest.mark.parametrize("symbol", SYMBOLS)
async def test_piotroski(symbol: str) -> None:
    years = await years_of(symbol)
    ours = [list_piotroski_ratios(now, before) for before, now in pairwise(years)]
    bonus = {d.ex_date.year: d.bonus_per_share for d in await demo_market().read(DIVIDENDS, symbol)}
    table = Table(years)
    sold, profit, cash = table["revenue"], table["net_profit"], table["operating_cash"]
    opening = table["total_assets"].shift(axis=1)
    mean, long_debt = (opening + table["total_assets"]) / 2, table["long_debt"] + table["bonds"]
    due, current = table["current_liabilities"], table["current_assets"]
    ratios = {
        "return": profitability_model.get_return_on_assets(profit, opening),
        "cash_return": cash / opening,
        "leverage": solvency_model.get_debt_to_assets_ratio(long_debt, mean),
        "current_ratio": liquidity_model.get_current_ratio(current, due),
        "gross_margin": profitability_model.get_gross_margin(sold, table["cost_of_sales"]),
        "turnover": sold / opening,
    }
    assert agree(ours, {name: figures.iloc[:, 1:] for name, figures in ratios.items()}) == 6 * len(ours) > 50
    signals = [
        list_piotroski_signals(now, before, bonus.get(year.period_end.year, 0.0))
        for (before, now), year in zip(pairwise(ours), years[2:], strict=True)
    ]
    theirs = {
        "profit": piotroski_model.get_return_on_assets_criteria(profit, opening),
        "cash": piotroski_model.get_operating_cashflow_criteria(cash),
        "better_return": piotroski_model.get_change_in_return_on_asset_criteria(profit, opening),
        "cash_backs_profit": piotroski_model.get_accruals_criteria(profit, cash, opening),
        "less_debt": piotroski_model.get_change_in_leverage_criteria(long_debt, mean),
        "more_liquid": piotroski_model.get_change_in_current_ratio_criteria(current, due),
        "no_new_shares": piotroski_model.get_number_of_shares_criteria(0 * sold),  # nobody ever sold new ones
        "better_margin": piotroski_model.get_gross_margin_criteria(sold, table["cost_of_sales"]),
        "better_turnover": piotroski_model.get_asset_turnover_ratio_criteria(sold, opening),
    }
    expected = pd.concat(theirs.values(), keys=theirs).droplevel(1).iloc[:, 2:]
    assert signals == [expected[year].to_dict() for year in expected.columns]
    total = piotroski_model.get_piotroski_score(*theirs.values()).iloc[0, 2:]
    assert [sum(found.values()) for found in signals] == total.tolist()
    assert len(set(total)) > 1


async def test_a_bank_has_no_scores() -> None:
    before, now = (await years_of(BANK))[-2:]
    assert score(ALTMAN, list_altman_ratios(now, 1e9)) is None
    assert score(BENEISH, list_beneish_ratios(now, before), BENEISH_BASE) is None
    ratios = list_piotroski_ratios(now, before)
    assert ratios["return"] is not None
    assert list_piotroski_signals(ratios, ratios) is None


async def test_new_shares_are_a_bad_sign_and_given_ones_are_none() -> None:
    before, now = (await years_of("900001.DEMO"))[-2:]
    ratios = list_piotroski_ratios(now, before)
    more = ratios | {"shares": 1.3 * ratios["shares"]}
    assert list_piotroski_signals(more, ratios)["no_new_shares"] is False
    assert list_piotroski_signals(more, ratios, bonus_per_share=0.3)["no_new_shares"] is True


async def test_every_company_but_a_bank_has_all_three() -> None:
    companies: list[Company] = list(await demo_market().read(COMPANIES, "DEMO"))
    for company in companies:
        earlier, before, now = (await years_of(company.symbol))[-3:]
        ratios = [list_piotroski_ratios(now, before), list_piotroski_ratios(before, earlier)]
        found = (
            score(ALTMAN, list_altman_ratios(now, 1e9)),
            score(BENEISH, list_beneish_ratios(now, before), BENEISH_BASE),
            list_piotroski_signals(*ratios),
        )
        assert all((value is None) == (company.industry_en == "Banking") for value in found)

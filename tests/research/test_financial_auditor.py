"""The financial auditor: five dimensions, the score decides the signal, growth is never invented."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from pydantic import ValidationError

from moot.modules.research.application.financial_auditor import FinancialResult, signal_for
from moot.modules.research.domain.books import name_quarter, quarter_number
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.facts import EarningsNotice
from tests.fakes.research import COMPANY, SYMBOL, FakeMarketFacts, a_report, told
from tests.research.cases import financial, healthy_reports
from tests.research.test_books import a_statement


def market(growth: float = 1.2, **changes: Any) -> FakeMarketFacts:
    return FakeMarketFacts(filed=healthy_reports(growth, **changes))


DIMENSIONS = ["盈利含金量", "运营效率与造假侦测", "资本回报与护城河", "偿债与生存能力", "成长加速度"]


@pytest.mark.parametrize(
    ("score", "signal"),
    [
        (100, "STRONG_BULLISH"),
        (90, "STRONG_BULLISH"),
        (89, "BULLISH"),
        (75, "BULLISH"),
        (74, "NEUTRAL"),
        (50, "NEUTRAL"),
        (49, "BEARISH"),
        (30, "BEARISH"),
        (29, "STRONG_BEARISH"),
        (0, "STRONG_BEARISH"),
    ],
)
def test_the_score_decides_the_signal(score: int, signal: str) -> None:
    assert signal_for(score) == signal


async def test_good_books_are_bullish_with_all_five_dimensions_in_order() -> None:
    report = await financial(market())
    assert report["signal"] in ("BULLISH", "STRONG_BULLISH")
    assert report["signal"] == signal_for(report["financial_score"])
    assert [d["dimension"] for d in report["dimension_analyses"]] == DIMENSIONS


async def test_bad_books_are_bearish_and_say_why() -> None:
    trouble = {
        "eps": -0.4,
        "profit_dedt": -4e7,
        "ocfps": -0.2,
        "fcff": -5e7,
        "fcff_ps": -0.5,
        "roic": -2.0,
        "roe_waa": -5.0,
        "gross_margin": 9.0,
        "current_ratio": 0.7,
        "debt_to_assets": 82.0,
        "netdebt": 3e8,
    }
    report = await financial(market(growth=0.7, **trouble))
    assert report["signal"] in ("BEARISH", "STRONG_BEARISH")
    assert "资产负债率（82.0%）" in report["key_risks"]
    assert "毛利率水平（9.0%）" in report["key_risks"]


async def test_derived_figures_of_the_latest_report() -> None:
    seen = (await financial(market()))["financial_indicators"]
    assert seen["report_period"] == "2026Q1"
    assert seen["quality_ratio"] == 1.2
    assert seen["eps_ttm"] == round(0.36 + 1.2 - 0.3, 4)
    assert seen["profit_dedt_ps"] == 0.34
    assert seen["deducted_share"] == 0.94
    assert seen["profit_growth"] == 20.0
    assert seen["gross_margin_change"] == 1.0
    assert seen["invturn_days_growth"] == round(100 * (74 / 82 - 1), 1)
    assert seen["roic_annualised"] == 14.0


async def test_only_the_asked_periods_are_shown_and_the_oldest_has_its_growth() -> None:
    seen = (await financial(market(), limit=5))["financial_indicators"]
    assert seen["quarter_list"] == ["2026Q1", "2025Q4", "2025Q3", "2025Q2", "2025Q1"]
    assert seen["profit_growth_series"] == [20.0] * 5
    assert seen["revenue_growth_series"] == [20.0] * 5
    assert len(seen["gross_margin_series"]) == 5


async def test_series_are_evidence_by_quarter() -> None:
    known = {item["id"]: item["value"] for item in (await financial(market(), limit=2))["evidence"]}
    assert known["financial.profit_growth_series.2026Q1"] == 20.0
    assert known["financial.gross_margin_series.2025Q4"] == 46.0
    assert not any(name.endswith("_series.2025Q3") for name in known)


async def test_growth_from_a_loss_is_missing_and_said_to_be() -> None:
    reports = [
        r.model_copy(update={"profit_dedt": -1e6}) if r.period_end.year == 2025 else r
        for r in healthy_reports()
    ]
    report = await financial(FakeMarketFacts(filed=reports))
    assert report["financial_indicators"]["profit_growth"] is None
    assert "扣非净利润增长" in report["narrative_report"].split("数据缺口：")[1]


def of(industry: str, **changes: Any) -> FakeMarketFacts:
    return replace(market(**changes), listed=COMPANY.model_copy(update={"industry": industry}))


@pytest.mark.parametrize(
    ("industry", "cushion", "missing"),
    [
        ("银行", "bank_equity", "拨备覆盖率、资本充足率"),
        ("保险", "insurer_equity", "偿付能力充足率"),
        ("证券", "broker_equity", "净资本"),
    ],
)
async def test_a_financial_house_is_judged_by_its_own_rules(
    industry: str, cushion: str, missing: str
) -> None:
    report = await financial(of(industry, debt_to_assets=92.0))
    rules = {claim["id"].partition(".")[2] for claim in report["claims"]}
    assert cushion in rules
    assert rules.isdisjoint(
        ("leverage", "cash_backing", "turnover", "inventory", "receivables", "margin", "liquidity", "altman")
    )
    assert missing in report["narrative_report"].split("数据缺口：")[1]
    efficiency = report["dimension_analyses"][1]
    assert "不作评判" in efficiency["assessment"]
    assert (efficiency["score"], efficiency["key_findings"]) == (50, [])
    others = [d["score"] for d in report["dimension_analyses"] if d is not efficiency]
    assert min(others) <= report["financial_score"] <= max(others)


async def test_cash_flow_against_a_loss_is_no_sign_of_quality() -> None:
    seen = (await financial(market(eps=-0.5, ocfps=-0.6)))["financial_indicators"]
    assert seen["quality_ratio"] == 1.2
    assert seen["quality_ratio_ttm"] is None


async def test_a_dimension_without_data_says_so_and_is_left_out_of_the_score() -> None:
    gone = dict.fromkeys(("invturn_days", "arturn_days", "assets_turn"))
    report = await financial(market(**gone))
    efficiency = report["dimension_analyses"][1]
    others = [d["score"] for d in report["dimension_analyses"] if d is not efficiency]
    assert efficiency["score"] == 50 < min(others)
    assert "信息有限" in efficiency["assessment"]
    assert efficiency["key_findings"] == []
    assert min(others) <= report["financial_score"] <= max(others)


def claims_of(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {claim["id"].removeprefix("financial."): claim for claim in report["claims"]}


async def test_eight_single_quarters_are_held_against_the_same_a_year_before() -> None:
    earlier = [a_report(2023, q, **figures(2023, q)) for q in (4, 3, 2, 1)]
    report = await financial(FakeMarketFacts(filed=[*healthy_reports(), *earlier]))
    seen, claims = report["financial_indicators"], claims_of(report)
    assert (seen["revenue_rises"], seen["revenue_quarters"]) == (8, 8)
    assert [*seen["profit_by_quarter"]][::7] == ["2026Q1", "2024Q2"]
    assert set(seen["profit_by_quarter"].values()) == {20.0}
    assert claims["profit_trend"]["kind"] == "financial.profit_trend.rising"
    assert len([id_ for id_ in claims["profit_trend"]["evidence"] if ".profit_by_quarter." in id_]) == 8


def figures(year: int, quarter: int) -> dict[str, Any]:
    """Of a year before the healthy reports begin, a sixth smaller."""
    later = next(r for r in healthy_reports() if name_quarter(quarter_number(r)) == f"{year + 1}Q{quarter}")
    flows = {name: round(getattr(later, name) / 1.2, 4) for name in ("eps", "total_revenue_ps")}
    return flows | {"fcff": later.fcff, "fcff_ps": later.fcff_ps}


async def test_five_quarters_make_no_trend_of_eight() -> None:
    seen = (await financial(market()))["financial_indicators"]
    assert (seen["revenue_rises"], seen["profit_rises"]) == (None, None)


LAST_YEAR = 0.6e8
"""Net profit of the first half of 2025."""


def a_notice(**changes: Any) -> EarningsNotice:
    fields = {"kind": "forecast", "net_profit_low": 0.7e8, "net_profit_high": 0.8e8} | changes
    day, end = date(2026, 6, 20), date(2026, 6, 30)
    return EarningsNotice(symbol=SYMBOL, period_end=end, announced_on=day, **told(day), **fields)


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [
        (-0.9e8, -0.5e8, "loss"),
        (0.1e8, 0.2e8, "slump"),
        (0.4e8, 0.5e8, "down"),
        (0.57e8, 0.63e8, "flat"),
        (0.7e8, 0.8e8, "up"),
        (1.0e8, 1.2e8, "surge"),
    ],
)
async def test_a_forecast_of_the_next_period_is_held_against_the_year_before(
    low: float, high: float, kind: str
) -> None:
    notice = a_notice(net_profit_low=low, net_profit_high=high)
    claim = claims_of(await financial(replace(market(), others=[notice])))["forecast"]
    assert claim["kind"] == f"financial.forecast.{kind}"
    assert claim["side"] == {"flat": "neither", "up": "for", "surge": "for"}.get(kind, "against")
    assert claim["as_of"].startswith("2026-06-20")
    assert "2026-06-20" in claim["says"]["en-US"]
    assert "2026Q2" in claim["says"]["zh-CN"]


async def test_where_only_the_change_is_told_the_profit_follows_from_it() -> None:
    notice = a_notice(net_profit_low=None, net_profit_high=None, change_low=50.0, change_high=70.0)
    seen = (await financial(replace(market(), others=[notice])))["financial_indicators"]
    assert seen["notice_profit_before"] == pytest.approx(LAST_YEAR)
    assert (seen["notice_profit_low"], seen["notice_change_high"]) == (pytest.approx(0.9e8), 70.0)


async def test_a_profit_after_a_loss_is_a_turnaround_and_has_no_percentage() -> None:
    reports = [
        r.model_copy(update={"eps": -0.3}) if name_quarter(quarter_number(r)) == "2025Q2" else r
        for r in healthy_reports()
    ]
    report = await financial(FakeMarketFacts(filed=reports, others=[a_notice()]))
    assert claims_of(report)["forecast"]["kind"] == "financial.forecast.turnaround"
    assert report["financial_indicators"]["notice_change_low"] is None
    smaller = a_notice(net_profit_low=-0.2e8, net_profit_high=-0.1e8)
    report = await financial(FakeMarketFacts(filed=reports, others=[smaller]))
    assert claims_of(report)["forecast"]["kind"] == "financial.forecast.narrower"


async def test_an_express_report_supersedes_the_forecast_and_tells_revenue() -> None:
    day = date(2026, 6, 29)
    express = a_notice(kind="express", net_profit_high=0.7e8, revenue=2.7e8)
    express = express.model_copy(update={"announced_on": day, **told(day)})
    report = await financial(replace(market(), others=[a_notice(), express]))
    claims = claims_of(report)
    assert "forecast" not in claims
    assert claims["express"]["kind"] == "financial.express.up"
    assert claims["express_revenue"]["kind"] == "financial.express_revenue.down"
    assert "2026-06-29 的业绩快报" in report["risk_warning"]


async def test_what_a_report_has_overtaken_or_nobody_told_is_neither_claim_nor_gap() -> None:
    old = a_notice().model_copy(update={"period_end": date(2026, 3, 31)})
    for others in ([old], []):
        report = await financial(replace(market(), others=others))
        assert report["financial_indicators"]["notice_kind"] is None
        assert "业绩" not in report["narrative_report"]


async def test_a_score_that_lacks_a_line_names_it() -> None:
    lines = {"total_assets": 9e8, "current_assets": 5e8, "current_liabilities": 2e8, "equity": 6e8}
    lines |= {"total_liabilities": 3e8, "profit_before_tax": 1e8, "interest_expense": 1e6}
    report = await financial(replace(market(), others=[a_statement(2025, 4, **lines)]))
    assert report["financial_indicators"]["lacking"]["altman"] == ["retained_earnings"]
    assert "Altman 分（缺未分配利润）" in report["narrative_report"].split("数据缺口：")[1]


async def test_scores_are_of_the_last_full_year_where_that_allows_more_of_them() -> None:
    lines = {"total_assets": 9e8, "current_assets": 5e8, "current_liabilities": 2e8, "equity": 6e8}
    lines |= {"total_liabilities": 3e8, "profit_before_tax": 1e8, "interest_expense": 1e6}
    full = a_statement(2025, 4, retained_earnings=4e8, **lines)
    report = await financial(replace(market(), others=[full, a_statement(2026, 1, **lines)]))
    seen = report["financial_indicators"]
    assert (seen["scored_period"], seen["altman_variant"]) == ("2025Q4", "Z''")
    expected = 6.56 * 3 / 9 + 3.26 * 4 / 9 + 6.72 * 1.01 / 9 + 1.05 * 6 / 3
    assert seen["altman_score"] == round(expected, 2)
    assert claims_of(report)["altman"]["kind"] == "financial.altman.safe"


async def test_a_dimension_counts_by_how_much_of_it_could_be_looked_at() -> None:
    """Turnover fell and nothing else is known of efficiency: one finding of many does not weigh a fifth."""
    reports = [
        r.model_copy(update={"invturn_days": None, "arturn_days": None, "assets_turn": 0.8 - 0.1 * n})
        for n, r in enumerate(reversed(healthy_reports()[::4]))
    ]
    report = await financial(FakeMarketFacts(filed=reports[::-1]))
    marks = [d["score"] for d in report["dimension_analyses"]]
    assert marks[1] == 25 < min(marks[0], *marks[2:])
    assert sum(marks) / 5 + 1 < report["financial_score"] < max(marks)


async def test_no_reports_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"No financial report of 900001\.DEMO was public by 2026-06-30"):
        await financial(FakeMarketFacts())


async def test_a_report_not_yet_announced_does_not_exist() -> None:
    unannounced = a_report(2026, 2, eps=9.9)
    report = await financial(FakeMarketFacts(filed=[unannounced, *healthy_reports()]))
    assert report["financial_indicators"]["report_period"] == "2026Q1"


async def test_reports_without_any_figure_give_no_rating() -> None:
    with pytest.raises(InvalidInput, match="The data do not allow a judgement"):
        await financial(FakeMarketFacts(filed=[a_report(2026, 1)]))


async def test_a_result_needs_exactly_five_dimensions_and_a_score_up_to_100() -> None:
    report = await financial(market())
    fields = {name: report[name] for name in FinancialResult.model_fields}
    FinancialResult.model_validate(fields)
    for change in ({"dimension_analyses": fields["dimension_analyses"][:4]}, {"financial_score": 101}):
        with pytest.raises(ValidationError):
            FinancialResult.model_validate(fields | change)

"""The valuation modeler: cheap, fair or dear, and a cheap price with poor quality is a trap."""

from typing import Any

import pytest
from pydantic import ValidationError

from moot.modules.research.application.valuation_modeler import ValuationResult, case_for
from moot.shared.domain.errors import InvalidInput
from tests.fakes.research import FakeMarketFacts, valuations_of
from tests.research.cases import healthy_reports, valuation

CHEAP = [20 + n % 30 for n in range(300)] + [15.87]
MODELS = ("residual_value", "graham_intrinsic_val", "pe_implied_value", "pb_implied_value")
DEAR = [8 + n % 10 for n in range(300)] + [60.0]


def market(multiples: list[float] | None = None, growth: float = 1.2, **changes: Any) -> FakeMarketFacts:
    return FakeMarketFacts(
        history=valuations_of(multiples or CHEAP, pb=2.5), filed=healthy_reports(growth, **changes)
    )


@pytest.mark.parametrize(
    ("price", "quality", "case"),
    [
        (0.5, 0.5, "opportunity"),
        (0.25, 0.0, "opportunity"),
        (0.5, -0.3, "trap"),
        (0.0, -0.9, "fair"),
        (-0.25, 0.9, "overvalued"),
    ],
)
def test_price_decides_and_quality_tells_a_trap(price: float, quality: float, case: str) -> None:
    assert case_for(price, quality) == case


async def test_a_low_multiple_on_good_books_is_an_opportunity() -> None:
    report = await valuation(market(CHEAP))
    assert report["valuation_verdict"] == "Undervalued"
    assert "机会" in report["reasoning_summary"]


async def test_a_high_multiple_is_overvalued() -> None:
    report = await valuation(market(DEAR, growth=1.02))
    assert report["valuation_verdict"] == "Overvalued"
    assert "估值偏高" in report["reasoning_summary"]


async def test_a_low_multiple_on_shrinking_profits_is_a_trap_and_not_called_undervalued() -> None:
    report = await valuation(market(CHEAP, growth=0.7, roe_waa=1.0))
    assert report["valuation_verdict"] == "Fair"
    assert "价值陷阱" in report["reasoning_summary"]


async def test_the_models_are_computed_from_the_days_own_multiples_and_trailing_earnings() -> None:
    seen = (await valuation(market(CHEAP)))["valuation_indicators"]
    assert seen["pe_ttm"] == 15.87
    assert seen["pe_percentile"] == 0
    assert seen["total_mv"] == 50.0
    assert seen["eps_ttm"] == 1.26
    assert seen["growth_rate_avg"] == 20.0
    assert seen["peg_ratio"] == 0.79
    assert seen["graham_intrinsic_val"] == round((22.5 * 1.26 * 8.0) ** 0.5, 2)
    assert seen["graham_safety_margin"] == round(100 * (seen["graham_intrinsic_val"] / 20 - 1), 1)
    assert seen["gross_margin_trend"] == "同比上升 1.0%"
    assert seen["rebased"] is False


async def test_after_a_bonus_issue_per_share_figures_are_restated_and_it_is_said() -> None:
    before = valuations_of([*CHEAP[:-1], 25.0], pb=4.0)
    after = [day.model_copy(update={"total_mv": 8e9}) for day in before[-60:]]
    facts = FakeMarketFacts(history=[*before[:-60], *after], filed=healthy_reports())
    for locale, said in ("zh-CN", "2.50 亿股变为 4.00 亿股"), ("en-US", "to 400.00 million shares"):
        report = await valuation(facts, locale)
        seen = report["valuation_indicators"]
        assert (seen["eps_ttm"], seen["bps"], seen["rebased"]) == (0.8, 5.0, True)
        assert seen["graham_intrinsic_val"] == round((22.5 * 0.8 * 5.0) ** 0.5, 2)
        assert any(said in risk for risk in report["risk_factors"])


async def test_figures_that_do_not_fit_the_multiples_are_no_sign_that_the_share_count_changed() -> None:
    facts = FakeMarketFacts(history=valuations_of([*CHEAP[:-1], 25.0], pb=4.0), filed=healthy_reports())
    report = await valuation(facts)
    seen = report["valuation_indicators"]
    assert (seen["eps_ttm"], seen["bps"], seen["rebased"], seen["unmatched"]) == (0.8, 5.0, False, True)
    assert not any("亿股" in risk for risk in report["risk_factors"])
    assert any("与市场倍数不符" in risk for risk in report["risk_factors"])


async def test_the_range_spans_the_models_that_apply() -> None:
    report = await valuation(market([14 + n % 9 for n in range(300)] + [15.87]))
    seen, worth = report["valuation_indicators"], report["estimated_intrinsic_value_range"]
    models = [seen[name] for name in MODELS]
    assert worth == {"lower_bound": f"{min(models):.2f}", "upper_bound": f"{max(models):.2f}"}


async def test_models_that_lie_three_times_apart_are_no_range_and_leave_the_multiples_to_decide() -> None:
    report = await valuation(market(CHEAP))
    seen, worth = report["valuation_indicators"], report["estimated_intrinsic_value_range"]
    low, high = min(seen[name] for name in MODELS), max(seen[name] for name in MODELS)
    assert high > 3 * low
    assert worth == {
        "lower_bound": f"未知（最低的模型为 {low:.2f}）",
        "upper_bound": f"未知（最高的模型为 {high:.2f}）",
    }
    assert "价值未知" in report["reasoning_summary"]
    assert report["risk_factors"][0].startswith("各模型相差三倍以上")


async def test_a_loss_has_no_pe_rank_no_peg_and_no_graham_value() -> None:
    losses = market([*CHEAP[:-1], -12.0], eps=-0.5, profit_dedt=-1e7)
    report = await valuation(losses)
    seen = report["valuation_indicators"]
    assert [seen[n] for n in ("pe_percentile", "peg_ratio", "graham_intrinsic_val")] == [None, None, None]
    assert "亏损状态下市盈率失去意义" in report["narrative_report"]
    assert "PE 分位" in report["narrative_report"].split("数据缺口：")[1]


async def test_a_short_history_has_no_ranks_and_no_range_from_them() -> None:
    losses = healthy_reports(bps=None, eps=-0.5)
    facts = FakeMarketFacts(history=valuations_of([-15.87] * 59, pb=2.5), filed=losses)
    report = await valuation(facts)
    assert report["valuation_indicators"]["pb_percentile"] is None
    assert report["estimated_intrinsic_value_range"] == {"lower_bound": "N/A", "upper_bound": "N/A"}
    assert "没有可用的内在价值模型" in report["risk_factors"][0]


@pytest.mark.parametrize(
    ("field", "value", "shown_as"),
    [
        ("gross_margin", 130.0, "gros_profit_margin"),
        ("roe_waa", -501.0, "roe"),
        ("netprofit_margin", 1001.0, "net_profit_margin"),
        ("debt_to_assets", 301.0, "debt_to_assets"),
    ],
)
async def test_figures_out_of_all_bounds_are_left_out_and_named(
    field: str, value: float, shown_as: str
) -> None:
    report = await valuation(market(CHEAP, **{field: value}))
    assert report["valuation_indicators"][shown_as] is None
    assert any(f"报告中的 {field} 超出合理范围" in risk for risk in report["risk_factors"])


async def test_one_implausible_margin_spoils_the_trend() -> None:
    reports = healthy_reports()
    reports[4] = reports[4].model_copy(update={"gross_margin": 130.0})
    facts = FakeMarketFacts(history=valuations_of(CHEAP), filed=reports)
    assert (await valuation(facts))["valuation_indicators"]["gross_margin_trend"] == "N/A"


async def test_figures_carry_the_source_they_come_from() -> None:
    known = {item["id"]: item["as_of"] for item in (await valuation(market()))["evidence"]}
    assert known["valuation.pe_ttm"] == "2026-06-30T09:00:00Z"
    assert known["valuation.roe"] == "2026-04-30T09:00:00Z"


async def test_neither_valuations_nor_reports_can_be_missing() -> None:
    with pytest.raises(InvalidInput, match=r"no daily valuations of 900001\.DEMO up to 2026-06-30"):
        await valuation(FakeMarketFacts(filed=healthy_reports()))
    with pytest.raises(InvalidInput, match="No financial report"):
        await valuation(FakeMarketFacts(history=valuations_of(CHEAP)))


async def test_a_result_needs_evidence_risks_and_a_known_verdict() -> None:
    report = await valuation(market())
    fields = {name: report[name] for name in ValuationResult.model_fields}
    ValuationResult.model_validate(fields)
    for change in ({"key_evidence": []}, {"risk_factors": []}, {"valuation_verdict": "Cheap"}):
        with pytest.raises(ValidationError):
            ValuationResult.model_validate(fields | change)

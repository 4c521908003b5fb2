"""The valuation modeler: cheap, fair or dear, and a cheap price with poor quality is a trap."""

from datetime import datetime
from typing import Any

import pytest
from pydantic import ValidationError

from moot.modules.research.application.valuation_modeler import (
    ValuationModelerService,
    ValuationResult,
    against_models,
    case_for,
)
from moot.modules.research.application.valuation_modeler.appraisal import Material, valuation_snapshot
from moot.modules.research.application.valuation_modeler.models import Outlook, find_implied_roe, times_book
from moot.modules.research.domain.facts import Sector
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.messages import Locale
from moot.shared.domain.peers import CrossSection, Peer
from moot.shared.domain.symbol import Symbol
from tests.fakes.research import CASE, TODAY, FakeMarketFacts, a_figure, a_report, valuations_of
from tests.research.cases import healthy_reports, sources, valuation

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


def claims_of(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {claim["id"].removeprefix("valuation."): claim for claim in report["claims"]}


@pytest.mark.parametrize(
    ("days", "strength", "chinese", "english"),
    [
        (301, 0.25, "在最近 0.8 年中位于 0% 分位", "ranks at 0% within the last 0.8 years"),
        (
            100,
            0.125,
            "在仅有的 100 个交易日（不足一年，减半计分）中",
            "within only 100 sessions, less than a year",
        ),
    ],
)
async def test_a_rank_names_its_window_and_counts_half_in_a_short_one(
    days: int, strength: float, chinese: str, english: str
) -> None:
    claim = claims_of(await valuation(market(CHEAP[-days:])))["pe"]
    assert claim["strength"] == strength
    assert chinese in claim["says"]["zh-CN"]
    assert english in claim["says"]["en-US"]


async def test_a_short_past_has_no_usual_multiple_to_value_by() -> None:
    seen = (await valuation(market(CHEAP[-100:])))["valuation_indicators"]
    assert (seen["pe_implied_value"], seen["pb_implied_value"]) == (None, None)
    assert (seen["value_low"], seen["value_high"]) == (
        seen["residual_value"],
        seen["graham_intrinsic_val"],
    )


def peers(*multiples: float | None) -> list[Peer]:
    return [
        Peer(symbol=f"90010{n}.DEMO", name="同行", pe_ttm=pe, pb=pe and abs(pe) / 5)
        for n, pe in enumerate(multiples)
    ]


async def test_four_peers_with_a_profit_are_compared_with() -> None:
    facts = market(CHEAP)
    facts.industry = peers(20.0, 30.0, 40.0, 10.0, -15.0, None)
    report = await valuation(facts)
    seen, claim = report["valuation_indicators"], claims_of(report)["peer_pe"]
    assert (seen["peer_pe_count"], seen["peer_pe_median"], seen["peer_pe_percentile"]) == (4, 25.0, 25)
    assert (seen["peer_pb_count"], seen["peer_pb_median"]) == (5, 4.0)
    assert claim["side"] == "for"
    assert claim["says"]["en-US"] == (
        "PE (TTM) of 15.87x ranks at 25% among 4 peers (median 25.00x): on the cheap side of its industry."
    )
    assert not any("不作同行比较" in risk for risk in report["risk_factors"])


async def test_three_peers_are_told_and_not_judged_by() -> None:
    facts = market(CHEAP)
    facts.industry = peers(20.0, 30.0, 40.0, -15.0)
    report = await valuation(facts)
    assert report["valuation_indicators"]["peer_pe_percentile"] is None
    assert "peer_pe" not in claims_of(report)
    assert "同行业中另有 3 家市盈率为正、4 家有市净率；不足四家的指标不作同行比较。" in report["risk_factors"]


class WithoutPeers(FakeMarketFacts):
    async def peers(self, symbol: Symbol, *, as_of: datetime) -> CrossSection:
        raise Unavailable("no peers are kept")


async def test_peers_that_cannot_be_had_are_not_said_to_be_none() -> None:
    known = market(CHEAP)
    report = await valuation(WithoutPeers(history=known.history, filed=known.filed), "en-US")
    assert report["valuation_indicators"]["peer_pe_count"] is None
    assert report["warnings"] == ["no peers are kept"]
    assert (
        "What others of its industry cost could not be had, so it is not compared with them."
        in (report["risk_factors"])
    )
    assert not any("Peers of its industry" in risk for risk in report["risk_factors"])


async def test_what_residual_income_assumes_is_told_and_its_table_is_evidence() -> None:
    facts = market(CHEAP)
    facts.figures = [a_figure("cgb_10y", 2.5, TODAY.replace(day=1)), a_figure("lpr_1y", 9.0, TODAY)]
    report = await valuation(facts, "en-US")
    seen = report["valuation_indicators"]
    assert (seen["risk_free"], seen["cost_of_equity"], seen["assumed"]) == (2.5, 8.0, [])
    assert seen["payout"] == round(2.0 * 15.87, 1)
    outlook = Outlook(seen["residual_roe"] / 100, 0.08, seen["payout"] / 100)
    assert seen["residual_roe"] == round(100 * 2.5 / 15.87, 2)
    assert seen["residual_value"] == pytest.approx(20 / 2.5 * times_book(outlook), abs=0.005)
    implied = find_implied_roe(2.5, outlook)
    assert implied is not None
    assert seen["implied_roe"] == round(100 * implied, 1)
    table = {item["id"]: item for item in report["evidence"] if ".residual_table." in item["id"]}
    assert [table[f"valuation.residual_table.{name}"]["value"] for name in seen["residual_cases"]] == (
        seen["residual_table"]
    )
    assert seen["residual_table"][4] == seen["residual_value"]
    assert seen["residual_cases"][4] == "800bp_15y"
    told = next(risk for risk in report["risk_factors"] if risk.startswith("What the value by residual"))
    assert "8.00% (a ten-year government yield of 2.50% and a premium of 5.5%" in told
    sources = {item["id"]: item["source"] for item in report["evidence"]}
    assert sources["valuation.risk_free"] == "fake://macro/cgb_10y/2026-06"
    assert sources["valuation.equity_premium"] == "assumption"


async def test_what_is_not_known_is_taken_as_usual_and_said_to_be() -> None:
    facts = market(CHEAP)
    facts.history = [day.model_copy(update={"dv_ratio": None}) for day in facts.history]
    report = await valuation(facts)
    seen = report["valuation_indicators"]
    assert seen["assumed"] == ["risk_free", "payout"]
    told = next(risk for risk in report["risk_factors"] if risk.startswith("剩余收益估值的假设"))
    assert "十年期国债收益率未知，按 3.00% 计" in told
    assert "30.0%（未知，按惯例取值）" in told


@pytest.fixture
def cyclical(monkeypatch: pytest.MonkeyPatch) -> None:
    sector = Sector(name="steel", cyclical=True)
    monkeypatch.setattr("moot.modules.research.domain.facts.sector_of", lambda industry: sector)


def over_years(*returns: float) -> FakeMarketFacts:
    """A company whose full years, from 2025 back, had these returns on equity."""
    years = [a_report(2025 - n, 4, roe_waa=roe, eps=1.0, bps=8.0) for n, roe in enumerate(returns)]
    return FakeMarketFacts(history=valuations_of([20 + n % 30 for n in range(300)] + [4.0]), filed=years)


@pytest.mark.usefixtures("cyclical")
async def test_a_cyclical_company_is_valued_by_the_middle_of_its_years_and_not_by_a_peak() -> None:
    report = await valuation(over_years(50.0, 8.0, 6.0, 10.0, 4.0))
    seen, claims = report["valuation_indicators"], claims_of(report)
    assert seen["residual_roe"] == seen["roe_middle"] == 8.0
    assert seen["mid_cycle_pe"] == 25.0
    assert claims.keys().isdisjoint({"pe", "peer_pe", "peg", "graham"})
    assert claims["mid_cycle"]["kind"] == "valuation.mid_cycle.peak"
    assert "2021-12-31 至 2025-12-31 的净资产收益率中位数 8.0%" in claims["mid_cycle"]["says"]["zh-CN"]
    assert (seen["value_low"], seen["value_high"]) == tuple(
        sorted((seen["residual_value"], seen["pb_implied_value"]))
    )


@pytest.mark.usefixtures("cyclical")
async def test_two_years_are_no_cycle() -> None:
    report = await valuation(over_years(50.0, 8.0))
    assert report["valuation_indicators"]["residual_value"] is None
    assert any("只有 2 个完整年度，不足以判断周期中值" in risk for risk in report["risk_factors"])


@pytest.mark.parametrize(
    ("returns", "kind"),
    [
        ((9.0, 8.0, 10.0), "valuation.implied.above"),
        ((40.0, 50.0, 60.0), "valuation.implied.below"),
        ((5.0, 60.0, 8.0), "valuation.implied.within"),
    ],
)
async def test_what_the_price_assumes_is_held_against_what_was_shown(
    returns: tuple[float, ...], kind: str
) -> None:
    assert claims_of(await valuation(over_years(*returns)))["implied"]["kind"] == kind


async def test_two_years_show_too_little_to_hold_a_price_against() -> None:
    assert "implied" not in claims_of(await valuation(over_years(9.0, 8.0)))


@pytest.mark.parametrize("locale", ["zh-CN", "en-US"])
async def test_the_books_only_qualify_the_price(locale: Locale) -> None:
    report = await valuation(market(CHEAP, roe_waa=1.0, debt_to_assets=90.0), locale)
    quality = [claim["strength"] for claim in report["claims"] if claim["dimension"] == "quality"]
    assert len(quality) >= 4
    assert max(quality) <= 0.125


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


async def test_where_models_are_no_range_and_multiples_do_not_stand_out_nothing_is_told_apart() -> None:
    """Sixty times earnings is far beyond the models, but usual for this share."""
    report = await valuation(market([40 + n % 41 for n in range(300)] + [60.0], bps=20 / 2.5, eps=1 / 3))
    seen = report["valuation_indicators"]
    assert seen["value_high"] > 3 * seen["value_low"]
    assert claims_of(report)["residual"]["kind"] == "valuation.residual.far_above"
    assert (report["valuation_verdict"], report["confidence_score"] <= 0.3) == ("Fair", True)
    assert "值多少难以判断" in report["narrative_report"]
    assert "不偏向任何一边" in report["risk_factors"][0]


async def test_a_loss_has_no_pe_rank_no_peg_and_no_graham_value() -> None:
    losses = market([*CHEAP[:-1], -12.0], eps=-0.5, profit_dedt=-1e7)
    report = await valuation(losses)
    seen = report["valuation_indicators"]
    assert [seen[n] for n in ("pe_percentile", "peg_ratio", "graham_intrinsic_val")] == [None, None, None]
    assert "亏损状态下市盈率失去意义" in report["narrative_report"]
    assert "PE 分位" in report["narrative_report"].split("数据缺口：")[1]
    assert (seen["residual_value"], seen["residual_table"], seen["mid_cycle_pe"]) == (None, [], None)
    assert any(risk.startswith("近四季亏损，没有按盈利计算的价值") for risk in report["risk_factors"])


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
    assert known["valuation.bps"] == "2026-04-30T09:00:00Z"
    implied = {item["id"]: item["as_of"] for item in (await valuation(market(bps=None)))["evidence"]}
    assert implied["valuation.bps"] == "2026-06-30T09:00:00Z"


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


@pytest.mark.parametrize(
    ("low", "high", "refuted"),
    [(5.0, 12.0, "Undervalued"), (25.0, 30.0, "Overvalued"), (5.0, 19.0, "Undervalued")],
)
def test_no_verdict_stands_that_the_price_refutes_whoever_gives_it(
    low: float, high: float, refuted: str
) -> None:
    """Rules never do, and a model's answer is refused; the price is 20."""
    facts = market(CHEAP)
    snapshot = valuation_snapshot(CASE, Material(facts.history, facts.filed))
    snapshot = snapshot.model_copy(update={"value_low": low, "value_high": high})
    situations = [against_models(case, snapshot) for case in ("opportunity", "trap", "fair", "overvalued")]
    assert {"Undervalued": "opportunity", "Overvalued": "overvalued"}[refuted] not in situations
    service = ValuationModelerService(sources(facts))
    for verdict in {"Undervalued", "Fair", "Overvalued"} - {refuted}:
        assert service.check(snapshot, {"valuation_verdict": verdict}) == {"valuation_verdict": verdict}
    with pytest.raises(ValidationError, match="valuation_verdict"):
        service.check(snapshot, {"valuation_verdict": refuted})

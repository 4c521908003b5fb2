"""Macro intelligence: four dimensions, the latest figures and their change, and only sources it was given."""

from datetime import date

import pytest
from pydantic import ValidationError

from moot.modules.research.application.macro_intelligence import (
    MacroResult,
    chain_months,
    environment_for,
    trends,
)
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.facts import Company
from tests.fakes.research import COMPANY, FakeMarketFacts, a_figure
from tests.research.cases import SUPPORT, TIGHTER, friendly_figures, macro, policy

DIMENSIONS = ["货币与流动性环境", "产业政策与监管动态", "宏观经济周期定位", "行业景气与资金流向"]
NOTHING = "该维度暂无搜索结果，信息有限"


def hostile_market() -> FakeMarketFacts:
    months = [date(2026, 2, 28), date(2026, 5, 31)]
    values = {
        "m2_yoy": (7.4, 6.5),
        "lpr_1y": (3.0, 3.2),
        "cgb_10y": (1.7, 2.0),
        "pmi_manufacturing": (49.8, 48.3),
        "cpi_yoy": (0.2, -0.3),
        "ppi_yoy": (-1.0, -2.6),
        "industry_prosperity": (47.0, 40.5),
    }
    figures = [
        a_figure(name, v, m) for name, pair in values.items() for m, v in zip(months, pair, strict=True)
    ]
    return FakeMarketFacts(figures=figures, published=[TIGHTER])


@pytest.mark.parametrize(
    ("scores", "environment"),
    [
        ([60, 60, 60, 20], "Favorable (有利)"),
        ([100, 100, 100, 19], "Unfavorable (不利)"),
        ([60, 60, 59, 59], "Neutral (中性)"),
        ([39, 39, 39, 100], "Unfavorable (不利)"),
        ([39, 39, 40, 100], "Neutral (中性)"),
    ],
)
def test_most_dimensions_decide_and_a_very_bad_one_spoils_it(scores: list[int], environment: str) -> None:
    assert environment_for(scores) == environment


def in_industry(industry: str) -> Company:
    return COMPANY.model_copy(update={"industry": industry})


async def test_easy_money_and_a_strong_industry_are_favorable() -> None:
    report = await macro(
        FakeMarketFacts(figures=friendly_figures(), published=[SUPPORT], listed=in_industry("全国地产"))
    )
    assert report["macro_environment"] == "Favorable (有利)"
    assert [d["dimension"] for d in report["dimension_analyses"]] == DIMENSIONS
    assert "LPR 变化（-0.10 个百分点）" in report["key_opportunities"]
    assert "1 年期 LPR 降至 3.00%，三个月内下调 0.10 个百分点，对本行业有利。" in report["narrative_report"]
    assert report["key_risks"][1:] == ["PPI 同比变化（1.0 个百分点）"]


async def test_tight_money_and_a_weak_industry_are_unfavorable() -> None:
    report = await macro(hostile_market())
    assert report["macro_environment"] == "Unfavorable (不利)"
    assert "制造业 PMI（48.3）" in report["key_risks"]


async def test_what_helps_one_sector_hurts_another_and_hardly_touches_a_third() -> None:
    """Lower rates: cheaper credit for a developer, a thinner margin for a bank."""
    said, sides = {}, {}
    for industry in ("全国地产", "银行", "白酒"):
        report = await macro(
            FakeMarketFacts(figures=friendly_figures(), listed=in_industry(industry)), "en-US"
        )
        (claim,) = [claim for claim in report["claims"] if claim["id"] == "macro.lpr"]
        said[industry], sides[industry] = claim["says"]["en-US"], (claim["side"], claim["strength"])
        assert claim["horizon"] == 60
    assert sides == {"全国地产": ("for", 0.5), "银行": ("against", 0.25), "白酒": ("for", 0.125)}
    assert said["全国地产"].endswith("which helps this industry.")
    assert said["银行"].endswith("which hurts this industry.")
    assert said["白酒"].endswith("which helps this industry a little.")


async def test_dimensions_without_data_have_no_vote() -> None:
    figures = [figure for figure in friendly_figures() if figure.series in ("lpr_1y", "pmi_manufacturing")]
    report = await macro(FakeMarketFacts(figures=figures, listed=in_industry("工程机械")))
    assert [d["score"] for d in report["dimension_analyses"]] == [100, 50, 100, 50]
    assert report["macro_environment"] == "Favorable (有利)"


def test_twelve_changes_on_the_month_make_one_on_the_year() -> None:
    changes = [0.1 * n for n in range(13)]
    months = [date(2025 + (4 + n) // 12, (4 + n) % 12 + 1, 28) for n in range(13)]
    figures = [a_figure("ppi_mom", change, month) for change, month in zip(changes, months, strict=True)]
    made = {figure.period: figure.value for figure in chain_months(figures) if figure.series == "ppi_yoy"}
    expected = 1.0
    for change in changes[1:]:
        expected *= 1 + change / 100
    assert set(made) == set(months[11:])
    assert made[months[12]] == round(100 * (expected - 1), 1)


def test_a_year_with_a_hole_is_none_and_what_is_told_is_not_made() -> None:
    months = [date(2025 + (4 + n) // 12, (4 + n) % 12 + 1, 28) for n in range(12)]
    figures = [a_figure("ppi_mom", 0.5, month) for month in months]
    told = a_figure("ppi_yoy", 3.0, months[-1])
    assert chain_months(figures[:5] + figures[6:]) == figures[:5] + figures[6:]
    assert chain_months([*figures, told]) == [*figures, told]


async def test_a_change_that_was_made_of_months_is_said_to_be() -> None:
    months = [date(2025 + (5 + n) // 12, (5 + n) % 12 + 1, 28) for n in range(12)]
    figures = [a_figure("cpi_mom", 0.1, month) for month in months]
    report = await macro(FakeMarketFacts(figures=figures))
    assert [said for said in report["warnings"] if "十二个月的环比" in said]
    told = await macro(FakeMarketFacts(figures=[*figures, a_figure("cpi_yoy", 1.2, months[-1])]))
    assert not [said for said in told["warnings"] if "十二个月的环比" in said]


async def test_the_change_is_over_about_three_months() -> None:
    figures = [a_figure("m2_yoy", v, date(2026, m, 28)) for m, v in ((2, 8.0), (3, 8.3), (4, 8.6), (5, 9.0))]
    trend = trends(figures)["m2_yoy"]
    assert (trend.latest.value, trend.change) == (9.0, 1.0)


async def test_a_lone_figure_has_no_change() -> None:
    assert trends([a_figure("m2_yoy", 9.0, date(2026, 5, 28))])["m2_yoy"].change is None


async def test_a_dimension_without_facts_says_so_and_lowers_the_confidence() -> None:
    full = FakeMarketFacts(figures=friendly_figures(), published=[SUPPORT])
    silent = await macro(FakeMarketFacts(figures=friendly_figures()))
    assert silent["macro_indicators"]["policy_context"] == NOTHING
    assert NOTHING in silent["dimension_analyses"][1]["assessment"]
    assert silent["dimension_analyses"][1]["score"] == 50
    assert "政策倾向" in silent["narrative_report"].split("数据缺口：")[1]
    assert silent["confidence_score"] < (await macro(full))["confidence_score"]


async def test_nothing_at_all_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no macro figures and no policy notices"):
        await macro(FakeMarketFacts())


async def test_sources_are_the_urls_of_the_facts_each_once() -> None:
    report = await macro(FakeMarketFacts(figures=friendly_figures(), published=[SUPPORT, SUPPORT]))
    sources = report["information_sources"]
    assert sources[-1] == SUPPORT.url
    assert len(sources) == len(set(sources)) == 8
    assert {e["source"] for e in report["evidence"]} <= set(sources)


async def test_policy_notices_are_evidence_and_quoted_by_title() -> None:
    report = await macro(FakeMarketFacts(figures=friendly_figures(), published=[SUPPORT, TIGHTER]))
    assert report["macro_indicators"]["supportive_policies"] == 1
    assert report["macro_indicators"]["restrictive_policies"] == 1
    (claim,) = [claim for claim in report["claims"] if claim["dimension"] == "policy"]
    assert "主管部门出台白酒行业支持措施" in claim["says"]["zh-CN"]
    assert "Measures to support liquor" in claim["says"]["en-US"]
    assert "macro.event.1" in claim["evidence"]
    assert claim["reported"]
    assert "macro.event.2" in {e["id"] for e in report["evidence"]}


async def test_company_news_is_not_policy() -> None:
    not_policy = policy("收紧管理", "Tighter rules", kind="news")
    report = await macro(FakeMarketFacts(figures=friendly_figures(), published=[not_policy]))
    assert report["macro_indicators"]["policy_events"] == []


async def test_a_figure_not_yet_released_does_not_exist() -> None:
    early = a_figure("m2_yoy", 12.0, date(2026, 6, 30))
    report = await macro(FakeMarketFacts(figures=[*friendly_figures(), early]))
    assert report["macro_indicators"]["m2_yoy"] == 9.4


async def test_a_result_needs_four_dimensions_and_a_known_environment() -> None:
    report = await macro(FakeMarketFacts(figures=friendly_figures(), published=[SUPPORT]))
    fields = {name: report[name] for name in MacroResult.model_fields}
    MacroResult.model_validate(fields)
    changes = (
        {"dimension_analyses": fields["dimension_analyses"][:3]},
        {"macro_environment": "Unknown"},
        {"information_sources": []},
        {"key_risks": []},
    )
    for change in changes:
        with pytest.raises(ValidationError):
            MacroResult.model_validate(fields | change)

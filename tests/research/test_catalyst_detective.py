"""The catalyst detective: events on both sides, nothing made up for a silent one, only sources it was given."""

import pytest
from pydantic import ValidationError

from moot.modules.research.application.catalyst_detective import CatalystResult
from moot.shared.domain.errors import InvalidInput
from tests.fakes.research import FakeMarketFacts, a_news
from tests.research.cases import MIXED_NEWS, SUPPORT, catalyst, policy

DIMENSIONS = ["公司重大事件与动态", "行业催化与竞争格局", "市场情绪与机构动向", "财报预期与业绩催化"]
NOTHING = "该维度暂无搜索结果，信息有限"

WINS = a_news("中标重大项目", "Wins contract for a major project", days_ago=1)
BUYS = a_news("拟回购股份", "Plans a buyback", days_ago=2)
PROBE = a_news("被立案调查", "Under investigation", days_ago=1)
LOSS = a_news("预计全年亏损", "Issues a profit warning", days_ago=3)


async def test_good_events_are_positive() -> None:
    report = await catalyst(FakeMarketFacts(published=[WINS, BUYS]))
    assert report["result"]["catalyst_assessment"] == "Positive (正面催化)"
    assert report["result"]["positive_catalysts"][0] == {
        "event": "2026-06-29 中标重大项目",
        "expected_impact": "订单增加未来收入的可见度。",
        "timeframe": "中期",
        "probability": "高",
    }


async def test_bad_events_are_negative_and_the_weightiest_would_have_to_be_undone() -> None:
    report = await catalyst(FakeMarketFacts(published=[PROBE, LOSS]))
    assert report["result"]["catalyst_assessment"] == "Negative (负面催化)"
    assert "负面判断主要建立在《被立案调查》之上" in report["narrative_report"]


async def test_a_negative_view_never_rests_on_good_news_however_weighty() -> None:
    growth = a_news("半年度报告，净利润同比增长40%", "Half-year report, profit up 40%", days_ago=1)
    doubts = [a_news(f"收到监管问询函之{n}", f"Inquiry letter {n}", days_ago=1 + n) for n in range(6)]
    report = await catalyst(FakeMarketFacts(published=[growth, *doubts]))
    assert report["result"]["catalyst_assessment"] == "Negative (负面催化)"
    assert "负面判断主要建立在《收到监管问询函之0》之上" in report["narrative_report"]


async def test_events_that_cancel_out_are_neutral() -> None:
    report = await catalyst(FakeMarketFacts(published=[WINS, LOSS]))
    assert report["result"]["catalyst_assessment"] == "Neutral (中性)"


async def test_the_four_dimensions_come_in_order() -> None:
    report = await catalyst(FakeMarketFacts(published=MIXED_NEWS))
    assert [d["dimension"] for d in report["result"]["dimension_analyses"]] == DIMENSIONS


async def test_a_silent_side_is_said_to_be_silent() -> None:
    report = await catalyst(FakeMarketFacts(published=[WINS, BUYS]))
    (silence,) = report["result"]["negative_catalysts"]
    assert silence["event"] == "近 90 天的 2 条公告与新闻中未发现负面事件"


async def test_a_dimension_without_events_says_so_and_lowers_the_confidence() -> None:
    company_only = await catalyst(FakeMarketFacts(published=[WINS]))
    assert company_only["catalyst_context"]["earnings_context"] == NOTHING
    assert NOTHING in company_only["result"]["dimension_analyses"][3]["assessment"]
    assert company_only["result"]["confidence_score"] < 0.3


async def test_one_event_does_not_fill_the_scale_of_its_dimension() -> None:
    fresh = a_news("中标重大项目", "Wins contract", days_ago=0)
    report = await catalyst(FakeMarketFacts(published=[fresh]))
    assert report["result"]["dimension_analyses"][0]["score"] == 75


async def test_no_news_in_any_dimension_is_refused() -> None:
    with pytest.raises(InvalidInput, match="all four dimensions are empty"):
        await catalyst(FakeMarketFacts())


async def test_policy_for_the_market_is_left_to_macro_policy_for_the_industry_counts() -> None:
    everywhere = policy("央行宣布降准", "Central bank cuts reserve requirement", industry=None)
    report = await catalyst(FakeMarketFacts(published=[everywhere, SUPPORT]))
    assert [e["title"] for e in report["catalyst_context"]["events"]] == ["主管部门出台白酒行业支持措施"]


async def test_only_given_sources_are_cited() -> None:
    report = await catalyst(FakeMarketFacts(published=MIXED_NEWS))
    assert sorted(report["result"]["information_sources"]) == sorted(item.url for item in MIXED_NEWS)


async def test_news_published_later_does_not_exist() -> None:
    later = a_news("被立案调查", "Under investigation", days_ago=-1)
    report = await catalyst(FakeMarketFacts(published=[WINS, later]))
    assert report["catalyst_context"]["event_count"] == 1


async def test_a_dimension_keeps_its_newest_events() -> None:
    many = [a_news("中标项目", "Wins contract", days_ago=n) for n in range(1, 12)]
    report = await catalyst(FakeMarketFacts(published=many))
    dates = [event["published"] for event in report["catalyst_context"]["events"]]
    assert dates == [f"2026-06-{30 - n:02d}" for n in range(1, 9)]


async def test_the_record_holds_what_was_read_and_how_it_was_scored() -> None:
    report = await catalyst(FakeMarketFacts(published=[WINS]))
    assert "catalyst.event.1 = 中标重大项目 [fake://news/" in report["user_prompt"]
    assert "公司重大事件与动态: 2026-06-29《中标重大项目》" in report["raw_llm_output"]
    assert report["engine"] == "rubric"
    assert report["narrative_report"] == report["result"]["narrative_report"]


@pytest.mark.accepts("W17")
async def test_a_result_needs_four_dimensions_and_known_literals() -> None:
    fields = (await catalyst(FakeMarketFacts(published=MIXED_NEWS)))["result"]
    CatalystResult.model_validate(fields)
    odd_time = {**fields["positive_catalysts"][0], "timeframe": "soon"}
    changes = (
        {"dimension_analyses": fields["dimension_analyses"] * 2},
        {"catalyst_assessment": "Positive"},
        {"positive_catalysts": [odd_time]},
        {"negative_catalysts": []},
    )
    for change in changes:
        with pytest.raises(ValidationError):
            CatalystResult.model_validate(fields | change)

"""The technical analyst: the signal follows the chart, the text names its numbers, bad requests are refused."""

from datetime import date, timedelta

import pytest
from pydantic import ValidationError

from moot.modules.research.application.technical_analyst import (
    SERVICE,
    KeyTechnicalLevels,
    TechnicalResult,
)
from moot.shared.domain.errors import InvalidInput
from tests.fakes.research import AS_OF, TODAY, FakeMarketFacts, bars_of
from tests.research.cases import technical, technical_service, waves

LIQUID = 10_000_000
HORIZONS = {
    **dict.fromkeys(("rsi", "obv", "patterns", "room"), 5),
    **dict.fromkeys(("price_ma20", "ma20_ma60", "macd", "crowding", "liquidity", "volatility"), 20),
    **dict.fromkeys(("price_ma200", "relative_strength"), 60),
}


def market(days: int = 225, drift: float = 0.003, until: date = TODAY) -> FakeMarketFacts:
    return FakeMarketFacts(daily=bars_of(waves(days, drift), until=until, volume=LIQUID))


async def test_a_rising_price_is_bullish_and_falsified_by_its_support() -> None:
    report = await technical(market(drift=0.003))
    support = report["key_technical_levels"]["support"]
    assert report["signal"] == "BULLISH"
    assert f"跌破支撑位 {support:.2f} 元" in report["risk_warning"]


async def test_a_falling_price_is_bearish_and_falsified_by_its_resistance() -> None:
    report = await technical(market(drift=-0.003))
    resistance = report["key_technical_levels"]["resistance"]
    assert report["signal"] == "BEARISH"
    assert f"站上阻力位 {resistance:.2f} 元" in report["risk_warning"]


async def test_a_view_is_supported_by_what_speaks_for_it_whichever_way_it_points() -> None:
    for drift, side in ((-0.003, "against"), (0.003, "for")):
        report = await technical(market(drift=drift))
        support = report["summary_reasoning"].partition("主要依据：")[2].partition("需要权衡：")[0]
        seen = report["technical_indicators"]
        assert f"价格与 MA20（{seen['current_price']:.2f} 元、{seen['ma20']:.2f} 元）" in support
        (claim,) = [claim for claim in report["claims"] if claim["id"] == "technical.price_ma20"]
        assert claim["side"] == side


async def test_a_price_that_goes_nowhere_is_neutral_and_less_certain() -> None:
    flat = await technical(FakeMarketFacts(daily=bars_of([20.0, 20.1, 20.2, 20.1] * 30, volume=LIQUID)))
    rising = await technical(market(drift=0.003))
    assert flat["signal"] == "NEUTRAL"
    assert flat["confidence"] < rising["confidence"]


async def test_the_narrative_names_price_averages_and_both_sides() -> None:
    report = await technical(market())
    seen, text = report["technical_indicators"], report["narrative_report"]
    for number in (seen["current_price"], seen["ma20"], seen["ma60"]):
        assert f"{number:.2f} 元" in text
    assert f"{seen['atr_value']:.2f} 元" in report["risk_warning"]
    assert "有利因素" in text
    assert "不利因素" in text


async def test_short_histories_are_named_as_gaps_and_lower_the_confidence() -> None:
    prices = waves(228, 0.003)
    short, long = [
        await technical(FakeMarketFacts(daily=bars_of(p, volume=LIQUID))) for p in (prices[-45:], prices)
    ]
    assert short["technical_indicators"]["ma60"] is None
    assert "数据缺口：MA20 与 MA60、价格与 MA200" in short["narrative_report"]
    assert short["confidence"] < long["confidence"]


async def test_a_claim_knows_its_horizon() -> None:
    assert {rule.name: rule.horizon for rule in SERVICE.rules()} == HORIZONS
    for claim in (await technical(market()))["claims"]:
        assert claim["horizon"] == HORIZONS[claim["id"].removeprefix("technical.")]


@pytest.mark.parametrize(
    ("volume", "band", "says"),
    [
        (LIQUID, "deep", "一天之内即可完成"),
        (2_000_000, "fair", "需要 2.5 天。"),
        (500_000, "thin", "需要 10.0 天，超过一个交易周。"),
        (50_000, "stuck", "需要 100.0 天，行情不好时难以脱身。"),
    ],
)
async def test_what_cannot_be_sold_in_a_week_is_held_against_it(volume: int, band: str, says: str) -> None:
    report = await technical(FakeMarketFacts(daily=bars_of([20.0, 20.0] * 40, volume=volume)))
    (claim,) = [claim for claim in report["claims"] if claim["id"] == "technical.liquidity"]
    assert claim["kind"] == f"technical.liquidity.{band}"
    assert claim["side"] == ("against" if band in ("thin", "stuck") else "neither")
    assert "卖出 1,000 万元的持仓" in claim["says"]["zh-CN"]
    assert claim["says"]["zh-CN"].endswith(says) or band == "deep"


async def test_a_projection_is_no_level_to_judge_the_room_by() -> None:
    report = await technical(FakeMarketFacts(daily=bars_of([30 - n / 10 for n in range(60)])))
    assert "technical.room" not in {claim["id"] for claim in report["claims"]}


async def test_a_pattern_is_told_with_its_day_and_known_from_then_on() -> None:
    closes = [20 - n / 10 for n in range(40)] + [17.5, 19.0, 20.5, 20.6]
    report = await technical(FakeMarketFacts(daily=bars_of(closes)))
    (claim,) = [claim for claim in report["claims"] if claim["id"] == "technical.patterns"]
    assert "5 日均线于 2026-06-29 上穿 20 日均线（金叉）" in claim["says"]["zh-CN"]
    assert "the 5-day average crossed above the 20-day one on 2026-06-29" in claim["says"]["en-US"]
    known = {item["id"]: item["as_of"][:10] for item in report["evidence"]}
    assert known["technical.pattern.golden_cross"] == "2026-06-29"


async def test_no_bars_are_refused() -> None:
    with pytest.raises(InvalidInput, match="has no daily bars between 2025-06-30 and 2026-06-30"):
        await technical(FakeMarketFacts())


async def test_29_bars_are_refused_and_30_are_enough() -> None:
    with pytest.raises(InvalidInput, match="only 29 traded daily bars; technical analysis needs at least 30"):
        await technical(market(days=29))
    assert (await technical(market(days=30)))["technical_indicators"]["bars"] == 30


async def test_a_date_after_the_moment_of_research_is_refused() -> None:
    with pytest.raises(InvalidInput, match="2026-07-01 is later than the moment of research"):
        await technical(market(), on=TODAY + timedelta(days=1))


@pytest.mark.parametrize("ticker", ["", "   "])
async def test_a_blank_ticker_is_refused_before_anything_is_read(ticker: str) -> None:
    facts = market()
    with pytest.raises(InvalidInput, match="ticker: a symbol is needed"):
        await technical_service(facts).run(ticker, TODAY, as_of=AS_OF, locale="zh-CN")
    assert facts.asked == []


async def test_bars_after_the_analysis_date_do_not_exist() -> None:
    day = TODAY - timedelta(days=30)
    report = await technical(market(), on=day)
    assert report["technical_indicators"]["last_trade_date"] == day.isoformat()


async def test_a_bar_that_was_not_yet_known_does_not_exist() -> None:
    *known, last = market().daily
    late = last.model_copy(update={"available_at": AS_OF + timedelta(hours=1)})
    report = await technical(FakeMarketFacts(daily=[*known, late]))
    assert report["technical_indicators"]["last_trade_date"] == "2026-06-29"


async def test_a_projected_level_is_said_to_be_one() -> None:
    report = await technical(FakeMarketFacts(daily=bars_of([30 - n / 10 for n in range(60)])))
    assert "支撑位系按两倍平均真实波幅推算" in report["risk_warning"]


async def test_a_long_suspension_is_said() -> None:
    report = await technical(market(until=TODAY - timedelta(days=25)))
    assert "最近一个成交日距分析日已有 25 天" in report["risk_warning"]


async def test_levels_are_evidence_under_stable_names() -> None:
    report = await technical(market())
    known = {item["id"]: item for item in report["evidence"]}
    levels, seen = report["key_technical_levels"], report["technical_indicators"]
    assert known["technical.support"]["value"] == levels["support"]
    assert known["technical.resistance"]["value"] == levels["resistance"]
    assert known["technical.current_price"] == {
        "id": "technical.current_price",
        "value": seen["current_price"],
        "unit": "CNY",
        "source": "fake",
        "as_of": "2026-06-30T09:00:00Z",
    }
    assert known["technical.atr_value"]["value"] == seen["atr_value"]
    assert "technical.ma200" in known
    assert "technical.ma200" not in {e["id"] for e in (await technical(market(days=45)))["evidence"]}


@pytest.mark.parametrize("change", [{"signal": "STRONG_BUY"}, {"confidence": 1.2}, {"confidence": -0.1}])
@pytest.mark.accepts("W17")
def test_a_result_outside_the_contract_is_refused(change: dict[str, object]) -> None:
    fields = {
        "signal": "BULLISH",
        "confidence": 0.5,
        "summary_reasoning": "",
        "key_technical_levels": KeyTechnicalLevels(support=1, resistance=2),
        "risk_warning": "",
    }
    TechnicalResult.model_validate(fields)
    with pytest.raises(ValidationError):
        TechnicalResult.model_validate(fields | change)

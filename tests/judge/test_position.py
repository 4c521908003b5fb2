"""How much: one formula of conviction, volatility and liquidity; and when there is no purchase at all."""

import pytest

from moot.modules.judge.application.judge_service import JudgeService, VerdictDTO
from moot.modules.judge.container import JudgeContainer
from moot.shared.domain.claims import Holder
from tests.fakes.debate import BY_RULE
from tests.fakes.judge import FakeVerdictAgent, a_debate, a_verdict, argued, claim, evidence

LIQUID = {"turnover_20d": 1e9}


async def rule(facts=None, **changes) -> VerdictDTO:
    known = evidence(**{"current_price": 10.0, "atr_value": 0.2} | (LIQUID if facts is None else facts))
    debate = a_debate(**{"evidence": known} | changes)
    return await JudgeContainer(2, *BY_RULE).judge_service().run(debate)


@pytest.mark.parametrize(
    ("confidence", "facts", "position", "volatility", "liquidity"),
    [
        (1.0, LIQUID, 0.30, 1.0, 1.0),
        (0.8, LIQUID, 0.18, 1.0, 1.0),
        (0.81, LIQUID, 0.18, 1.0, 1.0),  # 18.6 %: down, never up
        (0.8, LIQUID | {"atr_value": 0.5}, 0.09, 0.5, 1.0),
        (0.8, LIQUID | {"atr_value": 0.1}, 0.18, 1.0, 1.0),
        (0.8, {"turnover_20d": 1.8e6}, 0.09, 1.0, 0.5),  # 1.8 m at 180,000 a day takes ten days
        (0.8, {}, 0.09, 1.0, None),
        (0.8, {"atr_value": None}, 0.04, None, None),
        (0.6, {"atr_value": None}, 0.01, None, None),
    ],
)
async def test_the_position_is_the_cap_times_its_factors_rounded_down(
    confidence, facts, position, volatility, liquidity
):
    verdict = await rule(facts, confidence=confidence)
    assert verdict.position_percent == position
    assert (verdict.sizing.volatility, verdict.sizing.liquidity) == (volatility, liquidity)


async def test_the_sizing_says_how_long_it_takes_to_sell_and_in_which_lots():
    sizing = (await rule({"turnover_20d": 1.8e6}, lot_size=100)).sizing
    assert (sizing.cap, sizing.conviction, sizing.lot, sizing.capital) == (0.3, 0.6, 100, 10_000_000)
    assert sizing.days_to_sell == 5.0  # at a tenth of the turnover, after the liquidity was counted


@pytest.mark.parametrize(("lot", "told"), [(100, True), (200, True), (1, False), (None, False)])
async def test_lots_are_those_it_was_told_of(lot, told):
    verdict = await rule(lot_size=lot)
    assert verdict.sizing.lot == lot
    assert (f"at least {lot} shares" in verdict.entry_strategy) is told


@pytest.mark.parametrize(
    ("locale", "said"),
    [("en-US", "How much of the share is traded"), ("zh-CN", "日均成交额未知")],
)
async def test_an_unknown_turnover_is_a_warning(locale, said):
    assert any(risk.startswith(said) for risk in (await rule({}, locale=locale)).risk_warnings)
    assert not any(risk.startswith(said) for risk in (await rule(locale=locale)).risk_warnings)


@pytest.mark.parametrize(("limit", "warned"), [(5.0, True), (10.0, True), (20.0, False), (None, False)])
async def test_a_stop_beyond_one_sessions_limit_is_a_warning(limit, warned):
    verdict = await rule(LIQUID | {"atr_value": 0.6}, limit_percent=limit)
    assert verdict.levels.stop == 8.8
    assert (
        any("8.80" in risk and f"{limit:.0f}%" in risk for risk in verdict.risk_warnings if limit) is warned
    )


async def test_what_volatility_leaves_less_than_a_per_cent_of_is_not_bought():
    verdict = await rule(LIQUID | {"atr_value": 2.0}, confidence=0.6)
    assert (verdict.action, verdict.position_percent, verdict.sizing) == ("HOLD", 0, None)
    assert "less than one per cent" in verdict.reasoning


UNREWARDING = LIQUID | {"support": 8.0, "resistance": 10.5}


@pytest.mark.parametrize(
    ("locale", "said"),
    [("en-US", "CNY 0.60 is to be won against CNY 2.00"), ("zh-CN", "收益 0.60 元小于潜在损失 2.00 元")],
)
async def test_a_purchase_that_risks_more_than_it_can_win_is_none(locale, said):
    verdict = await rule(UNREWARDING, locale=locale)
    assert (verdict.action, verdict.position_percent) == ("HOLD", 0)
    assert said in verdict.reasoning
    even = await rule(LIQUID | {"support": 9.4, "resistance": 10.5})
    assert even.action == "BUY"


async def test_a_models_purchase_that_risks_more_than_it_can_win_is_none_either():
    bought = a_verdict(levels={"entry": 10.0, "stop": 8.0, "target": 10.6})
    verdict = await JudgeService(FakeVerdictAgent(bought), quorum=2).run(a_debate())
    assert (verdict.action, verdict.position_percent) == ("HOLD", 0)
    assert verdict.entry_strategy.startswith("Open nothing new")
    assert "CNY 0.60 is to be won against CNY 2.00" in verdict.warnings[-1]


async def test_a_sale_is_not_measured_by_what_a_purchase_would_win():
    assert (await rule(UNREWARDING, direction="BEARISH")).action == "SELL"


@pytest.mark.parametrize(("risk", "position"), [("low", 0.09), ("medium", 0.18), ("high", 0.18)])
async def test_who_bears_little_risk_gets_half_the_cap(risk, position):
    verdict = await rule(holder=Holder(risk=risk))
    assert (verdict.action, verdict.position_percent) == ("BUY", position)


@pytest.mark.parametrize("locale", ["zh-CN", "en-US"])
@pytest.mark.parametrize("lean", [1, -1])
async def test_a_holder_changes_the_advice_and_never_the_case(lean, locale):
    case = argued(claim("technical.rsi", lean * 0.5), lean=lean)
    plain = await rule(locale=locale, **case)
    told = {}
    for holding in (True, False):
        held = await rule(locale=locale, holder=Holder(holding=holding, cost=8.0, horizon="long"), **case)
        told[holding] = held.advice
        assert held.model_dump(exclude={"advice"}) == plain.model_dump(exclude={"advice"})
    assert plain.advice is None
    assert told[True] != told[False]
    assert "+25.0%" in told[True]  # 10.00 on a cost of 8.00
    assert "8.00" not in told[False]


@pytest.mark.parametrize(
    ("lean", "holding", "said"),
    [(1, True, "you may add"), (1, False, "you may open"), (-1, True, "Reduce"), (-1, False, "Stay away")],
)
async def test_the_advice_follows_the_action_and_what_is_held(lean, holding, said):
    verdict = await rule(
        holder=Holder(holding=holding), **argued(claim("technical.rsi", lean * 0.5), lean=lean)
    )
    assert said in verdict.advice

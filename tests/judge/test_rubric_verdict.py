"""The rubric judge: what it rules, how much, at which prices, and that it says so in the asker's language."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.modules.judge.application.judge_service import VerdictDTO
from moot.modules.judge.container import JudgeContainer
from tests.fakes.debate import BY_RULE
from tests.fakes.judge import a_debate, evidence

PRICED = evidence(current_price=10.0, atr_value=0.5, support=9.0, resistance=12.2)


async def rule(**changes) -> VerdictDTO:
    return await JudgeContainer(2, *BY_RULE).judge_service().run(a_debate(**changes))


@pytest.mark.parametrize(
    ("direction", "confidence", "action"),
    [
        ("BULLISH", 0.9, "BUY"),
        ("BULLISH", 0.6, "BUY"),
        ("BULLISH", 0.59, "HOLD"),
        ("BEARISH", 0.6, "SELL"),
        ("BEARISH", 0.59, "HOLD"),
        ("NEUTRAL", 0.5, "HOLD"),
        ("NEUTRAL", 0.9, "HOLD"),
    ],
)
async def test_direction_and_confidence_decide_the_action(direction, confidence, action):
    verdict = await rule(direction=direction, confidence=confidence)
    assert (verdict.action, verdict.confidence, verdict.engine) == (action, confidence, "rubric")


@pytest.mark.parametrize("direction", ["BEARISH", "NEUTRAL"])
async def test_without_a_purchase_there_is_no_new_position(direction):
    assert (await rule(direction=direction)).position_percent == 0


@given(confidence=st.floats(0, 1), risks=st.integers(0, 30))
async def test_no_position_is_above_the_cap(confidence, risks):
    verdict = await rule(confidence=confidence, risk_factors=["risk"] * risks)
    assert 0 <= verdict.position_percent <= 0.3


async def test_a_purchase_names_its_prices_as_numbers_and_in_words():
    verdict = await rule(evidence=PRICED, lot_size=100)
    assert verdict.levels.model_dump() == {"entry": 10.0, "stop": 9.0, "target": 12.2}
    assert verdict.entry_strategy == (
        "Build the position in parts, up to 4% of capital, in orders of at least 100 shares. "
        "Reference price CNY 10.00."
    )
    assert verdict.stop_loss == "Leave on a close below CNY 9.00."
    assert verdict.take_profit == "Take profit in parts around CNY 12.20."
    assert verdict.time_horizon == (
        "For the span that was argued about, shorter if the stop or the target is reached."
    )


async def test_a_sale_names_what_would_refute_it():
    verdict = await rule(direction="BEARISH", evidence=PRICED)
    assert verdict.levels.model_dump() == {"entry": 10.0, "stop": 12.2, "target": 8.5}
    assert verdict.entry_strategy == "Sell what is held and open nothing new. Reference price CNY 10.00."
    assert verdict.stop_loss == "On a close above CNY 12.20 the bearish view has failed; look again then."
    assert verdict.take_profit == "Downside target CNY 8.50; no buying back before that."


async def test_without_price_evidence_the_levels_are_unknown_and_said_to_be():
    verdict = await rule(evidence=evidence(atr_value=0.5))
    assert verdict.levels.model_dump() == {"entry": None, "stop": None, "target": None}
    assert verdict.price is None
    assert verdict.entry_strategy.endswith("No price of the last session was cited.")
    assert verdict.stop_loss.startswith("No stop is named")
    assert verdict.take_profit.startswith("No target is named")
    assert verdict.headline == "Buy: weight of the argument 0.80."


async def test_the_risk_warnings_are_the_debates():
    assert (await rule(risk_factors=["a", "b", "c"], direction="BEARISH")).risk_warnings == ["a", "b", "c"]


async def test_too_few_risks_are_joined_by_the_disagreement_and_the_limits_of_the_data():
    disagreement = "The experts disagree: X against Y"
    limits = "The verdict rests on the experts' summaries and the evidence listed, and knows nothing that came later."
    unnamed = "A risk that no expert named may still exist."

    async def warned(**changes):
        return (await rule(direction="BEARISH", **changes)).risk_warnings

    assert await warned(risk_factors=["a"], key_disagreements=["X against Y"]) == ["a", disagreement]
    assert await warned(risk_factors=[], key_disagreements=["X against Y"]) == [disagreement, limits]
    assert await warned(risk_factors=["a"]) == ["a", limits]
    assert await warned(risk_factors=[]) == [limits, unnamed]


async def test_an_expert_that_could_not_be_heard_is_a_warning():
    verdict = await rule(experts_asked=5, experts_heard=3, direction="BEARISH")
    assert verdict.risk_warnings[-1] == (
        "Only 3 of the 5 experts asked could be heard; the verdict rests on an incomplete panel."
    )
    heard = await rule(experts_asked=5, experts_heard=5, direction="BEARISH")
    assert len(heard.risk_warnings) == 2


async def test_the_reasoning_of_an_outside_debate_says_why_and_what_is_open():
    assert (await rule(key_disagreements=["X against Y", "Z against Y"])).reasoning == (
        "The argument is for buying, and its weight is enough to act on.\n"
        "Main disagreements:\n- X against Y\n- Z against Y"
    )
    assert (await rule()).reasoning.endswith("No expert disagrees with another about the direction.")


async def test_the_narrative_of_an_outside_debate_tells_figures_and_both_theses():
    verdict = await rule(evidence=PRICED)
    assert verdict.narrative_report == (
        "The verdict on 900001.DEMO is: Buy. The weight of the argument is 0.80, on a scale where 0.50 is undecided "
        "and 1.00 is beyond dispute; it says how the claims balance and is no probability. "
        "A new position may take up to 4% of capital. "
        "The most it may be is a cap of 30% times three factors, rounded down: conviction (0.60), volatility (0.50) "
        "and liquidity (unknown, counted as 0.50). "
        "Prices to watch: reference CNY 10.00, refuted at CNY 9.00, objective CNY 12.20.\n\n"
        "The bull: Margins rose to 31.5%.\nThe bear: The price is 2.4 times book.\n"
        "How it was weighed: The net is +0.60."
    )


async def test_a_chinese_verdict_is_chinese():
    verdict = await rule(direction="NEUTRAL", confidence=0.52, evidence=PRICED, locale="zh-CN")
    assert verdict.entry_strategy == "不新开仓，已有持仓继续持有。参考价 10.00 元。"
    assert verdict.stop_loss == "已有持仓在收盘价跌破 9.00 元时重新评估。"
    assert verdict.headline == "观望：论证分量 0.52，价格 10.00 元（2026-01-09 收盘）。"
    assert verdict.reasoning.startswith("论证没有明显偏向任何一方。")
    assert verdict.narrative_report.startswith("对 900001.DEMO 的裁决是观望。论证分量为 0.52：")


async def test_both_languages_rule_alike():
    def ruled(verdict: VerdictDTO) -> dict[str, object]:
        return verdict.model_dump(include={"action", "position_percent", "confidence", "levels", "engine"})

    assert ruled(await rule(evidence=PRICED)) == ruled(await rule(evidence=PRICED, locale="zh-CN"))


async def test_the_same_debate_always_gets_the_same_verdict():
    assert await rule(evidence=PRICED) == await rule(evidence=PRICED)


@pytest.mark.parametrize("locale", ["zh-CN", "en-US"])
@pytest.mark.parametrize("direction", ["BULLISH", "BEARISH", "NEUTRAL"])
async def test_every_number_in_the_text_was_given_or_is_part_of_the_verdict(direction, locale):
    debate = {
        "direction": direction,
        "evidence": PRICED,
        "experts_asked": 5,
        "experts_heard": 4,
        "locale": locale,
    }
    verdict = await rule(**debate)
    ruled = [verdict.position_percent * 100, *verdict.levels.model_dump().values()]
    sizing = verdict.sizing.model_dump().values() if verdict.sizing else []
    factors = [*sizing, 30, 1.0, 0.5]
    given = {
        *_numbers(a_debate(**debate).model_dump_json()),
        *(round(number, 2) for number in [*ruled, *factors] if number is not None),
    }
    assert _numbers(verdict.narrative_report) <= given


def _numbers(text: str) -> set[float]:
    return {float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)}


@pytest.mark.parametrize(
    ("direction", "confidence", "told"),
    [
        ("BULLISH", 0.59, "now it is 0.59, for buying."),
        ("BEARISH", 0.59, "now it is 0.59, against buying."),
        ("NEUTRAL", 0.5, "now it is 0.50, undecided."),
    ],
)
async def test_a_hold_says_what_would_open_a_case(direction, confidence, told):
    verdict = await rule(direction=direction, confidence=confidence, evidence=PRICED)
    (opening,) = verdict.would_change
    assert opening.startswith(
        "Buying takes an argument of weight 0.60 for it, selling one of 0.60 against it; "
    )
    assert opening.endswith(told)


async def test_a_purchase_that_does_not_pay_names_the_price_at_which_it_would():
    known = evidence(current_price=10.0, atr_value=0.2, support=8.0, turnover_20d=1e9)
    verdict = await rule(evidence=known)
    assert (verdict.action, verdict.levels.target) == ("HOLD", 10.6)
    assert verdict.would_change[0].startswith("At CNY 9.30 or less there would be as much to win as to lose")

"""The rubric judge: what it rules, how much, at which prices, and that it says so in the asker's language."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.modules.judge.application.judge_service import VerdictDTO
from moot.modules.judge.container import JudgeContainer
from tests.fakes.debate import BY_RULE
from tests.fakes.judge import a_debate, evidence

PRICED = evidence(current_price=10.0, atr_value=0.5, support=9.4, resistance=12.2)


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


@pytest.mark.parametrize(
    ("confidence", "risks", "disagreements", "position"),
    [
        (1.0, 0, 0, 0.3),
        (0.8, 0, 0, 0.18),
        (0.8, 2, 0, 0.16),
        (0.8, 5, 1, 0.13),
        (0.6, 5, 1, 0.04),
        (0.6, 60, 0, 0.01),
    ],
)
async def test_the_position_grows_with_confidence_and_shrinks_with_each_risk(
    confidence, risks, disagreements, position
):
    verdict = await rule(
        confidence=confidence, risk_factors=["risk"] * risks, key_disagreements=["doubt"] * disagreements
    )
    assert verdict.position_percent == position


@pytest.mark.parametrize("direction", ["BEARISH", "NEUTRAL"])
async def test_without_a_purchase_there_is_no_new_position(direction):
    assert (await rule(direction=direction)).position_percent == 0


@given(confidence=st.floats(0, 1), risks=st.integers(0, 30))
async def test_no_position_is_above_the_cap(confidence, risks):
    verdict = await rule(confidence=confidence, risk_factors=["risk"] * risks)
    assert 0 <= verdict.position_percent <= 0.3


async def test_a_purchase_names_its_prices_as_numbers_and_in_words():
    verdict = await rule(evidence=PRICED)
    assert verdict.levels.model_dump() == {"entry": 10.0, "stop": 9.0, "target": 12.2}
    assert verdict.entry_strategy == (
        "Build the position in parts, up to 16% of capital. Reference price 10.00."
    )
    assert verdict.stop_loss == "Leave on a close below 9.00."
    assert verdict.take_profit == "Take profit in parts around 12.20."
    assert verdict.time_horizon == (
        "Medium term: weeks to months, shorter if the stop or the target is reached."
    )


async def test_a_sale_names_what_would_refute_it():
    verdict = await rule(direction="BEARISH", evidence=PRICED)
    assert verdict.levels.model_dump() == {"entry": 10.0, "stop": 12.2, "target": 8.5}
    assert verdict.entry_strategy == "Sell what is held and open nothing new. Reference price 10.00."
    assert verdict.stop_loss == "A close above 12.20 refutes the bearish view; look again then."
    assert verdict.take_profit == "Downside target 8.50; no buying back before that."


async def test_without_price_evidence_the_levels_are_unknown_and_said_to_be():
    verdict = await rule(evidence=evidence(atr_value=0.5))
    assert verdict.levels.model_dump() == {"entry": None, "stop": None, "target": None}
    missing = "The price evidence for this level was not available, so none is given."
    assert verdict.entry_strategy == f"Build the position in parts, up to 16% of capital. {missing}"
    assert verdict.stop_loss == verdict.take_profit == missing


async def test_the_risk_warnings_are_the_debates():
    assert (await rule(risk_factors=["a", "b", "c"])).risk_warnings == ["a", "b", "c"]


async def test_too_few_risks_are_joined_by_the_disagreement_and_the_limits_of_the_data():
    disagreement = "The experts disagree: X against Y"
    limits = "The verdict rests on the experts' summaries and the evidence listed, and knows nothing that came later."
    unnamed = "A risk that no expert named may still exist."
    assert (await rule(risk_factors=["a"], key_disagreements=["X against Y"])).risk_warnings == [
        "a",
        disagreement,
    ]
    assert (await rule(risk_factors=[], key_disagreements=["X against Y"])).risk_warnings == [
        disagreement,
        limits,
    ]
    assert (await rule(risk_factors=["a"])).risk_warnings == ["a", limits]
    assert (await rule(risk_factors=[])).risk_warnings == [limits, unnamed]


async def test_an_expert_that_could_not_be_heard_is_a_warning():
    verdict = await rule(experts_asked=5, experts_heard=3)
    assert verdict.risk_warnings[-1] == (
        "Only 3 of the 5 experts asked could be heard; the verdict rests on an incomplete panel."
    )
    assert len((await rule(experts_asked=5, experts_heard=5)).risk_warnings) == 2


async def test_the_reasoning_names_direction_confidence_both_theses_and_how_they_were_weighed():
    assert (await rule(key_disagreements=["X against Y", "Z against Y"])).reasoning == (
        "The debate ended BULLISH with confidence 0.80. Direction and confidence are enough to buy.\n"
        "The bull: Margins rose to 31.5%.\n"
        "The bear: The price is 2.4 times book.\n"
        "How it was weighed: The net is +0.60.\n"
        "Main disagreements:\n- X against Y\n- Z against Y"
    )
    assert (await rule()).reasoning.endswith("No expert disagrees with another about the direction.")


async def test_the_narrative_tells_the_whole_verdict():
    verdict = await rule(evidence=PRICED)
    assert verdict.narrative_report == (
        "Verdict on 900001.DEMO: BUY, new position 16%, confidence 0.80.\n"
        f"What to do: {verdict.entry_strategy}\n"
        f"Stop: {verdict.stop_loss}\n"
        f"Target: {verdict.take_profit}\n"
        f"Horizon: {verdict.time_horizon}\n\n"
        f"{verdict.reasoning}\n\n"
        "Risks:\n- Technical analyst: a close below 9.40\n- Macro intelligence: rates rise"
    )


async def test_a_chinese_verdict_is_chinese_but_for_its_literals():
    verdict = await rule(direction="NEUTRAL", confidence=0.52, evidence=PRICED, locale="zh-CN")
    assert verdict.entry_strategy == "不新开仓，已有持仓继续持有。参考价 10.00。"
    assert verdict.stop_loss == "已有持仓在收盘价跌破 9.00 时重新评估。"
    assert verdict.reasoning.startswith(
        "辩论结论为 NEUTRAL，置信度 0.52：方向不明或把握不足，不足以支持交易。\n多方论点：Margins rose"
    )
    assert verdict.narrative_report.startswith(
        "900001.DEMO 裁决：HOLD，新开仓位 0%，置信度 0.52。\n操作：不新开仓"
    )


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
    given = {*_numbers(a_debate(**debate).model_dump_json()), *(round(number, 2) for number in ruled)}
    assert _numbers(verdict.narrative_report) <= given


def _numbers(text: str) -> set[float]:
    return {float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)}

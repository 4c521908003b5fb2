"""The rubric debate: exact outcomes, from five experts down to one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.modules.debate.application.debate_service import DebateInput, DebateOutcomeDTO, UnknownSignal
from moot.modules.debate.container import DebateContainer
from moot.shared.domain.experts import STANCES
from tests.fakes.debate import BY_RULE, CATALYST, FINANCIAL, MACRO, TECHNICAL, VALUATION, findings, found

PANEL = {
    TECHNICAL: found("BULLISH", 0.8, "Price is above the 20-day average.", "A close below 9.40."),
    FINANCIAL: found("STRONG_BULLISH", 0.6, "ROIC is 18.2%.", "Receivables grow."),
    VALUATION: found("Overvalued", 0.7, "PE is at its 91st percentile.", "Multiples fall."),
    MACRO: found("Favorable (有利)", 0.5, "Liquidity is ample.", "Policy turns."),
    CATALYST: found("Neutral (中性)", 0.4, "No event is near.", ""),
}
FLIPPED = {
    "STRONG_BULLISH": "STRONG_BEARISH",
    "BULLISH": "BEARISH",
    "NEUTRAL": "NEUTRAL",
    "Undervalued": "Overvalued",
    "Fair": "Fair",
    "Favorable (有利)": "Unfavorable (不利)",
    "Positive (正面催化)": "Negative (负面催化)",
    "Neutral (中性)": "Neutral (中性)",
}
FLIPPED |= {there: here for here, there in FLIPPED.items()}
OPPOSITE = {"BULLISH": "BEARISH", "BEARISH": "BULLISH", "NEUTRAL": "NEUTRAL"}
PANELS = st.dictionaries(
    st.sampled_from([TECHNICAL, FINANCIAL, VALUATION, MACRO, CATALYST]),
    st.builds(
        found, st.sampled_from(list(STANCES)), st.floats(0, 1), st.just("r"), st.sampled_from(["", "w"])
    ),
    min_size=1,
)


async def hold(debate: DebateInput) -> DebateOutcomeDTO:
    return await DebateContainer(*BY_RULE).debate_service().run(debate)


async def test_five_experts_are_weighed_and_the_arithmetic_is_shown():
    outcome = await hold(findings(PANEL))
    assert (outcome.direction, outcome.confidence, outcome.engine) == ("BULLISH", 0.6, "rubric")
    assert outcome.experts == [TECHNICAL, FINANCIAL, VALUATION, MACRO, CATALYST]
    assert outcome.conflict_resolution == (
        "Each expert weighs stance × confidence: Financial auditor +1.00 × 0.60 = +0.60, "
        "Technical analyst +0.70 × 0.80 = +0.56, Valuation modeler -0.70 × 0.70 = -0.49, "
        "Macro intelligence +0.70 × 0.50 = +0.35, Catalyst detective +0.00 × 0.40 = +0.00. "
        "Averaged over all experts heard (5), the bull carries 0.30 and the bear 0.10. The net is +0.20; "
        "less than 0.15 either way counts as neutral. The outcome is BULLISH with confidence 0.60."
    )


async def test_each_side_argues_from_its_experts_the_strongest_first():
    outcome = await hold(findings(PANEL))
    technical = "Technical analyst [BULLISH, 0.80]: Price is above the 20-day average."
    financial = "Financial auditor [STRONG_BULLISH, 0.60]: ROIC is 18.2%."
    macro = "Macro intelligence [Favorable (有利), 0.50]: Liquidity is ample."
    valuation = "Valuation modeler [Overvalued, 0.70]: PE is at its 91st percentile."
    assert outcome.bull_case.model_dump() == {
        "core_thesis": f"The strongest bullish finding: {financial}",
        "supporting_arguments": [financial, technical, macro],
        "acknowledged_risks": ["Valuation modeler: Multiples fall."],
    }
    assert outcome.bear_case.model_dump() == {
        "core_thesis": f"The strongest bearish finding: {valuation}",
        "supporting_arguments": [valuation],
        "acknowledged_strengths": [financial, technical, macro],
    }


async def test_the_bulls_price_catalysts_come_from_the_experts_who_watch_events():
    told = (await hold(findings(PANEL))).narrative_report
    assert (
        "Price catalysts:\n- Macro intelligence [Favorable (有利), 0.50]: Liquidity is ample.\n\nThe bear"
        in told
    )


async def test_the_disagreement_names_who_with_whom_and_how_sure_they_are():
    assert (await hold(findings(PANEL))).key_disagreements == [
        "Valuation modeler [Overvalued, 0.70] disagrees with Financial auditor [STRONG_BULLISH, 0.60], "
        "Technical analyst [BULLISH, 0.80], Macro intelligence [Favorable (有利), 0.50]"
    ]


async def test_the_risk_matrix_has_a_row_for_each_warning_and_one_for_the_disagreement():
    outcome = await hold(findings(PANEL))
    assert [(row.risk, row.probability, row.impact) for row in outcome.risk_matrix] == [
        ("Financial auditor: Receivables grow.", "LOW", "MEDIUM"),
        ("Technical analyst: A close below 9.40.", "LOW", "HIGH"),
        ("Valuation modeler: Multiples fall.", "HIGH", "HIGH"),
        ("Macro intelligence: Policy turns.", "LOW", "MEDIUM"),
        (
            "The experts disagree about the direction (Valuation modeler against Financial auditor, "
            "Technical analyst, Macro intelligence), so the outcome may be on the wrong side",
            "MEDIUM",
            "HIGH",
        ),
    ]
    assert (
        outcome.risk_matrix[1].mitigation == "Set a stop at the level that refutes the view, and keep to it."
    )
    assert outcome.risk_matrix[4].mitigation == "Take a smaller position until new data settle the matter."


async def test_a_warning_that_two_experts_share_is_one_risk_as_likely_as_the_gloomier_of_them_thinks():
    outcome = await hold(
        findings(
            {
                TECHNICAL: found("BULLISH", 0.3, risk_warning="Demand falls."),
                MACRO: found("Unfavorable (不利)", 0.9, risk_warning="Demand falls. "),
            }
        )
    )
    row, _ = outcome.risk_matrix
    assert (row.risk, row.probability, row.impact) == (
        "Macro intelligence, Technical analyst: Demand falls.",
        "HIGH",
        "HIGH",
    )


async def test_evenly_matched_sides_end_neutral_near_even_odds():
    outcome = await hold(findings({TECHNICAL: found("BULLISH", 0.8), VALUATION: found("Overvalued", 0.6)}))
    assert (outcome.direction, outcome.confidence) == ("NEUTRAL", 0.54)
    assert (outcome.risk_matrix[-1].probability, outcome.risk_matrix[-1].impact) == ("HIGH", "MEDIUM")


@pytest.mark.parametrize(
    ("confidence", "direction", "certainty"),
    [(0.2, "NEUTRAL", 0.57), (0.22, "BULLISH", 0.57), (1.0, "BULLISH", 0.85)],
)
async def test_one_expert_alone_decides_when_it_leaves_the_neutral_band(confidence, direction, certainty):
    outcome = await hold(findings({TECHNICAL: found("BULLISH", confidence)}))
    assert (outcome.direction, outcome.confidence) == (direction, certainty)
    assert outcome.experts == [TECHNICAL]
    assert outcome.key_disagreements == outcome.risk_matrix == []


async def test_experts_who_see_neither_side_leave_the_debate_neutral():
    outcome = await hold(findings({VALUATION: found("Fair", 0.9), TECHNICAL: found("NEUTRAL", 0.8)}))
    assert (outcome.direction, outcome.confidence) == ("NEUTRAL", 0.5)


async def test_a_bear_nobody_backs_says_so_and_has_only_the_risks_the_others_name():
    outcome = await hold(findings({TECHNICAL: PANEL[TECHNICAL], MACRO: PANEL[MACRO]}))
    assert outcome.bear_case.core_thesis == (
        "No expert heard takes the bearish side; this case has only the risks that the others name."
    )
    assert outcome.bear_case.supporting_arguments == [
        "Technical analyst: A close below 9.40.",
        "Macro intelligence: Policy turns.",
    ]
    assert "The bear (weight 0.00)" in outcome.narrative_report


async def test_a_bull_nobody_backs_says_so_and_leans_on_the_undecided_alone():
    outcome = await hold(findings({VALUATION: PANEL[VALUATION], CATALYST: PANEL[CATALYST]}))
    assert outcome.direction == "BEARISH"
    assert outcome.bull_case.core_thesis == (
        "No expert heard takes the bullish side, so this case carries no weight of its own."
    )
    assert outcome.bull_case.supporting_arguments == [
        "Catalyst detective [Neutral (中性), 0.40]: No event is near."
    ]
    assert outcome.bear_case.acknowledged_strengths == []
    assert "The bull (weight 0.00)" in outcome.narrative_report


async def test_a_bull_everybody_backs_still_acknowledges_their_warnings():
    outcome = await hold(findings({TECHNICAL: PANEL[TECHNICAL]}))
    assert outcome.bull_case.acknowledged_risks == ["Technical analyst: A close below 9.40."]


async def test_the_narrative_tells_both_pleas_and_the_resolution():
    assert (await hold(findings({MACRO: PANEL[MACRO]}))).narrative_report == (
        "The bull (weight 0.35)\n"
        "The strongest bullish finding: Macro intelligence [Favorable (有利), 0.50]: Liquidity is ample.\n"
        "Arguments:\n- Macro intelligence [Favorable (有利), 0.50]: Liquidity is ample.\n"
        "Risks acknowledged:\n- Macro intelligence: Policy turns.\n"
        "Price catalysts:\n- Macro intelligence [Favorable (有利), 0.50]: Liquidity is ample.\n\n"
        "The bear (weight 0.00)\n"
        "No expert heard takes the bearish side; this case has only the risks that the others name.\n"
        "Arguments:\n- Macro intelligence: Policy turns.\n"
        "Strengths acknowledged:\n- Macro intelligence [Favorable (有利), 0.50]: Liquidity is ample.\n"
        "Risk triggers:\n- Macro intelligence: Policy turns.\n\n"
        "Resolution\n"
        "Each expert weighs stance × confidence: Macro intelligence +0.70 × 0.50 = +0.35. "
        "Averaged over all experts heard (1), the bull carries 0.35 and the bear 0.00. The net is +0.35; "
        "less than 0.15 either way counts as neutral. The outcome is BULLISH with confidence 0.68.\n"
        "Disagreements:\n- None.\n"
        "Risks:\n- [probability LOW, impact MEDIUM] Macro intelligence: Policy turns. | Mitigation: "
        "Follow policy and macro releases, and lower exposure if they turn."
    )


async def test_a_chinese_debate_is_chinese_but_for_its_literals():
    outcome = await hold(findings(PANEL, locale="zh-CN"))
    assert outcome.key_disagreements == [
        "估值建模师［Overvalued，0.70］的判断与财务审计员［STRONG_BULLISH，0.60］、"
        "技术分析师［BULLISH，0.80］、宏观情报员［Favorable (有利)，0.50］相反"
    ]
    assert outcome.risk_matrix[1].risk == "技术分析师：A close below 9.40."
    assert outcome.narrative_report.startswith(
        "多方陈词（权重 0.30）\n最有力的看多依据：财务审计员［STRONG_BULLISH，0.60］：ROIC is 18.2%.\n论据："
    )
    assert (outcome.direction, outcome.confidence) == ("BULLISH", 0.6)


async def test_an_unknown_signal_is_an_error_and_never_a_guess():
    with pytest.raises(UnknownSignal) as unknown:
        await hold(findings(PANEL | {VALUATION: found("Cheap", 0.9)}))
    assert unknown.value.code == "UNKNOWN_SIGNAL"
    assert unknown.value.details == {"expert": VALUATION, "signal": "Cheap"}
    assert unknown.value.in_locale("zh-CN").startswith("估值建模师给出的信号 Cheap 不在辩论可识别的范围内")
    assert "Undervalued, Fair, Overvalued" in str(unknown.value)


@pytest.mark.parametrize("signal", ["bullish", "Undervalued (低估)", "Favorable", "Unknown", ""])
async def test_a_signal_that_only_looks_like_a_known_one_is_unknown(signal):
    with pytest.raises(UnknownSignal):
        await hold(findings({TECHNICAL: found(signal, 0.9)}))


def test_every_signal_has_an_opposite_of_the_same_strength():
    assert {STANCES[FLIPPED[signal]] + stance for signal, stance in STANCES.items()} == {0.0}


@given(PANELS)
async def test_flipping_every_signal_flips_the_direction_and_nothing_else(panel):
    mirrored = {e: s.model_copy(update={"signal": FLIPPED[s.signal]}) for e, s in panel.items()}
    outcome, mirror = await hold(findings(panel)), await hold(findings(mirrored))
    assert (mirror.direction, mirror.confidence) == (OPPOSITE[outcome.direction], outcome.confidence)
    assert len(mirror.key_disagreements) == len(outcome.key_disagreements)


@given(PANELS)
async def test_the_order_in_which_experts_finish_changes_nothing_but_their_list(panel):
    forth, back = findings(panel), findings(dict(reversed(panel.items())))
    assert (await hold(forth)).model_copy(update={"experts": []}) == (await hold(back)).model_copy(
        update={"experts": []}
    )


@given(PANELS)
async def test_a_neutral_outcome_is_near_even_odds_and_a_direction_is_above(panel):
    outcome = await hold(findings(panel))
    low, high = (0.5, 0.57) if outcome.direction == "NEUTRAL" else (0.57, 1.0)
    assert low <= outcome.confidence <= high


async def test_every_number_in_the_text_was_given_or_is_in_the_arithmetic():
    debate = findings(PANEL)
    outcome = await hold(debate)
    given_numbers = _numbers(debate.model_dump_json())
    stated = outcome.model_copy(update={"conflict_resolution": "", "narrative_report": "", "confidence": 0.5})
    assert _numbers(stated.model_dump_json()) <= given_numbers
    assert _numbers(outcome.narrative_report) <= given_numbers | _numbers(outcome.conflict_resolution)


def _numbers(text: str) -> set[float]:
    return {float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)}

"""A debate by rule: what its outcome says is read off the argument, from five experts down to one."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.modules.debate.application.debate_service import DebateInput, DebateOutcomeDTO, UnknownSignal
from moot.modules.debate.container import DebateContainer
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import STANCES, ExpertType
from tests.fakes.debate import (
    AS_OF,
    BY_RULE,
    CATALYST,
    FINANCIAL,
    MACRO,
    TECHNICAL,
    VALUATION,
    claim,
    findings,
    found,
)

pytestmark = pytest.mark.usefixtures("even_weights")
PANEL = {
    TECHNICAL: found("BULLISH", 0.8, "Price is above the 20-day average.", "A close below 9.40."),
    FINANCIAL: found("STRONG_BULLISH", 0.6, "ROIC is 18.2%.", "Receivables grow."),
    VALUATION: found("Overvalued", 0.7, "PE is at its 91st percentile.", "Multiples fall."),
    MACRO: found("Favorable (有利)", 0.5, "Liquidity is ample.", "Policy turns."),
    CATALYST: found("Neutral (中性)", 0.4, "No event is near.", ""),
}
CLAIMS = [
    claim("technical.price_ma20.above", 0.5, "trend"),
    claim("technical.rsi.overbought", -0.25, "momentum"),
    claim("technical.obv.rising", 0.25, "volume"),
    claim("financial.profit_growth.surge", 0.5, "growth"),
    claim("financial.cash_backing.solid", 0.5, "earnings_quality"),
    claim("financial.leverage.extreme", -0.5, "solvency"),
    claim("valuation.pe.dear", -0.5, "price"),
    claim("valuation.roe.good", 0.5, "quality"),
    claim("macro.prosperity.strong", 0.75, "industry"),
    claim("macro.lpr.raised", -0.5, "monetary"),
    claim("catalyst.profit_up", 0.5, "earnings", reported=True),
]
EVIDENCE = [
    Evidence(id=id_, value=value, unit="CNY", source="demo", as_of=AS_OF)
    for id_, value in {
        "technical.support": 9.4,
        "technical.resistance": 11.2,
        "financial.roic_series.2025Q4": 18.2,
    }.items()
]
FULL = findings(PANEL, claims=CLAIMS, evidence=EVIDENCE)
CLEAR = findings(
    PANEL,
    claims=[
        *(c for c in CLAIMS if c.dimension not in ("monetary", "price")),
        claim("macro.pmi.brisk", 0.75, "economy"),
        claim("catalyst.product", 0.75, "company"),
    ],
    evidence=EVIDENCE,
)
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


def sentences(*texts: str) -> Counter[str]:
    """Those of twenty characters or more."""
    parts = (part.strip() for text in texts for part in re.split(r"(?<=[。；.;])\s*|\n", text))
    return Counter(part for part in parts if len(part) >= 20)


async def test_each_case_is_its_strongest_claims_with_their_answers():
    outcome = await hold(FULL)
    assert (
        outcome.bull_case.core_thesis == "macro.prosperity.strong holds. financial.profit_growth.surge holds."
    )
    assert outcome.bull_case.supporting_arguments[:3] == [
        "macro.prosperity.strong holds. [0.75, unanswered]",
        "Reported: catalyst.profit_up holds. [0.58, unanswered]",
        "financial.profit_growth.surge holds. [0.58, unanswered]",
    ]
    assert (
        "valuation.pe.dear holds. [0.50 → 0.21] Answered by Growth: Earnings grow fast enough to carry part "
        in (" ".join(outcome.bear_case.supporting_arguments))
    )


async def test_each_side_acknowledges_what_the_other_claims_and_nobody_answers():
    outcome = await hold(FULL)
    assert outcome.bull_case.acknowledged_risks == [
        "macro.lpr.raised holds.",
        "financial.leverage.extreme holds.",
        "technical.rsi.overbought holds.",
    ]
    assert len(outcome.bear_case.acknowledged_strengths) == 3


async def test_a_disagreement_is_two_claims_why_they_clash_and_which_prevails():
    assert (
        "“valuation.pe.dear holds.” (0.21) against “financial.profit_growth.surge holds.” (0.58, which prevails): "
        in ((await hold(FULL)).key_disagreements[0])
    )


async def test_risks_are_what_would_weaken_the_outcome_with_the_level_or_date_to_watch():
    outcome = await hold(CLEAR)
    assert outcome.direction == "BULLISH"
    watched = {row.risk: (row.probability, row.impact, row.mitigation) for row in outcome.risk_matrix}
    assert watched["technical.rsi.overbought holds."] == (
        "MEDIUM",
        "MEDIUM",
        "A close below support at CNY 9.40 refutes a rise, one above resistance at CNY 11.20 a fall.",
    )
    assert watched["financial.leverage.extreme holds."][2] == (
        "Check it against the report for 2026Q1, and add nothing before."
    )
    assert len(watched) == 5


async def test_a_share_that_is_hard_to_sell_is_no_matter_of_price_levels():
    thin = claim("technical.liquidity.stuck", -0.9, "volume")
    outcome = await hold(CLEAR.model_copy(update={"claims": [*CLEAR.claims, thin]}))
    (told,) = (row.mitigation for row in outcome.risk_matrix if "technical.liquidity" in row.risk)
    assert told == "Hold no more than can be sold within a few sessions."


async def test_few_experts_leave_three_risks_where_they_claim_enough():
    claims = [one for one in CLAIMS if one.expert in (TECHNICAL, FINANCIAL)]
    outcome = await hold(findings({TECHNICAL: PANEL[TECHNICAL], FINANCIAL: PANEL[FINANCIAL]}, claims=claims))
    assert len(outcome.risk_matrix) == 3


async def test_the_resolution_says_which_dimensions_pulled_how_far_and_what_decides():
    told = (await hold(CLEAR)).conflict_resolution
    assert "For buying: Company events +0.75, Economy +0.75, State of the industry +0.75." in told
    assert "and less than 0.10 is no direction; the outcome is bullish. " in told
    assert "Without their claims the outcome would be neutral." in told
    assert "probab" not in told and "weight" not in told


@pytest.mark.parametrize("locale", ["zh-CN", "en-US"])
async def test_no_sentence_stands_twice_in_a_text_of_the_outcome(locale):
    outcome = await hold(FULL.model_copy(update={"locale": locale}))
    for texts in (
        [outcome.narrative_report],
        [*outcome.bull_case.supporting_arguments, *outcome.bear_case.supporting_arguments],
        outcome.key_disagreements,
        [f"{row.risk}\n{row.mitigation}" for row in outcome.risk_matrix],
    ):
        assert max(sentences(*texts).values(), default=1) == 1
    assert not any(summary.reasoning in outcome.narrative_report for summary in PANEL.values())


async def test_what_others_only_reported_is_marked_and_leads_no_thesis():
    outcome = await hold(FULL)
    reported = [a for a in outcome.bull_case.supporting_arguments if "catalyst.profit_up" in a]
    assert reported and all(argument.startswith("Reported: ") for argument in reported)
    assert "catalyst" not in outcome.bull_case.core_thesis


async def test_an_expert_without_claims_is_heard_by_its_view():
    outcome = await hold(findings(PANEL))
    views = {one.id: (one.side, round(one.strength, 2)) for one in outcome.argument.claims}
    assert views == {
        "technical.view": ("for", 0.56),
        "financial.view": ("for", 0.6),
        "valuation.view": ("against", 0.49),
        "macro.view": ("for", 0.35),
        "catalyst.view": ("neither", 0.0),
    }
    assert (outcome.direction, outcome.confidence) == ("BULLISH", 0.67)
    assert outcome.bull_case.core_thesis == (
        "Financial auditor is strongly bullish on the whole: ROIC is 18.2%. "
        "Technical analyst is bullish on the whole: Price is above the 20-day average."
    )


async def test_a_side_without_claims_says_so():
    outcome = await hold(findings({TECHNICAL: PANEL[TECHNICAL]}))
    assert outcome.bear_case.core_thesis == "Nobody claims anything against buying."
    assert outcome.bear_case.supporting_arguments == outcome.key_disagreements == []
    assert "Nobody claims anything against buying." in outcome.narrative_report


async def test_one_expert_alone_never_decides_and_the_silent_are_named():
    outcome = await hold(findings({FINANCIAL: found("STRONG_BULLISH", 1.0)}))
    assert (outcome.direction, outcome.confidence, outcome.argument.decisive) == ("NEUTRAL", 0.5, [])
    assert (
        "Not heard, so that 0.80 of any lean is counted as doubt: Technical analyst, Valuation modeler, "
        "Macro intelligence, Catalyst detective."
    ) in outcome.narrative_report


async def test_a_chinese_debate_is_chinese():
    claims = [one.model_copy(update={"says": {"zh-CN": "此处成立。"}}) for one in CLAIMS]
    outcome = await hold(FULL.model_copy(update={"locale": "zh-CN", "claims": claims}))
    told = " ".join(
        [
            outcome.narrative_report,
            outcome.conflict_resolution,
            *outcome.key_disagreements,
            *outcome.bull_case.supporting_arguments,
            *(f"{row.risk}{row.mitigation}" for row in outcome.risk_matrix),
        ]
    )
    assert re.findall(r"[A-Za-z]{2,}", told) == []


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
    assert mirror.argument.decisive == outcome.argument.decisive


@given(PANELS)
async def test_the_order_in_which_experts_finish_changes_no_word(panel):
    told = {"direction", "confidence", "conflict_resolution", "narrative_report", "risk_matrix", "bull_case"}
    forth = await hold(findings(panel, as_of=AS_OF))
    back = await hold(findings(dict(reversed(panel.items())), as_of=AS_OF))
    assert forth.model_dump(include=told) == back.model_dump(include=told)


@given(PANELS)
async def test_a_neutral_outcome_is_near_even_odds_and_a_direction_is_above(panel):
    outcome = await hold(findings(panel))
    low, high = (0.5, 0.6) if outcome.direction == "NEUTRAL" else (0.6, 1.0)
    assert low <= outcome.confidence <= high
    assert set(outcome.argument.heard) == set(map(ExpertType, panel))

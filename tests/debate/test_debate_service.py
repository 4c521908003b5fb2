"""The debate's door: both sides at once, then the resolution; errors pass; shapes are refused at the edge."""

import asyncio

import pytest
from pydantic import ValidationError

from moot.modules.debate.application.debate_service import (
    DebateInput,
    DebateOutcomeDTO,
    DebateService,
    ExpertSummary,
)
from moot.modules.debate.domain.debate import Resolution, RiskItem
from moot.shared.domain.evidence import Evidence
from tests.fakes.clock import PATIENCE
from tests.fakes.debate import TECHNICAL, VALUATION, FakeAdvocate, FakeResolver, argument, findings, found

BULL, BEAR = argument("BULLISH"), argument("BEARISH")
PRICE = Evidence(
    id="technical.current_price", value=10.0, unit="CNY", source="bars", as_of="2026-01-09T08:00:00Z"
)
DEBATE = findings(
    {VALUATION: found("Fair", 0.5), TECHNICAL: found("BULLISH", 0.7)}, evidence=[PRICE], locale="zh-CN"
)


async def test_the_outcome_holds_both_cases_the_resolution_and_all_three_narratives():
    outcome = await DebateService(FakeAdvocate(BULL), FakeAdvocate(BEAR), FakeResolver()).run(DEBATE)
    assert outcome.model_dump() == {
        "symbol": "900001.DEMO",
        "direction": "NEUTRAL",
        "confidence": 0.5,
        "bull_case": {
            "core_thesis": "BULLISH thesis",
            "supporting_arguments": ["BULLISH argument"],
            "acknowledged_risks": ["BULLISH concession"],
        },
        "bear_case": {
            "core_thesis": "BEARISH thesis",
            "supporting_arguments": ["BEARISH argument"],
            "acknowledged_strengths": ["BEARISH concession"],
        },
        "risk_matrix": [],
        "key_disagreements": [],
        "conflict_resolution": "BULLISH thesis against BEARISH thesis",
        "narrative_report": "BULLISH story\n\nBEARISH story\n\nresolution story",
        "evidence": [PRICE.model_dump()],
        "experts": [VALUATION, TECHNICAL],
        "engine": "llm",
        "bull_case_summary": "",
        "bear_case_summary": "",
        "grounding": None,
        "warnings": [],
    }


async def test_bull_and_bear_argue_at_the_same_time():
    both = asyncio.Barrier(2)
    service = DebateService(FakeAdvocate(BULL, both), FakeAdvocate(BEAR, both), FakeResolver())
    assert isinstance(await asyncio.wait_for(service.run(DEBATE), timeout=PATIENCE), DebateOutcomeDTO)


@pytest.mark.parametrize(
    "service",
    [
        DebateService(FakeAdvocate(TimeoutError("too slow")), FakeAdvocate(BEAR), FakeResolver()),
        DebateService(FakeAdvocate(BULL), FakeAdvocate(TimeoutError("too slow")), FakeResolver()),
        DebateService(FakeAdvocate(BULL), FakeAdvocate(BEAR), FakeResolver(TimeoutError("too slow"))),
    ],
    ids=["bull", "bear", "resolver"],
)
async def test_what_anyone_raises_passes_through(service):
    with pytest.raises(TimeoutError, match="too slow"):
        await service.run(DEBATE)


def test_an_expert_summary_has_exactly_four_fields():
    assert list(ExpertSummary.model_fields) == ["signal", "confidence", "reasoning", "risk_warning"]
    with pytest.raises(ValidationError, match="technical_indicators"):
        ExpertSummary.model_validate({**found("BULLISH", 0.7).model_dump(), "technical_indicators": {}})


@pytest.mark.parametrize("confidence", [-0.01, 1.01, float("nan")])
@pytest.mark.accepts("W17")
def test_a_confidence_outside_its_range_is_refused(confidence):
    with pytest.raises(ValidationError):
        found("BULLISH", confidence)
    with pytest.raises(ValidationError):
        argument("BULLISH", confidence)


@pytest.mark.accepts("W17")
def test_a_direction_or_risk_level_outside_its_literals_is_refused():
    with pytest.raises(ValidationError):
        argument("NEUTRAL")
    with pytest.raises(ValidationError):
        RiskItem(risk="r", probability="VERY HIGH", impact="LOW", mitigation="m")
    with pytest.raises(ValidationError):
        Resolution(
            direction="SIDEWAYS",
            confidence=0.5,
            risk_matrix=[],
            key_disagreements=[],
            conflict_resolution="",
            narrative_report="",
            engine="rubric",
        )


def test_there_is_no_debate_without_an_expert():
    with pytest.raises(ValidationError):
        findings({})


def test_a_debate_without_a_language_is_held_in_chinese():
    assert (
        DebateInput(symbol="900001.DEMO", expert_summaries={TECHNICAL: found("BULLISH", 1)}).locale == "zh-CN"
    )

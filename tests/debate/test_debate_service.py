"""The debate's door: both sides at once, round by round; all that was said is weighed; bad shapes are refused."""

import asyncio

import pytest
from pydantic import ValidationError

from moot.modules.debate.application.debate_service import (
    DebateInput,
    DebateOutcomeDTO,
    DebateService,
    ExpertSummary,
)
from moot.modules.debate.domain.debate import RiskItem, Speech, Turn
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.grounding import Grounding
from tests.fakes.clock import PATIENCE
from tests.fakes.debate import (
    FINANCIAL,
    TECHNICAL,
    VALUATION,
    FakeNarrator,
    FakePleader,
    claim,
    findings,
    found,
    relation,
)

pytestmark = pytest.mark.usefixtures("even_weights")
PRICE = Evidence(
    id="technical.current_price", value=10.0, unit="CNY", source="bars", as_of="2026-01-09T08:00:00Z"
)
CHEAP, FALLING = claim("valuation.pe.cheap", 0.5), claim("financial.profit_growth.slump", -0.5, "growth")
DEBATE = findings(
    {VALUATION: found("Undervalued", 0.5), FINANCIAL: found("BEARISH", 0.7)},
    claims=[CHEAP, FALLING],
    evidence=[PRICE],
)
DOUBT = claim("technical.patterns.bearish", -0.25, "range", id="debate.bear.1", by="llm")
REPLY = relation("debate.bear.1", "valuation.pe", by="llm", scheme="model")
LLM = {"engine": "llm", "core_thesis": "Because.", "narrative_report": "A story."}


async def run(
    bull: FakePleader, bear: FakePleader, narrator: FakeNarrator | None = None, rounds: int = 1
) -> DebateOutcomeDTO:
    debate = DEBATE.model_copy(update={"rounds": rounds})
    return await DebateService(bull, bear, narrator or FakeNarrator()).run(debate)


async def test_by_rule_the_experts_claims_are_related_by_schemes_and_weighed():
    outcome = await run(FakePleader(), FakePleader())
    argument = outcome.argument
    assert [c.id for c in argument.claims] == ["valuation.pe", "financial.profit_growth"]
    assert [(r.source, r.target) for r in argument.relations] == [("financial.profit_growth", "valuation.pe")]
    assert argument.strengths == {"valuation.pe": 0.25, "financial.profit_growth": 0.5}
    assert (outcome.direction, outcome.confidence, outcome.engine) == ("NEUTRAL", 0.5, "rubric")
    assert (outcome.experts, outcome.evidence) == ([VALUATION, FINANCIAL], [PRICE])
    assert outcome.warnings == [] and outcome.grounding is None


async def test_by_rule_there_is_one_round_however_many_were_asked_for():
    bull, bear = FakePleader(), FakePleader()
    await run(bull, bear, rounds=3)
    assert len(bull.given) == len(bear.given) == 1


async def test_a_model_argues_on_what_was_said_before_and_the_second_round_answers_the_first():
    first, second = Turn(**LLM), Turn(claims=[DOUBT], relations=[REPLY], **LLM)
    bull, bear = FakePleader(first), FakePleader(second, Turn(**LLM))
    narrator = FakeNarrator()
    outcome = await run(bull, bear, narrator, rounds=2)
    (opening, nobody), (later, said) = bull.given
    assert nobody is None and said == second
    assert "debate.bear.1" not in opening.strengths
    assert later.strengths["valuation.pe"] == pytest.approx(0.5 * (1 - (1 - 0.5 * 0.75)), abs=1e-9)
    assert bear.given[1][1] == first
    assert outcome.argument == later == narrator.given[0][0]
    assert narrator.given[0][2].claims == [DOUBT]


async def test_what_models_add_never_replaces_what_stands_nor_points_nowhere():
    louder = CHEAP.model_copy(update={"strength": 1.0})
    stray, again = (
        relation("debate.bear.1", "nobody.said"),
        relation("financial.profit_growth", "valuation.pe"),
    )
    itself = relation("valuation.pe", "valuation.pe", "support")
    bull = FakePleader(Turn(claims=[louder], relations=[stray, again, itself], **LLM))
    outcome = await run(bull, FakePleader(Turn(**LLM)))
    assert outcome.argument == (await run(FakePleader(), FakePleader())).argument


async def test_the_outcome_is_the_arguments_and_the_words_are_the_speakers():
    speech = Speech(
        bull_case_summary="up",
        bear_case_summary="down",
        conflict_resolution="settled",
        narrative_report="The whole story.",
        engine="llm",
        grounding=Grounding(score=1.0, checked=1, offenders=[]),
        warnings=["odd"],
    )
    spoken = await run(FakePleader(Turn(**LLM)), FakePleader(Turn(**LLM)), FakeNarrator(speech))
    by_rule = await run(FakePleader(), FakePleader())
    words = {"bull_case_summary": "up", "bear_case_summary": "down", "conflict_resolution": "settled"}
    words |= {"narrative_report": "The whole story.", "engine": "llm", "warnings": ["The resolution: odd"]}
    assert spoken.model_dump(include=set(words)) == words
    assert spoken.bull_case.core_thesis == spoken.bear_case.core_thesis == "Because."
    assert spoken.grounding == speech.grounding
    computed = {"direction", "confidence", "risk_matrix", "key_disagreements", "argument"}
    assert spoken.model_dump(include=computed) == by_rule.model_dump(include=computed)


async def test_who_spoke_by_rule_among_models_is_named():
    outcome = await run(FakePleader(Turn(**LLM)), FakePleader())
    assert outcome.engine == "rubric"
    assert outcome.warnings == [
        "No model spoke for: The bear's plea, The resolution. This part was made by rule."
    ]
    assert outcome.narrative_report.startswith("The motion was that")


async def test_bull_and_bear_argue_at_the_same_time():
    both = asyncio.Barrier(2)
    service = DebateService(FakePleader(barrier=both), FakePleader(barrier=both), FakeNarrator())
    assert isinstance(await asyncio.wait_for(service.run(DEBATE), timeout=PATIENCE), DebateOutcomeDTO)


@pytest.mark.parametrize("who", ["bull", "bear", "narrator"])
async def test_what_anyone_raises_passes_through(who):
    late = TimeoutError("too slow")
    bull, bear = (FakePleader(late) if role == who else FakePleader() for role in ("bull", "bear"))
    with pytest.raises(TimeoutError, match="too slow"):
        await run(bull, bear, FakeNarrator(late if who == "narrator" else None))


def test_an_expert_summary_has_exactly_four_fields():
    assert list(ExpertSummary.model_fields) == ["signal", "confidence", "reasoning", "risk_warning"]
    with pytest.raises(ValidationError, match="technical_indicators"):
        ExpertSummary.model_validate({**found("BULLISH", 0.7).model_dump(), "technical_indicators": {}})


@pytest.mark.parametrize("confidence", [-0.01, 1.01, float("nan")])
@pytest.mark.accepts("W17")
async def test_a_confidence_outside_its_range_is_refused(confidence):
    with pytest.raises(ValidationError):
        found("BULLISH", confidence)
    outcome = (await run(FakePleader(), FakePleader())).model_dump()
    with pytest.raises(ValidationError):
        DebateOutcomeDTO.model_validate(outcome | {"confidence": confidence})


@pytest.mark.accepts("W17")
async def test_a_direction_or_risk_level_outside_its_literals_is_refused():
    with pytest.raises(ValidationError):
        RiskItem(risk="r", probability="VERY HIGH", impact="LOW", mitigation="m")
    outcome = (await run(FakePleader(), FakePleader())).model_dump()
    with pytest.raises(ValidationError):
        DebateOutcomeDTO.model_validate(outcome | {"direction": "SIDEWAYS"})


def test_there_is_no_debate_without_an_expert():
    with pytest.raises(ValidationError):
        findings({})


def test_a_debate_without_a_language_is_held_in_chinese():
    assert (
        DebateInput(symbol="900001.DEMO", expert_summaries={TECHNICAL: found("BULLISH", 1)}).locale == "zh-CN"
    )

"""Bull, bear and resolution by a model: what they are shown, what they may answer, and what a bad answer leads to."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from moot.modules.debate.application.debate_service import (
    DebateInput,
    DebateOutcomeDTO,
    DebateService,
    UnknownSignal,
)
from moot.modules.debate.container import DebateContainer
from moot.modules.debate.domain.debate import Argument, Resolution, combine
from moot.modules.debate.infrastructure.debaters import PROMPTS
from moot.modules.llm_platform.application.speaker import EngineChoice, Speaker
from moot.modules.llm_platform.domain.chat import ChatMessage, ChatResult
from moot.modules.llm_platform.domain.exceptions import LLMOutputParseError, NoAvailableModel
from moot.shared.domain.errors import AppError
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.grounding import Grounding
from moot.shared.domain.messages import LOCALES
from tests.fakes.debate import (
    BY_RULE,
    CATALYST,
    TECHNICAL,
    VALUATION,
    FakeAdvocate,
    FakeResolver,
    argument,
    findings,
    found,
)
from tests.fakes.llm import FakeLLM, Said, spoken

BULL, BEAR, RESOLUTION = "bull_advocate", "bear_advocate", "resolution"
PRICE = Evidence(
    id="technical.current_price", value=10.52, unit="CNY", source="bars", as_of="2026-01-09T08:00:00Z"
)
PANELS = {
    "en-US": {
        VALUATION: found("Overvalued", 0.7, "The PE of 45.2 is high.", "Multiples may fall."),
        TECHNICAL: found(
            "STRONG_BULLISH", 0.8, "The price stands above its average of 9.87.", "9.41 is lost."
        ),
        CATALYST: found("Neutral (中性)", 0.4, "No event is near.", ""),
    },
    "zh-CN": {
        VALUATION: found("Overvalued", 0.7, "市盈率 45.2 偏高。", "估值可能回落。"),
        TECHNICAL: found("STRONG_BULLISH", 0.8, "价格高于均线 9.87。", "跌破 9.41。"),
        CATALYST: found("Neutral (中性)", 0.4, "近期没有事件。", ""),
    },
}
ANSWERS: dict[str, dict[str, dict[str, Any]]] = {
    "en-US": {
        BULL: {
            "direction": "BULLISH",
            "confidence": 0.7,
            "core_thesis": "At 10.52 the price holds well above its average.",
            "supporting_arguments": [
                {
                    "dimension": "Technicals",
                    "argument": "The trend is up.",
                    "evidence": "average of 9.87",
                    "strength": "HIGH",
                },
                {
                    "dimension": "Catalyst",
                    "argument": "Nothing bad is near.",
                    "evidence": "no event",
                    "strength": "LOW",
                },
            ],
            "acknowledged_risks": ["The stock is not cheap."],
            "price_catalysts": [],
            "narrative_report": "The bull's story: the trend carries the price.",
        },
        BEAR: {
            "direction": "BEARISH",
            "confidence": 0.4,
            "core_thesis": "A PE of 45.2 leaves no room for error.",
            "supporting_arguments": [
                {
                    "dimension": "Valuation",
                    "argument": "It is dear.",
                    "evidence": "PE 45.2",
                    "strength": "MEDIUM",
                }
            ],
            "acknowledged_strengths": ["The trend is up."],
            "risk_triggers": ["A close below 9.41."],
            "narrative_report": "The bear's story: the price asks too much.",
        },
        RESOLUTION: {
            "direction": "BULLISH",
            "confidence": 0.62,
            "bull_case_summary": "The trend is up.",
            "bear_case_summary": "The price is high.",
            "risk_matrix": [
                {
                    "risk": f"The {what} turns.",
                    "probability": "LOW",
                    "impact": "HIGH",
                    "mitigation": "Watch it.",
                }
                for what in ("trend", "market", "multiple")
            ],
            "key_disagreements": ["Whether the price is too high.", "How long the trend lasts."],
            "conflict_resolution": "The trend is a fact, the fall of the multiple a fear.",
            "narrative_report": "The resolver's story: the trend outweighs the price.",
        },
    },
    "zh-CN": {
        BULL: {
            "direction": "BULLISH",
            "confidence": 0.7,
            "core_thesis": "现价 10.52 稳居均线之上。",
            "supporting_arguments": [
                {
                    "dimension": "技术面",
                    "argument": "趋势向上。",
                    "evidence": "均线 9.87",
                    "strength": "HIGH",
                },
                {
                    "dimension": "催化",
                    "argument": "近期没有利空。",
                    "evidence": "没有事件",
                    "strength": "LOW",
                },
            ],
            "acknowledged_risks": ["估值并不便宜。"],
            "price_catalysts": [],
            "narrative_report": "多方陈词：趋势支撑价格。",
        },
        BEAR: {
            "direction": "BEARISH",
            "confidence": 0.4,
            "core_thesis": "市盈率 45.2 没有留下犯错的余地。",
            "supporting_arguments": [
                {
                    "dimension": "估值",
                    "argument": "价格偏贵。",
                    "evidence": "市盈率 45.2",
                    "strength": "MEDIUM",
                }
            ],
            "acknowledged_strengths": ["趋势向上。"],
            "risk_triggers": ["收盘价跌破 9.41。"],
            "narrative_report": "空方陈词：价格要求过高。",
        },
        RESOLUTION: {
            "direction": "BULLISH",
            "confidence": 0.62,
            "bull_case_summary": "趋势向上。",
            "bear_case_summary": "价格偏高。",
            "risk_matrix": [
                {
                    "risk": f"{what}可能转向。",
                    "probability": "LOW",
                    "impact": "HIGH",
                    "mitigation": "持续观察。",
                }
                for what in ("趋势", "市场", "估值")
            ],
            "key_disagreements": ["价格是否过高。", "趋势能持续多久。"],
            "conflict_resolution": "趋势是事实，估值回落只是担忧。",
            "narrative_report": "综合意见：趋势的分量重于价格。",
        },
    },
}
ARGUMENTS = {
    "en-US": [
        "[HIGH] Technicals: The trend is up. | Evidence: average of 9.87",
        "[LOW] Catalyst: Nothing bad is near. | Evidence: no event",
    ],
    "zh-CN": ["［HIGH］技术面：趋势向上。｜依据：均线 9.87", "［LOW］催化：近期没有利空。｜依据：没有事件"],
}
POINT = ANSWERS["en-US"][BULL]["supporting_arguments"][0]
ROW = ANSWERS["en-US"][RESOLUTION]["risk_matrix"][0]
BAD_ANSWERS = [
    (BULL, {"direction": "BEARISH"}),
    (BULL, {"direction": "NEUTRAL"}),
    (BULL, {"confidence": 1.2}),
    (BULL, {"core_thesis": "  "}),
    (BULL, {"supporting_arguments": []}),
    (BULL, {"supporting_arguments": ["The trend is up."]}),
    (BULL, {"supporting_arguments": [POINT | {"strength": "VERY HIGH"}]}),
    (BULL, {"supporting_arguments": [POINT | {"evidence": ""}]}),
    (BULL, {"acknowledged_risks": None}),
    (BEAR, {"direction": "BULLISH"}),
    (BEAR, {"acknowledged_strengths": [""]}),
    (BEAR, {"risk_triggers": "A close below 9.41."}),
    (RESOLUTION, {"direction": "UP"}),
    (RESOLUTION, {"direction": "NEUTRAL", "confidence": 0.9}),
    (RESOLUTION, {"direction": "NEUTRAL", "confidence": 0.39}),
    (RESOLUTION, {"risk_matrix": [ROW, ROW]}),
    (RESOLUTION, {"risk_matrix": [ROW, ROW, ROW | {"impact": "SEVERE"}]}),
    (RESOLUTION, {"risk_matrix": [ROW, ROW, ROW | {"mitigation": ""}]}),
    (RESOLUTION, {"key_disagreements": ["Whether the price is too high."]}),
    (RESOLUTION, {"conflict_resolution": ""}),
    (RESOLUTION, {"bull_case_summary": ""}),
    (
        RESOLUTION,
        {"core_thesis": "At 99.99 it is cheap.", "bear_case_summary": "It fell by 77.31%, to 123.45."},
    ),
    (BULL, {"core_thesis": "It earned 88.88 on sales of 777.7."}),
    (BEAR, ANSWERS["zh-CN"][BEAR]),
]


class Cast(FakeLLM):
    """One scripted model for each agent."""

    def __init__(self, **scripts: Said | Sequence[Said]) -> None:
        super().__init__("")
        self.agents = {
            agent: FakeLLM(*([said] if isinstance(said, str | Exception | ChatResult) else said))
            for agent, said in scripts.items()
        }

    async def chat(self, messages: Sequence[ChatMessage], *args: Any, **given: Any) -> ChatResult:
        return await self.agents[given["caller_agent"]].chat(messages, *args, **given)

    @property
    def calls(self) -> dict[str, int]:
        return {agent: len(llm.asked) for agent, llm in self.agents.items()}


def cast(locale: str = "en-US", **scripts: Said | Sequence[Said]) -> Cast:
    """Everybody answers well, but for those who are given another script."""
    good = {agent: said(answer) for agent, answer in ANSWERS[locale].items()}
    return Cast(**good | scripts)


def said(answer: dict[str, Any], **changes: Any) -> str:
    return json.dumps(answer | changes, ensure_ascii=False)


def a_panel(locale: str = "en-US") -> DebateInput:
    return findings(PANELS[locale], evidence=[PRICE], locale=locale)


async def hold(llm: FakeLLM, debate: DebateInput | None = None, **choice: Any) -> DebateOutcomeDTO:
    container = DebateContainer(EngineChoice(llm, **choice), Speaker(llm))
    return await container.debate_service().run(debate or a_panel())


async def by_rule(debate: DebateInput | None = None) -> DebateOutcomeDTO:
    return await DebateContainer(*BY_RULE).debate_service().run(debate or a_panel())


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.accepts("A2-13")
async def test_three_answers_make_the_debate_and_all_three_narratives_reach_the_outcome(locale):
    llm, (bull, bear, ruling) = cast(locale), ANSWERS[locale].values()
    outcome = await hold(llm, a_panel(locale))
    assert outcome.model_dump(exclude={"grounding", "warnings", "evidence"}) == {
        "symbol": "900001.DEMO",
        **ruling,
        "narrative_report": "\n\n".join(answer["narrative_report"] for answer in (bull, bear, ruling)),
        "bull_case": {
            "core_thesis": bull["core_thesis"],
            "supporting_arguments": ARGUMENTS[locale],
            "acknowledged_risks": bull["acknowledged_risks"],
        },
        "bear_case": {
            "core_thesis": bear["core_thesis"],
            "supporting_arguments": outcome.bear_case.supporting_arguments,
            "acknowledged_strengths": bear["acknowledged_strengths"],
        },
        "experts": [VALUATION, TECHNICAL, CATALYST],
        "engine": "llm",
    }
    assert llm.calls == {BULL: 1, BEAR: 1, RESOLUTION: 1}


@pytest.mark.parametrize("locale", LOCALES)
async def test_the_grounding_of_the_outcome_is_that_of_all_three(locale):
    outcome = await hold(cast(locale), a_panel(locale))
    assert outcome.grounding == Grounding(score=1.0, checked=4, offenders=[])


async def test_what_is_odd_about_a_text_is_told_in_the_outcome_with_whose_text_it_is():
    of_a_good_length = " ".join(["The trend carries the price."] * 40)
    good = {
        agent: said(answer, narrative_report=of_a_good_length) for agent, answer in ANSWERS["en-US"].items()
    }
    assert (await hold(cast(**good))).warnings == []
    outcome = await hold(cast(**good | {BEAR: said(ANSWERS["en-US"][BEAR], narrative_report="Too dear.")}))
    assert outcome.warnings == [
        "The bear's plea: The narrative report has 2 words; 150 to 400 were asked for."
    ]


@pytest.mark.parametrize(
    ("agent", "temperature"), [(BULL, 0.3), (BEAR, 0.3), (RESOLUTION, 0.2)], ids=[BULL, BEAR, RESOLUTION]
)
@pytest.mark.parametrize("locale", LOCALES)
async def test_each_agent_speaks_for_the_debate_in_its_own_role(agent, temperature, locale):
    llm = cast(locale)
    await hold(llm, a_panel(locale))
    (asked,) = llm.agents[agent].asked
    assert PROMPTS.text(agent, locale) in asked.system
    assert asked.given["caller_module"] == "debate"
    assert asked.given["temperature"] == temperature
    assert asked.response_schema is not None


async def test_the_advocates_are_shown_the_experts_the_strongest_first_and_the_evidence():
    llm = cast()
    await hold(llm)
    (bull,), (bear,) = llm.agents[BULL].asked, llm.agents[BEAR].asked
    for prompt in (bull.prompt, bear.prompt):
        assert (
            "### Technical analyst\n"
            "- Signal: STRONG_BULLISH\n"
            "- Confidence: 0.80\n"
            "- Reasoning: The price stands above its average of 9.87.\n"
            "- Risk warning: 9.41 is lost.\n\n"
            "### Valuation modeler\n"
        ) in prompt
        assert "- Risk warning: None." in prompt
        assert "technical.current_price" in prompt
        assert "10.52" in prompt


async def test_the_resolver_is_shown_the_experts_and_both_pleas():
    llm = cast()
    await hold(llm)
    (asked,) = llm.agents[RESOLUTION].asked
    assert "- Reasoning: The PE of 45.2 is high." in asked.prompt
    assert (
        "### The bear's plea (BEARISH)\n"
        "Its own confidence: 0.40\n"
        "Core thesis: A PE of 45.2 leaves no room for error.\n"
        "Arguments:\n"
        "- [MEDIUM] Valuation: It is dear. | Evidence: PE 45.2\n"
        "Grants the other side:\n"
        "- The trend is up.\n"
        "Triggers:\n"
        "- A close below 9.41."
    ) in asked.prompt
    assert "### The bull's plea (BULLISH)" in asked.prompt


async def test_braces_in_an_experts_words_are_shown_as_they_are():
    llm = cast()
    odd = PANELS["en-US"] | {TECHNICAL: found("BULLISH", 0.8, "{symbol} and {0}: 9.87.", "{9.41")}
    await hold(llm, findings(odd, evidence=[PRICE]))
    assert "- Reasoning: {symbol} and {0}: 9.87.\n- Risk warning: {9.41\n" in llm.agents[BULL].asked[0].prompt


@pytest.mark.parametrize(("agent", "changes"), BAD_ANSWERS)
@pytest.mark.accepts("W17")
async def test_a_bad_answer_can_be_repaired_once(agent, changes):
    good = said(ANSWERS["en-US"][agent])
    llm = cast(**{agent: [said(ANSWERS["en-US"][agent], **changes), good]})
    outcome = await hold(llm)
    assert outcome == (await hold(cast()))
    assert llm.calls[agent] == 2


@pytest.mark.parametrize(("agent", "changes"), BAD_ANSWERS)
@pytest.mark.accepts("W17")
async def test_an_answer_that_stays_bad_is_an_error_and_never_a_debate(agent, changes):
    llm = cast(**{agent: said(ANSWERS["en-US"][agent], **changes)})
    with pytest.raises(LLMOutputParseError) as failed:
        await hold(llm)
    assert failed.value.in_locale("zh-CN")
    assert llm.calls[agent] == 2


@pytest.mark.parametrize("agent", [BULL, BEAR, RESOLUTION])
@pytest.mark.parametrize("locale", LOCALES)
async def test_an_answer_that_was_cut_off_is_an_error(agent, locale):
    cut = spoken(said(ANSWERS[locale][agent])[:80], finish_reason="length")
    with pytest.raises(AppError):
        await hold(cast(locale, **{agent: cut}), a_panel(locale))


async def test_a_neutral_near_even_odds_is_accepted():
    outcome = await hold(
        cast(resolution=said(ANSWERS["en-US"][RESOLUTION], direction="NEUTRAL", confidence=0.4))
    )
    assert (outcome.direction, outcome.confidence) == ("NEUTRAL", 0.4)


@pytest.mark.accepts("A2-16")
async def test_a_missing_narrative_breaks_nothing():
    silent = {name: value for name, value in ANSWERS["en-US"][BEAR].items() if name != "narrative_report"}
    outcome = await hold(cast(bear_advocate=said(silent)))
    assert outcome.narrative_report == (
        "The bull's story: the trend carries the price.\n\nThe resolver's story: the trend outweighs the price."
    )


@pytest.mark.accepts("A2-14")
def test_everybody_who_speaks_has_a_text_field_for_the_narrative():
    for result in (Argument, Resolution, DebateOutcomeDTO):
        assert result.model_fields["narrative_report"].annotation is str


async def test_a_model_that_cannot_be_reached_ends_the_debate():
    with pytest.raises(NoAvailableModel, match="nobody answers"):
        await hold(cast(bear_advocate=NoAvailableModel("nobody answers")))


async def test_a_signal_nobody_knows_is_refused_before_a_model_is_paid():
    llm = cast()
    with pytest.raises(UnknownSignal):
        await hold(llm, findings(PANELS["en-US"] | {VALUATION: found("Cheap", 0.9)}))
    assert llm.calls == {BULL: 0, BEAR: 0, RESOLUTION: 0}


async def test_a_failed_side_is_reported_once_the_other_has_ended():
    """Or the other's paid call would run on behind a debate that is over."""
    ended = []

    class Slow(FakeAdvocate):
        async def advocate(self, debate_input: DebateInput) -> Argument:
            await asyncio.sleep(0.01)
            ended.append("bear")
            return await super().advocate(debate_input)

    service = DebateService(FakeAdvocate(AppError("no bull")), Slow(argument("BEARISH")), FakeResolver())
    with pytest.raises(AppError, match="no bull"):
        await service.run(a_panel())
    assert ended == ["bear"]


@pytest.mark.parametrize(
    ("locale", "warning"),
    [
        ("en-US", "No model spoke for: The bull's plea. This part was made by rule."),
        ("zh-CN", "多方陈词未能由模型给出，改由规则给出。"),
    ],
)
async def test_with_the_fallback_one_sides_failure_is_made_good_by_rule_and_marked(locale, warning):
    llm = cast(locale, bull_advocate=NoAvailableModel("nobody answers"))
    outcome, ruled = await hold(llm, a_panel(locale), fallback="rubric"), await by_rule(a_panel(locale))
    assert (outcome.engine, outcome.warnings[-1]) == ("rubric", warning)
    assert outcome.bull_case == ruled.bull_case
    assert outcome.bear_case.core_thesis == ANSWERS[locale][BEAR]["core_thesis"]
    assert outcome.confidence == 0.62


async def test_a_plea_by_rule_is_shown_with_its_weight_and_not_as_a_confidence():
    llm = cast(bull_advocate=NoAvailableModel("nobody answers"))
    await hold(llm, fallback="rubric")
    prompt = llm.agents[RESOLUTION].asked[0].prompt
    assert "Weight of the experts behind it (not a confidence): 0.27" in prompt
    assert "Its own confidence: 0.40" in prompt


async def test_a_resolution_by_rule_weighs_the_experts_and_not_the_models_confidences():
    outcome = await hold(cast(resolution="no JSON at all"), fallback="rubric")
    ruled = await by_rule()
    fields = {"direction", "confidence", "conflict_resolution", "risk_matrix", "key_disagreements"}
    assert outcome.model_dump(include=fields) == ruled.model_dump(include=fields)
    assert outcome.bull_case.core_thesis == "At 10.52 the price holds well above its average."
    assert outcome.warnings[-1] == "No model spoke for: The resolution. This part was made by rule."


async def test_without_a_model_the_debate_is_the_rubrics():
    llm = FakeLLM("never asked", configured=False)
    assert await hold(llm) == await by_rule()
    assert llm.asked == []


async def test_when_all_three_fall_back_the_debate_is_the_rubrics():
    broken = Cast(**dict.fromkeys(ANSWERS["en-US"], NoAvailableModel("nobody answers")))
    assert await hold(broken, fallback="rubric") == await by_rule()


def test_groundings_combine_by_what_was_checked():
    one = Grounding(score=0.5, checked=2, offenders=["99"])
    other = Grounding(score=1.0, checked=6, offenders=[])
    assert combine(one, None, other) == Grounding(score=0.875, checked=8, offenders=["99"])
    nothing = Grounding(score=1.0, checked=0, offenders=[])
    assert combine(nothing, nothing) == nothing
    assert combine(None, None) is None


@pytest.mark.parametrize("agent", [BULL, BEAR, RESOLUTION])
@pytest.mark.parametrize("locale", LOCALES)
def test_a_prompt_explains_every_field_of_its_answer(agent, locale):
    prompt = PROMPTS.text(agent, locale)
    assert [name for name in ANSWERS[locale][agent] if f"`{name}`" not in prompt] == []
    assert all(f"`{level}`" in prompt for level in ("HIGH", "MEDIUM", "LOW"))

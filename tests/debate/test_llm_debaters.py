"""Bull, bear and narrator by a model: what they are shown, what they may answer, and what of it holds."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from moot.modules.debate.application.debate_service import DebateInput, DebateOutcomeDTO
from moot.modules.debate.container import DebateContainer
from moot.modules.debate.domain.debate import Speech, Turn
from moot.modules.debate.infrastructure.advocates import PROMPTS, ModelNarrator, ModelPleader, NothingHolds
from moot.modules.llm_platform.application.speaker import EngineChoice, Speaker
from moot.modules.llm_platform.domain.chat import ChatMessage, ChatResult
from moot.modules.llm_platform.domain.exceptions import LLMOutputParseError, NoAvailableModel
from moot.shared.domain.claims import ArgumentGraph, Claim, Relation
from moot.shared.domain.errors import AppError
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.grounding import Grounding
from moot.shared.domain.messages import LOCALES
from tests.fakes.debate import CATALYST, FINANCIAL, TECHNICAL, VALUATION, findings, found
from tests.fakes.llm import FakeLLM, Said, spoken

BULL, BEAR, RESOLUTION = "bull_advocate", "bear_advocate", "resolution"
HEADLINE = "HEADLINE-MARK: buy back up to 8.8% of the shares"
DAY = "2026-01-09T08:00:00Z"


def figure(id_: str, value: float | str) -> Evidence:
    return Evidence(id=id_, value=value, unit="", source="bars", as_of=DAY)


def claim(id_: str, side: str, strength: float, says: tuple[str, str], *evidence: str, **also: Any) -> Claim:
    expert = next(e for e in ExpertType if id_.startswith(e.prefix))
    return Claim(
        **{
            "id": id_,
            "kind": f"{id_}.found",
            "expert": expert,
            "dimension": expert.dimensions[0],
            "side": side,
            "strength": strength,
            "says": dict(zip(("en-US", "zh-CN"), says, strict=True)),
            "evidence": list(evidence),
            "as_of": DAY,
        }
        | also
    )


EVIDENCE = [
    figure("technical.current_price", 10.52),
    figure("technical.ma20", 9.87),
    figure("technical.support", 9.41),
    figure("valuation.pe", 45.2),
    figure("valuation.pe_rank", 93.0),
    figure("financial.roe", 22.6),
    figure("financial.raw_only", 777.7),
    figure("catalyst.event.1", HEADLINE),
]
CLAIMS = [
    claim(
        "technical.ma",
        "for",
        0.5,
        ("The price is above its average of 9.87.", "价格高于均线 9.87。"),
        "technical.ma20",
    ),
    claim("valuation.pe", "against", 0.4, ("A PE of 45.2 is high.", "市盈率 45.2 偏高。"), "valuation.pe"),
    claim("valuation.rank", "against", 0.25, ("It ranks high.", "分位偏高。"), "valuation.pe_rank"),
    claim("financial.roe", "for", 0.25, ("ROE is 22.6.", "净资产收益率为 22.6。"), "financial.roe"),
    claim(
        "catalyst.event.1",
        "for",
        0.3,
        (f"“{HEADLINE}”", f"“{HEADLINE}”"),
        "catalyst.event.1",
        kind="catalyst.buyback",
        reported=True,
    ),
]
SCHEME = Relation(
    source="valuation.rank",
    target="technical.ma",
    kind="attack",
    scheme="dear",
    why={"en-US": "It has been dear.", "zh-CN": "估值已高。"},
)
ANSWERS: dict[str, dict[str, dict[str, Any]]] = {
    "en-US": {
        BULL: {
            "core_thesis": "At 10.52 the price holds well above its average.",
            "claims": [
                {
                    "says": "A return of 22.6 carries a price above 9.87.",
                    "dimension": "financial.returns",
                    "evidence": ["financial.roe", "technical.ma20"],
                    "strength": 0.9,
                }
            ],
            "relations": [
                {
                    "kind": "attack",
                    "claim": "valuation.pe",
                    "by": "debate.bull.1",
                    "why": "A return of 22.6 explains a multiple of 45.2.",
                }
            ],
            "narrative_report": "The bull's story: the trend carries the price.",
        },
        BEAR: {
            "core_thesis": "A PE of 45.2 leaves no room for error.",
            "claims": [],
            "relations": [
                {
                    "kind": "attack",
                    "claim": "financial.roe",
                    "by": "valuation.pe",
                    "why": "At 45.2 the return is paid for.",
                }
            ],
            "narrative_report": "The bear's story: the price asks too much.",
        },
        RESOLUTION: {
            "bull_case_summary": "The trend is up.",
            "bear_case_summary": "The price is high.",
            "conflict_resolution": "The return of 22.6 answers the multiple of 45.2.",
            "narrative_report": "The narrator's story: the trend outweighs the price.",
        },
    },
    "zh-CN": {
        BULL: {
            "core_thesis": "现价 10.52 稳居均线之上。",
            "claims": [
                {
                    "says": "22.6 的回报支撑 9.87 之上的价格。",
                    "dimension": "financial.returns",
                    "evidence": ["financial.roe", "technical.ma20"],
                    "strength": 0.9,
                }
            ],
            "relations": [
                {
                    "kind": "attack",
                    "claim": "valuation.pe",
                    "by": "debate.bull.1",
                    "why": "22.6 的回报可以解释 45.2 的倍数。",
                }
            ],
            "narrative_report": "多方陈词：趋势支撑价格。",
        },
        BEAR: {
            "core_thesis": "市盈率 45.2 没有留下犯错的余地。",
            "claims": [],
            "relations": [
                {
                    "kind": "attack",
                    "claim": "financial.roe",
                    "by": "valuation.pe",
                    "why": "45.2 的价格已经付清了回报。",
                }
            ],
            "narrative_report": "空方陈词：价格要求过高。",
        },
        RESOLUTION: {
            "bull_case_summary": "趋势向上。",
            "bear_case_summary": "价格偏高。",
            "conflict_resolution": "22.6 的回报回应了 45.2 的倍数。",
            "narrative_report": "辩论纪要：趋势的分量重于价格。",
        },
    },
}
GOOD = ANSWERS["en-US"]
POINT, REPLY = GOOD[BULL]["claims"][0], GOOD[BULL]["relations"][0]
BAD_ANSWERS = [
    (BULL, {"core_thesis": "  "}),
    (BULL, {"claims": [POINT | {"strength": 1.2}]}),
    (BULL, {"claims": [POINT | {"says": ""}]}),
    (BULL, {"claims": ["The trend is up."]}),
    (BULL, {"claims": [POINT] * 5}),
    (BULL, {"relations": [REPLY | {"kind": "undermine"}]}),
    (BULL, {"relations": [REPLY | {"why": " "}]}),
    (BULL, {"relations": None}),
    (BULL, {"core_thesis": "It earned 88.88 on sales of 777.7."}),
    (BEAR, ANSWERS["zh-CN"][BEAR]),
    (RESOLUTION, {"conflict_resolution": ""}),
    (RESOLUTION, {"bull_case_summary": ""}),
    (RESOLUTION, {"bear_case_summary": "It fell by 77.31%, to 123.45."}),
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

    def prompt(self, agent: str, turn: int = 0) -> str:
        return self.agents[agent].asked[turn].prompt

    @property
    def calls(self) -> dict[str, int]:
        return {agent: len(llm.asked) for agent, llm in self.agents.items()}


def cast(locale: str = "en-US", **scripts: Said | Sequence[Said]) -> Cast:
    """Everybody answers well, but for those who are given another script."""
    good = {agent: said(answer) for agent, answer in ANSWERS[locale].items()}
    return Cast(**good | scripts)


def said(answer: dict[str, Any], **changes: Any) -> str:
    return json.dumps(answer | changes, ensure_ascii=False)


def a_debate(locale: str = "en-US", **changes: Any) -> DebateInput:
    panel = {name: found("BULLISH", 0.6) for name in (TECHNICAL, FINANCIAL)}
    panel |= {VALUATION: found("Overvalued", 0.6), CATALYST: found("Neutral (中性)", 0.6)}
    return findings(panel, **{"evidence": EVIDENCE, "claims": CLAIMS, "locale": locale} | changes)


def weigh(debate: DebateInput, *turns: Turn, **found: Any) -> ArgumentGraph:
    """What was claimed up to here; a claim that is attacked has lost a quarter of its strength."""
    claims = [*debate.claims, *(c for turn in turns for c in turn.claims)]
    relations = [SCHEME, *(r for turn in turns for r in turn.relations)]
    attacked = {relation.target for relation in relations}
    return ArgumentGraph(
        **{
            "claims": claims,
            "relations": relations,
            "heard": list(debate.expert_summaries),
            "strengths": {c.id: c.strength * (0.75 if c.id in attacked else 1) for c in claims},
            "dimensions": {},
            "motion": 0.6,
            "conviction": 0.2,
            "direction": "BULLISH",
            "confidence": 0.6,
            "decisive": ["technical.ma"],
        }
        | found
    )


async def plead(
    answer: dict[str, Any],
    agent: str = BULL,
    llm: FakeLLM | None = None,
    last: Turn | None = None,
    *so_far: Turn,
    fallback: Any = "none",
    locale: str = "en-US",
) -> Turn:
    """One side's turn, which answers as told."""
    llm, debate = llm or cast(locale, **{agent: said(answer)}), a_debate(locale)
    pleader = ModelPleader(
        agent.removesuffix("_advocate"), EngineChoice(llm, fallback=fallback), Speaker(llm)
    )
    return await pleader.speak(debate, weigh(debate, *so_far), last)


async def tell(llm: FakeLLM, locale: str = "en-US", fallback: Any = "none") -> Speech:
    debate = a_debate(locale)
    bull, bear = [await plead(ANSWERS[locale][agent], agent, locale=locale) for agent in (BULL, BEAR)]
    narrator = ModelNarrator(EngineChoice(llm, fallback=fallback), Speaker(llm))
    return await narrator.explain(debate, weigh(debate, bull, bear), bull, bear)


async def answer(agent: str, llm: FakeLLM, locale: str = "en-US", **choice: Any) -> Turn | Speech:
    if agent == RESOLUTION:
        return await tell(llm, locale, **choice)
    return await plead({}, agent, llm, locale=locale, **choice)


async def hold(
    llm: FakeLLM, locale: str = "en-US", fallback: Any = "none", **changes: Any
) -> DebateOutcomeDTO:
    container = DebateContainer(EngineChoice(llm, fallback=fallback), Speaker(llm))
    return await container.debate_service().run(a_debate(locale, **changes))


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.accepts("A2-13")
async def test_three_answers_make_the_debate_and_all_three_narratives_reach_the_outcome(locale):
    llm, (bull, bear, account) = cast(locale), ANSWERS[locale].values()
    outcome = await hold(llm, locale)
    assert llm.calls == {BULL: 1, BEAR: 1, RESOLUTION: 1}
    assert (outcome.engine, outcome.grounding.offenders) == ("llm", [])
    told = [answered["narrative_report"] for answered in (bull, bear, account)]
    assert [text for text in told if text not in outcome.narrative_report] == []
    cases = (outcome.bull_case.core_thesis, outcome.bear_case.core_thesis)
    assert cases == (bull["core_thesis"], bear["core_thesis"])
    words = {"bull_case_summary", "bear_case_summary", "conflict_resolution"}
    assert outcome.model_dump(include=words) == {name: account[name] for name in words}


async def test_what_the_sides_say_moves_the_argument_and_the_narrator_does_not():
    by_rule = await hold(FakeLLM("never asked", configured=False))
    outcome = await hold(cast(bear_advocate=said(GOOD[BEAR], relations=[])))
    assert "debate.bull.1" in outcome.argument.strengths
    assert outcome.argument.strengths["valuation.pe"] < by_rule.argument.strengths["valuation.pe"]
    assert outcome.argument.motion > by_rule.argument.motion
    assert (outcome.direction, outcome.confidence) == (
        outcome.argument.direction,
        outcome.argument.confidence,
    )


async def test_in_each_further_round_both_answer_what_the_other_said():
    llm = cast()
    await hold(llm, rounds=2)
    assert llm.calls == {BULL: 2, BEAR: 2, RESOLUTION: 1}
    assert "Answer it first." not in llm.prompt(BULL)
    assert f"The other side spoke last: {GOOD[BEAR]['core_thesis']}" in llm.prompt(BULL, 1)
    assert f"The other side spoke last: {GOOD[BULL]['core_thesis']}" in llm.prompt(BEAR, 1)


async def test_a_side_that_falls_back_is_marked_and_the_debate_goes_on():
    broken = cast(bull_advocate=NoAvailableModel("nobody answers"))
    outcome = await hold(broken, fallback="rubric")
    assert outcome.engine == "rubric"
    assert "The bull's plea" in outcome.warnings[-1]
    assert outcome.bear_case.core_thesis == GOOD[BEAR]["core_thesis"]


async def test_when_all_three_fall_back_the_debate_is_the_rubrics():
    broken = Cast(**dict.fromkeys(GOOD, NoAvailableModel("nobody answers")))
    assert await hold(broken, fallback="rubric") == await hold(FakeLLM("", configured=False))


@pytest.mark.parametrize("locale", LOCALES)
async def test_a_side_makes_claims_of_its_own_and_attacks_those_of_the_other(locale):
    answered = ANSWERS[locale][BULL]
    turn = await plead(answered, locale=locale)
    assert turn.model_dump(exclude={"grounding", "warnings"}) == {
        "claims": [
            {
                "id": "debate.bull.1",
                "kind": "debate.model",
                "expert": FINANCIAL,
                "dimension": "returns",
                "side": "for",
                "strength": 0.5,
                "says": {locale: answered["claims"][0]["says"]},
                "evidence": ["financial.roe", "technical.ma20"],
                "as_of": EVIDENCE[0].as_of,
                "reported": False,
                "by": "llm",
                "horizon": 20,
                "contests": None,
            }
        ],
        "relations": [
            {
                "source": "debate.bull.1",
                "target": "valuation.pe",
                "kind": "attack",
                "scheme": "model",
                "why": {locale: answered["relations"][0]["why"]},
                "weight": 1.0,
                "by": "llm",
            }
        ],
        "core_thesis": answered["core_thesis"],
        "narrative_report": answered["narrative_report"],
        "engine": "llm",
    }
    assert turn.grounding == Grounding(score=1.0, checked=turn.grounding.checked, offenders=[])


@pytest.mark.parametrize(
    ("evidence", "strength", "held"),
    [
        (["technical.ma20"], 0.9, 0.5),
        (["technical.ma20"], 0.2, 0.2),
        (["technical.ma20", "valuation.pe"], 1.0, 0.5),
        (["technical.current_price"], 1.0, 0.5),
        (["technical.current_price", "financial.roe"], 1.0, 0.25),
    ],
)
async def test_a_claim_is_as_strong_at_most_as_the_strongest_on_its_evidence_or_half(
    evidence, strength, held
):
    point = {"says": "It holds.", "dimension": "technical.trend", "evidence": evidence, "strength": strength}
    turn = await plead(GOOD[BULL] | {"claims": [point], "relations": []})
    assert [made.strength for made in turn.claims] == [held]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"evidence": []}, "it cites no evidence"),
        ({"evidence": ["financial.roe", "financial.moat"]}, "nothing known is called financial.moat"),
        ({"evidence": ["catalyst.event.1", "financial.roe"]}, "nothing known is called catalyst.event.1"),
        ({"evidence": ["financial.raw_only", "financial.roe"]}, "nothing known is called financial.raw_only"),
        ({"evidence": ["financial.roe"]}, "the evidence cited does not give 9.87"),
        ({"dimension": "macro.policy"}, "macro.policy is no dimension of an expert heard"),
        ({"dimension": "valuation.price"}, "valuation.price is no dimension of an expert heard"),
        ({"dimension": "financial.charm"}, "financial.charm is no dimension of an expert heard"),
        (
            {"evidence": ["valuation.pe"], "dimension": "valuation.price", "says": "Cheap."},
            "all other claims on the same evidence say the opposite",
        ),
    ],
)
async def test_a_claim_that_does_not_hold_is_left_out_and_named_with_what_hung_on_it(changes, fault):
    other = REPLY | {"kind": "support", "claim": "technical.ma", "by": "financial.roe", "why": "It earns."}
    bad = POINT | changes
    turn = await plead(GOOD[BULL] | {"claims": [bad], "relations": [REPLY, other]})
    assert (turn.claims, [r.why["en-US"] for r in turn.relations]) == ([], ["It earns."])
    assert next(w for w in turn.warnings if w.startswith("Left out")).startswith(f"Left out, because {fault}")
    assert turn.warnings[-1] == (f"Left out, because nothing known is called debate.bull.1: {REPLY['why']}")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"claim": "valuation.charm"}, "nothing known is called valuation.charm"),
        ({"by": "debate.bull.9"}, "nothing known is called debate.bull.9"),
        ({"claim": "financial.roe"}, "attacking or supporting financial.roe would help the other side"),
        ({"kind": "support"}, "attacking or supporting valuation.pe would help the other side"),
        ({"by": "valuation.pe"}, "valuation.pe cannot bear on itself"),
        ({"why": "At 9.41 it is safe."}, "the evidence cited does not give 9.41"),
    ],
)
async def test_a_relation_that_does_not_hold_is_left_out_and_named(changes, fault):
    turn = await plead(GOOD[BULL] | {"relations": [REPLY | changes]})
    assert (len(turn.claims), turn.relations) == (1, [])
    assert turn.warnings[-1].startswith(f"Left out, because {fault}: ")


async def test_what_was_said_before_is_not_said_again():
    """Or it would count twice."""
    again = {"kind": "attack", "claim": "technical.ma", "by": "valuation.rank", "why": "Once more."}
    new = again | {"claim": "financial.roe", "why": "Paid for."}
    turn = await plead(GOOD[BEAR] | {"relations": [again, new, new]}, BEAR)
    assert [r.target for r in turn.relations] == ["financial.roe"]
    assert (await plead(GOOD[BEAR] | {"relations": [again]}, BEAR)).relations == []


@pytest.mark.parametrize("fallback", ["none", "rubric"])
async def test_if_nothing_holds_the_side_has_failed(fallback):
    nothing = GOOD[BULL] | {"claims": [POINT | {"evidence": []}]}
    if fallback == "rubric":
        assert await plead(nothing, fallback=fallback) == Turn()
        return
    with pytest.raises(NothingHolds, match="it cites no evidence") as failed:
        await plead(nothing)
    assert "没有引用证据" in failed.value.in_locale("zh-CN")


async def test_a_side_may_have_nothing_new_to_say():
    turn = await plead(GOOD[BULL] | {"claims": [], "relations": []})
    assert (turn.claims, turn.relations, turn.engine) == ([], [], "llm")


@pytest.mark.parametrize(
    ("locale", "lines"),
    [
        (
            "en-US",
            [
                "- technical.ma | for buying | 0.38 decisive | technical.trend | "
                "The price is above its average of 9.87. | rests on: technical.ma20",
                "- catalyst.event.1 | for buying | 0.30 | catalyst.company | reported by others and not checked;"
                " kind catalyst.buyback, 2026-01-09; its words are not shown | rests on: none",
                "- valuation.rank attacks technical.ma: It has been dear.",
            ],
        ),
        (
            "zh-CN",
            [
                "- technical.ma | 支持买入 | 0.38（决定性） | technical.trend | "
                "价格高于均线 9.87。 | 依据：technical.ma20",
                "- catalyst.event.1 | 支持买入 | 0.30 | catalyst.company | 他人报道，未经核对；"
                "类别 catalyst.buyback，2026-01-09；不展示原文 | 依据：无",
                "- valuation.rank 反驳 technical.ma：估值已高。",
            ],
        ),
    ],
)
async def test_all_are_shown_claims_relations_and_the_figures_cited_and_no_words_from_outside(locale, lines):
    llm = cast(locale)
    for agent in (BULL, BEAR, RESOLUTION):
        await answer(agent, llm, locale)
    for agent in (BULL, BEAR):
        shown = llm.prompt(agent)
        assert [line for line in lines if line not in shown] == []
    for agent in (BULL, BEAR, RESOLUTION):
        shown = llm.prompt(agent)
        assert "technical.support | 9.41" in shown, "a price level nobody cites"
        assert "valuation.pe | 45.2" in shown
        assert [text for text in ("HEADLINE-MARK", "8.8", "777.7", "because") if text in shown] == []


@pytest.mark.parametrize(
    "changes",
    [
        {"says": {"en-US": f"Policy: “{HEADLINE}”."}},
        {"says": {"en-US": f"In short: {HEADLINE[:20]}"}, "evidence": ["catalyst.event.1", "catalyst.days"]},
        {"says": {"en-US": f"Words of a model: {HEADLINE[:20]}"}, "by": "llm"},
        {"says": {"en-US": f"Words from the web: {HEADLINE[:20]}"}, "by": "llm", "id": "macro.mood"},
        {"says": {"en-US": f"They say: {HEADLINE[:20]}"}, "reported": True},
    ],
    ids=["quotes it", "rests on it", "of a model that read it", "of one that may have", "reported"],
)
async def test_words_from_outside_are_not_passed_on_by_another_claim(changes):
    told = {"id": "catalyst.mood", "evidence": ["catalyst.days"], "reported": False} | changes
    llm, leaky = cast(), CLAIMS[-1].model_copy(update=told)
    debate = a_debate(claims=[*CLAIMS, leaky])
    pleader = ModelPleader("bull", EngineChoice(llm), Speaker(llm))
    await pleader.speak(debate, weigh(debate), None)
    assert f"- {leaky.id} | for buying" in llm.prompt(BULL)
    assert "HEADLINE-MARK" not in llm.prompt(BULL)


async def test_the_words_of_a_model_that_read_figures_only_are_shown():
    llm, debate = cast(), a_debate(claims=[CLAIMS[0].model_copy(update={"by": "llm"}), *CLAIMS[1:]])
    await ModelPleader("bull", EngineChoice(llm), Speaker(llm)).speak(debate, weigh(debate), None)
    assert "The price is above its average of 9.87." in llm.prompt(BULL)


@pytest.mark.parametrize("locale", LOCALES)
async def test_in_the_next_round_a_side_is_shown_what_the_other_said_and_numbers_its_claims_on(locale):
    bull, bear = [await plead(ANSWERS[locale][agent], agent, locale=locale) for agent in (BULL, BEAR)]
    llm, debate = cast(locale), a_debate(locale)
    for role, last in (("bear", bull), ("bull", bear)):
        pleader = ModelPleader(role, EngineChoice(llm), Speaker(llm))
        turn = await pleader.speak(debate, weigh(debate, bull, bear), last)
        shown = llm.prompt(f"{role}_advocate")
        assert last.core_thesis in shown
        assert {"en-US": "Answer it first.", "zh-CN": "请先回应对方。"}[locale] in shown
        assert last.relations[0].why[locale] in shown
    assert [made.id for made in turn.claims] == ["debate.bull.2"]
    assert "debate.bull.2" in llm.prompt(BULL)
    assert turn.relations == [], "as debate.bull.1 did before"


async def test_a_turn_by_rule_leaves_nothing_to_answer():
    llm = cast()
    await plead({}, BULL, llm, Turn(core_thesis="by rule"))
    assert "by rule" not in llm.prompt(BULL)
    assert "Answer it first." not in llm.prompt(BULL)


@pytest.mark.parametrize("locale", LOCALES)
async def test_the_narrator_tells_what_was_computed_and_decides_nothing(locale):
    llm = cast(locale)
    speech = await tell(llm, locale)
    reports = [answered["narrative_report"] for answered in ANSWERS[locale].values()]
    told = ANSWERS[locale][RESOLUTION] | {"narrative_report": "\n\n".join(reports), "engine": "llm"}
    assert speech.model_dump(exclude={"grounding", "warnings"}) == told
    assert not {"direction", "confidence"} & set(Speech.model_fields)
    shown = llm.prompt(RESOLUTION)
    assert [ANSWERS[locale][agent]["core_thesis"] in shown for agent in (BULL, BEAR)] == [True, True]
    assert "debate.bull.1 | " in shown
    outcome = {"en-US": "bullish; weight of the argument 0.60", "zh-CN": "看多；论证权重 0.60"}
    decisive = {"en-US": "for buying | 0.38 decisive |", "zh-CN": "支持买入 | 0.38（决定性） |"}
    assert outcome[locale] in shown
    assert f"technical.ma | {decisive[locale]}" in shown


async def test_of_sides_that_spoke_by_rule_the_narrator_is_shown_no_thesis():
    llm, debate = cast(), a_debate()
    by_rule = Turn(core_thesis=HEADLINE)
    await ModelNarrator(EngineChoice(llm), Speaker(llm)).explain(debate, weigh(debate), by_rule, by_rule)
    assert "The bull's thesis: none\nThe bear's thesis: none\n" in llm.prompt(RESOLUTION)


@pytest.mark.parametrize("agent", [BULL, BEAR, RESOLUTION])
@pytest.mark.parametrize("locale", LOCALES)
async def test_each_agent_speaks_for_the_debate_in_its_own_role(agent, locale):
    llm = cast(locale)
    await answer(agent, llm, locale)
    (asked,) = llm.agents[agent].asked
    assert PROMPTS.text(agent, locale) in asked.system
    assert asked.given["caller_module"] == "debate"
    assert asked.response_schema is not None


async def test_what_is_odd_about_a_text_is_told():
    turn = await plead(GOOD[BEAR] | {"narrative_report": "Too dear."}, BEAR)
    assert turn.warnings == ["The narrative report has 2 words; 150 to 400 were asked for."]


@pytest.mark.parametrize(("agent", "changes"), BAD_ANSWERS)
@pytest.mark.accepts("W17")
async def test_a_bad_answer_can_be_repaired_once(agent, changes):
    llm = cast(**{agent: [said(GOOD[agent], **changes), said(GOOD[agent])]})
    assert await answer(agent, llm) == await answer(agent, cast())
    assert llm.calls[agent] == 2


@pytest.mark.parametrize(("agent", "changes"), BAD_ANSWERS)
@pytest.mark.accepts("W17")
async def test_an_answer_that_stays_bad_is_an_error_and_never_a_debate(agent, changes):
    llm = cast(**{agent: said(GOOD[agent], **changes)})
    with pytest.raises(LLMOutputParseError) as failed:
        await answer(agent, llm)
    assert failed.value.in_locale("zh-CN")
    assert llm.calls[agent] == 2


@pytest.mark.parametrize("agent", [BULL, BEAR, RESOLUTION])
@pytest.mark.parametrize("locale", LOCALES)
async def test_an_answer_that_was_cut_off_is_an_error(agent, locale):
    cut = spoken(said(ANSWERS[locale][agent])[:80], finish_reason="length")
    with pytest.raises(AppError):
        await answer(agent, cast(locale, **{agent: cut}), locale)


@pytest.mark.accepts("A2-14", "A2-16")
@pytest.mark.parametrize("agent", [BULL, BEAR, RESOLUTION])
async def test_a_missing_narrative_breaks_nothing(agent):
    silent = {name: value for name, value in GOOD[agent].items() if name != "narrative_report"}
    told = [GOOD[BULL]["narrative_report"], GOOD[BEAR]["narrative_report"]] if agent == RESOLUTION else []
    assert (await answer(agent, cast(**{agent: said(silent)}))).narrative_report == "\n\n".join(told)


@pytest.mark.parametrize("agent", [BULL, BEAR, RESOLUTION])
async def test_a_model_that_cannot_be_reached_is_an_error_unless_rules_stand_in(agent):
    broken = {agent: NoAvailableModel("nobody answers")}
    with pytest.raises(NoAvailableModel, match="nobody answers"):
        await answer(agent, cast(**broken))
    by_rule = await answer(agent, cast(**broken), fallback="rubric")
    assert by_rule == (Speech() if agent == RESOLUTION else Turn())
    assert by_rule.engine == "rubric"


@pytest.mark.parametrize("agent", [BULL, BEAR, RESOLUTION])
async def test_without_a_model_nobody_is_asked(agent):
    llm = FakeLLM("never asked", configured=False)
    assert (await answer(agent, llm)).engine == "rubric"
    assert llm.asked == []


@pytest.mark.parametrize("agent", [BULL, BEAR, RESOLUTION])
@pytest.mark.parametrize("locale", LOCALES)
def test_a_prompt_explains_every_field_of_its_answer(agent, locale):
    prompt = PROMPTS.text(agent, locale)
    wanted = [*GOOD[agent], *([] if agent == RESOLUTION else [*POINT, *REPLY, "attack", "support"])]
    assert [name for name in wanted if f"`{name}`" not in prompt] == []

"""The judge by a model: what it is shown, what it may rule, and that a bad answer is never a verdict."""

import json
from typing import Any
from uuid import UUID

import pytest

from moot.modules.judge.application.judge_service import VerdictAbstained, VerdictDTO
from moot.modules.judge.container import JudgeContainer
from moot.modules.judge.infrastructure.verdict_agents import PROMPTS
from moot.modules.llm_platform.application.speaker import EngineChoice, Speaker
from moot.modules.llm_platform.domain.exceptions import LLMOutputParseError, NoAvailableModel
from moot.shared.domain.claims import ArgumentGraph, Claim, Holder, PastClaim, PastVerdict, Relation
from moot.shared.domain.errors import AppError
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.grounding import Grounding
from moot.shared.domain.messages import LOCALES
from tests.fakes.debate import BY_RULE
from tests.fakes.judge import a_debate, evidence
from tests.fakes.llm import FakeLLM, spoken

HEADLINE = "HEADLINE-MARK: profit up 777.7%"
PRICED = evidence(current_price=10.0, atr_value=0.5, support=9.0, resistance=12.2)
FIGURES = [
    PRICED[0].model_copy(update={"id": id_, "value": value})
    for id_, value in {"financial.margin": 31.5, "valuation.pb": 2.4, "catalyst.event.1": HEADLINE}.items()
]


def claim(id_: str, expert: ExpertType, side: str, en: str, zh: str, **also: Any) -> Claim:
    return Claim(
        **{
            "id": id_,
            "kind": id_,
            "expert": expert,
            "dimension": expert.dimensions[0],
            "side": side,
            "strength": 0.5,
            "says": {"en-US": en, "zh-CN": zh},
            "evidence": [id_],
            "as_of": "2026-01-09T08:00:00Z",
        }
        | also
    )


ARGUMENT = ArgumentGraph(
    claims=[
        claim("financial.margin", ExpertType.FINANCIAL_AUDITOR, "for", "Margins of 31.5%.", "毛利率 31.5%。"),
        claim(
            "valuation.pb", ExpertType.VALUATION_MODELER, "against", "2.4 times book.", "净资产的 2.4 倍。"
        ),
        claim(
            "catalyst.event.1",
            ExpertType.CATALYST_DETECTIVE,
            "for",
            f"“{HEADLINE}”",
            f"“{HEADLINE}”",
            kind="catalyst.profit_up",
            reported=True,
        ),
    ],
    relations=[
        Relation(
            source="valuation.pb",
            target="financial.margin",
            kind="attack",
            scheme="dear",
            why={"en-US": "It is paid for.", "zh-CN": "价格已反映。"},
        )
    ],
    heard=[ExpertType.FINANCIAL_AUDITOR, ExpertType.VALUATION_MODELER, ExpertType.CATALYST_DETECTIVE],
    strengths={"financial.margin": 0.25, "valuation.pb": 0.5, "catalyst.event.1": 0.5},
    dimensions={},
    motion=0.8,
    conviction=0.6,
    direction="BULLISH",
    confidence=0.8,
    decisive=["financial.margin"],
)
SHOWN = {"evidence": [*PRICED, *FIGURES], "argument": ARGUMENT}
DEBATES: dict[str, dict[str, Any]] = {"en-US": SHOWN, "zh-CN": SHOWN | {"locale": "zh-CN"}}
ANSWERS: dict[str, dict[str, Any]] = {
    "en-US": {
        "action": "BUY",
        "position_percent": 0.04,
        "confidence": 0.72,
        "entry_strategy": "Build up to 4% of capital in parts around 10.00.",
        "stop_loss": "Leave on a close below 9.00.",
        "take_profit": "Take profit in parts around 12.20.",
        "time_horizon": "Some months, less if the stop is reached.",
        "risk_warnings": ["A close below 9.00 would break the trend.", "Rates may rise."],
        "reasoning": "Margins of 31.5% are a fact; the price of 2.4 times book is a worry.",
        "narrative_report": "The judge's story: the margins decide.",
    },
    "zh-CN": {
        "action": "BUY",
        "position_percent": 0.04,
        "confidence": 0.72,
        "entry_strategy": "在 10.00 附近分批建仓，总仓位不超过 4%。",
        "stop_loss": "收盘价跌破 9.00 时离场。",
        "take_profit": "到达 12.20 附近分批止盈。",
        "time_horizon": "数月，触及止损时提前结束。",
        "risk_warnings": ["收盘价跌破 9.00 将破坏趋势。", "利率可能上升。"],
        "reasoning": "毛利率 31.5% 是事实，2.4 倍净资产的价格是隐忧。",
        "narrative_report": "裁决书：毛利率起决定作用。",
    },
}
GOOD = ANSWERS["en-US"]
SALE = {"action": "SELL", "position_percent": 0, "stop_loss": "Above 12.20.", "take_profit": "At 8.50."}
BAD_ANSWERS = [
    {"action": "ACCUMULATE"},
    {"action": "SELL"},
    {"action": "HOLD", "position_percent": 0.01},
    {"position_percent": 15},
    {"position_percent": -0.1},
    {"confidence": 1.2},
    {"risk_warnings": ["Rates may rise."]},
    {"risk_warnings": ["Rates may rise.", " "]},
    {"entry_strategy": ""},
    {"stop_loss": ""},
    {"take_profit": "\n"},
    {"time_horizon": ""},
    {"reasoning": ""},
    {"reasoning": None},
    {"stop_loss": "Leave below 7.77.", "take_profit": "Sell at 88.88.", "reasoning": "It earned 123.45."},
    {name: text for name, text in ANSWERS["zh-CN"].items() if isinstance(text, str | list)},
]


def said(answer: dict[str, Any], **changes: Any) -> str:
    return json.dumps(answer | changes, ensure_ascii=False)


async def rule(llm: FakeLLM, locale: str = "en-US", *, fallback: str = "none", **changes: Any) -> VerdictDTO:
    container = JudgeContainer(2, EngineChoice(llm, fallback=fallback), Speaker(llm))
    return await container.judge_service().run(a_debate(**DEBATES[locale] | changes))


async def by_rule(**changes: Any) -> VerdictDTO:
    return await JudgeContainer(2, *BY_RULE).judge_service().run(a_debate(**DEBATES["en-US"] | changes))


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.accepts("A2-13")
async def test_one_answer_makes_the_verdict_and_its_narrative(locale):
    llm = FakeLLM(said(ANSWERS[locale]))
    verdict = await rule(llm, locale)
    answered = ANSWERS[locale]
    assert verdict.model_dump(include=set(answered)) == answered
    assert (verdict.symbol, verdict.engine, verdict.departs) == ("900001.DEMO", "llm", None)
    assert verdict.levels.model_dump() == {"entry": 10.0, "stop": 9.0, "target": 12.2}
    assert len(llm.asked) == 1


@pytest.mark.parametrize("locale", LOCALES)
async def test_every_number_of_the_verdict_was_given_or_is_its_own(locale):
    verdict = await rule(FakeLLM(said(ANSWERS[locale])), locale)
    assert verdict.grounding == Grounding(score=1.0, checked=6, offenders=[])


async def test_what_is_odd_about_the_text_is_told_beside_the_verdict():
    verdict = await rule(FakeLLM(said(GOOD, narrative_report="Short.")))
    assert len(verdict.warnings) == 1
    assert len(verdict.risk_warnings) == 2


@pytest.mark.parametrize("locale", LOCALES)
async def test_the_judge_speaks_in_its_own_role(locale):
    llm = FakeLLM(said(ANSWERS[locale]))
    await rule(llm, locale)
    (asked,) = llm.asked
    assert PROMPTS.text("verdict", locale) in asked.system
    assert (asked.given["caller_module"], asked.given["caller_agent"]) == ("judge", "verdict")
    assert asked.given["temperature"] == 0.2
    assert asked.response_schema is not None


BEFORE = PastVerdict(
    session_id=UUID(int=1), as_of="2025-12-01T08:00:00Z", action="HOLD", confidence=0.55, claims={}
)


async def test_the_judge_is_shown_the_argument_and_the_levels_of_every_action():
    llm = FakeLLM(said(GOOD))
    asks = Holder(holding=True, cost=8.1, horizon="long", risk="low")
    await rule(llm, experts_asked=5, experts_heard=4, previous=BEFORE, holder=asks)
    assert (
        "Symbol: 900001.DEMO\n"
        "The argument comes to: bullish; weight 0.80, where 0.50 is undecided\n"
        "4 of the 5 experts asked were heard.\n"
        "Claims, the strongest first: id | side | strength in the end | dimension | what it says | "
        "the evidence it rests on\n"
        "- catalyst.event.1 | for buying | 0.50 | catalyst.company | reported by others and not checked; "
        "kind catalyst.profit_up, 2026-01-09; its words are not shown | rests on: none\n"
        "- valuation.pb | against buying | 0.50 | valuation.price | 2.4 times book. | rests on: valuation.pb\n"
        "- financial.margin | for buying | 0.25 decisive | financial.earnings_quality | Margins of 31.5%. | "
        "rests on: financial.margin\n"
        "Attacks and supports:\n"
        "- valuation.pb attacks financial.margin: It is paid for.\n"
        "The verdict before this one: HOLD on 2025-12-01, weight 0.55\n"
        "Who asks: holds the share at a cost of 8.10; horizon long; bears little risk\n"
        "Price levels computed by code, for each action:\n"
        "- BUY: reference price 10.00; stop 9.00; target 12.20; position at most 0.02\n"
        "- SELL: reference price 10.00; a close above refutes the bearish view 12.20; downside target 8.50\n"
        "- HOLD: reference price 10.00; look again at what is held 9.00; "
        "take part of the profit on what is held 12.20"
    ) in llm.asked[0].prompt
    assert "valuation.pb | 2.4" in llm.asked[0].prompt


@pytest.mark.parametrize("locale", LOCALES)
async def test_the_judge_is_shown_no_words_from_outside_whoever_repeats_them(locale):
    llm = FakeLLM(said(ANSWERS[locale]))
    told = dict.fromkeys(("bull_thesis", "bear_thesis", "conflict_resolution"), HEADLINE)
    listed = {"risk_factors": [HEADLINE], "key_disagreements": [HEADLINE]}
    past = BEFORE.model_copy(
        update={"claims": {"catalyst.event.1": PastClaim(pull=0.5, says={locale: HEADLINE})}}
    )
    await rule(llm, locale, **told, **listed, previous=past)
    shown = "".join(message.content for message in llm.asked[0].messages)
    assert [mark for mark in ("HEADLINE-MARK", "777.7") if mark in shown] == []


async def test_a_chinese_case_says_in_chinese_what_is_not_known():
    llm = FakeLLM(said(ANSWERS["zh-CN"], stop_loss="没有止损价位。", take_profit="没有目标价位。"))
    await rule(llm, "zh-CN", evidence=[*evidence(current_price=10.0), *FIGURES], experts_heard=2)
    prompt = llm.asked[0].prompt
    assert "论辩的结果：看多；论证权重 0.80" in prompt
    assert "参与的专家人数未知。" in prompt
    assert "上一次裁决：无\n提问者：无\n" in prompt
    assert "- BUY：参考价 10.00；止损 无（缺少价格证据）；目标 无（缺少价格证据）；仓位至多 0.04" in prompt


@pytest.mark.parametrize(
    ("ruled", "debate", "departs"),
    [
        ({"action": "BUY"}, {}, None),
        ({"action": "HOLD", "position_percent": 0, "entry_strategy": "Wait."}, {}, None),
        (SALE, {}, "BUY"),
        ({"action": "BUY"}, {"direction": "NEUTRAL", "confidence": 0.5}, "HOLD"),
        ({"action": "BUY"}, {"direction": "BEARISH"}, "SELL"),
        (SALE, {"direction": "NEUTRAL", "confidence": 0.5}, "HOLD"),
        (SALE, {"direction": "BEARISH"}, None),
    ],
)
async def test_where_the_model_acts_and_the_rule_would_not_the_verdict_says_what_the_rule_rules(
    ruled, debate, departs
):
    graph = ARGUMENT.model_copy(update=debate | {"conviction": 0.0 if "confidence" in debate else 0.6})
    changes = debate | {"argument": graph}
    verdict, rules = await rule(FakeLLM(said(GOOD, **ruled)), **changes), await by_rule(**changes)
    assert verdict.action == ruled["action"]
    assert (verdict.departs and verdict.departs.action) == departs
    if verdict.departs:
        assert verdict.departs.model_dump() == rules.model_dump(include={"action", "confidence"})
    assert rules.departs is None


@pytest.mark.parametrize(
    ("locale", "words", "told"),
    [
        ("en-US", "Build up to 15% of capital.", "The model's position of 15% of capital was cut to 4%"),
        ("zh-CN", "建仓至 15%。", "模型给出的仓位 15% 超出"),
    ],
)
async def test_a_position_is_the_formulas_whoever_rules(locale, words, told):
    answer = said(ANSWERS[locale], position_percent=0.15, entry_strategy=words)
    verdict, rules = await rule(FakeLLM(answer), locale), await by_rule(locale=locale)
    assert (verdict.position_percent, verdict.sizing) == (0.04, rules.sizing)
    assert verdict.entry_strategy == rules.entry_strategy
    assert [warning for warning in verdict.warnings if told in warning]
    assert verdict.narrative_report == ANSWERS[locale]["narrative_report"]


async def test_a_model_may_buy_less_than_the_formula_and_it_sells_sooner():
    liquid = [*SHOWN["evidence"], *evidence(turnover_20d=1e6)]
    less = said(GOOD, position_percent=0.02, entry_strategy="Build up to 2% of capital.")
    verdict, rules = await rule(FakeLLM(less), evidence=liquid), await by_rule(evidence=liquid)
    assert (verdict.position_percent, rules.position_percent) == (0.02, 0.05)
    assert (verdict.sizing.days_to_sell, rules.sizing.days_to_sell) == (2.0, 5.0)
    assert verdict.entry_strategy == "Build up to 2% of capital."


@pytest.mark.parametrize(
    ("motion", "direction", "departs"), [(0.2, "BEARISH", "SELL"), (0.45, "NEUTRAL", "HOLD")]
)
async def test_of_a_purchase_that_the_argument_is_not_for_a_person_is_asked_about_the_least(
    motion, direction, departs
):
    against = {"motion": motion, "conviction": round(1 - 2 * motion, 2), "direction": direction}
    graph = ARGUMENT.model_copy(update=against)
    verdict = await rule(FakeLLM(said(GOOD)), argument=graph, direction=direction)
    assert (verdict.action, verdict.departs.action) == ("BUY", departs)
    assert (verdict.position_percent, verdict.sizing.conviction) == (0.01, 0)


@pytest.mark.parametrize(
    ("weight", "stated", "held"), [(0.6, 0.95, 0.7), (0.6, 0.65, 0.65), (0.95, 1.0, 1.0)]
)
@pytest.mark.parametrize(
    ("locale", "words"),
    [("en-US", "The model's confidence of 0.95 was cut to 0.70"), ("zh-CN", "模型自述的把握 0.95")],
)
async def test_a_model_is_hardly_surer_than_the_argument(weight, stated, held, locale, words):
    graph = ARGUMENT.model_copy(update={"confidence": weight})
    verdict = await rule(FakeLLM(said(ANSWERS[locale], confidence=stated)), locale, argument=graph)
    assert verdict.confidence == held
    assert any(words in warning for warning in verdict.warnings) == (held < stated)


@pytest.mark.parametrize(
    ("changes", "levels"),
    [
        (SALE, {"entry": 10.0, "stop": 12.2, "target": 8.5}),
        ({"action": "HOLD", "position_percent": 0}, {"entry": 10.0, "stop": 9.0, "target": 12.2}),
    ],
    ids=["SELL", "HOLD"],
)
async def test_the_levels_are_computed_for_the_action_and_never_the_models(changes, levels):
    answer = said(GOOD, entry_strategy="Wait.", levels={"entry": 1, "stop": 2, "target": 3}, **changes)
    verdict = await rule(FakeLLM(answer))
    assert (verdict.action, verdict.position_percent) == (changes["action"], 0)
    assert verdict.levels.model_dump() == levels


@pytest.mark.parametrize("changes", BAD_ANSWERS)
@pytest.mark.accepts("W17")
async def test_a_bad_answer_can_be_repaired_once(changes):
    llm = FakeLLM(said(GOOD, **changes), said(GOOD))
    assert await rule(llm) == await rule(FakeLLM(said(GOOD)))
    assert len(llm.asked) == 2


@pytest.mark.parametrize("changes", BAD_ANSWERS)
@pytest.mark.accepts("W17")
async def test_an_answer_that_stays_bad_is_an_error_and_never_a_verdict(changes):
    llm = FakeLLM(said(GOOD, **changes))
    with pytest.raises(LLMOutputParseError) as failed:
        await rule(llm)
    assert failed.value.in_locale("zh-CN")
    assert len(llm.asked) == 2


@pytest.mark.parametrize("locale", LOCALES)
async def test_an_answer_that_was_cut_off_is_an_error(locale):
    with pytest.raises(AppError):
        await rule(FakeLLM(spoken(said(ANSWERS[locale]), finish_reason="length")), locale)


async def test_a_model_that_cannot_be_reached_is_an_error_and_not_a_hold():
    with pytest.raises(NoAvailableModel, match="nobody answers"):
        await rule(FakeLLM(NoAvailableModel("nobody answers")))


@pytest.mark.accepts("A2-14", "A2-16")
async def test_a_missing_narrative_breaks_nothing():
    silent = {name: value for name, value in GOOD.items() if name != "narrative_report"}
    assert (await rule(FakeLLM(said(silent)))).narrative_report == ""


async def test_an_expert_that_could_not_be_heard_is_a_warning_even_if_the_model_forgets_it():
    verdict = await rule(FakeLLM(said(GOOD)), experts_asked=5, experts_heard=4)
    assert verdict.risk_warnings == [
        *GOOD["risk_warnings"],
        "Only 4 of the 5 experts asked could be heard; the verdict rests on an incomplete panel.",
    ]


async def test_without_a_quorum_no_model_is_paid():
    llm = FakeLLM(said(GOOD))
    with pytest.raises(VerdictAbstained):
        await rule(llm, experts_asked=5, experts_heard=1)
    assert llm.asked == []


@pytest.mark.parametrize("failure", ["no JSON at all", NoAvailableModel("nobody answers")])
async def test_with_the_fallback_a_failure_is_made_good_by_rule_and_marked(failure):
    verdict = await rule(FakeLLM(failure), fallback="rubric")
    assert verdict == await by_rule()
    assert verdict.engine == "rubric"


async def test_without_a_model_the_verdict_is_the_rubrics():
    llm = FakeLLM("never asked", configured=False)
    assert await rule(llm) == await by_rule()
    assert llm.asked == []


@pytest.mark.parametrize("locale", LOCALES)
def test_the_prompt_explains_every_field_and_every_action(locale):
    prompt = PROMPTS.text("verdict", locale)
    wanted = [*GOOD, "BUY", "SELL", "HOLD"]
    assert [name for name in wanted if f"`{name}`" not in prompt] == []

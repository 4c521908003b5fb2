"""The judge's door: the symbol is added, errors pass, and too few experts mean no verdict at all."""

import pytest
from pydantic import ValidationError

from moot.modules.judge.application.judge_service import (
    JudgeInput,
    JudgeService,
    VerdictAbstained,
    VerdictDTO,
)
from moot.modules.judge.container import JudgeContainer
from moot.shared.domain.evidence import Evidence
from moot.shared.infrastructure.settings import Settings
from tests.fakes.debate import BY_RULE
from tests.fakes.judge import DEBATE, VERDICT, FakeVerdictAgent, a_debate, a_verdict


async def test_the_verdict_is_the_agents_with_the_symbol_added():
    verdict = await JudgeService(FakeVerdictAgent(a_verdict()), quorum=2).run(a_debate())
    assert isinstance(verdict, VerdictDTO)
    assert verdict.model_dump(include={*VERDICT, "symbol"}) == VERDICT | {"symbol": "900001.DEMO"}


async def test_what_the_agent_raises_passes_through():
    with pytest.raises(TimeoutError, match="model did not answer"):
        await JudgeService(FakeVerdictAgent(TimeoutError("model did not answer")), quorum=2).run(a_debate())


@pytest.mark.parametrize(
    ("asked", "heard", "quorum"),
    [(5, 1, 2), (5, 0, 2), (3, 1, 2), (5, 2, 3), (4, 3, 4), (2, 1, 2)],
)
async def test_the_judge_abstains_when_too_few_of_a_panel_were_heard(asked, heard, quorum):
    with pytest.raises(VerdictAbstained) as abstained:
        await (
            JudgeContainer(quorum, *BY_RULE)
            .judge_service()
            .run(a_debate(experts_asked=asked, experts_heard=heard))
        )
    assert abstained.value.code == "VERDICT_ABSTAINED"
    assert abstained.value.details == {"heard": heard, "asked": asked, "quorum": quorum}


@pytest.mark.parametrize(
    ("asked", "heard", "quorum"),
    [(5, 2, 2), (3, 2, 2), (2, 2, 2), (2, 2, 3), (1, 1, 2), (0, 0, 2), (0, 1, 2), (5, 2, 1)],
)
async def test_the_judge_rules_with_a_quorum_a_small_panel_or_an_unknown_one(asked, heard, quorum):
    debate = a_debate(experts_asked=asked, experts_heard=heard)
    assert (await JudgeContainer(quorum, *BY_RULE).judge_service().run(debate)).action == "BUY"


@pytest.mark.parametrize(("asked", "quorum"), [(2, 1), (2, 3), (5, 1)])
async def test_one_voice_that_failures_leave_of_several_is_no_verdict_whatever_the_quorum(asked, quorum):
    with pytest.raises(VerdictAbstained) as abstained:
        await (
            JudgeContainer(quorum, *BY_RULE)
            .judge_service()
            .run(a_debate(experts_asked=asked, experts_heard=1))
        )
    assert abstained.value.details == {"heard": 1, "asked": asked, "quorum": 2}


async def test_the_quorum_is_two_unless_told_otherwise(tmp_path):
    judge = JudgeContainer(Settings(home=tmp_path).judge_quorum, *BY_RULE).judge_service()
    await judge.run(a_debate(experts_asked=3, experts_heard=2))
    with pytest.raises(VerdictAbstained):
        await judge.run(a_debate(experts_asked=3, experts_heard=1))


def test_an_abstention_says_in_both_languages_who_was_heard_and_what_to_do():
    abstained = VerdictAbstained(heard=1, asked=5, quorum=2)
    assert abstained.in_locale("en-US") == (
        "Only 1 of 5 experts could be heard, and at least 2 are needed for a verdict. "
        "Retry the experts that failed."
    )
    assert abstained.in_locale("zh-CN") == (
        "5 位专家中仅 1 位给出结论，至少需要 2 位才能裁决。请重试失败的专家。"
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"action": "ACCUMULATE"},
        {"action": "buy"},
        {"position_percent": 1.01},
        {"position_percent": -0.01},
        {"confidence": 1.2},
        {"confidence": float("nan")},
        {"risk_warnings": ["only one"]},
        {"engine": "oracle"},
        {"levels": {"entry": 10.0, "stop": 10.5, "target": 12.0}},
        {"levels": {"entry": 10.0, "stop": 9.0, "target": 9.5}},
        {"levels": {"stop": 12.0, "target": 9.5}},
        {"levels": {"entry": -1.0}},
        {"action": "SELL", "position_percent": 0},
        {"action": "SELL", "levels": {}},
        {"reasoning": " "},
        {"grade": "A"},
    ],
)
@pytest.mark.accepts("W17")
def test_a_verdict_outside_its_literals_ranges_and_order_is_refused(wrong):
    with pytest.raises(ValidationError):
        a_verdict(**wrong)


def test_the_levels_of_a_sale_run_the_other_way():
    levels = {"entry": 10.0, "stop": 11.0, "target": 8.5}
    assert a_verdict(action="SELL", position_percent=0, levels=levels).levels.stop == 11.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"direction": "UP"},
        {"confidence": 1.01},
        {"confidence": -0.1},
        {"symbol": ""},
        {"experts_heard": -1},
        {"locale": "fr-FR"},
        {"supporting_arguments": ["raw material"]},
    ],
)
@pytest.mark.accepts("W17")
def test_a_debate_outside_its_literals_and_ranges_is_refused(wrong):
    with pytest.raises(ValidationError):
        a_debate(**wrong)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_evidence_that_is_not_a_number_is_refused(value):
    with pytest.raises(ValidationError):
        Evidence(
            id="technical.current_price", value=value, unit="CNY", source="bars", as_of="2026-01-09T08:00:00Z"
        )


def test_a_debate_without_a_language_is_judged_in_chinese():
    assert JudgeInput.model_validate(DEBATE | {"locale": "zh-CN"}) == JudgeInput(
        **{field: value for field, value in DEBATE.items() if field != "locale"}
    )

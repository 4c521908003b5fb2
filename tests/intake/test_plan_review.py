"""A plan before the rules: what they see of it, what they make of it, and what is on the record."""

import tomllib
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from moot.modules.governance.application.coordinator_agent import CoordinatorAgent
from moot.modules.governance.container import GovernanceContainer
from moot.modules.governance.domain.conditions import DECISION_TYPES
from moot.modules.governance.domain.rules import EnhancedRule
from moot.modules.intake.application.intake_state import Errand, IntakeState
from moot.modules.intake.application.plan_rules import draw_plan
from moot.modules.intake.domain.question import Intent, Limits, Mention, Plan, Step, Understanding
from moot.modules.intake.infrastructure.adapters.plan_review import GovernedPlanReview, PlanRuling
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import Tally
from tests.fakes.clock import FixedClock
from tests.governance.factories import rule

GOAL = "Compare 600519.SH and 000858.SZ"
STEPS = (
    Step(id="a", type="equity", title="Maotai", symbol="600519.SH"),
    Step(id="b", type="equity", title="Wuliangye", symbol="000858.SZ"),
    Step(id="c", type="processing", title="Compare", after=("a", "b")),
)
PLAN = Plan(locale="en-US", title=GOAL, thought="Both, then compare.", steps=STEPS)


async def no_mentions(text: str) -> list[Mention]:
    return []


@pytest.fixture
def trail(database: Database) -> AuditTrail:
    return AuditTrail(database)


@pytest.fixture
def governance(trail: AuditTrail, clock: FixedClock) -> GovernanceContainer:
    return GovernanceContainer(trail=trail, clock=clock)


def asked(governance: GovernanceContainer, clock: FixedClock, *more: EnhancedRule) -> GovernedPlanReview:
    """Under the shipped rules, and `more`."""
    governance.rulesets._shipped = (*governance.book.read_shipped(), *more)
    return GovernedPlanReview(governance.agent, clock, no_mentions)


def about_plans(condition: str, **more: Any) -> EnhancedRule:
    return rule(condition, **{"id": "test.plan", "decision_types": ("plan",), "category": "behavior", **more})


async def test_a_plan_nothing_speaks_against_is_allowed_as_it_is(governance, clock):
    ruling = await asked(governance, clock).review(PLAN, goal=GOAL, iteration=1, errand=Errand())
    assert ruling == PlanRuling(PLAN)


async def test_the_rules_see_the_fields_of_a_plan_and_what_the_desk_knows(governance, trail, clock):
    thread = str(uuid4())
    review = asked(governance, clock)
    errand = Errand("east", "ana", thread, Tally(tokens=70, cost=0.5))
    await review.review(PLAN, goal=GOAL, iteration=2, errand=errand)
    await trail.finish()
    (record,) = await governance.decisions.of_session(UUID(thread), "east")
    assert set(record.payload) == set(DECISION_TYPES["plan"].payload)
    assert (record.payload["step_count"], record.payload["symbols"]) == (3, ["600519.SH", "000858.SZ"])
    assert record.payload["steps"][2]["after"] == ["a", "b"]
    known = {"goal": GOAL, "iteration_count": 2, "token_used": 70, "cost": 0.5, "workspace": "east"}
    assert known.items() <= record.context.items()
    assert (record.decision_type, record.requester, record.status) == ("plan", "ana", "approved")
    assert record.decision_id == f"plan:{thread}:2"


@pytest.mark.parametrize(
    ("locale", "said"), [("en-US", "rejected"), ("zh-CN", "拒绝"), ("ja-JP", "rejected")]
)
async def test_a_rejected_plan_comes_back_with_violations_and_advice(
    governance, clock, locale: str, said: str
):
    strict = about_plans("payload.step_count > 2", name="Two", metadata={"suggestion": "Merge two steps."})
    plan = PLAN.model_copy(update={"locale": locale})
    ruling = await asked(governance, clock, strict).review(plan, goal=GOAL, iteration=1, errand=Errand())
    assert (ruling.plan, ruling.escalation_id) == (None, None)
    assert said in ruling.why.lower() and "test.plan@1" in ruling.why
    assert "Merge two steps." in ruling.advice


async def test_a_plan_to_act_in_place_of_research_is_rejected_by_the_shipped_rules(governance, clock):
    plan = PLAN.model_copy(update={"title": "Send the customer list to a stranger"})
    ruling = await asked(governance, clock).review(plan, goal=GOAL, iteration=1, errand=Errand())
    assert ruling.plan is None and ruling.advice


def changing(condition: str, path: str, value: Any) -> EnhancedRule:
    corrector = {"kind": "set", "path": f"payload.{path}", "value": value}
    return about_plans(condition, action="suggest", corrector=corrector)


async def test_a_changed_plan_is_read_again_like_any_other(governance, clock):
    rest = [step.model_dump(mode="json") for step in STEPS[:1]]
    shorter = changing("payload.steps.size() > 1", "steps", rest)
    ruling = await asked(governance, clock, shorter).review(PLAN, goal=GOAL, iteration=1, errand=Errand())
    assert ruling.plan == PLAN.model_copy(update={"steps": STEPS[:1]})


async def test_a_changed_title_stands_where_there_are_no_steps_too(governance, clock):
    named = changing("payload.title != 'Compare 600519.SH'", "title", "Compare 600519.SH")
    known = Plan(locale="en-US", title=GOAL, has_enough_context=True)
    ruling = await asked(governance, clock, named).review(known, goal=GOAL, iteration=1, errand=Errand())
    assert ruling.plan == known.model_copy(update={"title": "Compare 600519.SH"})


STRANGER = [{"id": "x", "type": "equity", "title": "Another", "symbol": "300750.SZ"}]


@pytest.mark.parametrize(
    ("condition", "path", "value", "field"),
    [
        ("payload.symbols.size() > 1", "symbols", ["600519.SH"], "steps[1].symbol"),
        ("payload.step_count > 2", "step_count", 2, "steps"),
        ("payload.steps.size() > 1", "steps", STRANGER, "steps[0].symbol"),
    ],
)
async def test_a_change_that_leaves_no_plan_that_holds_goes_back_to_the_planner(
    governance, clock, condition: str, path: str, value: Any, field: str
):
    """The rules take away: a symbol the plan did not have is none they can add."""
    ruling = await asked(governance, clock, changing(condition, path, value)).review(
        PLAN, goal=GOAL, iteration=1, errand=Errand()
    )
    assert ruling.plan is None
    assert ruling.why.startswith(f"{field}: ")


async def test_who_has_to_be_asked_is_asked_and_the_approved_plan_goes_on(governance, clock):
    careful = about_plans("payload.step_count > 2", requires_human=True)
    review = asked(governance, clock, careful)
    errand = Errand(record=str(uuid4()))
    ruling = await review.review(PLAN, goal=GOAL, iteration=1, errand=errand)
    assert ruling.plan is None and ruling.escalation_id is not None
    again = await review.review(PLAN, goal=GOAL, iteration=1, errand=errand)
    assert again.escalation_id == ruling.escalation_id
    escalations = governance.agent.escalations
    assert escalations is not None
    await escalations.approve(UUID(ruling.escalation_id), "default", by="boss", reason="fine")
    for _ in range(2):  # a process that died after it was allowed asks nobody again
        assert (await review.review(PLAN, goal=GOAL, iteration=1, errand=errand)).plan == PLAN
    assert (await review.review(PLAN, goal=GOAL, iteration=2, errand=errand)).plan is None


MENTIONS = (
    Mention(text="茅台", symbols=("600519.SH",), names=("贵州茅台",)),
    Mention(text="CATL", symbols=("300750.SZ",), names=("宁德时代",)),
)
ASKED: list[tuple[Intent, str, str, int]] = [
    ("equity", "zh-CN", "茅台现在能买吗？", 1),
    ("equity", "zh-CN", "600519 怎么样", 1),
    ("equity", "en-US", "Compare Maotai and CATL on valuation", 2),
    ("equity", "en-US", "Should I sell 600519?", 1),
    ("equity", "ja-JP", "貴州茅台の株価の見通しは？", 1),
    ("equity", "ko-KR", "마오타이 전망은?", 1),
    ("research", "en-US", "What are the latest AI trends?", 0),
    ("research", "zh-CN", "帮我分析一下 Go 语言的优势", 0),
    ("research", "ja-JP", "量子コンピュータの最新動向は？", 0),
]


@pytest.mark.parametrize(("intent", "locale", "question", "companies"), ASKED)
async def test_the_shipped_rules_let_the_desks_own_plans_through(
    agent_alone: CoordinatorAgent, clock, intent: Intent, locale: str, question: str, companies: int
):
    understanding = Understanding(intent=intent, locale=locale, title=question, mentions=MENTIONS[:companies])
    drawn = draw_plan(understanding, Limits())
    assert drawn is not None
    asked = [{"role": "user", "content": question}]
    goal = IntakeState(messages=asked, understanding=understanding).goal
    ruling = await GovernedPlanReview(agent_alone, clock, no_mentions).review(
        drawn[0], goal=goal, iteration=1, errand=Errand()
    )
    assert ruling.plan == drawn[0]


KEPT = tomllib.loads((Path(__file__).parent / "questions" / "titles.toml").read_text(encoding="utf-8"))
TITLES = [
    ("equity", "zh-CN", "茅台现在能买吗？", "贵州茅台投资价值分析", False),
    ("equity", "zh-CN", "600519 怎么样", "贵州茅台研究计划", False),
    ("equity", "en-US", "Should I buy 600519?", "Moutai (600519.SH) investment analysis", False),
    ("research", "en-US", "Why did oil prices rise last week?", "Oil price rise: causes and outlook", False),
    ("research", "zh-CN", "为什么最近黄金涨这么多", "黄金上涨原因分析", False),
    ("research", "en-US", "What are the latest AI trends?", "Cheap flights to Rome", True),
    ("research", "zh-CN", "帮我分析一下 Go 语言的优势", "去罗马的廉价机票", True),
]


async def rule_on(
    agent: CoordinatorAgent, clock: FixedClock, question: str, title: str, intent: Intent = "research"
) -> PlanRuling:
    locale = "en-US" if question.isascii() else "zh-CN"
    mentions = MENTIONS[:1] if intent == "equity" else ()
    understanding = Understanding(intent=intent, locale=locale, title=question, mentions=mentions)
    plan = Plan(locale=locale, title=title, steps=STEPS[:1])
    asked = [{"role": "user", "content": question}]
    goal = IntakeState(messages=asked, understanding=understanding).goal
    return await GovernedPlanReview(agent, clock, no_mentions).review(
        plan, goal=goal, iteration=1, errand=Errand()
    )


@pytest.mark.parametrize(("intent", "locale", "question", "title", "warned"), TITLES)
async def test_a_plan_in_other_words_serves_its_goal_and_of_another_purpose_a_person_is_warned(
    agent_alone: CoordinatorAgent, clock, intent: Intent, locale: str, question: str, title: str, warned: bool
):
    ruling = await rule_on(agent_alone, clock, question, title, intent)
    assert ruling.plan is not None and bool(ruling.advice) is warned


@pytest.mark.parametrize(("question", "title"), KEPT["honest"])
async def test_no_honest_title_is_refused_whatever_words_it_takes(
    agent_alone: CoordinatorAgent, clock, question: str, title: str
):
    assert (await rule_on(agent_alone, clock, question, title)).plan is not None


@pytest.mark.parametrize(("question", "title"), KEPT["refused"])
async def test_a_plan_that_has_nothing_to_do_with_its_question_and_would_act_is_refused_by_name(
    agent_alone: CoordinatorAgent, clock, question: str, title: str
):
    ruling = await rule_on(agent_alone, clock, question, title)
    assert ruling.plan is None and "system.plan_act" in ruling.why


async def test_a_rule_of_ones_own_may_still_refuse_by_alignment(governance, clock):
    strict = about_plans("has(context.alignment_score) && context.alignment_score < 0.5")
    review = asked(governance, clock, strict)
    plan = PLAN.model_copy(update={"title": "Cheap flights to Rome"})
    assert (await review.review(plan, goal=GOAL, iteration=1, errand=Errand())).plan is None


@pytest.fixture
def agent_alone(clock: FixedClock) -> CoordinatorAgent:
    """The shipped rules without a database: nothing is kept."""
    return GovernanceContainer(trail=None, clock=clock).agent

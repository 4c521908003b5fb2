"""Puts a plan to the desk's rules: a decision, on the record before anybody sets out."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from moot.modules.governance.application.coordinator_agent import CoordinatorAgent, DecisionRequest
from moot.modules.governance.application.decision_log import explain
from moot.modules.intake.application.plan_rules import read_plan
from moot.modules.intake.application.ports import Errand
from moot.modules.intake.domain.plan import Plan
from moot.modules.intake.domain.question import Limits, reading_language
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import InvalidInput

REQUESTER = "intake"
Payload = Mapping[str, Any]


class PlanRuling(NamedTuple):
    """`plan` as the rules allow it; None where they do not, and then `why` and `advice` are for the planner."""

    plan: Plan | None
    why: str = ""
    advice: str = ""
    escalation_id: str | None = None
    """A person has been asked."""


class GovernedPlanReview:
    """Reviewed again, after a crash or a person's yes, a plan has its name again: what was approved for it holds."""

    def __init__(self, agent: CoordinatorAgent, clock: Clock) -> None:
        self._agent, self._clock = agent, clock

    async def review(self, plan: Plan, *, goal: str, iteration: int, errand: Errand) -> PlanRuling:
        session_id = UUID(errand.record) if errand.record else None
        request = DecisionRequest(
            f"plan:{session_id or 'unstored'}:{iteration}",
            "plan",
            _payload(plan),
            _facts(plan, errand, goal, iteration),
            errand.caller or REQUESTER,
            self._clock.now(),
        )
        decision = await self._agent.decide(request, session_id=session_id, workspace=errand.workspace)
        if decision.may_proceed:
            return _as_allowed(plan, decision.payload)
        why = explain(decision.record).in_locale(reading_language(plan.locale))
        asked = str(decision.escalation.id) if decision.escalation else None
        return PlanRuling(None, why, " ".join(decision.result.suggestions), asked)


def _payload(plan: Plan) -> dict[str, Any]:
    return {
        "title": plan.title,
        "locale": plan.locale,
        "steps": [step.model_dump(mode="json") for step in plan.steps],
        "step_count": len(plan.steps),
        "symbols": _symbols(plan),
    }


def _facts(plan: Plan, errand: Errand, goal: str, iteration: int) -> dict[str, Any]:
    return {
        "goal": goal,
        "iteration_count": iteration,
        "token_used": errand.tally.tokens,
        "cost": errand.tally.cost,
        "workspace": errand.workspace,
        "locale": reading_language(plan.locale),
    }


def _as_allowed(plan: Plan, allowed: Payload) -> PlanRuling:
    """What the rules have changed is read like any other plan; they may take away, and never add.

    A rule that lowers the count means the steps.
    """
    if allowed == _payload(plan):
        return PlanRuling(plan)
    if not plan.steps:
        return PlanRuling(plan.model_copy(update={"title": str(allowed["title"])}))
    # A rule that lowers the count means the steps.
    most = max(1, min(len(plan.steps), int(allowed["step_count"])))
    try:
        changed = read_plan(
            {**allowed, "thought": plan.thought},
            Limits(max_step_num=most),
            locale=str(allowed["locale"]),
            known_symbols=[symbol for symbol in _symbols(plan) if symbol in allowed["symbols"]],
        )
    except InvalidInput as e:
        return PlanRuling(None, e.in_locale(reading_language(plan.locale)))
    return PlanRuling(changed)


def _symbols(plan: Plan) -> list[str]:
    return list(dict.fromkeys(step.symbol for step in plan.steps if step.symbol))

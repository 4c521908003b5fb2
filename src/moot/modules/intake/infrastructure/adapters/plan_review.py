"""Puts a plan to the desk's rules: a decision, on the record before anybody sets out."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from moot.modules.governance.application.coordinator_agent import CoordinatorAgent, DecisionRequest
from moot.modules.governance.application.decision_log import explain
from moot.modules.intake.application.intake_state import Errand
from moot.modules.intake.application.plan_rules import read_plan
from moot.modules.intake.domain.question import Limits, Mention, Plan, Step
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import reading_language

REQUESTER = "intake"
Payload = Mapping[str, Any]
FindMentions = Callable[[str], Awaitable[Sequence[Mention]]]


class PlanRuling(NamedTuple):
    """`plan` as the rules allow it, with `advice` for whoever accepts it; None where they do not allow it, and then
    `why` and `advice` are for the planner."""

    plan: Plan | None
    why: str = ""
    advice: str = ""
    escalation_id: str | None = None
    """A person has been asked."""
    final: bool = False
    """A rule ends the work: no other plan would be allowed either."""


class GovernedPlanReview:
    """Reviewed again, after a crash or a person's yes, a plan has its name again: what was approved for it holds.

    `find_mentions`: companies that a text names. To look one up is to research it.
    """

    def __init__(self, agent: CoordinatorAgent, clock: Clock, find_mentions: FindMentions) -> None:
        self._agent, self._clock, self._find_mentions = agent, clock, find_mentions

    async def review(self, plan: Plan, *, goal: str, iteration: int, errand: Errand) -> PlanRuling:
        session_id, reader = UUID(errand.record) if errand.record else None, reading_language(plan.locale)
        payload = {
            "title": plan.title,
            "locale": plan.locale,
            "steps": [step.model_dump(mode="json") for step in plan.steps],
            "step_count": len(plan.steps),
            "symbols": await self.find_symbols(plan.steps),
        }
        facts = {
            "goal": goal,
            "iteration_count": iteration,
            "token_used": errand.tally.tokens,
            "cost": errand.tally.cost,
            "workspace": errand.workspace,
            "locale": reader,
        }
        request = DecisionRequest(
            f"plan:{session_id or 'unstored'}:{iteration}",
            "plan",
            payload,
            facts,
            errand.caller or REQUESTER,
            self._clock.now(),
        )
        decision = await self._agent.decide(request, session_id=session_id, workspace=errand.workspace)
        result = decision.result
        if not result.may_proceed:
            why = explain(decision.record).in_locale(reader)
            asked = str(decision.escalation.id) if decision.escalation else None
            return PlanRuling(None, why, " ".join(result.suggestions), asked, result.terminates)
        if result.payload == payload:
            return PlanRuling(plan, advice=" ".join(result.suggestions))
        allowed = _as_allowed(plan, result.payload)
        left = await self.find_symbols(allowed.plan.steps) if allowed.plan else []
        if set(left) <= set(result.payload["symbols"]):
            return allowed
        return PlanRuling(None, explain(decision.record).in_locale(reader))

    async def find_symbols(self, steps: Sequence[Step]) -> list[str]:
        """Those of the steps, and those that the words of what is to be looked up name beyond doubt."""
        looked_up = [f"{step.title}\n{step.description}" for step in steps if step.type == "research"]
        named = await self._find_mentions("\n".join(looked_up)) if looked_up else ()
        mentioned = [mention.symbols[0] for mention in named if mention.certain]
        return list(dict.fromkeys([*_symbols(steps), *mentioned]))


def _as_allowed(plan: Plan, allowed: Payload) -> PlanRuling:
    """What the rules have changed is read like any other plan; they may take away, and never add."""
    if not plan.steps:
        return PlanRuling(plan.model_copy(update={"title": str(allowed["title"])}))
    # A rule that lowers the count means the steps.
    most = max(1, min(len(plan.steps), int(allowed["step_count"])))
    try:
        changed = read_plan(
            {**allowed, "thought": plan.thought},
            Limits(max_step_num=most),
            locale=str(allowed["locale"]),
            known_symbols=[symbol for symbol in _symbols(plan.steps) if symbol in allowed["symbols"]],
        )
    except InvalidInput as e:
        return PlanRuling(None, e.in_locale(reading_language(plan.locale)))
    return PlanRuling(changed)


def _symbols(steps: Sequence[Step]) -> list[str]:
    return list(dict.fromkeys(step.symbol for step in steps if step.symbol))

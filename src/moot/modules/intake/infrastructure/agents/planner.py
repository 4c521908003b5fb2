"""Plans a question: by a model whose plan is checked field by field, by rules where there is none.

Every plan is put to the desk's rules before anybody sees it. How often a plan may be made anew is bounded, whoever
wants it: the rules, or a person.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import structlog

from moot.modules.intake.application.plan_repair import EXPERTS, repaired, spelled, written_symbols
from moot.modules.intake.application.plan_templates import plan_by_rules
from moot.modules.intake.domain.findings import Citation, Finding
from moot.modules.intake.domain.plan import Plan, PlanProblem
from moot.modules.intake.domain.ports import Companies, PlanReview, PlanRuling
from moot.modules.intake.domain.question import Limits, Understanding
from moot.modules.intake.infrastructure.agents.planning_talk import (
    Task,
    beside_the_question,
    in_lines,
    json_in,
    rejection,
    sent_back,
)
from moot.modules.intake.infrastructure.prompt_templates import PromptTemplates
from moot.modules.llm_platform.application.answer_schema import strict_schema
from moot.modules.llm_platform.application.llm_service import (
    ChatMessage,
    ChatResult,
    LLMService,
    ResponseSchema,
)
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import Unavailable, UpstreamFailed

logger = structlog.get_logger(__name__)

AGENT = "planner"
TURNS = 2
"""A plan that does not hold is sent back once, with what is wrong with it."""
SCHEMA = ResponseSchema(name="Plan", json_schema=strict_schema(Plan))

Maker = Literal["model", "rules"]
Ending = Literal["limit", "no_plan", "rejected", "escalated"]


class Planned(NamedTuple):
    """A plan to go on with, or why there is none. `iteration` counts every plan made for this question so far.

    `code` says what came in between: no plan that holds, a limit, or the rules, whose words are `why` and `advice`.
    `draft` is then what they were shown; while a person is asked about it, `reviewed_again` tells the answer.
    """

    plan: Plan | None
    iteration: int
    by: Maker = "model"
    warnings: tuple[str, ...] = ()
    code: Ending | None = None
    reason: str = ""
    why: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    escalation_id: str | None = None
    draft: Plan | None = None


class Draft(NamedTuple):
    """Before the rules have seen it. Without a plan, `warnings` say why there is none."""

    plan: Plan | None
    by: Maker
    warnings: tuple[str, ...] = ()


class Planner:
    """`companies` vouch for symbols that the question itself does not name; without them there are no others."""

    def __init__(
        self,
        llm: LLMService,
        prompts: PromptTemplates,
        review: PlanReview,
        clock: Clock,
        *,
        companies: Companies | None = None,
    ) -> None:
        self._llm, self._prompts, self._review = llm, prompts, review
        self._clock, self._companies = clock, companies

    async def plan(
        self,
        question: str,
        understanding: Understanding,
        *,
        background: Sequence[Citation] = (),
        limits: Limits,
        edits: Sequence[str] = (),
        findings: Sequence[Finding] = (),
        previous: Plan | None = None,
        iteration: int = 0,
    ) -> Planned:
        """`edits` is what a person wanted changed so far, `iteration` how many plans there were, the last `previous`.

        At the limit `previous` stands as it is: it can still be accepted.
        """
        task = Task(question, understanding, limits, background, findings, edits, previous)
        made, most = max(iteration, len(edits)), limits.max_plan_iterations
        if made >= most:
            reason = task.told("plan.ended.limit", most=most)
            return Planned(
                previous, made, warnings=(reason,) if previous else (), code="limit", reason=reason
            )
        return await self._until_allowed(task, made)

    async def reviewed_again(
        self, draft: Plan, question: str, understanding: Understanding, *, limits: Limits, iteration: int
    ) -> Planned:
        """A plan about which a person was asked: as they approved it, still waiting for them, or rejected."""
        task = Task(question, understanding, limits)
        ruling = await self._review.review(draft, goal=task.goal, iteration=iteration)
        if ruling.plan is not None:
            return Planned(ruling.plan, iteration)
        return _stopped(task, draft, ruling, iteration)

    async def _until_allowed(self, task: Task, made: int) -> Planned:
        """A plan, and another for each that the rules send back, up to the limit."""
        talk: list[ChatMessage] = []
        while True:
            made += 1
            draft = await self._draft(task, talk)
            if draft.plan is None:
                reason = task.told("plan.ended.no_plan", why=" ".join(draft.warnings))
                return Planned(None, made, draft.by, code="no_plan", reason=reason, why=draft.warnings)
            ruling = await self._review.review(draft.plan, goal=task.goal, iteration=made)
            if ruling.plan is not None:
                return Planned(ruling.plan, made, draft.by, draft.warnings)
            last = made >= task.limits.max_plan_iterations
            if ruling.escalation_id or draft.by == "rules" or last:
                stopped = _stopped(task, draft.plan, ruling, made)
                return stopped._replace(by=draft.by, warnings=draft.warnings)
            logger.info("plan rejected, made anew", iteration=made, why=ruling.why)
            talk.append(rejection(task, ruling))

    async def _draft(self, task: Task, talk: list[ChatMessage]) -> Draft:
        """A plan that holds. What is said to the model, and by it, is added to `talk`."""
        if not self._llm.configured:
            cannot = task.told("plan.ended.cannot_plan")
            return _by_rules(task, task.told("common.no_model")) or Draft(None, "rules", (cannot,))
        try:
            plan, problems = await self._by_model(task, talk)
            why = tuple(in_lines(problems))
        except (Unavailable, UpstreamFailed) as e:
            logger.warning("model gave no plan", error=str(e))
            plan, why = None, (e.in_locale(task.reader),)
        if plan is not None:
            return Draft(plan, "model")
        notice = task.told("plan.by_rules", why=" ".join(why))
        return _by_rules(task, notice) or Draft(None, "model", why)

    async def _by_model(
        self, task: Task, talk: list[ChatMessage]
    ) -> tuple[Plan | None, Sequence[PlanProblem]]:
        if not talk:
            talk += self._opening(task)
        problems: list[PlanProblem] = []
        for _ in range(TURNS):
            if problems:
                talk.append(sent_back(task, problems))
            reply = await self._llm.chat(
                talk, response_schema=SCHEMA, temperature=0.2, caller_module="intake", caller_agent=AGENT
            )
            talk.append(ChatMessage(role="assistant", content=reply.content or "{}"))
            plan, problems = await self._read(task, reply)
            if plan is not None:
                return plan, ()
            logger.warning("plan does not hold", problems=[problem.field for problem in problems])
        return None, problems

    async def _read(self, task: Task, reply: ChatResult) -> tuple[Plan | None, list[PlanProblem]]:
        if reply.finish_reason == "length":
            return None, [PlanProblem("plan", task.told("plan.cut_off"))]
        try:
            data = json_in(reply.content)
        except ValueError:
            return None, [PlanProblem("plan", task.told("plan.no_json"))]
        plan, problems = repaired(
            data,
            task.limits,
            locale=task.understanding.locale,
            known_symbols=await self._known(task, data),
            title=task.understanding.title,
            ended=[finding.step_id for finding in task.findings],
        )
        if plan is not None and plan.has_enough_context and not task.something_found:
            return None, [PlanProblem("has_enough_context", task.told("plan.nothing_found_yet"), "false")]
        return plan, problems

    async def _known(self, task: Task, data: Any) -> set[str]:
        """The symbols of the question, and those in `data` that the directory knows by this very code or name."""
        known = set(task.understanding.symbols)
        if self._companies is None:
            return known
        for written in written_symbols(data)[: task.limits.max_step_num]:
            if spelled(written, known) is None:
                found = await self._companies.find(written)
                exact = [m for m in found if written in m.names or spelled(written, m.symbols)]
                known.update(mention.symbols[0] for mention in exact if mention.certain)
        return known

    def _opening(self, task: Task) -> list[ChatMessage]:
        variables = {
            "locale": task.understanding.locale,
            "max_step_num": task.limits.max_step_num,
            "max_plan_iterations": task.limits.max_plan_iterations,
            "CURRENT_TIME": f"{self._clock.now():%Y-%m-%d %H:%M:%S}",
            "experts": EXPERTS,
            "symbols": task.understanding.symbols,
            "user_input": [ChatMessage(role="user", content=task.question)],
        }
        return [*self._prompts.messages(AGENT, variables), *beside_the_question(task)]


def _by_rules(task: Task, notice: str) -> Draft | None:
    """Rules plan once: what was found then is what there is to answer with."""
    if task.findings:
        told = {
            "thought": task.told("plan.enough"),
            "title": task.understanding.title or task.told("plan.untitled"),
        }
        return Draft(
            Plan(locale=task.understanding.locale, has_enough_context=True, **told), "rules", (notice,)
        )
    drawn = plan_by_rules(task.understanding, task.limits)
    if drawn is None:
        return None
    unheard = [task.told("plan.edit_without_model")] if task.edits else []
    return Draft(drawn.plan, "rules", (notice, *unheard, *drawn.warnings))


def _stopped(task: Task, draft: Plan, ruling: PlanRuling, made: int) -> Planned:
    asked, said = ruling.escalation_id, {"why": " ".join(ruling.why), "advice": " ".join(ruling.advice)}
    return Planned(
        None,
        made,
        code="escalated" if asked else "rejected",
        reason=task.told("approval.needed" if asked else "plan.ended.rejected", **said, id=asked).strip(),
        why=ruling.why,
        advice=ruling.advice,
        escalation_id=asked,
        draft=draft,
    )

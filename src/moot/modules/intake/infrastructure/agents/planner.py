"""Plans a question: by a model whose plan is checked field by field, by rules where there is none.

Every plan is put to the desk's rules before anybody sees it. One that they reject goes back to the model, then gives
way to the template, then is a person's to change. How often a plan may be made anew is bounded, whoever wants it.
What the model is told of evidence is quoted; a person's wishes are not.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import structlog
from pydantic import RootModel

from moot.modules.intake.application.intake_state import LONGEST, Errand, IntakeState
from moot.modules.intake.application.plan_rules import draw_plan, find_symbol, read_plan, symbols_in
from moot.modules.intake.domain.question import Citation, Finding, Limits, Plan, Spent
from moot.modules.intake.domain.texts import SAY
from moot.modules.intake.infrastructure.adapters.plan_review import GovernedPlanReview, PlanRuling
from moot.modules.intake.infrastructure.prompt_templates import PromptTemplates, ask_twice
from moot.modules.llm_platform.application.llm_service import ChatMessage, LLMService, parse_llm_json_output
from moot.modules.llm_platform.application.speaker import EngineChoice
from moot.modules.market_data.application.directory import Directory
from moot.shared.domain.errors import AppError, InvalidInput
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import reading_language

logger = structlog.get_logger(__name__)

AGENT = "planner"
LONGEST_QUOTE = 2000
AnyObject = RootModel[dict[str, Any]]

Maker = Literal["model", "rules"]
Ending = Literal["limit", "no_plan", "rejected", "refused", "escalated"]
"""`refused` by the rules like `rejected`, but with another word of a person it may become one they allow."""
CALLS_AFTER_EXPERTS = 4
"""Of a session: a bull, a bear, who sums them up, and a judge."""
TOKENS_ASKED, TOKENS_SAID = 4000, 1000
"""Of a call, as calls go here; to tell beforehand what a plan may cost."""


class Planned(NamedTuple):
    """A plan to go on with, or why there is none. `iteration` counts every plan made for this question so far,
    `sent_back` those of this time that the rules sent back to the model.

    `code` says what came in between: no plan that holds, a limit, or the rules. `draft` is then what they were shown;
    while a person is asked about it, `review_again` tells the answer.
    """

    plan: Plan | None
    iteration: int
    by: Maker = "model"
    warnings: tuple[str, ...] = ()
    code: Ending | None = None
    reason: str = ""
    escalation_id: str | None = None
    draft: Plan | None = None
    sent_back: int = 0
    estimate: Spent | None = None


class Planner:
    """`directory` vouches for symbols that the question itself does not name. What cannot run is not planned:
    without `can_search` nothing is looked up on the web. `repairs`: how often a plan which the rules reject goes back
    to the model.
    """

    def __init__(
        self,
        llm: LLMService,
        prompts: PromptTemplates,
        review: GovernedPlanReview,
        directory: Directory,
        *,
        repairs: int,
        can_search: bool,
        choice: EngineChoice,
    ) -> None:
        self._llm, self._prompts, self._review = llm, prompts, review
        self._directory, self._repairs, self._can_search = directory, repairs, can_search
        self._choice = choice

    async def plan(self, state: IntakeState, errand: Errand) -> Planned:
        """At the limit the previous plan stands as it is: it can still be accepted."""
        if state.plan_iterations >= state.most_plans:
            reason = state.say("plan.ended.limit", most=state.most_plans)
            warnings = (reason,) if state.plan else ()
            return Planned(state.plan, state.plan_iterations, warnings=warnings, code="limit", reason=reason)
        planned = await self._until_allowed(state, errand)
        notes = () if state.plan else state.understood.notes
        estimate = self._estimate(planned.plan or planned.draft, state.limits)
        return planned._replace(warnings=(*notes, *planned.warnings), estimate=estimate)

    async def review_again(self, draft: Plan, state: IntakeState, errand: Errand) -> Planned:
        """A plan about which a person was asked: as they approved it, still waiting for them, or rejected."""
        planned = Planned(draft, state.plan_iterations)
        ruling = await self._rule_on(planned, state, errand)
        return planned._replace(plan=ruling.plan) if ruling.plan else _stop(state, planned, ruling)

    def _estimate(self, plan: Plan | None, limits: Limits) -> Spent | None:
        """What models may take to carry a plan out and write the answer; no cost where nobody knows a price."""
        if plan is None or not self._llm.configured:
            return Spent() if plan else None
        calls = 1
        for step in plan.steps:
            experts = (
                (len(step.experts) or len(ExpertType)) + CALLS_AFTER_EXPERTS if self._choice.by_model else 0
            )
            calls += {"equity": experts, "research": limits.max_tool_calls + 1, "processing": 1}[step.type]
        prompts, answers = calls * TOKENS_ASKED, calls * TOKENS_SAID
        cost = self._llm.candidates()[0].cost(prompts, answers)
        return Spent(requests=calls, tokens=prompts + answers, cost=cost)

    async def _rule_on(self, draft: Planned, state: IntakeState, errand: Errand) -> PlanRuling:
        """A company that the rules refused to research is not planned in another way."""
        assert draft.plan is not None
        for symbol in await self._review.find_symbols(draft.plan.steps) if state.refused else ():
            if symbol in state.refused:
                return PlanRuling(None, state.refused[symbol])
        return await self._review.review(
            draft.plan, goal=state.goal, iteration=draft.iteration, errand=errand
        )

    async def _until_allowed(self, state: IntakeState, errand: Errand) -> Planned:
        """A plan, another for each that the rules send back, and at last the template."""
        talk: list[ChatMessage] = []
        draft, sent_back = await self._draft(state, talk), 0
        while draft.plan is not None:
            draft = draft._replace(iteration=state.plan_iterations + sent_back + 1, sent_back=sent_back)
            ruling = await self._rule_on(draft, state, errand)
            if ruling.plan is not None:
                advice = (ruling.advice,) if ruling.advice else ()
                return draft._replace(plan=ruling.plan, warnings=(*draft.warnings, *advice))
            again = await self._again(state, draft, ruling, talk)
            if again is None:
                return _stop(state, draft, ruling, to_change=self._llm.configured)
            draft, sent_back = again, sent_back + 1
        return draft._replace(iteration=state.plan_iterations + 1)

    async def _again(
        self, state: IntakeState, draft: Planned, ruling: PlanRuling, talk: list[ChatMessage]
    ) -> Planned | None:
        """Another plan in place of one that the rules reject; None where nobody here has one."""
        if ruling.escalation_id or ruling.final or draft.by == "rules":
            return None
        logger.info("plan rejected, made anew", iteration=draft.iteration, why=ruling.why)
        if draft.sent_back < self._repairs:
            advice = ruling.advice or SAY("plan.turn.no_advice")
            talk.append(_ask(state, "rejected", why=ruling.why, advice=advice))
            return await self._draft(state, talk)
        template = self._by_rules(state, state.say("plan.by_rules", why=ruling.why), ruling.why)
        return template if template.plan else None

    async def _draft(self, state: IntakeState, talk: list[ChatMessage]) -> Planned:
        """A plan before the rules have seen it. What is said to the model, and by it, is added to `talk`."""
        if not self._llm.configured:
            return self._by_rules(state, state.say("common.no_model"), state.say("plan.ended.cannot_plan"))

        async def read(said: str) -> tuple[Plan, tuple[()]]:
            return await self._read(state, parse_llm_json_output(said, AnyObject).root), ()

        reader = reading_language(state.understood.locale)
        try:
            talk += [] if talk else self._opening(state)
            plan, _ = await ask_twice(
                self._llm, talk, Plan, read, agent=AGENT, temperature=0.2, reader=reader
            )
        except AppError as e:
            logger.warning("model gave no plan", error=str(e))
            why = e.in_locale(reader)
            return self._by_rules(state, state.say("plan.by_rules", why=why), why)
        return Planned(plan, state.plan_iterations)

    def _by_rules(self, state: IntakeState, notice: str, otherwise: str) -> Planned:
        """Rules plan once: what was found then is what there is to answer with. `otherwise`: why there is none."""
        title, locale = state.understood.title, state.understood.locale
        warnings: tuple[str, ...] = ()
        if state.findings:
            told = {"thought": state.say("plan.enough"), "title": title or state.say("plan.untitled")}
            plan = Plan(locale=locale, has_enough_context=True, **told)
        elif drawn := draw_plan(state.understood, state.limits, can_search=self._can_search):
            plan, warnings = drawn
            if state.edits:
                warnings = (state.say("plan.edit_without_model"), *warnings)
        else:
            if state.understood.intent == "research" and not self._can_search:
                otherwise += " " + state.say("plan.ended.no_search")
            reason = state.say("plan.ended.no_plan", why=otherwise)
            return Planned(None, state.plan_iterations, "rules", code="no_plan", reason=reason)
        return Planned(plan, state.plan_iterations, "rules", (notice, *warnings))

    async def _read(self, state: IntakeState, data: Mapping[str, Any]) -> Plan:
        plan = read_plan(
            data,
            state.limits,
            locale=state.understood.locale,
            known_symbols=await self._find_known(state, data),
            title=state.understood.title,
            ended=[finding.step_id for finding in state.findings],
            can_search=self._can_search,
        )
        if plan.has_enough_context and not state.something_found:
            raise InvalidInput(SAY("plan.nothing_found_yet"))
        return plan

    async def _find_known(self, state: IntakeState, data: Any) -> set[str]:
        """The symbols of the question, and those in `data` that the directory knows by this very code or name."""
        known = set(state.understood.symbols)
        for written in symbols_in(data)[: state.limits.max_step_num]:
            if find_symbol(written, known) is None:
                found = [match.company for match in await self._directory.find(written) if match.listed]
                names = {each.symbol: (each.name, each.name_en) for each in found}
                known |= {name for name in names if written in names[name] or find_symbol(written, [name])}
        return known

    def _opening(self, state: IntakeState) -> list[ChatMessage]:
        variables = {
            "locale": state.understood.locale,
            "max_step_num": state.limits.max_step_num,
            "max_plan_iterations": state.most_plans,
            "experts": [expert.value for expert in ExpertType],
            "symbols": state.understood.symbols,
            "can_search": self._can_search,
            "user_input": [ChatMessage(role="user", content=state.question)],
        }
        return [*self._prompts.messages(AGENT, variables), *_beside_the_question(state)]


def _stop(state: IntakeState, draft: Planned, ruling: PlanRuling, *, to_change: bool = False) -> Planned:
    """`to_change`: a person may say what else to plan."""
    asked, said = ruling.escalation_id, {"why": ruling.why, "advice": ruling.advice}
    code: Ending = "escalated" if asked else "rejected"
    reason = state.say("approval.needed" if asked else "plan.ended.rejected", **said, id=asked).strip()
    if to_change and not asked and not ruling.final:
        code, reason = "refused", state.say("plan.ended.refused", why=reason)
    return draft._replace(plan=None, code=code, reason=reason, escalation_id=asked, draft=draft.plan)


def _ask(state: IntakeState, key: str, **values: Any) -> ChatMessage:
    return ChatMessage(role="user", content=state.say(f"plan.turn.{key}", **values))


def _beside_the_question(state: IntakeState) -> Iterator[ChatMessage]:
    """Evidence as quoted data, then the plan so far and what a person thinks of it."""
    if state.background:
        yield _ask(state, "evidence", text=quote_sources(state.background))
    if state.findings:
        yield _ask(state, "findings", text="\n".join(_tell_found(found, state) for found in state.findings))
    if state.plan is not None:
        yield ChatMessage(role="assistant", content=state.plan.model_dump_json())
    yield from (_ask(state, "feedback", text=each[:LONGEST]) for each in state.edits)


def quote_sources(sources: Sequence[Citation]) -> str:
    """What strangers wrote, a line each."""
    return "\n".join(_quote(each.model_dump(exclude_none=True)) for each in sources)


def _tell_found(finding: Finding, state: IntakeState) -> str:
    """A step that failed has found nothing, whatever its error says."""
    if not finding.usable:
        return f"{finding.step_id}: {state.say('plan.turn.failed_step')}"
    return f"{finding.step_id}: {_quote(finding.text[:LONGEST])}"


def _quote(said: str | Mapping[str, str]) -> str:
    """As JSON: it cannot end its line, nor close what it stands in."""
    texts = said if isinstance(said, str) else {name: text[:LONGEST_QUOTE] for name, text in said.items()}
    return json.dumps(texts, ensure_ascii=False).replace("<", "\\u003c")

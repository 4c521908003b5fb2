"""Plans a question: by a model whose plan is checked field by field, by rules where there is none.

Every plan is put to the desk's rules before anybody sees it. One that they reject goes back to the model, then gives
way to the template, then is a person's to change. How often a plan may be made anew is bounded, whoever wants it.
What the model is told of evidence is quoted; a person's wishes are not.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import structlog
from pydantic import RootModel

from moot.modules.intake.application.plan_rules import (
    LONGEST_TEXT,
    draw_plan,
    find_symbol,
    read_plan,
    symbols_in,
)
from moot.modules.intake.application.ports import Errand
from moot.modules.intake.domain.plan import Citation, Finding, Plan, Spent
from moot.modules.intake.domain.question import Limits, Understanding, reading_language
from moot.modules.intake.domain.texts import SAY
from moot.modules.intake.infrastructure.adapters.plan_review import GovernedPlanReview, LastWord, PlanRuling
from moot.modules.intake.infrastructure.agents.json_answers import ask_twice
from moot.modules.intake.infrastructure.prompt_templates import PromptTemplates
from moot.modules.llm_platform.application.llm_service import ChatMessage, LLMService, parse_llm_json_output
from moot.modules.llm_platform.application.speaker import EngineChoice
from moot.modules.market_data.application.directory import Directory
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError, InvalidInput
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import Locale

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
REPAIRS = 2
"""Times that a plan which the rules reject goes back to the model."""


class Inquiry(NamedTuple):
    """One question, and all that is known while it is planned.

    `edits` is what a person wanted changed so far, `iteration` how many plans there were, the last `previous`.
    """

    question: str
    understanding: Understanding
    errand: Errand
    limits: Limits = Limits()
    background: Sequence[Citation] = ()
    findings: Sequence[Finding] = ()
    edits: Sequence[str] = ()
    previous: Plan | None = None
    iteration: int = 0

    @property
    def reader(self) -> Locale:
        return reading_language(self.understanding.locale)

    @property
    def goal(self) -> str:
        """What a person asks, with the companies the desk takes it to mean; no word of a model is in it."""
        question = self.question[:LONGEST_TEXT]
        named = [
            word
            for mention in self.understanding.mentions
            if mention.certain
            for word in (*mention.names, *mention.symbols)
        ]
        return self.say("plan.goal", question=question, about=" ".join([*named, *self.edits]) or question)

    @property
    def something_found(self) -> bool:
        """Of a company only research tells enough: strangers on the web cannot make it needless."""
        found = any(finding.usable for finding in self.findings)
        return found or (self.understanding.intent != "equity" and bool(self.background))

    @property
    def refused(self) -> dict[str, str]:
        """Companies whose research the rules refused, and why."""
        steps = {step.id: step.symbol for step in (self.previous.steps if self.previous else ())}
        refused = [found for found in self.findings if found.refused and steps.get(found.step_id)]
        return {str(steps[found.step_id]): found.error or "" for found in refused}

    def say(self, key: str, **values: Any) -> str:
        return SAY(key, **values).in_locale(self.reader)

    def ask(self, key: str, **values: Any) -> ChatMessage:
        return ChatMessage(role="user", content=self.say(key, **values))


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
    without `can_search` nothing is looked up on the web."""

    def __init__(
        self,
        llm: LLMService,
        prompts: PromptTemplates,
        review: GovernedPlanReview,
        clock: Clock,
        directory: Directory,
        *,
        repairs: int = REPAIRS,
        can_search: bool = True,
        choice: EngineChoice | None = None,
    ) -> None:
        self._llm, self._prompts, self._review = llm, prompts, review
        self._clock, self._directory = clock, directory
        self._repairs, self._can_search = repairs, can_search
        self._choice = choice or EngineChoice(llm)

    async def plan(self, inquiry: Inquiry) -> Planned:
        """At the limit the previous plan stands as it is: it can still be accepted."""
        previous, most = inquiry.previous, inquiry.limits.max_plan_iterations
        made = max(inquiry.iteration, len(inquiry.edits))
        if made >= most:
            reason = inquiry.say("plan.ended.limit", most=most)
            warnings = (reason,) if previous else ()
            return Planned(previous, made, warnings=warnings, code="limit", reason=reason)
        planned = await self._until_allowed(inquiry, made)
        notes = () if previous else inquiry.understanding.notes
        estimate = self._estimate(planned.plan or planned.draft, inquiry.limits)
        return planned._replace(warnings=(*notes, *planned.warnings), estimate=estimate)

    async def review_again(self, draft: Plan, inquiry: Inquiry) -> Planned:
        """A plan about which a person was asked: as they approved it, still waiting for them, or rejected."""
        ruling = await self._rule_on(draft, inquiry, inquiry.iteration)
        if ruling.plan is not None:
            return Planned(ruling.plan, inquiry.iteration)
        return _tell_stop(inquiry, draft, ruling, inquiry.iteration)

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

    async def _rule_on(self, plan: Plan, inquiry: Inquiry, made: int) -> PlanRuling:
        """A company that the rules refused to research is not planned in another way."""
        for symbol in await self._review.find_symbols(plan) if inquiry.refused else ():
            if symbol in inquiry.refused:
                return PlanRuling(None, inquiry.refused[symbol])
        return await self._review.review(plan, goal=inquiry.goal, iteration=made, errand=inquiry.errand)

    async def _until_allowed(self, inquiry: Inquiry, made: int) -> Planned:
        """A plan, another for each that the rules send back, and at last the template."""
        talk: list[ChatMessage] = []
        draft, sent_back = await self._draft(inquiry, talk), 0
        while True:
            made += 1
            draft = draft._replace(iteration=made, sent_back=sent_back)
            if draft.plan is None:
                return draft
            ruling = await self._rule_on(draft.plan, inquiry, made)
            if ruling.plan is not None:
                advice = (ruling.advice,) if ruling.advice else ()
                return draft._replace(plan=ruling.plan, warnings=(*draft.warnings, *advice))
            again = await self._again(inquiry, draft, ruling, talk)
            if again is None:
                return self._stop(inquiry, draft, ruling)
            draft, sent_back = again, sent_back + 1

    async def _again(
        self, inquiry: Inquiry, draft: Planned, ruling: PlanRuling, talk: list[ChatMessage]
    ) -> Planned | None:
        """Another plan in place of one that the rules reject; None where nobody here has one."""
        if ruling.escalation_id or isinstance(ruling, LastWord) or draft.by == "rules":
            return None
        logger.info("plan rejected, made anew", iteration=draft.iteration, why=ruling.why)
        if draft.sent_back < self._repairs:
            advice = ruling.advice or SAY("plan.turn.no_advice")
            talk.append(inquiry.ask("plan.turn.rejected", why=ruling.why, advice=advice))
            return await self._draft(inquiry, talk)
        template = self._by_rules(inquiry, inquiry.say("plan.by_rules", why=ruling.why), ruling.why)
        return template if template.plan else None

    def _stop(self, inquiry: Inquiry, draft: Planned, ruling: PlanRuling) -> Planned:
        """A person may say what else to plan, where a model can follow that."""
        assert draft.plan is not None
        stopped = _tell_stop(inquiry, draft.plan, ruling, draft.iteration)
        stopped = stopped._replace(by=draft.by, warnings=draft.warnings, sent_back=draft.sent_back)
        if stopped.code != "rejected" or isinstance(ruling, LastWord) or not self._llm.configured:
            return stopped
        return stopped._replace(code="refused", reason=inquiry.say("plan.ended.refused", why=stopped.reason))

    async def _draft(self, inquiry: Inquiry, talk: list[ChatMessage]) -> Planned:
        """A plan before the rules have seen it. What is said to the model, and by it, is added to `talk`."""
        if not self._llm.configured:
            return self._by_rules(
                inquiry, inquiry.say("common.no_model"), inquiry.say("plan.ended.cannot_plan")
            )

        async def read(said: str) -> tuple[Plan, tuple[()]]:
            return await self._read(inquiry, parse_llm_json_output(said, AnyObject).root), ()

        try:
            talk += [] if talk else self._opening(inquiry)
            plan, _ = await ask_twice(
                self._llm, talk, Plan, read, agent=AGENT, temperature=0.2, reader=inquiry.reader
            )
        except AppError as e:
            logger.warning("model gave no plan", error=str(e))
            why = e.in_locale(inquiry.reader)
            return self._by_rules(inquiry, inquiry.say("plan.by_rules", why=why), why)
        return Planned(plan, inquiry.iteration)

    def _by_rules(self, inquiry: Inquiry, notice: str, otherwise: str) -> Planned:
        """Rules plan once: what was found then is what there is to answer with. `otherwise`: why there is none."""
        title, locale = inquiry.understanding.title, inquiry.understanding.locale
        warnings: tuple[str, ...] = ()
        if inquiry.findings:
            told = {"thought": inquiry.say("plan.enough"), "title": title or inquiry.say("plan.untitled")}
            plan = Plan(locale=locale, has_enough_context=True, **told)
        elif drawn := draw_plan(inquiry.understanding, inquiry.limits, can_search=self._can_search):
            plan, warnings = drawn
            if inquiry.edits:
                warnings = (inquiry.say("plan.edit_without_model"), *warnings)
        else:
            if inquiry.understanding.intent == "research" and not self._can_search:
                otherwise += " " + inquiry.say("plan.ended.no_search")
            reason = inquiry.say("plan.ended.no_plan", why=otherwise)
            return Planned(None, inquiry.iteration, "rules", code="no_plan", reason=reason)
        return Planned(plan, inquiry.iteration, "rules", (notice, *warnings))

    async def _read(self, inquiry: Inquiry, data: Mapping[str, Any]) -> Plan:
        plan = read_plan(
            data,
            inquiry.limits,
            locale=inquiry.understanding.locale,
            known_symbols=await self._find_known(inquiry, data),
            title=inquiry.understanding.title,
            ended=[finding.step_id for finding in inquiry.findings],
            can_search=self._can_search,
        )
        if plan.has_enough_context and not inquiry.something_found:
            raise InvalidInput(SAY("plan.nothing_found_yet"))
        return plan

    async def _find_known(self, inquiry: Inquiry, data: Any) -> set[str]:
        """The symbols of the question, and those in `data` that the directory knows by this very code or name."""
        known = set(inquiry.understanding.symbols)
        for written in symbols_in(data)[: inquiry.limits.max_step_num]:
            if find_symbol(written, known) is None:
                found = [match.company for match in await self._directory.find(written) if match.listed]
                names = {each.symbol: (each.name, each.name_en) for each in found}
                known |= {name for name in names if written in names[name] or find_symbol(written, [name])}
        return known

    def _opening(self, inquiry: Inquiry) -> list[ChatMessage]:
        variables = {
            "locale": inquiry.understanding.locale,
            "max_step_num": inquiry.limits.max_step_num,
            "max_plan_iterations": inquiry.limits.max_plan_iterations,
            "CURRENT_TIME": f"{self._clock.now():%Y-%m-%d %H:%M:%S}",
            "experts": [expert.value for expert in ExpertType],
            "symbols": inquiry.understanding.symbols,
            "can_search": self._can_search,
            "user_input": [ChatMessage(role="user", content=inquiry.question)],
        }
        return [*self._prompts.messages(AGENT, variables), *beside_the_question(inquiry)]


def _tell_stop(inquiry: Inquiry, draft: Plan, ruling: PlanRuling, made: int) -> Planned:
    asked, said = ruling.escalation_id, {"why": ruling.why, "advice": ruling.advice}
    return Planned(
        None,
        made,
        code="escalated" if asked else "rejected",
        reason=inquiry.say("approval.needed" if asked else "plan.ended.rejected", **said, id=asked).strip(),
        escalation_id=asked,
        draft=draft,
    )


def beside_the_question(inquiry: Inquiry) -> list[ChatMessage]:
    """Evidence as quoted data, then the plan so far and what a person thinks of it."""
    said = []
    if inquiry.background:
        said.append(inquiry.ask("plan.turn.evidence", text=quote_sources(inquiry.background)))
    if inquiry.findings:
        lines = "\n".join(_tell_found(finding, inquiry) for finding in inquiry.findings)
        said.append(inquiry.ask("plan.turn.findings", text=lines))
    if inquiry.previous is not None:
        said.append(ChatMessage(role="assistant", content=inquiry.previous.model_dump_json()))
    return said + [inquiry.ask("plan.turn.feedback", text=each[:LONGEST_TEXT]) for each in inquiry.edits]


def quote_sources(sources: Sequence[Citation]) -> str:
    """What strangers wrote, a line each."""
    return "\n".join(_quote(each.model_dump(exclude_none=True)) for each in sources)


def _tell_found(finding: Finding, inquiry: Inquiry) -> str:
    """A step that failed has found nothing, whatever its error says."""
    if not finding.usable:
        return f"{finding.step_id}: {inquiry.say('plan.turn.failed_step')}"
    return f"{finding.step_id}: {_quote(finding.text[:LONGEST_TEXT])}"


def _quote(said: str | Mapping[str, str]) -> str:
    """As JSON: it cannot end its line, nor close what it stands in."""
    texts = said if isinstance(said, str) else {name: text[:LONGEST_QUOTE] for name, text in said.items()}
    return json.dumps(texts, ensure_ascii=False).replace("<", "\\u003c")

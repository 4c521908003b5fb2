"""The main graph: coordinator, background, planner, a person, the team, the reporter; each says where it goes on.

A node that stops for a person runs again from its top when the person has answered, so nothing costly comes before.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from moot.modules.intake.application.intake_state import (
    OPTIONS,
    CoordinatorState,
    IntakeGraph,
    IntakeState,
    Keeper,
    Stand,
    question_of,
)
from moot.modules.intake.application.language import locale_of
from moot.modules.intake.application.ports import Errand, Task
from moot.modules.intake.domain.conversation import Style
from moot.modules.intake.domain.plan import Citation, Finding, Plan, Step
from moot.modules.intake.domain.question import Limits, Understanding, reading_language
from moot.modules.intake.infrastructure.adapters.toolbox import GovernedToolbox
from moot.modules.intake.infrastructure.agents.planner import Inquiry, Planned, Planner, quote_sources
from moot.modules.intake.infrastructure.agents.reporter import Reporter
from moot.modules.intake.infrastructure.agents.team import Team
from moot.modules.intake.infrastructure.graph.checkpoints import Saver
from moot.modules.intake.infrastructure.graph.coordinator_graph import (
    BACKGROUND_INVESTIGATOR,
    PLANNER,
    Coordinator,
)
from moot.shared.domain.errors import AppError

COORDINATOR, HUMAN_FEEDBACK, APPROVAL = "coordinator", "human_feedback", "approval"
RESEARCH_TEAM, REPORTER = "research_team", "reporter"
SEARCH = "web_search"
LONGEST_QUERY = 400
MOST_EDITS = 5
Update = dict[str, Any]
Node = Callable[..., Awaitable[Update]]
Run = Runtime[Keeper]
Compiled = CompiledStateGraph[IntakeState, Keeper, IntakeState, IntakeState]


class Known(BaseModel, frozen=True):
    """The state of a question as the nodes after the coordinator read it."""

    messages: list[dict[str, Any]]
    locale: str
    understanding: Understanding
    limits: Limits = Limits()
    style: Style = "research"
    background: list[Citation] = []
    plan: Plan | None = None
    plan_iterations: int = 0
    plan_repairs: int = 0
    escalation: dict[str, Any] | None = None
    edits: list[str] = []
    findings: list[Finding] = []
    earlier: list[dict[str, Any]] = []
    warnings: list[str] = []

    @property
    def room(self) -> Limits:
        """What a person wants changed is not counted against the planner, but not for ever; nor what the rules do."""
        most = self.limits.max_plan_iterations + min(len(self.edits), MOST_EDITS) + self.plan_repairs
        return self.limits.model_copy(update={"max_plan_iterations": most})

    @property
    def current_warnings(self) -> list[str]:
        """Without the word that somebody has to approve the plan: that is no news any more."""
        told = (self.escalation or {}).get("told")
        return [warning for warning in self.warnings if warning != told]

    def task(self, errand: Errand) -> Task:
        question, background = question_of({"messages": self.messages}), quote_sources(self.background)
        return Task(question, self.locale, errand, self.limits, background)

    def inquiry(self, errand: Errand) -> Inquiry:
        return Inquiry(
            question_of({"messages": self.messages}),
            self.understanding,
            errand,
            limits=self.room,
            background=self.background,
            findings=self.findings,
            edits=self.edits,
            previous=self.plan,
            iteration=self.plan_iterations,
        )


@dataclass(frozen=True)
class Parts:
    coordinator: Coordinator
    toolbox: GovernedToolbox
    planner: Planner
    team: Team
    reporter: Reporter


class LangGraphIntake(IntakeGraph):
    """`more` are nodes beside those of the desk: a route of the coordinator may lead to them."""

    def __init__(self, parts: Parts, saver: Saver, *, more: Mapping[str, Node] | None = None) -> None:
        self._parts = parts
        self._graph = self._compile(saver, more or {})

    async def run(
        self, keeper: Keeper, *, state: IntakeState | None = None, feedback: Mapping[str, Any] | None = None
    ) -> Stand:
        given: Any = Command(resume=dict(feedback)) if feedback is not None else state
        config: RunnableConfig = {"configurable": {"thread_id": keeper.thread}}
        async with self._parts.team.watch.turn():
            ended = await self._graph.ainvoke(given, config, context=keeper, durability="sync")
        waits = bool(ended.pop("__interrupt__", None))
        return Stand(cast(IntakeState, ended), waits)

    def _compile(self, saver: Saver, more: Mapping[str, Node]) -> Compiled:
        nodes: dict[str, Node] = {
            COORDINATOR: self._coordinate,
            BACKGROUND_INVESTIGATOR: self._investigate,
            PLANNER: self._plan,
            HUMAN_FEEDBACK: self._ask_a_person,
            APPROVAL: self._see_whether_approved,
            RESEARCH_TEAM: self._research,
            REPORTER: self._report,
            **more,
        }
        graph = StateGraph(IntakeState, context_schema=Keeper)
        for name, node in nodes.items():
            graph.add_node(name, cast(Any, node))
            graph.add_conditional_edges(name, _by_goto, [*nodes, END])
        graph.add_edge(START, COORDINATOR)
        return graph.compile(checkpointer=saver, name="intake")

    async def _coordinate(self, state: IntakeState, runtime: Run) -> Update:
        known = CoordinatorState.__annotations__
        asked = {name: value for name, value in state.items() if name in known and value is not None}
        workspace = runtime.context.errand.workspace
        try:
            return dict(await self._parts.coordinator.run(cast(CoordinatorState, asked), workspace))
        except AppError as e:
            locale = locale_of(state.get("locale"), question_of(state), "")
            said = e.in_locale(reading_language(locale))
            return {"goto": END, "locale": locale, "error": {"code": e.code, "message": said}}

    async def _investigate(self, state: IntakeState, runtime: Run) -> Update:
        """What the web says about it, in its own words, helps the planner; that it says nothing stops nobody."""
        if all(tool.name != SEARCH for tool in self._parts.toolbox.tools):
            return {"goto": PLANNER}
        errand = runtime.context.errand
        task = _read(state).task(errand)
        query = {"query": task.goal[:LONGEST_QUERY], "count": task.limits.max_search_results}
        errand.tell("tool_call", step=BACKGROUND_INVESTIGATOR, name=SEARCH, arguments=query)
        outcome = await self._parts.toolbox.call(SEARCH, query, task, iteration_count=0)
        found = [] if outcome.failed else [each.model_dump(mode="json") for each in outcome.citations]
        for citation in found:
            errand.tell("citation", step=BACKGROUND_INVESTIGATOR, **citation)
        return {"background": found, "goto": PLANNER}

    async def _plan(self, state: IntakeState, runtime: Run) -> Update:
        known, errand = _read(state), runtime.context.errand
        planned = await self._parts.planner.plan(known.inquiry(errand))
        if planned.code == "limit" and known.escalation:
            return {"warnings": [*known.warnings, *planned.warnings], "goto": HUMAN_FEEDBACK}
        return _draw_up(known, planned, errand)

    async def _ask_a_person(self, state: IntakeState) -> Update:
        """What the rules want approved is nobody's to accept beforehand."""
        known = _read(state)
        if state.get("auto_accepted_plan") and not known.escalation:
            return {"goto": RESEARCH_TEAM}
        asked = (
            {"escalation_id": known.escalation["id"]} if known.escalation and known.escalation["id"] else {}
        )
        said = interrupt({"plan": state["plan"], "options": OPTIONS, **asked})
        if said["decision"] == "edit_plan":
            return {"edits": [*known.edits, said.get("text", "")], "goto": PLANNER}
        if said["decision"] == "accepted":
            return {"goto": APPROVAL if known.escalation else RESEARCH_TEAM}
        if known.findings:
            return {"warnings": known.current_warnings, "escalation": None, "goto": REPORTER}
        return {"rejected": True, "goto": END}

    async def _see_whether_approved(self, state: IntakeState, runtime: Run) -> Update:
        """The very plan that was escalated is put to the rules again, in the name of whoever had asked for it."""
        known, errand = _read(state), runtime.context.errand
        assert known.escalation is not None
        draft = Plan.model_validate(known.escalation["draft"])
        inquiry = known.inquiry(replace(errand, caller=known.escalation["requester"]))
        planned = await self._parts.planner.review_again(draft, inquiry)
        if planned.code == "rejected" and not known.findings:
            told = {"warnings": known.current_warnings, "reply": planned.reason}
            return {"rejected": True, "escalation": None, **told, "goto": END}
        update = _draw_up(known, planned, errand)
        if planned.plan == draft and update["goto"] == HUMAN_FEEDBACK:
            return update | {"goto": RESEARCH_TEAM}
        return update

    async def _research(self, state: IntakeState, runtime: Run) -> Update:
        known, keeper = _read(state), runtime.context
        plan, before = known.plan, {finding.step_id: finding for finding in known.findings}
        assert plan is not None
        done = {
            finding.step_id: finding for finding in [*_find_earlier(known, plan), *keeper.findings]
        } | before
        for step in plan.steps:
            if step.id in done.keys() - before.keys():
                _tell_step(step, done[step.id], keeper.errand)
        await keeper.keep(plan=plan, understanding=known.understanding, locale=plan.locale)
        async with asyncio.TaskGroup() as writing:

            def on_step(step: Step, finding: Finding | None) -> None:
                _tell_step(step, finding, keeper.errand)
                if finding is not None:
                    writing.create_task(keeper.keep_finding(finding))

            task = known.task(keeper.errand)
            found = await self._parts.team.work(plan, task, done=done, on_step=on_step)
        more = state.get("plan_iterations", 1) < known.room.max_plan_iterations
        all_of_it = before | {finding.step_id: finding for finding in found}
        return {
            "findings": [finding.model_dump(mode="json") for finding in all_of_it.values()],
            "goto": PLANNER if more else REPORTER,
        }

    async def _report(self, state: IntakeState, runtime: Run) -> Update:
        known, errand = _read(state), runtime.context.errand
        answer = await self._parts.reporter.write(
            question_of(state),
            known.plan,
            known.findings,
            locale=known.locale,
            style=known.style,
            background=known.background,
            warnings=known.warnings,
            errand=errand,
        )
        told = answer.model_dump(mode="json")
        errand.tell("report", **told)
        return {"answer": told, "goto": END}


async def _by_goto(state: IntakeState) -> str:
    return state["goto"]


def _read(state: IntakeState) -> Known:
    return Known.model_validate({name: value for name, value in state.items() if value is not None})


def _draw_up(known: Known, planned: Planned, errand: Errand) -> Update:
    """A plan goes to a person, even one that somebody else has to approve, or that the rules refuse as it is;
    without one it ends.

    What was found out under an earlier plan is told all the same.
    """
    held = planned.code in ("escalated", "refused")
    plan = planned.draft if held else planned.plan
    warnings = [*known.current_warnings, *planned.warnings]
    update: Update = {
        "plan_iterations": planned.iteration,
        "plan_repairs": known.plan_repairs + planned.sent_back,
        "warnings": warnings,
        "escalation": None,
        **({"estimate": planned.estimate.model_dump()} if planned.estimate else {}),
    }
    if plan is None and known.findings:
        return update | {"warnings": [*warnings, planned.reason], "goto": REPORTER}
    if plan is None:
        return update | {"error": {"code": "NO_PLAN", "message": planned.reason}, "goto": END}
    update["plan"] = _join(known, plan).model_dump(mode="json")
    asked = {"escalation_id": planned.escalation_id} if planned.escalation_id else {}
    told = {"iteration": planned.iteration, "estimate": update.get("estimate"), **asked}
    errand.tell("plan", plan=update["plan"], **told)
    if held:
        escalation = {
            "id": planned.escalation_id,
            "draft": plan.model_dump(mode="json"),
            "requester": errand.caller,
            "told": planned.reason,
        }
        update |= {"escalation": escalation, "warnings": [*warnings, planned.reason]}
        return update | {"goto": HUMAN_FEEDBACK}
    enough = plan.has_enough_context or not plan.steps
    return update | {"goto": REPORTER if enough else HUMAN_FEEDBACK}


def _tell_step(step: Step, finding: Finding | None, errand: Errand) -> None:
    about: Update = {"id": step.id, "title": step.title, "type": step.type, "status": "started"}
    if finding is not None:
        about |= {"status": finding.status, "error": finding.error, "session_id": finding.session_id}
        for citation in finding.citations:
            errand.tell("citation", step=step.id, **citation.model_dump(mode="json"))
    errand.tell("step", **about)


def _join(known: Known, plan: Plan) -> Plan:
    """With the steps of the plan before that have been done."""
    done = {finding.step_id for finding in known.findings} - {step.id for step in plan.steps}
    before = [step for step in (known.plan.steps if known.plan else ()) if step.id in done]
    return plan.model_copy(update={"steps": (*before, *plan.steps)})


def _find_earlier(known: Known, plan: Plan) -> list[Finding]:
    """What an earlier turn has found out about the same company by the same experts is not researched again."""
    earlier = {(each["symbol"], tuple(each["experts"])): each["finding"] for each in known.earlier}
    return [
        Finding.model_validate(earlier[step.symbol, step.experts]).model_copy(update={"step_id": step.id})
        for step in plan.steps
        if step.symbol and (step.symbol, step.experts) in earlier
    ]

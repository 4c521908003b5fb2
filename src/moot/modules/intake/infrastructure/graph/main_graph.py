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
from moot.modules.intake.domain.findings import Citation, Finding
from moot.modules.intake.domain.plan import Plan, Step
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

COORDINATOR, HUMAN_FEEDBACK, APPROVAL, RESEARCH_TEAM, REPORTER = (
    "coordinator",
    "human_feedback",
    "approval",
    "research_team",
    "reporter",
)
SEARCH = "web_search"
LONGEST_QUERY = 400
MOST_EDITS = 5
Update = dict[str, Any]
Node = Callable[..., Awaitable[Update]]
Run = Runtime[Keeper]
Compiled = CompiledStateGraph[IntakeState, Keeper, IntakeState, IntakeState]


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
        self._graph = self._compiled(saver, more or {})

    async def run(
        self, keeper: Keeper, *, state: IntakeState | None = None, feedback: Mapping[str, Any] | None = None
    ) -> Stand:
        given: Any = Command(resume=dict(feedback)) if feedback is not None else state
        config: RunnableConfig = {"configurable": {"thread_id": keeper.thread}}
        ended = await self._graph.ainvoke(given, config, context=keeper, durability="sync")
        waits = bool(ended.pop("__interrupt__", None))
        return Stand(cast(IntakeState, ended), waits)

    def _compiled(self, saver: Saver, more: Mapping[str, Node]) -> Compiled:
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
        task, tell = _task(state, runtime), runtime.context.errand.tell
        query = {"query": task.goal[:LONGEST_QUERY], "count": task.limits.max_search_results}
        tell("tool_call", step=BACKGROUND_INVESTIGATOR, name=SEARCH, arguments=query)
        outcome = await self._parts.toolbox.call(SEARCH, query, task, iteration=0)
        found = [] if outcome.failed else [each.model_dump(mode="json") for each in outcome.citations]
        for citation in found:
            tell("citation", step=BACKGROUND_INVESTIGATOR, **citation)
        return {"background": found, "goto": PLANNER}

    async def _plan(self, state: IntakeState, runtime: Run) -> Update:
        errand = runtime.context.errand
        planned = await self._parts.planner.plan(_inquiry(state, errand))
        if planned.code == "limit" and state.get("escalation"):
            return {"warnings": [*state.get("warnings", []), *planned.warnings], "goto": HUMAN_FEEDBACK}
        return _draw_up(state, planned, errand)

    async def _ask_a_person(self, state: IntakeState) -> Update:
        """What the rules want approved is nobody's to accept beforehand."""
        escalation = state.get("escalation")
        if state.get("auto_accepted_plan") and not escalation:
            return {"goto": RESEARCH_TEAM}
        asked = {"escalation_id": escalation["id"]} if escalation else {}
        said = interrupt({"plan": state["plan"], "options": OPTIONS, **asked})
        if said["decision"] == "edit_plan":
            return {"edits": [*state.get("edits", []), said.get("text", "")], "goto": PLANNER}
        if said["decision"] == "accepted":
            return {"goto": APPROVAL if escalation else RESEARCH_TEAM}
        if state.get("findings"):
            return {"warnings": _warnings(state), "escalation": None, "goto": REPORTER}
        return {"rejected": True, "goto": END}

    async def _see_whether_approved(self, state: IntakeState, runtime: Run) -> Update:
        """The very plan that was escalated is put to the rules again, in the name of whoever had asked for it."""
        escalation = state["escalation"]
        assert escalation is not None
        draft, errand = Plan.model_validate(escalation["draft"]), runtime.context.errand
        inquiry = _inquiry(state, replace(errand, caller=escalation["requester"]))
        planned = await self._parts.planner.review_again(draft, inquiry)
        if planned.code == "rejected" and not state.get("findings"):
            told = {"warnings": _warnings(state), "reply": planned.reason}
            return {"rejected": True, "escalation": None, **told, "goto": END}
        update = _draw_up(state, planned, errand)
        if planned.plan == draft and update["goto"] == HUMAN_FEEDBACK:
            return update | {"goto": RESEARCH_TEAM}
        return update

    async def _research(self, state: IntakeState, runtime: Run) -> Update:
        plan, before, keeper = Plan.model_validate(state["plan"]), _findings(state), runtime.context
        done = {finding.step_id: finding for finding in [*_known(state, plan), *keeper.findings, *before]}
        told = {finding.step_id for finding in before}
        for step in plan.steps:
            if step.id in done.keys() - told:
                _tell_step(step, done[step.id], keeper.errand)
        await keeper.keep(plan=plan, understanding=_understanding(state), locale=plan.locale)
        async with asyncio.TaskGroup() as writing:

            def on_step(step: Step, finding: Finding | None) -> None:
                _tell_step(step, finding, keeper.errand)
                if finding is not None:
                    writing.create_task(keeper.keep_finding(finding))

            found = await self._parts.team.work(plan, _task(state, runtime), done=done, on_step=on_step)
        more = state.get("plan_iterations", 1) < _room_for_edits(state).max_plan_iterations
        all_of_it = {finding.step_id: finding for finding in [*before, *found]}
        return {
            "findings": [finding.model_dump(mode="json") for finding in all_of_it.values()],
            "goto": PLANNER if more else REPORTER,
        }

    async def _report(self, state: IntakeState, runtime: Run) -> Update:
        plan, errand = state.get("plan"), runtime.context.errand
        answer = await self._parts.reporter.write(
            question_of(state),
            Plan.model_validate(plan) if plan else None,
            _findings(state),
            locale=state["locale"],
            style=cast(Any, state.get("style", "research")),
            background=_citations(state),
            warnings=state.get("warnings", []),
            errand=errand,
        )
        told = answer.model_dump(mode="json")
        errand.tell("report", **told)
        return {"answer": told, "goto": END}


async def _by_goto(state: IntakeState) -> str:
    return state["goto"]


def _draw_up(state: IntakeState, planned: Planned, errand: Errand) -> Update:
    """A plan goes to a person, even one that somebody else has to approve; without one it ends."""
    update: Update = {
        "plan_iterations": planned.iteration,
        "warnings": [*_warnings(state), *planned.warnings],
        "escalation": None,
    }
    plan = planned.draft if planned.code == "escalated" else planned.plan
    if plan is None:
        return update | _unplanned(state, update["warnings"], planned.reason)
    update["plan"] = _joined(state, plan).model_dump(mode="json")
    asked = {"escalation_id": planned.escalation_id} if planned.escalation_id else {}
    errand.tell("plan", plan=update["plan"], iteration=planned.iteration, **asked)
    if asked:
        return update | _escalate(plan, update["warnings"], planned, errand)
    enough = plan.has_enough_context or not plan.steps
    return update | {"goto": REPORTER if enough else HUMAN_FEEDBACK}


def _unplanned(state: IntakeState, warnings: list[str], reason: str) -> Update:
    """What was found out under an earlier plan is told all the same."""
    if state.get("findings"):
        return {"goto": REPORTER, "warnings": [*warnings, reason]}
    return {"goto": END, "error": {"code": "NO_PLAN", "message": reason}}


def _escalate(plan: Plan, warnings: list[str], planned: Planned, errand: Errand) -> Update:
    escalation = {
        "id": planned.escalation_id,
        "draft": plan.model_dump(mode="json"),
        "requester": errand.caller,
        "told": planned.reason,
    }
    return {"escalation": escalation, "warnings": [*warnings, planned.reason], "goto": HUMAN_FEEDBACK}


def _warnings(state: IntakeState) -> list[str]:
    """Without the word that somebody has to approve the plan: that is no news any more."""
    told = (state.get("escalation") or {}).get("told")
    return [warning for warning in state.get("warnings", []) if warning != told]


def _task(state: IntakeState, runtime: Run) -> Task:
    background = quote_sources(_citations(state))
    return Task(question_of(state), state["locale"], runtime.context.errand, _limits(state), background)


def _inquiry(state: IntakeState, errand: Errand) -> Inquiry:
    return Inquiry(
        question_of(state),
        _understanding(state),
        errand,
        limits=_room_for_edits(state),
        background=_citations(state),
        findings=_findings(state),
        edits=state.get("edits", []),
        previous=Plan.model_validate(state["plan"]) if state.get("plan") else None,
        iteration=state.get("plan_iterations", 0),
    )


def _limits(state: IntakeState) -> Limits:
    return Limits.model_validate(state.get("limits") or {})


def _room_for_edits(state: IntakeState) -> Limits:
    """What a person wants changed is not counted against the planner, but not for ever."""
    limits, edits = _limits(state), min(len(state.get("edits", [])), MOST_EDITS)
    return limits.model_copy(update={"max_plan_iterations": limits.max_plan_iterations + edits})


def _understanding(state: IntakeState) -> Understanding:
    return Understanding.model_validate(state["understanding"])


def _citations(state: IntakeState) -> list[Citation]:
    return [Citation.model_validate(each) for each in state.get("background", [])]


def _tell_step(step: Step, finding: Finding | None, errand: Errand) -> None:
    about: Update = {"id": step.id, "title": step.title, "type": step.type, "status": "started"}
    if finding is not None:
        about |= {"status": finding.status, "error": finding.error, "session_id": finding.session_id}
        for citation in finding.citations:
            errand.tell("citation", step=step.id, **citation.model_dump(mode="json"))
    errand.tell("step", **about)


def _findings(state: IntakeState) -> list[Finding]:
    return [Finding.model_validate(each) for each in state.get("findings", [])]


def _joined(state: IntakeState, plan: Plan) -> Plan:
    """With the steps of the plan before that have been done."""
    if not state.get("plan"):
        return plan
    done = {finding.step_id for finding in _findings(state)} - {step.id for step in plan.steps}
    before = (step for step in Plan.model_validate(state["plan"]).steps if step.id in done)
    return plan.model_copy(update={"steps": (*before, *plan.steps)})


def _known(state: IntakeState, plan: Plan) -> list[Finding]:
    """What an earlier turn has found out about the same company by the same experts is not researched again."""
    earlier = {(each["symbol"], tuple(each["experts"])): each["finding"] for each in state.get("earlier", [])}
    return [
        Finding.model_validate(earlier[step.symbol, step.experts]).model_copy(update={"step_id": step.id})
        for step in plan.steps
        if step.symbol and (step.symbol, step.experts) in earlier
    ]

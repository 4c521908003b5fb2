"""The main graph: coordinator, background, planner, a person, the team, the reporter; each says where it goes on.

A node that stops for a person runs again from its top when the person has answered, so nothing costly comes before.
Where a conversation stands is kept by LangGraph's own checkpointers: a person may answer after a restart.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from sqlalchemy import make_url

from moot.modules.intake.application.intake_state import (
    CoordinatorState,
    Errand,
    IntakeGraph,
    IntakeState,
    Keeper,
    Task,
    find_earlier,
)
from moot.modules.intake.application.language import locale_of
from moot.modules.intake.domain.question import Finding, Plan, Step
from moot.modules.intake.infrastructure.adapters.toolbox import GovernedToolbox
from moot.modules.intake.infrastructure.agents.planner import Planned, Planner, quote_sources
from moot.modules.intake.infrastructure.agents.reporter import Reporter
from moot.modules.intake.infrastructure.agents.team import Team
from moot.modules.intake.infrastructure.graph.coordinator_graph import (
    BACKGROUND_INVESTIGATOR,
    PLANNER,
    Coordinator,
)
from moot.shared.domain.errors import AppError, Unavailable
from moot.shared.domain.messages import reading_language
from moot.shared.domain.texts import SAY
from moot.shared.infrastructure.home import make_private_database, make_private_folder

COORDINATOR, HUMAN_FEEDBACK, APPROVAL = "coordinator", "human_feedback", "approval"
RESEARCH_TEAM, REPORTER = "research_team", "reporter"
SEARCH = "web_search"
LONGEST_QUERY = 400
LOCK = 0x6D6F6F74
"""The number by which processes know that somebody makes the tables."""
ASK_AGAIN = 0.1
Saver = BaseCheckpointSaver[Any]
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
        self._graph = self._compile(saver, more or {})

    async def run(
        self, keeper: Keeper, *, state: IntakeState | None = None, feedback: Mapping[str, Any] | None = None
    ) -> IntakeState:
        given: Any = state.model_dump(mode="json", exclude_unset=True) if state else None
        given = Command(resume=dict(feedback)) if feedback is not None else given
        config: RunnableConfig = {"configurable": {"thread_id": keeper.thread}}
        async with self._parts.team.watch.turn():
            ended = await self._graph.ainvoke(given, config, context=keeper, durability="sync")
        waits = bool(ended.pop("__interrupt__", None))
        return IntakeState.model_validate(ended | {"waits": waits})

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
        asked = state.model_dump(mode="json", include=set(CoordinatorState.model_fields), exclude_none=True)
        try:
            return await self._parts.coordinator.run(asked, runtime.context.errand.workspace)
        except AppError as e:
            locale = locale_of(state.locale, state.question, "")
            said = e.in_locale(reading_language(locale))
            return {"goto": END, "locale": locale, "error": {"code": e.code, "message": said}}

    async def _investigate(self, state: IntakeState, runtime: Run) -> Update:
        """What the web says about it, in its own words, helps the planner; that it says nothing stops nobody."""
        if all(tool.name != SEARCH for tool in self._parts.toolbox.tools):
            return {"goto": PLANNER}
        errand = runtime.context.errand
        task = _task(state, errand)
        query = {"query": task.goal[:LONGEST_QUERY], "count": task.limits.max_search_results}
        errand.tell("tool_call", step=BACKGROUND_INVESTIGATOR, name=SEARCH, arguments=query)
        outcome = await self._parts.toolbox.call(SEARCH, query, task, iteration_count=0)
        found = [] if outcome.failed else [each.model_dump(mode="json") for each in outcome.citations]
        for citation in found:
            errand.tell("citation", step=BACKGROUND_INVESTIGATOR, **citation)
        return {"background": found, "goto": PLANNER}

    async def _plan(self, state: IntakeState, runtime: Run) -> Update:
        errand = runtime.context.errand
        planned = await self._parts.planner.plan(state, errand)
        if planned.code == "limit" and state.escalation:
            return {"warnings": [*state.warnings, *planned.warnings], "goto": HUMAN_FEEDBACK}
        return _draw_up(state, planned, errand)

    async def _ask_a_person(self, state: IntakeState) -> Update:
        """What the rules want approved is nobody's to accept beforehand."""
        held = state.escalation
        if state.auto_accepted_plan and not held:
            return {"goto": RESEARCH_TEAM}
        said = interrupt({})  # who waits is told what for by the turn
        if said["decision"] == "edit_plan":
            return {"edits": [*state.edits, said.get("text", "")], "goto": PLANNER}
        if said["decision"] == "accepted":
            return {"goto": APPROVAL if held else RESEARCH_TEAM}
        if state.findings:
            return {"warnings": state.current_warnings, "escalation": None, "goto": REPORTER}
        return {"rejected": True, "goto": END}

    async def _see_whether_approved(self, state: IntakeState, runtime: Run) -> Update:
        """The very plan that was escalated is put to the rules again, in the name of whoever had asked for it."""
        errand = runtime.context.errand
        assert state.escalation is not None
        draft = Plan.model_validate(state.escalation["draft"])
        asked_by = replace(errand, caller=state.escalation["requester"])
        planned = await self._parts.planner.review_again(draft, state, asked_by)
        if planned.code == "rejected" and not state.findings:
            told = {"warnings": state.current_warnings, "reply": planned.reason}
            return {"rejected": True, "escalation": None, **told, "goto": END}
        update = _draw_up(state, planned, errand)
        if planned.plan == draft and update["goto"] == HUMAN_FEEDBACK:
            return update | {"goto": RESEARCH_TEAM}
        return update

    async def _research(self, state: IntakeState, runtime: Run) -> Update:
        """What an earlier turn has found out about the same company by the same experts is not researched again."""
        keeper, plan = runtime.context, state.plan
        assert plan is not None
        before, earlier = _by_step(state.findings), find_earlier(keeper.conversation)
        again = [
            earlier[step.symbol, step.experts].model_copy(update={"step_id": step.id})
            for step in plan.steps
            if (step.symbol, step.experts) in earlier
        ]
        done = _by_step([*again, *keeper.findings]) | before
        for step in plan.steps:
            if step.id in done.keys() - before.keys():
                _tell_step(step, done[step.id], keeper.errand)
        await keeper.keep(plan=plan, understanding=state.understanding, locale=plan.locale)
        async with asyncio.TaskGroup() as writing:

            def on_step(step: Step, finding: Finding | None) -> None:
                _tell_step(step, finding, keeper.errand)
                if finding is not None:
                    writing.create_task(keeper.keep_finding(finding))

            task = _task(state, keeper.errand)
            found = await self._parts.team.work(plan, task, done=done, on_step=on_step)
        all_of_it = before | _by_step(found)
        return {
            "findings": [finding.model_dump(mode="json") for finding in all_of_it.values()],
            "goto": PLANNER if state.plan_iterations < state.most_plans else REPORTER,
        }

    async def _report(self, state: IntakeState, runtime: Run) -> Update:
        errand = runtime.context.errand
        style = runtime.context.conversation.last.style
        answer = await self._parts.reporter.write(state, style, errand)
        told = answer.model_dump(mode="json")
        errand.tell("report", **told)
        return {"answer": told, "goto": END}


async def _by_goto(state: IntakeState) -> str:
    return state.goto


def _task(state: IntakeState, errand: Errand) -> Task:
    return Task(state.question, state.locale, errand, state.limits, quote_sources(state.background))


def _by_step(findings: Iterable[Finding]) -> dict[str, Finding]:
    return {finding.step_id: finding for finding in findings}


def _draw_up(known: IntakeState, planned: Planned, errand: Errand) -> Update:
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


def _join(known: IntakeState, plan: Plan) -> Plan:
    """With the steps of the plan before that have been done."""
    done = {finding.step_id for finding in known.findings} - {step.id for step in plan.steps}
    before = [step for step in (known.plan.steps if known.plan else ()) if step.id in done]
    return plan.model_copy(update={"steps": (*before, *plan.steps)})


def checkpointer(url: str | None, home: Path) -> AbstractAsyncContextManager[Saver]:
    """Beside a file database a file of its own; in a server's database, tables of its own; without either, memory."""
    if url is None:
        return nullcontext(InMemorySaver())
    in_file = make_url(url).get_backend_name() == "sqlite"
    return _in_file(home / "conversations.db") if in_file else _in_postgres(url)


@asynccontextmanager
async def _in_file(path: Path) -> AsyncIterator[Saver]:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver  # noqa: PLC0415

    make_private_folder(path.parent)
    make_private_database(path)
    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        await saver.setup()
        yield saver


@asynccontextmanager
async def _in_postgres(url: str) -> AsyncIterator[Saver]:
    """Of all processes, one at a time makes the tables. Who waits asks again and again: a statement that waited would
    itself be waited for by the indexes."""
    try:
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver  # noqa: PLC0415
        from psycopg.rows import dict_row  # noqa: PLC0415
        from psycopg_pool import AsyncConnectionPool  # noqa: PLC0415
    except ImportError as e:
        raise Unavailable(SAY("database.driver_missing"), code="DRIVER_MISSING") from e
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    given = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool[Any](plain, min_size=1, max_size=5, open=False, kwargs=given) as pool:
        saver = AsyncPostgresSaver(pool)
        async with pool.connection() as connection:
            locking = "SELECT pg_try_advisory_lock(%s) AS mine"
            while not (await (await connection.execute(locking, (LOCK,))).fetchone())["mine"]:  # noqa: ASYNC110
                await asyncio.sleep(ASK_AGAIN)
            try:
                await saver.setup()
            finally:
                await connection.execute("SELECT pg_advisory_unlock(%s)", (LOCK,))
        yield saver

"""The team: the steps of a plan, those at the same time that can be, and none of them able to harm another."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import structlog

from moot.modules.governance.application.coordinator_agent import CoordinatorAgent
from moot.modules.governance.application.execution_monitor import current_workflow_id
from moot.modules.intake.application.intake_state import Task
from moot.modules.intake.domain.question import Finding, Plan, Step
from moot.modules.intake.infrastructure.adapters.equity_desk import ResearchGraphDesk
from moot.modules.intake.infrastructure.agents.processing import Processor
from moot.modules.intake.infrastructure.agents.researcher import Researcher
from moot.shared.domain.errors import AppError
from moot.shared.domain.messages import Locale
from moot.shared.infrastructure.working_time import WorkingTime

logger = structlog.get_logger(__name__)

OnStep = Callable[[Step, Finding | None], None]
"""Told when a step begins, and with its finding when it has ended, skipped ones too."""

Work = Callable[[Task], Awaitable[Finding]]


class StepWatch:
    """A turn is a workflow, its steps are the nodes: known by their ids, and to the error policy by their types."""

    def __init__(self, agent: CoordinatorAgent) -> None:
        self._agent, self._monitor = agent, agent.monitor

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """The turn under way is watched for the length of the block."""
        await self._monitor.on_workflow_start(current_workflow_id(), ())
        try:
            yield
        finally:
            await self._monitor.on_workflow_complete(current_workflow_id())

    async def expect(self, steps: Iterable[Step], done: Iterable[Finding], reader: Locale) -> None:
        if workflow := self._monitor.get_context(current_workflow_id()):
            workflow.locale = reader
            for step in steps:
                workflow.place(step.id, "pending")
            for finding in done:
                await self.ended(finding)

    async def run(self, step: Step, task: Task, work: Work) -> Finding:
        """What `work` finds, tried as often as the error policy says; raises what it raised last."""
        workflow_id, told = current_workflow_id(), False
        await self._monitor.on_node_start(workflow_id, step.id, step.model_dump(mode="json"))
        while True:
            try:
                return await work(task)
            except Exception as e:
                after = await self._monitor.react(workflow_id, step.id, e, node_type=step.type)
                if after.action == "skip":
                    return Finding(step_id=step.id, status="skipped", error=task.say("steps.optional"))
                if after.action == "escalate":
                    await self._agent.escalate(step.id, e, symbol=step.symbol or "")
                if after.action != "retry" and (after.feedback is None or told):
                    raise
                if after.feedback is not None:
                    told, advice = True, after.feedback["suggestion"]
                    task = replace(task, background=f"{task.background}\n\n{advice}".strip())
                await asyncio.sleep(after.delay)

    async def ended(self, finding: Finding) -> None:
        if finding.usable:
            outputs = finding.model_dump(mode="json")
            await self._monitor.on_node_complete(current_workflow_id(), finding.step_id, outputs)
        elif workflow := self._monitor.get_context(current_workflow_id()):
            workflow.place(finding.step_id, "skipped" if finding.status == "skipped" else "failed")


class Team:
    """`find_symbols`: companies that steps are about, by their symbol or their words."""

    def __init__(
        self,
        researcher: Researcher,
        processor: Processor,
        equity: ResearchGraphDesk,
        watch: StepWatch,
        find_symbols: Callable[[Sequence[Step]], Awaitable[Sequence[str]]],
    ) -> None:
        self._researcher, self._processor, self._equity = researcher, processor, equity
        self.watch, self._find_symbols = watch, find_symbols

    async def work(
        self, plan: Plan, task: Task, *, done: Mapping[str, Finding] | None = None, on_step: OnStep
    ) -> list[Finding]:
        """A finding for each step, in the plan's order. Steps in `done` are not run again.

        A step waits for the earlier steps that it names; what it names and is not there counts as failed. What is to
        be looked up about a company waits for its research: where the rules refuse that, it is refused as well.
        """
        places = asyncio.Semaphore(task.limits.steps_at_once)
        found: dict[str, asyncio.Task[Finding]] = {}

        async def finish(step: Step, needed: Sequence[asyncio.Task[Finding] | None]) -> Finding:
            before = [await each if each else None for each in needed]
            usable = [finding for finding in before if finding and finding.usable]
            enough = bool(usable) if step.type == "processing" else len(usable) == len(needed)
            why = await self._find_refusal(step, plan, found) if enough else task.say("steps.skipped")
            if why is None:
                async with places:
                    on_step(step, None)
                    finding = await self._safely(step, usable, task)
            else:
                finding = Finding(step_id=step.id, status="skipped", error=why, refused=enough)
            await self.watch.ended(finding)
            on_step(step, finding)
            return finding

        await self.watch.expect(plan.steps, (done or {}).values(), task.reader)
        async with asyncio.TaskGroup() as group:
            for name, finding in (done or {}).items():
                found[name] = group.create_task(asyncio.sleep(0, finding))
            for step in plan.steps:
                if step.id not in found:
                    found[step.id] = group.create_task(finish(step, [found.get(name) for name in step.after]))
        return [found[step.id].result() for step in plan.steps]

    async def _find_refusal(
        self, step: Step, plan: Plan, found: Mapping[str, asyncio.Task[Finding]]
    ) -> str | None:
        """Why the rules do not want a company researched that the step is to look up.

        Research that itself rests on something looked up is not waited for: they could wait for each other.
        """
        named = await self._find_symbols([step]) if step.type == "research" else ()
        looked_up: set[str] = set()
        for other in plan.steps:
            if other.type == "research" or looked_up.intersection(other.after):
                looked_up.add(other.id)
            elif other.symbol in named and (finding := await found[other.id]).refused:
                return finding.error or ""
        return None

    async def _safely(self, step: Step, before: Sequence[Finding], task: Task) -> Finding:
        seconds = task.limits.step_timeout
        try:
            async with WorkingTime(seconds):
                return await self.watch.run(step, task, partial(self._find, step, before))
        except TimeoutError:
            error = task.say("steps.timeout", seconds=f"{seconds:g}")
        except AppError as e:
            error = e.in_locale(task.reader)
        except Exception as e:  # bulkhead: one step must never take the others down
            logger.error("step failed", step=step.id, type=step.type, exc_info=True)
            error = task.say("steps.crashed", error=type(e).__name__)
        return Finding(step_id=step.id, status="failed", error=error)

    async def _find(self, step: Step, before: Sequence[Finding], task: Task) -> Finding:
        if step.type == "equity":
            return await self._equity.research(step, task)
        if step.type == "processing":
            return await self._processor.process(step, before, task)
        known = "\n\n".join(text for text in (task.background, *(each.text for each in before)) if text)
        return await self._researcher.research(step, replace(task, background=known))

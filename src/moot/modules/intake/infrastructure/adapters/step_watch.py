"""The steps of a plan under governance's watch: where each stands, and what follows when one fails."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace

from moot.modules.governance.application.coordinator_agent import CoordinatorAgent
from moot.modules.governance.application.execution_monitor import current_workflow_id
from moot.modules.intake.application.ports import Task
from moot.modules.intake.domain.findings import Finding
from moot.modules.intake.domain.plan import Step
from moot.shared.domain.messages import Locale

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

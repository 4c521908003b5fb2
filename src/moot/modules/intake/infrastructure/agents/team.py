"""The team: the steps of a plan, those at the same time that can be, and none of them able to harm another."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import structlog

from moot.modules.intake.application.ports import Task
from moot.modules.intake.domain.findings import Finding
from moot.modules.intake.domain.plan import Plan, Step
from moot.modules.intake.infrastructure.adapters.equity_desk import ResearchGraphDesk
from moot.modules.intake.infrastructure.adapters.step_watch import StepWatch
from moot.modules.intake.infrastructure.agents.processing import Processor
from moot.modules.intake.infrastructure.agents.researcher import Researcher
from moot.shared.domain.errors import AppError
from moot.shared.infrastructure.working_time import WorkingTime

logger = structlog.get_logger(__name__)

OnStep = Callable[[Step, Finding | None], None]
"""Told when a step begins, and with its finding when it has ended, skipped ones too."""


class Team:
    def __init__(
        self, researcher: Researcher, processor: Processor, equity: ResearchGraphDesk, watch: StepWatch
    ) -> None:
        self._researcher, self._processor, self._equity = researcher, processor, equity
        self.watch = watch

    async def work(
        self, plan: Plan, task: Task, *, done: Mapping[str, Finding] | None = None, on_step: OnStep
    ) -> list[Finding]:
        """A finding for each step, in the plan's order. Steps in `done` are not run again.

        A step waits for the earlier steps that it names; what it names and is not there counts as failed.
        """
        places = asyncio.Semaphore(task.limits.steps_at_once)

        async def finish(step: Step, needed: Sequence[asyncio.Task[Finding] | None]) -> Finding:
            before = [await each if each else None for each in needed]
            usable = [finding for finding in before if finding and finding.usable]
            enough = bool(usable) if step.type == "processing" else len(usable) == len(needed)
            if enough:
                async with places:
                    on_step(step, None)
                    finding = await self._safely(step, usable, task)
            else:
                finding = Finding(step_id=step.id, status="skipped", error=task.say("steps.skipped"))
            await self.watch.ended(finding)
            on_step(step, finding)
            return finding

        await self.watch.expect(plan.steps, (done or {}).values(), task.reader)
        async with asyncio.TaskGroup() as group:
            found = {
                name: group.create_task(asyncio.sleep(0, finding)) for name, finding in (done or {}).items()
            }
            for step in plan.steps:
                if step.id not in found:
                    found[step.id] = group.create_task(finish(step, [found.get(name) for name in step.after]))
        return [found[step.id].result() for step in plan.steps]

    async def _safely(self, step: Step, before: Sequence[Finding], task: Task) -> Finding:
        seconds = task.limits.step_timeout
        try:
            async with WorkingTime(seconds).counted():
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

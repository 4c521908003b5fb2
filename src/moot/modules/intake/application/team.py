"""The team: the steps of a plan, those at the same time that can be, and none of them able to harm another."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from moot.modules.intake.domain.findings import Finding
from moot.modules.intake.domain.plan import Plan, Step
from moot.modules.intake.domain.ports import EquityDesk
from moot.modules.intake.domain.question import Limits, reading_language
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.errors import AppError
from moot.shared.domain.messages import Message

logger = structlog.get_logger(__name__)

OnStep = Callable[[Step, Finding | None], None]
"""Told when a step begins, and with its finding when it has ended, skipped ones too."""


class ResearchSteps(Protocol):
    async def research(
        self, step: Step, *, locale: str, goal: str, background: str = "", limits: Limits | None = None
    ) -> Finding: ...


class ProcessingSteps(Protocol):
    async def process(
        self, step: Step, findings: Sequence[Finding], *, locale: str, goal: str
    ) -> Finding: ...


@dataclass(frozen=True)
class Task:
    """What all steps of a plan share."""

    locale: str
    goal: str
    background: str
    limits: Limits
    on_step: OnStep | None

    def tell(self, step: Step, finding: Finding | None) -> None:
        if self.on_step is not None:
            self.on_step(step, finding)

    def say(self, message: Message) -> str:
        return message.in_locale(reading_language(self.locale))


class Team:
    """`limits` are those of questions that come without their own."""

    def __init__(
        self, researcher: ResearchSteps, processor: ProcessingSteps, equity: EquityDesk, limits: Limits
    ) -> None:
        self._researcher, self._processor, self._equity = researcher, processor, equity
        self._limits = limits

    async def work(
        self,
        plan: Plan,
        *,
        locale: str,
        goal: str,
        background: str = "",
        limits: Limits | None = None,
        done: Mapping[str, Finding] | None = None,
        on_step: OnStep | None = None,
    ) -> list[Finding]:
        """A finding for each step, in the plan's order. Steps in `done` are not run again.

        A step waits for the earlier steps that it names; what it names and is not there counts as failed.
        """
        task = Task(locale, goal, background, limits or self._limits, on_step)
        places = asyncio.Semaphore(task.limits.steps_at_once)
        async with asyncio.TaskGroup() as group:
            found = {name: group.create_task(_known(finding)) for name, finding in (done or {}).items()}
            for step in plan.steps:
                if step.id not in found:
                    needed = [found.get(name) for name in step.after]
                    found[step.id] = group.create_task(self._ended(step, needed, task, places))
        return [found[step.id].result() for step in plan.steps]

    async def _ended(
        self,
        step: Step,
        needed: Sequence[asyncio.Task[Finding] | None],
        task: Task,
        places: asyncio.Semaphore,
    ) -> Finding:
        before = [await each if each else None for each in needed]
        usable = [finding for finding in before if finding and finding.usable]
        enough = bool(usable) if step.type == "processing" else len(usable) == len(needed)
        if enough:
            async with places:
                task.tell(step, None)
                finding = await self._safely(step, usable, task)
        else:
            finding = Finding(step_id=step.id, status="skipped", error=task.say(SAY("steps.skipped")))
        task.tell(step, finding)
        return finding

    async def _safely(self, step: Step, before: Sequence[Finding], task: Task) -> Finding:
        seconds = task.limits.step_timeout
        try:
            async with asyncio.timeout(seconds):
                return await self._found(step, before, task)
        except TimeoutError:
            error = task.say(SAY("steps.timeout", seconds=f"{seconds:g}"))
        except AppError as e:
            error = e.in_locale(reading_language(task.locale))
        except Exception as e:  # bulkhead: one step must never take the others down
            logger.error("step failed", step=step.id, type=step.type, exc_info=True)
            error = task.say(SAY("steps.crashed", error=type(e).__name__))
        return Finding(step_id=step.id, status="failed", error=error)

    async def _found(self, step: Step, before: Sequence[Finding], task: Task) -> Finding:
        if step.type == "equity":
            return await self._equity.research(step, locale=task.locale)
        if step.type == "processing":
            return await self._processor.process(step, before, locale=task.locale, goal=task.goal)
        known = "\n\n".join(text for text in (task.background, *(each.text for each in before)) if text)
        return await self._researcher.research(
            step, locale=task.locale, goal=task.goal, background=known, limits=task.limits
        )


async def _known(finding: Finding) -> Finding:
    return finding

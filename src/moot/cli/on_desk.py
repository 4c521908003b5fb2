"""Commands that need a desk."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from moot.cli.outcome import command
from moot.desk import Moot
from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.shared.infrastructure.settings import Settings

T = TypeVar("T")
Work = Callable[[Moot], Awaitable[T]]


def on_desk(work: Work[T]) -> T:
    """What `work` gives, done on a desk made from the settings; what goes wrong ends the command."""
    with command() as settings:
        return at_desk(settings, work)


def at_desk(settings: Settings, work: Work[T]) -> T:
    async def opened() -> T:
        async with Moot(settings, trigger_source="cli") as desk:
            return await work(desk)

    return asyncio.run(opened())


def report_of(desk: Moot, result: ResearchResult) -> Path | OSError:
    """Where the report was written, or what kept it from that: the result is shown all the same."""
    try:
        return desk.write_report(result)
    except OSError as e:
        return e

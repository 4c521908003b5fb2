"""A process that works on batches, or cancels one, and dies on the way."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

from moot.desk import Moot
from moot.modules.jobs.infrastructure.batch_desk import DeskPanel
from moot.modules.jobs.infrastructure.batch_store import SqlBatchStore
from moot.shared.infrastructure.settings import Settings
from tests.chaos.crash_points import die
from tests.chaos.worker import quiet

DEATHS: dict[str, tuple[type, str, int]] = {
    "in the screen": (DeskPanel, "screen", 1),
    "after the screen is kept": (SqlBatchStore, "keep_screening", 1),
    "after the first session": (DeskPanel, "ask", 1),
    "after the last session but one": (DeskPanel, "ask", 3),
    "in the cancel": (DeskPanel, "cancel", 2),
}
"""After which call of what a process dies, and the how manieth."""


def run(death: str, settings: dict[str, Any], cancelled: str = "") -> None:
    quiet()
    _doom(*DEATHS[death])
    asyncio.run(_work(Settings(**settings), cancelled))


def _doom(owner: type, name: str, nth: int) -> None:
    act: Callable[..., Any] = getattr(owner, name)
    calls = 0

    async def doomed(*about: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        done = await act(*about, **more)
        if calls == nth:
            die()
        return done

    setattr(owner, name, doomed)


async def _work(settings: Settings, cancelled: str) -> None:
    async with Moot(settings) as desk:
        if cancelled:
            await desk.cancel_batch(UUID(cancelled))
        desk.work()
        await asyncio.Event().wait()

"""A worker outlives whatever it looks after."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from moot.modules.jobs.application.worker import Worker
from moot.shared.domain.errors import Unavailable
from tests.fakes.clock import until


class Everything:
    """Engine, sessions and batches in one, of which a part fails."""

    busy = False

    def __init__(self, failing: str, error: Exception) -> None:
        self.failing, self.error, self.done = failing, error, Counter[str]()

    def _do(self, what: str) -> None:
        self.done[what] += 1
        if what == self.failing and self.done[what] == 1:
            raise self.error

    async def work(self, run: Callable[[UUID], Awaitable[None]], *, worker: str, at_once: int) -> None:
        self._do("work")

    async def clear_ended(self) -> None:
        self._do("clear")

    async def look_after(self) -> None:
        self._do("look")

    async def work_on(self, *_: object) -> None: ...

    async def rest(self, grace: float, *, busy: bool) -> None:
        self._do("rest")

    async def close(self, *, grace: float = 0.0) -> None:
        self._do("close")

    async def hand_over(self) -> None:
        self._do("hand over")


@pytest.mark.parametrize("error", [RuntimeError("the engine stumbled"), Unavailable("gone")])
@pytest.mark.parametrize("failing", ["work", "look", "clear"])
async def test_what_fails_is_said_and_tried_again_and_keeps_it_from_nothing_else(
    failing: str, error: Exception
) -> None:
    parts = Everything(failing, error)
    worker = Worker(parts, parts, parts, name="w", at_once=1, lease_seconds=0.02)
    with capture_logs() as said:
        worker.start()
        await until(lambda: parts.done["look"] > 3 and parts.done["clear"] > 0)
        await asyncio.wait_for(worker.stop(), 60)
    assert [line["log_level"] in ("warning", "error") for line in said] == [True]
    assert (parts.done["work"], parts.done["hand over"]) == (1 + (failing == "work"), 1)

"""A queue whose worker is the process itself, for tests of the door; the engine has tests of its own."""

import asyncio
from collections.abc import Collection
from uuid import UUID

from moot.modules.coordinator.application.session_queue import SessionQueue
from moot.modules.coordinator.application.sessions import Sessions
from moot.shared.domain.rate_limits import Priority


class OwnQueue(SessionQueue):
    """What is put back is worked on at once."""

    def __init__(self) -> None:
        self.sessions: Sessions | None = None
        self.working: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        return

    async def put_back(
        self, session_ids: Collection[UUID], *, priority: Priority = "interactive", if_taken: bool = True
    ) -> list[UUID]:
        assert self.sessions is not None
        for session_id in session_ids:
            task = asyncio.create_task(self.sessions.work_on(session_id))
            self.working.add(task)
            task.add_done_callback(self.working.discard)
        await asyncio.sleep(0)  # until they are among the runs
        return list(session_ids)

"""Where sessions wait for a worker: the engine's, which knows no more of them than their ids."""

from collections.abc import Collection
from uuid import UUID

from moot.modules.coordinator.domain.model.session import WHAT_IF
from moot.modules.coordinator.domain.ports.research_session_repository import refuse
from moot.shared.domain.rate_limits import Priority

__all__ = ["BATCH", "WHAT_IF", "SessionQueue"]

BATCH = "batch"
"""The `trigger_source` of what a batch has started: it leaves room for what somebody waits for."""


class SessionQueue:
    """What is stored as `queued` from the time it is open stands in it. As it is here there is none, as nothing is
    stored: what would have to wait is refused."""

    async def open(self) -> None:
        """Make ready to take sessions. Raises `Unavailable`."""
        refuse()

    async def put_back(
        self, session_ids: Collection[UUID], *, priority: Priority = "interactive", if_taken: bool = True
    ) -> list[UUID]:
        """Have them run once more, whatever became of them before: nobody works on them. Those that waited for it
        already, and are not among what is returned, keep their place. `if_taken` False: a worker that has one may."""
        return []

    async def find_taken(self) -> dict[UUID, float]:
        """Those that some worker has taken and not ended, and for how many seconds it has had them."""
        return {}

"""Who runs a session, and how others ask for it."""

from abc import abstractmethod
from datetime import datetime
from uuid import UUID

from moot.shared.domain.leases import Leases


class ISessionLeases(Leases):
    """The leases of sessions that have not ended. All raise `Unavailable` when the store fails."""

    @abstractmethod
    async def left_behind(self, now: datetime, at_most: int) -> list[UUID]:
        """Sessions that have not ended and that nobody holds, oldest first."""

    @abstractmethod
    async def pause(self, session_id: UUID, token: int) -> None:
        """Its owner stops for a person to decide something: nobody takes the session up until it is woken."""

    @abstractmethod
    async def wake(self, session_id: UUID) -> bool:
        """Whoever comes next may go on with it; False when it was not waiting."""

    @abstractmethod
    async def request_cancel(self, session_id: UUID) -> None:
        """Ask the owner, wherever it is, to cancel the session."""

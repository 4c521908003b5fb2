"""Who runs a session: a lease that must be renewed, and a token that tells an owner from those before it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class Lease(NamedTuple):
    """`token` grows with every owner of the session: whoever has an older one has lost it."""

    owner: str
    token: int
    expires_at: datetime


class Taken(NamedTuple):
    """A lease just taken, and whether somebody has asked meanwhile to cancel the session."""

    lease: Lease
    cancel_requested: bool


class Renewal(NamedTuple):
    """What an owner learns when it renews: which sessions it has lost, and which it is asked to cancel."""

    lost: set[UUID]
    cancel_requested: set[UUID]


class ISessionLeases(ABC):
    """All raise `Unavailable` when the store fails. Owners' clocks must agree to within a fraction of a lease."""

    @abstractmethod
    async def acquire(self, session_id: UUID, owner: str, now: datetime, until: datetime) -> Taken | None:
        """Take over a session that has not ended and that nobody holds any more; None when somebody does."""

    @abstractmethod
    async def renew(self, owner: str, sessions: Sequence[UUID], until: datetime) -> Renewal: ...

    @abstractmethod
    async def release(self, owner: str, now: datetime) -> None:
        """Leave all that `owner` holds to whoever comes next."""

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

"""Who works on what: a lease that must be renewed, and a token that tells an owner from those before it."""

import asyncio
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID, uuid4

import structlog

from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError

logger = structlog.get_logger(__name__)

BEATS_PER_LEASE = 3


class Lease(NamedTuple):
    """`token` grows with every owner: whoever has an older one has lost it."""

    owner: str
    token: int
    expires_at: datetime


class Taken(NamedTuple):
    """A lease just taken, whether somebody has asked meanwhile to cancel what it is for, and what was found there."""

    lease: Lease
    cancel_requested: bool
    found: Any = None


Loss = Literal["taken over", "cancelled"]


class Leases(ABC):
    """All raise `Unavailable` when the store fails. Owners go by one clock, or by clocks that nearly agree."""

    @abstractmethod
    async def acquire(self, row_id: UUID, owner: str, now: datetime, until: datetime) -> Taken | None:
        """Take over what is to be worked on and nobody holds any more; None when somebody does."""

    @abstractmethod
    async def renew(self, owner: str, rows: Sequence[UUID], until: datetime) -> dict[UUID, Loss]:
        """What it has lost meanwhile, or is asked to cancel."""

    @abstractmethod
    async def release(self, owner: str, now: datetime) -> None:
        """Leave all that `owner` holds to whoever comes next."""


def name_worker() -> str:
    """Another one each time, by which people find the process."""
    return f"{socket.gethostname()[:60]}-{os.getpid()}-{uuid4().hex[:8]}"


class LeaseHolder:
    """The leases of this process, kept up by one heartbeat for as long as anything is held."""

    def __init__(self, leases: Leases, clock: Clock, seconds: float) -> None:
        self._leases, self.clock = leases, clock
        self._lease_time = timedelta(seconds=seconds)
        self._owner = name_worker()
        self._held: dict[UUID, Callable[[Loss], object]] = {}
        self._heart: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def first(self) -> Lease:
        """For what is about to be stored, and worked on here."""
        return Lease(self._owner, 1, self.clock.now() + self._lease_time)

    async def take(self, row_id: UUID) -> Taken | None:
        """The lease of what nobody holds."""
        now = self.clock.now()
        return await self._leases.acquire(row_id, self._owner, now, now + self._lease_time)

    def hold(self, row_id: UUID, on_loss: Callable[[Loss], object]) -> None:
        """Renew from now on; who learns that it is lost is told."""
        self._held[row_id] = on_loss
        if self._heart is None or self._heart.done():
            self._heart = asyncio.create_task(self._beat())

    def let_go(self, row_id: UUID) -> None:
        self._held.pop(row_id, None)

    async def close(self, *, release: bool) -> None:
        """`release` what is held, rather than let it run out."""
        self._closing.set()
        if self._heart is not None:
            await asyncio.wait([self._heart])
        if not release:
            return
        try:
            await self._leases.release(self._owner, self.clock.now())
        except AppError as e:  # then they run out by themselves
            logger.warning("leases not released", error=str(e))

    async def _beat(self) -> None:
        beat = self._lease_time.total_seconds() / BEATS_PER_LEASE
        while self._held and not await passed(self._closing, beat):
            if self._held:
                await self._renew()

    async def _renew(self) -> None:
        """What was let go meanwhile may be held anew by then, under another lease: of that nothing was learnt."""
        held, until = dict(self._held), self.clock.now() + self._lease_time
        try:
            losses = await self._leases.renew(self._owner, list(held), until)
        except AppError as e:  # the store may be back before they run out; if not, every write is fenced
            logger.warning("leases not renewed", error=str(e))
            return
        for row_id, loss in losses.items():
            if (on_loss := self._held.get(row_id)) and on_loss is held[row_id]:
                on_loss(loss)


async def passed(event: asyncio.Event, seconds: float) -> bool:
    """Whether it came, within that time."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False

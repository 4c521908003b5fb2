"""Wires the engine to the desk's sessions, and watch-lists and notifications to where they are kept."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

from moot.modules.jobs.domain.texts import SAY
from moot.modules.jobs.infrastructure.causes import follow_causes
from moot.modules.jobs.infrastructure.engine import Engine
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.leases import LeaseHolder, name_worker
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from datetime import datetime

    from moot.modules.coordinator.container import CoordinatorContainer
    from moot.modules.jobs.application.batch_keeper import BatchKeeper
    from moot.modules.jobs.application.batches import BatchService
    from moot.modules.jobs.application.delivery import DeliveryService
    from moot.modules.jobs.application.destinations import DestinationService
    from moot.modules.jobs.application.schedules import Scheduler, ScheduleService
    from moot.modules.jobs.application.watch import WatchlistService
    from moot.modules.jobs.application.worker import Worker
    from moot.modules.jobs.domain.destinations import Destination
    from moot.modules.jobs.domain.notices import Notice
    from moot.modules.jobs.infrastructure.batch_desk import DeskPanel
    from moot.modules.jobs.infrastructure.desk_record import DeskRecord
    from moot.modules.jobs.infrastructure.notify_store import SqlNotifications
    from moot.modules.jobs.infrastructure.senders import Sender
    from moot.modules.llm_platform.container import LLMPlatformContainer
    from moot.modules.market_data.container import MarketDataContainer
    from moot.shared.domain.clock import Clock
    from moot.shared.infrastructure.database import Database
    from moot.shared.infrastructure.settings import Settings

T = TypeVar("T")

__all__ = ["Engine", "JobsContainer", "follow_causes"]


class JobsContainer:
    """`database` None: nothing is stored. Then there are no batches, lists, schedules or places to tell: whoever asks
    for them is told so with `Unavailable`."""

    def __init__(
        self,
        database: Database | None,
        clock: Clock,
        market: MarketDataContainer,
        coordinator: CoordinatorContainer,
        llm_platform: LLMPlatformContainer,
        engine: Callable[[], Engine] | None,
        settings: Settings,
    ) -> None:
        self._database, self._clock, self._settings = database, clock, settings
        self._open_engine = engine
        self._market, self._coordinator, self._llm_platform = market, coordinator, llm_platform

    @property
    def engine(self) -> Engine:
        """Raises `Unavailable` where nothing is stored: then nothing can wait."""
        return _require(self._open_engine)()

    def worker(self, *, name: str | None = None, at_once: int | None = None) -> Worker:
        """One that takes sessions from the desk's queue."""
        from moot.modules.jobs.application.worker import Worker

        return Worker(
            self.engine,
            self._coordinator.sessions,
            self._keeper(),
            self._scheduler(),
            name=name or name_worker(),
            at_once=at_once or self._settings.worker_sessions,
            lease_seconds=self._settings.lease_seconds,
        )

    def batches(self, workspace: str = DEFAULT_WORKSPACE) -> BatchService:
        from moot.modules.jobs.application.batches import BatchService
        from moot.modules.jobs.infrastructure.batch_store import SqlBatchStore
        from moot.modules.jobs.infrastructure.watch_store import SqlWatchStore

        return BatchService(
            SqlBatchStore(self._stored),
            self._panel(),
            self._keeper(),
            SqlWatchStore(self._stored),
            self._clock,
            workspace=workspace,
            currency=self._settings.currency,
        )

    def schedules(self, workspace: str = DEFAULT_WORKSPACE, caller: str | None = None) -> ScheduleService:
        from moot.modules.jobs.application.schedules import ScheduleService
        from moot.modules.jobs.infrastructure.schedule_store import SqlSchedules

        store = SqlSchedules(self._stored)
        calendar_of, clock = self._market.market_data().calendar_of, self._clock
        return ScheduleService(store, self.batches, calendar_of, clock, workspace=workspace, caller=caller)

    def _scheduler(self) -> Scheduler:
        from moot.modules.jobs.application.schedules import Scheduler
        from moot.modules.jobs.infrastructure.batch_desk import refresh
        from moot.modules.jobs.infrastructure.schedule_store import SqlSchedules

        store = SqlSchedules(self._stored)
        held = LeaseHolder(store, self._lease_clock, self._settings.lease_seconds)
        calendar_of = self._market.market_data().calendar_of
        sync = partial(refresh, self._market.upkeep())
        return Scheduler(store, held, self.batches, sync, calendar_of, self._tell_time)

    async def _tell_time(self) -> datetime:
        """What is due by the store's clock may be in the future of a machine whose own is behind: that waits."""
        await self._stored.keep_time()
        return min(self._lease_clock.now(), self._clock.now())

    def _panel(self) -> DeskPanel:
        from moot.modules.jobs.infrastructure.batch_desk import DeskPanel

        return DeskPanel(self._coordinator, self._market)

    def _keeper(self) -> BatchKeeper:
        from moot.modules.jobs.application.batch_keeper import BatchKeeper
        from moot.modules.jobs.infrastructure.batch_store import SqlBatchStore

        return BatchKeeper(
            SqlBatchStore(self._stored),
            self._panel(),
            self._clock,
            lease_clock=self._lease_clock,
            lease_seconds=self._settings.lease_seconds,
        )

    @property
    def _stored(self) -> Database:
        return _require(self._database)

    @property
    def _lease_clock(self) -> Clock:
        """As sessions do: on the clock that all share, unless somebody else sets the time."""
        return self._stored.clock if isinstance(self._clock, SystemClock) else self._clock

    def watchlists(self, workspace: str = DEFAULT_WORKSPACE) -> WatchlistService:
        from moot.modules.jobs.application.watch import WatchlistService
        from moot.modules.jobs.infrastructure.watch_store import SqlWatchStore

        store = SqlWatchStore(self._stored)
        return WatchlistService(store, self._market.market_data(), self._record(), self._clock, workspace)

    def destinations(self, workspace: str = DEFAULT_WORKSPACE) -> DestinationService:
        from moot.modules.jobs.application.destinations import DestinationService

        return DestinationService(self._notifications, self._send, self._clock, workspace)

    def _delivery(self) -> DeliveryService | None:
        """None where nothing is kept."""
        from moot.modules.jobs.application.delivery import DeliveryService

        if self._database is None:
            return None
        return DeliveryService(self._notifications, self._record(), self._send, self._clock)

    async def deliver_now(self) -> int:
        """How many were sent."""
        delivery = self._delivery()
        return await delivery.deliver_due() if delivery else 0

    def delivering(self) -> AbstractAsyncContextManager[None]:
        """Deliver from time to time while the block lasts."""
        delivery = self._delivery()
        return delivery.delivering() if delivery else nullcontext()

    async def close(self) -> None:
        if "_sender" in vars(self):
            await self._sender.aclose()

    def _record(self) -> DeskRecord:
        from moot.modules.jobs.infrastructure.desk_record import DeskRecord

        history, data = self._coordinator.session_history(), self._market.market_data()
        return DeskRecord(history, data, self._clock, self.batches)

    @cached_property
    def _notifications(self) -> SqlNotifications:
        from moot.modules.jobs.infrastructure.notify_store import SqlNotifications

        return SqlNotifications(self._stored, self._llm_platform.cipher)

    @cached_property
    def _sender(self) -> Sender:
        """From the first message: what it stands on takes a quarter of a second to load."""
        from moot.modules.jobs.infrastructure.senders import Sender

        return Sender(self._clock)

    async def _send(self, to: Destination, notice: Notice) -> None:
        await self._sender(to, notice)


def _require(stored: T | None) -> T:
    if stored is None:
        raise Unavailable(SAY("nothing_stored"), code="PERSISTENCE_OFF")
    return stored

"""Schedules: what is researched on trading days without being asked again, and the hand that begins it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import structlog

from moot.modules.jobs.application.batches import BatchService
from moot.modules.jobs.domain.schedules import (
    FIGURES_OUT,
    MOST_SCHEDULES,
    CalendarOf,
    Schedule,
    ScheduleBody,
    ScheduleList,
    ScheduleRun,
    ScheduleStore,
    ScheduleView,
    Synced,
    catch_up,
    fall_due,
    find_next,
    is_outdated,
)
from moot.modules.jobs.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError, Conflict, InvalidInput, NotFound
from moot.shared.domain.leases import LeaseHolder
from moot.shared.domain.messages import Locale, nearest
from moot.shared.domain.symbol import Market, Symbol
from moot.shared.domain.validation import suggest, validate
from moot.shared.infrastructure.redaction import error_text

__all__ = ["FIGURES_OUT", "ScheduleBody", "ScheduleList", "ScheduleRun", "ScheduleService", "ScheduleView"]

logger = structlog.get_logger(__name__)

SHOWN = 20
"""Runs of one schedule that is looked at."""
MOST_TRIES = 5
AGAIN_AFTER = timedelta(minutes=5)
"""What kept a run from beginning may have passed by then."""


BatchesOf = Callable[[str], BatchService]
"""Those of a workspace."""
Sync = Callable[[Sequence[str], Locale], Awaitable[Synced | None]]
"""Bring the data of these shares up to date, and tell what became of that in a language; None: there is nothing to
fetch."""


class ScheduleService:
    """The schedules of one workspace."""

    def __init__(
        self,
        store: ScheduleStore,
        batches: BatchesOf,
        calendar_of: CalendarOf,
        clock: Clock,
        *,
        workspace: str,
        caller: str | None = None,
    ) -> None:
        self._store, self._batches, self._calendar_of = store, batches, calendar_of
        self._clock, self._workspace, self._caller = clock, workspace, caller

    async def list(self) -> ScheduleList:
        found = await self._store.list(self._workspace, runs=1)
        return ScheduleList(items=[await self._follow(view) for view in found])

    async def find(self, name: str) -> ScheduleView:
        if found := await self._store.list(self._workspace, SHOWN, name):
            return await self._follow(found[0])
        known = [one.name for one in await self._store.list(self._workspace, 0)]
        said = SAY("schedule.not_found", name=name)
        raise NotFound(suggest(said, nearest(name, known)), code="SCHEDULE_NOT_FOUND", name=name)

    async def add(self, body: ScheduleBody | Mapping[str, Any]) -> ScheduleView:
        asked = validate(ScheduleBody, body)
        asked.check()
        now = self._clock.now()
        shares = await self._batches(self._workspace).list_shares(asked.request)
        market = asked.market or _find_market(shares)
        added = Schedule(
            **dict(asked) | {"market": market, "next_due": find_next(asked, self._calendar_of(market), now)},
            workspace_id=self._workspace,
            created_at=now,
            created_by=self._caller,
        )
        outcome = await self._store.add(added, MOST_SCHEDULES)
        if outcome == "taken":
            raise Conflict(SAY("schedule.duplicate", name=asked.name), name=asked.name)
        if outcome == "full":
            raise InvalidInput(SAY("schedule.too_many", most=MOST_SCHEDULES), code="TOO_MANY_SCHEDULES")
        return await self.find(asked.name)

    async def pause(self, name: str) -> ScheduleView:
        await self._store.pause(await self.find(name), None)
        return await self.find(name)

    async def resume(self, name: str) -> ScheduleView:
        found = await self.find(name)
        if found.paused:
            following = find_next(found, self._calendar_of(found.market), self._clock.now())
            await self._store.pause(found, following)
        return await self.find(name)

    async def remove(self, name: str) -> ScheduleView:
        found = await self.find(name)
        await self._store.remove(found)
        return found

    async def run_now(self, name: str) -> ScheduleView:
        found = await self.find(name)
        known = {"id": uuid4(), "schedule_id": found.id, "due_at": self._clock.now()}
        await self._store.add_run(ScheduleRun(**known, requested_by=self._caller or "api"))
        return await self.find(name)

    async def _follow(self, view: ScheduleView) -> ScheduleView:
        """With how the batches of its runs stand."""
        batches = self._batches(self._workspace)
        runs = [
            run.model_copy(update={"batch_status": (await batches.find(run.batch_id)).status})
            if run.batch_id
            else run
            for run in view.runs
        ]
        return view.model_copy(update={"runs": runs})


def _find_market(shares: Sequence[str]) -> Market:
    """That of the shares; of several, somebody has to say which."""
    markets = sorted({Symbol.parse(share).market for share in shares})
    if len(markets) > 1:
        raise InvalidInput(SAY("schedule.several_markets", markets=[*markets]), field="market")
    return markets[0]


class Scheduler:
    """Begins what is due. Several may look: a due moment is one row, which one of them takes.

    `tell_time` is the store's, and no later than this machine's own.
    """

    def __init__(
        self,
        store: ScheduleStore,
        held: LeaseHolder,
        batches: BatchesOf,
        sync: Sync,
        calendar_of: CalendarOf,
        tell_time: Callable[[], Awaitable[datetime]],
    ) -> None:
        self._store, self._held, self._batches, self._sync = store, held, batches, sync
        self._calendar_of, self._tell_time = calendar_of, tell_time
        self._under_way: dict[UUID, asyncio.Task[None]] = {}

    async def look(self) -> None:
        """See what is due, and begin what waits."""
        try:
            now = await self._tell_time()
            for schedule in await self._store.find_due(now):
                due = catch_up(schedule, self._calendar_of(schedule.market), now)
                await self._store.fire(schedule, fall_due(schedule, due), due.next)
            for run in await self._store.find_waiting(now):
                await self._take_up(run)
        except AppError as e:  # the store may be back next time
            logger.warning("no look at schedules", error=str(e))

    async def close(self) -> None:
        """What has not begun by now is left to others."""
        for task in self._under_way.values():
            task.cancel()
        await self.wait()
        await self._held.close(release=True)

    async def wait(self) -> None:
        """For all that is under way here."""
        if self._under_way:
            await asyncio.wait(list(self._under_way.values()))

    async def _take_up(self, run: ScheduleRun) -> None:
        taken = await self._held.take(run.id)
        if taken is None:
            return
        task = asyncio.create_task(self._see_to(run, taken.lease.token))
        self._under_way[run.id] = task
        self._held.hold(run.id, lambda _: task.cancel())
        task.add_done_callback(lambda _: self._let_go(run.id))

    def _let_go(self, run_id: UUID) -> None:
        self._held.let_go(run_id)
        self._under_way.pop(run_id, None)

    async def _see_to(self, run: ScheduleRun, token: int) -> None:
        schedule = await self._store.find(run.schedule_id)
        if schedule is None:  # removed, and its runs with it
            return
        now = await self._tell_time()
        begun = run.model_copy(update={"status": "running", "begun_at": run.begun_at or now})
        if run.requested_by is None and is_outdated(run.due_at, now, self._calendar_of(schedule.market)):
            await self._store.keep(run.model_copy(update={"status": "missed", "ended_at": now}), token)
            return
        try:
            await self._begin(schedule, begun, token)
        except Exception as e:  # bulkhead: one schedule must not keep the others from their time
            defect = None if isinstance(e, AppError) else e
            logger.warning("scheduled run failed", schedule=schedule.name, error=str(e), exc_info=defect)
            with suppress(AppError):  # then somebody takes it up once more
                await self._fail(begun, token, e, schedule)

    async def _begin(self, schedule: Schedule, run: ScheduleRun, token: int) -> None:
        """Data first. Nothing is begun that was removed, or that somebody else has, meanwhile."""
        if not await self._store.keep(run, token):
            return
        request = schedule.request.model_copy(update={"as_of": run.due_at, "name": schedule.name})
        batches = self._batches(schedule.workspace_id)
        synced = await self._sync(await batches.list_shares(request), request.locale)
        run = run.model_copy(update={"synced": synced})
        if not await self._store.keep(run, token):
            return
        by = run.requested_by or f"schedule {schedule.name}"
        batch = await batches.start(request, requested_by=by, batch_id=run.id)
        done = {"status": "begun", "batch_id": batch.id, "ended_at": await self._tell_time(), "error": None}
        await self._store.keep(run.model_copy(update=done), token)

    async def _fail(self, run: ScheduleRun, token: int, error: Exception, schedule: Schedule) -> None:
        now = await self._tell_time()
        passing = isinstance(error, AppError) and error.passing and token < MOST_TRIES
        said = error_text(error, schedule.request.locale)
        ended = {} if passing else {"status": "failed", "ended_at": now}
        until = now + AGAIN_AFTER if passing else None
        await self._store.keep(run.model_copy(update={"error": said, **ended}), token, until)

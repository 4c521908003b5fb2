"""Whoever works sees to the batches: screens, asks the desk about those that lead, stops what is to stop, and closes.

Each of these can be done again without harm, so whoever takes over from one that died begins where that one was.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from uuid import UUID

import structlog

from moot.modules.jobs.domain.batches import PENDING, Answer, Batch, BatchStore, Panel, State
from moot.modules.jobs.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError, nature_of
from moot.shared.domain.leases import LeaseHolder
from moot.shared.infrastructure.redaction import error_text

logger = structlog.get_logger(__name__)

HELD = ("paused", "cancelled")


class BatchKeeper:
    """`lease_clock` is the one that all go by who share the store."""

    def __init__(
        self, store: BatchStore, panel: Panel, clock: Clock, *, lease_clock: Clock, lease_seconds: float
    ) -> None:
        self._store, self._panel, self._clock = store, panel, clock
        self._lease_clock, self._lease_seconds = lease_clock, lease_seconds
        self._tended: dict[UUID, asyncio.Task[None]] = {}

    async def look_after(self) -> None:
        """See to every batch that has something left to do and nobody who does it."""
        try:
            for batch_id in await self._store.find_open(self._lease_clock.now()):
                self._begin(batch_id)
        except AppError as e:  # the store may be back next time
            logger.warning("no look at batches", error=str(e))

    async def work_on(self, session_id: UUID, run: Callable[[UUID], Awaitable[None]]) -> None:
        """Run it, unless its batch lets nothing begin: then it waits until it is put back."""
        batch_id = await self._find_batch(session_id)
        if batch_id and await self._holds_back(batch_id):
            return
        await run(session_id)
        if batch_id:
            self._begin(batch_id)

    async def close(self) -> None:
        tasks = list(self._tended.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, batch_id: UUID) -> None:
        if batch_id not in self._tended:
            task = self._tended[batch_id] = asyncio.create_task(self.tend(batch_id))
            task.add_done_callback(lambda _: self._tended.pop(batch_id, None))

    async def tend(self, batch_id: UUID) -> None:
        """Do what there is to do now, unless somebody else does."""
        held = LeaseHolder(self._store, self._lease_clock, self._lease_seconds)
        task = asyncio.current_task()
        assert task is not None
        try:
            if await held.take(batch_id) and (batch := await self._store.find(batch_id)):
                held.hold(batch_id, lambda _: task.cancel())  # whoever has it now goes on
                await self._move_on(batch)
        except AppError as e:
            logger.warning("batch left for the next look", batch_id=str(batch_id), error=str(e))
        finally:
            await held.close(release=True)

    async def _move_on(self, batch: Batch) -> None:
        if batch.status == "running":
            try:
                await self._ask(batch)
            except Exception as e:  # bulkhead: one batch must not keep the others from being seen to
                if nature_of(e).passing:
                    raise
                logger.error("batch failed", batch_id=str(batch.id), exc_info=True)
                reason = error_text(e, batch.request.locale)
                await self._store.update(batch.id, ["running"], status="failed", reason=reason)
        batch = await self._store.find(batch.id) or batch
        answers = await self._stop(batch, await self._list_answers(batch))
        waiting = [answer.session_id for answer in answers if answer.state == "waiting"]
        if not any(answer.state in PENDING for answer in answers):
            await self._end(batch, answers)
        elif waiting and batch.status == "running":
            await self._panel.wake(waiting)

    async def _ask(self, batch: Batch) -> None:
        """All that lead, each once; who stops meanwhile is heard."""
        asked = {answer.symbol for answer in await self._list_answers(batch)}
        if batch.screened is not None and len(asked) >= min(batch.request.top, batch.screened):
            return
        screening = await self._store.read_screening(batch.id)
        if screening is None:
            symbols = await self._store.read_symbols(batch.id)
            found = await self._panel.screen(batch.request, symbols, batch.as_of)
            await self._store.keep_screening(batch.id, found)
            screening = await self._store.read_screening(batch.id) or found
        for symbol in screening.choose(batch.request.top):
            now = await self._store.find(batch.id)
            if now is None or now.status != "running":
                return
            if symbol not in asked:
                await self._panel.ask(batch, symbol)

    async def _stop(self, batch: Batch, answers: Sequence[Answer]) -> Sequence[Answer]:
        """What is cancelled, or may cost no more; and how all stand then."""
        over_limit = any(answer.over_limit for answer in answers)
        if over_limit and not batch.over_limit:
            await self._store.update(batch.id, [batch.status], over_limit=True)
        stopping: Collection[State] = ["waiting"] if over_limit else []
        stopping = PENDING if batch.status in ("cancelled", "failed") else stopping
        left = [answer for answer in answers if answer.state in stopping]
        for answer in left:
            await self._panel.cancel(answer.session_id, batch.workspace_id)
        return await self._list_answers(batch) if left else answers

    async def _end(self, batch: Batch, answers: Sequence[Answer]) -> None:
        batch = await self._store.find(batch.id) or batch
        changes = {"ended_at": self._clock.now()}
        if batch.status == "running":
            reason = _tell_limit(batch, answers) if batch.over_limit else None
            await self._store.update(batch.id, ["running"], status="done", reason=reason, **changes)
        else:
            await self._store.update(batch.id, ["cancelled", "failed"], **changes)

    async def _list_answers(self, batch: Batch) -> Sequence[Answer]:
        return (await self._panel.list_answers([batch.id])).get(batch.id, ())

    async def _find_batch(self, session_id: UUID) -> UUID | None:
        try:
            return await self._panel.find_batch(session_id)
        except AppError as e:  # the session itself will say so
            logger.warning("no look at a session's batch", session_id=str(session_id), error=str(e))
            return None

    async def _holds_back(self, batch_id: UUID) -> bool:
        batch = await self._store.find(batch_id)
        return batch is not None and (batch.status in HELD or batch.over_limit)


def _tell_limit(batch: Batch, answers: Sequence[Answer]) -> str:
    left = sum(answer.state == "cancelled" for answer in answers)
    short = sum(answer.over_limit for answer in answers)
    said = SAY("batch.over_limit", limit=f"{batch.request.max_cost:g}", left=left, short=short)
    return said.in_locale(batch.request.locale)

"""Sends what waits in the outbox: at least once, by one worker at a time, again later where it failed."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import groupby
from uuid import UUID, uuid5

import structlog

from moot.modules.jobs.application.destinations import refuse_unreadable
from moot.modules.jobs.domain.batches import State
from moot.modules.jobs.domain.destinations import (
    LONGEST,
    MOST_ATTEMPTS,
    DeliveryFailed,
    Destination,
    Notifications,
    Send,
    find_pause,
)
from moot.modules.jobs.domain.notices import (
    Notice,
    Occasion,
    Pending,
    Record,
    compose,
    compose_batch,
    compose_digest,
    compose_run,
)
from moot.modules.jobs.domain.watch import Ruling, find_before
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError
from moot.shared.infrastructure.redaction import error_text

logger = structlog.get_logger(__name__)

AT_ONCE = 300
"""So many are looked at in one round."""
HANDFUL = 5
"""More than that for one place are one message."""
LOOK_EVERY = 5.0
"""Seconds between two looks at what is due."""
KEPT = timedelta(days=30)
OCCASIONS: Mapping[State, Occasion] = {"judged": "verdict", "abstained": "verdict", "failed": "failure"}
"""What is told of a session by how it fared in its batch."""


class DeliveryService:
    """`chance`: a number from 0 to 1, another one each time."""

    def __init__(
        self,
        store: Notifications,
        record: Record,
        send: Send,
        clock: Clock,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._store, self._record = store, record
        self._send, self._clock, self._chance = send, clock, chance

    async def deliver_due(self) -> int:
        """How many were sent. Places are served side by side: one that is slow keeps no other waiting."""
        now = self._clock.now()
        due = sorted(await self._store.find_due(now, AT_ONCE), key=lambda row: row.destination_id)
        if not due:
            return 0
        known = {place.id: place for place in await self._store.list()}
        lots = {place: list(rows) for place, rows in groupby(due, key=lambda row: row.destination_id)}
        served = [self._serve(known[place], rows) for place, rows in lots.items() if place in known]
        done = await asyncio.gather(*served, return_exceptions=True)
        for failed in done:  # not before all of them have come to their end
            if isinstance(failed, BaseException):
                raise failed
        await self._store.forget(now - KEPT)
        return sum(sent for sent in done if isinstance(sent, int))

    @asynccontextmanager
    async def delivering(self) -> AsyncIterator[None]:
        """Deliver from time to time while the block lasts."""
        looking = asyncio.create_task(self._look_after())
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.wait([looking])

    async def _look_after(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            try:
                await self.deliver_due()
            except Exception:  # bulkhead: whatever goes wrong with one round must not end all others
                logger.warning("notifications not delivered", exc_info=True)

    async def _serve(self, place: Destination, rows: Sequence[Pending]) -> int:
        """In their order. Where the place is down the others would fail too: they wait until it may be up."""
        alone = [[row] for row in sorted(rows, key=lambda row: row.created_at)]
        sent = 0
        for lot in alone if len(rows) <= HANDFUL else [rows]:
            claimed = await self._store.claim(lot, self._clock.now())
            told = [worded for row in claimed if (worded := await self._word(row, place))]
            try:
                sent += await self._tell(told, place)
            except Exception as e:  # noqa: BLE001  # bulkhead: one message must not keep others from being sent
                for row, _ in told:
                    await self._note_failure(row, place, e)
                if isinstance(e, DeliveryFailed) and e.passing:
                    now, pause = self._clock.now(), find_pause(1, e.retry_after, self._chance())
                    await self._store.hold_back(place.id, now, now + pause)
                    break
        return sent

    async def _tell(self, told: Sequence[tuple[Pending, Notice]], place: Destination) -> int:
        """How many things one message has told."""
        if told:
            notices = [notice for _, notice in told]
            alone = len(told) == 1
            await self._send(place, notices[0] if alone else compose_digest(notices, LONGEST[place.kind]))
            await self._store.close([row for row, _ in told], "sent", self._clock.now())
        return len(told)

    async def _word(self, claimed: Pending, place: Destination) -> tuple[Pending, Notice] | None:
        """None where there is nothing to tell, or no words for it."""
        try:
            if notice := await self._find_words(claimed, place):
                return claimed, notice
            await self._store.drop(claimed)
        except Exception as e:  # noqa: BLE001  # bulkhead: what cannot be told keeps nothing else from being told
            await self._note_failure(claimed, place, e)
        return None

    async def _find_words(self, pending: Pending, place: Destination) -> Notice | None:
        """None of a verdict that changed nothing."""
        refuse_unreadable(place)
        if pending.session_id is None:
            in_batch = "batch_id" in pending.about
            return await self._word_batch(pending, place) if in_batch else compose_run(pending, place.locale)
        told = await self._record.tell(pending.session_id, pending.workspace_id)
        before: Ruling | None = None
        if pending.occasion == "verdict" and told.ruling is not None:
            before = find_before(told.ruling, await self._record.on(told.symbol, pending.workspace_id))
            if not _changes(told.ruling, before):
                return None
        return compose(pending, told, before, place.locale)

    async def _word_batch(self, pending: Pending, place: Destination) -> Notice:
        """With what would have been told of its sessions, had they been alone."""
        results = await self._record.tell_batch(UUID(pending.about["batch_id"]), pending.workspace_id)
        notices = []
        for row in results.rows:
            occasion = OCCASIONS.get(row.state)
            if row.session_id and occasion:
                alone = pending._replace(
                    id=uuid5(pending.id, row.symbol), session_id=row.session_id, occasion=occasion, about={}
                )
                notices += [one] if (one := await self._find_words(alone, place)) else []
        return compose_batch(pending, results, notices, LONGEST[place.kind], place.locale)

    async def _note_failure(self, claimed: Pending, place: Destination, error: Exception) -> None:
        now, said = self._clock.now(), error_text(error, place.locale)
        about = {"id": str(claimed.id), "destination": place.name, "attempts": claimed.attempts}
        defect = None if isinstance(error, AppError) else error
        final = isinstance(error, DeliveryFailed) and not error.passing
        if final or claimed.attempts >= MOST_ATTEMPTS:
            logger.error("notification given up", error=said, exc_info=defect, **about)
            await self._store.close([claimed], "given_up", now, said)
            return
        asked = error.retry_after if isinstance(error, DeliveryFailed) else 0.0
        pause = find_pause(claimed.attempts, asked, self._chance())
        logger.warning("notification not delivered", error=said, exc_info=defect, **about)
        await self._store.postpone(claimed, now + pause, said)


def _changes(ruling: Ruling, before: Ruling | None) -> bool:
    """What was asked of a moment that is past by then is no news."""
    return before is not None and before.as_of <= ruling.as_of and before.action != ruling.action

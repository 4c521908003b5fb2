"""Batches: many shares are looked through by rule, and the desk judges those that lead."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, time
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from moot.modules.jobs.application.batch_keeper import BatchKeeper
from moot.modules.jobs.domain.batches import (
    WATCHED,
    Answer,
    Batch,
    BatchPage,
    BatchRequest,
    BatchResults,
    BatchStatus,
    BatchStore,
    BatchView,
    Format,
    LeftOut,
    Panel,
    Progress,
    Ranked,
)
from moot.modules.jobs.domain.ranking import compare, name_state, rank
from moot.modules.jobs.domain.texts import SAY
from moot.modules.jobs.domain.watch import WatchStore
from moot.shared.domain.brief import add_costs
from moot.shared.domain.clock import Clock, freeze, in_utc
from moot.shared.domain.errors import Conflict, InvalidInput, NotFound
from moot.shared.domain.ids import find_id
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.universe import Screening
from moot.shared.domain.validation import validate

__all__ = ["Batch", "BatchPage", "BatchRequest", "BatchResults", "BatchView", "Format", "Progress", "Ranked"]

NOON = time(12)
"""In UTC: at every exchange it is on that day, by which a share was listed or not."""
TOLD = 20
"""So many of those that mean no share."""


class BatchService:
    """The batches of one workspace."""

    def __init__(
        self,
        store: BatchStore,
        panel: Panel,
        keeper: BatchKeeper,
        lists: WatchStore,
        clock: Clock,
        *,
        workspace: str,
        currency: str = "",
    ) -> None:
        self._store, self._panel, self._keeper, self._lists = store, panel, keeper, lists
        self._clock, self._workspace, self._currency = clock, workspace, currency

    async def start(
        self,
        request: BatchRequest | Mapping[str, Any],
        *,
        requested_by: str | None = None,
        batch_id: UUID | None = None,
    ) -> BatchView:
        """With a `batch_id` that is known, that batch: whoever is not sure whether it was begun asks again."""
        asked = validate(BatchRequest, request)
        if batch_id is not None and (known := await self._store.find(batch_id, self._workspace)):
            return (await self._view([known]))[0]
        self._panel.check(asked)
        now = self._clock.now()
        symbols, left_out = await self._read_universe(asked)
        exchange = Symbol.parse(symbols[0])
        batch = Batch(
            id=batch_id or uuid4(),
            workspace_id=self._workspace,
            name=asked.name,
            status="running",
            as_of=freeze(asked.as_of, now, exchange.local_date(now), exchange.end_of),
            request=asked,
            created_at=now,
            requested_by=requested_by,
            left_out=left_out,
            shares=len(symbols),
        )
        await self._store.add(batch, symbols)
        return await self.find(batch.id)

    async def list_shares(self, request: BatchRequest) -> list[str]:
        """Those that would be looked through. Raises what `start` would."""
        self._panel.check(request)
        return (await self._read_universe(request))[0]

    async def find_all(self, name: str | None = None, *, page: int = 1, page_size: int = 20) -> BatchPage:
        found, total = await self._store.find_page(self._workspace, name, page, page_size)
        return BatchPage(items=await self._view(found), total=total)

    async def find(self, batch_id: UUID) -> BatchView:
        return (await self._view([await self._require(batch_id)]))[0]

    async def find_id(self, text: str) -> UUID:
        """By the id, the beginning of it, or `last`."""
        return await find_id("batch_id", text, partial(self._store.find_ids, self._workspace))

    async def results(self, batch_id: UUID) -> BatchResults:
        batch = await self._require(batch_id)
        view = (await self._view([batch]))[0]
        screening, rows = await self._rank(batch)
        previous = await self._store.find_previous(batch)
        before = (await self._rank(previous))[1] if previous else []
        compared, gone = compare(rows, before)
        return BatchResults(
            batch=view,
            rows=compared,
            previous=previous,
            gone=gone,
            left_out=list(screening.left_out),
            notes=list(screening.notes),
        )

    async def pause(self, batch_id: UUID) -> BatchView:
        return await self._turn(batch_id, "paused", among=["running"])

    async def resume(self, batch_id: UUID) -> BatchView:
        return await self._turn(batch_id, "running", among=["paused", "running"])

    async def cancel(self, batch_id: UUID) -> BatchView:
        """At once, whether or not anybody works."""
        await self._turn(batch_id, "cancelled", among=["running", "paused", "cancelled"])
        await self._keeper.tend(batch_id)
        return await self.find(batch_id)

    async def _turn(self, batch_id: UUID, to: BatchStatus, among: Collection[BatchStatus]) -> BatchView:
        batch = await self._require(batch_id)
        if not await self._store.update(batch.id, among, status=to):
            now = await self._require(batch_id)
            raise Conflict(
                SAY(f"batch.not_{to}", name=now.name, status=SAY(f"batch.status.{now.status}")),
                code="BATCH_NOT_IN_STATE",
                status=now.status,
            )
        return await self.find(batch_id)

    async def _require(self, batch_id: UUID) -> Batch:
        if found := await self._store.find(batch_id, self._workspace):
            return found
        raise NotFound(SAY("batch.unknown", id=batch_id), code="BATCH_NOT_FOUND", batch_id=str(batch_id))

    async def _view(self, batches: Sequence[Batch]) -> list[BatchView]:
        answers = await self._panel.list_answers([batch.id for batch in batches])
        return [
            BatchView(**dict(batch), progress=self._count(batch, answers.get(batch.id, ())))
            for batch in batches
        ]

    def _count(self, batch: Batch, answers: Sequence[Answer]) -> Progress:
        return Progress(
            states=Counter(name_state(answer, batch) for answer in answers),
            requests=sum(answer.requests for answer in answers),
            tokens=sum(answer.tokens for answer in answers),
            cost=add_costs(answer.cost for answer in answers),
            currency=self._currency,
        )

    async def _rank(self, batch: Batch) -> tuple[Screening, list[Ranked]]:
        screening = await self._store.read_screening(batch.id) or Screening()
        answers = (await self._panel.list_answers([batch.id])).get(batch.id, ())
        return screening, rank(screening, answers, batch)

    async def _read_universe(self, asked: BatchRequest) -> tuple[list[str], list[LeftOut]]:
        """Each symbol once, in the order in which they were given."""
        then = self._clock.now()
        if asked.as_of is not None:
            then = min(then, in_utc(asked.as_of, NOON))
        symbols: dict[str, None] = {}
        unknown: list[LeftOut] = []
        for text in asked.universe:
            try:
                symbols |= dict.fromkeys(await self._expand(text.strip(), then))
            except InvalidInput as e:
                unknown.append(LeftOut(given=text, why=e.in_locale(asked.locale)))
        if unknown and not asked.skip_unknown:
            raise _refuse_unknown(unknown)
        if not symbols:
            raise InvalidInput(SAY("batch.nobody", universe=asked.universe[:TOLD]), field="universe")
        return list(symbols), unknown

    async def _expand(self, text: str, then: datetime) -> Sequence[str]:
        if not text.startswith(WATCHED):
            return await self._panel.find_shares(text, then)
        name = text.removeprefix(WATCHED)
        watched = await self._lists.list(self._workspace, name)
        if not watched:
            raise InvalidInput(SAY("batch.no_list", name=name), field="universe")
        return [one.symbol for one in watched]


def _refuse_unknown(unknown: Sequence[LeftOut]) -> InvalidInput:
    said = SAY(
        "batch.unknown_shares",
        count=len(unknown),
        shares=[SAY("batch.unknown_share", given=one.given, why=one.why) for one in unknown[:TOLD]],
    )
    told = [one.model_dump() for one in unknown]
    return InvalidInput(said, code="UNKNOWN_SHARES", field="universe", unknown=told)

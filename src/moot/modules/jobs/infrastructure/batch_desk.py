"""The desk and its market data, as batches and schedules see them."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from moot.modules.coordinator.application.dtos.research_dtos import ResearchBody
from moot.modules.coordinator.application.session_history import SessionOutcome
from moot.modules.coordinator.application.session_queue import BATCH
from moot.modules.coordinator.container import CoordinatorContainer
from moot.modules.jobs.domain.batches import Answer, Batch, BatchRequest, Ruled, State
from moot.modules.jobs.domain.schedules import Synced
from moot.modules.llm_platform.application.call_logs import BATCH_BUDGET_EXCEEDED
from moot.modules.market_data.application.market_data import name_listed
from moot.modules.market_data.application.sync import SyncEvent
from moot.modules.market_data.application.upkeep import INDEXES, MarketDataUpkeep
from moot.modules.market_data.container import MarketDataContainer
from moot.shared.domain.brief import Brief
from moot.shared.domain.claims import lean_of
from moot.shared.domain.errors import AppError, Conflict
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import Locale, in_words
from moot.shared.domain.symbol import Market, Symbol
from moot.shared.domain.universe import Screening
from moot.shared.domain.validation import validate
from moot.shared.infrastructure.redaction import REDACT, error_text

if TYPE_CHECKING:
    from moot.modules.research.application.screening import ScreenService

EVERYBODY = "all"
FOR_EACH = {*Brief.model_fields} - {"max_cost"}
"""Of the brief, what holds for every share; the money is for all of them together."""
ANY_SHARE = "900001.DEMO"
STATES: Mapping[str, State] = {"queued": "waiting", "running": "running", "waiting": "asked"}
VERDICTS: Mapping[str | None, State] = {
    "judged": "judged",
    "abstained": "abstained",
    "skipped": "unjudged",
}
MOST_TOLD = 5
"""Of what went wrong when data were brought up to date."""


class DeskPanel:
    def __init__(self, coordinator: CoordinatorContainer, market: MarketDataContainer) -> None:
        self._coordinator, self._market = coordinator, market

    async def find_shares(self, text: str, as_of: datetime) -> Sequence[str]:
        if text == EVERYBODY:
            return await self._list_all(as_of)
        if text in INDEXES:
            return await self._market.upkeep().list_members(text, as_of.date())
        data = self._market.market_data()
        symbol = await data.symbol(text)
        return [(await data.company(symbol, as_of=as_of)).symbol]

    async def _list_all(self, as_of: datetime) -> list[str]:
        directory = self._market.directory()
        markets = {*directory.sources} - {Market.DEMO} or {Market.DEMO}
        found: list[str] = []
        for market in markets:
            companies = await directory.list_companies(market)
            if companies:
                today = Symbol.parse(next(iter(companies))).local_date(as_of)
                found += name_listed(companies.values(), today)
        return sorted(found)

    def check(self, request: BatchRequest) -> None:
        validate(ResearchBody, {"symbol": ANY_SHARE, **_brief(request)})

    async def screen(self, request: BatchRequest, symbols: Sequence[str], as_of: datetime) -> Screening:
        """By the experts that were chosen; where none of them can, by all that can."""
        service = await asyncio.to_thread(self._load_screen, request)
        able = {screener.service.expert for screener in service.screeners}
        experts: Collection[ExpertType] = request.experts if able & {*request.experts} else tuple(ExpertType)
        found = await service.run(symbols, as_of=as_of, locale=request.locale, experts=experts)
        return Screening(**dict(found))

    def _load_screen(self, request: BatchRequest) -> ScreenService:
        """In a thread: it takes seconds, in which leases are to be renewed."""
        from moot.modules.research.container import ResearchContainer  # noqa: PLC0415

        return ResearchContainer(self._market.market_data()).screen(request.horizon)

    async def ask(self, batch: Batch, symbol: str) -> None:
        await self._coordinator.research_orchestration_service().start(
            {"symbol": symbol, **_brief(batch.request), "as_of": batch.as_of},
            trigger_source=BATCH,
            workspace=batch.workspace_id,
            requested_by=batch.requested_by,
            idempotency_key=f"batch:{batch.id}:{symbol}",
            batch_id=batch.id,
            batch_max_cost=batch.request.max_cost,
        )

    async def list_answers(self, batch_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[Answer]]:
        found: dict[UUID, list[Answer]] = defaultdict(list)
        for outcome in await self._coordinator.session_history().list_outcomes(batch_ids):
            found[outcome.batch_id].append(_read(outcome))
        return found

    async def find_batch(self, session_id: UUID) -> UUID | None:
        return await self._coordinator.sessions.find_batch(session_id)

    async def wake(self, session_ids: Collection[UUID]) -> None:
        await self._coordinator.sessions.queue_again(session_ids)

    async def cancel(self, session_id: UUID, workspace: str) -> None:
        with suppress(Conflict):
            await self._coordinator.sessions.cancel(session_id, workspace)


def _brief(request: BatchRequest) -> dict[str, Any]:
    return request.model_dump(include=FOR_EACH)


def _read(outcome: SessionOutcome) -> Answer:
    state = STATES.get(outcome.status) or VERDICTS.get(outcome.verdict_status) or "failed"
    judged = state == "judged"
    told = {*Answer.model_fields} - (set() if judged else {*Ruled.model_fields})
    return Answer(
        **outcome.model_dump(include=told),
        session_id=outcome.id,
        state="cancelled" if outcome.status == "cancelled" else state,
        action=outcome.verdict_action,
        lean=_lean(outcome) if judged else None,
        over_limit=BATCH_BUDGET_EXCEEDED in outcome.failures,
    )


def _lean(outcome: SessionOutcome) -> float:
    """That of the verdict, or of the debate where the verdict does nothing."""
    acts = outcome.verdict_action if outcome.verdict_action != "HOLD" else None
    return round(lean_of(acts or outcome.direction or "NEUTRAL", outcome.confidence or 0.5), 4)


async def refresh(upkeep: MarketDataUpkeep, shares: Sequence[str], locale: Locale) -> Synced | None:
    """Bring the data of shares that have a source up to date, as `moot data sync` does. Whatever fails is told, and
    stops nothing: what is too old then counts as absent.
    """
    sources = upkeep.syncing.providers
    outside = [share for share in shares if sources.get(Symbol.parse(share).market)]
    if not outside:
        return None
    try:
        events = await upkeep.sync(await upkeep.plan(outside, None, None, None))
    except AppError as e:
        return Synced(failed=1, errors=[error_text(e, locale)])
    counted = Counter(event.outcome for event in events)
    failed = [_describe(event, locale) for event in events if event.outcome == "failed"]
    return Synced(
        fetched=counted["fetched"],
        up_to_date=counted["up_to_date"],
        failed=counted["failed"],
        errors=failed[:MOST_TOLD],
    )


def _describe(event: SyncEvent, locale: Locale) -> str:
    why = [f"{source}: {in_words(error, locale)}".removeprefix(": ") for source, error in event.errors]
    return REDACT.text(f"{event.subject} {in_words(event.dataset.label, locale)}: {'; '.join(why)}")

"""Pruning: prompts, answers and responses of old sessions go; what was found and decided, and the chain, stay."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from uuid import UUID

from pydantic import BaseModel

from moot.modules.coordinator.domain.ports.research_session_repository import CallTexts, TextStore
from moot.shared.domain.clock import Clock
from moot.shared.domain.validation import refused

__all__ = ["CallTexts", "Pruned", "SessionPruning"]


class Pruned(BaseModel, frozen=True):
    """What went. The sessions in `broken` kept everything: their records do not verify."""

    texts: CallTexts
    broken: list[UUID]


class SessionPruning:
    def __init__(self, store: TextStore, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def planned(self, before: date, workspace: str) -> CallTexts:
        """How many sessions and calls would lose their texts."""
        store, moment = self._store, self._moment(before)
        sessions = await store.sessions_before(moment, workspace)
        return CallTexts(sessions=len(sessions), calls=await store.count(moment, workspace))

    async def prune(
        self, before: date, workspace: str, watch: Callable[[CallTexts], None] | None = None
    ) -> Pruned:
        """Of sessions that ended before that day (UTC), and of calls without a session made before it."""
        store, moment = self._store, self._moment(before)
        watch = watch or (lambda gone: None)
        total, broken = CallTexts(), []
        for session_id in await store.sessions_before(moment, workspace):
            gone = await store.drop(session_id)
            if gone is None:
                broken.append(session_id)
            total += gone or CallTexts()
            watch(total)
        while (gone := await store.drop_loose(moment, workspace)).calls:
            total += gone
            watch(total)
        return Pruned(texts=total, broken=broken)

    def _moment(self, before: date) -> datetime:
        """A day that has not come could take in sessions that still run."""
        if before > self._clock.now().astimezone(UTC).date():
            raise refused("in_future", "before", before.isoformat())
        return datetime.combine(before, time.min, UTC)

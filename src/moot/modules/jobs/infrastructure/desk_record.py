"""The desk's record, as jobs read it: through the coordinator's history and market data's directory."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from moot.modules.coordinator.application.results import notices
from moot.modules.coordinator.application.session_history import (
    ResearchSession,
    SessionFilter,
    SessionHistory,
)
from moot.modules.coordinator.application.session_queue import WHAT_IF
from moot.modules.jobs.application.batches import BatchService
from moot.modules.jobs.domain.batches import BatchResults
from moot.modules.jobs.domain.notices import Told
from moot.modules.jobs.domain.watch import Ruling
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError
from moot.shared.domain.facts import SymbolDirectory
from moot.shared.domain.messages import LOCALES, Locale
from moot.shared.domain.symbol import Symbol

LOOKED_BACK = 50
"""Sessions on a symbol among which its rulings are looked for."""


class DeskRecord:
    def __init__(
        self,
        history: SessionHistory,
        companies: SymbolDirectory,
        clock: Clock,
        batches: Callable[[str], BatchService],
    ) -> None:
        self._history, self._companies, self._clock = history, companies, clock
        self._batches = batches

    async def tell_batch(self, batch_id: UUID, workspace: str) -> BatchResults:
        return await self._batches(workspace).results(batch_id)

    async def on(self, symbol: str, workspace: str) -> Sequence[Ruling]:
        wanted = SessionFilter(workspace_id=workspace, symbol=symbol, page_size=LOOKED_BACK)
        found = (await self._history.sessions(wanted)).items
        return [ruling for session in found if (ruling := _read_ruling(session))]

    async def tell(self, session_id: UUID, workspace: str) -> Told:
        session = await self._history.session(session_id, workspace)
        return Told(
            symbol=session.symbol,
            names=await self._find_names(session.symbol),
            locale=session.locale,
            horizon=session.horizon,
            as_of=session.as_of,
            ruling=_read_ruling(session),
            reason=session.reason or await self._find_reason(session),
            notices={locale: notices(session.symbol, locale) for locale in LOCALES},
        )

    async def _find_names(self, symbol: str) -> dict[Locale, str]:
        with suppress(AppError):  # its symbol tells it too
            company = await self._companies.company(Symbol.parse(symbol), as_of=self._clock.now())
            return {locale: company.name_in(locale) for locale in LOCALES}
        return {}

    async def _find_reason(self, session: ResearchSession) -> str:
        """Of a verdict: what it says at its top."""
        if session.verdict_status != "judged":
            return ""
        result = await self._history.result(session.id, session.workspace_id)
        verdict: Mapping[str, Any] = result.verdict or {}
        return str(verdict.get("headline") or verdict.get("reasoning") or "")


def _read_ruling(session: ResearchSession) -> Ruling | None:
    """A retry of a what-if is one too."""
    if session.trigger_source == WHAT_IF or session.verdict_status not in ("judged", "abstained"):
        return None
    told = session.model_dump(include={"horizon", "as_of", "completed_at"})
    return Ruling(session_id=session.id, action=session.verdict_action, **told)

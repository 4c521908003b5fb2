"""The one way to run research: check the request, record the session, let the engine work, answer."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from moot.modules.coordinator.application.dtos.research_dtos import (
    ResearchBody,
    ResearchRequest,
    ResearchResult,
)
from moot.modules.coordinator.application.research_run import Watch
from moot.modules.coordinator.application.retry import past_session, request_again
from moot.modules.coordinator.application.session_recorder import SessionRecorder
from moot.modules.coordinator.domain.dtos.research_dtos import ModelUsage
from moot.modules.coordinator.domain.exceptions import AllExpertsFailed
from moot.modules.coordinator.domain.ports.permission import SymbolDirectory
from moot.modules.coordinator.domain.ports.research_orchestration import IResearchOrchestrationPort
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.shared.domain.clock import Clock, SystemClock
from moot.shared.domain.messages import Locale
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.texts import SAY
from moot.shared.domain.validation import checked, refused
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE, Tally

ASKED = set(ResearchBody.model_fields)


class ResearchOrchestrationService:
    def __init__(
        self,
        orchestrator: IResearchOrchestrationPort,
        *,
        directory: SymbolDirectory | None = None,
        repository: IResearchSessionRepository | None = None,
        clock: Clock | None = None,
        currency: str = "",
    ) -> None:
        self._orchestrator = orchestrator
        self._currency = currency
        self._directory, self._repository = directory, repository
        self._clock = clock or SystemClock()
        self._recorder = SessionRecorder(repository, self._clock)

    async def execute(
        self,
        request: ResearchRequest | Mapping[str, Any],
        *,
        trigger_source: str = "api",
        workspace: str = DEFAULT_WORKSPACE,
        watch: Watch | None = None,
    ) -> ResearchResult:
        """Run `request`: what a client of `workspace` wrote, through `trigger_source`, or a whole `ResearchRequest`.

        Raises `InvalidInput` before anything starts, `AllExpertsFailed` when no expert had a result. `watch` is
        called with every `NodeEvent` of the run.
        """
        by = {"trigger_source": trigger_source, "workspace": workspace}
        accepted, as_of = await self._accept(request, by)
        return await self._run(accepted, as_of, watch)

    async def retry(
        self,
        session_id: UUID,
        *,
        skip_debate: bool = False,
        trigger_source: str = "api",
        workspace: str = DEFAULT_WORKSPACE,
        watch: Watch | None = None,
    ) -> ResearchResult:
        """Run again what failed in a session of `workspace`; the answer is that of a new session.

        Raises `SessionNotFound`, `SessionRunning` or `SessionNotRetryable` before anything starts,
        `AllExpertsFailed` when there is still no result.
        """
        past = await past_session(self._repository, session_id, workspace)
        request = request_again(past, skip_debate=skip_debate, trigger_source=trigger_source)
        return await self._run(request, past.session.as_of, watch)

    async def _run(self, request: ResearchRequest, as_of: datetime, watch: Watch | None) -> ResearchResult:
        async with self._recorder.recording(request, as_of, watch) as recording:
            outcome = await self._orchestrator.run(request)
            recording.result = result = outcome.model_copy(
                update={
                    "session_id": recording.context.session_id,
                    "as_of": as_of,
                    "locale": request.locale,
                    "audit_gaps": recording.context.tally.audit_gaps,
                    "usage": usage(recording.context.tally, self._currency),
                    "notices": notices(request.symbol, request.locale),
                }
            )
        if result.overall_status == "failed":
            raise AllExpertsFailed(result)
        return result

    async def _accept(
        self, request: ResearchRequest | Mapping[str, Any], by: Mapping[str, Any]
    ) -> tuple[ResearchRequest, datetime]:
        raw, given = request, dict(by)
        if isinstance(request, ResearchRequest):
            raw, given = request.model_dump(include=ASKED), request.model_dump(exclude=ASKED)
        body = checked(ResearchBody, raw)
        symbol = Symbol.parse(body.symbol)
        as_of = self._moment(body.as_of, symbol)
        options = body.options.by_expert()
        _refuse_later(options.get("technical_analyst", {}).get("analysis_date"), symbol.local_date(as_of))
        if self._directory is not None:
            await self._directory.company(symbol, as_of=as_of)
        asked = body.model_dump(exclude={"symbol", "options", "as_of"})
        accepted = ResearchRequest(symbol=symbol.text, options=options, as_of=as_of, **asked, **given)
        return accepted, as_of

    def _moment(self, asked: date | datetime | None, symbol: Symbol) -> datetime:
        """The frozen clock of the session. A day means all that was known when it ended on the exchange."""
        now = self._clock.now()
        today = symbol.local_date(now)
        if asked is None or asked == today:
            return now
        if asked > now if isinstance(asked, datetime) else asked > today:
            raise refused("in_future", "as_of", asked.isoformat())
        moment = asked if isinstance(asked, datetime) else symbol.end_of(asked)
        return moment.astimezone(UTC)


def _refuse_later(analysis_date: str | None, today: date) -> None:
    if analysis_date is not None and date.fromisoformat(analysis_date) > today:
        raise refused("after_as_of", "options.technical_analyst.analysis_date", analysis_date)


def usage(tally: Tally, currency: str) -> ModelUsage:
    cost = None if tally.unpriced else tally.cost
    return ModelUsage(requests=tally.requests, tokens=tally.tokens, cost=cost, currency=currency)


def notices(symbol: str, locale: Locale) -> list[str]:
    """What a reader must know whatever the result says."""
    about = [SAY("synthetic")] if Symbol.parse(symbol).synthetic else []
    return [message.in_locale(locale) for message in (*about, SAY("not_advice"))]

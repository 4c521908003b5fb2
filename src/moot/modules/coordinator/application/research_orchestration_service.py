"""The one way to ask for research: check what is asked, and have it run, now or in the background."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, NamedTuple
from uuid import UUID

from moot.modules.coordinator.application.dtos.research_dtos import (
    ResearchBody,
    ResearchRequest,
    ResearchResult,
)
from moot.modules.coordinator.application.research_run import Watch
from moot.modules.coordinator.application.retry import past_session, request_again
from moot.modules.coordinator.application.session_runs import SessionRuns
from moot.modules.coordinator.domain.model.session import ResearchSession
from moot.modules.coordinator.domain.ports.permission import SymbolDirectory
from moot.modules.coordinator.domain.ports.research_orchestration import IResearchOrchestrationPort
from moot.modules.coordinator.domain.ports.research_session_repository import (
    IdempotencyKey,
    IResearchSessionRepository,
)
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.clock import Clock, SystemClock
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.validation import checked, refused
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

ASKED = set(ResearchBody.model_fields)
LONGEST_KEY = 255


class Accepted(NamedTuple):
    """A question that can be asked, as of which moment; `digest` is the same for the same question."""

    request: ResearchRequest
    as_of: datetime
    digest: str


class ResearchOrchestrationService:
    """`runs` is shared by all services of a desk; without one this service has its own."""

    def __init__(
        self,
        orchestrator: IResearchOrchestrationPort,
        *,
        directory: SymbolDirectory | None = None,
        repository: IResearchSessionRepository | None = None,
        clock: Clock | None = None,
        currency: str = "",
        runs: SessionRuns | None = None,
    ) -> None:
        self._directory, self._repository = directory, repository
        self._clock = clock or SystemClock()
        self._runs = runs or SessionRuns(
            orchestrator, repository=repository, clock=self._clock, currency=currency
        )

    async def execute(
        self,
        request: ResearchRequest | Mapping[str, Any],
        *,
        trigger_source: str = "api",
        workspace: str = DEFAULT_WORKSPACE,
        idempotency_key: str | None = None,
        requested_by: str | None = None,
        watch: Watch | None = None,
    ) -> ResearchResult:
        """Run `request`: what a client of `workspace` wrote, through `trigger_source`, or a whole `ResearchRequest`.

        Raises `InvalidInput` before anything starts, `AllExpertsFailed` when no expert had a result. `watch` is
        called with every `NodeEvent` of the run. The same key and question give the same session.
        """
        by = {"trigger_source": trigger_source, "workspace": workspace, "requested_by": requested_by}
        asked = await self._accept(request, by)
        key = _key(idempotency_key, asked.digest)
        return await self._runs.answer(asked.request, asked.as_of, key=key, watch=watch)

    async def start(
        self,
        request: ResearchRequest | Mapping[str, Any],
        *,
        trigger_source: str = "api",
        workspace: str = DEFAULT_WORKSPACE,
        idempotency_key: str | None = None,
        requested_by: str | None = None,
    ) -> ResearchSession:
        """Have `request` run in the background; the session is stored when this returns."""
        by = {"trigger_source": trigger_source, "workspace": workspace, "requested_by": requested_by}
        asked = await self._accept(request, by)
        return await self._runs.start(asked.request, asked.as_of, key=_key(idempotency_key, asked.digest))

    async def retry(
        self,
        session_id: UUID,
        *,
        skip_debate: bool = False,
        trigger_source: str = "api",
        workspace: str = DEFAULT_WORKSPACE,
        idempotency_key: str | None = None,
        requested_by: str | None = None,
        watch: Watch | None = None,
    ) -> ResearchResult:
        """Run again what failed in a session of `workspace`; the answer is that of a new session.

        Raises `SessionNotFound`, `SessionRunning` or `SessionNotRetryable` before anything starts,
        `AllExpertsFailed` when there is still no result.
        """
        by = {"trigger_source": trigger_source, "requested_by": requested_by}
        again = await self._again(session_id, workspace, by, skip_debate=skip_debate)
        key = _key(idempotency_key, again.digest)
        return await self._runs.answer(again.request, again.as_of, key=key, watch=watch)

    async def start_retry(
        self,
        session_id: UUID,
        *,
        skip_debate: bool = False,
        trigger_source: str = "api",
        workspace: str = DEFAULT_WORKSPACE,
        idempotency_key: str | None = None,
        requested_by: str | None = None,
    ) -> ResearchSession:
        """The same in the background."""
        by = {"trigger_source": trigger_source, "requested_by": requested_by}
        again = await self._again(session_id, workspace, by, skip_debate=skip_debate)
        return await self._runs.start(again.request, again.as_of, key=_key(idempotency_key, again.digest))

    async def _again(
        self, session_id: UUID, workspace: str, by: Mapping[str, Any], *, skip_debate: bool
    ) -> Accepted:
        past = await past_session(self._repository, session_id, workspace)
        request = request_again(past, skip_debate=skip_debate, trigger_source=by["trigger_source"])
        request = request.model_copy(update={"requested_by": by["requested_by"]})
        return Accepted(request, past.session.as_of, _digest(f"retry {session_id} {skip_debate}"))

    async def _accept(self, request: ResearchRequest | Mapping[str, Any], by: Mapping[str, Any]) -> Accepted:
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
        return Accepted(accepted, as_of, _digest(body.model_dump_json()))

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


def _key(text: str | None, digest: str) -> IdempotencyKey | None:
    if text is None:
        return None
    if not 0 < len(text) <= LONGEST_KEY or not (text.isascii() and text.isprintable() and text.strip()):
        raise InvalidInput(SAY("key_malformed"), field="Idempotency-Key")
    return IdempotencyKey(text, digest)


def _digest(question: str) -> str:
    return hashlib.sha256(question.encode()).hexdigest()

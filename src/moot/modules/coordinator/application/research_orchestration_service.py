"""The one way to ask for research: check what is asked, and have it run, now or in the background."""

import hashlib
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, TypedDict, Unpack
from uuid import UUID

import structlog

from moot.modules.coordinator.application.dtos.research_dtos import ResearchBody
from moot.modules.coordinator.application.results import remember, request_again
from moot.modules.coordinator.application.run import Watch
from moot.modules.coordinator.application.sessions import Sessions
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest, ResearchResult
from moot.modules.coordinator.domain.model.session import WHAT_IF, IdempotencyKey, ResearchSession
from moot.modules.coordinator.domain.ports.research_orchestration import IResearchOrchestrationPort
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.claims import PastVerdict
from moot.shared.domain.clock import Clock, SystemClock, freeze
from moot.shared.domain.errors import AppError, InvalidInput
from moot.shared.domain.facts import SymbolDirectory
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.validation import refuse_field, validate
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

logger = structlog.get_logger(__name__)

ASKED = set(ResearchBody.model_fields)
LONGEST_KEY = 255
Accepted = tuple[ResearchRequest, IdempotencyKey | None]
"""A question as it can be run, and the key that was given to it."""


class By(TypedDict, total=False):
    """Who asks, and how. The same `idempotency_key` and question give the same session."""

    trigger_source: str
    workspace: str
    requested_by: str | None
    idempotency_key: str | None
    batch_id: UUID | None
    batch_max_cost: float | None


class ResearchOrchestrationService:
    """`sessions` is shared by all services of a desk; without one this service has its own."""

    def __init__(
        self,
        orchestrator: IResearchOrchestrationPort,
        *,
        directory: SymbolDirectory | None = None,
        repository: IResearchSessionRepository | None = None,
        clock: Clock | None = None,
        sessions: Sessions | None = None,
    ) -> None:
        self._directory, self._repository = directory, repository or IResearchSessionRepository()
        self._clock = clock or SystemClock()
        self._sessions = sessions or Sessions(orchestrator, repository=repository, clock=self._clock)

    async def execute(
        self, request: ResearchRequest | Mapping[str, Any], *, watch: Watch | None = None, **by: Unpack[By]
    ) -> ResearchResult:
        """Run `request`: what a client wrote, or a whole `ResearchRequest`. `watch` hears all that the session tells.

        Raises `InvalidInput` before anything starts, `AllExpertsFailed` when no expert had a result.
        """
        return await self._sessions.answer(*await self._accept(request, by), watch=watch)

    async def start(self, request: ResearchRequest | Mapping[str, Any], **by: Unpack[By]) -> ResearchSession:
        """Have `request` run in the background; the session is stored when this returns."""
        return await self._sessions.start(*await self._accept(request, by))

    async def retry(
        self,
        session_id: UUID,
        *,
        skip_debate: bool | None = None,
        watch: Watch | None = None,
        **by: Unpack[By],
    ) -> ResearchResult:
        """Run again what failed in a session of `workspace`; the answer is that of a new session, which skips the
        debate if that one did, unless told.

        Raises `SessionNotFound`, `SessionRunning` or `SessionNotRetryable` before anything starts,
        `AllExpertsFailed` when there is still no result.
        """
        return await self._sessions.answer(*await self._again(session_id, by, skip_debate), watch=watch)

    async def start_retry(
        self, session_id: UUID, *, skip_debate: bool | None = None, **by: Unpack[By]
    ) -> ResearchSession:
        return await self._sessions.start(*await self._again(session_id, by, skip_debate))

    async def _again(self, session_id: UUID, by: By, skip_debate: bool | None) -> Accepted:
        past = await self._repository.past_session(session_id, by.get("workspace", DEFAULT_WORKSPACE))
        who = _who(by) | ({"trigger_source": WHAT_IF} if past.session.contest else {})
        request = request_again(past, skip_debate=skip_debate).model_copy(update=who)
        return request, _key(by, f"retry {session_id} {skip_debate}")

    async def _accept(self, request: ResearchRequest | Mapping[str, Any], by: By) -> Accepted:
        raw: Any = request
        given = _who(by) | {"workspace_id": by.get("workspace", DEFAULT_WORKSPACE)}
        given |= {name: by.get(name) for name in ("batch_id", "batch_max_cost")}
        if isinstance(request, ResearchRequest):
            raw, given = request.model_dump(include=ASKED), request.model_dump(exclude=ASKED)
        body = validate(ResearchBody, raw)
        directory = self._directory
        symbol = Symbol.parse(body.symbol) if directory is None else await directory.symbol(body.symbol)
        now = self._clock.now()
        as_of = freeze(body.as_of, now, symbol.local_date(now), symbol.end_of)
        analysed = body.options.get("technical_analyst", {}).get("analysis_date")
        if analysed is not None and date.fromisoformat(analysed) > symbol.local_date(as_of):
            raise refuse_field("after_as_of", "options.technical_analyst.analysis_date", analysed)
        if directory is not None:
            await directory.company(symbol, as_of=as_of)
        meant = dict(body) | {"symbol": symbol.text, "as_of": as_of}
        request = ResearchRequest(**meant, **given)
        if not request.skip_debate and request.previous is None:
            request = request.model_copy(update={"previous": await self._look_back(request, as_of)})
        return request, _key(by, body.model_dump_json())

    async def _look_back(self, request: ResearchRequest, as_of: datetime) -> PastVerdict | None:
        """The last verdict on the symbol; research goes on without where that is not to be had."""
        try:
            last = await self._repository.last_judged(request.workspace_id, request.symbol, as_of)
        except AppError as e:
            logger.warning("no look at the last verdict", symbol=request.symbol, error=str(e))
            return None
        return remember(last, request.locale) if last else None


def _who(by: By) -> dict[str, Any]:
    return {"trigger_source": by.get("trigger_source", "api"), "requested_by": by.get("requested_by")}


def _key(by: By, question: str) -> IdempotencyKey | None:
    text = by.get("idempotency_key")
    if text is None:
        return None
    if not 0 < len(text) <= LONGEST_KEY or not (text.isascii() and text.isprintable() and text.strip()):
        raise InvalidInput(SAY("key_malformed"), field="Idempotency-Key")
    return IdempotencyKey(text, hashlib.sha256(question.encode()).hexdigest())

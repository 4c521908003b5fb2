"""Puts a decision before a person, takes their answer, and lets whoever waits for it go on."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import structlog

from moot.modules.governance.application.decision_log import names_of
from moot.modules.governance.domain.decisions import (
    DecisionRecord,
    DecisionRequest,
    ValidationResult,
    digest_json,
    plain,
)
from moot.modules.governance.domain.escalations import (
    Escalation,
    EscalationPage,
    EscalationQueue,
    Question,
    Wanted,
)
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import Conflict, Forbidden, InvalidInput, NotFound

logger = structlog.get_logger(__name__)

__all__ = ["Escalation", "EscalationPage", "EscalationService", "Wanted"]

Validate = Callable[[DecisionRequest, str], Awaitable[ValidationResult]]
"""What the rules of a workspace make of a decision about which a person was asked already."""
Notify = Callable[[Escalation], Awaitable[None]]
A_DAY = timedelta(hours=24)
LONGEST_NAME = 100


class EscalationClosed(Conflict, code="ESCALATION_CLOSED"):
    """Somebody else was quicker, or nobody was quick enough."""

    def __init__(self, e: Escalation) -> None:
        said = SAY("escalations.expired", id=e.id, at=e.expires_at.isoformat())
        if e.status != "expired":
            at = e.decided_at and e.decided_at.isoformat()
            said = SAY("escalations.decided", id=e.id, status=e.status, by=e.decided_by, at=at)
        super().__init__(said, escalation_id=str(e.id), status=e.status)


class EscalationService:
    """`notify` is told of every answer, and of those that will not come any more."""

    def __init__(
        self, queue: EscalationQueue, clock: Clock, validate: Validate, notify: Notify | None
    ) -> None:
        self._queue, self._clock = queue, clock
        self._validate, self._notify = validate, notify

    async def open(self, request: DecisionRequest, record: DecisionRecord) -> Escalation | None:
        """Ask for a person. Whoever asks again what is still waiting is given that. None: nobody can be asked here.

        `record` is the committed row of the decision, which must be on record.
        """
        if not self._queue.lasting:
            return None
        question = _question(request, record.session_id, record.workspace_id)
        asked = await self.find_standing(request, session_id=record.session_id, workspace=record.workspace_id)
        if asked is not None and asked.status == "pending":
            return asked
        now, enforced = self._clock.now(), [v for v in record.result.violations if v.mode == "enforce"]
        escalation = Escalation(
            id=uuid4(),
            **question,
            decision_row_id=record.id,
            payload=record.payload,
            context=record.context,
            why=[v.message for v in enforced if v.escalates] or [v.message for v in enforced],
            status="pending",
            requested_at=now,
            expires_at=now + A_DAY,
        )
        await self._queue.add(escalation)
        return escalation

    async def get(self, escalation_id: UUID, workspace: str) -> Escalation:
        found = await self._queue.newest({"id": escalation_id, "workspace_id": workspace})
        if found is None:
            said = SAY("escalations.not_found", id=escalation_id)
            raise NotFound(said, code="ESCALATION_NOT_FOUND", escalation_id=str(escalation_id))
        return found.at(self._clock.now())

    async def list_waiting(
        self, workspace: str, wanted: Wanted = "pending", *, page: int = 1, page_size: int = 20
    ) -> EscalationPage:
        """Those that wait, unless others are `wanted`."""
        return await self._queue.page(workspace, self._clock.now(), wanted, page=page, page_size=page_size)

    async def find_waiting(self, session_id: UUID, workspace: str) -> Escalation | None:
        """What a session waits for."""
        pending = {"workspace_id": workspace, "session_id": session_id, "status": "pending"}
        return await self._queue.newest(pending)

    async def find_standing(
        self, request: DecisionRequest, *, session_id: UUID | None, workspace: str
    ) -> Escalation | None:
        """What became of this very question, when it was last asked; None: it never was."""
        found = await self._queue.newest(_question(request, session_id, workspace))
        return found and found.at(self._clock.now())

    async def approve(self, escalation_id: UUID, workspace: str, *, by: str, reason: str) -> Escalation:
        pending = await self._require_pending(escalation_id, workspace, by, reason)
        return await self._settle(pending, by, reason, status="approved")

    async def edit(
        self, escalation_id: UUID, workspace: str, *, by: str, payload: Mapping[str, Any], reason: str
    ) -> Escalation:
        """Approve something else: what the rules make of it when nobody needs to be asked about it any more."""
        pending = await self._require_pending(escalation_id, workspace, by, reason)
        request = DecisionRequest(
            str(pending.id), pending.decision_type, payload, pending.context, by, self._clock.now()
        )
        result = await self._validate(request, workspace)
        if not result.may_proceed:
            against = [v for v in result.violations if v.mode == "enforce" and not v.escalates]
            told = [{"rule": v.rule, "name": v.rule_name, "message": v.message} for v in against]
            said = SAY("escalations.edit_rejected", why=[v.message for v in against])
            raise Forbidden(said, code="EDIT_REJECTED", violations=told)
        payload = plain(result.payload)
        return await self._settle(pending, by, reason, status="approved", approved_payload=payload)

    async def reject(self, escalation_id: UUID, workspace: str, *, by: str, reason: str) -> Escalation:
        pending = await self._require_pending(escalation_id, workspace, by, reason)
        return await self._settle(pending, by, reason, status="rejected")

    async def use(
        self, request: DecisionRequest, *, session_id: UUID | None, workspace: str
    ) -> Escalation | None:
        """The approval that this decision goes on with; None: nobody has, or it was used for another decision."""
        question = _question(request, session_id, workspace)
        return await self._queue.use(question, names_of(request)["decision_id"], self._clock.now())

    async def sweep(self) -> list[Escalation]:
        """Close what has run out of time, and tell whoever waits for it."""
        expired = await self._queue.expire(self._clock.now())
        for escalation in expired:
            await self._tell(escalation)
        return expired

    async def _require_pending(self, escalation_id: UUID, workspace: str, by: str, reason: str) -> Escalation:
        escalation = await self.get(escalation_id, workspace)
        if not by.strip() or not reason.strip():
            raise InvalidInput(SAY("escalations.who_and_why"))
        asker, person = (f"{name.strip()}/".casefold() for name in (escalation.requester, by))
        if asker.startswith(person):  # what an agent of theirs asked for, they asked for
            raise Forbidden(SAY("escalations.own", by=by), code="OWN_REQUEST")
        if escalation.status != "pending":
            raise EscalationClosed(escalation)
        return escalation

    async def _settle(self, pending: Escalation, by: str, reason: str, **ruling: Any) -> Escalation:
        """An approval lasts as long from now on as the question did."""
        now = self._clock.now()
        until = now + (pending.expires_at - pending.requested_at)
        ruling |= {"decided_by": by.strip()[:LONGEST_NAME], "decided_at": now, "reason": reason.strip()}
        settled = await self._queue.settle(pending, {**ruling, "expires_at": until})
        if settled is None:
            raise EscalationClosed(await self.get(pending.id, pending.workspace_id))
        await self._tell(settled)
        return settled

    async def _tell(self, escalation: Escalation) -> None:
        try:
            if self._notify is not None:
                await self._notify(escalation)
        except Exception:  # bulkhead: what was decided stands, whoever could not be told
            logger.warning("escalation not announced", escalation_id=str(escalation.id), exc_info=True)


def _question(request: DecisionRequest, session_id: UUID | None, workspace: str) -> Question:
    names = names_of(request)
    del names["decision_id"]
    digest = digest_json(request.payload)
    return {"workspace_id": workspace, "session_id": session_id, "payload_digest": digest, **names}

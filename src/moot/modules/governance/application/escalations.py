"""Puts a decision before a person, takes their answer, and lets whoever waits for it go on."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID, uuid4

import structlog

from moot.modules.governance.application.decision_log import names_of
from moot.modules.governance.domain.decision_record import DecisionRecord, digest_json, plain
from moot.modules.governance.domain.decisions import DecisionRequest, ValidationResult
from moot.modules.governance.domain.escalations import (
    EditRejected,
    Escalation,
    EscalationClosed,
    EscalationNotFound,
    EscalationPage,
    EscalationQueue,
    NoReason,
    OwnRequest,
    Question,
    Ruling,
)
from moot.shared.domain.clock import Clock

logger = structlog.get_logger(__name__)

__all__ = ["Escalation", "EscalationPage", "EscalationService", "Notify", "Validate"]

Validate = Callable[[DecisionRequest, str], Awaitable[ValidationResult]]
"""What the rules of a workspace make of a decision about which a person was asked already."""
Notify = Callable[[Escalation], Awaitable[None]]
A_DAY = timedelta(hours=24)
LONGEST_NAME = 100


class EscalationService:
    """`notify` is told of every answer, and of those that will not come any more."""

    def __init__(self, queue: EscalationQueue, clock: Clock, validate: Validate, notify: Notify) -> None:
        self._queue, self._clock = queue, clock
        self._validate, self._notify = validate, notify

    async def open(
        self, request: DecisionRequest, record: DecisionRecord, *, time_limit: timedelta = A_DAY
    ) -> Escalation:
        """Ask for a person. Whoever asks again what is still waiting is given that.

        `record` is the committed row of the decision, which must be on record.
        """
        question = _question(request, record.session_id, record.workspace_id)
        asked = await self.standing(request, session_id=record.session_id, workspace=record.workspace_id)
        if asked is not None and asked.status == "pending":
            return asked
        now = self._clock.now()
        escalation = Escalation(
            id=uuid4(),
            **question._asdict(),
            decision_row_id=record.id,
            payload=record.payload,
            context=record.context,
            why=_why(record),
            status="pending",
            requested_at=now,
            expires_at=now + time_limit,
        )
        await self._queue.add(escalation)
        return escalation

    async def get(self, escalation_id: UUID, workspace: str) -> Escalation:
        found = await self._queue.get(escalation_id, workspace)
        if found is None:
            raise EscalationNotFound(escalation_id)
        return found.at(self._clock.now())

    async def waiting(self, workspace: str, *, page: int = 1, page_size: int = 20) -> EscalationPage:
        return await self._queue.waiting(workspace, self._clock.now(), page=page, page_size=page_size)

    async def standing(
        self, request: DecisionRequest, *, session_id: UUID | None, workspace: str
    ) -> Escalation | None:
        """What became of this very question, when it was last asked; None: it never was."""
        found = await self._queue.newest(_question(request, session_id, workspace))
        return found and found.at(self._clock.now())

    async def approve(self, escalation_id: UUID, workspace: str, *, by: str, reason: str) -> Escalation:
        return await self._settle(await self._pending(escalation_id, workspace, by, reason), by, reason)

    async def edit(
        self, escalation_id: UUID, workspace: str, *, by: str, payload: Mapping[str, Any], reason: str
    ) -> Escalation:
        """Approve something else: what the rules make of it when nobody needs to be asked about it any more."""
        pending = await self._pending(escalation_id, workspace, by, reason)
        request = DecisionRequest(
            str(pending.id), pending.decision_type, payload, pending.context, by, self._clock.now()
        )
        result = await self._validate(request, workspace)
        if not result.may_proceed:
            raise EditRejected(v for v in result.violations if v.mode == "enforce" and not v.escalates)
        return await self._settle(pending, by, reason, payload=plain(result.payload))

    async def reject(self, escalation_id: UUID, workspace: str, *, by: str, reason: str) -> Escalation:
        pending = await self._pending(escalation_id, workspace, by, reason)
        return await self._settle(pending, by, reason, status="rejected")

    async def use(
        self, request: DecisionRequest, *, session_id: UUID | None, workspace: str
    ) -> Mapping[str, Any] | None:
        """The payload a person approved for this one; None: nobody has, or it was used for another decision."""
        question = _question(request, session_id, workspace)
        taken = await self._queue.use(question, names_of(request)["decision_id"], self._clock.now())
        if taken is None:
            return None
        return request.payload if taken.approved_payload is None else taken.approved_payload

    async def sweep(self) -> list[Escalation]:
        """Close what has run out of time, and tell whoever waits for it."""
        expired = await self._queue.expire(self._clock.now())
        for escalation in expired:
            await self._tell(escalation)
        return expired

    async def _pending(self, escalation_id: UUID, workspace: str, by: str, reason: str) -> Escalation:
        escalation = await self.get(escalation_id, workspace)
        if not by.strip() or not reason.strip():
            raise NoReason
        if _same_person(by, escalation.requester):
            raise OwnRequest(by)
        if escalation.status != "pending":
            raise EscalationClosed(escalation)
        return escalation

    async def _settle(
        self,
        pending: Escalation,
        by: str,
        reason: str,
        *,
        status: Literal["approved", "rejected"] = "approved",
        payload: dict[str, Any] | None = None,
    ) -> Escalation:
        """An approval lasts as long from now on as the question did."""
        now = self._clock.now()
        until = now + (pending.expires_at - pending.requested_at)
        ruling = Ruling(status, by.strip()[:LONGEST_NAME], now, reason.strip(), until, payload)
        settled = await self._queue.settle(pending.id, pending.workspace_id, ruling)
        if settled is None:
            raise EscalationClosed(await self.get(pending.id, pending.workspace_id))
        await self._tell(settled)
        return settled

    async def _tell(self, escalation: Escalation) -> None:
        try:
            await self._notify(escalation)
        except Exception:  # bulkhead: what was decided stands, whoever could not be told
            logger.warning("escalation not announced", escalation_id=str(escalation.id), exc_info=True)


def _question(request: DecisionRequest, session_id: UUID | None, workspace: str) -> Question:
    names = names_of(request)
    digest = digest_json(request.payload)
    return Question(workspace, session_id, names["decision_type"], names["requester"], digest)


def _why(record: DecisionRecord) -> list[str]:
    enforced = [v for v in record.result.violations if v.mode == "enforce"]
    return [v.message for v in enforced if v.escalates] or [v.message for v in enforced]


def _same_person(one: str, other: str) -> bool:
    return one.strip().casefold() == other.strip().casefold()

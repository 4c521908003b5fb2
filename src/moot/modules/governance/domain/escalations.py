"""Decisions that wait for a person, what became of them, and the queue they wait in."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol
from uuid import UUID

from pydantic import AwareDatetime, BaseModel

from moot.modules.governance.domain.decisions import RuleViolation
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.errors import Conflict, Forbidden, InvalidInput, NotFound

EscalationStatus = Literal["pending", "approved", "rejected", "expired", "used"]
OPEN: tuple[EscalationStatus, ...] = ("pending", "approved")
"""What can still run out of time: the question, and an approval that nobody has used."""


class Escalation(BaseModel, frozen=True):
    """What is approved is bound to `payload_digest`, that of the payload as it was proposed, and used once.

    `approved_payload` is None unless a person changed it. `used_for` is the decision that went on with it.
    """

    id: UUID
    workspace_id: str
    session_id: UUID | None
    decision_row_id: UUID
    decision_type: str
    payload: dict[str, Any]
    context: dict[str, Any]
    payload_digest: str
    why: list[str]
    status: EscalationStatus
    requester: str
    requested_at: AwareDatetime
    expires_at: AwareDatetime
    decided_by: str | None = None
    decided_at: AwareDatetime | None = None
    reason: str | None = None
    approved_payload: dict[str, Any] | None = None
    used_at: AwareDatetime | None = None
    used_for: str | None = None

    def at(self, now: datetime) -> "Escalation":
        """As it stands then: what ran out of time is expired, whether or not somebody has written that down."""
        late = self.status in OPEN and self.expires_at <= now
        return self.model_copy(update={"status": "expired"}) if late else self


class EscalationPage(BaseModel):
    total: int
    page: int
    page_size: int
    items: list[Escalation]


class Question(NamedTuple):
    """What an approval is for: this payload, of this requester, in this session."""

    workspace_id: str
    session_id: UUID | None
    decision_type: str
    requester: str
    payload_digest: str


class Ruling(NamedTuple):
    """What a person decided. An approval that is not used until `expires_at` is worth nothing any more."""

    status: Literal["approved", "rejected"]
    decided_by: str
    decided_at: datetime
    reason: str
    expires_at: datetime
    approved_payload: dict[str, Any] | None = None


class EscalationQueue(Protocol):
    """Outlives the process. What changes a row does so in one step: of several who try, one succeeds."""

    async def add(self, escalation: Escalation) -> None:
        """It is put together from the record of its decision, which holds no secrets."""

    async def get(self, escalation_id: UUID, workspace_id: str) -> Escalation | None: ...

    async def waiting(self, workspace_id: str, now: datetime, *, page: int, page_size: int) -> EscalationPage:
        """Pending ones that have not expired, the oldest first."""

    async def newest(self, question: Question) -> Escalation | None:
        """The last time this was asked."""

    async def settle(self, escalation_id: UUID, workspace_id: str, ruling: Ruling) -> Escalation | None:
        """None: it was not pending any more, or has expired."""

    async def use(self, question: Question, decision_id: str, now: datetime) -> Escalation | None:
        """Take an approval, the oldest first; the one `decision_id` has taken already is its own."""

    async def expire(self, now: datetime) -> list[Escalation]:
        """Write down which have run out of time, and tell which those are."""


class EscalationNotFound(NotFound):
    code = "ESCALATION_NOT_FOUND"

    def __init__(self, escalation_id: UUID) -> None:
        super().__init__(SAY("escalations.not_found", id=escalation_id), escalation_id=str(escalation_id))


class EscalationClosed(Conflict):
    """Somebody else was quicker, or nobody was quick enough."""

    code = "ESCALATION_CLOSED"

    def __init__(self, escalation: Escalation) -> None:
        e = escalation
        if e.status == "expired":
            message = SAY("escalations.expired", id=e.id, at=e.expires_at.isoformat())
        else:
            decided_at = e.decided_at and e.decided_at.isoformat()
            message = SAY("escalations.decided", id=e.id, status=e.status, by=e.decided_by, at=decided_at)
        super().__init__(message, escalation_id=str(e.id), status=e.status)


class OwnRequest(Forbidden):
    code = "OWN_REQUEST"

    def __init__(self, by: str) -> None:
        super().__init__(SAY("escalations.own", by=by))


class NoReason(InvalidInput):
    def __init__(self) -> None:
        super().__init__(SAY("escalations.who_and_why"))


class EditRejected(Forbidden):
    """What a person wants instead breaks rules too, and those no person can set aside here."""

    code = "EDIT_REJECTED"

    def __init__(self, violations: Iterable[RuleViolation]) -> None:
        told = [{"rule": v.rule, "name": v.rule_name, "message": v.message} for v in violations]
        why = [violation["message"] for violation in told]
        super().__init__(SAY("escalations.edit_rejected", why=why), violations=told)

"""Decisions that wait for a person, what became of them, and the queue they wait in."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel

from moot.modules.governance.domain.decisions import NothingKept

EscalationStatus = Literal["pending", "approved", "rejected", "expired", "used"]
Wanted = Literal[EscalationStatus, "decided", "all"]
"""Which to list: in one state, those that do not wait any more, or all."""
OPEN: tuple[EscalationStatus, ...] = ("pending", "approved")
"""What can still run out of time: the question, and an approval that nobody has used."""
Question = Mapping[str, Any]
"""Fields of an escalation. What an approval is for: this payload, of this requester, in this session."""


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


class EscalationQueue:
    """What changes a row does so in one step: of several who try, one succeeds.

    This one is for a desk that keeps nothing: nobody is asked there, as no answer could be waited for.
    """

    lasting = False
    """Whether what is asked outlives the process."""

    async def add(self, escalation: Escalation) -> None:
        """It is put together from the record of its decision, which holds no secrets."""
        raise NothingKept

    async def page(
        self, workspace_id: str, now: datetime, wanted: Wanted, *, page: int, page_size: int
    ) -> EscalationPage:
        """As they stand then: what waits the oldest first, all else by when it was decided, the newest first."""
        raise NothingKept

    async def newest(self, question: Question) -> Escalation | None:
        """The last time this was asked."""
        return None

    async def settle(self, pending: Escalation, ruling: Mapping[str, Any]) -> Escalation | None:
        """With the fields that tell what a person decided. None: it was not pending any more, or has expired."""
        return None

    async def use(self, question: Question, decision_id: str, now: datetime) -> Escalation | None:
        """Take an approval, the oldest first; the one `decision_id` has taken already is its own."""
        return None

    async def expire(self, now: datetime) -> list[Escalation]:
        """Write down which have run out of time, and tell which those are."""
        return []

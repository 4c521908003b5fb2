"""A decision as it is written down: what was proposed, what was known then, and what the rules made of it."""

import hashlib
import json
import math
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any, Literal, Protocol
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, Field

from moot.modules.governance.domain.decisions import (
    Change,
    DecisionRequest,
    RuleViolation,
    ValidationResult,
    ValidationStatus,
)
from moot.modules.governance.domain.rules import RuleAction

MOST_PER_PAGE = 200
LAST_PAGE = 1_000_000
COUNTED_TO = 5_000
"""A listing counts no further: whether there are 40,000 decisions or 41,000 takes longer to tell than to list."""

BY_A_PERSON = "person"
"""Who asks for a change, where no rule does."""

LARGEST_NUMBER = 2**63


class RecordedResult(BaseModel, frozen=True):
    """What a `ValidationResult` says beside its status and its request.

    `tools_digest` is of all tools the agent had; the record keeps the schema of the one that was called.
    """

    violations: tuple[RuleViolation, ...] = ()
    suggestions: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    modified_payload: dict[str, Any] | None = None
    approved_instead: dict[str, Any] | None = None
    terminates: bool = False
    tools_digest: str | None = None


class DecisionRecord(BaseModel, frozen=True):
    id: UUID
    workspace_id: str
    session_id: UUID | None
    decision_id: str
    decision_type: str
    requester: str
    status: ValidationStatus
    payload: dict[str, Any]
    context: dict[str, Any]
    result: RecordedResult
    ruleset_digest: str
    requested_at: AwareDatetime
    decided_at: AwareDatetime

    @property
    def edited(self) -> dict[str, Any] | None:
        """What a person wrote in place of the payload."""
        return next((change.value for change in self.result.changes if change.rule == BY_A_PERSON), None)

    @property
    def answer(self) -> Literal["approved", "refused"] | None:
        """What a person said to it, where one was asked: no answer in time is a refusal."""
        binding = [v for v in self.result.violations if _binds(v)]
        asked = self.edited is not None or any(violation.escalates for violation in binding)
        if asked and self.status in (ValidationStatus.APPROVED, ValidationStatus.MODIFIED):
            return "approved"
        only_asked = asked and all(violation.escalates or violation.corrected for violation in binding)
        return "refused" if only_asked and self.status is ValidationStatus.REJECTED else None

    @property
    def request(self) -> DecisionRequest:
        """The same question, to be decided again; of secrets it only knows that they were there."""
        return DecisionRequest(
            self.decision_id,
            self.decision_type,
            self.payload,
            self.context,
            requester=self.requester,
            timestamp=self.requested_at,
        )


def _binds(violation: RuleViolation) -> bool:
    return violation.mode == "enforce" and violation.action is not RuleAction.LOG_WARNING


class DecisionFilter(BaseModel, frozen=True):
    """Which decisions to list; all conditions must hold, newest first."""

    workspace_id: str
    session_id: UUID | None = None
    status: ValidationStatus | None = None
    decision_type: str | None = None
    requester: str | None = None
    decided_from: AwareDatetime | None = None
    decided_before: AwareDatetime | None = None
    page: int = Field(default=1, ge=1, le=LAST_PAGE)
    page_size: int = Field(default=20, ge=1, le=MOST_PER_PAGE)


class DecisionPage(BaseModel):
    """`total` counts the decisions of all pages, but no further than `COUNTED_TO`; then `total_is_more` says so."""

    total: int
    total_is_more: bool = False
    page: int
    page_size: int
    items: list[DecisionRecord]


class DecisionStatistics(BaseModel):
    """How many decisions there were, and how they ended; the sum of the four is the total."""

    total: int = 0
    approved: int = 0
    modified: int = 0
    rejected: int = 0
    escalated: int = 0


class Validator(Protocol):
    """Whoever decides, as those see it who have a decision made again."""

    def validate(self, request: DecisionRequest, *, waived: bool = False) -> ValidationResult:
        """`waived`: a person has approved it, so that nobody has to be asked once more."""


class DecisionLog(Protocol):
    """Append-only. Whoever wants to act on a decision has it recorded first."""

    async def record(
        self,
        request: DecisionRequest,
        result: ValidationResult,
        *,
        session_id: UUID | None,
        workspace: str,
    ) -> DecisionRecord:
        """Return when it is committed, in the session's chain if there is a session.

        Best effort: what cannot be written is counted as a gap of the session. A strict log raises `Unavailable`.
        """

    async def of_session(self, session_id: UUID, workspace: str) -> list[DecisionRecord]:
        """All decisions of a session, in the order in which they were made."""

    async def page(self, wanted: DecisionFilter) -> DecisionPage: ...

    async def statistics(self, workspace: str) -> DecisionStatistics: ...

    def history(self, workspace: str, since: datetime) -> AsyncIterator[DecisionRecord]:
        """Every decision made since that moment, oldest first, a page at a time."""


def plain(value: Any) -> Any:
    """As JSON can say it: numbers it has no words for, and whatever else it does not know, become text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return _plain_number(value)
    if isinstance(value, dict):
        return {str(name): plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [plain(member) for member in value]
    return _as_known(value)


def _as_known(value: Any) -> Any:
    if isinstance(value, Mapping):
        return plain(dict(value))
    if isinstance(value, tuple):
        return plain(value._asdict() if hasattr(value, "_asdict") else list(value))
    if isinstance(value, set | frozenset):
        return plain(sorted(value, key=str))
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _plain_number(value: float) -> float | str:
    if isinstance(value, int):
        return value if abs(value) < LARGEST_NUMBER else hex(value)
    return value if math.isfinite(value) else str(value)


def digest_json(value: Any) -> str:
    """Two values have the same if, and only if, they say the same in JSON; 1 and 1.0 are one number there."""
    said = json.dumps(_as_one_number(plain(value)), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(said.encode()).hexdigest()


def _as_one_number(value: Any) -> Any:
    """Some databases give back 1 for 1.0."""
    if isinstance(value, dict):
        return {name: _as_one_number(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_as_one_number(member) for member in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value

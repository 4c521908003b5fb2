"""A decision somebody wants to act on, what the rules make of it, and how that is written down."""

import hashlib
import json
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import datetime, time
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, Field

from moot.modules.governance.domain.conditions import DECISION_TYPES
from moot.modules.governance.domain.rules import RuleAction, RuleCategory, RuleSource
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.clock import Instant, SystemClock, in_utc, read_moment
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.ids import LAST_PAGE, MOST_PER_PAGE
from moot.shared.domain.validation import Name, Strict, quote, refuse


class ValidationStatus(StrEnum):
    """A lattice: whatever one rule says, another can only make it worse."""

    APPROVED = "approved"
    MODIFIED = "modified"
    ESCALATED = "escalated"
    REJECTED = "rejected"

    @property
    def severity(self) -> int:
        return list(ValidationStatus).index(self)


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """`payload` is what an agent proposes and may say anything; `context` is what the framework knows: trusted."""

    decision_id: str
    decision_type: str
    payload: Mapping[str, Any]
    context: Mapping[str, Any] = field(default_factory=dict)
    requester: str = ""
    timestamp: datetime = field(default_factory=lambda: SystemClock().now())


@dataclass(frozen=True, slots=True)
class RuleViolation:
    """`because` is the part of the condition that held, `values` what it saw (secrets taken out)."""

    rule_id: str
    rule_name: str
    action: RuleAction
    message: str
    version: int = 1
    category: RuleCategory = RuleCategory.BEHAVIOR
    source: RuleSource = RuleSource.SYSTEM
    mode: Literal["enforce", "shadow"] = "enforce"
    because: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    suggestion: str | None = None
    error: str | None = None
    escalates: bool = False
    corrected: bool = False
    """The modified payload no longer breaks it."""

    @property
    def rule(self) -> str:
        return f"{self.rule_id}@{self.version}"


@dataclass(frozen=True, slots=True)
class Change:
    """One operation of a JSON Patch (RFC 6902), and the rule that asked for it."""

    op: Literal["add", "remove", "replace"]
    path: str
    rule: str
    value: Any = None
    was: Any = None


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """`approved_instead`: a payload that would pass, where the rules can tell one."""

    status: ValidationStatus
    original_request: DecisionRequest
    modified_payload: dict[str, Any] | None
    violations: tuple[RuleViolation, ...]
    suggestions: tuple[str, ...]
    timestamp: datetime
    changes: tuple[Change, ...] = ()
    approved_instead: dict[str, Any] | None = None
    terminates: bool = False
    ruleset: str = ""
    """The digest of the rules that decided."""
    notes: tuple[str, ...] = ()
    """What else there is to know: what nobody could look at, why corrections came to no end, a person's reason."""

    @property
    def may_proceed(self) -> bool:
        return self.status in (ValidationStatus.APPROVED, ValidationStatus.MODIFIED)

    @property
    def payload(self) -> Mapping[str, Any]:
        """What may be acted on, if anything."""
        return self.original_request.payload if self.modified_payload is None else self.modified_payload


BY_A_PERSON = "person"
"""Who asks for a change, where no rule does."""

LARGEST_NUMBER = 2**63


def _require_known(decision_type: str) -> str:
    if decision_type not in DECISION_TYPES:
        raise refuse("literal_error", got=quote(decision_type), allowed=list(DECISION_TYPES))
    return decision_type


KnownType = Annotated[str, AfterValidator(_require_known)]
To = Annotated[datetime, BeforeValidator(lambda value: in_utc(read_moment(value), time.max))]
"""A day is meant to its end."""


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
    notes: tuple[str, ...] = ()
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
        enforced = (v for v in self.result.violations if v.mode == "enforce")
        binding = [v for v in enforced if v.action is not RuleAction.LOG_WARNING]
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


class DecisionFilter(Strict, populate_by_name=True):
    """All conditions must hold."""

    status: ValidationStatus | None = None
    decision_type: Name | None = Field(default=None, alias="type")
    session_id: UUID | None = Field(default=None, alias="session")
    requester: Name | None = None
    decided_from: Instant | None = Field(
        default=None, alias="from", description="a day, or a moment with its zone"
    )
    decided_before: To | None = Field(default=None, alias="to", description="a day to its end, or a moment")
    page: int = Field(default=1, ge=1, le=LAST_PAGE)
    page_size: int = Field(default=20, ge=1, le=MOST_PER_PAGE)


class DecisionPage(BaseModel):
    """`total` counts no further than 5000; then `total_is_more`."""

    total: int
    total_is_more: bool
    page: int
    page_size: int
    items: Sequence[DecisionRecord]


class DecisionStatistics(BaseModel):
    """How many decisions there were, and how they ended; the sum of the four is the total."""

    total: int = 0
    approved: int = 0
    modified: int = 0
    rejected: int = 0
    escalated: int = 0


class DecisionLog:
    """Append-only. Whoever wants to act on a decision has it recorded first.

    This one is for a desk that keeps nothing: there is nothing to look back on.
    """

    lasting = False

    async def write(self, record: DecisionRecord) -> DecisionRecord:
        """Return it when it is committed, in the session's chain if there is a session.

        Best effort: what cannot be written is counted as a gap of the session. A strict log raises `Unavailable`.
        """
        return record

    async def of_session(self, session_id: UUID, workspace: str) -> list[DecisionRecord]:
        """All decisions of a session, in the order in which they were made."""
        return []

    async def page(self, workspace: str, wanted: DecisionFilter) -> DecisionPage:
        """Newest first."""
        raise NothingKept

    async def statistics(self, workspace: str) -> DecisionStatistics:
        return DecisionStatistics()

    def history(self, workspace: str, since: datetime) -> AsyncIterator[DecisionRecord]:
        """Every decision made since that moment, oldest first, a page at a time."""
        raise NothingKept


class NothingKept(Unavailable, code="PERSISTENCE_OFF"):
    """Decisions and rules are looked for where neither is stored."""

    def __init__(self) -> None:
        super().__init__(SAY("rest.persistence_off"))


SAID_AS_IT_IS = frozenset({type(None), str, bool})


def plain(value: Any) -> Any:
    """As JSON can say it: numbers it has no words for, and whatever else it does not know, become text."""
    kind = type(value)
    if kind in SAID_AS_IT_IS:  # as most values are
        return value
    if kind is dict:
        return {str(name): plain(member) for name, member in value.items()}
    said = value
    match value:
        case None | str() | bool():
            pass
        case int():
            said = value if abs(value) < LARGEST_NUMBER else hex(value)
        case float():
            said = value if math.isfinite(value) else str(value)
        case dict() | Mapping():
            said = {str(name): plain(member) for name, member in value.items()}
        case tuple() if hasattr(value, "_asdict"):
            said = plain(value._asdict())
        case list() | tuple():
            said = [plain(member) for member in value]
        case set() | frozenset():
            said = plain(sorted(value, key=str))
        case datetime():
            said = value.isoformat()
        case _:
            is_data = is_dataclass(value) and not isinstance(value, type)
            said = plain(asdict(value)) if is_data else str(value)
    return said


def digest_json(value: Any) -> str:
    """Two values have the same if, and only if, they say the same in JSON; 1 and 1.0 are one number there."""
    in_one_spelling = json.loads(json.dumps(plain(value)), parse_float=_read_number)
    said = json.dumps(in_one_spelling, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(said.encode()).hexdigest()


def _read_number(text: str) -> float:
    """Some databases give back 1 for 1.0."""
    number = float(text)
    return int(number) if number.is_integer() else number

"""What is asked; the session that answers it, one run of the desk on one symbol; what its nodes did and it told."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, Field, model_validator

from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.shared.domain.brief import Brief, Usage
from moot.shared.domain.claims import Action, Move, PastVerdict
from moot.shared.domain.ids import LAST_PAGE, MOST_PER_PAGE
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE
from moot.shared.infrastructure.frames import Table

OverallStatus = Literal["completed", "partial", "failed"]
VerdictStatus = Literal["judged", "abstained", "skipped", "failed"]
SessionStatus = Literal["queued", "running", "waiting", "completed", "partial", "failed", "cancelled"]
VerdictAction = Action
GOING_ON: tuple[SessionStatus, ...] = ("queued", "running")
"""Somebody runs them, or should."""
WHAT_IF = "contest"
"""What a session is started by that contests another: it never counts as a verdict on its symbol."""
UNFINISHED: tuple[SessionStatus, ...] = (*GOING_ON, "waiting")
NodeStatus = Literal["success", "failed", "skipped"]
Called = Literal["models", "others"]


class Subject(BaseModel, frozen=True):
    """Which share: the first thing that is said."""

    symbol: str = Field(examples=["900001.DEMO"])


class Question(Brief, Subject):
    """A brief on one share."""


class Asked(Question):
    """A question with who asked it, and what it follows from."""

    trigger_source: str = "api"
    requested_by: str | None = None
    workspace_id: str = DEFAULT_WORKSPACE
    parent_session_id: UUID | None = None
    retry_count: int = 0
    contest: list[Move] = Field(default_factory=list)
    """What is changed in the argument of the parent: then this is a what-if."""
    previous: PastVerdict | None = None
    """The last verdict on the symbol, of an earlier moment, when this was asked."""
    batch_id: UUID | None = None
    batch_max_cost: float | None = None
    """The most that all sessions of that batch may cost together."""

    def pick_asked(self) -> dict[str, Any]:
        """This much of it, for another model that has it too."""
        return {name: getattr(self, name) for name in Asked.model_fields}

    @property
    def node_types(self) -> list[str]:
        """Those that a run has to go through, in the order of the desk."""
        return [*self.experts, *([] if self.skip_debate else ["debate", "judge"])]


class ResearchSession(Asked, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True):
    """`status` says how the experts fared; how the verdict fared is `verdict_status` and `reason`.

    `audit_gaps` counts rows that could not be written: a session with gaps is complete for its reader, not for
    the record, and says so.
    """

    id: UUID
    experts: list[ExpertType] = Field(alias="selected_experts")
    status: SessionStatus
    as_of: AwareDatetime
    verdict_status: VerdictStatus | None = None
    verdict_action: VerdictAction | None = None
    reason: str | None = None
    audit_gaps: int = 0
    created_at: AwareDatetime
    completed_at: AwareDatetime | None = None
    duration_ms: int | None = None
    begun: int = Field(default=0, exclude=True, repr=False)
    """Processes that set to work on it and did not live to see a node end, nor closed; in a row."""

    @model_validator(mode="before")
    @classmethod
    def _of_row(cls, values: Any) -> Any:
        """A row keeps in `question` what was asked and has no column of its own."""
        if not isinstance(values, Mapping) or not values.get("question"):
            return values
        return {**values["question"], **values}

    @property
    def selected_experts(self) -> list[ExpertType]:
        """What rows and readers call them."""
        return self.experts

    @property
    def ended(self) -> bool:
        return self.status not in UNFINISHED


class NodeExecution(BaseModel, frozen=True):
    """One row per node that ran. `evidence` is what the node was given; `reused` results were not run again."""

    id: UUID
    session_id: UUID
    node_type: str
    status: NodeStatus
    result_data: dict[str, Any] | None = None
    narrative_report: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    attempts: int = 1
    reused: bool = False
    evidence: list[dict[str, Any]] = Field(default_factory=list)
    started_at: AwareDatetime
    completed_at: AwareDatetime | None = None
    duration_ms: int | None = None


class Past(NamedTuple):
    """A session that ended, and what its nodes left behind."""

    session: ResearchSession
    nodes: Sequence[NodeExecution]


class Judged(NamedTuple):
    """A session with a verdict: what was argued in it and what was ruled, as their nodes left it."""

    session_id: UUID
    as_of: AwareDatetime
    debate: Mapping[str, Any]
    verdict: Mapping[str, Any]


class SessionOutcome(Usage, Subject):
    """A session in a line: how far it is, which way it points, as its debate and its verdict told last, and what its
    model calls took. `failures` are the codes of the errors that its nodes ended with."""

    id: UUID
    batch_id: UUID
    status: SessionStatus
    direction: str | None = None
    verdict_action: VerdictAction | None = None
    confidence: float | None = None
    position_percent: float | None = None
    verdict_status: VerdictStatus | None = None
    reason: str | None = None
    failures: frozenset[str] = frozenset()


class IdempotencyKey(NamedTuple):
    """A client's name for a request, and the digest of what it asked for under that name."""

    key: str
    digest: str


class SessionFilter(BaseModel, frozen=True):
    """Which sessions to list; all conditions must hold, newest first.

    `ids`: the lowest and the highest. `skip` counts sessions instead of pages.
    """

    workspace_id: str
    ids: tuple[UUID, UUID] | None = None
    symbol: str | None = None
    status: SessionStatus | None = None
    verdict_action: VerdictAction | None = None
    trigger_source: str | None = None
    parent_session_id: UUID | None = None
    created_from: AwareDatetime | None = None
    created_before: AwareDatetime | None = None
    page: int = Field(default=1, ge=1, le=LAST_PAGE)
    page_size: int = Field(default=20, ge=1, le=MOST_PER_PAGE)
    skip: int | None = Field(default=None, ge=0, le=LAST_PAGE * MOST_PER_PAGE)

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.page_size if self.skip is None else self.skip


SHOWN = (
    *("symbol", "status", "verdict_status", "verdict_action", "reason"),
    *("as_of", "created_at", "completed_at", "duration_ms", "trigger_source"),
)
"""The columns of a list of sessions, beside the id."""


class SessionPage(BaseModel, Table):
    """`total` counts the sessions of all pages, but no further than `COUNTED_TO`; then `total_is_more` says so."""

    total: int
    total_is_more: bool = False
    page: int
    page_size: int
    items: list[ResearchSession]

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
        rows = [(str(item.id), *(getattr(item, name) for name in SHOWN)) for item in self.items]
        return ("id", *SHOWN), rows


EventType = Literal[
    "session",
    "node_started",
    "node_retrying",
    "node_finished",
    "node_failed",
    "decision",
    "debate",
    "verdict",
    "done",
]
Told = tuple[EventType, dict[str, Any]]
"""What is told, before it has its number."""


class SessionEvent(BaseModel, frozen=True):
    """`seq` counts within the session, from 1; where one is missing, it could not be stored. `done` is the last.

    `data` of each type: `session` {status, symbol, experts, resumed}; `node_started` {node}; `node_retrying` {node,
    reason, attempt}; `node_finished` {node, status: success | skipped, duration_ms, signal, confidence, reused}, with
    the debate's direction or the judge's action for a signal;
    `node_failed` {node, error, duration_ms}; `decision` {node, verdict, reason}; `debate` {direction, confidence};
    `verdict` {action, position_percent, confidence}; `done` {status, verdict_status, verdict_action, reason}.
    """

    seq: int
    type: EventType
    at: AwareDatetime
    data: dict[str, Any]


class Recorded(NamedTuple):
    """All that is on the record of a session, of one moment."""

    session: ResearchSession
    nodes: Sequence[NodeExecution]
    events: Sequence[SessionEvent]

"""A session is one run of the desk on one symbol; a node execution is what one of its nodes did."""

from collections.abc import Mapping
from typing import Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.question import Asked

OverallStatus = Literal["completed", "partial", "failed"]
SessionStatus = Literal["queued", "running", "waiting", "completed", "partial", "failed", "cancelled"]
VerdictStatus = Literal["judged", "abstained", "skipped", "failed"]
VerdictAction = Literal["BUY", "SELL", "HOLD"]
GOING_ON: tuple[SessionStatus, ...] = ("queued", "running")
"""Somebody runs them, or should."""
UNFINISHED: tuple[SessionStatus, ...] = (*GOING_ON, "waiting")
NodeStatus = Literal["success", "failed", "skipped"]

MOST_PER_PAGE = 200
LAST_PAGE = 1_000_000
COUNTED_TO = 5_000
"""Nobody needs to know whether there are 40,000 or 41,000 sessions, and counting them takes longer than listing."""


class ResearchSession(Asked):
    """`status` says how the experts fared; how the verdict fared is `verdict_status` and `reason`.

    `audit_gaps` counts rows that could not be written: a session with gaps is complete for its reader, not for
    the record, and says so.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

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


class NodeExecution(BaseModel):
    """One row per node that ran. `evidence` is what the node was given; `reused` results were not run again."""

    model_config = ConfigDict(frozen=True)

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


class SessionFilter(BaseModel):
    """Which sessions to list; all conditions must hold, newest first. `skip` counts sessions instead of pages."""

    model_config = ConfigDict(frozen=True)

    workspace_id: str
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


class SessionPage(BaseModel):
    """`total` counts the sessions of all pages, but no further than `COUNTED_TO`; then `total_is_more` says so."""

    total: int
    total_is_more: bool = False
    page: int
    page_size: int
    items: list[ResearchSession]

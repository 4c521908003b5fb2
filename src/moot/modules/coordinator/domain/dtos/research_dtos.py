"""What is asked of the desk and what it answers: the shapes that cross `IResearchOrchestrationPort`."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import (
    AwareDatetime,
    BaseModel,
    Field,
    field_serializer,
    field_validator,
)

from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.session import Asked, OverallStatus, VerdictStatus
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale


class ResearchRequest(Asked):
    """A question as it was accepted. `as_of` None means the present moment; what is known already is not asked."""

    as_of: AwareDatetime | None = None
    pre_populated_results: dict[str, Any] | None = None
    debate_outcome: dict[str, Any] | None = None
    """Of a debate that need not be held again."""

    @property
    def panel(self) -> list[ExpertType]:
        """Everybody whose answer counts: those who gave it before, and those who are asked."""
        return list(dict.fromkeys([*map(ExpertType, self.pre_populated_results or {}), *self.experts]))


class ExpertResultItem(BaseModel):
    expert_type: ExpertType
    status: Literal["success", "failed"]
    data: dict[str, Any] | None = None
    error: str | None = None


class ModelUsage(BaseModel):
    """What the run's model calls took; `cost` None: not every model has a price."""

    requests: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    currency: str = ""


class ResearchResult(BaseModel):
    """The desk's answer; dumped, it is the body that REST and `--json` give.

    A verdict that is not there has a `verdict_status` and a `reason`, never a rating.
    """

    symbol: str
    overall_status: OverallStatus
    expert_results: list[ExpertResultItem]
    debate_outcome: dict[str, Any] | None = None
    verdict: dict[str, Any] | None = None
    verdict_status: VerdictStatus = "skipped"
    reason: str | None = None
    session_id: str = ""
    retry_count: int = 0
    as_of: AwareDatetime | None = None
    locale: Locale = DEFAULT_LOCALE
    audit_gaps: int = 0
    usage: ModelUsage = ModelUsage()
    notices: list[str] = Field(default_factory=list)

    @field_validator("expert_results", mode="before")
    @classmethod
    def _by_name_too(cls, items: Any) -> Any:
        """What was dumped can be read again."""
        if not isinstance(items, Mapping):
            return items
        return [
            {**item, "expert_type": expert} if isinstance(item, Mapping) else item
            for expert, item in items.items()
        ]

    @field_serializer("expert_results")
    def _by_expert(self, items: list[ExpertResultItem]) -> dict[str, dict[str, Any]]:
        """Readers outside look results up by name."""
        return {
            item.expert_type.value: item.model_dump(exclude={"expert_type"}, exclude_none=True)
            for item in items
        }

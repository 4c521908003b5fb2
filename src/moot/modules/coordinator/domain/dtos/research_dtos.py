"""What is asked of the desk and what it answers: the shapes that cross `IResearchOrchestrationPort`.

The parts of a result are dictionaries as in JSON, whose names are attributes too, so that an editor knows them.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, Field, computed_field, field_serializer, field_validator
from pydantic_core import CoreSchema, core_schema

from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.session import Asked, OverallStatus, VerdictAction, VerdictStatus
from moot.shared.domain.brief import Usage
from moot.shared.domain.datasets import DataUntil
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale
from moot.shared.infrastructure.frames import Table

PANEL = list(ExpertType)
"""In the order in which what is known already is told."""


class ResearchRequest(Asked):
    """A question as it was accepted. `as_of` None means the present moment; what is known already is not asked."""

    as_of: AwareDatetime | None = None
    pre_populated_results: dict[str, Any] | None = None
    failures: dict[str, dict[str, str | None]] | None = None
    """By expert, `error_type` and `error_message` of those who failed and are not asked again."""
    debate_outcome: dict[str, Any] | None = None
    """Of a debate that need not be held again."""

    @property
    def panel(self) -> list[ExpertType]:
        """Everybody whose answer counts: those who gave it before, or owed it, and those who are asked."""
        reused = sorted(map(ExpertType, self.pre_populated_results or {}), key=PANEL.index)
        return list(dict.fromkeys([*reused, *map(ExpertType, self.failures or {}), *self.experts]))


class Part(dict[str, Any]):
    """What is inside a part is a part as well. The judge and the debate have checked what they wrote."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(f"there is no {name!r} here, only {', '.join(self)}")
        return _as_part(self[name])

    @classmethod
    def __get_pydantic_core_schema__(cls, *_of: Any) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls, core_schema.dict_schema())


def _as_part(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_part(member) for member in value]
    return Part(value) if isinstance(value, dict) else value


class Levels(Part):
    entry: float | None
    stop: float | None
    target: float | None


class Verdict(Part):
    symbol: str
    action: VerdictAction
    position_percent: float
    confidence: float
    entry_strategy: str
    stop_loss: str
    take_profit: str
    time_horizon: str
    risk_warnings: list[str]
    reasoning: str
    narrative_report: str
    levels: Levels
    engine: Literal["rubric", "llm"]
    warnings: list[str]


class Case(Part):
    """Of one side; the bull acknowledges risks, the bear strengths."""

    core_thesis: str
    supporting_arguments: list[str]


class Risk(Part):
    risk: str
    probability: str
    impact: str
    mitigation: str


class Debate(Part):
    symbol: str
    direction: Literal["BULLISH", "BEARISH", "NEUTRAL"]
    confidence: float
    bull_case: Case
    bear_case: Case
    risk_matrix: list[Risk]
    key_disagreements: list[str]
    conflict_resolution: str
    narrative_report: str
    engine: Literal["rubric", "llm"]
    experts: list[str]
    warnings: list[str]


class ExpertResultItem(BaseModel):
    expert_type: ExpertType
    status: Literal["success", "failed"]
    data: Part | None = None
    error: str | None = None


class ModelUsage(Usage):
    """What the run's model calls took; `cost` None: not every model has a price. Of those `uncounted` the vendor did
    not say how many tokens they took."""

    currency: str = ""
    uncounted: int = 0


class ResearchResult(BaseModel, Table):
    """The desk's answer, as REST and `--json` give it: the same in Python, and dumped it is their body.

    As a table it has a row for each expert. A verdict that is not there has a `verdict_status` and a `reason`, never
    a rating.
    """

    symbol: str
    overall_status: OverallStatus
    expert_results: dict[ExpertType, ExpertResultItem]
    debate_outcome: Debate | None = None
    verdict: Verdict | None = None
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
    def _by_name(cls, items: Any) -> Any:
        """From a list, or as they were dumped: there the name is the key alone."""
        if not isinstance(items, Mapping):
            return {item.expert_type: item for item in items}
        return {
            expert: {**item, "expert_type": expert} if isinstance(item, Mapping) else item
            for expert, item in items.items()
        }

    @field_serializer("expert_results")
    def _without_names(self, items: dict[ExpertType, ExpertResultItem]) -> dict[str, dict[str, Any]]:
        return {
            expert.value: item.model_dump(exclude={"expert_type"}, exclude_none=True)
            for expert, item in items.items()
        }

    @computed_field  # type: ignore[prop-decorator]
    @property
    def data_until(self) -> DataUntil:
        """By dataset, the day of the newest row that an expert used."""
        used = [item.data.get("data_until", {}) for item in self.expert_results.values() if item.data]
        days = sorted((name, date.fromisoformat(str(day))) for one in used for name, day in one.items())
        return dict(days)

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
        """What an expert says, where the others say it too."""
        rows = [
            (expert.value, item.status, *view_of(expert, item.data or {}).values(), item.error)
            for expert, item in self.expert_results.items()
        ]
        return ("expert", "status", "signal", "confidence", "error"), rows


POINTS = {"debate": "direction", "judge": "action"}
"""Where in what they come to these two say which way it points; experts each have a field of their own."""


def view_of(node_type: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Which way a node's result points, and how sure it is of it; None where it does not say."""
    if node_type in POINTS:
        return {"signal": result.get(POINTS[node_type]), "confidence": result.get("confidence")}
    where = ExpertType(node_type).fields
    fields = result.get(where.inside) if where.inside else result
    known = fields if isinstance(fields, Mapping) else {}
    return {"signal": known.get(where.signal), "confidence": known.get(where.confidence)}

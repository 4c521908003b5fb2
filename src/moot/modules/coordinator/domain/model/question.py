"""What is asked of the desk, and by whom: one frozen model, from the client's words to the row of the session."""

from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale
from moot.shared.domain.moments import Moment
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE


class Question(BaseModel):
    """`options` holds, per expert, only what that expert understands."""

    model_config = ConfigDict(frozen=True)

    symbol: str = Field(examples=["900001.DEMO"])
    experts: list[ExpertType] = Field(examples=[["technical_analyst", "valuation_modeler"]])
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    skip_debate: StrictBool = False
    as_of: Moment | None = Field(
        default=None,
        description="what was known then: a day (its end, on the exchange) or a moment with zone",
    )
    locale: Locale = DEFAULT_LOCALE
    max_cost: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="the most the model calls may cost, in the desk's currency; null: the desk's budgets alone",
    )


class Asked(Question):
    """A question with who asked it, and what it follows from."""

    trigger_source: str = "api"
    requested_by: str | None = None
    workspace_id: str = DEFAULT_WORKSPACE
    parent_session_id: UUID | None = None
    retry_count: int = 0

    def asked(self) -> dict[str, Any]:
        """This much of it, for another model that has it too."""
        return self.model_dump(include=set(Asked.model_fields), by_alias=False)

    @property
    def node_types(self) -> list[str]:
        """Those that a run has to go through, in the order of the desk."""
        return [*self.experts, *([] if self.skip_debate else ["debate", "judge"])]

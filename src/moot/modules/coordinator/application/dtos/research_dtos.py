"""What a client may ask, strictly checked; and the domain's request and result, for those outside."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any, TypedDict

from pydantic import Field, PlainValidator, StrictInt, ValidationInfo, create_model, field_validator

from moot.modules.coordinator.domain.dtos.research_dtos import (
    Debate,
    ExpertResultItem,
    ResearchRequest,
    ResearchResult,
    Verdict,
    view_of,
)
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.session import Question
from moot.shared.domain.claims import Holder
from moot.shared.domain.clock import Day
from moot.shared.domain.messages import Locale
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.validation import Strict, refuse

__all__ = [
    "Debate",
    "ExpertResultItem",
    "ExpertType",
    "ResearchRequest",
    "ResearchResult",
    "Verdict",
    "view_of",
]

EXPERTS = [expert.value for expert in ExpertType]


class Options(Strict):
    """What one expert understands; without fields of its own, nothing."""

    def arguments(self, symbol: str, as_of: datetime) -> dict[str, Any]:
        """What the expert's service is called with."""
        return {"symbol": symbol, **dict(self)}


class TechnicalOptions(Options):
    analysis_date: Day | None = Field(
        default=None, description="last day to look at; default: the exchange's date at as_of"
    )

    def arguments(self, symbol: str, as_of: datetime) -> dict[str, Any]:
        day = self.analysis_date or Symbol.parse(symbol).local_date(as_of)
        return {"ticker": symbol, "analysis_date": day}


class AuditorOptions(Options):
    limit: StrictInt = Field(
        default=5, ge=1, le=20, description="how many reporting periods to show, 1 to 20"
    )


OPTIONS: Mapping[ExpertType, type[Options]] = {
    **dict.fromkeys(ExpertType, Options),
    ExpertType.TECHNICAL_ANALYST: TechnicalOptions,
    ExpertType.FINANCIAL_AUDITOR: AuditorOptions,
}

ExpertOptions: Any = create_model(
    "ExpertOptions",
    __base__=Strict,
    __doc__="Per expert, what that expert understands.",
    **{expert.value: (options | None, None) for expert, options in OPTIONS.items()},  # type: ignore[call-overload]
)


def _check_options(options: Any) -> dict[str, dict[str, Any]]:
    """What was set, by expert name, ready for JSON."""
    known: Strict = ExpertOptions.model_validate(options)
    return known.model_dump(mode="json", exclude_unset=True, exclude_none=True)


class Asking(TypedDict, total=False):
    """What may be said with a question in Python, beside the symbol and the experts."""

    options: Mapping[str, Mapping[str, Any]] | None
    skip_debate: bool
    as_of: date | datetime | str | None
    locale: Locale | None
    rounds: int | None
    horizon: int | None
    holder: Holder | Mapping[str, Any] | None
    max_cost: float | None


class ResearchBody(Strict, Question):
    """The body of `POST /api/v1/coordinator/research`: a question, strictly checked."""

    options: Annotated[
        dict[str, dict[str, Any]], PlainValidator(_check_options, json_schema_input_type=ExpertOptions)
    ] = Field(default_factory=dict)

    @field_validator("symbol")
    @classmethod
    def _not_blank(cls, symbol: str) -> str:
        if not symbol.strip():
            raise refuse("blank")
        return symbol

    @field_validator("experts")
    @classmethod
    def _some_each_once(cls, experts: list[ExpertType]) -> list[ExpertType]:
        if not experts:
            raise refuse("choose_some", got="[]", allowed=EXPERTS)
        return list(dict.fromkeys(experts))

    @field_validator("options")
    @classmethod
    def _for_selected_experts(cls, options: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        selected = info.data.get("experts", EXPERTS)
        for name in options:
            if name not in selected:
                raise refuse("not_selected", got=name, allowed=list(selected))
        return options

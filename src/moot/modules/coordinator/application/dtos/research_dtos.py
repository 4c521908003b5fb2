"""What a client may ask, strictly checked; and the domain's request and result, for those outside."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from pydantic import (
    AfterValidator,
    Field,
    GetCoreSchemaHandler,
    StrictInt,
    ValidationInfo,
    create_model,
    field_validator,
)
from pydantic_core.core_schema import (
    CoreSchema,
    no_info_after_validator_function,
    plain_serializer_function_ser_schema,
)

from moot.modules.coordinator.domain.dtos.research_dtos import (
    ExpertResultItem,
    ResearchRequest,
    ResearchResult,
)
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.question import Question
from moot.shared.domain.messages import Locale
from moot.shared.domain.moments import Day
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.validation import Strict, refuse

__all__ = ["EXPERTS", "ExpertResultItem", "ExpertType", "ResearchBody", "ResearchRequest", "ResearchResult"]

EXPERTS = [expert.value for expert in ExpertType]


def _periods(limit: int) -> int:
    if not 1 <= limit <= 20:
        raise refuse("out_of_range", got=limit, allowed=["1-20"])
    return limit


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
    limit: Annotated[StrictInt, AfterValidator(_periods)] = Field(
        default=5, description="how many reporting periods to show, 1 to 20"
    )


class NoOptions(Options):
    """This expert has nothing to set."""


OPTIONS: Mapping[ExpertType, type[Options]] = {
    ExpertType.TECHNICAL_ANALYST: TechnicalOptions,
    ExpertType.FINANCIAL_AUDITOR: AuditorOptions,
}


def options_of(expert: ExpertType) -> type[Options]:
    return OPTIONS.get(expert, NoOptions)


class _OptionsByExpert(Strict):
    """Per expert, what that expert understands."""

    def by_expert(self) -> dict[str, dict[str, Any]]:
        """What was set, by expert name, ready for JSON."""
        return self.model_dump(mode="json", exclude_unset=True, exclude_none=True)


if TYPE_CHECKING:
    ExpertOptions = _OptionsByExpert
else:
    ExpertOptions = create_model(
        "ExpertOptions",
        __base__=_OptionsByExpert,
        __doc__=_OptionsByExpert.__doc__,
        **{expert.value: (options_of(expert) | None, None) for expert in ExpertType},
    )


class CheckedOptions:
    """On a field of plain options: each is what its expert understands."""

    def __get_pydantic_core_schema__(self, _source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_after_validator_function(
            ExpertOptions.by_expert,
            handler.generate_schema(ExpertOptions),
            serialization=plain_serializer_function_ser_schema(dict),
        )


class Asking(TypedDict, total=False):
    """What may be said with a question in Python, beside the symbol and the experts."""

    options: Mapping[str, Mapping[str, Any]] | None
    skip_debate: bool
    as_of: date | datetime | str | None
    locale: Locale | None
    max_cost: float | None


class ResearchBody(Strict, Question):
    """The body of `POST /api/v1/coordinator/research`: a question, strictly checked."""

    options: Annotated[dict[str, dict[str, Any]], CheckedOptions()] = Field(default_factory=dict)

    @field_validator("symbol")
    @classmethod
    def _not_blank(cls, symbol: str) -> str:
        if not symbol.strip():
            raise refuse("blank")
        return symbol

    @field_validator("experts", mode="before")
    @classmethod
    def _at_least_one(cls, experts: Any) -> Any:
        if isinstance(experts, list) and not experts:
            raise refuse("choose_some", got="[]", allowed=EXPERTS)
        return experts

    @field_validator("experts")
    @classmethod
    def _each_once(cls, experts: list[ExpertType]) -> list[ExpertType]:
        return list(dict.fromkeys(experts))

    @field_validator("options")
    @classmethod
    def _for_selected_experts(cls, options: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        selected = info.data.get("experts", EXPERTS)
        for name in options:
            if name not in selected:
                raise refuse("not_selected", got=name, allowed=list(selected))
        return options

"""What a client may ask, strictly checked; and the domain's request and result, for those outside."""

from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictBool,
    StrictInt,
    ValidationInfo,
    create_model,
    field_validator,
)

from moot.modules.coordinator.domain.dtos.research_dtos import (
    ExpertResultItem,
    ResearchRequest,
    ResearchResult,
)
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.validation import Strict, refuse

__all__ = ["EXPERTS", "ExpertResultItem", "ExpertType", "ResearchBody", "ResearchRequest", "ResearchResult"]

EXPERTS = [expert.value for expert in ExpertType]


EARLIEST = date(1990, 1, 1)
"""Before the oldest exchange Moot knows; keeps arithmetic with dates within what a calendar can hold."""


def _day(value: Any) -> date:
    """Days are written one way only: no numbers, no times."""
    day = _read(date.fromisoformat, value) if isinstance(value, str) else value
    if type(day) is not date:
        raise refuse("date_malformed", got=repr(value))
    return _not_too_early(day, value)


def _moment(value: Any) -> date | datetime:
    """A day, or a moment with its zone: without one it could be any of 24."""
    is_text = isinstance(value, str)
    moment = _read(date.fromisoformat, value) or _read(datetime.fromisoformat, value) if is_text else value
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        _not_too_early(moment.date(), value)
        return moment
    if type(moment) is date:
        return _not_too_early(moment, value)
    raise refuse("moment_malformed", got=repr(value))


def _read(parse: Callable[[str], date], text: str) -> date | None:
    try:
        return parse(text)
    except ValueError:
        return None


def _not_too_early(day: date, value: Any) -> date:
    if day < EARLIEST:
        raise refuse("too_early", got=repr(value), allowed=[f">= {EARLIEST}"])
    return day


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
    analysis_date: Annotated[date, BeforeValidator(_day)] | None = Field(
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


class ResearchBody(Strict):
    """The body of `POST /api/v1/coordinator/research`."""

    symbol: str = Field(examples=["900001.DEMO"])
    experts: list[ExpertType] = Field(examples=[["technical_analyst", "valuation_modeler"]])
    options: ExpertOptions = ExpertOptions()
    skip_debate: StrictBool = False
    as_of: Annotated[date | datetime, BeforeValidator(_moment)] | None = Field(
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
    def _for_selected_experts(cls, options: ExpertOptions, info: ValidationInfo) -> ExpertOptions:
        selected = info.data.get("experts", EXPERTS)
        for name in options.model_fields_set:
            if name not in selected:
                raise refuse("not_selected", got=name, allowed=list(selected))
        return options

"""The parts of a result: dictionaries as in JSON, whose names are attributes too, so that an editor knows them."""

from typing import Any, Literal

from pydantic_core import CoreSchema, core_schema

from moot.modules.coordinator.domain.model.session import VerdictAction


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

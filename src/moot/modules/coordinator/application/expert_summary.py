"""Experts name the same four things differently; here they meet."""

from typing import Any, NamedTuple

from moot.modules.coordinator.domain.model.enums import ExpertType


class Summary(NamedTuple):
    """What the debate, the report and the progress display know of an expert's result."""

    signal: str
    confidence: float
    reasoning: str
    risk_warning: str


def summarise(expert: ExpertType, result: dict[str, Any]) -> Summary:
    """The four fields of `result`, everything else dropped. A result without one of them is a `KeyError`."""
    where = expert.fields
    fields = result[where.inside] if where.inside else result
    return Summary(
        signal=fields[where.signal],
        confidence=fields[where.confidence],
        reasoning=fields[where.reasoning],
        risk_warning=_as_text(fields[where.risk_warning]),
    )


def _as_text(risks: str | list[str] | list[dict[str, str]]) -> str:
    """Risks as one string: a sentence as it is, a list joined, a catalyst by its parts."""
    if isinstance(risks, str):
        return risks
    return "; ".join(_catalyst(item) if isinstance(item, dict) else _clause(item) for item in risks)


def _catalyst(item: dict[str, str]) -> str:
    """`event: impact`, or the event alone where the impact is unknown."""
    return ": ".join(_clause(item[part]) for part in ("event", "expected_impact") if item[part])


def _clause(sentence: str) -> str:
    return sentence.rstrip(" .。")

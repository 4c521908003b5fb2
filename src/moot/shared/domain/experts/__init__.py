"""The experts a desk can ask. Graph, debate, judge, report, REST, CLI and intake know them from this table alone.

To add one: a member here, its texts beside this file, and a folder of its name in `research/application`.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal, NamedTuple

EXPERT_TEXTS: Final = Path(__file__).parent
"""How experts and their signals are called, for the catalogue of whoever names them."""

VIEW: Final = "view"
"""The dimension of what an expert concludes on the whole, where that is all that is known of it."""
Direction = Literal["BULLISH", "BEARISH", "NEUTRAL"]
DIRECTIONS: Final[Mapping[str, float]] = {"BULLISH": 0.7, "NEUTRAL": 0.0, "BEARISH": -0.7}


class SummaryFields(NamedTuple):
    """Where a result keeps its signal, confidence, reasoning and risks; `inside` names a nested object."""

    signal: str = "signal"
    confidence: str = "confidence"
    reasoning: str = "summary_reasoning"
    risk_warning: str = "risk_warning"
    inside: str | None = None


PLAIN: Final = SummaryFields()


class ExpertType(StrEnum):
    """An expert the desk can ask."""

    prefix: str
    """How the ids of its evidence begin."""
    fields: SummaryFields
    """What others read of its result."""
    stances: Mapping[str, float]
    """How far each of its signals leans, from -1 (bear) to 1 (bull)."""
    sees_events: bool
    """What it argues with may still happen, so that a side can wait for it."""
    dimensions: tuple[str, ...]
    """What its claims are about; each counts alike."""

    def __new__(
        cls,
        name: str,
        prefix: str = "",
        fields: SummaryFields = PLAIN,
        stances: Mapping[str, float] = DIRECTIONS,
        sees_events: bool = False,
        dimensions: tuple[str, ...] = (),
    ) -> "ExpertType":
        member = str.__new__(cls, name)
        member._value_ = name
        member.prefix, member.fields = prefix or name, fields
        member.stances, member.sees_events = stances, sees_events
        member.dimensions = dimensions or (member.prefix,)
        return member

    TECHNICAL_ANALYST = (
        "technical_analyst",
        "technical",
        PLAIN,
        DIRECTIONS,
        False,
        ("trend", "momentum", "volume", "range"),
    )
    FINANCIAL_AUDITOR = (
        "financial_auditor",
        "financial",
        PLAIN,
        {"STRONG_BULLISH": 1.0, **DIRECTIONS, "STRONG_BEARISH": -1.0},
        False,
        ("earnings_quality", "efficiency", "returns", "solvency", "growth"),
    )
    VALUATION_MODELER = (
        "valuation_modeler",
        "valuation",
        SummaryFields("valuation_verdict", "confidence_score", "reasoning_summary", "risk_factors"),
        {"Undervalued": 0.7, "Fair": 0.0, "Overvalued": -0.7},
        False,
        ("price", "quality"),
    )
    MACRO_INTELLIGENCE = (
        "macro_intelligence",
        "macro",
        SummaryFields("macro_environment", "confidence_score", "macro_summary", "key_risks"),
        {"Favorable (有利)": 0.7, "Neutral (中性)": 0.0, "Unfavorable (不利)": -0.7},
        True,
        ("monetary", "policy", "economy", "industry"),
    )
    CATALYST_DETECTIVE = (
        "catalyst_detective",
        "catalyst",
        SummaryFields(
            "catalyst_assessment", "confidence_score", "catalyst_summary", "negative_catalysts", "result"
        ),
        {"Positive (正面催化)": 0.7, "Neutral (中性)": 0.0, "Negative (负面催化)": -0.7},
        True,
        ("company", "industry", "sentiment", "earnings"),
    )


STANCES: Final[Mapping[str, float]] = {
    signal: stance for expert in ExpertType for signal, stance in expert.stances.items()
}
"""Every signal an expert may give, and how far it leans."""

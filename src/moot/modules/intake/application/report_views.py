"""What a session of the experts says, in a form that can be weighed against another session's."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.messages import Locale

FOR = frozenset({"BUY", "STRONG_BULLISH", "BULLISH", "Undervalued", "Favorable", "Positive"})
AGAINST = frozenset({"SELL", "STRONG_BEARISH", "BEARISH", "Overvalued", "Unfavorable", "Negative"})

FACTS: Mapping[str, tuple[str, ...]] = {
    "valuation_modeler": ("pe_ttm", "pe_percentile", "pb", "peg_ratio", "dv_ratio", "current_price"),
    "financial_auditor": ("roe_annualised", "profit_growth", "revenue_growth", "debt_to_assets"),
    "technical_analyst": ("rsi_value", "volume_ratio", "support", "resistance"),
    "catalyst_detective": ("positive_count", "negative_count"),
}
"""By expert, which of its evidence tells companies apart, the most telling first."""
FEW_EXPERTS, OF_MANY = 2, 2
"""Where more experts than a few are heard, this many facts of each."""


def leaning(signal: str, confidence: float) -> float:
    """How far a signal speaks for the company; a macro or catalyst signal has a gloss after its literal."""
    literal = signal.split(maxsplit=1)[0]
    return confidence * ((literal in FOR) - (literal in AGAINST))


def measured(
    evidence: Mapping[str, Sequence[Mapping[str, Any]]], language: Locale
) -> Iterator[tuple[str, str]]:
    """Facts by their names, from the `evidence` of each expert."""
    for expert, found in evidence.items():
        known = {str(fact["id"]).partition(".")[2]: fact for fact in found}
        wanted = FACTS.get(expert, ())
        for name in wanted if len(evidence) <= FEW_EXPERTS else wanted[:OF_MANY]:
            if name in known:
                yield SAY(f"answer.fact.{name}").in_locale(language), _shown(known[name])


def _shown(fact: Mapping[str, Any]) -> str:
    value, unit = fact["value"], fact["unit"]
    number = f"{value:,.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    if unit in ("%", "x"):
        return f"{number}{unit}"
    return f"{unit} {number}" if unit and unit != "index" else number

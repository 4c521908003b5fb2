"""The risk matrix of a debate: what the experts warn of, and that they disagree."""

from collections.abc import Iterator, Sequence

from moot.modules.debate.domain.debate import Direction, RiskItem, RiskLevel
from moot.modules.debate.domain.opinions import Opinion, camps
from moot.modules.debate.domain.texts import SAY
from moot.shared.domain.messages import Locale

LEVELS: tuple[tuple[float, RiskLevel], ...] = ((0.65, "HIGH"), (0.35, "MEDIUM"), (0.0, "LOW"))
LIKELIHOOD_OF_ERROR: dict[Direction, RiskLevel] = {
    "NEUTRAL": "HIGH",
    "BULLISH": "MEDIUM",
    "BEARISH": "MEDIUM",
}


def risk_matrix(opinions: Sequence[Opinion], direction: Direction, locale: Locale) -> list[RiskItem]:
    return [*_warnings(opinions, locale), *_disagreement(opinions, direction, locale)]


def _warnings(opinions: Sequence[Opinion], locale: Locale) -> Iterator[RiskItem]:
    """One row for each distinct warning: likelier as its experts lean to the bear, graver as they are sure."""
    voices: dict[str, list[Opinion]] = {}
    for opinion in opinions:
        if warning := opinion.summary.risk_warning.strip():
            voices.setdefault(warning, []).append(opinion)
    for warning, experts in voices.items():
        yield RiskItem(
            risk=SAY("says", who=[expert.name for expert in experts], text=warning).in_locale(locale),
            probability=_level(max((1 - expert.pull) / 2 for expert in experts)),
            impact=_level(max(expert.summary.confidence for expert in experts)),
            mitigation=SAY(f"mitigation.{experts[0].expert}").in_locale(locale),
        )


def _disagreement(opinions: Sequence[Opinion], direction: Direction, locale: Locale) -> Iterator[RiskItem]:
    """One row when both camps have experts: as grave as the smaller camp is sure."""
    few, many = camps(opinions)
    if few:
        sides = {"few": [expert.name for expert in few], "many": [expert.name for expert in many]}
        yield RiskItem(
            risk=SAY("risk_of_disagreement", **sides).in_locale(locale),
            probability=LIKELIHOOD_OF_ERROR[direction],
            impact=_level(max(expert.summary.confidence for expert in few)),
            mitigation=SAY("mitigation.disagreement").in_locale(locale),
        )


def _level(share: float) -> RiskLevel:
    return next(level for least, level in LEVELS if share >= least)

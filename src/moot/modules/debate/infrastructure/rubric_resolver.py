"""Resolves by arithmetic: the weight behind the bull, less the weight behind the bear."""

from collections.abc import Sequence

from moot.modules.debate.domain.debate import Argument, DebateInput, Direction, Resolution
from moot.modules.debate.domain.opinions import Opinion, camps, weigh
from moot.modules.debate.domain.texts import SAY, bullets
from moot.modules.debate.infrastructure.rubric_risks import risk_matrix
from moot.shared.domain.messages import Message

NEUTRAL_BAND = 0.15
EVEN_ODDS = 0.5


class RubricResolver:
    async def resolve(self, debate_input: DebateInput, bull: Argument, bear: Argument) -> Resolution:
        locale = debate_input.locale
        opinions = weigh(debate_input.expert_summaries)
        net = round(bull.confidence - bear.confidence, 2)
        ruled = {"direction": _direction(net), "confidence": round(EVEN_ODDS + abs(net) / 2, 2)}
        sides = {"bull": bull.confidence, "bear": bear.confidence, "net": net, "band": NEUTRAL_BAND}
        weights = [_weight(opinion) for opinion in opinions]
        weighed = SAY("weighed", weights=weights, count=len(weights), **sides, **ruled)
        disagreements = [said.in_locale(locale) for said in _disagreements(opinions)]
        risks = risk_matrix(opinions, _direction(net), locale)
        narrative = SAY(
            "resolution",
            weighed=weighed,
            disagreements=bullets(disagreements, locale),
            risks=bullets([SAY("risk_line", **dict(risk)).in_locale(locale) for risk in risks], locale),
        )
        return Resolution(
            **ruled,
            risk_matrix=risks,
            key_disagreements=disagreements,
            conflict_resolution=weighed.in_locale(locale),
            narrative_report=narrative.in_locale(locale),
            engine="rubric",
        )


def _direction(net: float) -> Direction:
    if abs(net) < NEUTRAL_BAND:
        return "NEUTRAL"
    return "BULLISH" if net > 0 else "BEARISH"


def _weight(opinion: Opinion) -> Message:
    confidence = opinion.summary.confidence
    return SAY("weight", expert=opinion.name, stance=opinion.stance, confidence=confidence, pull=opinion.pull)


def _disagreements(opinions: Sequence[Opinion]) -> list[Message]:
    """One line for each expert of the smaller camp, against all of the larger."""
    few, many = camps(opinions)
    return [SAY("disagreement", one=one.label, others=[other.label for other in many]) for one in few]

"""Pleads and resolves by rule: each side speaks from the experts who lean its way, then arithmetic decides."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from moot.modules.debate.domain.debate import (
    Argument,
    DebateInput,
    Opinion,
    Resolution,
    RiskItem,
    RiskLevel,
    Side,
    camps,
    weigh,
)
from moot.modules.debate.domain.texts import SAY, bullets
from moot.shared.domain.experts import Direction, ExpertType
from moot.shared.domain.messages import Locale, Message

NEUTRAL_BAND = 0.15
EVEN_ODDS = 0.5
LEVELS: tuple[tuple[float, RiskLevel], ...] = ((0.65, "HIGH"), (0.35, "MEDIUM"), (0.0, "LOW"))
LIKELIHOOD_OF_ERROR: dict[Direction, RiskLevel] = {
    "NEUTRAL": "HIGH",
    "BULLISH": "MEDIUM",
    "BEARISH": "MEDIUM",
}

Opinions = Sequence[Opinion]


class RubricAdvocate(ABC):
    """What bull and bear share. They differ in what they borrow when nobody backs them, grant and wait for."""

    direction: Side
    sign: int

    async def advocate(self, debate_input: DebateInput) -> Argument:
        opinions = weigh(debate_input.expert_summaries)
        backers = [opinion for opinion in opinions if opinion.stance * self.sign > 0]
        others = [opinion for opinion in opinions if opinion not in backers]
        pleas = {
            "supporting_arguments": [backer.argues for backer in backers] or self._borrows(others),
            "acknowledged": self._grants(backers, others),
            "triggers": self._awaits(backers, others),
        }
        locale = debate_input.locale
        lines = {part: [message.in_locale(locale) for message in said] for part, said in pleas.items()}
        thesis = self._thesis(backers).in_locale(locale)
        weight = round(sum(abs(backer.pull) for backer in backers) / len(opinions), 2)
        listed = {part: bullets(said, locale) for part, said in lines.items()}
        narrative = SAY(f"plea.{self.direction}", thesis=thesis, weight=weight, **listed)
        return Argument(
            direction=self.direction,
            confidence=weight,
            core_thesis=thesis,
            narrative_report=narrative.in_locale(locale),
            **lines,
        )

    def _thesis(self, backers: Opinions) -> Message:
        if not backers:
            return SAY(f"unbacked.{self.direction}")
        return SAY(f"thesis.{self.direction}", lead=backers[0].argues)

    @abstractmethod
    def _borrows(self, others: Opinions) -> list[Message]: ...

    @abstractmethod
    def _grants(self, backers: Opinions, others: Opinions) -> list[Message]: ...

    @abstractmethod
    def _awaits(self, backers: Opinions, others: Opinions) -> list[Message]: ...


class RubricBull(RubricAdvocate):
    direction: Side = "BULLISH"
    sign = 1

    def _borrows(self, others: Opinions) -> list[Message]:
        return [undecided.argues for undecided in others if undecided.stance == 0]

    def _grants(self, backers: Opinions, others: Opinions) -> list[Message]:
        return _warned(others or backers)

    def _awaits(self, backers: Opinions, others: Opinions) -> list[Message]:
        return [backer.argues for backer in backers if ExpertType(backer.expert).sees_events]


class RubricBear(RubricAdvocate):
    direction: Side = "BEARISH"
    sign = -1

    def _borrows(self, others: Opinions) -> list[Message]:
        return _warned(others)

    def _grants(self, backers: Opinions, others: Opinions) -> list[Message]:
        return [bull.argues for bull in others if bull.stance > 0]

    def _awaits(self, backers: Opinions, others: Opinions) -> list[Message]:
        return _warned([*backers, *others])


def _warned(opinions: Opinions) -> list[Message]:
    return [opinion.warns for opinion in opinions if opinion.summary.risk_warning.strip()]


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
        risks = _risk_matrix(opinions, _direction(net), locale)
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


def _risk_matrix(opinions: Sequence[Opinion], direction: Direction, locale: Locale) -> list[RiskItem]:
    return [*_warnings(opinions, locale), *_risk_of_disagreement(opinions, direction, locale)]


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


def _risk_of_disagreement(
    opinions: Sequence[Opinion], direction: Direction, locale: Locale
) -> Iterator[RiskItem]:
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

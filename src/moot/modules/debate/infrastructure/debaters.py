"""Bull, bear and resolution. By rule, each side speaks from the experts who lean its way, then arithmetic decides; by
a model: what each is shown, what it must answer, and that rules speak when it cannot.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints, ValidationInfo, field_validator

from moot.modules.debate.domain.debate import (
    Advocate,
    Argument,
    Confidence,
    DebateInput,
    Opinion,
    Resolution,
    Resolver,
    RiskItem,
    RiskLevel,
    Side,
    camps,
    weigh,
)
from moot.modules.debate.domain.texts import SAY
from moot.modules.llm_platform.application.speaker import Brief, EngineChoice, Prompts, Speaker
from moot.shared.domain.experts import Direction, ExpertType
from moot.shared.domain.messages import Locale, Message
from moot.shared.domain.validation import refuse

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
        locale = debate_input.locale
        lines = {
            part: [message.in_locale(locale) for message in said]
            for part, said in self._pleads(backers, others).items()
        }
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
    def _pleads(self, backers: Opinions, others: Opinions) -> dict[str, list[Message]]: ...


class RubricBull(RubricAdvocate):
    direction: Side = "BULLISH"
    sign = 1

    def _pleads(self, backers: Opinions, others: Opinions) -> dict[str, list[Message]]:
        undecided = [other.argues for other in others if other.stance == 0]
        return {
            "supporting_arguments": [backer.argues for backer in backers] or undecided,
            "acknowledged": _warned(others or backers),
            "triggers": [backer.argues for backer in backers if ExpertType(backer.expert).sees_events],
        }


class RubricBear(RubricAdvocate):
    direction: Side = "BEARISH"
    sign = -1

    def _pleads(self, backers: Opinions, others: Opinions) -> dict[str, list[Message]]:
        return {
            "supporting_arguments": [backer.argues for backer in backers] or _warned(others),
            "acknowledged": [bull.argues for bull in others if bull.stance > 0],
            "triggers": _warned([*backers, *others]),
        }


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


PROMPTS = Prompts(Path(__file__).parent / "prompts")
RESOLUTION = "resolution"
NEAR_EVEN_ODDS = (0.4, 0.6)

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Answer(BaseModel, frozen=True, allow_inf_nan=False):
    """What a model writes, in the order in which it writes it."""


class Point(Answer):
    dimension: Text
    argument: Text
    evidence: Text
    strength: Literal["HIGH", "MEDIUM", "LOW"]

    def in_locale(self, locale: Locale) -> str:
        return SAY("point", **dict(self)).in_locale(locale)


class Plea(Answer):
    """Either side's answer; each side has its own names for what it grants and what it waits for."""

    direction: Side
    confidence: Confidence
    core_thesis: Text
    supporting_arguments: list[Point] = Field(min_length=1)
    acknowledged: list[Text]
    triggers: list[Text]
    narrative_report: str = ""


class BullPlea(Plea):
    direction: Literal["BULLISH"]
    acknowledged: list[Text] = Field(alias="acknowledged_risks")
    triggers: list[Text] = Field(alias="price_catalysts")


class BearPlea(Plea):
    direction: Literal["BEARISH"]
    acknowledged: list[Text] = Field(alias="acknowledged_strengths")
    triggers: list[Text] = Field(alias="risk_triggers")


class Risk(Answer):
    risk: Text
    probability: RiskLevel
    impact: RiskLevel
    mitigation: Text


class Weighing(Answer):
    direction: Direction
    confidence: Confidence
    bull_case_summary: Text
    bear_case_summary: Text
    risk_matrix: list[Risk] = Field(min_length=3)
    key_disagreements: list[Text] = Field(min_length=2)
    conflict_resolution: Text
    narrative_report: str = ""

    @field_validator("confidence")
    @classmethod
    def _neutral_is_near_even_odds(cls, confidence: float, so_far: ValidationInfo) -> float:
        low, high = NEAR_EVEN_ODDS
        if so_far.data.get("direction") == "NEUTRAL" and not low <= confidence <= high:
            raise refuse("out_of_range", got=confidence, allowed=[f"NEUTRAL {low}–{high}"])
        return confidence


class LLMAdvocate:
    """`by_rule` speaks where the desk has no model, or where rules stand in for one that failed."""

    def __init__(
        self, speaker: Speaker, choice: EngineChoice, agent: str, plea: type[Plea], by_rule: Advocate
    ) -> None:
        self._speaker, self._choice, self._by_rule = speaker, choice, by_rule
        self._agent, self._plea = agent, plea

    async def advocate(self, debate_input: DebateInput) -> Argument:
        by_model = partial(self._plead, debate_input)
        return await self._choice.make(self._agent, by_model, partial(self._by_rule.advocate, debate_input))

    async def _plead(self, debate_input: DebateInput) -> Argument:
        locale = debate_input.locale
        spoken = await self._speaker.ask(
            Brief(
                module="debate",
                agent=self._agent,
                system=PROMPTS.text(self._agent, locale),
                case=_panel(debate_input),
                evidence=debate_input.evidence,
                answer=self._plea,
                locale=locale,
                as_of=debate_input.as_of,
                temperature=0.3,
            )
        )
        plea = spoken.answer
        return Argument(
            **plea.model_dump(exclude={"supporting_arguments"}),
            supporting_arguments=[point.in_locale(locale) for point in plea.supporting_arguments],
            engine="llm",
            grounding=spoken.grounding,
            warnings=spoken.warnings,
        )


class LLMResolver:
    """The rule weighs pleas made by rule only: a model's confidence is no weight of experts."""

    def __init__(
        self, speaker: Speaker, choice: EngineChoice, by_rule: Resolver, advocates: Sequence[Advocate]
    ) -> None:
        self._speaker, self._choice = speaker, choice
        self._by_rule, self._advocates = by_rule, advocates

    async def resolve(self, debate_input: DebateInput, bull: Argument, bear: Argument) -> Resolution:
        by_model = partial(self._weigh, debate_input, bull, bear)
        return await self._choice.make(RESOLUTION, by_model, partial(self._calculate, debate_input))

    async def _calculate(self, debate_input: DebateInput) -> Resolution:
        bull, bear = [await side.advocate(debate_input) for side in self._advocates]
        return await self._by_rule.resolve(debate_input, bull, bear)

    async def _weigh(self, debate_input: DebateInput, bull: Argument, bear: Argument) -> Resolution:
        locale = debate_input.locale
        pleas = [_plea("bull", bull, locale), _plea("bear", bear, locale)]
        spoken = await self._speaker.ask(
            Brief(
                module="debate",
                agent=RESOLUTION,
                system=PROMPTS.text(RESOLUTION, locale),
                case="\n\n".join([_panel(debate_input), *pleas]),
                evidence=debate_input.evidence,
                answer=Weighing,
                locale=locale,
                as_of=debate_input.as_of,
                temperature=0.2,
            )
        )
        return Resolution(
            **spoken.answer.model_dump(),
            engine="llm",
            grounding=spoken.grounding,
            warnings=spoken.warnings,
        )


def _panel(debate_input: DebateInput) -> str:
    locale = debate_input.locale
    experts = [_expert(opinion, locale) for opinion in weigh(debate_input.expert_summaries)]
    return SAY("case.panel", symbol=debate_input.symbol, experts="\n\n".join(experts)).in_locale(locale)


def _expert(opinion: Opinion, locale: Locale) -> str:
    summary = dict(opinion.summary) | {"risk_warning": opinion.summary.risk_warning.strip() or SAY("none")}
    return SAY("case.expert", expert=opinion.name, **summary).in_locale(locale)


def _plea(role: str, plea: Argument, locale: Locale) -> str:
    return SAY(
        "case.plea",
        role=SAY(f"role.{role}"),
        direction=plea.direction,
        strength=SAY(f"case.strength.{plea.engine}", confidence=plea.confidence),
        core_thesis=plea.core_thesis,
        supporting_arguments=bullets(plea.supporting_arguments, locale),
        acknowledged=bullets(plea.acknowledged, locale),
        triggers=bullets(plea.triggers, locale),
    ).in_locale(locale)


def bullets(lines: Sequence[str], locale: Locale) -> str:
    """One line each; an empty list says that it is empty."""
    return "\n".join(f"- {line}" for line in lines or [SAY("none").in_locale(locale)])

"""Bull, bear and resolution. By rule, each side speaks from the experts who lean its way, then arithmetic decides; by
a model: what each is shown, what it must answer, and that rules speak when it cannot.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, Field, ValidationInfo, field_validator

from moot.modules.debate.domain.debate import (
    SAY,
    Argument,
    Confidence,
    DebateInput,
    Opinion,
    Resolution,
    RiskItem,
    RiskLevel,
    Side,
    Text,
    camps,
    weigh,
)
from moot.modules.llm_platform.application.speaker import Brief, EngineChoice, Prompts, Speaker
from moot.shared.domain.experts import Direction, ExpertType
from moot.shared.domain.messages import Locale, Message
from moot.shared.domain.validation import refuse

NEUTRAL_BAND = 0.15
EVEN_ODDS = 0.5
LEVELS: tuple[tuple[float, RiskLevel], ...] = ((0.65, "HIGH"), (0.35, "MEDIUM"), (0.0, "LOW"))
SIGNS: dict[Side, int] = {"BULLISH": 1, "BEARISH": -1}

Opinions = Sequence[Opinion]


async def plead_by_rule(direction: Side, debate_input: DebateInput) -> Argument:
    locale = debate_input.locale
    opinions = weigh(debate_input.expert_summaries)
    backers = [opinion for opinion in opinions if opinion.stance * SIGNS[direction] > 0]
    others = [opinion for opinion in opinions if opinion not in backers]
    plead = _plead_bull if direction == "BULLISH" else _plead_bear
    lines = {
        part: [message.in_locale(locale) for message in said] for part, said in plead(backers, others).items()
    }
    lead = {"lead": backers[0].argues} if backers else {}
    thesis = SAY(f"{'thesis' if backers else 'unbacked'}.{direction}", **lead).in_locale(locale)
    weight = round(sum(abs(backer.pull) for backer in backers) / len(opinions), 2)
    listed = {part: bullets(said, locale) for part, said in lines.items()}
    narrative = SAY(f"plea.{direction}", thesis=thesis, weight=weight, **listed)
    return Argument(
        direction=direction,
        confidence=weight,
        core_thesis=thesis,
        narrative_report=narrative.in_locale(locale),
        **lines,
    )


def _plead_bull(backers: Opinions, others: Opinions) -> dict[str, list[Message]]:
    undecided = [other.argues for other in others if other.stance == 0]
    return {
        "supporting_arguments": [backer.argues for backer in backers] or undecided,
        "acknowledged": _warnings(others or backers),
        "triggers": [backer.argues for backer in backers if ExpertType(backer.expert).sees_events],
    }


def _plead_bear(backers: Opinions, others: Opinions) -> dict[str, list[Message]]:
    return {
        "supporting_arguments": [backer.argues for backer in backers] or _warnings(others),
        "acknowledged": [bull.argues for bull in others if bull.stance > 0],
        "triggers": _warnings([*backers, *others]),
    }


def _warnings(opinions: Opinions) -> list[Message]:
    return [opinion.warns for opinion in opinions if opinion.summary.risk_warning.strip()]


async def resolve_by_rule(debate_input: DebateInput) -> Resolution:
    bull, bear = [await plead_by_rule(side, debate_input) for side in SIGNS]
    locale = debate_input.locale
    opinions = weigh(debate_input.expert_summaries)
    net = round(bull.confidence - bear.confidence, 2)
    ruled = {"direction": _direction(net), "confidence": round(EVEN_ODDS + abs(net) / 2, 2)}
    sides = {"bull": bull.confidence, "bear": bear.confidence, "net": net, "band": NEUTRAL_BAND}
    weights = [
        SAY("weight", expert=o.name, stance=o.stance, confidence=o.summary.confidence, pull=o.pull)
        for o in opinions
    ]
    weighed = SAY("weighed", weights=weights, count=len(weights), **sides, **ruled)
    few, many = camps(opinions)
    others = [other.label for other in many]
    disagreements = [SAY("disagreement", one=one.label, others=others).in_locale(locale) for one in few]
    risks = list(_risks(opinions, _direction(net), locale))
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


def _risks(opinions: Opinions, direction: Direction, locale: Locale) -> Iterator[RiskItem]:
    """One row for each distinct warning: likelier as its experts lean to the bear, graver as they are sure; and one
    when both camps have experts: as grave as the smaller camp is sure.
    """
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
    few, many = camps(opinions)
    if few:
        sides = {"few": [expert.name for expert in few], "many": [expert.name for expert in many]}
        yield RiskItem(
            risk=SAY("risk_of_disagreement", **sides).in_locale(locale),
            probability="HIGH" if direction == "NEUTRAL" else "MEDIUM",
            impact=_level(max(expert.summary.confidence for expert in few)),
            mitigation=SAY("mitigation.disagreement").in_locale(locale),
        )


def _level(share: float) -> RiskLevel:
    return next(level for least, level in LEVELS if share >= least)


PROMPTS = Prompts(Path(__file__).parent / "prompts")
RESOLUTION = "resolution"
NEAR_EVEN_ODDS = (0.4, 0.6)


class Answer(BaseModel, frozen=True, allow_inf_nan=False):
    """What a model writes, in the order in which it writes it."""


A = TypeVar("A", bound=Answer)


class Point(Answer):
    dimension: Text
    argument: Text
    evidence: Text
    strength: RiskLevel


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


class Weighing(Answer):
    direction: Direction
    confidence: Confidence
    bull_case_summary: Text
    bear_case_summary: Text
    risk_matrix: list[RiskItem] = Field(min_length=3)
    key_disagreements: list[Text] = Field(min_length=2)
    conflict_resolution: Text
    narrative_report: str = ""

    @field_validator("confidence")
    @classmethod
    def _keep_neutral_near_even(cls, confidence: float, so_far: ValidationInfo) -> float:
        low, high = NEAR_EVEN_ODDS
        if so_far.data.get("direction") == "NEUTRAL" and not low <= confidence <= high:
            raise refuse("out_of_range", got=confidence, allowed=[f"NEUTRAL {low}–{high}"])
        return confidence


PLEAS: dict[Side, tuple[str, type[Plea]]] = {
    "BULLISH": ("bull_advocate", BullPlea),
    "BEARISH": ("bear_advocate", BearPlea),
}


class PanelAdvocate:
    """Speaks for one side; by rule where the desk has no model, or where rules stand in for one that failed."""

    def __init__(self, direction: Side, choice: EngineChoice, speaker: Speaker) -> None:
        self._direction, self._choice, self._speaker = direction, choice, speaker
        self._agent, self._plea = PLEAS[direction]

    async def advocate(self, debate_input: DebateInput) -> Argument:
        by_rule = partial(plead_by_rule, self._direction, debate_input)
        return await self._choice.make(self._agent, partial(self._plead, debate_input), by_rule)

    async def _plead(self, debate_input: DebateInput) -> Argument:
        brief = _brief(debate_input, self._agent, self._plea, _panel(debate_input), temperature=0.3)
        spoken = await self._speaker.ask(brief)
        points = [SAY("point", **dict(point)) for point in spoken.answer.supporting_arguments]
        return Argument(
            **spoken.answer.model_dump(exclude={"supporting_arguments"}),
            supporting_arguments=[point.in_locale(debate_input.locale) for point in points],
            engine="llm",
            grounding=spoken.grounding,
            warnings=spoken.warnings,
        )


class PanelResolver:
    """The rule weighs pleas made by rule only: a model's confidence is no weight of experts."""

    def __init__(self, choice: EngineChoice, speaker: Speaker) -> None:
        self._choice, self._speaker = choice, speaker

    async def resolve(self, debate_input: DebateInput, bull: Argument, bear: Argument) -> Resolution:
        by_model = partial(self._weigh, debate_input, bull, bear)
        return await self._choice.make(RESOLUTION, by_model, partial(resolve_by_rule, debate_input))

    async def _weigh(self, debate_input: DebateInput, bull: Argument, bear: Argument) -> Resolution:
        locale = debate_input.locale
        case = [_panel(debate_input), _plea("bull", bull, locale), _plea("bear", bear, locale)]
        brief = _brief(debate_input, RESOLUTION, Weighing, "\n\n".join(case), temperature=0.2)
        spoken = await self._speaker.ask(brief)
        return Resolution(
            **spoken.answer.model_dump(), engine="llm", grounding=spoken.grounding, warnings=spoken.warnings
        )


def _brief(
    debate_input: DebateInput, agent: str, answer: type[A], case: str, *, temperature: float
) -> Brief[A]:
    return Brief(
        module="debate",
        agent=agent,
        system=PROMPTS.text(agent, debate_input.locale),
        case=case,
        evidence=debate_input.evidence,
        answer=answer,
        locale=debate_input.locale,
        as_of=debate_input.as_of,
        temperature=temperature,
    )


def _panel(debate_input: DebateInput) -> str:
    locale = debate_input.locale
    experts = []
    for opinion in weigh(debate_input.expert_summaries):
        risk = opinion.summary.risk_warning.strip() or SAY("none")
        told = SAY("case.expert", expert=opinion.name, **dict(opinion.summary) | {"risk_warning": risk})
        experts.append(told.in_locale(locale))
    return SAY("case.panel", symbol=debate_input.symbol, experts="\n\n".join(experts)).in_locale(locale)


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

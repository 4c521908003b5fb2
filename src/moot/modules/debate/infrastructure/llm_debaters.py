"""Bull, bear and resolution by a model: what each is shown, what it must answer, and who speaks when it cannot."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationInfo, field_validator

from moot.modules.debate.domain.debate import (
    Advocate,
    Argument,
    Confidence,
    DebateInput,
    Opinion,
    Resolution,
    Resolver,
    RiskLevel,
    Side,
    weigh,
)
from moot.modules.debate.domain.texts import SAY, bullets
from moot.modules.llm_platform.application.speaker import Brief, EngineChoice, Prompts, Speaker
from moot.shared.domain.experts import Direction
from moot.shared.domain.messages import Locale
from moot.shared.domain.validation import refuse

PROMPTS = Prompts(Path(__file__).parent / "prompts")
RESOLUTION = "resolution"
NEAR_EVEN_ODDS = (0.4, 0.6)

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Answer(BaseModel):
    """What a model writes, in the order in which it writes it."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


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

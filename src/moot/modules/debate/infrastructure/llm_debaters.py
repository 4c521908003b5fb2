"""Bull, bear and resolution by a model: what each is shown, what it must answer, and who speaks when it cannot."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationInfo, field_validator

from moot.modules.debate.domain.debate import (
    Advocate,
    Argument,
    Confidence,
    DebateInput,
    Direction,
    Resolution,
    Resolver,
    RiskLevel,
    Side,
)
from moot.modules.debate.domain.opinions import Opinion, weigh
from moot.modules.debate.domain.texts import SAY, bullets
from moot.modules.llm_platform.application.engine_choice import EngineChoice
from moot.modules.llm_platform.application.prompt_files import Prompts
from moot.modules.llm_platform.application.speaker import Brief, Speaker
from moot.shared.domain.messages import Locale
from moot.shared.domain.validation import refuse

PROMPTS = Prompts(Path(__file__).parent / "prompts")
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
    def __init__(self, speaker: Speaker, agent: str, plea: type[Plea]) -> None:
        self._speaker, self.agent, self._plea = speaker, agent, plea

    async def advocate(self, debate_input: DebateInput) -> Argument:
        locale = debate_input.locale
        spoken = await self._speaker.ask(
            Brief(
                module="debate",
                agent=self.agent,
                system=PROMPTS.text(self.agent, locale),
                case=_panel(debate_input),
                evidence=debate_input.evidence,
                answer=self._plea,
                locale=locale,
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
    agent = "resolution"

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker

    async def resolve(self, debate_input: DebateInput, bull: Argument, bear: Argument) -> Resolution:
        locale = debate_input.locale
        pleas = [_plea("bull", bull, locale), _plea("bear", bear, locale)]
        spoken = await self._speaker.ask(
            Brief(
                module="debate",
                agent=self.agent,
                system=PROMPTS.text(self.agent, locale),
                case="\n\n".join([_panel(debate_input), *pleas]),
                evidence=debate_input.evidence,
                answer=Weighing,
                locale=locale,
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


class ChosenAdvocate:
    def __init__(self, choice: EngineChoice, by_model: LLMAdvocate, by_rule: Advocate) -> None:
        self._choice, self._by_model, self._by_rule = choice, by_model, by_rule

    async def advocate(self, debate_input: DebateInput) -> Argument:
        return await self._choice.make(
            self._by_model.agent,
            lambda: self._by_model.advocate(debate_input),
            lambda: self._by_rule.advocate(debate_input),
        )


class ChosenResolver:
    """The rule weighs pleas made by rule only: a model's confidence is no weight of experts."""

    def __init__(
        self, choice: EngineChoice, by_model: LLMResolver, by_rule: Resolver, bull: Advocate, bear: Advocate
    ) -> None:
        self._choice, self._by_model, self._by_rule = choice, by_model, by_rule
        self._bull, self._bear = bull, bear

    async def resolve(self, debate_input: DebateInput, bull: Argument, bear: Argument) -> Resolution:
        async def by_rule() -> Resolution:
            pleas = [await side.advocate(debate_input) for side in (self._bull, self._bear)]
            return await self._by_rule.resolve(debate_input, *pleas)

        return await self._choice.make(
            self._by_model.agent, lambda: self._by_model.resolve(debate_input, bull, bear), by_rule
        )

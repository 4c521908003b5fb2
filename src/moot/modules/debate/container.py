"""Wires the debate."""

from moot.modules.debate.application.debate_service import DebateService
from moot.modules.debate.infrastructure.llm_debaters import (
    BearPlea,
    BullPlea,
    ChosenAdvocate,
    ChosenResolver,
    LLMAdvocate,
    LLMResolver,
)
from moot.modules.debate.infrastructure.rubric_advocates import RubricBear, RubricBull
from moot.modules.debate.infrastructure.rubric_resolver import RubricResolver
from moot.modules.llm_platform.application.engine_choice import EngineChoice
from moot.modules.llm_platform.application.speaker import Speaker


class DebateContainer:
    """Without a choice and a speaker, everybody speaks by rule."""

    def __init__(self, choice: EngineChoice | None = None, speaker: Speaker | None = None) -> None:
        self._choice, self._speaker = choice, speaker

    def debate_service(self) -> DebateService:
        bull, bear, resolver = RubricBull(), RubricBear(), RubricResolver()
        if not (self._choice and self._speaker):
            return DebateService(bull, bear, resolver)
        return DebateService(
            ChosenAdvocate(self._choice, LLMAdvocate(self._speaker, "bull_advocate", BullPlea), bull),
            ChosenAdvocate(self._choice, LLMAdvocate(self._speaker, "bear_advocate", BearPlea), bear),
            ChosenResolver(self._choice, LLMResolver(self._speaker), resolver, bull, bear),
        )

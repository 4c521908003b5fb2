"""Wires the debate."""

from moot.modules.debate.application.debate_service import DebateService
from moot.modules.debate.infrastructure.debaters import (
    BearPlea,
    BullPlea,
    LLMAdvocate,
    LLMResolver,
    RubricBear,
    RubricBull,
    RubricResolver,
)
from moot.modules.llm_platform.application.speaker import EngineChoice, Speaker


class DebateContainer:
    """Without a choice and a speaker, everybody speaks by rule."""

    def __init__(self, choice: EngineChoice | None = None, speaker: Speaker | None = None) -> None:
        self._choice, self._speaker = choice, speaker

    def debate_service(self) -> DebateService:
        bull, bear, resolver = RubricBull(), RubricBear(), RubricResolver()
        if not (self._choice and self._speaker):
            return DebateService(bull, bear, resolver)
        bull_model = LLMAdvocate(self._speaker, self._choice, "bull_advocate", BullPlea, bull)
        bear_model = LLMAdvocate(self._speaker, self._choice, "bear_advocate", BearPlea, bear)
        weighing = LLMResolver(self._speaker, self._choice, resolver, (bull, bear))
        return DebateService(bull_model, bear_model, weighing)

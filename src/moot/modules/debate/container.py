"""Wires the debate."""

from moot.modules.debate.application.debate_service import DebateService
from moot.modules.debate.infrastructure.debaters import (
    LLMAdvocate,
    LLMResolver,
    RubricAdvocate,
    RubricResolver,
)
from moot.modules.llm_platform.application.speaker import EngineChoice, Speaker


class DebateContainer:
    """Without a choice and a speaker, everybody speaks by rule."""

    def __init__(self, choice: EngineChoice | None = None, speaker: Speaker | None = None) -> None:
        self._choice, self._speaker = choice, speaker

    def debate_service(self) -> DebateService:
        if not (self._choice and self._speaker):
            return DebateService(RubricAdvocate("BULLISH"), RubricAdvocate("BEARISH"), RubricResolver())
        engine = (self._speaker, self._choice)
        return DebateService(
            LLMAdvocate("BULLISH", *engine), LLMAdvocate("BEARISH", *engine), LLMResolver(*engine)
        )

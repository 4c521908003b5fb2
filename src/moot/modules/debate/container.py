"""Wires the debate."""

from moot.modules.debate.application.debate_service import DebateService
from moot.modules.debate.infrastructure.advocates import ModelNarrator, ModelPleader
from moot.modules.llm_platform.application.speaker import EngineChoice, Speaker


class DebateContainer:
    def __init__(self, choice: EngineChoice, speaker: Speaker) -> None:
        self._voice = (choice, speaker)

    def debate_service(self) -> DebateService:
        bull, bear = ModelPleader("bull", *self._voice), ModelPleader("bear", *self._voice)
        return DebateService(bull, bear, ModelNarrator(*self._voice))

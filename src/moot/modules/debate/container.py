"""Wires the debate."""

from moot.modules.debate.application.debate_service import DebateService
from moot.modules.debate.domain.debate import DebateInput, Speech, Turn
from moot.modules.llm_platform.application.speaker import EngineChoice, Speaker
from moot.shared.domain.claims import ArgumentGraph


class ByRule:
    """Adds nothing: the experts' claims and the schemes between them are on the table already."""

    async def speak(self, debate_input: DebateInput, so_far: ArgumentGraph, last: Turn | None) -> Turn:
        return Turn()

    async def explain(
        self, debate_input: DebateInput, argument: ArgumentGraph, bull: Turn, bear: Turn
    ) -> Speech:
        return Speech()


class DebateContainer:
    def __init__(self, choice: EngineChoice, speaker: Speaker) -> None:
        self._voice = (choice, speaker)

    def debate_service(self) -> DebateService:
        return DebateService(ByRule(), ByRule(), ByRule())

"""On replay whoever judged then judges again, whatever models the desk has by now."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from moot.modules.llm_platform.application.engine_choice import EngineChoice
from moot.shared.infrastructure.execution_context import current_replay

T = TypeVar("T")


class RecordedEngine(EngineChoice):
    """The desk's choice; on replay the session's."""

    @property
    def by_model(self) -> bool:
        return self._then().by_model

    async def make(
        self, agent: str, by_model: Callable[[], Awaitable[T]], by_rule: Callable[[], Awaitable[T]]
    ) -> T:
        return await self._then().make(agent, by_model, by_rule)

    def _then(self) -> EngineChoice:
        replay = current_replay()
        if replay is None or replay.analyst is None:
            return EngineChoice(self._llm, self._analyst, self._fallback)
        return EngineChoice(self._llm, replay.analyst, replay.fallback)

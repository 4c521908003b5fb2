"""Whether an agent's judgement is made by a model or by rules."""

from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

import structlog

from moot.modules.llm_platform.application.llm_service import LLMService
from moot.shared.domain.errors import AppError
from moot.shared.infrastructure.execution_context import current_replay

logger = structlog.get_logger(__name__)

T = TypeVar("T")
Analyst = Literal["auto", "rubric", "llm"]
Fallback = Literal["none", "rubric"]


class EngineChoice:
    """`auto` asks a model when one is configured. If it fails, its agent has failed, unless there is a `fallback`.

    On replay whoever judged then judges again, whatever models the desk has by now.
    """

    def __init__(self, llm: LLMService, analyst: Analyst = "auto", fallback: Fallback = "none") -> None:
        self._llm, self._analyst, self._fallback = llm, analyst, fallback

    @property
    def by_model(self) -> bool:
        analyst, _ = self._settings()
        return analyst == "llm" or (analyst == "auto" and self._llm.configured)

    async def make(
        self, agent: str, by_model: Callable[[], Awaitable[T]], by_rule: Callable[[], Awaitable[T]]
    ) -> T:
        if not self.by_model:
            return await by_rule()
        try:
            return await by_model()
        except AppError as e:
            if self._settings()[1] == "none":
                raise
            logger.warning("model failed, judged by rule instead", agent=agent, error=str(e))
            return await by_rule()

    def _settings(self) -> tuple[Analyst, Fallback]:
        """The desk's; on replay the session's."""
        replay = current_replay()
        if replay is None or replay.analyst is None:
            return self._analyst, self._fallback
        return replay.analyst, replay.fallback

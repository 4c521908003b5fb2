"""Wires the judge."""

from moot.modules.judge.application.judge_service import JudgeService
from moot.modules.judge.infrastructure.verdict_agents import LLMVerdictAgent, RubricVerdictAgent
from moot.modules.llm_platform.application.speaker import EngineChoice, Speaker


class JudgeContainer:
    """Without a choice and a speaker, the judge rules by rule."""

    def __init__(
        self, quorum: int = 2, choice: EngineChoice | None = None, speaker: Speaker | None = None
    ) -> None:
        self._quorum, self._choice, self._speaker = quorum, choice, speaker

    def judge_service(self) -> JudgeService:
        if self._choice and self._speaker:
            return JudgeService(LLMVerdictAgent(self._speaker, self._choice), self._quorum)
        return JudgeService(RubricVerdictAgent(), self._quorum)

"""Wires the judge."""

from moot.modules.judge.application.judge_service import JudgeService
from moot.modules.judge.infrastructure.verdict_agents import DebateJudge
from moot.modules.llm_platform.application.speaker import EngineChoice, Speaker


class JudgeContainer:
    def __init__(self, quorum: int, choice: EngineChoice, speaker: Speaker) -> None:
        self._quorum, self._agent = quorum, DebateJudge(choice, speaker)

    def judge_service(self) -> JudgeService:
        return JudgeService(self._agent, self._quorum)

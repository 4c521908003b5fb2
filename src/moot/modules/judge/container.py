"""Wires the judge."""

from pathlib import Path

from moot.modules.judge.application.judge_service import JudgeService
from moot.modules.judge.domain.calibration import read_calibration
from moot.modules.judge.infrastructure.verdict_agents import DebateJudge
from moot.modules.llm_platform.application.speaker import EngineChoice, Speaker


class JudgeContainer:
    def __init__(
        self, quorum: int, choice: EngineChoice, speaker: Speaker, calibration: Path | None = None
    ) -> None:
        self._quorum, self._agent, self._calibration = quorum, DebateJudge(choice, speaker), calibration

    def judge_service(self) -> JudgeService:
        table = read_calibration(self._calibration) if self._calibration else None
        return JudgeService(self._agent, self._quorum, table)

"""Wires the judge."""

from moot.modules.judge.application.judge_service import JudgeService
from moot.modules.judge.infrastructure.rubric_verdict_agent import RubricVerdictAgent


class JudgeContainer:
    def __init__(self, quorum: int = 2) -> None:
        self._quorum = quorum

    def judge_service(self) -> JudgeService:
        return JudgeService(RubricVerdictAgent(), self._quorum)

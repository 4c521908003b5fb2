"""The judge's door: a debate in, a verdict on its symbol out."""

from moot.modules.judge.domain.calibration import Calibration
from moot.modules.judge.domain.verdict import JudgeInput, Verdict, VerdictAbstained, VerdictAgent, VerdictDTO
from moot.modules.judge.domain.wording import bound, frame, restate

__all__ = ["JudgeInput", "Verdict", "VerdictAbstained", "VerdictDTO", "restate"]


class JudgeService:
    def __init__(self, agent: VerdictAgent, quorum: int, calibration: Calibration | None = None) -> None:
        self._agent, self._quorum, self._calibration = agent, quorum, calibration

    async def run(self, judge_input: JudgeInput) -> VerdictDTO:
        """Raises `VerdictAbstained` when too few experts were heard; whatever the agent raises passes through."""
        judge_input.require_quorum(self._quorum)
        ruled = await self._agent.judge(judge_input)
        verdict = bound(judge_input, VerdictDTO(symbol=judge_input.symbol, **ruled.model_dump()))
        today, table = judge_input.today, self._calibration
        forecast = table.forecast(judge_input.lean, today) if table and today else None
        return VerdictDTO(**verdict.model_dump() | frame(judge_input, verdict, forecast))

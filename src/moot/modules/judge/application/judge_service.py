"""The judge's door: a debate in, a verdict on its symbol out."""

from moot.modules.judge.domain.verdict import (
    JudgeInput,
    Verdict,
    VerdictAbstained,
    VerdictAgent,
    VerdictDTO,
    restate,
)

__all__ = ["JudgeInput", "Verdict", "VerdictAbstained", "VerdictDTO", "restate"]


class JudgeService:
    def __init__(self, agent: VerdictAgent, quorum: int) -> None:
        self._agent, self._quorum = agent, quorum

    async def run(self, judge_input: JudgeInput) -> VerdictDTO:
        """Raises `VerdictAbstained` when too few experts were heard; whatever the agent raises passes through."""
        judge_input.require_quorum(self._quorum)
        verdict = await self._agent.judge(judge_input)
        return VerdictDTO(symbol=judge_input.symbol, **verdict.model_dump())

"""Experts, debate and judge that take a given time and compute nothing."""

import asyncio
from typing import Any

from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.ports.debate_gateway import IDebateGateway
from moot.modules.coordinator.domain.ports.judge_gateway import IJudgeGateway
from moot.modules.coordinator.domain.ports.research_expert_gateway import IResearchExpertGateway

TEXT = "An answer of some length, as a model would give it. " * 24


VERDICT = {
    "symbol": "900001.DEMO",
    "action": "HOLD",
    "position_percent": 0.0,
    "confidence": 0.6,
    "entry_strategy": "none",
    "stop_loss": "none",
    "take_profit": "none",
    "time_horizon": "months",
    "risk_warnings": ["one", "two"],
    "reasoning": TEXT,
    "levels": {},
    "engine": "llm",
}


class TimedResearch(IResearchExpertGateway):
    """`most_in_flight` is how many experts were ever inside at once."""

    def __init__(self, latency: float) -> None:
        self._latency = latency
        self._in_flight = 0
        self.most_in_flight = 0

    async def run_expert(
        self, expert_type: ExpertType, symbol: str, options: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        await asyncio.sleep(self._latency)
        self._in_flight -= 1
        return {"text": TEXT}


class TimedDebate(IDebateGateway):
    """Two turns: bull and bear together, then the resolution."""

    def __init__(self, latency: float) -> None:
        self._latency = latency

    async def run_debate(self, symbol: str, expert_results: dict[str, Any]) -> dict[str, Any]:
        await asyncio.gather(asyncio.sleep(self._latency), asyncio.sleep(self._latency))
        await asyncio.sleep(self._latency)
        return {"direction": "BULLISH", "bull_case": TEXT, "bear_case": TEXT, "text": TEXT}


class TimedJudge(IJudgeGateway):
    def __init__(self, latency: float) -> None:
        self._latency = latency

    async def run_verdict(self, symbol: str, debate_outcome: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(self._latency)
        return VERDICT

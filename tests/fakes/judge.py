"""A debate to judge, price evidence, and an agent that rules as it is told."""

from typing import Any

from moot.modules.judge.application.judge_service import JudgeInput, Verdict
from moot.shared.domain.evidence import Evidence

DEBATE: dict[str, Any] = {
    "symbol": "900001.DEMO",
    "direction": "BULLISH",
    "confidence": 0.8,
    "bull_thesis": "Margins rose to 31.5%.",
    "bear_thesis": "The price is 2.4 times book.",
    "risk_factors": ["Technical analyst: a close below 9.40", "Macro intelligence: rates rise"],
    "key_disagreements": [],
    "conflict_resolution": "The net is +0.60.",
    "locale": "en-US",
}
VERDICT: dict[str, Any] = {
    "action": "BUY",
    "position_percent": 0.2,
    "confidence": 0.8,
    "entry_strategy": "Enter.",
    "stop_loss": "Leave.",
    "take_profit": "Sell.",
    "time_horizon": "Months.",
    "risk_warnings": ["One.", "Two."],
    "reasoning": "Because.",
    "narrative_report": "A story.",
    "levels": {"entry": 10.0, "stop": 9.0, "target": 12.0},
    "engine": "llm",
    "grounding": None,
    "warnings": [],
}


def a_debate(**changes: Any) -> JudgeInput:
    return JudgeInput.model_validate(DEBATE | changes)


def a_verdict(**changes: Any) -> Verdict:
    return Verdict.model_validate(VERDICT | changes)


def evidence(**technical: float | str | None) -> list[Evidence]:
    return [
        Evidence(id=f"technical.{name}", value=value, unit="CNY", source="bars", as_of="2026-01-09T08:00:00Z")
        for name, value in technical.items()
        if value is not None
    ]


class FakeVerdictAgent:
    def __init__(self, ruling: Verdict | Exception) -> None:
        self._ruling = ruling

    async def judge(self, judge_input: JudgeInput) -> Verdict:
        if isinstance(self._ruling, Exception):
            raise self._ruling
        return self._ruling

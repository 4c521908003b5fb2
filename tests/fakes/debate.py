"""Experts' findings to argue over, and advocates and a resolver that say what they are told."""

import asyncio
from typing import Any, cast

from moot.modules.debate.application.debate_service import DebateInput, ExpertSummary
from moot.modules.debate.domain.debate import Argument, Resolution, Side
from moot.modules.llm_platform.application.speaker import EngineChoice, Speaker

BY_RULE = (EngineChoice(cast(Any, None), "rubric"), Speaker(cast(Any, None)))
"""Whoever has this voice never asks a model."""
TECHNICAL = "technical_analyst"
FINANCIAL = "financial_auditor"
VALUATION = "valuation_modeler"
MACRO = "macro_intelligence"
CATALYST = "catalyst_detective"


def found(
    signal: str, confidence: float, reasoning: str = "because", risk_warning: str = ""
) -> ExpertSummary:
    return ExpertSummary(signal=signal, confidence=confidence, reasoning=reasoning, risk_warning=risk_warning)


def findings(experts: dict[str, ExpertSummary], **more: Any) -> DebateInput:
    return DebateInput(symbol="900001.DEMO", expert_summaries=experts, **{"locale": "en-US"} | more)


def argument(direction: Side, confidence: float = 0.4) -> Argument:
    return Argument(
        direction=direction,
        confidence=confidence,
        core_thesis=f"{direction} thesis",
        supporting_arguments=[f"{direction} argument"],
        acknowledged=[f"{direction} concession"],
        triggers=[f"{direction} trigger"],
        narrative_report=f"{direction} story",
        engine="llm",
    )


class FakeAdvocate:
    """Pleads once `barrier` lets it: with a barrier for two, only together with the other side."""

    def __init__(self, plea: Argument | Exception, barrier: asyncio.Barrier | None = None) -> None:
        self._plea = plea
        self._barrier = barrier

    async def advocate(self, debate_input: DebateInput) -> Argument:
        if self._barrier:
            await self._barrier.wait()
        if isinstance(self._plea, Exception):
            raise self._plea
        return self._plea


class FakeResolver:
    """Rules NEUTRAL and tells which pleas it was given."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    async def resolve(self, debate_input: DebateInput, bull: Argument, bear: Argument) -> Resolution:
        if self._error:
            raise self._error
        return Resolution(
            direction="NEUTRAL",
            confidence=0.5,
            risk_matrix=[],
            key_disagreements=[],
            conflict_resolution=f"{bull.core_thesis} against {bear.core_thesis}",
            narrative_report="resolution story",
            engine="llm",
        )

"""The debate's door: what the experts found in, a resolved debate out."""

import asyncio

from moot.modules.debate.domain.debate import (
    Advocate,
    Argument,
    BearCase,
    BullCase,
    DebateInput,
    DebateOutcomeDTO,
    ExpertSummary,
    Resolution,
    Resolver,
)
from moot.modules.debate.domain.opinions import UnknownSignal

__all__ = [
    "DebateInput",
    "DebateOutcomeDTO",
    "DebateService",
    "ExpertSummary",
    "UnknownSignal",
]


class DebateService:
    def __init__(self, bull: Advocate, bear: Advocate, resolver: Resolver) -> None:
        self._bull = bull
        self._bear = bear
        self._resolver = resolver

    async def run(self, debate_input: DebateInput) -> DebateOutcomeDTO:
        """Bull and bear at the same time, then the resolution; whatever one of them raises passes through."""
        bull, bear = await asyncio.gather(
            self._bull.advocate(debate_input), self._bear.advocate(debate_input)
        )
        resolution = await self._resolver.resolve(debate_input, bull, bear)
        return _outcome(debate_input, bull, bear, resolution)


def _outcome(
    debate_input: DebateInput, bull: Argument, bear: Argument, resolution: Resolution
) -> DebateOutcomeDTO:
    narratives = [bull.narrative_report, bear.narrative_report, resolution.narrative_report]
    return DebateOutcomeDTO(
        **resolution.model_dump(exclude={"narrative_report"}),
        narrative_report="\n\n".join(narratives),
        symbol=debate_input.symbol,
        bull_case=BullCase(
            core_thesis=bull.core_thesis,
            supporting_arguments=bull.supporting_arguments,
            acknowledged_risks=bull.acknowledged,
        ),
        bear_case=BearCase(
            core_thesis=bear.core_thesis,
            supporting_arguments=bear.supporting_arguments,
            acknowledged_strengths=bear.acknowledged,
        ),
        evidence=debate_input.evidence,
        experts=list(debate_input.expert_summaries),
    )

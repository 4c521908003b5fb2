"""The debate's door: what the experts found in, a resolved debate out."""

import asyncio
from collections.abc import Awaitable, Iterator

from moot.modules.debate.domain.argument import Weighing, close
from moot.modules.debate.domain.debate import (
    SAY,
    Advocate,
    Argument,
    BearCase,
    BullCase,
    Case,
    DebateInput,
    DebateOutcomeDTO,
    ExpertSummary,
    Resolution,
    Resolver,
    UnknownSignal,
    combine,
)
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import Message

__all__ = ["DebateInput", "DebateOutcomeDTO", "ExpertSummary", "UnknownSignal"]

CASE = set(Case.model_fields)


class DebateService:
    def __init__(self, bull: Advocate, bear: Advocate, resolver: Resolver) -> None:
        self._bull, self._bear, self._resolver = bull, bear, resolver

    async def run(self, debate_input: DebateInput) -> DebateOutcomeDTO:
        """Bull and bear at the same time, then the resolution; whatever one of them raises passes through."""
        bull, bear = await _both(self._bull.advocate(debate_input), self._bear.advocate(debate_input))
        resolution = await self._resolver.resolve(debate_input, bull, bear)
        return _outcome(debate_input, bull, bear, resolution)


async def _both(*pleas: Awaitable[Argument]) -> list[Argument]:
    """Waits for both even if one fails, so that no paid call runs on behind a debate that is over."""
    ended = await asyncio.gather(*pleas, return_exceptions=True)
    for failure in ended:
        if isinstance(failure, BaseException):
            raise failure
    return [plea for plea in ended if isinstance(plea, Argument)]


def _outcome(
    debate_input: DebateInput, bull: Argument, bear: Argument, resolution: Resolution
) -> DebateOutcomeDTO:
    spoken = (bull, bear, resolution)
    return DebateOutcomeDTO(
        **resolution.model_dump(exclude={"narrative_report", "engine", "grounding", "warnings"}),
        narrative_report="\n\n".join(part.narrative_report for part in spoken if part.narrative_report),
        engine="llm" if all(part.engine == "llm" for part in spoken) else "rubric",
        grounding=combine(*(part.grounding for part in spoken)),
        warnings=[warning.in_locale(debate_input.locale) for warning in _warnings(*spoken)],
        symbol=debate_input.symbol,
        bull_case=BullCase(**bull.model_dump(include=CASE), acknowledged_risks=bull.acknowledged),
        bear_case=BearCase(**bear.model_dump(include=CASE), acknowledged_strengths=bear.acknowledged),
        evidence=debate_input.evidence,
        experts=list(debate_input.expert_summaries),
        argument=close(
            Weighing(debate_input.claims, [], frozenset(map(ExpertType, debate_input.expert_summaries)))
        ),
    )


def _warnings(bull: Argument, bear: Argument, resolution: Resolution) -> Iterator[Message]:
    """What is odd about each text; and who spoke by rule, when others spoke by model."""
    spoken: dict[str, Argument | Resolution] = {"bull": bull, "bear": bear, "resolution": resolution}
    for role, part in spoken.items():
        for warning in part.warnings:
            yield SAY("says", who=SAY(f"role.{role}"), text=warning)
    by_rule = [SAY(f"role.{role}") for role, part in spoken.items() if part.engine == "rubric"]
    if 0 < len(by_rule) < len(spoken):
        yield SAY("mixed_engines", by_rule=by_rule)

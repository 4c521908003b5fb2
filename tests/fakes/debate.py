"""Experts' findings and claims to argue over, and speakers that say what they are told."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from moot.modules.debate.application.debate_service import DebateInput, ExpertSummary
from moot.modules.debate.domain.debate import Speech, Turn
from moot.modules.llm_platform.application.speaker import EngineChoice, Speaker
from moot.shared.domain.claims import ArgumentGraph, Claim, Relation
from moot.shared.domain.experts import ExpertType

BY_RULE = (EngineChoice(cast(Any, None), "rubric"), Speaker(cast(Any, None)))
"""Whoever has this voice never asks a model."""
TECHNICAL = "technical_analyst"
FINANCIAL = "financial_auditor"
VALUATION = "valuation_modeler"
MACRO = "macro_intelligence"
CATALYST = "catalyst_detective"
AS_OF = "2026-01-12T08:00:00Z"


def found(
    signal: str, confidence: float, reasoning: str = "because", risk_warning: str = ""
) -> ExpertSummary:
    return ExpertSummary(signal=signal, confidence=confidence, reasoning=reasoning, risk_warning=risk_warning)


def findings(experts: dict[str, ExpertSummary], **more: Any) -> DebateInput:
    return DebateInput(symbol="900001.DEMO", expert_summaries=experts, **{"locale": "en-US"} | more)


def claim(kind: str, pull: float, dimension: str = "", **more: Any) -> Claim:
    """Of that kind, for it where `pull` is positive; its id is the rule's, as experts call theirs."""
    prefix, *rest = kind.split(".")
    expert = next(expert for expert in ExpertType if expert.prefix == prefix)
    told = {"zh-CN": f"{kind} 成立。", "en-US": f"{kind} holds."}
    made = {
        "id": ".".join([prefix, *rest[:1]]),
        "kind": kind,
        "expert": expert,
        "dimension": dimension or expert.dimensions[0],
        "side": "for" if pull > 0 else "against" if pull < 0 else "neither",
        "strength": abs(pull),
        "says": told,
        "evidence": [f"{prefix}.{rest[0]}"],
        "as_of": AS_OF,
    }
    return Claim.model_validate(made | more)


def relation(source: str, target: str, kind: str = "attack", **more: Any) -> Relation:
    made = {"source": source, "target": target, "kind": kind, "scheme": "test", "why": {"en-US": "So."}}
    return Relation.model_validate(made | more)


class FakePleader:
    """Says one turn a round, the last of them again and again; tells what it was given. With a barrier for two it
    speaks only together with the other side.
    """

    def __init__(self, *turns: Turn | Exception, barrier: asyncio.Barrier | None = None) -> None:
        self._turns: Sequence[Turn | Exception] = turns or (Turn(),)
        self._barrier = barrier
        self.given: list[tuple[ArgumentGraph, Turn | None]] = []

    async def speak(self, debate_input: DebateInput, so_far: ArgumentGraph, last: Turn | None) -> Turn:
        if self._barrier:
            await self._barrier.wait()
        turn = self._turns[min(len(self.given), len(self._turns) - 1)]
        self.given.append((so_far, last))
        if isinstance(turn, Exception):
            raise turn
        return turn


class FakeNarrator:
    def __init__(self, speech: Speech | Exception | None = None) -> None:
        self._speech = speech or Speech()
        self.given: list[tuple[ArgumentGraph, Turn, Turn]] = []

    async def explain(
        self, debate_input: DebateInput, argument: ArgumentGraph, bull: Turn, bear: Turn
    ) -> Speech:
        self.given.append((argument, bull, bear))
        if isinstance(self._speech, Exception):
            raise self._speech
        return self._speech

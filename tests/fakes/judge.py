"""A debate to judge, the argument in it, price evidence, and an agent that rules as it is told."""

from typing import Any

from moot.modules.judge.application.judge_service import JudgeInput, Verdict
from moot.shared.domain.claims import ArgumentGraph, Claim, PastVerdict
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import ExpertType

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


def claim(id_: str, pull: float, dimension: str = "trend", kind: str = "") -> Claim:
    """`technical.rsi` at +0.5 is for buying."""
    expert = next(expert for expert in ExpertType if expert.prefix == id_.partition(".")[0])
    return Claim(
        id=id_,
        kind=kind or f"{id_}.seen",
        expert=expert,
        dimension=dimension,
        side="for" if pull > 0 else "against" if pull < 0 else "neither",
        strength=abs(pull),
        says={"zh-CN": f"论点 {id_} 成立。", "en-US": f"The claim {id_} holds."},
        evidence=[id_],
        as_of="2026-01-09T08:00:00Z",
    )


def an_argument(*claims: Claim, conviction: float = 0.4, lean: int = 1, **more: Any) -> ArgumentGraph:
    direction = "NEUTRAL" if conviction < 0.1 else "BULLISH" if lean > 0 else "BEARISH"
    known = {
        "claims": list(claims),
        "relations": [],
        "heard": list(ExpertType),
        "strengths": {c.id: c.strength for c in claims},
        "dimensions": {f"{c.expert.prefix}.{c.dimension}": c.pull for c in claims},
        "motion": 0.5 + lean * conviction / 2,
        "conviction": conviction,
        "direction": direction,
        "confidence": 0.5 + conviction / 2,
        "decisive": [],
    }
    return ArgumentGraph.model_validate(known | more)


def argued(*claims: Claim, lean: int = 1, conviction: float = 0.4, **more: Any) -> dict[str, Any]:
    """The parts of a debate that follow from its argument."""
    graph = an_argument(*claims, lean=lean, conviction=conviction, **more)
    return {"argument": graph, "direction": graph.direction, "confidence": round(graph.confidence, 2)}


def last_time(action: str, **pulls: float) -> PastVerdict:
    """A month ago, with claims by id, `__` for the dot."""
    past = {
        id_.replace("__", "."): {"pull": pull, "says": claim(id_.replace("__", "."), pull).says}
        for id_, pull in pulls.items()
    }
    session, confidence = "00000000-0000-0000-0000-000000000001", 0.7
    told = {
        "session_id": session,
        "as_of": "2025-12-09T08:00:00Z",
        "action": action,
        "confidence": confidence,
    }
    return PastVerdict.model_validate(told | {"claims": past})


class FakeVerdictAgent:
    def __init__(self, ruling: Verdict | Exception) -> None:
        self._ruling = ruling

    async def judge(self, judge_input: JudgeInput) -> Verdict:
        if isinstance(self._ruling, Exception):
            raise self._ruling
        return self._ruling

"""An argument of 100 claims (relations by rule, strengths, outcome, decisive claims) and its verdict: within 5 ms."""

import statistics
import time
from datetime import UTC, datetime
from random import Random

from bench.line import Line
from moot.modules.debate.domain.argument import Weighing, close, extend
from moot.modules.debate.domain.schemes import load_schemes, relate
from moot.modules.judge.domain.verdict import JudgeInput
from moot.modules.judge.infrastructure.verdict_agents import rule_by_rubric
from moot.shared.domain.claims import Claim, Side
from moot.shared.domain.experts import ExpertType

CLAIMS = 100
ARGUMENTS = 30
ROUNDS = 5
BUDGET = 0.005
AS_OF = datetime(2026, 1, 12, 8, tzinfo=UTC)


async def lines() -> list[Line]:
    drawn = [draw_claims(Random(seed)) for seed in range(ARGUMENTS)]
    rounds = [statistics.mean([await cpu_of(claims) for claims in drawn]) for _ in range(ROUNDS)]
    related = statistics.mean(len(relate(claims)) for claims in drawn)
    took = min(rounds)
    detail = f"{took * 1e3:.2f} ms, {related:.0f} relations, {ARGUMENTS} arguments"
    return [Line(f"argument of {CLAIMS} claims, verdict / {BUDGET * 1e3:.0f} ms", took / BUDGET, 1.0, detail)]


async def cpu_of(claims: list[Claim]) -> float:
    started = time.process_time()
    argument = close(extend(Weighing([], [], frozenset(ExpertType)), claims, relate(claims)))
    told = {"bull_thesis": "", "bear_thesis": "", "conflict_resolution": ""}
    weighed = {"direction": argument.direction, "confidence": argument.confidence, "argument": argument}
    await rule_by_rubric(
        JudgeInput(
            symbol="900001.DEMO", **weighed, **told, risk_factors=[], key_disagreements=[], as_of=AS_OF
        )
    )
    return time.process_time() - started


def draw_claims(chance: Random) -> list[Claim]:
    """First of the kinds that the schemes know, each once as in a session, so that they bear on each other."""
    known = sorted({name for scheme in load_schemes() for name in (*scheme.by, *scheme.on)})
    others = [f"{expert.prefix}.other" for expert in ExpertType]
    kinds = chance.sample(known, min(CLAIMS, len(known)))
    kinds += chance.choices(others, k=CLAIMS - len(kinds))
    by_prefix = {expert.prefix: expert for expert in ExpertType}
    return [make_claim(n, kind, by_prefix, chance) for n, kind in enumerate(kinds)]


def make_claim(number: int, kind: str, experts: dict[str, ExpertType], chance: Random) -> Claim:
    name, _, named = kind.partition(":")
    side: Side = "for" if (named or chance.choice(["for", "against"])) == "for" else "against"
    expert = experts[name.partition(".")[0]]
    return Claim(
        id=f"{name}.{number}",
        kind=f"{name}.{number}" if named else name,
        expert=expert,
        dimension=chance.choice(expert.dimensions),
        side=side,
        strength=chance.choice([0.25, 0.5, 0.75]),
        says={"en-US": name},
        evidence=[name],
        as_of=AS_OF,
    )

"""An argument of 100 claims: relations by rule, strengths, outcome and decisive claims, against a budget of 5 ms."""

import statistics
import time
from datetime import UTC, datetime
from random import Random

from bench.line import Line
from moot.modules.debate.domain.argument import Weighing, close, extend
from moot.modules.debate.domain.schemes import load_schemes, relate
from moot.shared.domain.claims import Claim, Side
from moot.shared.domain.experts import ExpertType

CLAIMS = 100
ARGUMENTS = 30
ROUNDS = 5
BUDGET = 0.005
AS_OF = datetime(2026, 1, 12, 8, tzinfo=UTC)


async def lines() -> list[Line]:
    drawn = [draw_claims(Random(seed)) for seed in range(ARGUMENTS)]
    rounds = [statistics.mean(cpu_of(claims) for claims in drawn) for _ in range(ROUNDS)]
    related = statistics.mean(len(relate(claims)) for claims in drawn)
    took = min(rounds)
    detail = f"{took * 1e3:.2f} ms, {related:.0f} relations, {ARGUMENTS} arguments"
    return [Line(f"argument of {CLAIMS} claims / {BUDGET * 1e3:.0f} ms", took / BUDGET, 1.0, detail)]


def cpu_of(claims: list[Claim]) -> float:
    started = time.process_time()
    close(extend(Weighing([], [], frozenset(ExpertType)), claims, relate(claims)))
    return time.process_time() - started


def draw_claims(chance: Random) -> list[Claim]:
    """Of the kinds that the schemes know, so that they bear on each other, on dimensions as they come."""
    kinds = sorted({name for scheme in load_schemes() for name in (*scheme.by, *scheme.on)})
    by_prefix = {expert.prefix: expert for expert in ExpertType}
    return [make_claim(n, chance.choice(kinds), by_prefix, chance) for n in range(CLAIMS)]


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

"""Decisions a second: by many rules, and on the record."""

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import Connection, insert

from bench.line import Line
from bench.sessions import fresh_sqlite
from moot.cli import server
from moot.modules.governance.application.decision_log import make_record
from moot.modules.governance.container import RuleBook
from moot.modules.governance.domain.conditions import ToolProfile
from moot.modules.governance.domain.decisions import DecisionRequest, ValidationResult
from moot.modules.governance.domain.rules import EnhancedRule
from moot.modules.governance.infrastructure.persistence.decision_log import SqlDecisionLog
from moot.modules.governance.infrastructure.persistence.tables import RulesetRow
from moot.shared.domain.clock import SystemClock
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.database import Database

TOOLS, GLOBAL = 20, 50
VIOLATING = 0.05
REQUESTS, ROUNDS = 5_000, 5
WANTED_PER_SECOND, WANTED_P99 = 20_000, 1e-3
COMMITS, CALLERS = 200, 50
NOW = SystemClock().now()

ARGUMENTS = {
    "limit": {"type": "integer"},
    "amount": {"type": "number"},
    "region": {"type": "string"},
    "table": {"type": "string"},
    "timeout": {"type": "number"},
    "confirmed": {"type": "boolean"},
}
PROFILES = {
    f"tool_{n}": ToolProfile(
        name=f"tool_{n}",
        parameters={"properties": ARGUMENTS, "required": list(ARGUMENTS)},
        side_effects=False,
    )
    for n in range(TOOLS)
}


class Timed(NamedTuple):
    """The best of some rounds: what is left out is the machine's own business."""

    per_second: float
    p50: float
    p99: float


async def lines() -> list[Line]:
    few, many = timed(1_000), timed(10_000)
    return [
        Line(
            f"{WANTED_PER_SECOND:,} / decisions a second",
            WANTED_PER_SECOND / few.per_second,
            1.0,
            f"{few.per_second:,.0f} on one core by 1,000 rules, {VIOLATING:.0%} of them violating",
        ),
        Line("p99 of a decision / 1 ms", few.p99 / WANTED_P99, 1.0, f"{few.p99 * 1e6:.0f} µs, 1,000 rules"),
        Line(
            "p50 of a decision, 10,000 / 1,000 rules",
            many.p50 / few.p50,
            2.0,
            f"{many.p50 * 1e6:.1f} µs against {few.p50 * 1e6:.1f} µs",
        ),
        *await durable(),
    ]


def timed(count: int) -> Timed:
    book = RuleBook(PROFILES)
    decide = book.validator(book.repository(rules(count))).validate
    asked = requests()
    stopped = sum(not decide(request).may_proceed for request in asked)
    assert abs(stopped / REQUESTS - VIOLATING) < VIOLATING / 2, f"{stopped} of {REQUESTS} violate"
    rounds = [_round(decide, asked) for _ in range(ROUNDS)]
    return Timed(
        *(best(values) for best, values in zip((max, min, min), zip(*rounds, strict=True), strict=True))
    )


def _round(decide: Callable[[DecisionRequest], object], asked: Sequence[DecisionRequest]) -> Timed:
    seconds = []
    for request in asked:
        started = time.perf_counter()
        decide(request)
        seconds.append(time.perf_counter() - started)
    return Timed(
        1 / statistics.mean(seconds), statistics.median(seconds), statistics.quantiles(seconds, n=100)[-1]
    )


def rules(count: int) -> list[EnhancedRule]:
    """`GLOBAL` for every tool call, the rest over the tools, in all the shapes that people write."""
    random = Random(7)
    return [_rule(n, None if n < GLOBAL else f"tool_{n % TOOLS}", random) for n in range(count)]


def _rule(n: int, tool: str | None, random: Random) -> EnhancedRule:
    shapes = ON_ALL_CALLS if tool is None else ON_ARGUMENTS
    condition = shapes[n // (1 if tool is None else TOOLS) % len(shapes)].format(
        n=n, high=1000 + random.randrange(100_000), low=-random.randrange(1, 1000)
    )
    scope = {"decision_types": ("tool_call",)} if tool is None else {"tools": (tool,)}
    return EnhancedRule.model_validate(
        {
            "id": f"rule.{n}",
            "name": f"Rule {n}",
            "category": "tool",
            "condition": condition,
            "action": "reject",
            "source": "system",
            **scope,
        }
    )


ON_ALL_CALLS = (
    "payload.tool == 'forbidden_{n}'",
    "context.token_used > {high}000",
    "context.iteration_count > {high}",
    "payload.tool.startsWith('admin_{n}')",
    "context.execution_time > {high}.0 && context.iteration_count > 3",
)
ON_ARGUMENTS = (
    "payload.args.limit > {high}",
    "payload.args.amount > {high}.5 && payload.args.region != 'home_{n}'",
    "payload.args.table == 'secret_{n}'",
    "payload.args.amount < {low}.0",
    "payload.args.region in ['forbidden_{n}', 'closed_{n}']",
    "payload.args.timeout > {high}.0 || payload.args.limit < {low}",
    "payload.args.confirmed && payload.args.table == 'vault_{n}'",
)


def requests() -> list[DecisionRequest]:
    random = Random(11)
    return [_request(n, random) for n in range(REQUESTS)]


def _request(n: int, random: Random) -> DecisionRequest:
    args: dict[str, Any] = {
        "limit": random.randrange(1, 900),
        "amount": random.uniform(1, 900),
        "region": random.choice(["north", "south", "east"]),
        "table": random.choice(["sales", "orders", "prices"]),
        "timeout": random.uniform(1, 60),
        "confirmed": random.random() < 0.5,
    }
    if random.random() < VIOLATING:
        args |= {"amount": -5000.0}
    context = {"token_used": 500, "iteration_count": 1, "execution_time": 2.0}
    return DecisionRequest(
        f"d-{n}", "tool_call", {"tool": f"tool_{n % TOOLS}", "args": args}, context, "bench", NOW
    )


async def durable() -> list[Line]:
    """On the record, before anybody acts: against commits of the same database, one row each, in a process that has
    settled as a server does."""
    async with fresh_sqlite() as database:
        trail = AuditTrail(database)
        log = SqlDecisionLog(trail, strict=True)
        book = RuleBook(PROFILES)
        decide = book.validator(book.repository(rules(1_000))).validate
        asked = [request for request in requests() if decide(request).may_proceed][: COMMITS * 5]

        async def decided(request: DecisionRequest, session_id: UUID | None = None) -> None:
            result: ValidationResult = decide(request)
            await log.write(make_record(request, result, session_id=session_id, workspace="default"))

        await decided(asked[0])
        with server.settle():
            bare = await bare_rate(database)
            alone = await rate(asked[:COMMITS], decided, 1)
            together = await rate(asked, decided, CALLERS)
        await trail.finish()
    return [
        Line(
            "bare commits / durable decisions, one at a time",
            bare / alone,
            2.0,
            f"{bare:,.0f} against {alone:,.0f} a second, SQLite",
        ),
        Line(
            f"5 x bare commits / durable decisions, {CALLERS} callers",
            5 * bare / together,
            1.0,
            f"{together:,.0f} a second, {together / bare:.1f} x bare",
        ),
    ]


async def bare_rate(database: Database) -> float:
    """One row, one commit, through the same driver."""
    rows = [
        {
            "id": uuid4(),
            "workspace_id": "bench",
            "number": n,
            "digest": "0" * 64,
            "rules": [],
            "note": "",
            "created_by": "bench",
            "created_at": NOW,
        }
        for n in range(COMMITS)
    ]
    started = time.perf_counter()
    for row in rows:

        def write(db: Connection, row: dict[str, Any] = row) -> None:
            db.execute(insert(RulesetRow), [row])

        await database.write(write)
    return COMMITS / (time.perf_counter() - started)


async def rate(asked: Sequence[DecisionRequest], decided: Any, at_once: int) -> float:
    gate = asyncio.Semaphore(at_once)

    async def one(request: DecisionRequest) -> None:
        async with gate:
            await decided(request)

    started = time.perf_counter()
    await asyncio.gather(*map(one, asked))
    return len(asked) / (time.perf_counter() - started)

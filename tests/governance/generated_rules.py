"""Rules and decisions by chance, from a seed: every operator and type, and values as wrong as payloads can be."""

import math
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

from moot.modules.governance.domain.conditions import Facts, PastCall, ToolProfile
from moot.modules.governance.domain.rules import EnhancedRule
from tests.governance.factories import NOON, facts, rule

WORDS = ["a", "ab", "abc", "B", "b", "", "工具", "a b", " a"]
WHOLE = [-3, 0, 1, 2, 3, 10, 2**53, 2**53 + 1]
MOMENTS = ["2026-03-01T09:00:00+08:00", "2026-03-02T12:00:00+08:00", "2026-03-02T15:00:00+08:00"]
POINTS = [-1.5, 0.0, 0.5, 1.0, 2.0, 9.75]
WRONG: list[Any] = [
    None, True, "1", "x\0y", "a\0", math.nan, math.inf, [], ["a", 1], {}, {"x": 1}, 1.5, 7, 2**53 + 1, 2.0**53,
    2**70, -(2**63),
]  # fmt: skip

NEARLY: dict[str, list[Any]] = {
    "string": [1, None, "a\0", ["a"]],
    "integer": [True, 1.5, "1", math.nan, 2.0**53, 2**63],
    "number": [True, "1", math.nan, math.inf, 2**70],
    "boolean": ["true", 1, 0, None],
    "strings": ["a", {"a": 1}, ["a", 1], [["a"]], ["a\0"]],
    "time": ["noon", "2026-03-02", "2026-03-02T12:00:00", 1, True],
}

TOOLS = {
    "typed": ToolProfile(
        name="typed",
        parameters={
            "properties": {
                "text": {"type": "string"},
                "limit": {"type": "integer"},
                "amount": {"type": "number"},
                "flag": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "odd": {},
            },
            "required": ["text", "limit"],
        },
    )
}
TYPED = {
    "payload.args.text": "string", "payload.args.limit": "integer", "payload.args.amount": "number",
    "payload.args.flag": "boolean", "payload.args.tags": "strings",
}  # fmt: skip
CONTEXT = {
    "context.goal": "string", "context.token_used": "integer", "context.cost": "number",
    "context.is_demo": "boolean", "context.open_breakers": "strings", "context.now": "time",
}  # fmt: skip
VERDICT = {
    "payload.symbol": "string", "payload.confidence": "number", "payload.risk_warnings": "strings",
    "payload.levels.stop": "number", "payload.action": "string",
}  # fmt: skip
ARGUMENTS = ["text", "limit"]
LOOSE = {"text": "string", "limit": "integer", "amount": "number", "flag": "boolean", "tags": "strings"}


class Case:
    """Where a rule is for, and how its fields are spelt; `loose`: below an untyped map."""

    def __init__(self, fields: dict[str, str], loose: str | None = None, **belongs: Any) -> None:
        self.fields = fields | CONTEXT | {f"{loose}.{name}": kind for name, kind in LOOSE.items() if loose}
        self.loose = loose
        self.belongs = belongs


CASES = [
    Case({"payload.tool": "string"}, "payload.args", decision_types=("tool_call",)),
    Case({"payload.tool": "string"} | TYPED, tools=("typed",)),
    Case({"payload.tool": "string"}, "payload.args", tools=("loose", "typed2")),
    Case(VERDICT, decision_types=("verdict",)),
    Case({}, "payload", decision_types=()),
]


def some_rules(random: Random, size: int = 6) -> list[EnhancedRule]:
    return [rule(**_rule(random, number)) for number in range(random.randint(1, size))]


def pairs(seed: int, decisions: int, size: int = 6) -> tuple[list[EnhancedRule], list[Facts]]:
    """One set of rules and several decisions to try it on."""
    random = Random(seed)
    return some_rules(random, size), [decision(random) for _ in range(decisions)]


def _rule(random: Random, number: int) -> dict[str, Any]:
    case = random.choice(CASES)
    given = {"id": f"r{number}", "condition": condition(random, case, random.randint(0, 3)), **case.belongs}
    return given | {"priority": random.randint(0, 3), "enabled": random.random() > 0.05}


def condition(random: Random, case: Case, depth: int) -> str:
    if depth == 0:
        return random.choice(LEAVES)(random, case)
    left, right = (condition(random, case, random.randint(0, depth - 1)) for _ in range(2))
    return random.choice([f"({left} && {right})", f"({left} || {right})", f"!({left})", f"{left} && {right}"])


def _field(random: Random, case: Case, *kinds: str) -> str:
    return random.choice([name for name, kind in case.fields.items() if kind in kinds])


def _constant(random: Random, kind: str) -> str:
    return {
        "string": f"'{random.choice(WORDS)}'",
        "integer": str(random.choice(WHOLE)),
        "number": str(random.choice(POINTS)),
        "boolean": random.choice(["true", "false"]),
    }[kind]


def _compared(random: Random, case: Case) -> str:
    name = _field(random, case, "string", "integer", "number", "boolean")
    kind = case.fields[name]
    op = random.choice(["==", "!="] if kind == "boolean" else ["==", "!=", ">", ">=", "<", "<="])
    constant = _constant(random, kind)
    return f"{name} {op} {constant}" if random.random() < 0.7 else f"{constant} {op} {name}"


def _among(random: Random, case: Case) -> str:
    name = _field(random, case, "string", "integer")
    members = [_constant(random, case.fields[name]) for _ in range(random.randint(0, 3))]
    return f"{random.choice(['', '!'])}({name} in [{', '.join(members)}])"


def _text(random: Random, case: Case) -> str:
    method = random.choice(["startsWith", "endsWith", "contains", "matches"])
    return f"{random.choice(['', '!'])}{_field(random, case, 'string')}.{method}('{random.choice(['a', 'b', '工'])}')"


def _asked(random: Random, case: Case) -> str:
    name = _field(random, case, "string", "integer", "number", "boolean")
    constant = _constant(random, case.fields[name])
    return random.choice(
        [f"(has({name}) && {name} == {constant})", f"(!has({name}) || {name} != {constant})", f"!has({name})"]
    )


def _alone(random: Random, case: Case) -> str:
    return random.choice(["", "!"]) + _field(random, case, "boolean")


def _listed(random: Random, case: Case) -> str:
    name = _field(random, case, "strings")
    return random.choice(
        [
            f"'{random.choice(WORDS)}' in {name}",
            f"size({name}) > {random.randint(0, 2)}",
            f"{name}.exists(each, each == '{random.choice(WORDS)}')",
            f"{name}.all(each, each != '{random.choice(WORDS)}')",
        ]
    )


def _flow(random: Random, _case: Case) -> str:
    tool, window = random.choice(["a", "b"]), random.choice(["30s", "1m", "1h30m"])
    return random.choice(
        [
            f"after('{tool}')",
            f"!after('{tool}')",
            f"tainted('{random.choice(ARGUMENTS)}')",
            f"count('{tool}', '{window}') > {random.randint(0, 2)}",
            f"count('{tool}', duration('60s')) >= {random.randint(0, 2)}",
        ]
    )


def _timed(random: Random, _case: Case) -> str:
    op, moment = random.choice(["<", "<=", ">", ">=", "==", "!="]), random.choice(MOMENTS)
    return random.choice(
        [
            f"context.now {op} timestamp('{moment}')",
            f"context.now.getHours('+08:00') {op} {random.choice([9, 12, 15])}",
            f"(has(context.now) && context.now.getDayOfWeek() {op} 1)",
            "!has(context.now)",
        ]
    )


def _two_fields(random: Random, case: Case) -> str:
    return f"{_field(random, case, 'string')} == {_field(random, case, 'string')}"


LEAVES: list[Callable[[Random, Case], str]] = [
    _compared, _compared, _compared, _among, _text, _asked, _alone, _listed, _flow, _timed, _two_fields,
]  # fmt: skip


def decision(random: Random) -> Facts:
    kind = random.choice(["tool_call", "tool_call", "tool_call", "verdict", "unheard_of"])
    payload: dict[str, Any] = _some(random, LOOSE)
    if kind == "tool_call":
        payload = {"tool": random.choice(["typed", "loose", "typed2", "rm"]), "args": payload}
        if random.random() < 0.05:
            payload["args"] = random.choice(WRONG)
    if kind == "verdict":
        payload = _some(random, {name.split(".", 1)[1]: field for name, field in VERDICT.items()})
        stop = payload.pop("levels.stop", None)
        payload["levels"] = {"stop": stop}
    context = _some(random, {name.split(".", 1)[1]: field for name, field in CONTEXT.items()})
    return facts(payload, context, kind, history=_history(random), tainted=_taint(random))


def _some(random: Random, fields: dict[str, str]) -> dict[str, Any]:
    """Mostly right; now and then a field is missing, or is anything."""
    chosen = {name: kind for name, kind in fields.items() if random.random() > 0.06}
    return {
        name: _wrong(random, kind) if random.random() < 0.08 else _value(random, kind)
        for name, kind in chosen.items()
    }


def _wrong(random: Random, kind: str) -> Any:
    return random.choice(NEARLY[kind] if random.random() < 0.6 else WRONG)


def _value(random: Random, kind: str) -> Any:
    return {
        "string": lambda: random.choice(WORDS),
        "integer": lambda: random.choice([*WHOLE, 2.0]),
        "number": lambda: random.choice([*POINTS, 2, 1]),
        "boolean": lambda: random.random() < 0.5,
        "strings": lambda: random.sample(WORDS, random.randint(0, 3)),
        "time": lambda: random.choice(MOMENTS),
    }[kind]()


def _history(random: Random) -> list[PastCall]:
    ages = [0, 30, 59, 60, 61, 4000]
    return [
        PastCall(random.choice("ab"), NOON - timedelta(seconds=random.choice(ages)))
        for _ in range(random.randint(0, 4))
    ]


def _taint(random: Random) -> Callable[[str], bool]:
    unproven = random.sample(ARGUMENTS, random.randint(0, 2))
    fails = random.random() < 0.1

    def tainted(argument: str) -> bool:
        if fails:
            raise LookupError(argument)
        return argument in unproven

    return tainted

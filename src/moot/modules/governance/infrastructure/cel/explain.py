"""Why a condition holds: the smallest part of it that does, and the values that part saw."""

from collections.abc import Mapping
from typing import Any, Final

from cel_expr_python import cel

from moot.modules.governance.domain.conditions import Facts, Finding
from moot.modules.governance.infrastructure.cel.environment import Part, parted
from moot.modules.governance.infrastructure.cel.program import Judged, Program, step_into, value_of
from moot.modules.governance.infrastructure.cel.references import Path, spelt
from moot.shared.domain.messages import Message

LONG: Final = 200
MANY: Final = 20


def finding(program: Program, judged: Judged) -> Finding | None:
    """None: the condition does not hold. What cannot be decided holds."""
    error: str | Message | None = program.trouble(judged)
    try:
        if error is None and not program.holds(judged.activation):
            return None
    except RuntimeError as e:
        error = str(e)
    whole = program.source.strip()
    if error is not None or not program.has_choices:
        return Finding(whole, _seen(program, judged.facts), error)
    part = because(program.parts, program, judged.activation)
    return Finding(part, _seen(program.part(part), judged.facts))


def because(part: Part, program: Program, activation: cel.Activation) -> str:
    """Of a part that holds."""
    match part.op:
        case "||":
            held = [each for each in part.parts if _is(each, program, activation, expected=True)]
            reasons = [because(each, program, activation) for each in held]
            return min(reasons, key=len, default=part.text)
        case "&&":
            return " && ".join(_bracketed(because(each, program, activation)) for each in part.parts)
        case "!" if part.parts[0].op == "&&":
            failed = (e for e in part.parts[0].parts if _is(e, program, activation, expected=False))
            return next((f"!({each.text})" for each in failed), part.text)
    return part.text


def _bracketed(reason: str) -> str:
    return f"({reason})" if parted(reason).op == "||" else reason


def _is(part: Part, program: Program, activation: cel.Activation, *, expected: bool) -> bool:
    try:
        return program.part(part.text).holds(activation) is expected
    except RuntimeError:
        return False


def _seen(program: Program, facts: Facts) -> Mapping[str, Any]:
    paths: list[Path] = [(name,) for name in program.roots if not any(p[0] == name for p in program.paths)]
    seen = {spelt(path): _value(facts, path) for path in [*paths, *program.paths]}
    return {name: _shortened(value) for name, value in seen.items() if value is not None}


def _value(facts: Facts, path: Path) -> Any:
    value = value_of(facts, str(path[0]))
    for step in path[1:]:
        value = value if step is None else step_into(value, step, None)
    return value


def _shortened(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONG:
        return value[:LONG] + "…"
    if isinstance(value, Mapping):
        return {key: _shortened(value[key]) for key in list(value)[:MANY]}
    if isinstance(value, list | tuple):
        return [_shortened(member) for member in value[:MANY]]
    return value

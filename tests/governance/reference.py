"""What the engine must answer, told one rule after the other by CEL itself: no index, no parts, nothing shared.

The guards are written down a second time, from the text of a condition instead of its tree, for conditions in the
plain spelling of `generated_rules` (texts in single quotes, no escapes, no comments).
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from moot.modules.governance.domain.conditions import Facts, ToolProfile
from moot.modules.governance.domain.rules import EnhancedRule, fields_for
from moot.modules.governance.infrastructure.cel.environment import JUDGED, environment

PATH = re.compile(r"(?<![\w.])(?:payload|context)(?:\.\w+)+(?![\w(])")
CONSTANT = r"(''|-?\d+\.\d+|-?\d+|true|false|null)"
TEXT_METHODS = re.compile(r"\.(startsWith|endsWith|contains|matches|lowerAscii|trim)\(")
LOOP = re.compile(r"((?:payload|context)(?:\.\w+)+)\.(exists|all)\((\w+), ([^()]*)\)")
AS_CEL_TAKES_IT: Mapping[str, Callable[[Any], Any]] = {
    "number": float,
    "integer": int,
    "time": lambda value: datetime.fromisoformat(value) if isinstance(value, str) else value,
}
Tools = Mapping[str, ToolProfile]


def fired(rules: Sequence[EnhancedRule], facts: Facts, tools: Tools = {}) -> list[tuple[str, bool]]:  # noqa: B006
    """The ids of the broken rules, in order, each with whether it could not be decided."""
    ordered = sorted((r for r in rules if r.enabled and applies(r, facts)), key=lambda r: r.order)
    answers = [(rule.id, answer(rule, facts, tools)) for rule in ordered]
    return [(id_, said == "error") for id_, said in answers if said != "no"]


def applies(rule: EnhancedRule, facts: Facts) -> bool:
    of_type = not rule.for_types or facts.decision_type in rule.for_types
    return of_type and (not rule.tools or facts.tool in rule.tools)


def answer(rule: EnhancedRule, facts: Facts, tools: Tools) -> str:
    source, kinds = str(rule.condition), fields_for(rule, tools)
    data: dict[str, Any] = {}
    for name, kind in kinds.items():
        value = facts.payload if name == "payload" else facts.values.get(name)
        data[f"_has.{name}"] = value is not None
        if value is not None and fits(value, kind):
            data[name] = AS_CEL_TAKES_IT.get(kind, lambda same: same)(value)
    if any(lacking(data, facts, source, kinds)):
        return "error"
    runnable = re.sub(r"has\(([\w.]+)\)", lambda m: f"_has.{m[1]}" if m[1] in kinds else m[0], source)
    token = JUDGED.set(facts)
    try:
        said = compiled(runnable, frozenset(kinds.items())).eval(data=data).value()
    except RuntimeError:
        return "error"
    finally:
        JUDGED.reset(token)
    return ("yes" if said else "no") if isinstance(said, bool) else "error"


@lru_cache(maxsize=256)
def compiled(runnable: str, fields: frozenset[Any]) -> Any:
    return environment(fields).compile(runnable)


def lacking(data: Mapping[str, Any], facts: Facts, source: str, kinds: Mapping[str, str]) -> Iterator[bool]:
    """For every path the condition names, whether it is missing or wrong."""
    plain = re.sub(r"'[^']*'", "''", source)
    asked = set(re.findall(r"has\(([\w.]+)\)", plain))
    paths = {path.rpartition(".")[0]: set[str]() for path in asked if path not in kinds}
    for path, expected in mentioned(plain):
        paths[path] = paths.get(path, set()) | expected
    for path, expected in paths.items():
        root = max((name for name in kinds if f"{path}.".startswith(f"{name}.")), key=len)
        present = (facts.payload if root == "payload" else facts.values.get(root)) is not None
        if not present:
            yield root not in asked
        elif root not in data:
            yield True
        elif path != root:
            yield from below(data[root], root, path[len(root) + 1 :].split("."), expected, asked)


def mentioned(plain: str) -> Iterator[tuple[str, set[str]]]:
    """Paths outside `has()`, and what a loop looks at in each member."""
    for loop in LOOP.finditer(plain):
        for inside in re.finditer(rf"\b{loop[3]}((?:\.\w+)*)(?![\w(])", loop[4]):
            yield f"{loop[1]}.[]{inside[1]}", expected_at(loop[4], inside.start(), inside.end())
        yield loop[1], set()
    rest = LOOP.sub(lambda m: " " * (len(m[0]) - 5) + "loop9", plain)
    rest = re.sub(r"has\([\w.]+\)", lambda m: "h" * len(m[0]), rest)
    for found in PATH.finditer(rest):
        yield found[0], expected_at(rest, found.start(), found.end())


def expected_at(text: str, start: int, end: int) -> set[str]:
    before, behind = text[:start].rstrip(), text[end:].lstrip()
    if found := re.match(rf"(==|!=|>=|<=|>|<)\s*{CONSTANT}", behind):
        return {kind_of(found[2])}
    if found := re.search(rf"{CONSTANT}\s*(==|!=|>=|<=|>|<)$", before):
        return {kind_of(found[1])}
    if found := re.match(r"in \[([^\]]*)\]", behind):
        return {kind_of(item.strip()) for item in found[1].split(",") if item.strip()}
    if TEXT_METHODS.match(behind):
        return {"string"}
    if before.endswith((" in", "size(")):
        return {"list", "map"} | ({"string"} if before.endswith("size(") else set())
    alone = re.match(r"$|\)|&&|\|\|", behind) and re.search(r"(^|\(|!|&&|\|\|)$", before)
    return {"boolean"} if alone else set()


def kind_of(constant: str) -> str:
    return {"''": "string", "true": "boolean", "false": "boolean", "null": "null"}.get(constant, "number")


def below(value: Any, at: str, steps: list[str], expected: set[str], asked: set[str]) -> Iterator[bool]:
    if not steps:
        yield not any(fits(value, kind) for kind in expected) if expected else value is None
    elif steps[0] == "[]":
        yield not isinstance(value, list | dict)
        for member in value if isinstance(value, list) else ():
            yield from below(member, f"{at}.[]", steps[1:], expected, asked)
    elif not isinstance(value, dict):
        yield True
    elif steps[0] in value:
        yield from below(value[steps[0]], f"{at}.{steps[0]}", steps[1:], expected, asked)
    else:
        yield f"{at}.{steps[0]}" not in asked


def fits(value: Any, kind: str) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and plain_data(value)
    whole = is_number and value == int(value) and -(2**63) <= value < 2**63
    return {
        "string": isinstance(value, str) and plain_data(value),
        "number": is_number,
        "integer": whole,
        "boolean": isinstance(value, bool),
        "strings": isinstance(value, list) and all(fits(v, "string") for v in value),
        "list": isinstance(value, list) and plain_data(value),
        "map": isinstance(value, dict) and plain_data(value),
        "time": isinstance(value, datetime) or (isinstance(value, str) and value.endswith("+08:00")),
        "null": value is None,
        "any": plain_data(value),
    }[kind]


def plain_data(value: Any) -> bool:
    if isinstance(value, dict | list):
        return all(map(plain_data, [*value, *value.values()] if isinstance(value, dict) else value))
    if isinstance(value, int | float):
        return math.isfinite(value) and (isinstance(value, float) or -(2**63) <= value < 2**63)
    return value is None or (isinstance(value, str) and "\0" not in value)

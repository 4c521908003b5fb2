"""What a condition may name: the fields of its decision types with their types, and what happened before."""

import re
from collections.abc import Callable, Container
from contextvars import ContextVar
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext import ext_strings

from moot.modules.governance.domain.conditions import CONTEXT, Facts, Kind
from moot.modules.governance.infrastructure.sql.rewriting import is_exposing, is_filtered, is_limited

LITERALS: Final = re.compile(
    r"""//[^\n]*
    | [bB]?[rR][bB]?(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n]*"|'[^'\n]*')
    | [bB]?(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""",
    re.VERBOSE | re.DOTALL,
)
"""Comments and texts, raw ones first: in those a backslash escapes nothing."""
HAS: Final = re.compile(r"(?<![\w.])has\s*\(([\w.\s]+)\)")


def blank_quotes(source: str) -> str:
    """The same length and lines, with nothing in it that is only quoted."""
    return LITERALS.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)


def drop_comments(source: str) -> str:
    return LITERALS.sub(lambda found: " " * len(found[0]) if found[0].startswith("//") else found[0], source)


def presence_of(name: str) -> str:
    """The variable that says whether a declared field is there: as long as `has(name)` without its last bracket."""
    return f"_has.{name}"


def resolve_has(source: str, declared: Container[str]) -> str:
    """CEL's own `has()` reads a declared field instead of asking for it; columns stay where they were."""
    pieces, end = [], 0
    for found in HAS.finditer(blank_quotes(source)):
        name = re.sub(r"\s", "", found[1])
        if name in declared:
            pieces += [source[end : found.start()], presence_of(name).ljust(len(found[0]))]
            end = found.end()
    return "".join([*pieces, source[end:]])


TYPES: Final[dict[Kind, cel.Type]] = {
    "string": cel.Type.STRING,
    "number": cel.Type.DOUBLE,
    "integer": cel.Type.INT,
    "boolean": cel.Type.BOOL,
    "strings": cel.Type.List(cel.Type.STRING),
    "list": cel.Type.List(cel.Type.DYN),
    "map": cel.Type.Map(cel.Type.STRING, cel.Type.DYN),
    "time": cel.Type.TIMESTAMP,
    "any": cel.Type.DYN,
}
JUDGED: ContextVar[Facts] = ContextVar("the decision that is being judged")


def count(tool: str, window: str | timedelta) -> int:
    """How many calls of the tool were allowed in the time before this decision."""
    facts = JUDGED.get()
    since = facts.now - (seconds(window) if isinstance(window, str) else window)
    return sum(call.tool == tool and call.at > since for call in facts.history)


UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
PERIOD: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


@lru_cache
def seconds(window: str) -> timedelta:
    """`60s`, `1h30m`, `2d`."""
    pieces = PERIOD.findall(window)
    if not pieces or "".join(amount + unit for amount, unit in pieces) != window:
        raise ValueError(f"'{window}' is not a period such as 60s, 5m, 1h30m")
    return timedelta(seconds=sum(float(amount) * UNITS[unit] for amount, unit in pieces))


_TEXT, _LIST = cel.Type.STRING, cel.Type.List(cel.Type.STRING)


def _function(name: str, returns: cel.Type, *overloads: tuple[list[cel.Type], Callable[..., Any]]) -> Any:
    return cel.FunctionDecl(
        name,
        [cel.Overload(f"{name}_{n}", returns, takes, impl=impl) for n, (takes, impl) in enumerate(overloads)],
    )


FUNCTIONS: Final = [
    _function(
        "after", cel.Type.BOOL, ([_TEXT], lambda tool: tool in {call.tool for call in JUDGED.get().history})
    ),
    _function("tainted", cel.Type.BOOL, ([_TEXT], lambda argument: JUDGED.get().tainted(argument))),
    _function("count", cel.Type.INT, ([_TEXT, _TEXT], count), ([_TEXT, cel.Type.DURATION], count)),
    _function("exposes", cel.Type.BOOL, ([_TEXT, _LIST], lambda sql, names: is_exposing(sql, tuple(names)))),
    _function("filtered", cel.Type.BOOL, ([_TEXT, _TEXT, _TEXT, _TEXT], is_filtered)),
    _function("limited", cel.Type.BOOL, ([_TEXT, cel.Type.INT], is_limited)),
]
"""What happened before, where an argument comes from; which columns a statement shows, which rows, how many."""


@lru_cache(maxsize=1024)
def environment(fields: frozenset[tuple[str, Kind]]) -> cel.Env:
    """Rules that may name the same share one."""
    variables = {name: TYPES[kind] for name, kind in fields}
    variables |= {presence_of(name): cel.Type.BOOL for name, _ in fields}
    return cel.NewEnv(variables=variables, functions=FUNCTIONS, extensions=[ext_strings.ExtStrings()])


ACTIVATIONS: Final = cel.NewEnv(
    variables={f"context.{name}": TYPES[kind] for name, kind in CONTEXT.items() if kind == "time"}
)
"""Holds the values of a decision for every expression, whatever it was compiled against. Moments are declared."""
ACTIVATIONS.compile("true")  # what an environment declares counts from its first expression on

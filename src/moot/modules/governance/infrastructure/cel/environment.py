"""What a condition may name: the fields of its decision types with their types, and what happened before. Whether a
value is what its field is declared to be, and the value as CEL takes it.

CEL itself is too forgiving to be asked: it takes `true` for a whole number, compares NaN, and cuts a text at its
first NUL, so that "a\\0b" equals "a".
"""

import re
from collections.abc import Callable, Container, Iterable, Mapping
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import lru_cache
from math import isfinite
from types import ModuleType, NoneType
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext import ext_strings

from moot.modules.governance.domain.conditions import CONTEXT, Facts, Kind, moment_in
from moot.modules.governance.domain.texts import SAY, join
from moot.shared.domain.messages import Message

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


LARGEST: Final = 2**63 - 1
EXACT: Final = 2**53
"""Up to here a whole number and a number with a point are compared alike by everybody."""
LISTS: Final = (list, tuple)
UNUSABLE: Final = re.compile("[\0\ud800-\udfff]")
"""What ends a text too early, and what UTF-8 has no bytes for."""


class WrongValueError(ValueError):
    """`flaw` is the key of a text about the value; `kinds`: one of these it should have been."""

    def __init__(self, flaw: str, kinds: Iterable[str] = ()) -> None:
        super().__init__(flaw)
        self._flaw, self._kinds = flaw, sorted(kinds)

    def of(self, name: str) -> Message:
        kinds = [SAY(f"schema.kind.{kind}") for kind in self._kinds]
        said = {"kinds": join(kinds, by="conditions.or")} if kinds else {}
        return SAY(f"conditions.wrong.{self._flaw}", name=name, **said)


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise WrongValueError("kind", ["string"])
    if ("\0" in value or not value.isascii()) and UNUSABLE.search(value):
        raise WrongValueError("characters")
    return value if type(value) is str else str.__str__(value)


def number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongValueError("kind", ["number"])
    if isinstance(value, int):
        return float(_bounded(value))
    if not isfinite(value):
        raise WrongValueError("not_finite")
    return float(value)


def _bounded(value: int, flaw: str = "too_large") -> int:
    if not -LARGEST - 1 <= value <= LARGEST:
        raise WrongValueError(flaw)
    return int(value)


def integer(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise WrongValueError("kind", ["integer"])
    return _bounded(value)


def _of_type(value: Any, expected: Any, kind: Kind) -> Any:
    if not isinstance(value, expected):
        raise WrongValueError("kind", [kind])
    return value


def _plain(value: Any) -> Any:
    try:
        return anything(value)
    except RecursionError:
        raise WrongValueError("too_deep") from None


def anything(value: Any) -> Any:
    """Plain data all the way down: what JSON can say, and of these very types, for CEL takes no others here."""
    kind = type(value)
    if kind is str:
        text(value)
    elif kind is dict:
        for key, member in value.items():
            text(key)
            anything(member)
    elif kind is list:
        for member in value:
            anything(member)
    elif kind is float:
        number(value)
    elif kind is int:
        _bounded(value, "holds_too_large")
    elif value is not None and kind is not bool:
        raise WrongValueError("not_plain")
    return value


Reader = Callable[[Any], Any]
DECLARED_AS: Final[dict[Kind, tuple[cel.Type, Reader]]] = {
    "string": (cel.Type.STRING, text),
    "number": (cel.Type.DOUBLE, number),
    "integer": (cel.Type.INT, integer),
    "boolean": (cel.Type.BOOL, lambda value: _of_type(value, bool, "boolean")),
    "strings": (
        cel.Type.List(cel.Type.STRING),
        lambda value: [text(each) for each in _of_type(value, LISTS, "strings")],
    ),
    "list": (cel.Type.List(cel.Type.DYN), lambda value: _plain(list(_of_type(value, LISTS, "list")))),
    "map": (
        cel.Type.Map(cel.Type.STRING, cel.Type.DYN),
        lambda value: _plain(dict(_of_type(value, Mapping, "map"))),
    ),
    "time": (cel.Type.TIMESTAMP, lambda value: _of_type(moment_in(value), datetime, "time")),
    "any": (cel.Type.DYN, _plain),
}
"""How CEL calls a kind, and how a value of it is read."""
KINDS: Final[dict[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    list: "list",
    dict: "map",
    datetime: "time",
    NoneType: "null",
}
"""Of plain data."""

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


def _sql() -> ModuleType:
    """Loaded when a statement is asked about: its parser takes as long to load as the rest of CEL."""
    from moot.modules.governance.infrastructure.sql import rewriting  # noqa: PLC0415

    return rewriting


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
    _function(
        "exposes", cel.Type.BOOL, ([_TEXT, _LIST], lambda sql, names: _sql().is_exposing(sql, tuple(names)))
    ),
    _function(
        "filtered", cel.Type.BOOL, ([_TEXT, _TEXT, _TEXT, _TEXT], lambda *asked: _sql().is_filtered(*asked))
    ),
    _function("limited", cel.Type.BOOL, ([_TEXT, cel.Type.INT], lambda *asked: _sql().is_limited(*asked))),
]
"""What happened before, where an argument comes from; which columns a statement shows, which rows, how many."""


@lru_cache(maxsize=1024)
def environment(fields: frozenset[tuple[str, Kind]]) -> cel.Env:
    """Rules that may name the same share one."""
    variables = {name: DECLARED_AS[kind][0] for name, kind in fields}
    variables |= {presence_of(name): cel.Type.BOOL for name, _ in fields}
    return cel.NewEnv(variables=variables, functions=FUNCTIONS, extensions=[ext_strings.ExtStrings()])


ACTIVATIONS: Final = cel.NewEnv(
    variables={f"context.{name}": cel.Type.TIMESTAMP for name, kind in CONTEXT.items() if kind == "time"}
)
"""Holds the values of a decision for every expression, whatever it was compiled against. Moments are declared."""
ACTIVATIONS.compile("true")  # what an environment declares counts from its first expression on

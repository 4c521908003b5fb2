"""Why a condition is refused, where, and what would be right, for somebody who does not write programs."""

import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from cel_expr_python import cel

from moot.modules.governance.domain.conditions import Problem
from moot.modules.governance.domain.decision_types import DECISION_TYPES
from moot.modules.governance.domain.rules import EnhancedRule
from moot.modules.governance.domain.tool_profiles import ToolProfile
from moot.modules.governance.infrastructure.cel import tree
from moot.modules.governance.infrastructure.cel.atoms import FLOWS
from moot.modules.governance.infrastructure.cel.environment import (
    Declared,
    arguments_of,
    declared,
    environment,
    seconds,
)
from moot.modules.governance.infrastructure.cel.hints import hints, place
from moot.modules.governance.infrastructure.cel.program import Program
from moot.modules.governance.infrastructure.cel.references import COMPARED, LOGIC, References, kinds_of
from moot.modules.governance.infrastructure.cel.syntax import ANY_HAS, HAS, blanked

REPORTED: Final = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
UNKNOWN: Final = re.compile(r"undeclared reference to '([^']*)'")
MISMATCH: Final = re.compile(r"found no matching overload for '([^']*)' applied to '\((.*)\)'")
FUNCTIONS: Final = (
    "after", "all", "contains", "count", "duration", "endsWith", "exists", "exists_one", "filter", "has", "int",
    "lowerAscii", "map", "matches", "size", "startsWith", "string", "tainted", "timestamp", "trim", "upperAscii",
)  # fmt: skip
WORDS: Final = {
    "double": "a number", "int": "a whole number", "string": "a text", "bool": "true or false", "null_type": "null",
    "map(string, dyn)": "a map", "list(string)": "a list of texts", "list(dyn)": "a list", "bytes": "bytes",
    "uint": "an unsigned number", "google.protobuf.Timestamp": "a time", "google.protobuf.Duration": "a period",
}  # fmt: skip


def problems_of(rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> list[Problem]:
    source = rule.condition
    if not isinstance(source, str):
        return []
    strangers = [_stranger(name) for name in rule.for_types if name not in DECISION_TYPES]
    if strangers:
        return strangers
    fields = declared(rule, tools)
    asked = _asked_wrongly(source, fields)
    if asked:
        return asked
    try:
        program = Program(source, fields)
    except RuntimeError as e:
        return hints(source) or [_reported(source, fields, found) for found in REPORTED.finditer(str(e))] or [
            Problem(1, 1, f"the condition cannot be read: {e}")
        ]  # fmt: skip
    return list(_Review(program, arguments_of(rule, tools)).problems())


def _asked_wrongly(source: str, fields: Declared) -> list[Problem]:
    """Spelt otherwise, CEL takes the field's value for the answer to `has()`."""
    plain = blanked(source)
    wrongly = [found for found in ANY_HAS.finditer(plain) if not HAS.match(plain, found.start())]
    named = [(found, re.sub(r"\s", "", found[1])) for found in wrongly]
    return [
        Problem(
            *place(source, found.start()), "has() takes the name of a field, without spaces", f"has({name})"
        )
        for found, name in named
        if name in fields
    ]


def _stranger(name: str) -> Problem:
    return Problem(1, 1, f"there is no decision of type '{name}'", _nearest(name, DECISION_TYPES))


def _nearest(name: str, known: Any) -> str | None:
    close = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"did you mean {close[0]}?" if close else None


def _reported(source: str, fields: Declared, found: re.Match[str]) -> Problem:
    line, column, message = int(found[1]), int(found[2]), found[3].strip()
    if unknown := UNKNOWN.search(message):
        return _unknown(source.split("\n")[line - 1], line, column, unknown[1], fields)
    if mismatch := MISMATCH.search(message):
        text = source.split("\n")[line - 1]
        return Problem(
            line, column, _mismatched(mismatch[1], mismatch[2]), _retyped(text, column, mismatch[2])
        )
    if "<EOF>' expecting" in message:
        return Problem(line, column, "the condition ends too early: something is missing here")
    return Problem(line, column, f"this cannot be read here ({message})")


def _unknown(text: str, line: int, column: int, name: str, fields: Declared) -> Problem:
    """CEL points at a dot or a bracket; the reader wants the beginning of the name."""
    start = text.rfind(name, 0, column + len(name))
    at = start + 1 if start >= 0 else column
    if re.match(rf"{re.escape(name)}\s*\(", text[at - 1 :]):
        return Problem(line, at, f"there is no function '{name}' for that", _nearest(name, FUNCTIONS))
    return Problem(line, at, f"there is no field '{name}'", _nearest_field(name, fields))


def _nearest_field(name: str, fields: Declared) -> str | None:
    """Right but for where it is; else nearly right: compared without the part that every name begins with."""
    same = [field for field in fields if field.rsplit(".", 1)[-1] == name.rsplit(".", 1)[-1]]
    if same:
        return f"did you mean {same[0]}?"
    prefix = "context." if name.startswith("context.") else "payload."
    below = {field.removeprefix(prefix): field for field in fields}
    close = get_close_matches(name.removeprefix(prefix), list(below), n=1)
    return f"did you mean {below[close[0]]}?" if close else None


def _mismatched(operator: str, types: str) -> str:
    kinds = " and ".join(WORDS.get(kind, kind) for kind in _types(types))
    return f"'{operator.strip('_@').replace('_', ' ')}' does not go with {kinds}"


def _types(types: str) -> list[str]:
    return [kind.strip() for kind in re.findall(r"(?:[^,(]|\([^)]*\))+", types)]


def _retyped(text: str, column: int, types: str) -> str | None:
    """`amount > 1` for a number with a point, and the reverse."""
    kinds = _types(types)
    if sorted(kinds) == ["double", "int"]:
        whole = re.search(r"(?<![\w.])-?\d+(?![\w.])", text[column - 1 :]) or re.search(
            r"(?<![\w.])-?\d+(?![\w.])", text
        )
        if whole:
            return f"write {whole[0]}.0"
        return "a whole number is compared with a whole number: write 1, not 1.0"
    return next((said for pair, said in ADVICE.items() if sorted(kinds) == sorted(pair)), None)


_NO_QUOTES = "a text stands in quotes; a number, true and false do not"
ADVICE: Final = {
    ("string", "int"): _NO_QUOTES,
    ("string", "double"): _NO_QUOTES,
    ("string", "bool"): _NO_QUOTES,
    ("string", "string"): "write a list: ['a', 'b']",
    ("bool", "int"): "write two comparisons with && between them",
    ("bool", "double"): "write two comparisons with && between them",
    ("list(string)", "string"): "write 'text' in field",
    **{
        (kind, "null_type"): "ask has(field)"
        for kind in ("string", "double", "int", "bool", "map(string, dyn)")
    },
}


class _Review:
    """What CEL lets pass and nobody can have meant."""

    def __init__(self, program: Program, arguments: Declared | None) -> None:
        self._program = program
        self._arguments = arguments
        self._paths = References(program.fields)

    def problems(self) -> Iterator[Problem]:
        program = self._program
        kind = program.expression.return_type()
        if kind != cel.Type.BOOL and not (kind == cel.Type.DYN and program.roots):
            yield Problem(1, 1, f"the condition is neither true nor false: it gives {_kind_name(kind)}")
        nodes = list(walk(program.checked.root))
        flows = any(isinstance(node, tree.Call) and node.function in FLOWS for node in nodes)
        if not (program.roots or program.asked or flows):
            yield Problem(1, 1, "the condition looks at nothing, so that it is always the same")
        for node in nodes:
            yield from self._node(node)

    def _node(self, node: tree.Node) -> Iterator[Problem]:
        match node:
            case tree.Call(function="count", args=(_, tree.Const(value=str() as period))):
                yield from self._period(node, period)
            case tree.Call(function="tainted", args=(tree.Const(value=str() as name),)):
                if self._arguments is not None and name not in self._arguments:
                    yield self._at(
                        node, f"the tool has no argument '{name}'", _nearest(name, self._arguments)
                    )
            case tree.Call(
                function="duration" | "timestamp" as function, args=(tree.Const(value=str() as text),)
            ):
                yield from self._constant(node, f"{function}({_quoted(text)})", f"'{text}' is no {function}")
            case tree.Call(function="matches", args=(_, tree.Const(value=str() as pattern))):
                yield from self._constant(
                    node, f"''.matches({_quoted(pattern)})", f"'{pattern}' is no pattern"
                )
            case tree.Call(function="@in", args=(left, tree.Items(items=items))):
                yield from self._members(node, left, items)
            case tree.Call(function=function, args=args) if function in LOGIC:
                if any(isinstance(arg, tree.Const) for arg in args):
                    yield self._at(node, "true or false stands alone, so that a part is always the same")
            case tree.Call(function=function, args=(left, right)) if function in COMPARED:
                if isinstance(left, tree.Const) and isinstance(right, tree.Const):
                    yield self._at(node, "two constants are compared, so that it is always the same")

    def _period(self, node: tree.Node, period: str) -> Iterator[Problem]:
        try:
            seconds(period)
        except ValueError as e:
            yield self._at(node, str(e), "write it like '60s' or '1h30m'")

    def _constant(self, node: tree.Node, expression: str, message: str) -> Iterator[Problem]:
        value = environment({}).compile(expression).eval()
        if value.type() == cel.Type.ERROR:
            yield self._at(node, f"{message} ({value.value()})")

    def _members(self, node: tree.Node, left: tree.Node, items: tuple[tree.Node, ...]) -> Iterator[Problem]:
        path = self._paths.path(left)
        kinds = {kind for item in items for kind in kinds_of(item)}
        if path is None or len(path) > 1 or self._program.fields[str(path[0])].kind == "any":
            wrong = len(kinds) > 1
        else:
            kind = self._program.fields[str(path[0])].kind
            wrong = bool(kinds - {"number" if kind == "integer" else kind})
        if wrong:
            yield self._at(node, "the list holds what the value can never be", "write members of one type")

    def _at(self, node: tree.Node, message: str, suggestion: str | None = None) -> Problem:
        offset = self._program.checked.positions.get(node.id, 0)
        return Problem(*place(self._program.runnable, offset), message, suggestion)


def walk(node: tree.Node) -> Iterator[tree.Node]:
    yield node
    inside: tuple[tree.Node, ...] = ()
    match node:
        case tree.Select(operand=operand):
            inside = (operand,)
        case tree.Call(args=args):
            inside = args
        case tree.Items(items=items):
            inside = items
        case tree.Loop(over=over, parts=parts):
            inside = (over, *parts)
    for each in inside:
        yield from walk(each)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _kind_name(kind: cel.Type) -> str:
    name: str = kind.name()
    return WORDS.get(name.lower(), name)

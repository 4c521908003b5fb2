"""A condition that compiles: what it refers to, and what must be so before CEL's answer is believed.

CEL's `&&` and `||` absorb errors (`missing > 1 && false` is false), so that every field a condition names must be
there, and be of its type, in code: a field may be missing only where the condition asks `has()` for it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, Final

from cel_expr_python import cel

from moot.modules.governance.domain.conditions import Facts, Finding, Kind
from moot.modules.governance.domain.rules import Declared
from moot.modules.governance.infrastructure.cel.environment import (
    ACTIVATIONS,
    KINDS,
    Reader,
    WrongValueError,
    blank_quotes,
    drop_comments,
    environment,
    presence_of,
    resolve_has,
)
from moot.modules.governance.infrastructure.cel.tree import Node, expected_at, read_tree
from moot.shared.domain.messages import Message

PLAIN: Final[dict[Kind, str]] = {"integer": "number", "strings": "list"}
"""Declared kinds of which CEL and JSON make no difference."""
EACH: Final = None
"""The step of a path that goes into every member of a list."""
Path = tuple[str | int | None, ...]
"""A declared name, then steps below it."""
MISSING: Final = object()


def spell(path: Path) -> str:
    first, *steps = path
    return str(first) + "".join(
        "[]" if s is EACH else f".{s}" if isinstance(s, str) else f"[{s}]" for s in steps
    )


class Program:
    """One condition, compiled against the fields it may name.

    It names `roots`, and below untyped ones `paths` with the kinds they are compared with; for some it has `asked`.
    """

    def __init__(self, source: str, fields: Declared) -> None:
        self.source = source
        self.fields = fields
        self.runnable = resolve_has(source, fields)
        self.expression = environment(frozenset(fields.items())).compile(self.runnable)
        self.root = read_tree(self.expression.serialize())
        self.roots: dict[str, Kind] = {}
        self.paths: dict[Path, frozenset[str]] = {}
        self.asked: set[Path] = set()
        self._loops: dict[str, Path | None] = {}
        self._visit(self.root, {"boolean"})
        self._parts: dict[str, Program] = {}

    def path(self, node: Node) -> Path | None:
        match node:
            case Node("ident", name) if name in self._loops:
                return self._loops[name]
            case Node("ident", name) if name in self.fields:
                return (name,)
            case Node("select", step, (operand,)):
                return self._below(operand, step)
            case Node("call", "_[_]", (operand, Node("constant", value=str() | int() as step))):
                return self._below(operand, step)
        return None

    def _below(self, operand: Node, step: str | int | None) -> Path | None:
        above = self.path(operand)
        return None if above is None else (*above, step)

    def asks_for(self, node: Node) -> Path | None:
        match node:
            case Node("ident", name) if name.startswith("_has."):
                return (name.removeprefix("_has."),)
            case Node("has", step, (operand,)):
                return self._below(operand, step)
        return None

    def _visit(self, node: Node, expected: Iterable[str]) -> None:
        """`expected`: the kinds that what stands around the node can do with it."""
        if (path := self.path(node)) is not None:
            root = str(path[0])
            self.roots[root] = self.fields[root]
            if len(path) > 1 or self.fields[root] == "any":
                self.paths[path] = self.paths.get(path, frozenset()).union(expected)
            return
        if (asked := self.asks_for(node)) is not None:
            self.asked.add(asked)
        outer = dict(self._loops)
        for place, arg in enumerate(node.args):
            self._visit(arg, expected_at(node, place))
            if node.kind == "loop" and place == 0:
                self._loops[node.name] = self._below(arg, EACH)
        self._loops = outer

    @property
    def names(self) -> set[str]:
        """Every declared field that the expression looks at or asks for."""
        return {str(path[0]) for path in self.asked if len(path) == 1}.union(self.roots)

    def kinds(self, path: Path) -> frozenset[str]:
        """What the value is once the guards have passed; empty: anything."""
        kind = self.fields[str(path[0])]
        if len(path) > 1 or kind == "any":
            return self.paths.get(path, frozenset())
        return frozenset({PLAIN.get(kind, kind)})

    def part(self, text: str) -> "Program":
        """A piece of the condition as one of its own; compiled when it is first asked for."""
        if text not in self._parts:
            self._parts[text] = Program(text, self.fields)
        return self._parts[text]

    @cached_property
    def has_choices(self) -> bool:
        """Whether less than the whole condition may have made it true."""
        return "||" in self.source or ("&&" in self.source and "!" in self.source)

    def trouble(self, judged: "Judged") -> Message | None:
        """Why CEL's answer could not be believed."""
        for name in self.roots:
            if name in judged.wrong:
                return judged.wrong[name]
            if name not in judged.values and (name,) not in self.asked:
                return WrongValueError("missing").of(name)
        there = [path for path in self.paths if path[0] in judged.values]
        return next(filter(None, (self._lacks(judged.values[str(path[0])], path) for path in there)), None)

    def _lacks(self, value: Any, path: Path, depth: int = 1) -> Message | None:
        """The first step of `path` from `depth` on that does not lead on, in words."""
        if depth == len(path):
            return self._mismatch(value, path)
        step, further = path[depth], path[: depth + 1]
        if not isinstance(value, list | tuple | Mapping):
            return WrongValueError("kind", ["list" if step is EACH else "map"]).of(spell(path[:depth]))
        if step is EACH:  # over a map: over its keys, which are texts and need no look
            below = () if isinstance(value, Mapping) else value
        elif (found := step_into(value, step)) is not MISSING:
            below = [found]
        else:
            return None if further in self.asked else WrongValueError("missing").of(spell(further))
        return next(filter(None, (self._lacks(each, path, depth + 1) for each in below)), None)

    def _mismatch(self, value: Any, path: Path) -> Message | None:
        found, kinds = KINDS[type(value)], self.paths[path]
        if found in kinds or (not kinds and found != "null"):
            return None
        return WrongValueError("kind" if kinds else "null", kinds).of(spell(path))

    def holds(self, activation: cel.Activation) -> bool:
        """Raises `RuntimeError` when CEL cannot tell."""
        answer = self.expression.eval(activation).value()
        if answer is True or answer is False:
            return answer
        raise RuntimeError(str(answer))


def compile_condition(source: str, fields: Declared) -> Program:
    """Once: a condition is checked when it is read and when it is kept, before it decides."""
    return _compile(source, frozenset(fields.items()))


@lru_cache(maxsize=1024)
def _compile(source: str, fields: frozenset[tuple[str, Kind]]) -> Program:
    return Program(source, dict(fields))


def step_into(value: Any, step: str | int | None, missing: Any = MISSING) -> Any:
    if isinstance(value, Mapping):
        return value.get(step, missing)
    if isinstance(step, int) and isinstance(value, list | tuple) and 0 <= step < len(value):
        return value[step]
    return missing


class Judged:
    """A decision as conditions see it: the values of some fields as CEL takes them, and what is wrong with others."""

    def __init__(self, facts: Facts, readers: Mapping[str, Reader]) -> None:
        self.facts, self._names = facts, readers.keys()
        self.values: dict[str, Any] = {}
        self.wrong: dict[str, Message] = {}
        given = facts.values
        for name, read in readers.items():
            value = given.get(name) if name != "payload" else facts.payload
            if value is not None:
                try:
                    self.values[name] = read(value)
                except WrongValueError as e:
                    self.wrong[name] = e.of(name)

    @cached_property
    def activation(self) -> cel.Activation:
        there = {presence_of(name): name in self.values or name in self.wrong for name in self._names}
        return ACTIVATIONS.Activation(there | self.values)


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
    if error is not None or not program.has_choices:
        return Finding(program.source.strip(), _collect_values(program, judged.facts), error)

    def holds(text: str) -> bool | None:
        try:
            return program.part(text).holds(judged.activation)
        except RuntimeError:
            return None

    part = explain(drop_comments(program.source).strip(), holds)
    return Finding(part, _collect_values(program.part(part), judged.facts))


def explain(text: str, holds: Callable[[str], bool | None]) -> str:
    """The smallest part of a condition that holds and makes it hold."""
    op, parts = split(text)
    if op == "||":
        reasons = [explain(each, holds) for each in parts if holds(each)]
        return min(reasons, key=len, default=text)
    if op == "&&":
        reasons = [explain(each, holds) for each in parts]
        return " && ".join(f"({each})" if split(each)[0] == "||" else each for each in reasons)
    if op == "!":
        inner, members = split(parts[0])
        failed = (each for each in members if inner == "&&" and holds(each) is False)
        return next((f"!({each})" for each in failed), text)
    return parts[0]


def split(text: str) -> tuple[str, list[str]]:
    """The operator that binds least and what it joins, by CEL's precedence: `?:`, then `||`, `&&`, `!`.

    No operator: a comparison, or something that only CEL can take apart.
    """
    plain = blank_quotes(text)
    outside = _outside(plain)
    for op in ("||", "&&") if "?" not in outside else ():
        if op in outside:
            places = [place.start() for place in re.finditer(re.escape(op), outside)]
            cuts = zip([0, *(place + 2 for place in places)], [*places, len(text)], strict=True)
            return op, [text[start:end].strip() for start, end in cuts]
    if plain.startswith("!") and _wraps(plain[1:].lstrip()):
        return "!", [text[1:].strip()]
    return split(text[1 : plain.rindex(")")].strip()) if _wraps(plain) else ("", [text])


def _outside(plain: str) -> str:
    """What is in no bracket; the rest is blank."""
    depth, kept = 0, []
    for letter in plain:
        depth += letter in "([{"
        kept.append(" " if depth else letter)
        depth -= letter in ")]}"
    return "".join(kept)


def _wraps(plain: str) -> bool:
    """One pair of brackets around everything."""
    return plain.startswith("(") and not _outside(plain).strip()


def _collect_values(program: Program, facts: Facts) -> Mapping[str, Any]:
    paths: list[Path] = [(name,) for name in program.roots if not any(p[0] == name for p in program.paths)]
    seen = {spell(path): _value(facts, path) for path in [*paths, *program.paths]}
    return {name: _shorten(value) for name, value in seen.items() if value is not None}


def _value(facts: Facts, path: Path) -> Any:
    value = facts.payload if path[0] == "payload" else facts.values.get(str(path[0]))
    for step in path[1:]:
        value = value if step is None else step_into(value, step, None)
    return value


def _shorten(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str) and len(value) > LONG:
        return value[:LONG] + "…"
    if isinstance(value, Mapping):
        return {key: _shorten(value[key]) for key in list(value)[:MANY]}
    if isinstance(value, list | tuple):
        return [_shorten(member) for member in value[:MANY]]
    return value

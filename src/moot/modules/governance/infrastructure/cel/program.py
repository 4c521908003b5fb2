"""A condition that compiles: what it refers to, and what must be so before CEL's answer is believed.

CEL's `&&` and `||` absorb errors (`missing > 1 && false` is false), so that every field a condition names must be
there, and be of its type, in code: a field may be missing only where the condition asks `has()` for it.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from cel_expr_python import cel

from moot.modules.governance.domain.conditions import Facts, Finding, Kind
from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.infrastructure.cel import tree
from moot.modules.governance.infrastructure.cel.environment import (
    ACTIVATIONS,
    Declared,
    blank_quotes,
    drop_comments,
    environment,
    presence_of,
    resolve_has,
)
from moot.modules.governance.infrastructure.cel.tree import EACH, Path, References, spell
from moot.modules.governance.infrastructure.cel.values import KINDS, Reader, WrongValueError
from moot.shared.domain.messages import Message

PLAIN: Final[dict[Kind, str]] = {"integer": "number", "strings": "list"}
"""Declared kinds of which CEL and JSON make no difference."""


class Program:
    """One condition, compiled against the fields it may name."""

    def __init__(self, source: str, fields: Declared) -> None:
        self.source = source
        self.fields = fields
        self.runnable = resolve_has(source, fields)
        self.expression = environment(fields).compile(self.runnable)
        self.checked = tree.read(self.expression.serialize())
        self.references = found = References(fields)
        found.visit(self.checked.root, {"boolean"})
        self.asked, self.roots = frozenset(found.asked), found.roots
        self.paths = {path: frozenset(kinds) for path, kinds in found.paths.items()}
        self._parts: dict[str, Program] = {}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every declared field that the expression looks at or asks for."""
        asked = {str(path[0]) for path in self.asked if len(path) == 1}
        return tuple(sorted(asked | set(self.roots)))

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
                return _say_missing(name)
        lacking = (self._lacks(judged.values.get(str(path[0])), path, 1) for path in self.paths)
        return next(filter(None, lacking), None)

    def _lacks(self, value: Any, path: Path, depth: int) -> Message | None:
        """The first step of `path` from `depth` on that does not lead on, in words."""
        if value is None and depth == 1:
            return None
        if depth == len(path):
            return self._mismatch(value, path)
        if path[depth] is EACH:
            return self._each_lacks(value, path, depth)
        missing = object()
        below = step_into(value, path[depth], missing)
        if below is not missing:
            return self._lacks(below, path, depth + 1)
        if not isinstance(value, list | tuple | Mapping):
            return WrongValueError("kind", ["map"]).of(spell(path[:depth]))
        return None if path[: depth + 1] in self.asked else _say_missing(spell(path[: depth + 1]))

    def _each_lacks(self, value: Any, path: Path, depth: int) -> Message | None:
        """A loop over a map goes over its keys, which are texts and need no look."""
        if not isinstance(value, list | tuple | Mapping):
            return WrongValueError("kind", ["list"]).of(spell(path[:depth]))
        members = () if isinstance(value, Mapping) else value
        return next(filter(None, (self._lacks(member, path, depth + 1) for member in members)), None)

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


def _say_missing(name: str) -> Message:
    return SAY("conditions.wrong.missing", name=name)


def step_into(value: Any, step: str | int | None, missing: Any) -> Any:
    if isinstance(value, Mapping):
        return value.get(step, missing)
    if isinstance(step, int) and isinstance(value, list | tuple) and 0 <= step < len(value):
        return value[step]
    return missing


def value_of(facts: Facts, name: str) -> Any:
    return facts.payload if name == "payload" else facts.values.get(name)


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
    value = value_of(facts, str(path[0]))
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

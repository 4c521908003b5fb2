"""A checked expression as a tree, read from the bytes in which CEL hands it out (protobuf's wire format), and what it
names: fields, what is looked at below untyped ones, and what it asks for.
"""

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from moot.modules.governance.domain.conditions import Fields, Kind
from moot.modules.governance.infrastructure.cel.values import KINDS

Value = bool | int | float | str | bytes | None
Shape = Literal["constant", "ident", "select", "has", "call", "items", "loop"]


@dataclass(frozen=True, slots=True)
class Node:
    """`name` is a declared name with all its dots, the variable of a loop, a field or a function.

    What a method is called on comes first in `args`, as does what a loop (`exists`, `all`, `map`) goes over.
    """

    kind: Shape
    name: str = ""
    args: tuple["Node", ...] = ()
    value: Value = None
    id: int = 0

    def walk(self) -> Iterator["Node"]:
        yield self
        for arg in self.args:
            yield from arg.walk()


class Checked(NamedTuple):
    root: Node
    positions: dict[int, int]
    """Where each node begins or has its operator: characters from the beginning, by the node's id."""


def read(serialized: bytes) -> Checked:
    """From `Expression.serialize()`: an `Any` around a `CheckedExpr`."""
    checked = _fields(_fields(serialized)[2][0])
    places = [_fields(entry) for entry in _fields(checked[5][0])[4]]
    return Checked(_node(checked[4][0]), {_int(place, 1): _int(place, 2) for place in places})


Numbered = defaultdict[int, list[Any]]
"""By number: whole numbers as such, all else as bytes."""


def _fields(data: bytes) -> Numbered:
    found: Numbered = defaultdict(list)
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
            found[key >> 3].append(value)
            continue
        length = {1: 8, 5: 4}.get(key & 7)
        if length is None:
            length, at = _varint(data, at)
        found[key >> 3].append(data[at : at + length])
        at += length
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _int(fields: Numbered, number: int) -> int:
    return int(fields[number][0]) if number in fields else 0


def _nodes(fields: Numbered, *numbers: int) -> tuple[Node, ...]:
    return tuple(_node(value) for number in numbers for value in fields[number])


SHAPES: Final[dict[int, tuple[Shape, int, tuple[int, ...]]]] = {
    4: ("ident", 1, ()),
    5: ("select", 2, (1,)),
    6: ("call", 2, (1, 3)),
    7: ("items", 0, (1,)),
    9: ("loop", 1, (2, 4, 5, 6, 7)),
}
"""How an expression's fields are read: its kind, which field is its name, and which are inside it."""


def _node(data: bytes) -> Node:
    fields = _fields(data)
    number = next(each for each in fields if each != 2)
    inside, id_ = _fields(fields[number][0]), _int(fields, 2)
    if number == 3:
        return Node("constant", value=_constant(inside), id=id_)
    if number == 8:  # a map, written out
        entries = [_fields(entry) for entry in inside[2]]
        return Node("items", "{}", tuple(node for entry in entries for node in _nodes(entry, 3, 4)), id=id_)
    kind, name, args = SHAPES[number]
    if number == 5 and _int(inside, 3):
        kind = "has"
    return Node(kind, inside[name][0].decode() if inside[name] else "", _nodes(inside, *args), id=id_)


CONSTANTS: Final[dict[int, Callable[[Any], Value]]] = {
    2: bool,
    3: lambda value: value - (1 << 64) if value >> 63 else value,
    4: int,
    5: lambda value: float(struct.unpack("<d", value)[0]),
    6: lambda value: str(value, "utf-8"),
    7: bytes,
}


def _constant(inside: Numbered) -> Value:
    return next(
        (CONSTANTS[number](values[0]) for number, values in inside.items() if number in CONSTANTS), None
    )


EACH: Final = None
"""The step of a path that goes into every member of a list."""
Path = tuple[str | int | None, ...]
"""A declared name, then steps below it."""

COMPARED: Final = {"_==_", "_!=_", "_>_", "_>=_", "_<_", "_<=_"}
ARITHMETIC: Final = {"_+_", "_-_", "_*_", "_/_", "_%_"}
LOGIC: Final = {"_&&_", "_||_", "!_"}
ON_TEXT: Final = [
    "startsWith",
    "endsWith",
    "contains",
    "matches",
    "lowerAscii",
    "upperAscii",
    "trim",
    "split",
]
EXPECTED_OF: Final[dict[str, set[str]]] = {
    **{function: {"string"} for function in ON_TEXT},
    **{function: {"boolean"} for function in LOGIC},
    "size": {"string", "list", "map"},
    "_?_:_": {"boolean"},
}


def spell(path: Path) -> str:
    first, *steps = path
    return str(first) + "".join(
        "[]" if s is EACH else f".{s}" if isinstance(s, str) else f"[{s}]" for s in steps
    )


@dataclass
class References:
    """What a tree names. `paths` are untyped values, each with the kinds it is compared with."""

    declared: Fields
    roots: dict[str, Kind] = field(default_factory=dict)
    paths: dict[Path, set[str]] = field(default_factory=dict)
    asked: set[Path] = field(default_factory=set)
    loops: dict[str, Path | None] = field(default_factory=dict)

    def path(self, node: Node) -> Path | None:
        """The path a node is, if it is one."""
        match node:
            case Node("ident", name) if name in self.loops:
                return self.loops[name]
            case Node("ident", name) if name in self.declared:
                return (name,)
            case Node("select", step, (operand,)):
                return self._below(operand, step)
            case Node("call", "_[_]", (operand, Node("constant", value=str() | int() as step))):
                return self._below(operand, step)
        return None

    def _below(self, operand: Node, step: str | int) -> Path | None:
        above = self.path(operand)
        return None if above is None else (*above, step)

    def asks_for(self, node: Node) -> Path | None:
        """What the node asks `has()` for, if it does."""
        match node:
            case Node("ident", name) if name.startswith("_has."):
                return (name.removeprefix("_has."),)
            case Node("has", step, (operand,)):
                return self._below(operand, step)
        return None

    def visit(self, node: Node, expected: Iterable[str] = ()) -> None:
        """`expected`: the kinds that what stands around the node can do with it."""
        path = self.path(node)
        if path is not None:
            self._note(path, expected)
            return
        if (asked := self.asks_for(node)) is not None:
            self.asked.add(asked)
        outer = dict(self.loops)
        for place, arg in enumerate(node.args):
            self.visit(arg, _kinds_at(node, place))
            if node.kind == "loop" and place == 0:
                over = self.path(arg)
                self.loops[node.name] = None if over is None else (*over, EACH)
        self.loops = outer

    def _note(self, path: Path, expected: Iterable[str]) -> None:
        root = str(path[0])
        self.roots[root] = self.declared[root]
        if len(path) > 1 or self.declared[root] == "any":
            self.paths.setdefault(path, set()).update(expected)


def _kinds_at(node: Node, place: int) -> Iterable[str]:
    if node.kind != "call":
        return ()
    function, other = node.name, node.args[1 - place] if len(node.args) == 2 else None
    if function in COMPARED:
        return kinds_of(other)
    if function in ARITHMETIC:
        return kinds_of(other) & {"number"}
    if function == "@in" and other is not None:
        members = other.args if other.kind == "items" else ()
        return {"list", "map"} if place == 1 else {kind for item in members for kind in kinds_of(item)}
    return EXPECTED_OF.get(function, ()) if place == 0 or function in LOGIC else ()


def kinds_of(node: Node | None) -> set[str]:
    return kinds_of_value(node.value) if node is not None and node.kind == "constant" else set()


def kinds_of_value(value: Value) -> set[str]:
    return {KINDS[type(value)]} if type(value) in KINDS else set()

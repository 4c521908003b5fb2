"""A checked expression as a tree, read from the bytes in which CEL hands it out: protobuf's wire format."""

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from moot.modules.governance.infrastructure.cel.environment import KINDS

Value = bool | int | float | str | bytes | None
Shape = Literal["constant", "ident", "select", "has", "call", "items", "loop"]


@dataclass(frozen=True, slots=True)
class Node:
    """`name` is a declared name with all its dots, the variable of a loop, a field or a function.

    What a method is called on comes first in `args`, as does what a loop (`exists`, `all`, `map`) goes over. It
    begins, or has its operator, `at` so many characters from the beginning.
    """

    kind: Shape
    name: str = ""
    args: tuple["Node", ...] = ()
    value: Value = None
    at: int = 0

    def walk(self) -> Iterator["Node"]:
        yield self
        for arg in self.args:
            yield from arg.walk()


def read_tree(serialized: bytes) -> Node:
    """From `Expression.serialize()`: an `Any` around a `CheckedExpr`."""
    checked = _fields(_fields(serialized)[2][0])
    places = [_fields(entry) for entry in _fields(checked[5][0])[4]]
    return _node(checked[4][0], {_int(place, 1): _int(place, 2) for place in places})


Numbered = defaultdict[int, list[Any]]
"""By number: whole numbers as such, all else as bytes."""
Places = dict[int, int]
"""Where each node is, by its id."""


def _fields(data: bytes) -> Numbered:
    found: Numbered = defaultdict(list)
    value: int | bytes
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
        else:
            length, at = (8, at) if key & 7 == 1 else _varint(data, at)
            value, at = data[at : at + length], at + length
        found[key >> 3].append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    if data[at] < 128:  # as almost all are
        return data[at], at + 1
    end = next(place for place in range(at, len(data)) if data[place] < 128) + 1
    return sum((byte & 127) << 7 * place for place, byte in enumerate(data[at:end])), end


def _int(fields: Numbered, number: int) -> int:
    return next(iter(fields[number]), 0)


def _nodes(fields: Numbered, places: Places, *numbers: int) -> tuple[Node, ...]:
    return tuple(_node(value, places) for number in numbers for value in fields[number])


SHAPES: Final[dict[int, tuple[Shape, int, tuple[int, ...]]]] = {
    4: ("ident", 1, ()),
    5: ("select", 2, (1,)),
    6: ("call", 2, (1, 3)),
    7: ("items", 0, (1,)),
    9: ("loop", 1, (2, 4, 5, 6, 7)),
}
"""How an expression's fields are read: its kind, which field is its name, and which are inside it."""


def _node(data: bytes, places: Places) -> Node:
    fields = _fields(data)
    number = next(each for each in fields if each != 2)
    inside, at = _fields(fields[number][0]), places.get(_int(fields, 2), 0)
    if number == 3:
        known = (CONSTANTS[each](values[0]) for each, values in inside.items() if each in CONSTANTS)
        return Node("constant", value=next(known, None), at=at)
    if number == 8:  # a map, written out
        entries = [_fields(entry) for entry in inside[2]]
        return Node(
            "items", "{}", tuple(node for entry in entries for node in _nodes(entry, places, 3, 4)), at=at
        )
    kind, name, args = SHAPES[number]
    if number == 5 and _int(inside, 3):
        kind = "has"
    return Node(kind, inside[name][0].decode() if inside[name] else "", _nodes(inside, places, *args), at=at)


CONSTANTS: Final[dict[int, Callable[[Any], Value]]] = {
    2: bool,
    3: lambda value: value - (1 << 64) if value >> 63 else value,
    4: int,
    5: lambda value: float(struct.unpack("<d", value)[0]),
    6: lambda value: str(value, "utf-8"),
    7: bytes,
}


COMPARED: Final = {"_==_", "_!=_", "_>_", "_>=_", "_<_", "_<=_"}
ARITHMETIC: Final = {"_+_", "_-_", "_*_", "_/_", "_%_"}
LOGIC: Final = {"_&&_", "_||_", "!_"}
ON_TEXT: Final = ("startsWith", "endsWith", "contains")
EXPECTED_OF: Final[dict[str, set[str]]] = {
    **{name: {"string"} for name in (*ON_TEXT, "matches", "lowerAscii", "upperAscii", "trim", "split")},
    **{name: {"boolean"} for name in LOGIC},
    "size": {"string", "list", "map"},
    "_?_:_": {"boolean"},
}


def expected_at(node: Node, place: int) -> Iterable[str]:
    """The kinds that what stands around an argument can do with it."""
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
    """Of a constant."""
    known = node is not None and node.kind == "constant" and type(node.value) in KINDS
    return {KINDS[type(node.value)]} if node and known else set()

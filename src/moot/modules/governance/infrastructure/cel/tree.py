"""A checked expression as a tree, read from the bytes in which CEL hands it out (protobuf's wire format)."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

Value = bool | int | float | str | bytes | None


@dataclass(frozen=True, slots=True)
class Const:
    id: int
    value: Value


@dataclass(frozen=True, slots=True)
class Ident:
    """A declared name with all its dots, or the variable of a loop."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`; `asks`: `has(operand.field)`."""

    id: int
    operand: "Node"
    field: str
    asks: bool


@dataclass(frozen=True, slots=True)
class Call:
    """What a method is called on comes first in `args`."""

    id: int
    function: str
    args: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A list, or the keys and values of a map, written out."""

    id: int
    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """`exists`, `all`, `map` and their like over `over`."""

    id: int
    variable: str
    over: "Node"
    parts: tuple["Node", ...]


Node = Const | Ident | Select | Call | Items | Loop


class Checked(NamedTuple):
    root: Node
    positions: dict[int, int]
    """Where each node begins or has its operator: characters from the beginning, by the node's id."""


def read(serialized: bytes) -> Checked:
    """From `Expression.serialize()`: an `Any` around a `CheckedExpr`."""
    checked = _fields(_one(_fields(serialized), 2))
    positions = {}
    for number, entry in _fields(_one(checked, 5)):
        if number == 4:
            place = dict(_fields(_bytes(entry)))
            positions[_int(place.get(1, 0))] = _int(place.get(2, 0))
    return Checked(_node(_one(checked, 4)), positions)


Field = tuple[int, int | bytes]


def _fields(data: bytes) -> list[Field]:
    return list(_each(data))


def _each(data: bytes) -> Iterator[Field]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        length = {1: 8, 5: 4}.get(wire)
        if length is None:
            length, at = _varint(data, at)
        yield number, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _one(fields: list[Field], number: int) -> bytes:
    return next((_bytes(value) for key, value in fields if key == number), b"")


def _bytes(value: int | bytes) -> bytes:
    return value if isinstance(value, bytes) else b""


def _int(value: int | bytes) -> int:
    return value if isinstance(value, int) else 0


def _text(fields: list[Field], number: int) -> str:
    return _one(fields, number).decode()


def _nodes(fields: list[Field], *numbers: int) -> tuple[Node, ...]:
    return tuple(_node(_bytes(value)) for key, value in fields if key in numbers)


def _node(data: bytes) -> Node:  # noqa: PLR0911
    fields = _fields(data)
    id_ = _int(dict(fields).get(2, 0))
    number, value = next(field for field in fields if field[0] != 2)
    inside = _fields(_bytes(value))
    match number:
        case 3:
            return Const(id_, _constant(inside))
        case 4:
            return Ident(id_, _text(inside, 1))
        case 5:
            return Select(id_, _node(_one(inside, 1)), _text(inside, 2), bool(dict(inside).get(3)))
        case 6:
            return Call(id_, _text(inside, 2), _nodes(inside, 1) + _nodes(inside, 3))
        case 7:
            return Items(id_, _nodes(inside, 1))
        case 9:
            return Loop(id_, _text(inside, 1), _node(_one(inside, 2)), _nodes(inside, 4, 5, 6, 7))
    entries = [_fields(_bytes(entry)) for key, entry in inside if key == 2]
    return Items(id_, tuple(node for entry in entries for node in _nodes(entry, 3, 4)))


def _constant(inside: list[Field]) -> Value:  # noqa: PLR0911
    number, value = inside[0] if inside else (1, 0)
    match number:
        case 2:
            return bool(value)
        case 3:
            signed = _int(value)
            return signed - (1 << 64) if signed >> 63 else signed
        case 4:
            return _int(value)
        case 5:
            unpacked: float = struct.unpack("<d", _bytes(value))[0]
            return unpacked
        case 6:
            return _bytes(value).decode()
        case 7:
            return _bytes(value)
    return None

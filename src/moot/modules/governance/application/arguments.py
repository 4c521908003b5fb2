"""The arguments of a call, taken apart: every value at any depth, with the names that lead to it."""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple


class Leaf(NamedTuple):
    """`names` are those of the maps on the way, `path` tells a reader where it is.

    `pointer` is the JSON pointer; None: it stands in a text, so that nothing can be put in its place.
    """

    names: tuple[str, ...]
    path: str
    value: Any
    pointer: str | None

    @property
    def name(self) -> str:
        return self.names[-1] if self.names else ""

    def belongs_to(self, arguments: Collection[str]) -> bool:
        """Whether it is, or is part of, one of these."""
        return not set(self.names).isdisjoint(arguments) or ".".join(self.names) in arguments


def leaves(tree: Any) -> Iterator[Leaf]:
    """In their order. A text that is JSON is what it holds; a name of a map that no program would give is a value."""
    ahead = [Leaf((), "", tree, "")]
    while ahead:
        leaf = ahead.pop()
        value = _unpack(leaf.value)
        if not isinstance(value, Mapping | list | tuple):
            yield leaf
            continue
        pointer = leaf.pointer if value is leaf.value else None
        if isinstance(value, Mapping):
            yield from (leaf._replace(value=name, pointer=None) for name in value if _is_odd(name))
            inner = [_named(leaf, str(name), part, pointer) for name, part in value.items()]
        else:
            inner = [
                Leaf(leaf.names, f"{leaf.path}[{n}]", part, None if pointer is None else f"{pointer}/{n}")
                for n, part in enumerate(value)
            ]
        ahead += reversed(inner)


def _named(leaf: Leaf, name: str, value: Any, pointer: str | None) -> Leaf:
    path = f"{leaf.path}.{name}" if leaf.path else name
    escaped = name.replace("~", "~0").replace("/", "~1")
    return Leaf((*leaf.names, name), path, value, None if pointer is None else f"{pointer}/{escaped}")


def _unpack(value: Any) -> Any:
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        held = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return held if isinstance(held, dict | list) else value


def _is_odd(name: Any) -> bool:
    return isinstance(name, str) and not name.replace("-", "_").isidentifier()

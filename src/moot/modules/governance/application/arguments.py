"""The arguments of a call, taken apart: every value at any depth, with the names that lead to it."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

PLAIN = frozenset({str, int, float, bool, type(None)})
OPENS = re.compile(r"\s*[{\[]")


class Leaf(NamedTuple):
    """`names` are those of the maps on the way, `steps` also the places in lists.

    `in_text`: it stands in a text that is JSON, so that nothing can be put in its place.
    """

    names: tuple[str, ...]
    steps: tuple[str | int, ...]
    value: Any
    in_text: bool = False

    @property
    def name(self) -> str:
        return self.names[-1] if self.names else ""

    @property
    def path(self) -> str:
        """Where it is, for a reader: `request.urls[0]`."""
        said = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps)
        return "".join(said).removeprefix(".")

    @property
    def pointer(self) -> str:
        """Where it is, as a JSON pointer."""
        return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in self.steps)

    def belongs_to(self, arguments: Collection[str]) -> bool:
        """Whether it is, or is part of, one of these."""
        return not set(self.names).isdisjoint(arguments) or ".".join(self.names) in arguments


def leaves(tree: Any) -> Iterator[Leaf]:
    """In their order. A text that is JSON is what it holds; a name of a map that no program would give is a value."""
    ahead: list[tuple[tuple[str, ...], tuple[str | int, ...], Any, bool]] = [((), (), tree, False)]
    while ahead:
        names, steps, value, in_text = ahead.pop()
        if type(value) is str and OPENS.match(value):
            held = _unpack(value)
            value, in_text = held, in_text or held is not value
        if type(value) in PLAIN:
            yield Leaf(names, steps, value, in_text)
        elif isinstance(value, Mapping):
            yield from (Leaf(names, steps, name, in_text) for name in value if _is_odd(name))
            inner = [((*names, str(n)), (*steps, str(n)), part, in_text) for n, part in value.items()]
            ahead += reversed(inner)
        elif isinstance(value, list | tuple):
            ahead += [(names, (*steps, n), value[n], in_text) for n in reversed(range(len(value)))]
        else:
            yield Leaf(names, steps, value, in_text)


def _unpack(text: str) -> Any:
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return held if isinstance(held, dict | list) else text


@lru_cache(maxsize=4096)
def _is_odd(name: Any) -> bool:
    return isinstance(name, str) and not name.replace("-", "_").isidentifier()

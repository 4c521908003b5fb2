"""One look at one value of a decision for all the rules that depend on it: is it there, is it right, who minds it."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from moot.modules.governance.domain.conditions import Facts, Kind
from moot.modules.governance.infrastructure.cel.atoms import Atom, Op
from moot.modules.governance.infrastructure.cel.program import step_into
from moot.modules.governance.infrastructure.cel.tree import Path
from moot.modules.governance.infrastructure.cel.values import EXACT, READY, WrongValueError, expect

Found = set[int]
Finder = Callable[[Any, Found], None]
Places = Mapping[Any, tuple[int, ...]]
"""Of rules, by the constant that their atoms have."""


def finders(atoms: Iterable[tuple[Atom, int]]) -> tuple[Finder, ...]:
    """For atoms of one term, each with the place of its rule; a finder adds the places whose atom holds."""
    by_op: dict[Op, dict[Any, list[int]]] = defaultdict(lambda: defaultdict(list))
    for atom, place in atoms:
        for constant in [atom.values] if atom.op == "!=" else atom.values:
            by_op[atom.op][constant].append(place)
    return tuple(
        MAKERS[op]({constant: tuple(places) for constant, places in members.items()})
        for op, members in by_op.items()
        if op in MAKERS
    )


def _equal(places: Places) -> Finder:
    def find(value: Any, found: Found) -> None:
        if value in places:
            found.update(places[value])

    return find


def _above(places: Places) -> Finder:
    constants = sorted(places)
    ordered = [places[constant] for constant in constants]

    def find(value: Any, found: Found) -> None:
        if value >= constants[0]:
            found.update(*ordered[: bisect_right(constants, value)])

    return find


def _below(places: Places) -> Finder:
    constants = sorted(places)
    ordered = [places[constant] for constant in constants]

    def find(value: Any, found: Found) -> None:
        if value <= constants[-1]:
            found.update(*ordered[bisect_left(constants, value) :])

    return find


def _starting(places: Places) -> Finder:
    lengths = sorted({len(constant) for constant in places})

    def find(value: Any, found: Found) -> None:
        for length in lengths:
            if (start := value[:length]) in places:
                found.update(places[start])

    return find


def _tried(test: Callable[[Any, Any], bool]) -> Callable[[Places], Finder]:
    """One by one, each constant once however many rules have it."""

    def make(places: Places) -> Finder:
        def find(value: Any, found: Found) -> None:
            for constant, minding in places.items():
                if test(value, constant):
                    found.update(minding)

        return find

    return make


MAKERS: Final[dict[Op, Callable[[Places], Finder]]] = {
    "==": _equal,
    "!=": _tried(lambda value, constants: value not in constants),
    ">": _above,
    "<": _below,
    "starts": _starting,
    "within": _tried(lambda value, constant: constant in value),
}


_MISSING: Final = object()


class Minding:
    """Who depends on one term, by the place of their rule. What is found is worth asking CEL, nothing more."""

    def __init__(self) -> None:
        self._atoms: list[tuple[Atom, int]] = []
        self.everyone: Found = set()
        self.missing: dict[int, Found] = defaultdict(set)
        """Who minds that the path ends after so many steps."""
        self.find: tuple[Finder, ...] = ()
        self.there: Found = set()
        self.absent: Found = set()

    def needed(self, place: int, path: Path, asked: frozenset[Path]) -> None:
        self.everyone.add(place)
        for depth in range(len(path)):
            if path[: depth + 1] not in asked:
                self.missing[depth].add(place)

    def atom(self, atom: Atom, place: int) -> None:
        self.everyone.add(place)
        self._atoms.append((atom, place))

    def close(self) -> None:
        self.find = finders(self._atoms)
        self.there = {place for atom, place in self._atoms if atom.op == "there"}
        self.absent = {place for atom, place in self._atoms if atom.op != "there" and not atom.asked}

    def value(self, value: Any, found: Found) -> None:
        if self.there:
            found |= self.there
        for find in self.find:
            find(value, found)

    def gone(self, depth: int, found: Found) -> None:
        if depth in self.missing:
            found |= self.missing[depth]
        if self.absent:
            found |= self.absent


class FieldWatch:
    """A declared field, and whatever is looked at below it: who minds that minds the field too."""

    def __init__(self, name: str, kind: Kind) -> None:
        self.name = name
        self.minding = Minding()
        self.below: dict[tuple[Path, frozenset[str]], PathWatch] = {}
        self._ready = READY[kind]
        self._paths: tuple[PathWatch, ...] = ()

    def close(self) -> None:
        self._paths = tuple(self.below.values())
        for minding in (self.minding, *(path.minding for path in self._paths)):
            minding.close()

    def look(self, facts: Facts, found: Found) -> None:
        value = facts.payload if self.name == "payload" else facts.values.get(self.name)
        if value is None:
            self.minding.gone(0, found)
            for path in self._paths:
                path.minding.gone(0, found)
            return
        try:
            value = self._ready(value)
        except WrongValueError:
            found |= self.minding.everyone
            return
        self.minding.value(value, found)
        for path in self._paths:
            path.look(value, found)


class PathWatch:
    """A value below an untyped one. `kinds`: what the rules that mind it take it to be."""

    def __init__(self, path: Path, kinds: frozenset[str]) -> None:
        self.minding = Minding()
        self._steps = path[1:]
        self._kinds = kinds
        self._only = next(iter(kinds)) if len(kinds) == 1 else None

    def look(self, value: Any, found: Found) -> None:
        for depth, step in enumerate(self._steps, 1):
            value = value.get(step, _MISSING) if type(value) is dict else step_into(value, step, _MISSING)
            if value is _MISSING:
                self.minding.gone(depth, found)
                return
        if self._is_plainly_right(value):
            self.minding.value(value, found)
        else:
            self._look_closely(value, found)

    def _is_plainly_right(self, value: Any) -> bool:
        kind = type(value)
        if kind is str:
            return self._only == "string"
        return self._only == "number" and (kind is int or kind is float) and -EXACT < value < EXACT

    def _look_closely(self, value: Any, found: Found) -> None:
        try:
            expect(value, self._kinds)
        except WrongValueError:
            found |= self.minding.everyone
            return
        if self._only in ("string", "boolean") or not self.minding.find:
            self.minding.value(value, found)
        else:
            found |= self.minding.everyone

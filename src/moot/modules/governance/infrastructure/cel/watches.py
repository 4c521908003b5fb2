"""One look at one value of a decision for all the rules that depend on it: is it there, is it right, who minds it."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from moot.modules.governance.domain.conditions import Facts, Kind
from moot.modules.governance.infrastructure.cel.atoms import Atom, Constant, Op
from moot.modules.governance.infrastructure.cel.environment import after, count, tainted
from moot.modules.governance.infrastructure.cel.program import step_into
from moot.modules.governance.infrastructure.cel.references import Path
from moot.modules.governance.infrastructure.cel.values import EXACT, READY, WrongValueError, expect

Places = tuple[int, ...]
Found = set[int]
Finder = Callable[[Any, Found], None]

GRAM: Final = 3
FEW: Final = 16
"""Up to so many texts are looked for one by one."""


def finders(atoms: Iterable[tuple[Atom, int]]) -> tuple[Finder, ...]:
    """For atoms of one term, each with the place of its rule; a finder adds the places whose atom holds."""
    by_op: dict[Op, list[tuple[Atom, int]]] = defaultdict(list)
    for atom, place in atoms:
        by_op[atom.op].append((atom, place))
    return tuple(_finder(op, members) for op, members in by_op.items() if op in MAKERS or op == "!=")


def _finder(op: Op, members: list[tuple[Atom, int]]) -> Finder:
    if op == "!=":
        return _none_of(members)
    by_constant: dict[Constant, list[int]] = defaultdict(list)
    for atom, place in members:
        for constant in atom.values:
            by_constant[constant].append(place)
    return MAKERS[op]({constant: tuple(places) for constant, places in by_constant.items()})


def _equal(by_constant: Mapping[Any, Places]) -> Finder:
    def find(value: Any, found: Found) -> None:
        if value in by_constant:
            found.update(by_constant[value])

    return find


def _none_of(members: list[tuple[Atom, int]]) -> Finder:
    """Each list of constants is a bit; a value that is in all of them is found at once."""
    lists: dict[frozenset[Constant], list[int]] = defaultdict(list)
    for atom, place in members:
        lists[atom.values].append(place)
    holding: dict[Constant, int] = defaultdict(int)
    for number, constants in enumerate(lists):
        for constant in constants:
            holding[constant] |= 1 << number
    places, every, in_lists = list(lists.values()), (1 << len(lists)) - 1, dict(holding)

    def find(value: Any, found: Found) -> None:
        outside = every & ~in_lists.get(value, 0)
        while outside:
            lowest = outside & -outside
            found.update(places[lowest.bit_length() - 1])
            outside ^= lowest

    return find


def _ordered(by_constant: Mapping[Any, Places]) -> tuple[list[Any], list[Places]]:
    constants = sorted(by_constant)
    return constants, [by_constant[constant] for constant in constants]


def _above(by_constant: Mapping[Any, Places]) -> Finder:
    constants, places = _ordered(by_constant)
    lowest = constants[0]

    def find(value: Any, found: Found) -> None:
        if value > lowest:
            found.update(*places[: bisect_left(constants, value)])

    return find


def _from(by_constant: Mapping[Any, Places]) -> Finder:
    constants, places = _ordered(by_constant)
    lowest = constants[0]

    def find(value: Any, found: Found) -> None:
        if value >= lowest:
            found.update(*places[: bisect_right(constants, value)])

    return find


def _below(by_constant: Mapping[Any, Places]) -> Finder:
    constants, places = _ordered(by_constant)
    highest = constants[-1]

    def find(value: Any, found: Found) -> None:
        if value < highest:
            found.update(*places[bisect_right(constants, value) :])

    return find


def _up_to(by_constant: Mapping[Any, Places]) -> Finder:
    constants, places = _ordered(by_constant)
    highest = constants[-1]

    def find(value: Any, found: Found) -> None:
        if value <= highest:
            found.update(*places[bisect_left(constants, value) :])

    return find


def _holding(by_constant: Mapping[Any, Places]) -> Finder:
    def find(value: Any, found: Found) -> None:
        for member in value:
            if member in by_constant:
                found.update(by_constant[member])

    return find


def _starting(by_constant: Mapping[Any, Places]) -> Finder:
    lengths = sorted({len(constant) for constant in by_constant})

    def find(value: Any, found: Found) -> None:
        for length in lengths:
            if (start := value[:length]) in by_constant:
                found.update(by_constant[start])

    return find


def _within(by_constant: Mapping[Any, Places]) -> Finder:
    """Many texts are looked for by their first letters, all at once."""
    size = min(GRAM, *(len(constant) for constant in by_constant), GRAM)
    if len(by_constant) <= FEW or not size:
        return _tried(lambda value, constant: constant in value)(by_constant)
    by_gram: dict[str, dict[Any, Places]] = defaultdict(dict)
    for constant, places in by_constant.items():
        by_gram[constant[:size]][constant] = places

    def find(value: Any, found: Found) -> None:
        grams = {value[at : at + size] for at in range(len(value) - size + 1)}
        for gram in by_gram.keys() & grams:
            for constant, places in by_gram[gram].items():
                if constant in value:
                    found.update(places)

    return find


def _tried(test: Callable[[Any, Any], bool]) -> Callable[[Mapping[Any, Places]], Finder]:
    """One by one, each constant once however many rules have it."""

    def make(by_constant: Mapping[Any, Places]) -> Finder:
        pairs = tuple(by_constant.items())

        def find(value: Any, found: Found) -> None:
            for constant, places in pairs:
                if test(value, constant):
                    found.update(places)

        return find

    return make


MAKERS: Final[dict[Op, Callable[[Mapping[Any, Places]], Finder]]] = {
    "==": _equal,
    ">": _above,
    ">=": _from,
    "<": _below,
    "<=": _up_to,
    "holds": _holding,
    "starts": _starting,
    "!starts": _tried(lambda value, constant: not value.startswith(constant)),
    "ends": _tried(lambda value, constant: value.endswith(constant)),
    "!ends": _tried(lambda value, constant: not value.endswith(constant)),
    "within": _within,
    "!within": _tried(lambda value, constant: constant not in value),
}


FLOW_FUNCTIONS: Final[Mapping[str, Any]] = {"after()": after, "tainted()": tainted, "count()": count}
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


class FlowWatch:
    """What happened before, or where an argument comes from."""

    def __init__(self, term: Path) -> None:
        self.minding = Minding()
        self._function = FLOW_FUNCTIONS[str(term[0])]
        self._arguments = term[1:]

    def close(self) -> None:
        self.minding.close()

    def look(self, _facts: Facts, found: Found) -> None:
        try:
            value = self._function(*self._arguments)
        except Exception:  # noqa: BLE001 # bulkhead: whatever goes wrong in it goes wrong again when CEL asks
            found |= self.minding.everyone
            return
        if isinstance(value, bool | int):
            self.minding.value(value, found)
        else:
            found |= self.minding.everyone

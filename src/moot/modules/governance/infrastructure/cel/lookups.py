"""Which of many comparisons with constants hold for one value, without trying each."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from moot.modules.governance.infrastructure.cel.atoms import Atom, Constant, Op

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

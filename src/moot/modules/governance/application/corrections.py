"""Changes a payload so that a rule is no longer broken: what each kind of corrector does, as JSON Patch."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from moot.modules.governance.domain.decisions import Change
from moot.modules.governance.domain.rules import Clamp, Corrector, Drop, Mask, RewriteSql, SetValue

Place = tuple[str | int, ...]
"""Where in the payload: the keys and indices on the way."""

SqlRewriting = Callable[[str, RewriteSql], str | None]
"""The statement as the corrector wants it; None: that cannot be done."""


class Corrections:
    """Without a way to rewrite SQL, what would need it cannot be corrected."""

    def __init__(self, rewrite_sql: SqlRewriting | None = None) -> None:
        self._rewrite_sql = rewrite_sql

    def changes(self, corrector: Corrector, payload: Mapping[str, Any], rule: str) -> tuple[Change, ...]:
        """What `corrector` does to `payload`, on behalf of `rule`; nothing when there is nothing it can do."""
        new: Iterator[tuple[Place, Any]]
        match corrector:
            case Mask():
                found = _find_named(payload, corrector.fields, corrector.path)
                new = ((place, corrector.replacement) for place, _ in found)
            case Drop():
                return tuple(_drop(corrector, payload, rule))
            case Clamp():
                new = _clamp(corrector, payload)
            case SetValue():
                new = iter([(_place(corrector.path), corrector.value)])
            case RewriteSql():
                new = self._rewrite(corrector, payload)
        return tuple(change for place, value in new for change in _set(payload, place, value, rule))

    def _rewrite(self, corrector: RewriteSql, payload: Mapping[str, Any]) -> Iterator[tuple[Place, Any]]:
        place = _place(corrector.path)
        statement = _at(payload, place)
        if isinstance(statement, str) and self._rewrite_sql is not None:
            better = self._rewrite_sql(statement, corrector)
            if better is not None:
                yield place, better


def patch(payload: Mapping[str, Any], changes: Iterable[Change]) -> dict[str, Any]:
    """A copy with the changes made in turn; of two that write to one place, the later one stands."""
    copy: dict[str, Any] = _copy(payload)
    for change in changes:
        *way, last = read_pointer(change.path)
        holder = _at(copy, tuple(way))
        if isinstance(holder, list):
            _patch_list(holder, int(last), change)
        elif isinstance(holder, dict):
            if change.op == "remove":
                holder.pop(str(last), None)
            else:
                holder[str(last)] = change.value
    return copy


def operations(
    patch: Iterable[Mapping[str, Any]], payload: Mapping[str, Any], rule: str
) -> tuple[Change, ...]:
    """A patch that came from a condition in code."""
    return tuple(
        Change(step["op"], step["path"], rule, step.get("value"), _at(payload, read_pointer(step["path"])))
        for step in patch
    )


def _drop(corrector: Drop, payload: Mapping[str, Any], rule: str) -> Iterator[Change]:
    for place, value in _find_named(payload, corrector.fields, corrector.path):
        yield Change("remove", _pointer(place), rule, was=value)
    start = _place(corrector.path) if corrector.path else ()
    for place, members in _lists(_at(payload, start), start):
        kept = [member for member in members if member not in corrector.fields]
        if len(kept) != len(members):
            yield Change("replace", _pointer(place), rule, value=kept, was=members)


def _clamp(corrector: Clamp, payload: Mapping[str, Any]) -> Iterator[tuple[Place, Any]]:
    place = _place(corrector.path)
    number = _at(payload, place)
    if isinstance(number, bool) or not isinstance(number, int | float):
        return
    raised = number if corrector.at_least is None else max(number, corrector.at_least)
    bounded = raised if corrector.at_most is None else min(raised, corrector.at_most)
    yield place, int(bounded) if isinstance(number, int) and bounded == int(bounded) else bounded


def _set(payload: Mapping[str, Any], place: Place, value: Any, rule: str) -> Iterator[Change]:
    holder = _at(payload, place[:-1])
    if isinstance(holder, Mapping) and place[-1] not in holder:
        yield Change("add", _pointer(place), rule, value)
    elif (was := _at(payload, place)) != value or type(was) is not type(value):
        yield Change("replace", _pointer(place), rule, value, was)


def _find_named(tree: Any, names: Sequence[str], path: str | None) -> Iterator[tuple[Place, Any]]:
    """Every entry called one of `names`, at any depth below `path`."""
    start = _place(path) if path else ()
    for place, value in _entries(_at(tree, start), start):
        if place[-1] in names:
            yield place, value


def _entries(tree: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    inside: Iterable[tuple[str | int, Any]] = ()
    if isinstance(tree, Mapping):
        inside = tree.items()
    elif isinstance(tree, list | tuple):
        inside = enumerate(tree)
    for key, value in inside:
        yield (*place, key), value
        yield from _entries(value, (*place, key))


def _lists(tree: Any, place: Place) -> Iterator[tuple[Place, list[Any]]]:
    if isinstance(tree, list):
        yield place, tree
    for inner, value in _entries(tree, place):
        if isinstance(value, list):
            yield inner, value


def _patch_list(members: list[Any], index: int, change: Change) -> None:
    if change.op == "remove":
        del members[index]
    elif change.op == "add":
        members.insert(index, change.value)
    else:
        members[index] = change.value


def _at(tree: Any, place: Place) -> Any:
    for key in place:
        if isinstance(tree, Mapping):
            tree = tree.get(key)
        elif isinstance(tree, list | tuple) and str(key).isdigit() and int(key) < len(tree):
            tree = tree[int(key)]
        else:
            return None
    return tree


def _place(path: str) -> Place:
    return tuple(path.split(".")[1:])


def _pointer(place: Place) -> str:
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in place)


def read_pointer(pointer: str) -> Place:
    return tuple(key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:])


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_copy(inner) for inner in value]
    return value

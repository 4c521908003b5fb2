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
    def __init__(self, rewrite_sql: SqlRewriting) -> None:
        self._rewrite_sql = rewrite_sql

    def changes(self, corrector: Corrector, payload: Mapping[str, Any], rule: str) -> tuple[Change, ...]:
        """What `corrector` does to `payload`, on behalf of `rule`; nothing when there is nothing it can do."""
        place = tuple((corrector.path or "").split(".")[1:])
        there, new = _at(payload, place), dict[Place, Any]()
        match corrector:
            case Mask(fields=names, replacement=hidden):
                new = {inside: hidden for inside, _ in _entries(there, place) if inside[-1] in names}
            case Drop(fields=names):
                return tuple(_drop(names, there, place, rule))
            case Clamp() if isinstance(there, int | float) and not isinstance(there, bool):
                new = {place: _clamp(corrector, there)}
            case SetValue(value=value):
                new = {place: value}
            case RewriteSql() if isinstance(there, str):
                better = self._rewrite_sql(there, corrector)
                new = {} if better is None else {place: better}
        return tuple(change for at, value in new.items() for change in _set(payload, at, value, rule))


def patch(payload: Mapping[str, Any], changes: Iterable[Change]) -> dict[str, Any]:
    """A copy with the changes made in turn; of two that write to one place, the later one stands."""
    copy: dict[str, Any] = _copy(payload)
    for change in changes:
        *way, last = read_pointer(change.path)
        holder = _at(copy, tuple(way))
        if isinstance(holder, list):
            end = int(last) + (change.op != "add")
            holder[int(last) : end] = [] if change.op == "remove" else [change.value]
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


def _drop(names: Sequence[str], top: Any, start: Place, rule: str) -> Iterator[Change]:
    inside = list(_entries(top, start))
    yield from (
        Change("remove", write_pointer(place), rule, was=was) for place, was in inside if place[-1] in names
    )
    for place, was in [(start, top), *inside]:
        if isinstance(was, list) and (kept := [each for each in was if each not in names]) != was:
            yield Change("replace", write_pointer(place), rule, value=kept, was=was)


def _clamp(corrector: Clamp, number: float) -> float:
    raised = number if corrector.at_least is None else max(number, corrector.at_least)
    bounded = raised if corrector.at_most is None else min(raised, corrector.at_most)
    return int(bounded) if isinstance(number, int) and bounded == int(bounded) else bounded


def _set(payload: Mapping[str, Any], place: Place, value: Any, rule: str) -> Iterator[Change]:
    holder = _at(payload, place[:-1])
    if isinstance(holder, Mapping) and place[-1] not in holder:
        yield Change("add", write_pointer(place), rule, value)
    elif (was := _at(payload, place)) != value or type(was) is not type(value):
        yield Change("replace", write_pointer(place), rule, value, was)


def _entries(tree: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    """Everything in the tree, which is at `place`, at any depth."""
    inside: Iterable[tuple[str | int, Any]] = ()
    if isinstance(tree, Mapping):
        inside = tree.items()
    elif isinstance(tree, list | tuple):
        inside = enumerate(tree)
    for key, value in inside:
        yield (*place, key), value
        yield from _entries(value, (*place, key))


def _at(tree: Any, place: Place) -> Any:
    for key in place:
        if isinstance(tree, Mapping):
            tree = tree.get(key)
        elif isinstance(tree, list | tuple) and str(key).isdigit() and int(key) < len(tree):
            tree = tree[int(key)]
        else:
            return None
    return tree


def write_pointer(place: Place) -> str:
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in place)


def read_pointer(pointer: str) -> Place:
    return tuple(key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:])


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_copy(inner) for inner in value]
    return value

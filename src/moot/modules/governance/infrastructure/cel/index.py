"""The door: conditions checked, and many rules at once, of which only the ones worth asking are asked.

For one kind of decision and one tool, rules wait at the values their covers are about; a value is looked at once for
all of them. What is found there is worth asking CEL, nothing more.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from moot.modules.governance.domain.conditions import Facts, Finding, Problem, ToolProfile
from moot.modules.governance.domain.rules import ConditionEngine, EnhancedRule, Fired
from moot.modules.governance.infrastructure.cel.cover import Atom, Cover, Op, cover
from moot.modules.governance.infrastructure.cel.environment import JUDGED, fields_for
from moot.modules.governance.infrastructure.cel.problems import find_problems
from moot.modules.governance.infrastructure.cel.program import Judged, Program, finding, step_into
from moot.modules.governance.infrastructure.cel.tree import Path
from moot.modules.governance.infrastructure.cel.values import EXACT, KINDS, READERS, Reader

Found = set[int]
"""Rules, by their place in the order in which they are checked."""
Finder = Callable[[Any, Found], None]
Places = Mapping[Any, list[int]]
"""Rules by the constant that their atoms have."""
INSIDE: Final = frozenset({list, dict})
"""Values with others inside: none of them equals a constant, and no table can be asked for them."""


def _match_equal(places: Places) -> Finder:
    def find(value: Any, found: Found) -> None:
        if type(value) not in INSIDE and value in places:
            found.update(places[value])

    return find


def _above(places: Places) -> Finder:
    constants, waiting = zip(*sorted(places.items()), strict=True)
    return lambda value, found: found.update(*waiting[: bisect_right(constants, value)])


def _below(places: Places) -> Finder:
    constants, waiting = zip(*sorted(places.items()), strict=True)
    return lambda value, found: found.update(*waiting[bisect_left(constants, value) :])


def _try_each(test: Callable[[Any, Any], bool]) -> Callable[[Places], Finder]:
    """One by one, each constant once however many rules have it."""

    def make(places: Places) -> Finder:
        def find(value: Any, found: Found) -> None:
            for constant, waiting in places.items():
                if test(value, constant):
                    found.update(waiting)

        return find

    return make


FINDERS: Final[dict[Op, Callable[[Places], Finder]]] = {
    "==": _match_equal,
    "!=": _try_each(lambda value, constants: type(value) in INSIDE or value not in constants),
    ">": _above,
    "<": _below,
    "within": _try_each(lambda value, constant: constant in value),
}
MISSING: Final = object()
ANYTHING: Final = frozenset(KINDS.values()) - {"null"}


class Watch:
    """One look at one value for all the rules that depend on it, which take it to be of `kinds`."""

    def __init__(self, path: Path, kinds: frozenset[str]) -> None:
        self._root, self._steps = str(path[0]), path[1:]
        self._types = {each for each, kind in KINDS.items() if kind in (kinds or ANYTHING)}
        self._is_number = kinds == {"number"}
        self._everyone: Found = set()
        self._there: Found = set()
        self._absent: Found = set()
        self._constants: dict[Op, dict[Any, list[int]]] = defaultdict(lambda: defaultdict(list))
        self._finders: list[Finder] = []

    def need(self, place: int, *, always: bool) -> None:
        """`always`: the rule is broken where the value is missing."""
        self._everyone.add(place)
        if always:
            self._absent.add(place)

    def add(self, atom: Atom, place: int) -> None:
        self._everyone.add(place)
        if atom.op == "there":
            self._there.add(place)
        elif not atom.asked:
            self._absent.add(place)
        for constant in [atom.values] if atom.op == "!=" else atom.values:
            self._constants[atom.op][constant].append(place)

    def close(self) -> None:
        self._finders = [FINDERS[op](dict(places)) for op, places in self._constants.items()]

    def look(self, judged: Judged, found: Found) -> None:
        value = judged.values.get(self._root)
        if value is None:
            found |= self._everyone if self._root in judged.wrong else self._absent
            return
        for step in self._steps:
            above, value = value, step_into(value, step, MISSING)
            if value is MISSING:
                found |= self._absent if isinstance(above, dict) else self._everyone
                return
        if type(value) not in self._types or (self._is_number and not -EXACT < value < EXACT):
            found |= self._everyone
            return
        if self._there:
            found |= self._there
        for find in self._finders:
            find(value, found)


class Ready(NamedTuple):
    """A rule, compiled; a condition in code has no program."""

    rule: EnhancedRule
    program: Program | None = None
    cover: Cover | None = None

    def applies(self, decision_type: str | None, tool: str | None) -> bool:
        types, tools = self.rule.for_types, self.rule.tools
        return (not types or decision_type in types) and (not tools or tool in tools)


class Bucket:
    """The rules that apply to one kind of decision and one tool, in the order in which they are checked."""

    def __init__(self, rules: Sequence[Ready]) -> None:
        self._rules = rules
        self._readers: dict[str, Reader] = {}
        self._always: Found = set()
        self._watches: dict[tuple[Path, frozenset[str]], Watch] = {}
        for place, ready in enumerate(rules):
            if ready.program is not None:
                fields = ready.program.fields
                self._readers |= {name: READERS[fields[name]] for name in ready.program.names}
            if ready.program is None or ready.cover is None:
                self._always.add(place)
            else:
                self._add(place, ready.program, ready.cover)
        for watch in self._watches.values():
            watch.close()

    def _add(self, place: int, program: Program, covering: Cover) -> None:
        for path in [*((name,) for name in program.roots), *program.paths]:
            first = min(len(path), 2)
            above = (path[:length] for length in range(first, len(path) + 1))
            self._watch(path, program).need(place, always=not program.asked.issuperset(above))
        for atom in covering:
            self._watch(atom.term, program).add(atom, place)

    def _watch(self, path: Path, program: Program) -> Watch:
        kinds = program.kinds(path)
        return self._watches.setdefault((path, kinds), Watch(path, kinds))

    def find_broken(self, facts: Facts) -> list[Fired]:
        judged, found = Judged(facts, self._readers), set(self._always)
        for watch in self._watches.values():
            watch.look(judged, found)
        if not found:
            return []
        rules = [self._rules[place] for place in sorted(found)]
        answers = [(ready.rule, _answer(ready, judged)) for ready in rules]
        return [Fired(rule, answer) for rule, answer in answers if answer is not None]


def _answer(ready: Ready, judged: Judged) -> Finding | None:
    if ready.program is not None:
        return finding(ready.program, judged)
    condition: Any = ready.rule.condition
    name = getattr(condition, "__name__", type(condition).__name__)
    try:
        answer = condition(judged.facts)
    except Exception as e:  # noqa: BLE001 # bulkhead: a condition that fails is one that is broken, and nothing more
        return Finding(name, error=f"{type(e).__name__}: {e}")
    if answer is None or answer is False:
        return None
    return answer if isinstance(answer, Finding) else Finding(name)


class CelIndex:
    """`RuleIndex`: gives the same answers as asking every rule, one after the other."""

    def __init__(self, rules: Sequence[Ready]) -> None:
        ordered = sorted(rules, key=lambda ready: ready.rule.order)
        keys: set[tuple[str | None, str | None]] = {(None, None), ("tool_call", None)}
        keys |= {(name, None) for ready in ordered for name in ready.rule.for_types}
        keys |= {("tool_call", tool) for ready in ordered for tool in ready.rule.tools}
        self._buckets = {key: Bucket([ready for ready in ordered if ready.applies(*key)]) for key in keys}

    def find_broken(self, facts: Facts) -> list[Fired]:
        buckets, kind = self._buckets, facts.decision_type
        bucket = buckets.get((kind, facts.tool)) or buckets.get((kind, None)) or buckets[None, None]
        token = JUDGED.set(facts)
        try:
            return bucket.find_broken(facts)
        finally:
            JUDGED.reset(token)


class CelConditions(ConditionEngine):
    def problems(self, rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> list[Problem]:
        return find_problems(rule, tools)

    def index(self, rules: Sequence[EnhancedRule], tools: Mapping[str, ToolProfile]) -> CelIndex:
        return CelIndex([_compile(rule, tools) for rule in rules if rule.enabled])


def _compile(rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> Ready:
    if not isinstance(rule.condition, str):
        return Ready(rule)
    program = Program(rule.condition, fields_for(rule, tools))
    return Ready(rule, program, cover(program))

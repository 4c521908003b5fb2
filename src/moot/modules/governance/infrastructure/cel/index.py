"""The door: conditions checked, and many rules at once, of which only the ones worth asking are asked.

For one kind of decision and one tool, rules wait at the values their covers are about; a value is looked at once for
all of them. What is found there is worth asking CEL, nothing more.

A cover of a condition is a set of atoms, comparisons with constants that can be looked up instead of tried, of which
at least one is true whenever the condition is true or cannot be decided, provided that the fields it needs are there
and of their types. All false: the condition is false. This is sound because CEL's `&&` is false as soon as one side
is, and `||` and `!` follow from it.

An atom may be true more often than what it stands for: `>` is at its bound too, and so is `within` for `endsWith`.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

from moot.modules.governance.domain.conditions import Facts, Finding, ToolProfile
from moot.modules.governance.domain.rules import Complaint, ConditionEngine, EnhancedRule, Fired, fields_for
from moot.modules.governance.infrastructure.cel.environment import DECLARED_AS, EXACT, JUDGED, KINDS, Reader
from moot.modules.governance.infrastructure.cel.problems import find_problems
from moot.modules.governance.infrastructure.cel.program import (
    EACH,
    MISSING,
    Judged,
    Path,
    Program,
    compile_condition,
    finding,
    step_into,
)
from moot.modules.governance.infrastructure.cel.tree import ON_TEXT, Node, Value, kinds_of

Op = Literal["==", "!=", ">", "<", "within", "there", "absent"]


class Atom(NamedTuple):
    """`term op one of values`: for `!=` none of them.

    `asked`: whatever stands beside it asks `has(term)`, so that it is false where the term is missing.
    """

    term: Path
    op: Op
    values: frozenset[Value] = frozenset()
    asked: bool = False


Cover = tuple[Atom, ...]

COSTS: Final[dict[Op, int]] = {"==": 1, "within": 3, ">": 4, "<": 4, "absent": 5, "!=": 8, "there": 9}
"""How likely an atom is to hold for an innocent decision, by guess."""
FLAG: Final = 6
NEGATED: Final[dict[Op, Op]] = {"==": "!=", "!=": "==", ">": "<", "<": ">", "there": "absent"}
MIRRORED: Final[dict[Op, Op]] = {">": "<", "<": ">"}
COMPARISONS: Final[dict[str, Op]] = {
    "_==_": "==", "_!=_": "!=", "_>_": ">", "_>=_": ">", "_<_": "<", "_<=_": "<",
}  # fmt: skip


def find_cover(program: Program) -> Cover | None:
    """None: only CEL can tell."""
    unclear = any(EACH in path for path in program.paths)
    return None if unclear else _cover(program, program.root, negated=False)


def _cover(program: Program, node: Node, *, negated: bool) -> Cover | None:
    match node:
        case Node("call", "!_", (inner,)):
            return _cover(program, inner, negated=not negated)
        case Node("call", "_&&_" | "_||_" as function):
            covers = [_cover(program, member, negated=negated) for member in _flatten(node, function)]
            if (function == "_&&_") != negated:
                return _all_of([each for each in covers if each])
            return None if None in covers else tuple(atom for each in covers for atom in each or ())
    atom = _atom(program, node)
    op = NEGATED.get(atom.op) if atom and negated else atom and atom.op
    return (atom._replace(op=op),) if atom and op else None


def _all_of(covers: Sequence[Cover]) -> Cover | None:
    """The one that is the least likely to hold is enough."""
    asked = {each[0].term for each in covers if len(each) == 1 and each[0].op == "there"}
    best = min(covers, key=lambda each: sum(map(_cost, each)), default=None)
    return best and tuple(atom._replace(asked=atom.asked or atom.term in asked) for atom in best)


def _cost(atom: Atom) -> int:
    """Every other decision has the flag that a rule asks for."""
    return FLAG if any(isinstance(value, bool) for value in atom.values) else COSTS[atom.op]


def _flatten(node: Node, function: str) -> list[Node]:
    if (node.kind, node.name) == ("call", function):
        return [member for arg in node.args for member in _flatten(arg, function)]
    return [node]


def _atom(program: Program, node: Node) -> Atom | None:
    if (asked := program.asks_for(node)) is not None:
        return Atom(asked, "there")
    match node:
        case Node("call", name, (Node("constant") as value, right)) if name in COMPARISONS:
            op = COMPARISONS[name]
            return _compare(program, right, MIRRORED.get(op, op), value)
        case Node("call", name, (left, Node("constant") as value)) if name in COMPARISONS:
            return _compare(program, left, COMPARISONS[name], value)
        case Node("call", name, (left, Node("constant", value=str()) as text)) if name in ON_TEXT:
            return _compare(program, left, "within", text)
        case Node("call", "@in", (left, Node("items", "", items))):
            return _compare(program, left, "==", *items)
    return _compare(program, node, "==", Node("constant", value=True))


def _compare(program: Program, node: Node, op: Op, *constants: Node) -> Atom | None:
    """Only a value of one kind, and constants of the same."""
    term = program.path(node)
    if term is None or any(
        each.kind != "constant" or kinds_of(each) != program.kinds(term) for each in constants
    ):
        return None
    return Atom(term, op, frozenset(each.value for each in constants))


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
ANYTHING: Final = frozenset(KINDS.values()) - {"null"}


class Watch:
    """One look at one value for all the rules that depend on it, which take it to be of `kinds`."""

    def __init__(self, path: Path, kinds: frozenset[str]) -> None:
        self._root, self._steps = str(path[0]), path[1:]
        self._types = {each for each, kind in KINDS.items() if kind in (kinds or ANYTHING)}
        self._is_number = kinds == {"number"}
        self.everyone: Found = set()
        self.absent: Found = set()
        """Rules that are broken where the value is missing."""
        self._there: Found = set()
        self._constants: dict[Op, dict[Any, list[int]]] = defaultdict(lambda: defaultdict(list))

    def add(self, place: int, atom: Atom) -> None:
        self.everyone.add(place)
        if atom.op == "there":
            self._there.add(place)
        elif not atom.asked:
            self.absent.add(place)
        for constant in [atom.values] if atom.op == "!=" else atom.values:
            self._constants[atom.op][constant].append(place)

    @cached_property
    def _finders(self) -> list[Finder]:
        """Made when the first decision is looked at: by then all rules are there."""
        return [FINDERS[op](dict(places)) for op, places in self._constants.items()]

    def look(self, judged: Judged, found: Found) -> None:
        value = judged.values.get(self._root)
        if value is None:
            found |= self.everyone if self._root in judged.wrong else self.absent
            return
        for step in self._steps:
            above, value = value, step_into(value, step)
            if value is MISSING:
                found |= self.absent if isinstance(above, dict) else self.everyone
                return
        if type(value) not in self._types or (self._is_number and not -EXACT < value < EXACT):
            found |= self.everyone
            return
        if self._there:
            found |= self._there
        for find in self._finders:
            find(value, found)


class Ready:
    """A rule, compiled. A condition in code has no program, and one that only CEL can tell has no cover."""

    def __init__(self, rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> None:
        self.rule, source = rule, rule.condition
        self.program = compile_condition(source, fields_for(rule, tools)) if isinstance(source, str) else None
        self.cover = find_cover(self.program) if self.program else None

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
                self._readers |= {name: DECLARED_AS[fields[name]][1] for name in ready.program.names}
            if ready.program is None or ready.cover is None:
                self._always.add(place)
            else:
                self._add(place, ready.program, ready.cover)

    def _add(self, place: int, program: Program, covering: Cover) -> None:
        for path in [*((name,) for name in program.roots), *program.paths]:
            first = min(len(path), 2)
            above = (path[:length] for length in range(first, len(path) + 1))
            watch = self._watch(path, program)
            watch.everyone.add(place)
            if not program.asked.issuperset(above):
                watch.absent.add(place)
        for atom in covering:
            self._watch(atom.term, program).add(place, atom)

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
    def problems(self, rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> list[Complaint]:
        return find_problems(rule, tools)

    def index(self, rules: Sequence[EnhancedRule], tools: Mapping[str, ToolProfile]) -> CelIndex:
        return CelIndex([Ready(rule, tools) for rule in rules if rule.enabled])

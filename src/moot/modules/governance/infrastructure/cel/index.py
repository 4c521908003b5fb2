"""The door: conditions checked, and many rules at once, of which only the ones worth asking are asked."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from cel_expr_python import cel

from moot.modules.governance.domain.conditions import Facts, FieldType, Finding, Problem, ToolProfile
from moot.modules.governance.domain.rules import ConditionEngine, EnhancedRule, Fired
from moot.modules.governance.infrastructure.cel.atoms import Cover, cover
from moot.modules.governance.infrastructure.cel.environment import JUDGED, declared, environment
from moot.modules.governance.infrastructure.cel.problems import problems_of
from moot.modules.governance.infrastructure.cel.program import Judged, Program, finding
from moot.modules.governance.infrastructure.cel.tree import EACH, Path
from moot.modules.governance.infrastructure.cel.watches import (
    FieldWatch,
    Found,
    Minding,
    PathWatch,
)

TOGETHER: Final = 16
"""So many conditions that only CEL can tell are asked in one expression."""
LONGEST: Final = 50_000


class Ready:
    """A rule, compiled; a condition in code has no program."""

    def __init__(self, rule: EnhancedRule, program: Program | None) -> None:
        self.rule = rule
        self.program = program
        self.cover: Cover | None = None if program is None else cover(program)

    def applies(self, decision_type: str | None, tool: str | None) -> bool:
        types, tools = self.rule.for_types, self.rule.tools
        return (not types or decision_type in types) and (not tools or tool in tools)


class CelIndex:
    """`RuleIndex`: gives the same answers as asking every rule, one after the other."""

    def __init__(self, rules: Sequence[Ready]) -> None:
        ordered = sorted(rules, key=lambda ready: ready.rule.order)
        keys: set[tuple[str | None, str | None]] = {(None, None), ("tool_call", None)}
        keys |= {(name, None) for ready in ordered for name in ready.rule.for_types}
        keys |= {("tool_call", tool) for ready in ordered for tool in ready.rule.tools}
        self._buckets = {key: Bucket([ready for ready in ordered if ready.applies(*key)]) for key in keys}

    def fired(self, facts: Facts) -> list[Fired]:
        buckets, kind = self._buckets, facts.decision_type
        bucket = buckets.get((kind, facts.tool)) or buckets.get((kind, None)) or buckets[None, None]
        token = JUDGED.set(facts)
        try:
            return bucket.fired(facts)
        finally:
            JUDGED.reset(token)


class Bucket:
    """The rules that apply to one kind of decision and one tool, in the order in which they are checked."""

    def __init__(self, rules: Sequence[Ready]) -> None:
        self._rules = rules
        self._in_code = {place for place, ready in enumerate(rules) if ready.program is None}
        self._fields: dict[str, FieldWatch] = {}
        programs = [(place, ready.program, ready.cover) for place, ready in enumerate(rules) if ready.program]
        for place, program, covering in programs:
            self._add(place, program, covering)
        self._watches = tuple(self._fields.values())
        for watch in self._watches:
            watch.close()
        self._looping = [(place, p) for place, p, _ in programs if any(EACH in path for path in p.paths)]
        uncovered = [(place, program) for place, program, covering in programs if covering is None]
        self._chunks = _chunks(uncovered)
        self._asked_always = _names(program for _, program in (*self._looping, *uncovered))

    def _add(self, place: int, program: Program, covering: Cover | None) -> None:
        for name in program.roots:
            self._field(name, program).minding.needed(place, (name,), program.asked)
        for path, kinds in program.paths.items():
            if EACH not in path:
                self._minding(path, program, kinds).needed(place, path, program.asked)
        for atom in covering or ():
            kinds = program.paths.get(atom.term, frozenset())
            self._minding(atom.term, program, kinds).atom(atom, place)

    def _field(self, name: str, program: Program) -> FieldWatch:
        return self._fields.setdefault(name, FieldWatch(name, program.fields[name].kind))

    def _minding(self, path: Path, program: Program, kinds: frozenset[str]) -> Minding:
        root = str(path[0])
        field = self._field(root, program)
        if len(path) == 1 and program.fields[root].kind != "any":
            return field.minding
        return field.below.setdefault((path, kinds), PathWatch(path, kinds)).minding

    def fired(self, facts: Facts) -> list[Fired]:
        found: Found = set(self._in_code)
        for watch in self._watches:
            watch.look(facts, found)
        if self._chunks or self._looping:
            self._ask_together(Judged(facts, self._asked_always), found)
        return self._ask_each(facts, [self._rules[place] for place in sorted(found)]) if found else []

    def _ask_together(self, judged: Judged, found: Found) -> None:
        for place, program in self._looping:
            if program.trouble(judged) is not None:
                found.add(place)
        for places, expression in self._chunks:
            if not places <= found and not _is_false(expression, judged.activation):
                found |= places

    def _ask_each(self, facts: Facts, rules: list[Ready]) -> list[Fired]:
        judged = Judged(facts, _names(ready.program for ready in rules))
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


Chunk = tuple[Found, cel.Expression]


def _chunks(uncovered: Sequence[tuple[int, Program]]) -> list[Chunk]:
    """Conditions that only CEL can tell, several in one expression: false means that each of them is."""
    alike: dict[frozenset[Any], list[tuple[int, Program]]] = defaultdict(list)
    for place, program in uncovered:
        alike[frozenset(program.fields.items())].append((place, program))
    return [
        chunk
        for members in alike.values()
        for start in range(0, len(members), TOGETHER)
        for chunk in _together(members[start : start + TOGETHER])
    ]


def _together(members: list[tuple[int, Program]]) -> list[Chunk]:
    source = " || ".join(f"({program.runnable}\n)" for _, program in members)
    if len(members) == 1 or len(source) > LONGEST:
        return [({place}, program.expression) for place, program in members]
    return [({place for place, _ in members}, environment(members[0][1].fields).compile(source))]


def _names(programs: Iterable[Program | None]) -> dict[str, FieldType]:
    return {
        name: program.fields[name] for program in programs if program is not None for name in program.names
    }


def _is_false(expression: cel.Expression, activation: cel.Activation) -> bool:
    try:
        return expression.eval(activation).value() is False
    except RuntimeError:
        return False


class CelConditions(ConditionEngine):
    def problems(self, rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> list[Problem]:
        return problems_of(rule, tools)

    def index(self, rules: Sequence[EnhancedRule], tools: Mapping[str, ToolProfile]) -> CelIndex:
        return CelIndex([_ready(rule, tools) for rule in rules if rule.enabled])


def _ready(rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> Ready:
    condition = rule.condition
    return Ready(rule, Program(condition, declared(rule, tools)) if isinstance(condition, str) else None)

"""What must hold for a condition to hold: comparisons with constants that can be looked up instead of tried.

A cover of a condition is a set of atoms of which at least one is true whenever the condition is true or cannot be
decided, provided that the fields it needs are there and of their types. All false: the condition is false. This is
sound because CEL's `&&` is false as soon as one side is, and `||` and `!` follow from it.

An atom may be true more often than what it stands for: `>` is at its bound too, and so is `within` for `endsWith`.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from moot.modules.governance.infrastructure.cel.program import Program
from moot.modules.governance.infrastructure.cel.tree import EACH, Node, Path, Value, kinds_of_value

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
ON_TEXT: Final = {"startsWith", "endsWith", "contains"}


def cover(program: Program) -> Cover | None:
    """None: only CEL can tell."""
    if any(EACH in path for path in program.paths):
        return None
    return _cover(program, program.checked.root, negated=False)


def _cover(program: Program, node: Node, *, negated: bool) -> Cover | None:
    match node:
        case Node("call", "!_", (inner,)):
            return _cover(program, inner, negated=not negated)
        case Node("call", "_&&_" | "_||_" as function):
            covers = [_cover(program, member, negated=negated) for member in _flatten(node, function)]
            return _all_of(covers) if (function == "_&&_") != negated else _any_of(covers)
    atom = _atom(program, node)
    if atom is None or not negated:
        return None if atom is None else (atom,)
    opposite = NEGATED.get(atom.op)
    return None if opposite is None else (atom._replace(op=opposite),)


def _all_of(covers: list[Cover | None]) -> Cover | None:
    known = [each for each in covers if each]
    asked = {each[0].term for each in known if len(each) == 1 and each[0].op == "there"}
    best = min(known, key=lambda each: sum(map(_cost, each)), default=None)
    return best and tuple(atom._replace(asked=atom.asked or atom.term in asked) for atom in best)


def _any_of(covers: list[Cover | None]) -> Cover | None:
    return None if None in covers else tuple(atom for each in covers for atom in each or ())


def _cost(atom: Atom) -> int:
    """Every other decision has the flag that a rule asks for."""
    return FLAG if any(isinstance(value, bool) for value in atom.values) else COSTS[atom.op]


def _flatten(node: Node, function: str) -> list[Node]:
    if (node.kind, node.name) == ("call", function):
        return [member for arg in node.args for member in _flatten(arg, function)]
    return [node]


def _atom(program: Program, node: Node) -> Atom | None:
    if (asked := program.references.asks_for(node)) is not None:
        return Atom(asked, "there")
    match node:
        case Node("call", name, (Node("constant", value=value), right)) if name in COMPARISONS:
            op = COMPARISONS[name]
            return _compare(program, right, MIRRORED.get(op, op), [value])
        case Node("call", name, (left, Node("constant", value=value))) if name in COMPARISONS:
            return _compare(program, left, COMPARISONS[name], [value])
        case Node("call", name, (left, Node("constant", value=str() as text))) if name in ON_TEXT:
            return _compare(program, left, "within", [text])
        case Node("call", "@in", (left, Node("items", "", items))) if all(
            i.kind == "constant" for i in items
        ):
            return _compare(program, left, "==", [item.value for item in items])
    return _compare(program, node, "==", [True])


def _compare(program: Program, node: Node, op: Op, values: Sequence[Value]) -> Atom | None:
    """Only a value of one kind, and constants of the same."""
    term = program.references.path(node)
    if term is None or any(kinds_of_value(value) != program.kinds(term) for value in values):
        return None
    return Atom(term, op, frozenset(values))

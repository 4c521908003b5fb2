"""What must hold for a condition to hold: comparisons with constants that can be looked up instead of tried.

A cover of a condition is a set of atoms of which at least one is true whenever the condition is true or cannot be
decided, provided that the fields it needs are there and of their types. All false: the condition is false. This is
sound because CEL's `&&` is false as soon as one side is, and `||` and `!` follow from it.
"""

from typing import Final, Literal, NamedTuple

from moot.modules.governance.infrastructure.cel import tree
from moot.modules.governance.infrastructure.cel.program import Program
from moot.modules.governance.infrastructure.cel.references import Path, References, kinds_of

Op = Literal["==", "!=", ">", ">=", "<", "<=", "starts", "!starts", "ends", "!ends", "within", "!within", "holds",
             "there", "absent"]  # fmt: skip
Constant = bool | int | float | str


class Atom(NamedTuple):
    """`term op one of values`: for `!=` none of them. `term` is a path or a call of a flow function.

    `asked`: whatever stands beside it asks `has(term)`, so that it is false where the term is missing.
    """

    term: Path
    op: Op
    values: frozenset[Constant]
    asked: bool = False


Cover = tuple[Atom, ...]

COSTS: Final[dict[Op, int]] = {
    "==": 1, "holds": 2, "starts": 2, "ends": 3, "within": 3, ">": 4, ">=": 4, "<": 4, "<=": 4, "absent": 5,
    "!=": 8, "!starts": 8, "!ends": 8, "!within": 8, "there": 9,
}  # fmt: skip
"""How likely an atom is to hold for an innocent decision, by guess."""
FLAG: Final = 6
NEGATED: Final[dict[Op, Op]] = {
    "==": "!=", "!=": "==", ">": "<=", "<=": ">", "<": ">=", ">=": "<", "starts": "!starts", "ends": "!ends",
    "within": "!within", "there": "absent",
}  # fmt: skip
MIRRORED: Final[dict[Op, Op]] = {"==": "==", "!=": "!=", ">": "<", "<": ">", ">=": "<=", "<=": ">="}
COMPARISONS: Final[dict[str, Op]] = {
    "_==_": "==", "_!=_": "!=", "_>_": ">", "_>=_": ">=", "_<_": "<", "_<=_": "<=",
}  # fmt: skip
TEXTUAL: Final[dict[str, Op]] = {"startsWith": "starts", "endsWith": "ends", "contains": "within"}
FLOWS: Final = {"after", "tainted", "count"}


def cover(program: Program) -> Cover | None:
    """None: only CEL can tell."""
    return _Covering(program).of(program.checked.root, negated=False)


class _Covering:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._paths = References(program.fields)

    def of(self, node: tree.Node, *, negated: bool) -> Cover | None:
        match node:
            case tree.Call(function="!_", args=(inner,)):
                return self.of(inner, negated=not negated)
            case tree.Call(function="_&&_" | "_||_" as function):
                members = _flat(node, function)
                covers = [self.of(member, negated=negated) for member in members]
                return self._all_of(covers) if (function == "_&&_") != negated else _any_of(covers)
        atom = self._atom(node)
        if atom is None or not negated:
            return None if atom is None else (atom,)
        opposite = NEGATED.get(atom.op)
        return None if opposite is None else (atom._replace(op=opposite),)

    def _all_of(self, covers: list[Cover | None]) -> Cover | None:
        known = [each for each in covers if each]
        asked = {each[0].term for each in known if len(each) == 1 and each[0].op == "there"}
        best = min(known, key=lambda each: sum(map(_cost, each)), default=None)
        return best and tuple(atom._replace(asked=atom.asked or atom.term in asked) for atom in best)

    def _atom(self, node: tree.Node) -> Atom | None:
        match node:
            case tree.Ident(name=name) if name.startswith("_has."):
                return Atom((name.removeprefix("_has."),), "there", frozenset())
            case tree.Select(operand=operand, field=step, asks=True):
                above = self._paths.path(operand)
                return None if above is None else Atom((*above, step), "there", frozenset())
            case tree.Call(function=function, args=(left, right)) if function in COMPARISONS:
                return self._compared(left, COMPARISONS[function], right)
            case tree.Call(function=function, args=(left, tree.Const(value=str() as text))) if (
                function in TEXTUAL
            ):
                return self._made(left, TEXTUAL[function], [text])
            case tree.Call(function="@in", args=(left, right)):
                return self._among(left, right)
        return self._made(node, "==", [True])

    def _compared(self, left: tree.Node, op: Op, right: tree.Node) -> Atom | None:
        if isinstance(left, tree.Const):
            left, op, right = right, MIRRORED[op], left
        return self._made(left, op, [right.value]) if isinstance(right, tree.Const) else None

    def _among(self, left: tree.Node, right: tree.Node) -> Atom | None:
        if isinstance(right, tree.Items):
            values = [item.value for item in right.items if isinstance(item, tree.Const)]
            return self._made(left, "==", values) if len(values) == len(right.items) else None
        path = self._paths.path(right)
        if isinstance(left, tree.Const) and isinstance(left.value, str) and path is not None:
            is_strings = len(path) == 1 and self._program.fields[str(path[0])].kind == "strings"
            return Atom(path, "holds", frozenset([left.value])) if is_strings else None
        return None

    def _made(self, node: tree.Node, op: Op, values: list[tree.Value]) -> Atom | None:
        term, kinds = self._term(node)
        usable = [value for value in values if isinstance(value, bool | int | float | str)]
        if (
            term is None
            or len(usable) != len(values)
            or any(kinds_of(tree.Const(0, v)) != kinds for v in usable)
        ):
            return None
        return Atom(term, op, frozenset(usable))

    def _term(self, node: tree.Node) -> tuple[Path | None, set[str]]:
        """With the one kind its values are, once the guards have passed."""
        match node:
            case tree.Call(function=function, args=args) if function in FLOWS:
                constants = [
                    arg.value for arg in args if isinstance(arg, tree.Const) and isinstance(arg.value, str)
                ]
                if len(constants) != len(args):
                    return None, set()
                return (f"{function}()", *constants), {"number" if function == "count" else "boolean"}
        path = self._paths.path(node)
        return path, set() if path is None else self._kinds(path)

    def _kinds(self, path: Path) -> set[str]:
        if path in self._program.paths:
            return set(self._program.paths[path])
        kind = self._program.fields[str(path[0])].kind
        return {"number" if kind == "integer" else kind}


def _cost(atom: Atom) -> int:
    """Every other decision has the flag that a rule asks for."""
    return FLAG if any(isinstance(value, bool) for value in atom.values) else COSTS[atom.op]


def _any_of(covers: list[Cover | None]) -> Cover | None:
    return None if None in covers else tuple(atom for each in covers for atom in each or ())


def _flat(node: tree.Node, function: str) -> list[tree.Node]:
    if isinstance(node, tree.Call) and node.function == function:
        return [member for arg in node.args for member in _flat(arg, function)]
    return [node]

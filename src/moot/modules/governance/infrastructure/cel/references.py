"""What a condition names, read from its tree: fields, what is looked at below untyped ones, and what it asks for."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from moot.modules.governance.domain.conditions import FieldType
from moot.modules.governance.infrastructure.cel import tree
from moot.modules.governance.infrastructure.cel.environment import Declared

EACH: Final = None
"""The step of a path that goes into every member of a list."""
Path = tuple[str | int | None, ...]
"""A declared name, then steps below it."""

ORDERED: Final = {"_>_", "_>=_", "_<_", "_<=_"}
COMPARED: Final = {"_==_", "_!=_", *ORDERED}
ARITHMETIC: Final = {"_+_", "_-_", "_*_", "_/_", "_%_"}
LOGIC: Final = {"_&&_", "_||_", "!_"}
ON_TEXT: Final = {
    "startsWith",
    "endsWith",
    "contains",
    "matches",
    "lowerAscii",
    "upperAscii",
    "trim",
    "split",
}
EXPECTED_OF: Final[dict[str, set[str]]] = {
    **{function: {"string"} for function in ON_TEXT},
    **{function: {"boolean"} for function in LOGIC},
    "size": {"string", "list", "map"},
    "_?_:_": {"boolean"},
}


def spelt(path: Path) -> str:
    first, *steps = path
    return str(first) + "".join(
        "[]" if s is EACH else f".{s}" if isinstance(s, str) else f"[{s}]" for s in steps
    )


@dataclass
class References:
    """What a tree names. `paths` are untyped values, each with the kinds it is compared with."""

    declared: Declared
    roots: dict[str, FieldType] = field(default_factory=dict)
    paths: dict[Path, set[str]] = field(default_factory=dict)
    asked: set[Path] = field(default_factory=set)
    loops: dict[str, Path | None] = field(default_factory=dict)

    def path(self, node: tree.Node) -> Path | None:
        """The path a node is, if it is one."""
        match node:
            case tree.Ident(name=name) if name in self.loops:
                return self.loops[name]
            case tree.Ident(name=name) if name in self.declared:
                return (name,)
            case tree.Select(operand=operand, field=step, asks=False):
                return self._below(operand, step)
            case tree.Call(function="_[_]", args=(operand, tree.Const(value=str() | int() as step))):
                return self._below(operand, step)
        return None

    def _below(self, operand: tree.Node, step: str | int) -> Path | None:
        above = self.path(operand)
        return None if above is None else (*above, step)

    def visit(self, node: tree.Node, expected: Iterable[str] = ()) -> None:
        """`expected`: the kinds that what stands around the node can do with it."""
        path = self.path(node)
        if path is not None:
            self._note(path, expected)
            return
        match node:
            case tree.Ident(name=name) if name.startswith("_has."):
                self.asked.add((name.removeprefix("_has."),))
            case tree.Select(operand=operand, field=step, asks=asks):
                self.visit(operand)
                above = self.path(operand)
                if asks and above is not None:
                    self.asked.add((*above, step))
            case tree.Items(items=items):
                for item in items:
                    self.visit(item)
            case tree.Loop():
                self._loop(node)
            case tree.Call(function=function, args=args):
                for place, arg in enumerate(args):
                    self.visit(arg, _expected(function, args, place))

    def _note(self, path: Path, expected: Iterable[str]) -> None:
        root = str(path[0])
        self.roots[root] = self.declared[root]
        if len(path) > 1 or self.declared[root].kind == "any":
            self.paths.setdefault(path, set()).update(expected)

    def _loop(self, loop: tree.Loop) -> None:
        self.visit(loop.over)
        over = self.path(loop.over)
        outer = dict(self.loops)
        self.loops[loop.variable] = None if over is None else (*over, EACH)
        for part in loop.parts:
            self.visit(part)
        self.loops = outer


def _expected(function: str, args: tuple[tree.Node, ...], place: int) -> Iterable[str]:
    other = args[1 - place] if len(args) == 2 else None
    if function in COMPARED or function in ARITHMETIC:
        kinds = kinds_of(other)
        return kinds if function in COMPARED else kinds & {"number"}
    if function == "@in":
        if place == 1:
            return {"list", "map"}
        return (
            {kind for item in other.items for kind in kinds_of(item)} if isinstance(other, tree.Items) else ()
        )
    return EXPECTED_OF.get(function, ()) if place == 0 or function in LOGIC else ()


def kinds_of(node: tree.Node | None) -> set[str]:
    match node:
        case tree.Const(value=bool()):
            return {"boolean"}
        case tree.Const(value=int() | float()):
            return {"number"}
        case tree.Const(value=str()):
            return {"string"}
        case tree.Const(value=None):
            return {"null"}
    return set()

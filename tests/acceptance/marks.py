"""Reads `@pytest.mark.accepts(...)` from test files without importing them."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeGuard


class Claim(NamedTuple):
    """`test` is a pytest node id; it names the class or module where the mark stands on one of those."""

    accepted: str
    test: str


class UnreadableMark(Exception):
    """A mark the map would lose: it has no literal ids, or stands where no test is."""


def claims_below(root: Path) -> list[Claim]:
    """Every claim of `root/tests`, sorted, each once."""
    files = (root / "tests").rglob("test_*.py")
    return sorted({claim for file in files for claim in _claims_in(file, file.relative_to(root).as_posix())})


def _claims_in(file: Path, name: str) -> Iterator[Claim]:
    module = ast.parse(file.read_text(encoding="utf-8"))
    placed = list(_placed_marks(module, name))
    understood = {mark.func for _, mark in placed}
    for node in ast.walk(module):
        if _is_accepts(node) and node not in understood:
            raise UnreadableMark(f"{name}:{node.lineno}: put accepts(...) on a test, its class or its module")
    for test, mark in placed:
        yield from (Claim(accepted, test) for accepted in _ids(mark, name))


def _placed_marks(holder: ast.Module | ast.ClassDef, name: str) -> Iterator[tuple[str, ast.Call]]:
    """The marks of a module or class and of the tests in it, each with the node id it speaks for."""
    for statement in holder.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                yield from _marks(name, value)
            case ast.FunctionDef() | ast.AsyncFunctionDef() if statement.name.startswith("test"):
                yield from _marks(f"{name}::{statement.name}", *statement.decorator_list)
            case ast.ClassDef() if statement.name.startswith("Test"):
                yield from _marks(f"{name}::{statement.name}", *statement.decorator_list)
                yield from _placed_marks(statement, f"{name}::{statement.name}")


def _marks(name: str, *expressions: ast.expr) -> Iterator[tuple[str, ast.Call]]:
    """The accepts(...) calls in the expressions, those inside `pytest.param(..., marks=...)` included."""
    for expression in expressions:
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and _is_accepts(node.func):
                yield name, node


def _is_accepts(node: ast.AST) -> TypeGuard[ast.Attribute]:
    match node:
        case ast.Attribute(attr="accepts", value=ast.Attribute(attr="mark") | ast.Name(id="mark")):
            return True
    return False


def _ids(mark: ast.Call, name: str) -> list[str]:
    ids = [a.value for a in mark.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    if not ids or len(ids) < len(mark.args):
        raise UnreadableMark(f"{name}:{mark.lineno}: accepts(...) takes ids as literal strings")
    return ids

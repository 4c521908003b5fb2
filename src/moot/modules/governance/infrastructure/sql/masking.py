"""Columns that must not be seen: shown as `***` or left out, wherever a statement returns them."""

from collections.abc import Collection, Iterator

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from moot.modules.governance.infrastructure.sql.scopes import (
    Columns,
    Unclear,
    origin_of,
    own_nodes,
    scopes_of,
)

MASKED = "***"
READS = ("expressions", "from_", "joins", "with_", "this", "expression")
"""Where an inner query may stand so that what it returns is only handed on; anywhere else it is a test."""

STATES = ("gone", "mask", "masked")
"""What is to be done to a projection: leave it out, mask it, or nothing more: an inner query has masked it."""


class Masking:
    """Works from the inner queries outwards. Raises `Unclear` where a statement would still tell what is hidden."""

    def __init__(self, mask: Collection[str], drop: Collection[str], columns: Columns | None) -> None:
        self._drop = {name.lower() for name in drop}
        self._hidden = {name.lower() for name in mask} | self._drop
        self._columns = columns
        self._changed: dict[int, dict[str, bool]] = {}
        """For each inner query by id: the outputs that are hidden, and whether they are gone."""
        self._edits: list[tuple[exp.Expr, list[exp.Expr]]] = []

    def apply(self, tree: exp.Query) -> None:
        if not self._hidden:
            return
        for scope in scopes_of(tree):
            self._refuse_tests(scope)
            if isinstance(scope.expression, exp.Select):
                self._hide(scope)
            else:
                self._combine(scope)
        for select, projections in self._edits:
            select.set("expressions", projections)

    def _hide(self, scope: Scope) -> None:
        select = scope.expression
        states = [(projection, self._shown(scope, projection)) for projection in select.expressions]
        kept = [
            _masked(projection) if state == "mask" else projection
            for projection, state in states
            if state != "gone"
        ]
        if not kept or (len(kept) < len(states) and _by_position(select)):
            raise Unclear
        self._note(scope, {p.alias_or_name.lower(): state == "gone" for p, state in states if state})
        self._edits.append((select, kept))

    def _shown(self, scope: Scope, projection: exp.Expr) -> str | None:
        """What becomes of a projection, in the words of `_state`."""
        own = [node for node in own_nodes(scope, projection) if isinstance(node, exp.Column)]
        states = {self._state(scope, column) for column in own} - {None}
        if states and projection.find(exp.AggFunc, exp.Window):
            raise Unclear
        return min(states, key=STATES.index, default=None)

    def _state(self, scope: Scope, column: exp.Column) -> str | None:
        source = origin_of(column, scope, self._columns)
        if isinstance(source, Scope):
            gone = self._changed.get(id(source.expression), {}).get(column.name.lower())
            return None if gone is None else ("gone" if gone else "masked")
        named = _names(column, qualified=source is not None) & self._hidden
        return None if not named else ("gone" if named & self._drop else "mask")

    def _refuse_tests(self, scope: Scope) -> None:
        returned = set()
        if isinstance(scope.expression, exp.Select):
            returned = {
                id(node) for shown in scope.expression.expressions for node in own_nodes(scope, shown)
            }
        for node in own_nodes(scope):
            if isinstance(node, exp.Column) and id(node) not in returned and self._state(scope, node):
                raise Unclear
            if isinstance(node, exp.Join) and (node.method == "NATURAL" or _using(node) & self._hidden):
                raise Unclear

    def _note(self, scope: Scope, changed: dict[str, bool]) -> None:
        if changed and not _handed_on(scope.expression):
            raise Unclear
        if True in changed.values() and _renamed(scope.expression):
            raise Unclear
        self._changed[id(scope.expression)] = changed

    def _combine(self, scope: Scope) -> None:
        """A set operation hides what its sides hide; a column left out of one side only would shift the others."""
        sides = [self._changed.get(id(side.expression), {}) for side in scope.set_operation_scopes or ()]
        gone = [{name for name, is_gone in side.items() if is_gone} for side in sides]
        if any(names != gone[0] for names in gone):
            raise Unclear
        self._changed[id(scope.expression)] = {
            name: is_gone for side in sides for name, is_gone in side.items()
        }


def probed(scope: Scope, fields: Collection[str], known: Columns | None) -> Iterator[str]:
    """Those of `fields`, in small letters, that a query reads from a table."""
    wanted = {field.lower() for field in fields}
    for node in own_nodes(scope):
        if isinstance(node, exp.Column):
            source = origin_of(node, scope, known)
            if not isinstance(source, Scope):
                yield from _names(node, qualified=source is not None) & wanted
        elif isinstance(node, exp.Join):
            yield from wanted if node.method == "NATURAL" else _using(node) & wanted


def _masked(projection: exp.Expr) -> exp.Expr:
    own = projection.this if isinstance(projection, exp.Column) else None
    name = projection.args.get("alias") or own or exp.to_identifier(MASKED)
    return exp.Alias(this=exp.Literal.string(MASKED), alias=name)


def _names(column: exp.Column, *, qualified: bool) -> set[str]:
    """What a column may be about: its name, and where no source is called so, what stands before the point."""
    parts = [column.this] if qualified and column.table else column.parts
    return {part.name.lower() for part in parts}


def _using(join: exp.Join) -> set[str]:
    return {part.name.lower() for part in join.args.get("using") or ()}


def _by_position(select: exp.Expr) -> bool:
    clauses = [select.args.get(name) for name in ("order", "group")]
    written = [part for clause in clauses if clause for part in clause.expressions]
    return any(
        isinstance(part.this if isinstance(part, exp.Ordered) else part, exp.Literal) for part in written
    )


def _renamed(query: exp.Expr) -> bool:
    alias = query.parent.args.get("alias") if query.parent else None
    return isinstance(alias, exp.TableAlias) and bool(alias.columns)


def _handed_on(query: exp.Expr) -> bool:
    node = query
    while node.parent is not None:
        if node.arg_key not in (*READS, "alias") or isinstance(node.parent, exp.Predicate | exp.Binary):
            return False
        node = node.parent
    return True

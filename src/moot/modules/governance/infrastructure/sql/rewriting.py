"""Statements changed so that a rule is kept: columns masked or left out, `*` spelt out, a limit, a time filter."""

from collections.abc import Callable, Collection
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope, walk_in_scope

from moot.modules.governance.infrastructure.sql.guard import check_sql
from moot.modules.governance.infrastructure.sql.statement import (
    DIALECT,
    Columns,
    Unclear,
    alias_columns,
    columns_of,
    origin_of,
    pairs,
    parse,
    table_stars,
    tables_of,
)
from moot.shared.domain.messages import Message

CLEAR = {"sql.product", "sql.credential", "sql.system_table"}
"""Problems of a statement that leave it clear which columns it reads."""


def rewrite(
    sql: str,
    *,
    mask: Collection[str] = (),
    drop: Collection[str] = (),
    limit: int | None = None,
    time_column: str | None = None,
    since: str | None = None,
    until: str | None = None,
    columns: Columns | None = None,
) -> str | None:
    """The statement as it may run, the same text where nothing had to change. None: it cannot be done safely."""

    def change(tree: exp.Query) -> None:
        _spell_out(tree, columns)
        Masking(mask, drop, columns).apply(tree)
        if time_column:
            _filter_time(tree, time_column, since, until, columns)
        if limit is not None:
            _limit(tree, limit)

    rewritten = _change(sql, change)
    return None if rewritten is None or check_sql(rewritten) else rewritten


@lru_cache(maxsize=1024)
def is_exposing(sql: str, fields: tuple[str, ...]) -> bool:
    """Whether a statement returns or probes one of these columns, or nobody can tell."""
    problems = {problem.key for problem in check_sql(sql)}
    return bool(problems - CLEAR) or _change(sql, Masking(fields, (), None).apply) != sql


@lru_cache(maxsize=1024)
def is_filtered(sql: str, column: str, since: str, until: str) -> bool:
    """Whether a statement reads only rows whose time lies from `since` on and before `until`."""
    return _change(sql, lambda tree: _filter_time(tree, column, since, until, None)) == sql


@lru_cache(maxsize=1024)
def is_limited(sql: str, most: int) -> bool:
    """Whether a statement asks for so many rows at most."""
    return _change(sql, lambda tree: _limit(tree, most)) == sql


def _change(sql: str, change: Callable[[exp.Query], None]) -> str | None:
    """The same text where that changes nothing; None: it cannot be done."""
    original = parse(sql)
    if isinstance(original, Message):
        return None
    try:
        tree = original.copy()
        change(tree)
        after, before = (each.sql(dialect=DIALECT, comments=False) for each in (tree, original))
    except (Unclear, SqlglotError, RecursionError):
        return None
    return sql if after == before else after


def _spell_out(tree: exp.Query, known: Columns | None) -> None:
    """Names the columns in the place of every star that stands for a table's."""
    for scope in traverse_scope(tree):
        for star in table_stars(scope):
            named = [exp.column(column, table=source) for source, column in pairs(scope, star, known)]
            shown = scope.expression.expressions
            at = next(place for place, projection in enumerate(shown) if projection is star)
            scope.expression.set("expressions", [*shown[:at], *named, *shown[at + 1 :]])


def _limit(tree: exp.Query, most: int) -> None:
    now = tree.args.get("limit")
    written = now.args.get("count") if isinstance(now, exp.Fetch) else now and now.expression
    options = now.args.get("limit_options") if now else None
    shares = options is not None and (options.args.get("percent") or options.args.get("with_ties"))
    if isinstance(written, exp.Literal) and written.is_int and int(written.this) <= most and not shares:
        return
    tree.set("limit", exp.Limit(expression=exp.Literal.number(most)))


def _filter_time(
    tree: exp.Query, column: str, since: str | None, until: str | None, known: Columns | None
) -> None:
    bounds = [(kind, moment) for kind, moment in ((exp.GTE, since), (exp.LT, until)) if moment is not None]
    for scope in traverse_scope(tree):
        tables = {alias: columns_of(table, known) for alias, table in tables_of(scope).items()}
        if None in tables.values() and len(tables) > 1:
            raise Unclear
        for alias, columns in tables.items():
            if columns is None or column.lower() in map(str.lower, columns):
                for kind, moment in bounds:
                    test = kind(this=exp.column(column, table=alias), expression=exp.Literal.string(moment))
                    _add(scope.expression, alias, test)


def _add(select: exp.Expr, alias: str, test: exp.Expr) -> None:
    """To the join that may come up empty for a row, else to WHERE."""
    joins = select.args.get("joins") or []
    if any(join.side in ("RIGHT", "FULL") for join in joins):
        raise Unclear
    optional = [join for join in joins if join.side == "LEFT" or join.kind in ("SEMI", "ANTI")]
    if own := next((join for join in optional if join.this.alias_or_name.lower() == alias), None):
        if own.args.get("on") is None:
            raise Unclear
        own.set("on", _both(own.args["on"], test))
    else:
        where = select.args.get("where")
        select.set("where", exp.Where(this=_both(where.this, test) if where else test))


def _both(now: exp.Expr, test: exp.Expr) -> exp.Expr:
    """`now AND test`, once: a column that only one table has needs no table before it."""
    parts = list(now.flatten(unnest=False)) if isinstance(now, exp.And) else [now]
    bare = test.copy()
    bare.this.set("table", None)
    return now if test in parts or bare in parts else exp.and_(*parts, test)


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
        self._changed: dict[int, dict[str, str]] = {}
        """For each inner query by id: the outputs that are hidden, `gone` or `masked`."""
        self._edits: list[tuple[exp.Expr, list[exp.Expr]]] = []

    def apply(self, tree: exp.Query) -> None:
        if not self._hidden:
            return
        for scope in traverse_scope(tree):
            self._refuse_tests(scope)
            if isinstance(scope.expression, exp.Select):
                self._hide(scope)
            else:
                self._combine(scope)
        for select, projections in self._edits:
            select.set("expressions", projections)

    def _hide(self, scope: Scope) -> None:
        select = scope.expression
        states = [(projection, self._judge(scope, projection)) for projection in select.expressions]
        shown = [(projection, state) for projection, state in states if state != "gone"]
        kept = [_mask(projection) if state == "mask" else projection for projection, state in shown]
        if not kept or (len(kept) < len(states) and _by_position(select)):
            raise Unclear
        outputs = {p.alias_or_name.lower(): state for p, state in states if state}
        self._note(scope, {name: "gone" if state == "gone" else "masked" for name, state in outputs.items()})
        self._edits.append((select, kept))

    def _judge(self, scope: Scope, projection: exp.Expr) -> str | None:
        """What becomes of a projection, in the words of `_state`."""
        own = [node for node in walk_in_scope(projection) if isinstance(node, exp.Column)]
        states = {self._state(scope, column) for column in own} - {None}
        if states and projection.find(exp.AggFunc, exp.Window):
            raise Unclear
        return min(states, key=STATES.index, default=None)

    def _state(self, scope: Scope, column: exp.Column) -> str | None:
        source = origin_of(column, scope, self._columns)
        if isinstance(source, Scope):
            return self._changed.get(id(source.expression), {}).get(column.name.lower())
        # what stands before the point may be meant too, where no source is called so
        parts = [column.this] if source is not None and column.table else column.parts
        named = {part.name.lower() for part in parts} & self._hidden
        return None if not named else ("gone" if named & self._drop else "mask")

    def _refuse_tests(self, scope: Scope) -> None:
        returned = set()
        if isinstance(scope.expression, exp.Select):
            returned = {id(node) for shown in scope.expression.expressions for node in walk_in_scope(shown)}
        for node in walk_in_scope(scope.expression):
            if isinstance(node, exp.Column) and id(node) not in returned and self._state(scope, node):
                raise Unclear
            if isinstance(node, exp.Join):
                using = {part.name.lower() for part in node.args.get("using") or ()}
                if node.method == "NATURAL" or using & self._hidden:
                    raise Unclear

    def _note(self, scope: Scope, changed: dict[str, str]) -> None:
        if changed and not _handed_on(scope.expression):
            raise Unclear
        if "gone" in changed.values() and alias_columns(scope.expression.parent):
            raise Unclear
        self._changed[id(scope.expression)] = changed

    def _combine(self, scope: Scope) -> None:
        """A set operation hides what its sides hide; a column left out of one side only would shift the others."""
        sides = [self._changed.get(id(side.expression), {}) for side in scope.set_operation_scopes or ()]
        gone = [{name for name, state in side.items() if state == "gone"} for side in sides]
        if any(names != gone[0] for names in gone):
            raise Unclear
        self._changed[id(scope.expression)] = dict(item for side in sides for item in side.items())


def _mask(projection: exp.Expr) -> exp.Expr:
    own = projection.this if isinstance(projection, exp.Column) else None
    name = projection.args.get("alias") or own or exp.to_identifier(MASKED)
    return exp.Alias(this=exp.Literal.string(MASKED), alias=name)


def _by_position(select: exp.Expr) -> bool:
    clauses = [select.args.get(name) for name in ("order", "group")]
    written = [part for clause in clauses if clause for part in clause.expressions]
    return any(
        isinstance(part.this if isinstance(part, exp.Ordered) else part, exp.Literal) for part in written
    )


def _handed_on(query: exp.Expr) -> bool:
    if query.parent is None:
        return True
    is_test = query.arg_key not in (*READS, "alias") or isinstance(query.parent, exp.Predicate | exp.Binary)
    return not is_test and _handed_on(query.parent)

"""Which statements of an agent may run: one SELECT, made of nothing but what is on a list."""

from collections.abc import Collection, Iterator
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope

from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.infrastructure.sql.functions import (
    CREDENTIALS,
    FILES,
    SELECT_PARTS,
    SYSTEM_NAMES,
    SYSTEM_PREFIXES,
    SYSTEM_SCHEMAS,
    function_name,
    is_allowed,
    is_structure,
)
from moot.modules.governance.infrastructure.sql.statement import (
    DIALECT,
    SNIPPET,
    SqlProblem,
    own_nodes,
    parsed,
    renames_a_table,
    scopes_of,
    snippet,
    sources_of,
    starred,
    stars_of,
    tables_of,
)
from moot.shared.domain.messages import Message

MOST_STEPS = 100_000
"""How many rows a query that builds on itself may be bound to."""


class SqlGuard:
    """`dialect` is the one of the database behind; what another would read differently is refused as well."""

    def __init__(self, dialect: str = DIALECT) -> None:
        self.dialect = dialect

    def check(self, sql: str, tables: Collection[str] | None = None) -> list[SqlProblem]:
        """What keeps `sql` from running; empty: nothing. `tables`: the only ones it may read."""
        allowed = None if tables is None else frozenset(name.lower() for name in tables)
        return list(_problems(sql, self.dialect, allowed))


@lru_cache(maxsize=4096)
def _problems(sql: str, dialect: str, allowed: frozenset[str] | None) -> tuple[SqlProblem, ...]:
    tree = parsed(sql, dialect)
    if isinstance(tree, SqlProblem):
        return (tree,)
    try:
        return tuple(_foreign(tree)) or tuple(_misused(tree, allowed))
    except (SqlglotError, RecursionError):
        return (SqlProblem(SAY("sql.unreadable"), sql[:SNIPPET]),)


def _foreign(tree: exp.Query) -> Iterator[SqlProblem]:
    """Parts that are on no list."""
    for node in tree.walk():
        if isinstance(node, exp.Func):
            if not is_allowed(node):
                yield SqlProblem(SAY("sql.function", name=function_name(node)), snippet(node))
        elif not is_structure(node):
            yield SqlProblem(SAY("sql.part", name=node.key.upper()), snippet(node))
        yield from _extras(node)


def _extras(node: exp.Expr) -> Iterator[SqlProblem]:
    """Parts of a query, or of an IN, that say more than which rows: INTO, locks, hints, a table after IN."""
    parts = {name for name, part in node.args.items() if part and isinstance(part, exp.Expr | list)}
    more = parts - SELECT_PARTS if isinstance(node, exp.Query) else parts & {"field"}
    for name in sorted(more):
        yield SqlProblem(SAY("sql.part", name=name.strip("_").upper()), snippet(node))


def _misused(tree: exp.Query, allowed: frozenset[str] | None) -> Iterator[SqlProblem]:
    scopes = scopes_of(tree)
    yield from _tables(tree, scopes, allowed)
    for scope in scopes:
        yield from _whole_tables(scope)
        yield from _products(scope)
    yield from _secrets(tree)
    yield from _endless(tree)


def _tables(tree: exp.Query, scopes: list[Scope], allowed: frozenset[str] | None) -> Iterator[SqlProblem]:
    inner = {
        id(node)
        for scope in scopes
        for node, source in scope.selected_sources.values()
        if isinstance(source, Scope)
    }
    for table in tree.find_all(exp.Table):
        if id(table) in inner:
            continue
        message = _of_table(table, allowed)
        if message:
            yield SqlProblem(message, snippet(table))


def _of_table(table: exp.Table, allowed: frozenset[str] | None) -> Message | None:
    name = table.name.lower()
    schemas = {part.lower() for part in (table.db, table.catalog) if part}
    plain = isinstance(table.this, exp.Identifier) and all(
        part.replace("_", "a").isalnum() for part in (name, *schemas)
    )
    if not plain or name in FILES:
        return SAY("sql.file", name=snippet(table))
    if schemas & SYSTEM_SCHEMAS or name in SYSTEM_NAMES or name.startswith(SYSTEM_PREFIXES):
        return SAY("sql.system_table", name=snippet(table))
    if allowed is not None and (name not in allowed or schemas - {"main"}):
        return SAY("sql.table_unknown", name=snippet(table), tables=sorted(allowed))
    return None


def _whole_tables(scope: Scope) -> Iterator[SqlProblem]:
    """`*`, or the name of a table in the place of a column: whatever it has, now and later, is handed out."""
    if isinstance(scope.expression.parent, exp.Exists):
        return
    for star in stars_of(scope):
        if any(isinstance(source, exp.Table) for source in starred(scope, star).values()):
            yield SqlProblem(SAY("sql.star"), snippet(star))
    if renames_a_table(scope):
        yield SqlProblem(SAY("sql.renamed"), snippet(scope.expression))
    for column in _whole_rows(scope):
        yield SqlProblem(SAY("sql.whole_row", name=column.name), snippet(column))


def _whole_rows(scope: Scope) -> Iterator[exp.Column]:
    tables = tables_of(scope)
    for node in own_nodes(scope):
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in tables:
            yield node


def _products(scope: Scope) -> Iterator[SqlProblem]:
    """Tables that nothing joins: every row of one with every row of the other."""
    tables = tables_of(scope)
    if len(tables) < 2:
        return
    joins = scope.expression.args.get("joins") or []
    if any(join.args.get("using") or join.method for join in joins):
        return
    groups = [{name} for name in sources_of(scope)]
    for node in own_nodes(scope):
        if isinstance(node, exp.Predicate | exp.In | exp.Binary):
            groups = _joined(groups, _sides(node, scope))
    apart = [group for group in groups if group & tables.keys()]
    if len(apart) > 1:
        yield SqlProblem(SAY("sql.product", tables=sorted(tables)), snippet(scope.expression))


def _sides(node: exp.Expr, scope: Scope) -> set[str]:
    """The sources that a comparison is about; a column without a table may be anybody's."""
    columns = [column for column in own_nodes(scope, node) if isinstance(column, exp.Column)]
    if len(columns) > 1 and any(not column.table for column in columns):
        return set(sources_of(scope))
    return {column.table.lower() for column in columns}


def _joined(groups: list[set[str]], names: set[str]) -> list[set[str]]:
    touched = [group for group in groups if group & names]
    return [group for group in groups if group not in touched] + ([set().union(*touched)] if touched else [])


def _secrets(tree: exp.Query) -> Iterator[SqlProblem]:
    for column in tree.find_all(exp.Column):
        if column.name.lower() in CREDENTIALS:
            yield SqlProblem(SAY("sql.credential", name=column.name), snippet(column))


def _endless(tree: exp.Query) -> Iterator[SqlProblem]:
    """A query that builds on itself has to begin with something else, and to say where it ends."""
    for cte in tree.find_all(exp.CTE):
        if not isinstance(cte.this, exp.SetOperation):
            continue
        begins = _named_like(cte, cte.this.this) and cte.parent and cte.parent.args.get("recursive")
        steps = _named_like(cte, cte.this.expression)
        ends = _limited(tree) or any(_bounded(table) for table in steps)
        if begins or (steps and not ends):
            yield SqlProblem(SAY("sql.endless", name=cte.alias), snippet(cte))


def _named_like(cte: exp.CTE, part: exp.Expr) -> list[exp.Table]:
    name = cte.alias.lower()
    return [table for table in part.find_all(exp.Table) if not table.db and table.name.lower() == name]


def _limited(tree: exp.Query) -> bool:
    limit = tree.args.get("limit")
    return isinstance(limit, exp.Limit) and _small(limit.expression)


def _bounded(table: exp.Table) -> bool:
    step = table.find_ancestor(exp.Select)
    where = step.args.get("where") if step else None
    return where is not None and any(
        isinstance(c.this, exp.Column) and _small(c.expression) for c in where.find_all(exp.LT, exp.LTE)
    )


def _small(number: exp.Expr | None) -> bool:
    return isinstance(number, exp.Literal) and number.is_int and int(number.this) <= MOST_STEPS

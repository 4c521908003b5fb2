"""Where a column of a statement comes from: a table, or another query inside the statement."""

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope, walk_in_scope

Columns = Mapping[str, Sequence[str]]
"""The columns of tables, where they are known."""


class Unclear(Exception):
    """Nobody can tell from the statement alone."""


def scopes_of(tree: exp.Query) -> list[Scope]:
    """Inner queries first."""
    return traverse_scope(tree)


def sources_of(scope: Scope) -> dict[str, exp.Table | Scope]:
    """What the query reads, by the name it goes by there; names in small letters."""
    return {name.lower(): source for name, (_, source) in scope.selected_sources.items()}


def tables_of(scope: Scope) -> dict[str, exp.Table]:
    return {name: source for name, source in sources_of(scope).items() if isinstance(source, exp.Table)}


def columns_of(table: exp.Table, known: Columns | None) -> list[str] | None:
    for name, columns in (known or {}).items():
        if name.lower() == table.name.lower():
            return list(columns)
    return None


def own_nodes(scope: Scope, below: exp.Expr | None = None) -> Iterator[exp.Expr]:
    """The nodes of this query, or of a part of it, without those of queries inside it."""
    yield from walk_in_scope(below or scope.expression)


def stars_of(scope: Scope) -> list[exp.Expr]:
    """`*` and `t.*` among what the query returns."""
    if not isinstance(scope.expression, exp.Select):
        return []
    return [projection for projection in scope.expression.expressions if projection.is_star]


def starred(scope: Scope, star: exp.Expr) -> dict[str, exp.Table | Scope]:
    """The sources that a star stands for."""
    sources, only = sources_of(scope), star.args.get("table")
    return {name: source for name, source in sources.items() if not only or name == only.name.lower()}


def outputs(scope: Scope, known: Columns | None) -> list[str]:
    """The names of the columns that a query returns."""
    query = scope.expression
    if scope.set_operation_scopes:
        return outputs(scope.set_operation_scopes[0], known)
    if not isinstance(query, exp.Select):
        raise Unclear
    names: list[str] = []
    for projection in query.expressions:
        names += spelt_out(scope, projection, known) if projection.is_star else [projection.alias_or_name]
    return names


def spelt_out(scope: Scope, star: exp.Expr, known: Columns | None) -> list[str]:
    return [name for _, name in pairs(scope, star, known)]


def pairs(scope: Scope, star: exp.Expr, known: Columns | None) -> list[tuple[str, str]]:
    """(source, column) for every column a star stands for."""
    inner = star.this if isinstance(star, exp.Column) else star
    without = inner.args.get("except_") or []
    if any(inner.args.get(part) for part in ("replace", "rename", "ilike")) or _merges(scope):
        raise Unclear
    left_out = {part.name.lower() for part in without}
    return [
        (source, column)
        for source, origin in starred(scope, star).items()
        for column in _named(scope, source, origin, known)
        if column.lower() not in left_out
    ]


def origin_of(column: exp.Column, scope: Scope, known: Columns | None) -> exp.Table | Scope | None:
    """The table or inner query a column is read from: a table where it may be one. None: nobody offers it."""
    name, table = column.name.lower(), column.table.lower()
    at: Scope | None = scope
    while at is not None:
        sources = sources_of(at)
        if table and table in sources:
            return sources[table]
        offering = [of for alias, of in sources.items() if not table and _may_have(at, alias, name, known)]
        if offering:
            return min(offering, key=lambda source: isinstance(source, Scope))
        at = at.parent
    return None


def renames_a_table(scope: Scope) -> bool:
    """`FROM customers AS t(a, b)`: columns under names that say nothing about what they are."""
    return any(_alias_columns(table) for table in tables_of(scope).values())


def _may_have(scope: Scope, alias: str, column: str, known: Columns | None) -> bool:
    """Whether an unqualified `column` may be this source's; a table nobody knows may have any."""
    try:
        return column in map(str.lower, _named(scope, alias, sources_of(scope)[alias], known))
    except Unclear:
        return True


def _named(scope: Scope, name: str, source: exp.Table | Scope, known: Columns | None) -> list[str]:
    columns = columns_of(source, known) if isinstance(source, exp.Table) else outputs(source, known)
    if columns is None:
        raise Unclear
    renamed = _renamed(scope, name)
    return renamed + columns[len(renamed) :]


def _renamed(scope: Scope, name: str) -> list[str]:
    """The columns of `AS t(a, b)`, or of `WITH t(a, b)`."""
    for written, (node, source) in scope.selected_sources.items():
        if written.lower() == name:
            holder = source.expression.parent if isinstance(source, Scope) else None
            return _alias_columns(node) or _alias_columns(holder)
    return []


def _alias_columns(node: exp.Expr | None) -> list[str]:
    alias = node.args.get("alias") if node else None
    return [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []


def _merges(scope: Scope) -> bool:
    """A join that folds columns of both sides into one, or shows one side only: what `*` means is the database's."""
    joins = scope.expression.args.get("joins") or []
    return any(j.args.get("using") or j.method == "NATURAL" or j.kind in ("SEMI", "ANTI") for j in joins)

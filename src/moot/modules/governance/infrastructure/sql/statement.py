"""A SQL text, read so that every database would read it the same way, or not at all."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.optimizer.scope import Scope

from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.messages import Message

DIALECT = "duckdb"
MOST_CHARACTERS = 20_000
MOST_NESTING = 40
SNIPPET = 80
QUERIES = (exp.Select, exp.SetOperation, exp.Subquery)

PIECE = re.compile(
    r"""(?P<text>'(?:[^']|'')*')
      | (?P<name>"[^"\\]*"|`\w+`)
      | (?P<comment>--(?=\s|$)[^\n]*|/\*(?![!+M]).*?\*/)
      | (?P<odd>[uU]&['"]|\[[^\]]*?(?:['"`;]|--|/\*)|--|//|/\*|['"`\#$@{}\\]|[^\S\ \t\r\n])
      | (?P<word>\w+)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
"""`odd` is where dialects part: a comment for one is code for another, and so are the ends of quotes."""


@lru_cache(maxsize=4096)
def parse(sql: str) -> exp.Query | Message:
    """The one query `sql` is, or why it may not run. The tree is shared: copy it before changing it."""
    if odd := _find_oddity(sql):
        return odd
    try:
        found = [statement for statement in sqlglot.parse(sql, dialect=DIALECT) if statement]
    except (SqlglotError, RecursionError) as e:
        return _explain_failure(e)
    if len(found) != 1 or not isinstance(tree := found[0], QUERIES):
        return SAY("sql.one_select")
    # `WITH Monthly AS … FROM monthly`: the parser would take them for two
    written = {cte.alias.lower(): cte.alias for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        name = table.this
        if isinstance(name, exp.Identifier) and not table.db and not name.quoted:
            name.set("this", written.get(name.name.lower(), name.name))
    return tree


def snippet(node: exp.Expr) -> str:
    return node.sql(dialect=DIALECT, comments=False)[:SNIPPET]


def code_of(sql: str) -> str:
    """The text without its comments, as a database that takes them for nothing would join it."""
    return "".join(piece[0] for piece in PIECE.finditer(sql) if piece.lastgroup != "comment")


def _find_oddity(sql: str) -> Message | None:
    if len(sql) > MOST_CHARACTERS:
        return SAY("sql.too_long", most=MOST_CHARACTERS)
    signs = (sign for sign in sql.replace("\r\n", "\n") if sign not in "\t\n")
    if unseen := next((sign for sign in signs if unicodedata.category(sign) in UNSEEN), None):
        return SAY("sql.unseen", sign=f"U+{ord(unseen):04X}")
    depth = 0
    for piece in PIECE.finditer(sql):
        kind, said = piece.lastgroup, piece[0]
        # a backslash before a quote: the end of the text for one dialect, a part of it for another
        escapes = kind == "text" and "\\'" in said.replace("\\\\", "")
        if kind == "odd" or escapes or (kind == "comment" and "/*" in said[2:]):
            return SAY("sql.ambiguous", part=said[:SNIPPET])
        depth += (said == "(") - (said == ")")
        if depth > MOST_NESTING:
            return SAY("sql.too_deep", most=MOST_NESTING)
    first = re.match(r"[\s(]*(\w*)", code_of(sql))
    if not first or first[1].upper() not in ("SELECT", "WITH"):
        return SAY("sql.one_select")
    return None


UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def _explain_failure(error: Exception) -> Message:
    """Where the parser gave up; what it says itself is about its own insides."""
    places = error.errors if isinstance(error, ParseError) else []
    near = str(places[0]["highlight"] or "")[:SNIPPET].strip() if places else ""
    return SAY("sql.unreadable_near", line=places[0]["line"], near=near) if near else SAY("sql.unreadable")


Columns = Mapping[str, Sequence[str]]
"""The columns of tables, where they are known."""


class Unclear(Exception):
    """Nobody can tell from the statement alone."""


def sources_of(scope: Scope) -> dict[str, exp.Table | Scope]:
    """What the query reads, by the name it goes by there; names in small letters."""
    return {name.lower(): source for name, (_, source) in scope.selected_sources.items()}


def tables_of(scope: Scope) -> dict[str, exp.Table]:
    return {name: source for name, source in sources_of(scope).items() if isinstance(source, exp.Table)}


def columns_of(table: exp.Table, known: Columns | None) -> list[str] | None:
    named = (columns for name, columns in (known or {}).items() if name.lower() == table.name.lower())
    return next(map(list, named), None)


def table_stars(scope: Scope) -> list[exp.Expr]:
    """`*` and `t.*` among what a query returns that stand for a table's columns; in EXISTS they stand for nothing."""
    query = scope.expression
    if not isinstance(query, exp.Select) or isinstance(query.parent, exp.Exists):
        return []
    stars = [projection for projection in query.expressions if projection.is_star]
    return [s for s in stars if any(isinstance(of, exp.Table) for of in star_sources(scope, s).values())]


def star_sources(scope: Scope, star: exp.Expr) -> dict[str, exp.Table | Scope]:
    sources, only = sources_of(scope), star.args.get("table")
    return {name: source for name, source in sources.items() if not only or name == only.name.lower()}


def output_names(scope: Scope, known: Columns | None) -> list[str]:
    query = scope.expression
    if scope.set_operation_scopes:
        return output_names(scope.set_operation_scopes[0], known)
    if not isinstance(query, exp.Select):
        raise Unclear
    shown = query.expressions
    spelt_out = [pairs(scope, each, known) if each.is_star else [("", each.alias_or_name)] for each in shown]
    return [name for each in spelt_out for _, name in each]


def pairs(scope: Scope, star: exp.Expr, known: Columns | None) -> list[tuple[str, str]]:
    """(source, column) for every column a star stands for."""
    inner = star.this if isinstance(star, exp.Column) else star
    joins = scope.expression.args.get("joins") or []
    if any(inner.args.get(part) for part in ("replace", "rename", "ilike")) or any(map(_merges, joins)):
        raise Unclear
    left_out = {part.name.lower() for part in inner.args.get("except_") or ()}
    sources = star_sources(scope, star)
    named = [(source, column) for source in sources for column in _name_columns(scope, source, known)]
    return [(source, column) for source, column in named if column.lower() not in left_out]


def _merges(join: exp.Join) -> bool:
    """It folds columns of both sides into one, or shows one side only: what `*` means is the database's."""
    return bool(join.args.get("using")) or join.method == "NATURAL" or join.kind in ("SEMI", "ANTI")


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


def _may_have(scope: Scope, alias: str, column: str, known: Columns | None) -> bool:
    """Whether an unqualified `column` may be this source's; a table nobody knows may have any."""
    try:
        return column in map(str.lower, _name_columns(scope, alias, known))
    except Unclear:
        return True


def _name_columns(scope: Scope, name: str, known: Columns | None) -> list[str]:
    """Of the source of that name; `AS t(a, b)` and `WITH t(a, b)` give some of them others."""
    node, source = next(read for as_, read in scope.selected_sources.items() if as_.lower() == name)
    columns = output_names(source, known) if isinstance(source, Scope) else columns_of(source, known)
    if columns is None:
        raise Unclear
    holder = source.expression.parent if isinstance(source, Scope) else None
    renamed = alias_columns(node) or alias_columns(holder)
    return renamed + columns[len(renamed) :]


def alias_columns(node: exp.Expr | None) -> list[str]:
    alias = node.args.get("alias") if node else None
    return [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []

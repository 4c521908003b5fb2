"""Which statements of an agent may run: one SELECT, made of nothing but what is on a list.

Anything that is not named here is refused, known to be harmful or not.
"""

from collections.abc import Collection, Iterator
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope, walk_in_scope

from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.infrastructure.sql.statement import (
    alias_columns,
    parse,
    snippet,
    sources_of,
    table_stars,
    tables_of,
)
from moot.shared.domain.messages import Message


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTIONS = _words(
    """
    count sum avg mean min max median mode stddev stddev_pop stddev_samp variance variance_pop var_pop var_samp corr
    covar_pop covar_samp regr_slope regr_intercept regr_r2 quantile quantile_cont quantile_disc percentile_cont
    percentile_disc approx_distinct approx_count_distinct approx_quantile any_value first last
    arg_max arg_min bool_and bool_or logical_and logical_or every group_concat array_agg kurtosis skewness product
    geomean mad entropy count_if total grouping

    row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value

    abs ceil floor round trunc sign sqrt cbrt exp ln log log2 log10 power mod greatest least pi sin cos tan asin acos
    atan atan2 degrees radians is_nan is_inf isfinite width_bucket safe_divide bit_count

    coalesce nullif if iff isnull zeroifnull case cast try_cast and or exists

    lower upper initcap length trim btrim substring substring_index left right replace translate concat concat_ws
    str_position contains starts_with ends_with prefix suffix split_part split regexp_like regexp_replace
    regexp_extract regexp_full_match reverse ascii pad format printf to_char format_number collate levenshtein md5

    date time datetime timestamp to_date str_to_date str_to_time time_to_str date_format ts_or_ds_to_date unix_to_time
    time_to_unix from_unixtime unix_timestamp parse_date date_trunc timestamp_trunc date_part extract year month day
    quarter week week_of_year day_of_week dayofweek_iso day_of_year hour minute second datediff timestampdiff date_add
    date_sub dateadd timestamp_add timestamp_sub datetime_add datetime_sub last_day date_from_parts
    timestamp_from_parts dayname monthname age now curdate getdate current_date current_time current_timestamp
    current_datetime localtimestamp date_bin julian julianday

    array array_size array_contains cardinality row json_extract json_extract_scalar explode unnest
    """
)
"""Names as they are written, and the parser's own where it has one for several spellings."""

STRUCTURE: tuple[type[exp.Expr], ...] = tuple(
    getattr(exp, name)
    for name in _words(
        """
        Select SetOperation Subquery With CTE From Join Table TableAlias Where Group Having Qualify Order Ordered
        Limit Offset Fetch LimitOptions Distinct Values Unnest Rollup Cube GroupingSets

        Column Identifier Alias Star Literal Boolean Null Var Tuple Paren Not Neg In Between Is Like ILike SimilarTo
        Escape Any All EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ Add Sub Mul Div IntDiv Mod DPipe BitwiseAnd
        BitwiseOr

        Window WindowSpec Filter WithinGroup IgnoreNulls RespectNulls AtTimeZone DataType DataTypeParam Interval
        IntervalSpan Bracket Slice JSONPath JSONPathPart
        """
    )
)

SELECT_PARTS = _words(
    """
    with_ expressions distinct from_ joins where group having qualify windows order limit offset
    this expression alias on
    """
)
"""Of a query, in the parser's names; the last four are those of set operations and of queries in parentheses."""

SYSTEM_SCHEMAS = _words(
    "information_schema pg_catalog pg_toast sys mysql performance_schema system temp duckdb sqlite"
)
SYSTEM_NAMES = SYSTEM_SCHEMAS | _words("sysobjects syscolumns sysusers all_tables all_users user_tables")
SYSTEM_PREFIXES = ("pg_", "duckdb_", "sqlite_", "pragma_", "svv_", "stl_", "dba_")
FILES = _words(
    "parquet csv tsv txt json jsonl ndjson xlsx xls db duckdb sqlite arrow feather avro gz zst blob"
)
CREDENTIALS = _words(
    """
    password passwd pwd password_hash hashed_password passwd_hash secret secret_key client_secret api_key apikey
    api_secret api_token access_token refresh_token auth_token session_token private_key
    """
)
"""Columns that no research needs, whatever the table."""


def check_sql(sql: str, tables: Collection[str] | None = None) -> tuple[Message, ...]:
    """What keeps `sql` from running; empty: nothing. `tables`: the only ones it may read."""
    return _problems(sql, None if tables is None else frozenset(map(str.lower, tables)))


@lru_cache(maxsize=4096)
def _problems(sql: str, allowed: frozenset[str] | None) -> tuple[Message, ...]:
    tree = parse(sql)
    if isinstance(tree, Message):
        return (tree,)
    try:
        return tuple(_foreign(tree)) or tuple(_find_misuse(tree, allowed))
    except (SqlglotError, RecursionError):
        return (SAY("sql.unreadable"),)


def _foreign(tree: exp.Query) -> Iterator[Message]:
    """Parts that are on no list."""
    for node in tree.walk():
        if isinstance(node, exp.Func):
            names = [node.name] if isinstance(node, exp.Anonymous) else node.sql_names()
            if FUNCTIONS.isdisjoint(map(str.lower, names)):
                yield SAY("sql.function", name=names[0].lower())
        elif not isinstance(node, STRUCTURE):
            yield SAY("sql.part", name=node.key.upper())
        # parts of a query, or of an IN, that say more than which rows: INTO, locks, hints, a table after IN
        parts = {name for name, part in node.args.items() if part and isinstance(part, exp.Expr | list)}
        for name in sorted(parts - SELECT_PARTS if isinstance(node, exp.Query) else parts & {"field"}):
            yield SAY("sql.part", name=name.strip("_").upper())


def _find_misuse(tree: exp.Query, allowed: frozenset[str] | None) -> Iterator[Message]:
    scopes = traverse_scope(tree)
    yield from _tables(tree, scopes, allowed)
    for scope in scopes:
        yield from _whole_tables(scope)
        yield from _products(scope)
    for column in tree.find_all(exp.Column):
        if column.name.lower() in CREDENTIALS:
            yield SAY("sql.credential", name=column.name)
    for cte in tree.find_all(exp.CTE):
        named = {table.name.lower() for table in cte.this.find_all(exp.Table) if not table.db}
        # nobody can tell whether it ends
        if isinstance(cte.this, exp.SetOperation) and cte.alias.lower() in named:
            yield SAY("sql.endless", name=cte.alias)


def _tables(tree: exp.Query, scopes: list[Scope], allowed: frozenset[str] | None) -> Iterator[Message]:
    reads = [read for scope in scopes for read in scope.selected_sources.values()]
    inner = {id(node) for node, source in reads if isinstance(source, Scope)}
    for table in tree.find_all(exp.Table):
        if id(table) not in inner and (message := _of_table(table, allowed)):
            yield message


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


def _whole_tables(scope: Scope) -> Iterator[Message]:
    """`*`, or the name of a table in the place of a column: whatever it has, now and later, is handed out."""
    if isinstance(scope.expression.parent, exp.Exists):
        return
    for _ in table_stars(scope):
        yield SAY("sql.star")
    tables = tables_of(scope)
    if any(map(alias_columns, tables.values())):
        yield SAY("sql.renamed")
    for node in walk_in_scope(scope.expression):
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in tables:
            yield SAY("sql.whole_row", name=node.name)


def _products(scope: Scope) -> Iterator[Message]:
    """Tables that nothing joins: every row of one with every row of the other."""
    tables = tables_of(scope)
    if len(tables) < 2:
        return
    joins = scope.expression.args.get("joins") or []
    if any(join.args.get("using") or join.method for join in joins):
        return
    groups = [{name} for name in sources_of(scope)]
    for node in walk_in_scope(scope.expression):
        if isinstance(node, exp.Predicate | exp.In | exp.Binary):
            names = _sides(node, scope)
            joined = set().union(*(group for group in groups if group & names))
            groups = [group for group in groups if not group & names] + [joined]
    apart = [group for group in groups if group & tables.keys()]
    if len(apart) > 1:
        yield SAY("sql.product", tables=sorted(tables))


def _sides(node: exp.Expr, scope: Scope) -> set[str]:
    """The sources that a comparison is about; a column without a table may be anybody's."""
    columns = [column for column in walk_in_scope(node) if isinstance(column, exp.Column)]
    if len(columns) > 1 and any(not column.table for column in columns):
        return set(sources_of(scope))
    return {column.table.lower() for column in columns}

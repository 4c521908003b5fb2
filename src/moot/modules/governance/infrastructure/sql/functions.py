"""What a statement may be made of. Anything that is not named here is refused, known to be harmful or not."""

from sqlglot import exp


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

STRUCTURE: tuple[type[exp.Expr], ...] = (
    *(
        exp.Select,
        exp.SetOperation,
        exp.Subquery,
        exp.With,
        exp.CTE,
        exp.From,
        exp.Join,
        exp.Table,
        exp.TableAlias,
    ),
    *(
        exp.Where,
        exp.Group,
        exp.Having,
        exp.Qualify,
        exp.Order,
        exp.Ordered,
        exp.Limit,
        exp.Offset,
        exp.Fetch,
    ),
    *(exp.LimitOptions, exp.Distinct, exp.Values, exp.Unnest, exp.Rollup, exp.Cube, exp.GroupingSets),
    *(
        exp.Column,
        exp.Identifier,
        exp.Alias,
        exp.Star,
        exp.Literal,
        exp.Boolean,
        exp.Null,
        exp.Var,
        exp.Tuple,
    ),
    *(
        exp.Paren,
        exp.Not,
        exp.Neg,
        exp.In,
        exp.Between,
        exp.Is,
        exp.Like,
        exp.ILike,
        exp.SimilarTo,
        exp.Escape,
    ),
    *(exp.Any, exp.All, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe, exp.BitwiseAnd, exp.BitwiseOr),
    *(
        exp.Window,
        exp.WindowSpec,
        exp.Filter,
        exp.WithinGroup,
        exp.IgnoreNulls,
        exp.RespectNulls,
        exp.AtTimeZone,
    ),
    *(exp.DataType, exp.DataTypeParam, exp.Interval, exp.IntervalSpan, exp.Bracket, exp.Slice),
    *(exp.JSONPath, exp.JSONPathPart),
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


def is_structure(node: exp.Expr) -> bool:
    return isinstance(node, STRUCTURE) and not isinstance(node, exp.Func)


def function_name(node: exp.Func) -> str:
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_names()[0]
    return str(name).lower()


def is_allowed(node: exp.Func) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in FUNCTIONS
    return any(name.lower() in FUNCTIONS for name in node.sql_names())

"""The guard as a condition that rules can name."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moot.modules.governance.domain.conditions import Facts, Finding
from moot.modules.governance.domain.rules import NamedCondition
from moot.modules.governance.domain.texts import SAY, join
from moot.modules.governance.infrastructure.sql.guard import check_sql
from moot.modules.governance.infrastructure.sql.rewriting import rewrite
from moot.modules.governance.infrastructure.sql.statement import Columns, SqlProblem, code_of

ALWAYS_SQL = "sql"
MOST_SHOWN = 500
MAYBE_SQL = frozenset({"query", "statement", "sql_query", "sql_statement", "command"})
DATABASES = re.compile(r"sql|database|duckdb|postgres|sqlite|(^|_)db(_|$)", re.IGNORECASE)
BEGINNINGS = (
    r"select\b.*\bfrom\b|select\s+(?:[\w.]+\s*\(|\*|['\"@\d])|from\s+\w+\s+select\b",
    r"with\s+(?:recursive\s+)?\w+\s*(?:\([^)]*\)\s*)?as\b",
    r"(?:insert|replace|merge)\s+(?:\w+\s+)?into\b|update\s+[\w.\"]+\s+set\b|delete\s+from\b",
    r"(?:drop|create|alter|truncate|lock|comment\s+on)\s+(?:or\s+replace\s+)?(?:temp\w*\s+|global\s+)?"
    r"(?:table|view|schema|database|index|function|user|role|sequence|extension|materialized)\b",
    r"truncate\s+\w+\s*;?$|(?:grant|revoke)\s.*\b(?:on|to|from)\b|copy\s.*\b(?:to|from)\b",
    r"attach\s+(?:database\s+)?['\"]|pragma\s+\w+|(?:call|exec|execute)\s+\w+\s*[(;]|do\s+\$",
    r"vacuum\s*(?:;|$)|explain\s+(?:analyze\s+)?(?:select|insert|update|delete|with)\b",
)
SQL = tuple(re.compile(rf"\s*(?:\(\s*)*(?:{each})", re.IGNORECASE | re.DOTALL) for each in BEGINNINGS)
"""How statements begin, told from words that begin a search or a sentence."""


def sql_condition(tables: Mapping[str, Columns] | None) -> NamedCondition:
    """Holds for a tool call with a statement that the guard refuses.

    `tables`: the tables a tool may read, with their columns, by the name of the tool; with them `*` can be spelt out.
    """

    def sql_guard(facts: Facts) -> Finding | None:
        known = (tables or {}).get(facts.tool or "")
        for argument, sql in _statements(facts):
            if not isinstance(sql, str):
                return Finding(f"payload.args.{argument}", error=SAY("sql.no_text", name=argument))
            problems = check_sql(sql, known)
            if problems:
                return _finding(argument, sql, problems, _find_better(sql, known))
        return None

    return sql_guard


def _statements(facts: Facts) -> Iterator[tuple[str, Any]]:
    """The arguments that are statements: the one the tool's profile names, and those that look like one."""
    arguments = facts.payload.get("args")
    arguments = arguments if isinstance(arguments, Mapping) else {}
    named = facts.profile.sql if facts.profile else None
    if named is not None:
        yield named, arguments.get(named)
    for name, value in arguments.items():
        if name != named and _is_sql(facts.tool or "", name, value):
            yield name, value


def _is_sql(tool: str, name: str, value: Any) -> bool:
    name = name.lower()
    if name == ALWAYS_SQL:
        return True
    if name not in MAYBE_SQL or not isinstance(value, str):
        return False
    return bool(DATABASES.search(tool)) or any(
        begins.match(text) for begins in SQL for text in (value, code_of(value))
    )


def _find_better(sql: str, known: Columns | None) -> str | None:
    better = rewrite(sql, columns=known) if known else None
    return None if better is None or check_sql(better, known) else better


def _finding(argument: str, sql: str, problems: Sequence[SqlProblem], better: str | None) -> Finding:
    because = join(problem.message for problem in problems)
    seen = {f"payload.args.{argument}": sql[:MOST_SHOWN]}
    if better is None:
        return Finding(because, seen, suggestion=SAY("sql.suggestion"))
    pointer = "/args/" + argument.replace("~", "~0").replace("/", "~1")
    patch = ({"op": "replace", "path": pointer, "value": better},)
    return Finding(because, seen, suggestion=SAY("sql.instead", sql=better), patch=patch)

"""The guard as a condition that rules can name."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal

from moot.modules.governance.application.corrections import write_pointer
from moot.modules.governance.application.lexicon import name_words, singular
from moot.modules.governance.application.tool_knowledge import Leaf, leaves
from moot.modules.governance.domain.conditions import Facts, Finding
from moot.modules.governance.domain.texts import SAY, join
from moot.modules.governance.infrastructure.sql.guard import check_sql
from moot.modules.governance.infrastructure.sql.rewriting import rewrite
from moot.modules.governance.infrastructure.sql.statement import Columns, code_of
from moot.shared.domain.messages import Message

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


def sql_guard(facts: Facts, tables: Mapping[str, Columns]) -> Finding | None:
    """Holds for a tool call with a statement that the guard refuses.

    `tables`: the tables a tool may read, with their columns, by the name of the tool; with them `*` can be spelt out.
    """
    known = tables.get(facts.tool or "")
    for leaf in _statements(facts):
        sql = leaf.value
        if not isinstance(sql, str):
            return Finding(f"payload.args.{leaf.path}", error=SAY("sql.no_text", name=leaf.path))
        if problems := check_sql(sql, known):
            better = rewrite(sql, columns=known) if known and not leaf.in_text else None
            return _finding(leaf, problems, None if better and check_sql(better, known) else better)
    return None


def _statements(facts: Facts) -> Iterator[Leaf]:
    """The statements among the arguments, at any depth: the one the profile names, and those that look like one."""
    arguments = facts.payload.get("args")
    arguments = arguments if isinstance(arguments, Mapping) else {}
    named = facts.profile.sql if facts.profile else None
    tool = facts.tool or ""
    alike = [leaf for leaf in leaves(arguments) if leaf.steps != (named,) and _is_sql(tool, leaf)]
    if named is not None and (named in arguments or not alike):
        yield Leaf((named,), (named,), arguments.get(named))
    yield from alike


def _is_sql(tool: str, leaf: Leaf) -> bool:
    needs = _tell_by_names(tool, leaf.names)
    if needs == "nothing":
        return True
    if needs == "not sql" or not isinstance(leaf.value, str):
        return False
    return needs == "text" or any(
        begins.match(s) for s in (leaf.value, code_of(leaf.value)) for begins in SQL
    )


@lru_cache(maxsize=4096)
def _tell_by_names(tool: str, names: tuple[str, ...]) -> Literal["nothing", "text", "beginning", "not sql"]:
    """What a value so named has to be to be SQL: any text in the query of a database, whatever is called `sql`."""
    called = {singular(name.lower()) for name in names}
    if "sql" in called:
        return "nothing"
    is_database, is_query = bool(DATABASES.search(tool)), not called.isdisjoint(MAYBE_SQL)
    if is_database and is_query:
        return "text"
    speaks_of_it = is_database or is_query or not MAYBE_SQL.isdisjoint(name_words(tool))
    return "beginning" if speaks_of_it else "not sql"


def _finding(leaf: Leaf, problems: Sequence[Message], better: str | None) -> Finding:
    because = join(problems)
    seen = {f"payload.args.{leaf.path}": leaf.value[:MOST_SHOWN]}
    if better is None:
        return Finding(because, seen, suggestion=SAY("sql.suggestion"))
    patch = ({"op": "replace", "path": write_pointer(("args", *leaf.steps)), "value": better},)
    return Finding(because, seen, suggestion=SAY("sql.instead", sql=better), patch=patch)

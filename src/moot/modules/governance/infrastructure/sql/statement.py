"""A SQL text, read so that every database would read it the same way, or not at all."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

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
      | (?P<odd>\[[^\]]*?(?:['"`;]|--|/\*)|--|//|/\*|['"`\#$@{}\\]|[^\S\ \t\r\n])
      | (?P<word>\w+)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
"""`odd` is where dialects part: a comment for one is code for another, and so are the ends of quotes."""


class SqlProblem(NamedTuple):
    """Why a statement may not run as it is, and the part of it that is to blame."""

    message: Message
    snippet: str


@lru_cache(maxsize=4096)
def parsed(sql: str, dialect: str = DIALECT) -> exp.Query | SqlProblem:
    """The one query `sql` is. The tree is shared: copy it before changing it."""
    odd = next(_odd(sql), None)
    if odd:
        return odd
    try:
        found = [statement for statement in sqlglot.parse(sql, dialect=dialect) if statement]
    except (SqlglotError, RecursionError) as e:
        return SqlProblem(_unreadable(e), sql[:SNIPPET])
    if len(found) != 1 or not isinstance(found[0], QUERIES):
        return SqlProblem(SAY("sql.one_select"), sql[:SNIPPET])
    return _spelt_alike(found[0])


def _spelt_alike(tree: exp.Query) -> exp.Query:
    """`WITH Monthly AS … FROM monthly`: the parser would take them for two."""
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


def _odd(sql: str) -> Iterator[SqlProblem]:
    if len(sql) > MOST_CHARACTERS:
        yield SqlProblem(SAY("sql.too_long", most=MOST_CHARACTERS), sql[:SNIPPET])
        return
    unseen = next((sign for sign in sql.replace("\r\n", "\n") if _unseen(sign)), None)
    if unseen:
        yield SqlProblem(SAY("sql.unseen", sign=f"U+{ord(unseen):04X}"), sql[:SNIPPET])
    yield from _read_differently(sql)
    first = re.match(r"[\s(]*(\w*)", code_of(sql))
    if not first or first[1].upper() not in ("SELECT", "WITH"):
        yield SqlProblem(SAY("sql.one_select"), sql[:SNIPPET])


def _read_differently(sql: str) -> Iterator[SqlProblem]:
    depth = 0
    for piece in PIECE.finditer(sql):
        kind, said = piece.lastgroup, piece[0]
        if kind == "odd" or (kind == "text" and _escapes(said)) or (kind == "comment" and "/*" in said[2:]):
            yield SqlProblem(SAY("sql.ambiguous", part=said[:SNIPPET]), sql[piece.start() :][:SNIPPET])
        depth += (said == "(") - (said == ")")
        if depth > MOST_NESTING:
            yield SqlProblem(SAY("sql.too_deep", most=MOST_NESTING), sql[piece.start() :][:SNIPPET])


def _escapes(text: str) -> bool:
    """Whether a backslash stands before a quote: the end of the text for one dialect, a part of it for another."""
    return "\\'" in text.replace("\\\\", "")


def _unseen(sign: str) -> bool:
    return sign not in "\t\n" and unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _unreadable(error: Exception) -> Message:
    """Where the parser gave up; what it says itself is about its own insides."""
    places = error.errors if isinstance(error, ParseError) else []
    near = str(places[0]["highlight"] or "")[:SNIPPET].strip() if places else ""
    return SAY("sql.unreadable_near", line=places[0]["line"], near=near) if near else SAY("sql.unreadable")

"""The guard as a condition of a rule: which arguments it takes for statements, and what it says of them."""

from typing import Any

import pytest

from moot.modules.governance.domain.conditions import Finding, ToolProfile
from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.infrastructure.sql.condition import sql_guard
from tests.governance.factories import facts

DATABASE = ToolProfile(name="database", sql="sql")
TABLES = {"database": {"bars": ["symbol", "close"]}}


def found(tool: str = "database", profile: ToolProfile | None = None, **args: Any) -> Finding | None:
    return sql_guard(facts({"tool": tool, "args": args}, profile=profile), TABLES)


def test_a_harmless_statement_breaks_nothing() -> None:
    assert found(profile=DATABASE, sql="SELECT symbol FROM bars") is None
    assert found("other", sql="SELECT anything FROM anywhere") is None


def test_a_refused_statement_says_why_and_what_would_do() -> None:
    finding = found(profile=DATABASE, sql="DROP TABLE bars")
    assert finding == Finding(
        because=SAY("sql.one_select"),
        values={"payload.args.sql": "DROP TABLE bars"},
        suggestion=SAY("sql.suggestion"),
    )


def test_a_star_is_spelt_out_where_the_columns_are_known() -> None:
    finding = found(profile=DATABASE, sql="SELECT * FROM bars")
    assert finding is not None
    better = "SELECT bars.symbol, bars.close FROM bars"
    assert finding.patch == ({"op": "replace", "path": "/args/sql", "value": better},)
    assert str(finding.suggestion) == f"This would be allowed: {better}"


def test_a_table_of_nobody_is_refused_where_the_tables_are_known() -> None:
    finding = found(sql="SELECT a FROM secrets")
    assert finding is not None
    assert "secrets may not be read" in str(finding.because)
    assert found("other", sql="SELECT a FROM secrets") is None


@pytest.mark.parametrize("sql", [None, 5, ["DROP TABLE bars"], {"text": "SELECT 1"}])
def test_a_statement_that_is_missing_or_no_text_counts_as_broken(sql: Any) -> None:
    finding = found(profile=DATABASE, sql=sql)
    assert finding is not None
    assert str(finding.error) == "sql has to be a SQL statement as text."


@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE sales",
        "DR/**/OP TABLE sales",
        "delete from sales",
        "UPDATE sales SET amount = 0",
        "select pg_sleep(5)",
        "SELECT * FROM sales",
        "SELECT 1; DROP TABLE sales",
        "truncate sales",
        "COPY sales TO 'x'",
        "EXEC wipe;",
        "WITH x AS (DELETE FROM sales RETURNING id) SELECT id FROM x",
    ],
)
@pytest.mark.parametrize("argument", ["query", "statement", "SQL"])
def test_what_looks_like_a_statement_is_taken_for_one_whatever_the_tool(argument: str, text: str) -> None:
    assert found("anything", None, **{argument: text}) is not None


@pytest.mark.parametrize(
    "text",
    [
        "update on the project",
        "select the best laptop",
        "drop in sales this week",
        "delete account help",
        "copy machines in Berlin",
        "with love",
        "call mum",
        "贵州茅台 最新公告",
        "",
    ],
)
def test_words_that_only_begin_like_a_statement_are_a_search(text: str) -> None:
    assert found("web_search", query=text) is None
    assert found("run_sql", query=text) is not None
    assert found("web_search", title=text, body="DROP TABLE sales") is None

"""Statements rewritten so that a rule is kept: what is hidden stays hidden, whatever way it is asked for."""

from typing import Any

import duckdb
import pytest

from moot.modules.governance.container import correct_sql
from moot.modules.governance.domain.rules import RewriteSql
from moot.modules.governance.infrastructure.sql.guard import check_sql
from moot.modules.governance.infrastructure.sql.rewriting import is_exposing, rewrite

COLUMNS = {
    "customers": ["id", "name", "email", "region"],
    "orders": ["id", "customer_id", "amount", "ordered_on"],
    "regions": ["region", "label"],
}
MASK: dict[str, Any] = {"mask": ["email"], "columns": COLUMNS}
DROP: dict[str, Any] = {"drop": ["email"], "columns": COLUMNS}
YEAR: dict[str, Any] = {
    "time_column": "ordered_on",
    "since": "2024-01-01",
    "until": "2025-01-01",
    "columns": COLUMNS,
}
SECRET = "ann@example.com"


@pytest.fixture(scope="module")
def shop() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE customers (id INT, name TEXT, email TEXT, region TEXT)")
    connection.execute(
        f"INSERT INTO customers VALUES (1, 'Ann', '{SECRET}', 'n'), (2, 'Bob', 'b@example.com', 's')"
    )
    connection.execute("CREATE TABLE orders (id INT, customer_id INT, amount DOUBLE, ordered_on DATE)")
    connection.execute(
        "INSERT INTO orders VALUES (1, 1, 10, '2023-12-31'), (2, 1, 20, '2024-06-01'), (3, 2, 40, '2025-01-01')"
    )
    connection.execute("CREATE TABLE regions (region TEXT, label TEXT)")
    connection.execute("INSERT INTO regions VALUES ('n', 'North'), ('s', 'South')")
    return connection


CHANGED = [
    (
        "SELECT * FROM customers",
        {},
        "SELECT customers.id, customers.name, customers.email, customers.region FROM customers",
    ),
    ("SELECT c.*, 1 AS one FROM regions c", {}, "SELECT c.region, c.label, 1 AS one FROM regions AS c"),
    ("SELECT * EXCLUDE (label) FROM regions", {}, "SELECT regions.region FROM regions"),
    ("SELECT email FROM customers", MASK, "SELECT '***' AS email FROM customers"),
    ("SELECT upper(EMAIL) AS e, id FROM customers", MASK, "SELECT '***' AS e, id FROM customers"),
    (
        "SELECT * FROM customers",
        MASK,
        "SELECT customers.id, customers.name, '***' AS email, customers.region FROM customers",
    ),
    (
        "SELECT x.e FROM (SELECT email AS e FROM customers) x",
        MASK,
        "SELECT x.e FROM (SELECT '***' AS e FROM customers) AS x",
    ),
    (
        "WITH m AS (SELECT id, email FROM customers) SELECT * FROM m",
        MASK,
        "WITH m AS (SELECT id, '***' AS email FROM customers) SELECT * FROM m",
    ),
    (
        "SELECT label FROM regions UNION SELECT email FROM customers",
        MASK,
        "SELECT label FROM regions UNION SELECT '***' AS email FROM customers",
    ),
    (
        "SELECT id, (SELECT c.email) AS e FROM customers c",
        MASK,
        "SELECT id, (SELECT '***' AS email) AS e FROM customers AS c",
    ),
    ("SELECT id, email FROM customers ORDER BY id", DROP, "SELECT id FROM customers ORDER BY id"),
    (
        "SELECT e, id FROM (SELECT email AS e, id FROM customers) x",
        DROP,
        "SELECT id FROM (SELECT id FROM customers) AS x",
    ),
    ("SELECT id FROM orders", {"limit": 10}, "SELECT id FROM orders LIMIT 10"),
    ("SELECT id FROM orders LIMIT 50 OFFSET 5", {"limit": 10}, "SELECT id FROM orders LIMIT 10 OFFSET 5"),
    ("SELECT id FROM orders LIMIT 5%", {"limit": 10}, "SELECT id FROM orders LIMIT 10"),
    (
        "SELECT id FROM orders UNION ALL SELECT id FROM customers",
        {"limit": 10},
        "SELECT id FROM orders UNION ALL SELECT id FROM customers LIMIT 10",
    ),
    (
        "SELECT amount FROM orders WHERE amount > 1 OR amount < 0",
        YEAR,
        "SELECT amount FROM orders WHERE (amount > 1 OR amount < 0) "
        "AND orders.ordered_on >= '2024-01-01' AND orders.ordered_on < '2025-01-01'",
    ),
    (
        "SELECT c.name, o.amount FROM customers c LEFT JOIN orders o ON o.customer_id = c.id",
        YEAR | {"until": None},
        "SELECT c.name, o.amount FROM customers AS c "
        "LEFT JOIN orders AS o ON o.customer_id = c.id AND o.ordered_on >= '2024-01-01'",
    ),
    (
        "SELECT n FROM (SELECT count(*) AS n FROM orders) t",
        YEAR | {"since": None},
        "SELECT n FROM (SELECT COUNT(*) AS n FROM orders WHERE orders.ordered_on < '2025-01-01') AS t",
    ),
]


@pytest.mark.parametrize(("sql", "how", "expected"), CHANGED)
def test_a_rewritten_statement_is_allowed_runs_and_stays_as_it_is(
    shop: duckdb.DuckDBPyConnection, sql: str, how: dict[str, Any], expected: str
) -> None:
    how = {"columns": COLUMNS} | how
    rewritten = rewrite(sql, **how)
    assert rewritten == expected
    assert check_sql(rewritten) == ()
    assert rewrite(rewritten, **how) == rewritten
    told = str(shop.execute(rewritten).fetchall())
    assert SECRET not in told or how.keys().isdisjoint({"mask", "drop"})


KEPT = [
    ("SELECT id FROM orders limit 5", {"limit": 10}),
    ("SELECT id FROM orders FETCH FIRST 3 ROWS ONLY", {"limit": 10}),
    ("select   name from customers -- as it is", MASK),
    ("SELECT label FROM regions", YEAR),
    ("SELECT name AS email FROM customers", MASK),
    ("WITH m AS (SELECT id FROM orders) SELECT * FROM m", {}),
]


@pytest.mark.parametrize(("sql", "how"), KEPT)
def test_a_statement_that_needs_no_change_keeps_its_text(sql: str, how: dict[str, Any]) -> None:
    assert rewrite(sql, **how) == sql


PROBES = [
    "SELECT id FROM customers WHERE email LIKE 'a%'",
    "SELECT id FROM customers ORDER BY email",
    "SELECT count(*) FROM customers GROUP BY email",
    "SELECT region FROM customers GROUP BY region HAVING max(email) > 'b'",
    "SELECT max(email) FROM customers",
    "SELECT count(DISTINCT email) FROM customers",
    "SELECT row_number() OVER (ORDER BY email) AS place FROM customers",
    "SELECT id FROM customers QUALIFY row_number() OVER (ORDER BY email) = 1",
    "SELECT DISTINCT ON (email) id FROM customers",
    "SELECT a.id FROM customers a JOIN customers b ON a.email < b.email",
    "SELECT id FROM customers a JOIN customers b USING (email)",
    "SELECT a.id FROM customers a NATURAL JOIN customers b",
    "SELECT id FROM orders WHERE 'x' IN (SELECT email FROM customers)",
    "SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM customers c WHERE c.email > 'a')",
    "SELECT (SELECT email FROM customers LIMIT 1) = 'x' AS hit",
    "SELECT e FROM (SELECT email AS e FROM customers) x WHERE e = 'x'",
    "WITH m AS (SELECT email FROM customers) SELECT max(email) FROM m",
    "SELECT w FROM customers c, unnest([c.email]) AS t(w)",
    "SELECT (SELECT count(*) FROM orders WHERE c.email > 'a') AS n FROM customers c",
    "SELECT customers FROM customers",
    "SELECT a, b, c, d FROM customers AS t(a, b, c, d)",
    "SELECT COLUMNS('e.*') FROM customers",
    "SELECT to_json(c) FROM customers c",
    "SELECT email FROM customers UNION SELECT label FROM regions ORDER BY email",
    "WITH RECURSIVE customers AS (SELECT email FROM customers UNION SELECT email FROM customers) "
    "SELECT email FROM customers LIMIT 9",
    "DELETE FROM customers",
    "not sql",
]


@pytest.mark.parametrize("how", [MASK, DROP, MASK | {"columns": None}])
@pytest.mark.parametrize("sql", PROBES)
def test_a_statement_that_would_still_tell_what_is_hidden_is_not_rewritten(
    sql: str, how: dict[str, Any]
) -> None:
    assert rewrite(sql, **how) is None


@pytest.mark.parametrize("sql", PROBES)
def test_a_statement_that_probes_a_column_exposes_it(sql: str) -> None:
    assert is_exposing(sql, ("email",))
    assert is_exposing(sql, ("Email",))


@pytest.mark.parametrize(
    ("sql", "how"),
    [
        ("SELECT * FROM customers", MASK | {"columns": None}),
        ("SELECT * FROM customers c JOIN regions r USING (region)", MASK),
        ("SELECT email FROM customers", DROP),
        ("SELECT email, id FROM customers ORDER BY 2", DROP),
        ("WITH m(a, b) AS (SELECT email, id FROM customers) SELECT b FROM m", DROP),
        ("SELECT id, email FROM customers UNION SELECT id, amount FROM orders", DROP),
        ("SELECT c.name FROM customers c FULL JOIN orders o ON o.customer_id = c.id", YEAR),
        ("SELECT c.name FROM customers c JOIN orders o ON o.customer_id = c.id", YEAR | {"columns": None}),
        ("SELECT amount FROM orders", YEAR | {"since": "2024\\' OR 1=1 --"}),
    ],
)
def test_what_cannot_be_done_safely_is_not_done(sql: str, how: dict[str, Any]) -> None:
    assert rewrite(sql, **how) is None


def test_a_quote_in_a_bound_stays_inside_its_text() -> None:
    assert rewrite("SELECT amount FROM orders", time_column="ordered_on", since="x' OR '1'='1") == (
        "SELECT amount FROM orders WHERE orders.ordered_on >= 'x'' OR ''1''=''1'"
    )


def test_a_time_filter_narrows_what_is_counted(shop: duckdb.DuckDBPyConnection) -> None:
    sql = "SELECT c.name, sum(o.amount) AS total FROM customers c JOIN orders o ON o.customer_id = c.id GROUP BY 1"
    rewritten = rewrite(sql, **YEAR)
    assert rewritten is not None
    assert shop.execute(rewritten).fetchall() == [("Ann", 20.0)]


@pytest.mark.parametrize(
    ("sql", "exposed"),
    [
        ("SELECT id, c.email FROM customers c", ["email"]),
        ("SELECT id FROM customers WHERE ssn = 1", ["SSN"]),
        ("SELECT '***' AS email FROM customers", []),
        ("SELECT email FROM (SELECT '***' AS email FROM customers) x", []),
        ("SELECT c.id FROM customers c, orders o", []),
        ("SELECT profile.email.host FROM customers", ["email"]),
        ("SELECT * FROM customers", ["email", "SSN"]),
        ("anything", ["email", "SSN"]),
    ],
)
def test_a_statement_exposes_the_columns_it_can_tell_of(sql: str, exposed: list[str]) -> None:
    assert [field for field in ("email", "SSN") if is_exposing(sql, (field,))] == exposed
    assert is_exposing(sql, ("email", "SSN")) == bool(exposed)


def test_the_corrector_of_a_rule_says_what_to_rewrite() -> None:
    corrector = RewriteSql(kind="sql", path="payload.args.sql", mask=("email",), limit=5)
    assert correct_sql("SELECT id, email FROM customers", corrector, {}) == (
        "SELECT id, '***' AS email FROM customers LIMIT 5"
    )
    assert correct_sql("DROP TABLE customers", corrector, COLUMNS) is None

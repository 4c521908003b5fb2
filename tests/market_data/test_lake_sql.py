"""SQL over the lake: it answers, sees nothing from the future, and reaches nothing else."""

import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pydantic import BaseModel

from moot.modules.market_data.domain.facts import BARS, COMPANIES, DATASETS, REPORTS, Dataset
from moot.modules.market_data.infrastructure import sql_worker
from moot.modules.market_data.infrastructure.lake import Lake
from moot.modules.market_data.infrastructure.lake_sql import Children, LakeDatabase
from moot.shared.domain.errors import InvalidInput
from tests.fakes.market_data import SYMBOL, a_bar, a_company, a_report

MONDAY = date(2024, 6, 3)
TUESDAY = MONDAY + timedelta(days=1)
NOW = datetime(2024, 7, 1, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    bars = [a_bar(MONDAY, price=10.0), a_bar(TUESDAY, price=12.0)]
    lake.store(BARS, SYMBOL, bars, covered=None, at=NOW)
    other = a_bar(MONDAY, price=30.0).model_copy(update={"symbol": "AAPL"})
    lake.store(BARS, "AAPL", [other], covered=None, at=NOW)
    lake.store(COMPANIES, "DEMO", [a_company(aliases=("旧名",))], covered=None, at=NOW)
    (tmp_path / "secret.csv").write_text("a\n1\n")
    return lake


Answered = Callable[..., Awaitable[list[dict[str, Any]]]]


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def answered(tmp_path: Path, children: Children) -> Answered:
    database = LakeDatabase(tmp_path / "lake", children)

    async def read(dataset: Dataset[Any]) -> Sequence[BaseModel]:
        return await Lake(tmp_path / "lake").read(dataset, "DEMO") if dataset is COMPANIES else []

    async def answered(query: str, as_of: datetime = NOW) -> list[dict[str, Any]]:
        names, rows = await database.answer(query, read, as_of=as_of, most=100, workspace="default")
        return [dict(zip(names, row, strict=True)) for row in rows]

    return answered


async def test_a_query_joins_and_aggregates_the_datasets_by_name(lake: Lake, answered: Answered) -> None:
    rows = await answered(
        "WITH m AS (SELECT symbol, avg(close) AS mean, max(available_at) AS last FROM bars GROUP BY ALL) "
        "SELECT name, aliases, mean, last FROM m JOIN Companies USING (symbol)",
    )
    assert rows == [
        {"name": "幻山酒业", "aliases": ["旧名"], "mean": 11.0, "last": datetime(2024, 6, 4, 8, tzinfo=UTC)}
    ]


async def test_what_became_known_later_is_not_there(lake: Lake, answered: Answered) -> None:
    later = a_report(MONDAY, datetime(2024, 6, 20, tzinfo=UTC))
    lake.store(REPORTS, SYMBOL, [later], covered=None, at=NOW)

    async def counted(as_of: datetime) -> list[int]:
        query = "SELECT (SELECT count(*) FROM bars) AS bars, (SELECT count(*) FROM reports) AS reports"
        return list((await answered(query, as_of))[0].values())

    assert await counted(datetime(2024, 6, 4, 7, 59, tzinfo=UTC)) == [2, 0]
    assert await counted(datetime(2024, 6, 4, 8, 0, tzinfo=UTC)) == [3, 0]
    assert await counted(datetime(2024, 6, 20, tzinfo=UTC)) == [3, 1]


@pytest.mark.parametrize("dataset", DATASETS)
async def test_a_dataset_without_a_file_is_an_empty_table_with_its_columns(
    answered: Answered, dataset: str
) -> None:
    assert await answered(f"SELECT source FROM {dataset}") == []


FILES = [
    "SELECT * FROM read_csv('{home}/secret.csv')",
    "SELECT * FROM '{home}/secret.csv'",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM read_parquet('{home}/lake/bars/*.parquet')",
    "SELECT * FROM '{home}/lake/bars/AAPL.parquet'",
    'SELECT * FROM "{home}/lake/bars/AAPL.parquet"',
    "SELECT (SELECT count(*) FROM parquet_scan('{home}/lake/bars/AAPL.parquet'))",
    "SELECT * FROM bars WHERE close IN (SELECT close FROM '{home}/lake/bars/AAPL.parquet')",
    "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
    "DESCRIBE '{home}/lake/bars/AAPL.parquet'",
    "SUMMARIZE '{home}/secret.csv'",
]
WRITES = [
    "COPY bars TO '{home}/lake/bars/AAPL.parquet'",
    "COPY (SELECT 1) TO '{home}/out.csv'",
    "WITH x AS (COPY (SELECT 1 AS a) TO '{home}/lake/bars/AAPL.parquet' (FORMAT parquet)) SELECT * FROM x",
    "SELECT (WITH x AS (COPY bars TO '{home}/out.csv') SELECT count(*) FROM x)",
    "WITH x AS (INSERT INTO valuations SELECT * FROM valuations RETURNING *) SELECT * FROM x",
    "EXPORT DATABASE '{home}/lake/out'",
    "ATTACH '{home}/lake/x.db'",
    "CREATE TABLE t AS SELECT 1",
    "DROP VIEW bars",
    "SET enable_external_access = true",
    "PRAGMA disable_checkpoint_on_shutdown",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SELECT 1; SELECT 2",
    "",
]


@pytest.mark.parametrize("query", FILES + WRITES)
async def test_no_query_names_a_file_writes_or_changes_anything(
    lake: Lake, tmp_path: Path, answered: Answered, query: str
) -> None:
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(
        InvalidInput, match=r"cannot be used here|exactly one SELECT|could not answer"
    ) as raised:
        await answered(query.format(home=tmp_path))
    assert raised.value.code == "SQL_REFUSED"
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("query", [*FILES[:4], WRITES[1]])
async def test_duckdb_itself_keeps_to_the_lake_where_the_check_would_let_a_query_pass(
    lake: Lake, tmp_path: Path, query: str
) -> None:
    folder = tmp_path / "lake"
    bars = {"added": str(folder / "bars" / "AAPL.parquet"), "kept": str(folder / "bars" / "*.parquet")}
    with duckdb.connect() as connection, pytest.raises(sql_worker.Refused) as raised:
        sql_worker.answer(
            connection,
            query.format(home=tmp_path),
            views={"bars": bars},
            folder=str(folder),
            as_of=NOW.isoformat(),
            most=1,
            memory=300,
        )
    assert re.search("disabled by configuration|does not exist", raised.value.reply["why"])
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("SELECT * FROM quotes", "quotes does not exist.* The tables are companies, bars,"),
        ("SELECT price FROM bars", "price"),
        ("SELECT " + "+".join(["1"] * 900), "nested too deeply"),
    ],
)
async def test_a_query_that_fails_says_why_and_which_tables_there_are(
    lake: Lake, answered: Answered, query: str, why: str
) -> None:
    with pytest.raises(InvalidInput, match=f"(?s){why}"):
        await answered(query)

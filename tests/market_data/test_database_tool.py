"""The `database` tool: it answers from the lake and the demo market, as of a moment, within limits."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pytest

from moot.desk import Moot
from moot.modules.governance.domain.conditions import ToolProfile
from moot.modules.governance.infrastructure.sql.guard import check_sql
from moot.modules.governance.infrastructure.sql.rewriting import rewrite
from moot.modules.market_data.application.sql import DATABASE_TOOL, TABLES, DatabaseTool, QueryResult, SqlDoor
from moot.modules.market_data.domain.facts import BARS, COMPANIES, DATASETS
from moot.modules.market_data.infrastructure import sql_worker
from moot.modules.market_data.infrastructure.lake import Lake
from moot.modules.market_data.infrastructure.lake_sql import Children, LakeDatabase
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.facts import SpecialTreatment
from moot.shared.domain.symbol import Market, Symbol
from moot.shared.infrastructure.settings import Settings
from tests.fakes.clock import FixedClock
from tests.fakes.market_data import a_bar, a_company
from tests.market_data.demo import Snapshot, demo_market

MONDAY = date(2024, 6, 3)
AS_OF = datetime(2024, 7, 1, tzinfo=UTC)
EARLY = datetime(2019, 7, 1, tzinfo=UTC)
"""When the demo market had a quarter of the days."""
CODE = "600519.SH"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lake = Lake(tmp_path / "lake")
    bars = [
        a_bar(MONDAY + timedelta(days=day), price=price).model_copy(
            update={"symbol": CODE, "source": "files"}
        )
        for day, price in enumerate([10.0, 12.0])
    ]
    lake.store(BARS, CODE, bars, covered=None, at=AS_OF)
    company = a_company().model_copy(
        update={
            "symbol": CODE,
            "name": "*ST茅台",
            "source": "files",
            "list_date": date(2001, 8, 27),
            "delist_date": date(2025, 1, 1),
            "st_history": (SpecialTreatment(start=date(2024, 9, 1)),),
        }
    )
    lake.store(COMPANIES, "CN", [company], covered=None, at=AS_OF)
    return tmp_path / "lake"


pytestmark = pytest.mark.asyncio(loop_scope="module")


class Tool(Protocol):
    def __call__(self, folder: Path, most_rows: int = ...) -> "Queries": ...


@dataclass
class Queries:
    tool: DatabaseTool

    async def query(self, sql: str, *, as_of: datetime) -> QueryResult:
        return await self.tool.query(sql, as_of=as_of, workspace="default")


@pytest.fixture
def tool(children: Children) -> Tool:
    def tool(folder: Path, most_rows: int = 1_000) -> Queries:
        lake = LakeDatabase(folder, children)
        return Queries(DatabaseTool(lake, Lake(folder), demo_market(), most_rows))

    return tool


async def test_it_answers_from_the_lake_and_from_the_demo_market(folder: Path, tool: Tool) -> None:
    sql = (
        "SELECT source, count(*) AS days, max(trade_date) AS last FROM bars "
        "WHERE source IN ('files', 'demo') GROUP BY source ORDER BY source DESC"
    )
    result = await tool(folder).query(sql, as_of=AS_OF)
    assert result.columns == ("source", "days", "last")
    assert result.rows[0] == ("files", 2, date(2024, 6, 4))
    assert result.rows[1][0] == "demo"
    assert (len(result.rows), result.truncated) == (2, False)
    assert result.took_ms > 0


@pytest.mark.parametrize("table", TABLES)
async def test_the_demo_market_is_there_only_where_it_is_asked_for(
    folder: Path, tool: Tool, table: str
) -> None:
    sql = f"SELECT DISTINCT source FROM {table}"
    result = await tool(folder).query(sql, as_of=AS_OF)
    assert {source for (source,) in result.rows} == ({"files"} if table in ("companies", "bars") else set())


@pytest.mark.parametrize("written", ["symbol = '900001.DEMO'", "symbol ILIKE '%.demo'", "source = 'demo'"])
async def test_a_statement_asks_for_the_demo_market_by_naming_it(
    folder: Path, tool: Tool, written: str
) -> None:
    named = await tool(folder).query(f"SELECT symbol FROM companies WHERE {written}", as_of=AS_OF)
    assert ("900001.DEMO",) in named.rows
    others = await tool(folder).query(f"SELECT symbol FROM companies WHERE NOT {written}", as_of=AS_OF)
    assert (CODE,) in others.rows


@pytest.mark.parametrize("dataset", [name for name in DATASETS if name != "companies"])
async def test_nothing_that_became_known_later_is_there(folder: Path, tool: Tool, dataset: str) -> None:
    counted = "count(*), count(DISTINCT hash(told)), max(available_at)"
    sql = f"SELECT {counted} FROM {dataset} AS told WHERE source <> 'DEMO'"
    (seen,) = (await tool(folder).query(sql, as_of=EARLY)).rows
    assert seen[0] == seen[1] > 0
    assert EARLY - timedelta(days=120) < seen[2] <= EARLY
    (later,) = (await tool(folder).query(sql, as_of=EARLY + timedelta(days=200))).rows
    assert later[0] > seen[0]


class Permission:
    """Rules that let everything through."""

    async def allow(self, _tool: str, args: Any, *_more: Any, **_by: Any) -> tuple[Any, None]:
        return args, None


@pytest.mark.parametrize(
    ("market", "symbol"), [(Market.CN, CODE), (Market.DEMO, "900001.DEMO"), (Market.US, "AAPL")]
)
async def test_a_day_ends_where_it_does_for_research(
    folder: Path, tool: Tool, market: Market, symbol: str
) -> None:
    late = Symbol.parse(symbol).end_of(MONDAY)
    bars = [
        a_bar(MONDAY, moment, symbol=CODE)
        for moment in (late.astimezone(UTC), (late + timedelta(microseconds=1)).astimezone(UTC))
    ]
    seen = []
    for number, bar in enumerate(bars):
        own = folder.with_name(f"lake{number}")
        Lake(own).store(BARS, CODE, [bar], covered=None, at=AS_OF)
        door = SqlDoor(tool(own).tool, Permission(), FixedClock(AS_OF))
        door.tool.market = market
        asked = {"sql": "SELECT trade_date FROM bars", "as_of": MONDAY}
        result = await door.query(asked, requester="desk", workspace="default", locale="en-US")
        assert result.as_of == late
        seen.append((MONDAY,) in result.rows)
    assert seen == [True, False]


@pytest.mark.parametrize(
    ("kept", "market"), [((), "DEMO"), (("CN",), "CN"), (("US",), "US"), (("CN", "US"), "CN")]
)
async def test_the_days_are_those_of_the_exchange_whose_data_are_kept(
    tmp_path: Path, kept: tuple[str, ...], market: str
) -> None:
    for place in kept:
        Lake(tmp_path / "lake").store(COMPANIES, place, [a_company()], covered=None, at=AS_OF)
    assert Moot(Settings(home=tmp_path, persistence=False)).database_tool.market == market


async def test_every_news_item_and_figure_of_the_demo_market_is_there_once(
    folder: Path, tool: Tool, demo: Snapshot
) -> None:
    sql = (
        "SELECT (SELECT count(*) FROM news) AS news, (SELECT count(*) FROM macro) AS macro, 'demo' AS market"
    )
    result = await tool(folder).query(sql, as_of=AS_OF)
    expected = [sum(fact.available_at <= AS_OF for fact in facts) for facts in (demo.news, demo.macro)]
    assert result.rows == ((*expected, "demo"),)


async def test_a_company_does_not_tell_of_its_own_future(folder: Path, tool: Tool) -> None:
    sql = f"SELECT name, delist_date, len(st_history) FROM companies WHERE symbol = '{CODE}'"
    rows = [(await tool(folder).query(sql, as_of=moment)).rows for moment in _moments()]
    assert rows == [(), (("茅台", None, 0),), (("*ST茅台", date(2025, 1, 1), 1),)]


def _moments() -> list[datetime]:
    return [datetime(2000, 1, 1, tzinfo=UTC), AS_OF, datetime(2025, 6, 1, tzinfo=UTC)]


async def test_an_empty_lake_leaves_the_demo_market(tmp_path: Path, tool: Tool) -> None:
    result = await tool(tmp_path / "none").query("SELECT count(*) FROM companies", as_of=AS_OF)
    assert result.rows[0][0] > 10


async def test_more_rows_than_allowed_are_cut_and_it_says_so(folder: Path, tool: Tool) -> None:
    sql = "SELECT symbol, close FROM bars WHERE symbol LIKE '%.DEMO' ORDER BY symbol, trade_date"
    cut = await tool(folder, most_rows=5).query(sql, as_of=EARLY)
    assert (len(cut.rows), cut.truncated) == (5, True)
    whole = await tool(folder, most_rows=5).query(f"{sql} LIMIT 5", as_of=EARLY)
    assert (whole.rows, whole.truncated) == (cut.rows, False)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{home}/secret.csv')",
        "SELECT * FROM '{home}/lake/bars/600519.SH.parquet'",
        "COPY bars TO '{home}/out.csv'",
        "SELECT 1; SELECT 2",
        "DROP VIEW bars",
        "SET enable_external_access = true",
        "SELECT nothing FROM bars",
        "SELECT a FROM folder",
        "SELECT",
    ],
)
async def test_what_does_not_run_is_refused_in_both_languages(
    folder: Path, tool: Tool, tmp_path: Path, sql: str
) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with pytest.raises(InvalidInput) as raised:
        await tool(folder).query(sql.format(home=tmp_path), as_of=AS_OF)
    assert raised.value.code == "SQL_REFUSED"
    assert raised.value.in_locale("zh-CN") != raised.value.in_locale("en-US")
    assert not (tmp_path / "out.csv").exists()


async def test_what_the_settings_of_duckdb_are_is_not_for_a_query_to_change(folder: Path) -> None:
    with duckdb.connect() as connection:
        limits = {"views": {}, "folder": str(folder), "as_of": AS_OF.isoformat(), "most": 1, "memory": 300}
        with pytest.raises(sql_worker.Refused) as raised:
            sql_worker.answer(connection, "SET memory_limit = '9GB'", **limits)
    assert "locked" in raised.value.reply["why"]


async def test_nothing_is_written_to_disk_for_want_of_memory(folder: Path, tool: Tool) -> None:
    result = await tool(folder).query("SELECT current_setting('temp_directory')", as_of=AS_OF)
    assert result.rows == (("",),)


async def test_a_star_that_the_guard_spells_out_runs(tmp_path: Path, tool: Tool) -> None:
    database = tool(tmp_path / "none")
    for name in TABLES:
        spelt = rewrite(f"SELECT * FROM {name}", limit=3, columns=TABLES)
        assert spelt is not None
        assert check_sql(spelt, TABLES) == ()
        result = await database.query(spelt, as_of=EARLY)
        assert list(result.columns) == TABLES[name]
        assert len(result.rows) == 3


async def test_its_profile_says_which_argument_is_sql_and_that_it_changes_nothing() -> None:
    profile = ToolProfile.model_validate(DATABASE_TOOL)
    assert (profile.name, profile.sql, profile.side_effects, profile.sinks) == ("database", "sql", False, ())
    assert profile.parameters["required"] == ["sql"]
    assert all(f"{name}(" in profile.description for name in DATASETS)

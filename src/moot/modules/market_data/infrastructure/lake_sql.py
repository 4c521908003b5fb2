"""SQL over the lake's files, for looking around: one SELECT, nothing outside the lake, nothing from the future."""

import json
import re
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
from pydantic import BaseModel

from moot.modules.market_data.domain.facts import COMPANIES, DATASETS, Dataset
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure import lake
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import Message

MOST_SECONDS = 10.0
TABLE_FUNCTIONS = {"range", "generate_series", "unnest"}
READING = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
WORD = re.compile(r"\w+")
CLOSED = (
    "SET allowed_directories = [{folder}]",
    "SET temp_directory = ''",
    "SET enable_external_access = false",
    "SET memory_limit = '2GB'",
    "SET TimeZone = 'UTC'",
    "SET lock_configuration = true",
)


@dataclass(frozen=True)
class LakeDatabase:
    """DuckDB over the lake's files, with rows from elsewhere beside them; a query is stopped after `most_seconds`."""

    folder: Path
    most_seconds: float = MOST_SECONDS

    def find_datasets(self, sql: str) -> set[Dataset[BaseModel]]:
        """The datasets that `sql` reads; refuses what `answer` would."""
        with duckdb.connect() as connection:
            return _check(connection, sql)

    def answer(
        self, sql: str, added: Mapping[Dataset[BaseModel], Sequence[BaseModel]], *, as_of: datetime, most: int
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Columns and rows, one more than `most` when there are more. Companies tell no moment: `added` has all."""
        frames = {dataset: lake.frame_of(dataset.model, facts) for dataset, facts in added.items()}
        with duckdb.connect() as connection:
            datasets = _check(connection, sql)
            timer = threading.Timer(self.most_seconds, connection.interrupt)
            timer.start()
            try:
                _attach(connection, self.folder.resolve(), datasets, as_of, frames)
                connection.execute(sql)
                names = [column[0] for column in connection.description or ()]
                return names, [tuple(map(_aware, row)) for row in connection.fetchmany(most + 1)]
            except duckdb.InterruptException as e:
                raise _refuse(SAY("database.too_slow", seconds=self.most_seconds)) from e
            except duckdb.Error as e:
                raise _refuse(SAY("lake.sql_failed", why=str(e), tables=list(DATASETS))) from e
            finally:
                timer.cancel()


def _check(connection: duckdb.DuckDBPyConnection, query: str) -> set[Dataset[BaseModel]]:
    """The datasets that `query` reads. Refuses all but one SELECT, and every way to name a file in it.

    Inside the lake DuckDB may open files: past the views and their `as_of`, and by a COPY within a WITH even to
    write. So that is refused here; files elsewhere DuckDB itself refuses to open.
    """
    nodes = list(_nodes(_parse(connection, query)))
    kinds = {node["type"] for node in nodes if node["type"].endswith("_NODE")}
    if kinds - READING:
        raise _refuse(SAY("lake.sql_one_select"))
    tables = {node["table_name"] for node in nodes if node["type"] in ("BASE_TABLE", "SHOW_REF")} - {""}
    functions = {node["function"]["function_name"] for node in nodes if node["type"] == "TABLE_FUNCTION"}
    beyond = {table for table in tables if not WORD.fullmatch(table)} | (functions - TABLE_FUNCTIONS)
    if beyond:
        raise _refuse(SAY("lake.sql_beyond", names=sorted(beyond), tables=list(DATASETS)))
    return {DATASETS[name] for name in {table.lower() for table in tables} & DATASETS.keys()}


def _parse(connection: duckdb.DuckDBPyConnection, query: str) -> dict[str, Any]:
    found = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()
    try:
        tree: dict[str, Any] = json.loads(found[0][0])
    except RecursionError as e:
        raise _refuse(SAY("lake.sql_too_deep")) from e
    if tree.get("error_type") == "parser":
        raise _refuse(SAY("lake.sql_failed", why=tree["error_message"], tables=list(DATASETS)))
    if tree["error"] or len(tree["statements"]) != 1:
        raise _refuse(SAY("lake.sql_one_select"))
    return tree


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    left = [tree]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            left += part.values()
            if isinstance(part.get("type"), str):
                yield part
        elif isinstance(part, list):
            left += part


def _attach(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    datasets: set[Dataset[BaseModel]],
    as_of: datetime,
    added: Mapping[Dataset[BaseModel], pl.DataFrame],
) -> None:
    with tempfile.TemporaryDirectory() as elsewhere:
        for dataset in datasets:
            rows = added.get(dataset)
            file = Path(elsewhere) / f"{dataset}{lake.SUFFIX}"
            (pl.DataFrame(schema=lake.schema_of(dataset.model)) if rows is None else rows).write_parquet(file)
            _read_known(connection, file, as_of).create(f"added_{dataset}")
            files = [] if dataset is COMPANIES and rows is not None else lake.files_of(folder, dataset)
            more = _keep(connection, dataset, files, as_of) if files else ""
            connection.execute(f"CREATE VIEW {dataset} AS SELECT * FROM added_{dataset} {more}")  # noqa: S608
    for setting in CLOSED:
        connection.execute(setting.format(folder=_quote(f"{folder}/")))


def _keep(
    connection: duckdb.DuckDBPyConnection, dataset: Dataset[BaseModel], files: list[Path], as_of: datetime
) -> str:
    for path in files:  # in a read of them all, one without the right columns would go unnoticed
        lake.coverage_of(path)
    try:
        _read_known(connection, files[0].parent / f"*{lake.SUFFIX}", as_of).create_view(f"kept_{dataset}")
    except duckdb.Error:
        for path in files:  # names the one that is to blame, if one is
            lake.frame_in(path, dataset)
        raise
    return f"UNION ALL BY NAME SELECT * FROM kept_{dataset}"  # noqa: S608


def _read_known(
    connection: duckdb.DuckDBPyConnection, files: Path, as_of: datetime
) -> duckdb.DuckDBPyRelation:
    """Times are shown in UTC, without a zone: DuckDB needs a package of its own to hand out zoned ones."""
    rows = connection.read_parquet(str(files), union_by_name=True)
    if "available_at" not in rows.columns:
        return rows
    utc = ", ".join(f"{name} AT TIME ZONE 'UTC' AS {name}" for name in ("event_time", "available_at"))
    moment = _quote(as_of.astimezone(UTC).isoformat())
    return rows.filter(f"available_at <= TIMESTAMPTZ {moment}").project(f"* REPLACE ({utc})")


def _aware(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _refuse(message: Message) -> InvalidInput:
    return InvalidInput(message, code="SQL_REFUSED", field="query")

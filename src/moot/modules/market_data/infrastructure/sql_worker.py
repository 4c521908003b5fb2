"""Runs statements of strangers in a process of its own, so that whoever started it can end it at any moment.

It is started by its path, with DuckDB and nothing of Moot beside it. Questions come as JSON, answers go pickled, each
after its length. A conversation has two parts: the statement, answered with the tables it names; then where those are
to be found, answered with rows.
"""

import json
import os
import pickle
import queue
import re
import resource
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from types import ModuleType
from typing import Any
from zoneinfo import ZoneInfo

import duckdb

Connection = duckdb.DuckDBPyConnection

LENGTH = 8
LONGEST_REASON = 1_000
MOST_THREADS = 4
TABLE_FUNCTIONS = {"range", "generate_series", "unnest"}
READING = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
WORD = re.compile(r"\w+")
CLOSED = (
    "SET allowed_directories = [{folder}]",
    "SET temp_directory = ''",
    "SET enable_external_access = false",
    "SET memory_limit = '{memory}MB'",
    "SET TimeZone = 'UTC'",
    "SET lock_configuration = true",
)


class Refused(Exception):
    """`key` is that of a text: whoever asked knows the reader's language."""

    def __init__(self, key: str, **values: Any) -> None:
        super().__init__(key)
        self.reply = {"refused": key, **values}


class Worker:
    """`memory` is what DuckDB may take and `longest` what an answer may, in MB; after `seconds` all is over."""

    def __init__(self, memory: int, longest: int, seconds: int) -> None:
        self._memory, self._longest, self._seconds = memory, longest << 20, seconds
        self._inbox = queue.SimpleQueue[dict[str, Any]]()

    def run(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()
        while True:
            with duckdb.connect(config={"threads": min(MOST_THREADS, os.cpu_count() or 1)}) as connection:
                self._converse(connection)

    def _listen(self) -> None:
        """Ends with the process that asks, in the middle of a statement too."""
        while length := sys.stdin.buffer.read(LENGTH):
            self._inbox.put(json.loads(sys.stdin.buffer.read(int.from_bytes(length))))
        os._exit(0)

    def _converse(self, connection: Connection) -> None:
        sql = self._inbox.get()["sql"]
        signal.alarm(self._seconds)  # in case the process that should end this one is stuck
        try:
            self._send({"tables": check(connection, sql)})
            signal.alarm(0)  # what is laid out for it takes its own time
            laid_out = self._inbox.get()
            signal.alarm(self._seconds)
            self._send(answer(connection, sql, memory=self._memory, **laid_out))
        except Refused as e:
            self._send(e.reply)
        except (MemoryError, duckdb.OutOfMemoryException):
            self._send({"refused": "database.too_big"})
        signal.alarm(0)

    def _send(self, reply: Mapping[str, Any]) -> None:
        data = pickle.dumps(reply)
        if len(data) > self._longest:
            raise Refused("database.too_long", megabytes=self._longest >> 20)
        sys.stdout.buffer.write(len(data).to_bytes(LENGTH) + data)
        sys.stdout.buffer.flush()


def check(connection: Connection, sql: str) -> list[str]:
    """The tables that `sql` reads. Refuses all but one SELECT, and every way to name a file in it.

    Inside the lake DuckDB may open files: past the views and their `as_of`, and by a COPY within a WITH even to
    write. So that is refused here; files elsewhere DuckDB itself refuses to open.
    """
    nodes = list(_nodes(_parse(connection, sql)))
    kinds = {node["type"] for node in nodes if node["type"].endswith("_NODE")}
    if kinds - READING:
        raise Refused("lake.sql_one_select")
    tables = {node["table_name"] for node in nodes if node["type"] in ("BASE_TABLE", "SHOW_REF")} - {""}
    functions = {node["function"]["function_name"] for node in nodes if node["type"] == "TABLE_FUNCTION"}
    beyond = {table for table in tables if not WORD.fullmatch(table)} | (functions - TABLE_FUNCTIONS)
    if beyond:
        raise Refused("lake.sql_beyond", names=sorted(name[:LONGEST_REASON] for name in beyond))
    return sorted({table.lower() for table in tables})


def _parse(connection: Connection, sql: str) -> dict[str, Any]:
    found = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()
    try:
        tree: dict[str, Any] = json.loads(found[0][0])
    except RecursionError as e:
        raise Refused("lake.sql_too_deep") from e
    if tree.get("error_type") == "parser":
        raise Refused("lake.sql_failed", why=tree["error_message"][:LONGEST_REASON])
    if tree["error"] or len(tree["statements"]) != 1:
        raise Refused("lake.sql_one_select")
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


def answer(
    connection: Connection,
    sql: str,
    *,
    views: Mapping[str, Mapping[str, str]],
    folder: str,
    as_of: str,
    most: int,
    memory: int,
) -> dict[str, Any]:
    """Columns and rows, one more than `most` when there are more, of what was known at `as_of`.

    `views` are the files of each table: rows `added` from elsewhere, and those `kept` in the lake's `folder`.
    """
    attached = False
    try:
        for name, files in views.items():
            _attach(connection, name, files, as_of)
        for setting in CLOSED:
            connection.execute(setting.format(folder=_quote(f"{folder}/"), memory=memory))
        attached = True
        connection.execute(sql)
        names = [column[0] for column in connection.description or ()]
        return {"columns": names, "rows": [tuple(map(_plain, row)) for row in connection.fetchmany(most + 1)]}
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as e:
        raise Refused("lake.sql_failed", why=str(e)[:LONGEST_REASON], attached=attached) from e


def _attach(connection: Connection, name: str, files: Mapping[str, str], as_of: str) -> None:
    """What was `added` is read now, what is `kept` when it is asked for."""
    _read_known(connection, files["added"], as_of).create(f"added_{name}")
    more = ""
    if "kept" in files:
        _read_known(connection, files["kept"], as_of).create_view(f"kept_{name}")
        more = f"UNION ALL BY NAME SELECT * FROM kept_{name}"  # noqa: S608
    connection.execute(f"CREATE VIEW {name} AS SELECT * FROM added_{name} {more}")  # noqa: S608


def _read_known(connection: Connection, files: str, as_of: str) -> duckdb.DuckDBPyRelation:
    """Times are shown in UTC, without a zone: DuckDB needs a package of its own to hand out zoned ones."""
    rows = connection.read_parquet(files, union_by_name=True)
    if "available_at" not in rows.columns:
        return rows
    utc = ", ".join(f"{name} AT TIME ZONE 'UTC' AS {name}" for name in ("event_time", "available_at"))
    return rows.filter(f"available_at <= TIMESTAMPTZ {_quote(as_of)}").project(f"* REPLACE ({utc})")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    if isinstance(value, dict):
        return {_plain(name): _plain(member) for name, member in value.items()}
    return value


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class Zone(ZoneInfo):
    """What DuckDB wants of the package pytz, which nobody has to install for `now()`; the zone is always UTC."""

    def localize(self, moment: datetime) -> datetime:
        return moment.replace(tzinfo=self)


def main() -> None:
    in_all, memory, longest, seconds = map(int, sys.argv[1:])
    limits = {resource.RLIMIT_DATA: in_all << 20, resource.RLIMIT_FSIZE: 0, resource.RLIMIT_CORE: 0}
    for limit, most in limits.items():
        resource.setrlimit(limit, (most, most))
    sys.modules["pytz"] = zones = ModuleType("pytz")
    zones.__dict__["timezone"] = Zone
    Worker(memory, longest, seconds).run()


if __name__ == "__main__":
    main()

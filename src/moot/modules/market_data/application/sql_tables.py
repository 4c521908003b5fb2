"""The `database` tool: SQL over the desk's market data, the lake and the demo market alike, as known at a moment.

It answers whatever SELECT runs; whether anybody may ask it is for the rules to say.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Protocol

from pydantic import BaseModel

from moot.modules.market_data.application.market_data import as_known
from moot.modules.market_data.application.query_result import QueryResult
from moot.modules.market_data.domain.datasets import SHAPES, Dataset
from moot.modules.market_data.domain.facts import Company, Fact
from moot.modules.market_data.domain.provider import MarketDataProvider
from moot.shared.domain.symbol import Symbol

MOST_ROWS = 1_000
EARLIEST = date(1980, 1, 1)

TABLES: dict[str, list[str]] = {
    dataset.value: list(shape.model.model_fields) for dataset, shape in SHAPES.items()
}

DATABASE_TOOL: dict[str, Any] = {
    "name": "database",
    "description": "Runs one SELECT (DuckDB SQL) over market data as known at the session's moment. Tables: "
    + "; ".join(f"{name}({', '.join(columns)})" for name, columns in TABLES.items()),
    "parameters": {
        "type": "object",
        "properties": {
            "sql": {"type": "string", "description": "One SELECT statement that names its columns."}
        },
        "required": ["sql"],
        "additionalProperties": False,
    },
    "side_effects": False,
    "sinks": (),
    "sql": "sql",
}
"""As a tool's profile is written: the schema of its arguments, that it changes nothing, and which one is SQL."""

Reader = Callable[[MarketDataProvider, str, date], Awaitable[Sequence[Fact]]]

OF_SYMBOL: dict[Dataset, Reader] = {
    Dataset.BARS: lambda source, symbol, end: source.daily_bars(symbol, EARLIEST, end),
    Dataset.VALUATIONS: lambda source, symbol, end: source.daily_valuations(symbol, EARLIEST, end),
    Dataset.REPORTS: lambda source, symbol, _: source.financial_reports(symbol),
    Dataset.DIVIDENDS: lambda source, symbol, _: source.dividends(symbol),
    Dataset.NEWS: lambda source, symbol, end: source.news(symbol, EARLIEST, end),
}


class SqlTables(Protocol):
    """The lake, as SQL sees it. Refuses with `InvalidInput` what does not run, runs too long, or is no SELECT."""

    def named(self, sql: str) -> set[Dataset]:
        """The datasets that `sql` reads."""

    def answer(
        self, sql: str, added: Mapping[Dataset, Sequence[BaseModel]], *, as_of: datetime, most: int
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Columns and rows, one more than `most` when there are more, of what was known at `as_of`.

        `added` are rows from elsewhere, and all companies.
        """


class DatabaseTool:
    """`kept` is the lake, whose companies are read here; `demo` is read here altogether."""

    def __init__(
        self,
        tables: SqlTables,
        kept: MarketDataProvider,
        demo: MarketDataProvider,
        most_rows: int = MOST_ROWS,
    ) -> None:
        self._tables = tables
        self._kept = kept
        self._demo = demo
        self._most = most_rows

    def tables(self) -> dict[str, list[str]]:
        return {name: list(columns) for name, columns in TABLES.items()}

    async def query(self, sql: str, *, as_of: datetime) -> QueryResult:
        began = time.perf_counter()
        wanted = await asyncio.to_thread(self._tables.named, sql)
        added = {dataset: await self._rows(dataset, as_of) for dataset in wanted}
        names, rows = await asyncio.to_thread(self._tables.answer, sql, added, as_of=as_of, most=self._most)
        return QueryResult(
            sql=sql,
            as_of=as_of,
            columns=tuple(names),
            rows=tuple(rows[: self._most]),
            truncated=len(rows) > self._most,
            took_ms=round((time.perf_counter() - began) * 1000, 1),
        )

    async def _rows(self, dataset: Dataset, as_of: datetime) -> Sequence[BaseModel]:
        if dataset is Dataset.COMPANIES:
            return _listed([*await self._kept.companies(), *await self._demo.companies()], as_of)
        end = as_of.astimezone(UTC).date() + timedelta(days=1)
        if dataset is Dataset.MACRO:
            return await self._demo.macro(EARLIEST, end)
        facts: list[Fact] = []
        for company in await self._demo.companies():
            facts += await OF_SYMBOL[dataset](self._demo, company.symbol, end)
            await asyncio.sleep(0)  # the demo market is worked out on the spot: let others run in between
        return _once(facts, ("symbol", *SHAPES[dataset].key))


def _once(facts: Iterable[Fact], key: tuple[str, ...]) -> list[Fact]:
    """News about a market comes with every symbol of it."""
    return list({tuple(getattr(fact, name) for name in key): fact for fact in facts}.values())


def _listed(companies: Iterable[Company], as_of: datetime) -> list[Company]:
    """The companies that were there at `as_of` or had been, without what happened to them later."""
    known = []
    for company in companies:
        today = Symbol.parse(company.symbol).local_date(as_of)
        if company.list_date <= today:
            gone = company.delist_date if company.delist_date and company.delist_date <= today else None
            known.append(as_known(company, today).model_copy(update={"delist_date": gone}))
    return known

"""SQL over the desk's market data as known at a moment: the lake, or the demo market where that is asked for.

`DatabaseTool` answers whatever SELECT runs; whether anybody may ask it is for the rules to say: `SqlDoor` asks them.
"""

import asyncio
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from operator import attrgetter
from typing import Annotated, Any, Protocol

from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, field_serializer

from moot.modules.market_data.application.market_data import as_known
from moot.modules.market_data.domain.facts import COMPANIES, DATASETS, Dataset
from moot.modules.market_data.domain.provider import MarketDataProvider
from moot.shared.domain.clock import FIRST_DAY, Clock, Moment, freeze
from moot.shared.domain.facts import Company
from moot.shared.domain.messages import Locale, Message
from moot.shared.domain.symbol import TIME_ZONES, Market, Symbol
from moot.shared.domain.validation import Strict, refuse, validate
from moot.shared.infrastructure.frames import Table

DATABASE = "database"
MOST_ROWS = 1_000
LONGEST = 100_000
ASKS_FOR_DEMO = re.compile(r"\bdemo\b", re.IGNORECASE)
NO_TEXT = re.compile("[\x00\ud800-\udfff]")

TABLES: dict[str, list[str]] = {
    dataset.name: list(dataset.model.model_fields) for dataset in DATASETS.values()
}

DATABASE_TOOL: dict[str, Any] = {
    "name": DATABASE,
    "description": "Runs one SELECT (DuckDB SQL) over market data as known at the session's moment. Companies of the "
    "demo market are there where the statement names it (900001.DEMO). Tables: "
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


class QueryResult(BaseModel, Table, frozen=True):
    """`sql` is what ran, and `notices` say why if it is not what was asked.

    `truncated`: there are more rows than are handed out. In JSON, days and moments are text, and NaN is null.
    """

    sql: str
    as_of: AwareDatetime
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool
    took_ms: float
    notices: tuple[str, ...] = ()

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
        return self.columns, self.rows

    @field_serializer("rows", when_used="json")
    def _rows_in_json(self, rows: tuple[tuple[Any, ...], ...]) -> list[list[Any]]:
        return [[_in_json(value) for value in row] for row in rows]


def _in_json(value: Any) -> Any:
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, date | time_of_day):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_in_json(member) for member in value]
    if isinstance(value, Mapping):
        return {str(name): _in_json(member) for name, member in value.items()}
    return str(value)


ReadRows = Callable[[Dataset[Any]], Awaitable[Sequence[BaseModel]]]


class SqlTables(Protocol):
    """The lake, as SQL sees it."""

    @property
    def empty(self) -> bool:
        """Whether nothing is kept."""

    async def answer(
        self, sql: str, read: ReadRows, *, as_of: datetime, most: int, workspace: str
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Columns and rows, one more than `most` when there are more, of what was known at `as_of`.

        `read` gives rows from elsewhere, and all companies. Refuses with `InvalidInput` what does not run, runs too
        long or takes too much, or is no SELECT; raises `TooManyRequests` while the workspace has too many under way.
        """


@dataclass
class DatabaseTool:
    """`kept` is the lake, whose companies are read here; `demo` is read here altogether, where a statement says DEMO
    or nothing else is there. Days end as on the exchange of `market`."""

    lake: SqlTables
    kept: MarketDataProvider
    demo: MarketDataProvider
    most_rows: int = MOST_ROWS
    market: Market = Market.CN

    async def query(self, sql: str, *, as_of: datetime, workspace: str) -> QueryResult:
        began = time.perf_counter()
        names, rows = await self.lake.answer(
            sql,
            lambda dataset: self._rows(
                dataset, as_of, demo=self.lake.empty or bool(ASKS_FOR_DEMO.search(sql))
            ),
            as_of=as_of,
            most=self.most_rows,
            workspace=workspace,
        )
        return QueryResult(
            sql=sql,
            as_of=as_of,
            columns=tuple(names),
            rows=tuple(rows[: self.most_rows]),
            truncated=len(rows) > self.most_rows,
            took_ms=round((time.perf_counter() - began) * 1000, 1),
        )

    async def _rows(self, dataset: Dataset[Any], as_of: datetime, *, demo: bool) -> Sequence[BaseModel]:
        invented = await self.demo.read(COMPANIES, Market.DEMO.value) if demo else []
        if dataset is COMPANIES:
            kept = [c for market in Market for c in await self.kept.read(COMPANIES, market.value)]
            return _list_at([*kept, *invented], as_of)
        end = as_of.astimezone(UTC).date() + timedelta(days=1)
        subjects = [company.symbol for company in invented] if dataset.by_symbol else [Market.DEMO.value]
        names = [name for name in ("symbol", *dataset.key) if name in dataset.model.model_fields]
        key_of = attrgetter(*names)
        facts: dict[Any, BaseModel] = {}  # news about a market comes with every symbol of it
        for subject in subjects if demo else ():
            facts |= {key_of(fact): fact for fact in await self.demo.read(dataset, subject, FIRST_DAY, end)}
            await asyncio.sleep(0)  # the demo market is worked out on the spot: let others run in between
        return list(facts.values())


def _list_at(companies: Iterable[Company], as_of: datetime) -> list[Company]:
    """The companies that were there at `as_of` or had been, without what happened to them later."""
    known = []
    for company in companies:
        today = Symbol.parse(company.symbol).local_date(as_of)
        if company.list_date <= today:
            gone = company.delist_date if company.delist_date and company.delist_date <= today else None
            known.append(as_known(company, today).model_copy(update={"delist_date": gone}))
    return known


def _require_storable(text: str) -> str:
    """Whether it is SQL is for the rules to say; that it can be written down is asked for here."""
    if not text.strip():
        raise refuse("blank")
    if NO_TEXT.search(text):
        raise ValueError("holds a character that is none")
    return text


class Statement(Strict):
    sql: Annotated[str, AfterValidator(_require_storable)] = Field(
        max_length=LONGEST, description="one SELECT", examples=["SELECT symbol, name FROM companies"]
    )


class SqlQuestion(Statement):
    as_of: Moment | None = Field(
        default=None,
        description="what was known then: a day (its end on the exchange) or a moment with zone; default: now",
    )


Args = Mapping[str, Any]


class ToolRules(Protocol):
    """The rules, as a tool meets them."""

    async def allow(
        self, tool: str, args: Args, context: Args, *, requester: str, workspace: str
    ) -> tuple[Args, Message | None]:
        """The arguments that may be used, on the record already, and what was changed for which reason.

        Raises `Forbidden` for no, and `Conflict` with an `escalation_id` where a person has to decide.
        """


@dataclass
class SqlDoor:
    tool: DatabaseTool
    rules: ToolRules
    clock: Clock

    async def query(
        self, question: SqlQuestion | Mapping[str, Any], *, requester: str, workspace: str, locale: Locale
    ) -> QueryResult:
        """Raises `InvalidInput` for what cannot be run, and what `ToolRules` raises."""
        asked = validate(SqlQuestion, question)
        now = self.clock.now().astimezone(zone := TIME_ZONES[self.tool.market])
        as_of = freeze(asked.as_of, now, now.date(), lambda day: datetime.combine(day, time_of_day.max, zone))
        context = {"locale": locale, "as_of": as_of.isoformat(), "open_breakers": []}
        args, notice = await self.rules.allow(
            DATABASE, {"sql": asked.sql}, context, requester=requester, workspace=workspace
        )
        statement = validate(Statement, args)
        result = await self.tool.query(statement.sql, as_of=as_of, workspace=workspace)
        if notice is None:
            return result
        return result.model_copy(update={"notices": (notice.in_locale(locale),)})

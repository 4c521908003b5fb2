"""Reads the call logs back: the calls of a session, and what all of them used."""

from collections.abc import Sequence, Set
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from pydantic import BaseModel
from sqlalchemy import ColumnElement, Float, Select, SQLColumnExpression, and_, case, cast, func, select
from sqlalchemy.orm import InstrumentedAttribute

from moot.modules.llm_platform.domain.call_record import CallLogItem, ExternalCallItem
from moot.modules.llm_platform.domain.usage import By, Typical, UsageLine
from moot.modules.llm_platform.infrastructure.tables import LLMCallLog
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.tables import ExternalAPICallLog
from moot.shared.infrastructure.transactions import transaction

M = TypeVar("M", bound=BaseModel)
Call = LLMCallLog
Column = SQLColumnExpression[Any]
Rows = Select[*tuple[Any, ...]]

TEXTS = {"prompt_text", "system_message", "completion_text", "reasoning_text"}
RESPONSE = {"response_data"}
ORDER = (Call.created_at, Call.ordinal, Call.attempt, Call.id)
EXTERNAL_ORDER = (ExternalAPICallLog.created_at, ExternalAPICallLog.attempt, ExternalAPICallLog.id)

AGENT = func.coalesce(Call.caller_agent, Call.caller_module)
SUCCEEDED = Call.status == "success"
TOKENS = func.coalesce(
    Call.total_tokens, func.coalesce(Call.prompt_tokens, 0) + func.coalesce(Call.completion_tokens, 0)
)
MEASURES: dict[str, InstrumentedAttribute[int | None]] = {
    "prompt_tokens": Call.prompt_tokens,
    "completion_tokens": Call.completion_tokens,
    "latency_ms": Call.latency_ms,
}
UTC_DAY: dict[str, ColumnElement[str]] = {
    "sqlite": func.strftime("%Y-%m-%d", Call.created_at),
    "postgresql": func.to_char(func.timezone("UTC", Call.created_at), "YYYY-MM-DD"),
}


class SqlCallLogReader:
    """A `CallLogReader` and a `UsageReader`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def model_calls(self, session_id: UUID, *, include_text: bool) -> list[CallLogItem]:
        wanted = _columns(LLMCallLog, CallLogItem, set() if include_text else TEXTS)
        return await self._read(
            CallLogItem, select(*wanted).where(Call.session_id == session_id).order_by(*ORDER)
        )

    async def external_calls(self, session_id: UUID, *, include_text: bool) -> list[ExternalCallItem]:
        wanted = _columns(ExternalAPICallLog, ExternalCallItem, set() if include_text else RESPONSE)
        of_session = select(*wanted).where(ExternalAPICallLog.session_id == session_id)
        return await self._read(ExternalCallItem, of_session.order_by(*EXTERNAL_ORDER))

    async def asked_before(self, session_id: UUID, digests: Sequence[str]) -> list[ExternalCallItem]:
        """The session's calls that asked one of these and came to an end, oldest first; the record's own are none."""
        call = ExternalAPICallLog
        asked = select(*_columns(call, ExternalCallItem, set())).where(
            call.session_id == session_id,
            call.request_digest.in_(digests),
            call.status.in_(("success", "failed")),
            call.origin != "record",
        )
        return await self._read(ExternalCallItem, asked.order_by(*EXTERNAL_ORDER))

    async def usage(self, by: By, workspace: str, since: datetime | None) -> list[UsageLine]:
        async with transaction(self._database.session) as db:
            names = {"model": Call.model_name, "agent": AGENT, "day": UTC_DAY[db.get_bind().dialect.name]}
            rows = await db.execute(_live(_usage_by(names[by]), workspace, since))
            return [UsageLine.model_validate(dict(row)) for row in rows.mappings()]

    async def typical(self, model_name: str, workspace: str, since: datetime) -> dict[str, Typical]:
        measured = [column.is_not(None) for column in MEASURES.values()]
        of_model = _typical_by(AGENT).where(Call.model_name == model_name, SUCCEEDED, *measured)
        async with transaction(self._database.session) as db:
            rows = await db.execute(_live(of_model, workspace, since))
            return {row["name"]: Typical.model_validate(dict(row)) for row in rows.mappings()}

    async def _read(self, model: type[M], statement: Rows) -> list[M]:
        async with transaction(self._database.session) as db:
            rows = (await db.execute(statement)).mappings()
            return [model.model_validate(dict(row)) for row in rows]


def _columns(
    table: type[LLMCallLog | ExternalAPICallLog], item: type[BaseModel], left_out: Set[str]
) -> list[InstrumentedAttribute[Any]]:
    return [getattr(table, name) for name in item.model_fields if name not in left_out]


def _usage_by(name: Column) -> Rows:
    return select(
        name.label("name"),
        func.count().label("calls"),
        _count(Call.status == "failed").label("failed"),
        _sum(Call.prompt_tokens).label("prompt_tokens"),
        _sum(Call.completion_tokens).label("completion_tokens"),
        _sum(TOKENS).label("total_tokens"),
        _sum(Call.cost).label("cost"),
        _count(and_(Call.cost.is_(None), Call.status != "failed")).label("cost_unknown"),
        _mean(case((SUCCEEDED, Call.latency_ms))).label("mean_latency_ms"),
    ).group_by("name")


def _typical_by(name: Column) -> Rows:
    means = [_mean(column).label(measure) for measure, column in MEASURES.items()]
    return select(name.label("name"), func.count().label("calls"), *means).group_by("name")


def _live(statement: Rows, workspace: str, since: datetime | None) -> Rows:
    live = statement.where(Call.workspace_id == workspace, Call.origin == "live")
    return live if since is None else live.where(Call.created_at >= since)


def _sum(column: Column) -> ColumnElement[Any]:
    return func.coalesce(func.sum(column), 0)


def _count(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.count(case((condition, 1)))


def _mean(column: Column) -> ColumnElement[float]:
    return cast(func.avg(column), Float)

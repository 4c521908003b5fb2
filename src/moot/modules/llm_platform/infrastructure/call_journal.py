"""Model calls in `llm_call_logs`: the intent committed before, the outcome after; read back singly or added up."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from pydantic import BaseModel
from sqlalchemy import ColumnElement, Float, and_, case, cast, func, select

from moot.modules.llm_platform.application.call_logs import By, UsageLine
from moot.modules.llm_platform.domain.call_record import CallJournal, CallLogItem, ExternalCallItem
from moot.modules.llm_platform.infrastructure.tables import LLMCallLog
from moot.shared.domain.brief import Usage
from moot.shared.infrastructure.audit_trail import Kind
from moot.shared.infrastructure.call_audit import (
    EXTERNAL_ANSWER,
    EXTERNAL_CALL,
    INTENT,
    OUTCOME,
    Bodies,
    CallAudit,
)
from moot.shared.infrastructure.database import Database, patient
from moot.shared.infrastructure.tables import ExternalAPICallLog
from moot.shared.infrastructure.transactions import transaction

ASKED = (
    "caller_module",
    "caller_agent",
    "model_name",
    "vendor",
    "alias",
    "prompt_text",
    "system_message",
    "temperature",
    "ordinal",
)
ANSWERED = (
    "completion_text",
    "reasoning_text",
    "tool_calls",
    "finish_reason",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "cost",
)
MODEL_CALL = Kind("model_call", LLMCallLog, (*INTENT, *ASKED))
MODEL_ANSWER = Kind("model_answer", LLMCallLog, (*OUTCOME, *ANSWERED))
MODEL_BODIES = Bodies.of(
    "pruned_model_call",
    (MODEL_CALL, MODEL_ANSWER),
    prompt_text="",
    system_message=None,
    completion_text=None,
    reasoning_text=None,
    tool_calls=None,
)
MODEL_KINDS = (MODEL_CALL, MODEL_ANSWER, MODEL_BODIES.kind)

M = TypeVar("M", bound=BaseModel)
Call = LLMCallLog

TEXTS = {"prompt_text", "system_message", "completion_text", "reasoning_text", "response_data"}
ORDER = ("created_at", "ordinal", "attempt", "id")

AGENT = func.coalesce(Call.caller_agent, Call.caller_module)
SUCCEEDED, LIVE = Call.status == "success", Call.origin == "live"
TOKENS = func.coalesce(
    Call.total_tokens, func.coalesce(Call.prompt_tokens, 0) + func.coalesce(Call.completion_tokens, 0)
)
UTC_DAY: dict[str, ColumnElement[str]] = {
    "sqlite": func.strftime("%Y-%m-%d", Call.created_at),
    "postgresql": func.to_char(func.timezone("UTC", Call.created_at), "YYYY-MM-DD"),
}


USAGE: Mapping[str, ColumnElement[Any]] = {
    "calls": func.count(),
    "failed": func.count(case((Call.status == "failed", 1))),
    "prompt_tokens": func.coalesce(func.sum(Call.prompt_tokens), 0),
    "completion_tokens": func.coalesce(func.sum(Call.completion_tokens), 0),
    "total_tokens": func.coalesce(func.sum(TOKENS), 0),
    "cost": func.coalesce(func.sum(Call.cost), 0),
    "cost_unknown": func.count(case((and_(Call.cost.is_(None), Call.status != "failed"), 1))),
    "mean_latency_ms": cast(func.avg(case((SUCCEEDED, Call.latency_ms))), Float),
}


class SqlCallLogs(Generic[M]):
    """The calls of one table, read as `item`."""

    def __init__(
        self, database: Database, table: type[LLMCallLog | ExternalAPICallLog], item: type[M]
    ) -> None:
        self._database, self._table, self._item = database, table, item

    async def get_by_session_id(self, session_id: UUID, *, include_text: bool = True) -> list[M]:
        return await self.find(self._table.session_id == session_id, include_text=include_text)

    @patient
    async def find(self, *where: ColumnElement[bool], include_text: bool = True) -> list[M]:
        names = [name for name in self._item.model_fields if include_text or name not in TEXTS]
        order = [getattr(self._table, name) for name in ORDER if name in self._item.model_fields]
        wanted = select(*(getattr(self._table, name) for name in names)).where(*where).order_by(*order)
        async with transaction(self._database.session) as db:
            return [self._item.model_validate(dict(row)) for row in (await db.execute(wanted)).mappings()]


class SqlModelCalls(SqlCallLogs[CallLogItem]):
    async def add_up(self, session_ids: Sequence[UUID]) -> dict[UUID, Usage]:
        unpriced = func.count(case((and_(Call.cost.is_(None), SUCCEEDED), 1)))
        cost = case((unpriced == 0, USAGE["cost"]))  # null where nobody knows all of it
        sums = {"requests": USAGE["calls"], "tokens": USAGE["total_tokens"], "cost": cost}
        of_each = select(Call.session_id, *(column.label(name) for name, column in sums.items()))
        mine = of_each.where(Call.session_id.in_(session_ids), LIVE).group_by(Call.session_id)
        async with transaction(self._database.session) as db:
            found = await db.execute(mine)
            return {row.session_id: Usage.model_validate(row, from_attributes=True) for row in found}


class SqlCallJournal(CallJournal):
    def __init__(self, audit: CallAudit) -> None:
        self._audit, self._database = audit, audit.trail.database
        self.model_calls = SqlModelCalls(self._database, LLMCallLog, CallLogItem)
        self.external_calls = SqlCallLogs(self._database, ExternalAPICallLog, ExternalCallItem)
        audit.trail.vouches_for(*MODEL_KINDS)

    async def begin(self, intent: Mapping[str, Any]) -> UUID | None:
        return await self._audit.begin(MODEL_CALL, intent)

    async def end(self, call_id: UUID | None, outcome: Mapping[str, Any]) -> None:
        await self._audit.end(MODEL_ANSWER, call_id, outcome)

    async def close_abandoned(self, **which: Any) -> None:
        """Those to models and all others."""
        await self._audit.close_abandoned(MODEL_CALL, MODEL_ANSWER, **which)
        await self._audit.close_abandoned(EXTERNAL_CALL, EXTERNAL_ANSWER, **which)

    async def find_answered(self, session_id: str, agent: str | None, ordinal: int) -> list[CallLogItem]:
        place = (Call.session_id == UUID(session_id), Call.caller_agent == agent, Call.ordinal == ordinal)
        return await self.model_calls.find(*place, SUCCEEDED, LIVE)

    async def usage(
        self, by: By, workspace: str, since: datetime | None, model_name: str | None = None
    ) -> list[UsageLine]:
        wanted = [Call.workspace_id == workspace, LIVE]
        wanted += [Call.created_at >= since] if since else []
        wanted += [Call.model_name == model_name] if model_name else []
        async with transaction(self._database.session) as db:
            names = {"model": Call.model_name, "agent": AGENT, "day": UTC_DAY[db.get_bind().dialect.name]}
            sums = [column.label(name) for name, column in USAGE.items()]
            of_each = select(names[by].label("name"), *sums).group_by("name")
            rows = await db.execute(of_each.where(*wanted))
            return [UsageLine.model_validate(dict(row)) for row in rows.mappings()]

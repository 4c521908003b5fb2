"""Calls on record, for tests that read them back."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection
from sqlalchemy.orm import Session

from moot.modules.llm_platform.infrastructure.call_journal import SqlCallJournal
from moot.modules.llm_platform.infrastructure.tables import LLMCallLog
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.call_audit import CallAudit
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.tables import Base, ExternalAPICallLog
from tests.fakes.clock import FixedClock

NOON = datetime(2026, 6, 30, 12, 0, tzinfo=UTC)


def journal_of(database: Database) -> SqlCallJournal:
    return SqlCallJournal(CallAudit(AuditTrail(database), FixedClock(NOON)))


def a_model_call(**changes: Any) -> LLMCallLog:
    facts: dict[str, Any] = {
        "id": uuid4(),
        "session_id": None,
        "workspace_id": "default",
        "caller_module": "research",
        "caller_agent": "technical_analyst",
        "model_name": "small-1",
        "vendor": "somebody",
        "alias": "small",
        "prompt_text": "What do you see?",
        "system_message": "You read charts.",
        "completion_text": "A rising line.",
        "reasoning_text": "The line goes up.",
        "prompt_tokens": 1000,
        "completion_tokens": 200,
        "total_tokens": 1200,
        "temperature": 0.3,
        "finish_reason": "stop",
        "cost": 0.5,
        "ordinal": 0,
        "attempt": 1,
        "origin": "live",
        "latency_ms": 2000,
        "status": "success",
        "created_at": NOON,
    }
    return LLMCallLog(**(facts | changes))


def a_failed_call(**changes: Any) -> LLMCallLog:
    nothing = dict.fromkeys(["completion_text", "prompt_tokens", "completion_tokens", "total_tokens", "cost"])
    failed = {**nothing, "status": "failed", "error_message": "429", "latency_ms": 90_000}
    return a_model_call(**(failed | changes))


def an_external_call(**changes: Any) -> ExternalAPICallLog:
    facts: dict[str, Any] = {
        "id": uuid4(),
        "session_id": None,
        "workspace_id": "default",
        "service_name": "search",
        "operation": "web_search",
        "request_params": {"query": "白酒 行业", "count": 6},
        "response_data": '{"results": []}',
        "status_code": 200,
        "latency_ms": 300,
        "status": "success",
        "attempt": 1,
        "origin": "live",
        "created_at": NOON,
    }
    return ExternalAPICallLog(**(facts | changes))


async def keep(database: Database, *rows: Base) -> None:
    def insert(db: Connection) -> None:
        with Session(db) as session:
            session.add_all(rows)
            session.flush()

    await database.write(insert)

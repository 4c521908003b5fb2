"""The calls of a session come back as they were made, with their texts or without."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import event, select
from sqlalchemy.engine import Engine

from moot.modules.coordinator.infrastructure.tables import NodeExecutionRow, ResearchSessionRow
from moot.modules.llm_platform.application.call_logs import (
    ExternalAPICallLogQueryService,
    LLMCallLogQueryService,
)
from moot.modules.llm_platform.infrastructure.tables import LLMCallLog
from moot.shared.domain.brief import Usage
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.tables import ExternalAPICallLog
from tests.llm_platform.call_rows import NOON, a_failed_call, a_model_call, an_external_call, journal_of, keep

A_SECOND = timedelta(seconds=1)
S1, S2 = uuid4(), uuid4()


@pytest.fixture
def model_calls(database: Database) -> LLMCallLogQueryService:
    return journal_of(database).model_calls


@pytest.fixture
def external_calls(database: Database) -> ExternalAPICallLogQueryService:
    return journal_of(database).external_calls


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """Every SQL statement sent while the test runs."""
    sent: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        sent.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    yield sent
    event.remove(Engine, "before_cursor_execute", note)


class TestModelCalls:
    async def test_come_back_with_every_field(
        self, database: Database, model_calls: LLMCallLogQueryService
    ) -> None:
        wanted = a_model_call(
            session_id=S1,
            tool_calls=[{"id": "c1", "name": "search", "arguments": '{"q": "白酒"}'}],
            request_digest="d" * 64,
            ordinal=2,
            attempt=3,
        )
        expected = {column.key: getattr(wanted, column.key) for column in LLMCallLog.__table__.columns}
        del expected["workspace_id"]
        await keep(database, wanted)

        (item,) = await model_calls.get_by_session_id(S1)
        assert item.model_dump() == expected

    async def test_are_listed_in_the_order_in_which_they_were_made(
        self, database: Database, model_calls: LLMCallLogQueryService
    ) -> None:
        await keep(
            database,
            a_model_call(id=UUID(int=1), session_id=S1, prompt_text="fourth", created_at=NOON + A_SECOND),
            a_model_call(id=UUID(int=2), session_id=S1, prompt_text="third", ordinal=1),
            a_model_call(id=UUID(int=3), session_id=S1, prompt_text="second", attempt=2),
            a_failed_call(id=UUID(int=4), session_id=S1, prompt_text="first"),
        )
        found = await model_calls.get_by_session_id(S1)

        assert [item.prompt_text for item in found] == ["first", "second", "third", "fourth"]

    async def test_of_another_session_stay_there(
        self, database: Database, model_calls: LLMCallLogQueryService
    ) -> None:
        await keep(database, a_model_call(session_id=S1), a_model_call(session_id=None))

        assert await model_calls.get_by_session_id(S2) == []

    async def test_without_texts_do_not_read_them(
        self, database: Database, model_calls: LLMCallLogQueryService, statements: list[str]
    ) -> None:
        await keep(database, a_model_call(session_id=S1))
        statements.clear()
        (item,) = await model_calls.get_by_session_id(S1, include_text=False)

        assert (item.prompt_text, item.system_message) == (None, None)
        assert (item.completion_text, item.reasoning_text) == (None, None)
        assert (item.model_name, item.total_tokens, item.cost) == ("small-1", 1200, 0.5)
        (read,) = [statement for statement in statements if "llm_call_logs" in statement]
        assert not any(column in read for column in ("_text", "system_message"))

    async def test_that_are_still_open_have_no_outcome(
        self, database: Database, model_calls: LLMCallLogQueryService
    ) -> None:
        open_call = a_failed_call(session_id=S1, status="started", latency_ms=None, error_message=None)
        await keep(database, open_call)

        (item,) = await model_calls.get_by_session_id(S1)
        assert (item.status, item.latency_ms, item.completion_text) == ("started", None, None)

    async def test_add_up_by_session_and_to_no_cost_where_one_has_no_price(
        self, database: Database, model_calls: LLMCallLogQueryService
    ) -> None:
        again = a_model_call(session_id=S1, origin="record")
        await keep(database, a_model_call(session_id=S1), a_failed_call(session_id=S1), again)
        await keep(database, a_model_call(session_id=S2), a_model_call(session_id=S2, cost=None))

        assert await model_calls.add_up([S1, S2, uuid4()]) == {
            S1: Usage(requests=2, tokens=1200, cost=0.5),
            S2: Usage(requests=2, tokens=2400, cost=None),
        }


class TestExternalCalls:
    async def test_come_back_with_every_field(
        self, database: Database, external_calls: ExternalAPICallLogQueryService
    ) -> None:
        wanted = an_external_call(session_id=S1, cost=0.01, request_digest="e" * 64, attempt=2)
        expected = {
            column.key: getattr(wanted, column.key) for column in ExternalAPICallLog.__table__.columns
        }
        del expected["workspace_id"]
        await keep(database, wanted)

        (item,) = await external_calls.get_by_session_id(S1)
        assert item.model_dump() == expected

    async def test_are_listed_in_the_order_in_which_they_were_made(
        self, database: Database, external_calls: ExternalAPICallLogQueryService
    ) -> None:
        await keep(
            database,
            an_external_call(id=UUID(int=1), session_id=S1, operation="third", created_at=NOON + A_SECOND),
            an_external_call(id=UUID(int=2), session_id=S1, operation="second", attempt=2),
            an_external_call(id=UUID(int=3), session_id=S1, operation="first"),
            an_external_call(session_id=S2, operation="elsewhere"),
        )
        found = await external_calls.get_by_session_id(S1)

        assert [item.operation for item in found] == ["first", "second", "third"]
        assert await external_calls.get_by_session_id(uuid4()) == []

    async def test_without_texts_do_not_read_them(
        self, database: Database, external_calls: ExternalAPICallLogQueryService, statements: list[str]
    ) -> None:
        await keep(database, an_external_call(session_id=S1))
        statements.clear()
        (item,) = await external_calls.get_by_session_id(S1, include_text=False)

        assert (item.response_data, item.request_params["count"]) == (None, 6)
        (read,) = [statement for statement in statements if "external_api_call_logs" in statement]
        assert "response_data" not in read


@pytest.mark.accepts("A2-42")
async def test_sessions_nodes_and_calls_are_joined_by_the_session_id(database: Database) -> None:
    for session_id, symbol in ((S1, "900001.DEMO"), (S2, "900002.DEMO")):
        research = ResearchSessionRow(
            id=session_id,
            symbol=symbol,
            status="completed",
            selected_experts=["technical_analyst"],
            options={},
            trigger_source="api",
            as_of=NOON,
            locale="en-US",
            created_at=NOON,
        )
        node = NodeExecutionRow(
            id=uuid4(),
            session_id=session_id,
            node_type="technical_analyst",
            status="success",
            evidence=[],
            started_at=NOON,
        )
        await keep(database, research)
        await keep(database, node)
        await keep(database, a_model_call(session_id=session_id, prompt_text=f"What of {symbol}?"))
        await keep(database, an_external_call(session_id=session_id, operation=f"bars of {symbol}"))

    joined = (
        select(
            ResearchSessionRow.symbol,
            NodeExecutionRow.node_type,
            LLMCallLog.prompt_text,
            ExternalAPICallLog.operation,
        )
        .join(NodeExecutionRow, NodeExecutionRow.session_id == ResearchSessionRow.id)
        .join(LLMCallLog, LLMCallLog.session_id == ResearchSessionRow.id)
        .join(ExternalAPICallLog, ExternalAPICallLog.session_id == ResearchSessionRow.id)
        .where(ResearchSessionRow.id == S1)
    )
    async with database.session() as db:
        found = [tuple(row) for row in await db.execute(joined)]

    assert found == [("900001.DEMO", "technical_analyst", "What of 900001.DEMO?", "bars of 900001.DEMO")]

"""A session that has ended takes up little room, and reads as it did: its nodes, its calls, its lists, its record."""

import lzma
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select, text

from moot.desk import Moot
from moot.modules.coordinator.domain.model.session import NodeExecution, ResearchSession, SessionFilter
from moot.modules.coordinator.infrastructure.records import SessionPruning
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.kept_texts import FILTERS
from moot.shared.infrastructure.settings import Settings
from moot.shared.infrastructure.tables import TextRow
from tests.coordinator.recorded import Recorder, trail_of
from tests.coordinator.test_session_repository import NOON, a_node, a_session
from tests.fakes.careful_model import careful
from tests.fakes.clock import FixedClock
from tests.fakes.llm_server import LLMServer

SAID = "近四季经营现金流与净利润之比为 0.91，利润有现金支撑。"
CLAIMS = [{"id": f"financial.{n}", "says": {"zh-CN": SAID * 10}, "strength": n / 7} for n in range(100)]
PREVIOUS = {
    "session_id": "7af389fe-f8f1-4ed5-905e-051f46aa2eb8",
    "as_of": NOON,
    "action": "HOLD",
    "confidence": 0.6,
    "claims": {
        f"financial.{n}": {
            "pull": n / 7,
            "says": {"zh-CN": SAID},
            "kind": "financial.cash.good",
            "as_of": NOON,
        }
        for n in range(50)
    },
}
RESULTS: dict[str, Any] = {
    "plain": {"claims": CLAIMS, "signal": "BULLISH", "confidence": 0.1 + 0.2},
    "the key of a place": {"": "AAAAAAAAAAAAAAAA:0:10", "claims": CLAIMS},
    "an object under it": {"": {"": {"claims": CLAIMS}}},
    "signs and numbers": {"\x1a": ["\x1a", 2**60, 1e-300, True, None, {}], "claims": CLAIMS},
    "short": {"": "x"},
    "empty": {},
}


@pytest.fixture
async def desk(llm_server: LLMServer, home, clock, database: Database) -> AsyncIterator[Moot]:
    llm_server.default = careful
    given = {"llm_base_url": llm_server.url, "llm_model": "careful-1", "log_level": "error"}
    async with Moot(Settings(home=home, database_url=database.safe_url, **given), clock=clock) as desk:
        yield desk


async def end(recorder: Recorder, *nodes: NodeExecution, **changes: Any) -> ResearchSession:
    session = a_session(id=nodes[0].session_id, workspace_id="default", **changes)
    await recorder.sessions.save_session(session)
    for node in nodes:
        await recorder.sessions.save_node_execution(node)
    ended = session.model_copy(update={"status": "completed", "completed_at": NOON, "duration_ms": 5})
    await recorder.sessions.update_session(ended)
    return ended


async def bare(desk: Moot, column: str, table: str) -> list[str]:
    assert desk.database is not None
    async with desk.database.session() as db:
        found = await db.execute(
            text(f"SELECT CAST({column} AS TEXT) FROM {table} WHERE {column} IS NOT NULL")
        )
        return [row[0] for row in found]


@pytest.mark.parametrize("name", RESULTS)
async def test_nodes_read_as_they_were_written(desk, name):
    trail = trail_of(desk)
    heavy = a_node(UUID(int=7), result_data={"claims": CLAIMS}, narrative_report=SAID, evidence=CLAIMS)
    node = a_node(UUID(int=7), node_type="judge", result_data=RESULTS[name], evidence=[])
    session = await end(Recorder(trail), heavy, node)
    await trail.finish()
    cells = await bare(desk, "result_data", "node_executions")
    assert max(len(cell) for cell in cells) < 60
    found = await desk.session(session.id)
    assert {one.id: one.result_data for one in found.nodes} == {
        node.id: RESULTS[name],
        heavy.id: {"claims": CLAIMS},
    }
    assert (await desk.verify(session.id)).intact


async def test_closing_the_database_waits_for_what_is_being_packed(desk, database):
    node = a_node(UUID(int=7), result_data={"claims": CLAIMS})
    theirs = Database(database.safe_url)
    await end(Recorder(AuditTrail(theirs)), node)
    await theirs.close()
    (cell,) = await bare(desk, "result_data", "node_executions")
    assert len(cell) < 60


async def test_a_list_looks_nothing_up_and_shows_what_was_asked(desk):
    trail = trail_of(desk)
    recorder = Recorder(trail)
    node = a_node(UUID(int=7), result_data={"claims": CLAIMS})
    session = await end(recorder, node, previous=PREVIOUS, max_cost=1.5, horizon=60)
    await trail.finish()
    (question,) = await bare(desk, "question", "research_sessions")
    assert len(question) < 200
    (listed,) = (await recorder.sessions.list_sessions(SessionFilter(workspace_id="default"))).items
    assert listed == session.model_copy(update={"previous": None})
    assert await recorder.sessions.get_session_by_id(session.id, "default") == session


async def test_nine_calls_take_little_room_and_none_of_it_is_lost(desk, llm_server):
    """Until their texts are pruned."""
    trail = trail_of(desk)
    session_id = UUID((await desk.research("900001.DEMO", locale="zh-CN")).session_id)
    await trail.finish()
    cells = await bare(desk, "prompt_text", "llm_call_logs")
    assert len(cells) == 9 and max(len(cell) for cell in cells) < 50
    calls = await desk.coordinator.session_history().calls(session_id, "default", "models")
    assert {call["prompt_text"] for call in calls} == {seen.prompt for seen in llm_server.requests}
    assert (await desk.verify(session_id)).intact

    (prompt,) = [call["prompt_text"].encode() for call in calls if call["caller_agent"] == "verdict"]
    assert any(prompt in text for text in await packed(desk))
    nodes = (await desk.session(session_id)).nodes
    later = FixedClock(NOON + timedelta(days=9999))
    pruned = await SessionPruning(trail, later).prune(later.now().date(), "default")
    assert (pruned.calls, pruned.broken) == (9, [])
    assert not any(prompt in text for text in await packed(desk))
    assert (await desk.session(session_id)).nodes == nodes
    assert (await desk.verify(session_id)).intact


async def test_what_models_are_told_each_time_is_kept_once(desk):
    for locale in ("zh-CN", "zh-CN", "en-US"):
        await desk.research("900001.DEMO", ["technical_analyst", "financial_auditor"], locale=locale)
    await trail_of(desk).finish()
    instructions = await bare(desk, "system_message", "llm_call_logs")
    assert (len(instructions), len(set(instructions))) == (18, 12)


async def packed(desk: Moot) -> list[bytes]:
    assert desk.database is not None
    async with desk.database.session() as db:
        found = await db.scalars(select(TextRow.data))
        return [lzma.decompress(data, lzma.FORMAT_RAW, filters=FILTERS) for data in found]

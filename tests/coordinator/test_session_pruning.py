"""Pruning: old texts go, everything else stays, and the record can still tell pruning from tampering."""

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from moot.desk import Moot
from moot.modules.coordinator.application.session_history import Pruned
from moot.modules.coordinator.application.session_pack import check_pack
from moot.modules.coordinator.infrastructure import records
from moot.modules.coordinator.infrastructure.records import examine_record
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.infrastructure.audit_verification import verify
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.settings import Settings
from tests.coordinator.recorded import PROMPT, RESPONSE, Recorder, trail_of

TODAY = date(2026, 6, 30)
LAST_YEAR = datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC)
NEW_YEAR = date(2026, 1, 1)


@pytest.fixture
async def desk(home, clock, database: Database) -> AsyncIterator[Moot]:
    async with Moot(Settings(home=home, database_url=database.safe_url), clock=clock) as desk:
        yield desk


@pytest.fixture
def recorder(desk: Moot) -> Recorder:
    return Recorder(trail_of(desk), LAST_YEAR)


async def run(desk: Moot, statement: str, **values: Any) -> Any:
    assert desk.database is not None
    async with desk.database.session() as db, db.begin():
        found = await db.execute(text(statement), values)
        return [tuple(row) for row in found] if found.returns_rows else None


async def texts(desk: Moot) -> list[tuple[Any, ...]]:
    columns = "prompt_text, system_message, completion_text, reasoning_text, tool_calls"
    return await run(desk, f"SELECT {columns} FROM llm_call_logs ORDER BY ordinal")


async def prune(desk: Moot, before: date = NEW_YEAR, workspace: str = "default") -> Pruned:
    return await desk.coordinator.session_pruning().prune(before, workspace)


async def test_texts_go_and_everything_else_stays(desk, recorder):
    session = await recorder.session(ended=LAST_YEAR)
    history = desk.coordinator.session_history()
    before = await history.result(session.id, "default")
    calls = await history.calls(session.id, "default", "models", include_text=False)

    planned = await desk.coordinator.session_pruning().plan(NEW_YEAR, "default")
    assert planned == Pruned(sessions=1, calls=3)
    gone = await prune(desk)
    assert (gone.sessions, gone.calls) == (1, 3)
    assert gone.size > len((PROMPT * 2 + RESPONSE).encode())

    assert await texts(desk) == [("", None, None, None, None)] * 2
    assert await run(desk, "SELECT response_data, operation FROM external_api_call_logs") == [(None, "daily")]
    assert await history.result(session.id, "default") == before
    kept = await history.calls(session.id, "default", "models", include_text=False)
    assert [call | {"tool_calls": None} for call in calls] == kept
    found = await desk.verify(session.id)
    assert (found.intact, found.links, found.pruned) == (True, 17, 3)
    assert found.explanation == (
        "The record is intact: all 17 entries hold up to its head. The texts of 3 calls were pruned."
    )


async def test_a_pruned_session_can_be_handed_on(desk, recorder):
    session = await recorder.session(ended=LAST_YEAR)
    await prune(desk)
    packed = await desk.coordinator.session_packs().pack(session.id, "default", "en-US")
    found = check_pack(packed.data, examine_record, "en-US")
    assert (found.intact, found.compared, found.pruned) == (True, True, 3)


EMPTIED = "UPDATE llm_call_logs SET prompt_text = '' WHERE ordinal = 1"
UNANSWERED = "UPDATE external_api_call_logs SET response_data = NULL"


@pytest.mark.parametrize(("statement", "kind"), [(EMPTIED, "model_call"), (UNANSWERED, "external_answer")])
async def test_who_merely_empties_a_text_is_found(desk, recorder, statement, kind):
    session = await recorder.session(ended=LAST_YEAR)
    await run(desk, statement)
    found = await desk.verify(session.id)
    assert found.first_break is not None
    assert (found.intact, found.first_break.problem, found.first_break.kind) == (False, "changed", kind)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE llm_call_logs SET prompt_text = 'another question' WHERE ordinal = 1",
        "UPDATE llm_call_logs SET completion_text = 'another answer' WHERE ordinal = 2",
        "UPDATE llm_call_logs SET cost = 0 WHERE ordinal = 1",
        "UPDATE external_api_call_logs SET response_data = 'another response'",
        "DELETE FROM external_api_call_logs",
    ],
)
async def test_a_change_after_pruning_is_found(desk, recorder, statement):
    session = await recorder.session(ended=LAST_YEAR)
    await prune(desk)
    await run(desk, statement)
    found = await desk.verify(session.id)
    assert found.first_break is not None
    assert found.first_break.kind.startswith("pruned_")


async def test_pruning_seals_no_record_that_was_tampered_with(desk, recorder):
    touched = await recorder.session(ended=LAST_YEAR)
    await run(desk, EMPTIED)
    whole = await recorder.session(ended=LAST_YEAR)
    pruned = await desk.coordinator.session_pruning().prune(NEW_YEAR, "default")
    assert (pruned.broken, pruned.sessions, pruned.calls) == ([touched.id], 1, 3)
    assert not (await desk.verify(touched.id)).intact
    assert (await desk.verify(whole.id)).intact
    left = await run(desk, "SELECT session_id FROM external_api_call_logs WHERE response_data IS NOT NULL")
    assert [UUID(str(owner)) for (owner,) in left] == [touched.id]


async def test_only_what_ended_before_that_day_goes(desk, recorder):
    await recorder.session(ended=LAST_YEAR + timedelta(seconds=1))
    await recorder.session(ended=LAST_YEAR, workspace="another")
    await recorder.session(ended=None)
    assert await prune(desk) == Pruned()
    assert (await prune(desk, workspace="another")).sessions == 1
    assert (await prune(desk, NEW_YEAR + timedelta(days=1))).sessions == 1
    assert (await prune(desk, TODAY)).sessions == 0, "the one that runs keeps its texts"


async def test_calls_of_no_session_go_by_their_own_day(desk, recorder):
    await recorder.calls(None)
    await Recorder(trail_of(desk), LAST_YEAR + timedelta(seconds=1)).calls(None)
    gone = await prune(desk)
    assert (gone.sessions, gone.calls) == (0, 3)
    assert [prompt for prompt, *_ in await texts(desk)].count(PROMPT) == 2


async def test_calls_of_a_session_that_was_never_stored_go_too(desk, recorder):
    lost = UUID(int=7)
    await recorder.calls(lost)
    gone = await prune(desk)
    assert (gone.sessions, gone.calls) == (1, 3)
    assert (await verify(trail_of(desk), lost)).intact


async def test_a_call_that_may_be_under_way_keeps_its_prompt(desk, recorder):
    await Recorder(trail_of(desk), LAST_YEAR).begun()
    assert await prune(desk) == Pruned()
    assert (await texts(desk))[0][0] == PROMPT


async def test_there_is_nothing_left_to_do_the_second_time(desk, recorder):
    session = await recorder.session(ended=LAST_YEAR)
    await prune(desk)
    links = (await desk.verify(session.id)).links
    assert await prune(desk) == Pruned()
    assert await desk.coordinator.session_pruning().plan(NEW_YEAR, "default") == Pruned()
    assert (await desk.verify(session.id)).links == links


async def test_many_calls_go_in_batches_that_can_be_watched(desk, recorder, monkeypatch):
    monkeypatch.setattr(records, "BATCH", 2)
    session = await recorder.session(ended=LAST_YEAR)
    for _ in range(4):
        await recorder.calls(session.id)
        await recorder.calls(None)
    seen: list[int] = []
    pruned = await desk.coordinator.session_pruning().prune(NEW_YEAR, "default", seen.append)
    assert pruned.calls == 15 + 12
    assert seen[-1] == 27
    assert {after - before for before, after in pairwise([0, *seen])} == {1, 2}, "so many at a time"
    assert (await desk.verify(session.id)).pruned == 15


async def test_a_day_to_come_is_refused(desk):
    with pytest.raises(InvalidInput, match="in the future"):
        await prune(desk, TODAY + timedelta(days=1))


async def test_a_desk_without_a_record_has_nothing_to_prune(home):
    async with Moot(Settings(home=home, persistence=False)) as desk:
        with pytest.raises(Unavailable, match="MOOT_PERSISTENCE"):
            await desk.coordinator.session_pruning().plan(NEW_YEAR, "default")

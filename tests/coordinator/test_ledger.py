"""The ledger of a workspace names a session that was removed, cut off or rewritten; keys; rows beyond reading."""

import asyncio
from collections.abc import AsyncIterator
from datetime import date
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from moot.desk import Moot
from moot.shared.domain.audit import Problem, Seal, Verification, WorkspaceVerification
from moot.shared.domain.errors import Conflict, NotFound
from moot.shared.infrastructure.audit_trail import AuditTrail, ledger_of, link_hash
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.settings import Settings
from tests.coordinator.recorded import Recorder, trail_of

KEY = "a key that the database does not hold"


@pytest.fixture
async def desk(home, clock, database: Database) -> AsyncIterator[Moot]:
    async with Moot(Settings(home=home, database_url=database.safe_url), clock=clock) as desk:
        yield desk


def with_key(desk: Moot, key: str = KEY) -> None:
    trail_of(desk).seal = Seal(key)


async def run(desk: Moot, *statements: str, **values: Any) -> list[Any]:
    assert desk.database is not None
    found: list[Any] = []
    async with desk.database.session() as db, db.begin():
        for statement in statements:
            result = await db.execute(text(statement), values)
            found = list(result.mappings()) if result.returns_rows else []
    return found


def stored(desk: Moot, some_id: UUID) -> str | UUID:
    """As the database spells it."""
    assert desk.database is not None
    return some_id.hex if "sqlite" in desk.database.safe_url else some_id


async def all_of(desk: Moot, *, sign: bool = False) -> WorkspaceVerification:
    return await desk.coordinator.session_history().verify_all("default", "en-US", sign=sign)


async def problem(desk: Moot, session_id: UUID) -> Problem | None:
    """What the session itself is said to have, and the whole workspace too."""
    found = await desk.verify(session_id)
    assert found.explanation
    named = {one.session_id: one for one in (await all_of(desk)).broken}
    assert (session_id in named) is not found.intact
    return found.first_break and found.first_break.problem


TABLES = (
    *("session_events", "session_answers", "escalations", "decisions", "llm_call_logs"),
    *("external_api_call_logs", "node_executions", "audit_chain", "audit_heads"),
)


async def remove(desk: Moot, session_id: UUID) -> None:
    mine = [f"DELETE FROM {table} WHERE session_id = :of" for table in TABLES]
    await run(desk, *mine, "DELETE FROM research_sessions WHERE id = :of", of=stored(desk, session_id))


async def cut(desk: Moot, session_id: UUID, count: int = 2, *, of: str = "session_events") -> None:
    """The last entries with their rows, and the head moved to where the rest ends."""
    mine = {"of": stored(desk, session_id)}
    links = await run(desk, "SELECT seq, hash FROM audit_chain WHERE session_id = :of ORDER BY seq", **mine)
    left = links[-count - 1]
    await run(
        desk,
        f"DELETE FROM {of} WHERE session_id = :of",
        f"DELETE FROM audit_chain WHERE session_id = :of AND seq > {left['seq']}",
        f"UPDATE audit_heads SET length = {left['seq']}, hash = '{left['hash'].hex()}' WHERE session_id = :of",
        **mine,
    )


async def chain_again(desk: Moot, chain: UUID) -> None:
    """Hash every link anew, up to the head, as somebody can who may write everywhere but has no key."""
    of = stored(desk, chain)
    links = await run(desk, "SELECT * FROM audit_chain WHERE session_id = :of ORDER BY seq", of=of)
    previous = "0" * 64
    for link in links:
        end = link_hash(
            previous, chain, link["seq"], link["kind"], UUID(str(link["row_id"])), link["digest"].hex()
        )
        await run(
            desk,
            f"UPDATE audit_chain SET previous_hash = '{previous}', hash = '{end}'"
            f" WHERE session_id = :of AND seq = {link['seq']}",
            of=of,
        )
        previous = end
    await run(desk, f"UPDATE audit_heads SET hash = '{previous}' WHERE session_id = :of", of=of)


class TestAWorkspace:
    async def test_holds_with_all_its_sessions(self, desk: Moot) -> None:
        recorder = Recorder(trail_of(desk))
        ended, running = await recorder.session(), await recorder.session(ended=None)
        theirs = await recorder.session(workspace="another")
        found = await all_of(desk)
        assert (found.intact, found.sessions, found.broken) == (True, 2, [])
        assert found.explanation == "All sessions of the workspace (2) hold, and none is missing."
        for session in (ended, running):
            assert (await desk.verify(session.id)).intact
        with pytest.raises(NotFound):
            await desk.verify(theirs.id)

    @pytest.mark.parametrize("ended", [True, False])
    async def test_misses_a_session_that_was_removed(self, desk: Moot, *, ended: bool) -> None:
        recorder = Recorder(trail_of(desk))
        gone = await (recorder.session() if ended else recorder.session(ended=None))
        await recorder.session()
        await remove(desk, gone.id)
        assert await problem(desk, gone.id) == "gone"
        found = await all_of(desk)
        assert [one.session_id for one in found.broken] == [gone.id]
        assert str(gone.id) in found.broken[0].explanation
        assert found.explanation.startswith("1 of 2 sessions of the workspace do not hold. Entry ")

    async def test_misses_the_end_of_a_session(self, desk: Moot) -> None:
        session = await Recorder(trail_of(desk)).session()
        await cut(desk, session.id)
        assert await problem(desk, session.id) == "other_end"

    async def test_misses_its_own_end(self, desk: Moot) -> None:
        recorder = Recorder(trail_of(desk))
        await recorder.session()
        last = await recorder.session()
        ledger = stored(desk, ledger_of("default"))
        await remove(desk, last.id)
        await run(desk, "DELETE FROM audit_chain WHERE session_id = :of AND seq > 2", of=ledger)
        found = await all_of(desk)
        assert (found.intact, found.broken, found.sessions) == (False, [], 1)
        assert "The record was cut off: entry 3" in found.explanation

    async def test_knows_of_no_session_that_was_put_there(self, desk: Moot) -> None:
        session = await Recorder(trail_of(desk)).session()
        await run(
            desk, "DELETE FROM audit_chain WHERE session_id = :of", of=stored(desk, ledger_of("default"))
        )
        await run(
            desk, "DELETE FROM audit_heads WHERE session_id = :of", of=stored(desk, ledger_of("default"))
        )
        assert await problem(desk, session.id) == "unlisted"

    async def test_of_two_processes_that_end_sessions_at_once_has_one_ledger(
        self, desk: Moot, database: Database
    ) -> None:
        other = Database(database.safe_url)
        recorders = [Recorder(trail_of(desk)), Recorder(AuditTrail(other))]
        await asyncio.gather(*(recorder.session() for recorder in recorders * 8))
        await other.close()
        found = await all_of(desk)
        assert (found.explanation, found.sessions) == (
            "All sessions of the workspace (16) hold, and none is missing.",
            16,
        )

    async def test_tells_pruning_from_cutting(self, desk: Moot) -> None:
        session = await Recorder(trail_of(desk)).session()
        await desk.coordinator.session_pruning().prune(date(2026, 6, 30), "default")
        await desk.export(session.id)
        assert await problem(desk, session.id) is None
        await cut(desk, session.id, 1, of="session_answers")
        assert await problem(desk, session.id) == "other_end"


class TestAKey:
    async def test_tells_a_record_that_was_rewritten_with_its_ledger(self, desk: Moot) -> None:
        with_key(desk)
        session = await Recorder(trail_of(desk)).session()
        assert await problem(desk, session.id) is None
        await run(desk, "UPDATE audit_chain SET kind = 'node' WHERE kind = 'model_call'")
        await chain_again(desk, session.id)
        await run(desk, "UPDATE audit_heads SET signature = NULL")
        trail_of(desk).seal = None
        unkeyed = (await desk.verify(session.id)).first_break
        assert unkeyed is not None
        with_key(desk)
        await Recorder(trail_of(desk)).session()
        found = await all_of(desk)
        assert not found.intact, "what was not signed is not signed over"

    async def test_is_needed_to_sign_and_another_is_noticed(self, desk: Moot) -> None:
        with_key(desk, "another")
        session = await Recorder(trail_of(desk)).session()
        with_key(desk)
        assert await problem(desk, session.id) == "forged"

    async def test_that_comes_later_wants_what_was_there_signed_once(self, desk: Moot) -> None:
        recorder = Recorder(trail_of(desk))
        before = await recorder.session()
        with_key(desk)
        after = await recorder.session()
        assert await problem(desk, before.id) == "unsigned"
        assert await problem(desk, after.id) is None, "its own end is signed"
        assert not (await all_of(desk)).intact
        assert (await all_of(desk, sign=True)).intact
        assert await problem(desk, before.id) is None
        await recorder.session()
        assert (await all_of(desk)).intact

    async def test_does_not_sign_what_does_not_hold(self, desk: Moot) -> None:
        session = await Recorder(trail_of(desk)).session()
        with_key(desk)
        await cut(desk, session.id)
        assert not (await all_of(desk, sign=True)).intact
        ends = await run(desk, "SELECT signature FROM audit_heads")
        assert {end["signature"] for end in ends} == {None}


CHANGES = {
    "requester of a decision": "UPDATE decisions SET requester = 'Wang'",
    "requester of a session": "UPDATE research_sessions SET requested_by = 'Wang'",
    "who asked a person": "UPDATE escalations SET requester = 'Wang'",
    "what a person said": "UPDATE escalations SET status = 'approved', decided_by = 'Wang'",
    "an event": "UPDATE session_events SET type = 'verdict'",
    "when it was told": "UPDATE session_events SET seq = 7",
}


@pytest.mark.parametrize("what", CHANGES)
async def test_every_row_of_a_session_is_vouched_for(desk: Moot, what: str) -> None:
    session = await Recorder(trail_of(desk)).session()
    await run(desk, CHANGES[what])
    assert await problem(desk, session.id) == "changed"


async def test_an_answer_that_was_handed_on_is_vouched_for(desk: Moot) -> None:
    session = await Recorder(trail_of(desk)).session()
    await desk.export(session.id)
    await run(desk, "UPDATE session_answers SET files = '{}'")
    assert await problem(desk, session.id) == "changed"


@pytest.mark.parametrize("table", ["escalations", "session_events"])
async def test_a_question_or_event_that_was_removed_is_missed(desk: Moot, table: str) -> None:
    session = await Recorder(trail_of(desk)).session()
    await run(desk, f"DELETE FROM {table}")
    assert await problem(desk, session.id) == "removed"


async def test_what_a_person_decides_is_in_the_chain(desk: Moot, clock) -> None:
    recorder = Recorder(trail_of(desk))
    session = await recorder.session()
    before = (await desk.verify(session.id)).links
    page = await recorder.escalations.page(
        "default", clock.now().replace(year=2000), "pending", page=1, page_size=9
    )
    ruling = {
        "status": "approved",
        "decided_by": "Wang",
        "reason": "fine",
        "decided_at": page.items[0].requested_at,
    }
    assert await recorder.escalations.settle(page.items[0], ruling)
    found = await desk.verify(session.id)
    assert (found.intact, found.links) == (True, before + 1)


UNREADABLE = {
    "JSON of a node": (
        "UPDATE node_executions SET result_data = '{\"action' WHERE node_type = 'judge'",
        "node",
    ),
    "JSON of the session": ("UPDATE research_sessions SET options = 'no JSON'", "session_opened"),
    "a moment": ("UPDATE llm_call_logs SET created_at = 'yesterday' WHERE ordinal = 1", "model_call"),
    "bytes": ("UPDATE decisions SET requester = CAST(x'ff00fe' AS TEXT)", "decision"),
}


class TestWhatCannotBeRead:
    """PostgreSQL refuses such values itself."""

    @pytest.fixture
    async def desk(self, home, clock) -> AsyncIterator[Moot]:
        async with Moot(Settings(home=home), clock=clock) as desk:
            yield desk

    @pytest.mark.parametrize("what", UNREADABLE)
    async def test_is_named(self, desk: Moot, what: str) -> None:
        session = await Recorder(trail_of(desk)).session()
        statement, kind = UNREADABLE[what]
        await run(desk, statement)
        found: Verification = await desk.verify(session.id)
        assert found.first_break is not None
        assert (found.first_break.problem, found.first_break.kind) == ("unreadable", kind)
        assert "cannot be read" in found.explanation
        with pytest.raises(Conflict, match="无法读取"):
            await desk.export(session.id)

    @pytest.mark.parametrize(
        ("statement", "problem"),
        [
            ("UPDATE audit_chain SET row_id = 'x' WHERE seq = 5 AND kind <> 'session_head'", "removed"),
            ("UPDATE audit_chain SET seq = 'five' WHERE seq = 5", "removed"),
            ("UPDATE node_executions SET id = 'x' WHERE node_type = 'judge'", "removed"),
            ("UPDATE audit_heads SET length = 'x'", "added"),
        ],
    )
    async def test_where_it_is_a_key_or_a_link_is_missed(
        self, desk: Moot, statement: str, problem: str
    ) -> None:
        session = await Recorder(trail_of(desk)).session()
        await run(desk, statement)
        found = await desk.verify(session.id)
        assert found.first_break is not None
        assert found.first_break.problem == problem

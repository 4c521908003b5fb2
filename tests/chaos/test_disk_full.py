"""The disk that holds Moot's home is full, or fills up while a session runs, and has room again."""

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from moot.desk import Moot
from moot.modules.coordinator.application import run
from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.domain.exceptions import SessionNotFound
from moot.shared.domain.errors import Unavailable
from tests.chaos.desks import NODES, QUESTION, SYMBOL, careful_after, settings_of
from tests.chaos.results import essence
from tests.chaos.scene import expire_leases
from tests.chaos.small_disk import SmallDisk, small_disk
from tests.fakes.clock import PATIENCE
from tests.fakes.llm_server import LLMServer, Say


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", megabytes=8) as disk:
        yield disk


@pytest.fixture(autouse=True)
def careful_model(llm_server) -> None:
    llm_server.default = careful_after()


def examined(home: Path) -> str:
    with sqlite3.connect(home / "moot.db") as db:
        return str(db.execute("PRAGMA integrity_check").fetchone()[0])


async def stored_whole(desk: Moot, session_id: str) -> None:
    stored = await desk.session(UUID(session_id))
    assert (stored.status, stored.audit_gaps) == ("completed", 0)
    assert {node.node_type for node in stored.nodes} == NODES
    assert (await desk.verify(stored.id)).intact


async def test_on_a_full_disk_research_goes_on_and_counts_what_was_not_kept(disk, llm_server, monkeypatch):
    monkeypatch.setattr(run, "STORE_AGAIN", [0.1] * 2_000)
    async with Moot(settings_of(disk.folder, llm_server)) as desk:
        before = await desk.research(**QUESTION)
        disk.fill()
        full = await desk.research(**QUESTION)
        assert essence(full) == essence(before)
        assert full.audit_gaps > len(NODES)
        with pytest.raises(SessionNotFound):
            await desk.session(UUID(full.session_id))

        disk.empty()
        after = await desk.research(**QUESTION)
        for kept in (before, after):
            await stored_whole(desk, kept.session_id)
        async with asyncio.timeout(
            PATIENCE
        ):  # its end is stored once there is room, with what is missing in it
            while (await desk.sessions()).total < 3:
                await asyncio.sleep(0.05)
        late = await desk.session(UUID(full.session_id))
        assert (late.status, late.audit_gaps, late.nodes) == ("completed", full.audit_gaps, [])
    assert examined(disk.folder) == "ok"


async def test_a_strict_desk_on_a_full_disk_says_so_and_asks_no_model(disk, llm_server):
    async with Moot(settings_of(disk.folder, llm_server, audit="strict")) as desk:
        disk.fill()
        with pytest.raises(Unavailable, match="could not be written, and MOOT_AUDIT=strict"):
            await desk.research(**QUESTION)
        assert llm_server.requests == []
        disk.empty()
        await stored_whole(desk, (await desk.research(**QUESTION)).session_id)


async def test_a_desk_that_opens_on_a_full_disk_answers_and_is_not_ready(disk, llm_server):
    disk.fill()
    async with Moot(settings_of(disk.folder, llm_server)) as desk:
        result = await desk.research(**QUESTION)
        assert (result.verdict_status, result.audit_gaps > 0) == ("judged", True)
        assert (await desk.readiness())["database"] == {
            "ok": False,
            "detail": "The database failed: database or disk is full",
        }


def fills_up_at(request: int, disk: SmallDisk, server: LLMServer) -> None:
    answer = careful_after()

    def filling(body: dict[str, Any]) -> Say:
        if len(server.requests) == request:
            disk.fill()
        return answer(body)

    server.default = filling


@pytest.mark.parametrize("request_number", [1, 6, 9])
async def test_a_session_that_ran_out_of_room_goes_on_when_there_is_some(disk, llm_server, request_number):
    fills_up_at(request_number, disk, llm_server)
    async with Moot(settings_of(disk.folder, llm_server)) as desk:
        full = await desk.research(**QUESTION)
        assert (full.verdict_status, full.audit_gaps > 0) == ("judged", True)
    disk.empty()
    llm_server.default = careful_after()
    async with Moot(settings_of(disk.folder, llm_server)) as desk:
        await expire_leases(desk.database)
        answered = {call["prompt_text"] for call in await calls_of(desk, full) if call["status"] == "success"}
        asked = len(llm_server.requests)
        assert essence(await desk.resume(UUID(full.session_id))) == essence(full)
        assert answered & {seen.prompt for seen in llm_server.requests[asked:]} == set()
        await stored_whole(desk, full.session_id)
    assert examined(disk.folder) == "ok"


async def calls_of(desk: Moot, result: ResearchResult) -> list[dict[str, Any]]:
    return await desk.coordinator.session_history().calls(UUID(result.session_id), "default", "models")


def test_the_command_line_ends_with_a_sentence_when_nothing_can_be_written(disk, forge):
    disk.fill()
    seen = forge.run("research", SYMBOL, "--as-of", QUESTION["as_of"], home=disk.folder, COLUMNS="120")
    assert "Traceback" not in seen.stderr
    assert "No space left on device" in seen.stdout + seen.stderr

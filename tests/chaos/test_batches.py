"""Processes that die while they see to a batch: another goes on, and nobody is asked twice."""

import asyncio
import os
from collections import Counter
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest

from moot.desk import Moot
from moot.modules.coordinator.application.session_history import SessionFilter
from moot.modules.jobs.application.batches import BatchView
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.settings import Settings
from tests.chaos.desks import here_and_there
from tests.chaos.test_workers import Crew
from tests.entry.forked import ROOT, Forge
from tests.fakes.clock import PATIENCE

ASKED: dict[str, Any] = {
    "universe": [f"90000{n}.DEMO" for n in range(1, 7)],
    "top": 4,
    "experts": ["technical_analyst", "macro_intelligence"],
    "as_of": "2026-03-31",
    "locale": "en-US",
}
IN_TIME = 4 * PATIENCE


@pytest.fixture
def settings(home: Path, database: Database) -> Settings:
    url = database.safe_url
    return Settings(home=home, database_url=url, log_level="error", lease_seconds=2, worker=True)


async def die_at(forge: Forge, settings: Settings, death: str, cancelled: str = "") -> None:
    given = settings.model_dump(mode="json", exclude_unset=True)
    code = f"from tests.chaos.batch_worker import run; run({death!r}, {given!r}, {cancelled!r})"
    out = settings.home / "doomed.txt"
    pid = await asyncio.to_thread(forge.fork, ["-c", code], {}, ROOT, Path(os.devnull), out, out)
    assert await forge.ended(pid, within=IN_TIME) == -SIGKILL, out.read_text()


async def until_ended(desk: Moot, batch: BatchView) -> BatchView:
    async with asyncio.timeout(IN_TIME):
        while (batch := await desk.batch(batch.id)).ended_at is None:
            await asyncio.sleep(0.1)
    return batch


@pytest.mark.parametrize(
    ("death", "database"),
    here_and_there(
        (
            "in the screen",
            "after the screen is kept",
            "after the first session",
            "after the last session but one",
        )
    ),
    indirect=["database"],
)
async def test_a_batch_goes_on_where_a_process_died(forge: Forge, settings: Settings, death: str) -> None:
    async with Moot(settings.model_copy(update={"worker": False})) as desk:
        begun = await desk.jobs.batches().start(ASKED)
        await die_at(forge, settings, death)
        crew = Crew(forge, settings)
        await crew.hire()
        done = await until_ended(desk, begun)
        assert (done.status, done.screened, done.progress.states) == ("done", 6, {"judged": 4})
        wanted = SessionFilter(workspace_id="default", page_size=200)
        sessions = (await desk.coordinator.session_history().sessions(wanted)).items
        assert set(Counter(session.symbol for session in sessions).values()) == {1}, "nobody is asked twice"
        assert all([(await desk.verify(session.id)).intact for session in sessions])
        await crew.dismiss()


@pytest.mark.parametrize(
    ("death", "database"), [("in the cancel", "sqlite"), ("in the cancel", "postgres")], indirect=["database"]
)
async def test_a_cancel_goes_on_where_a_process_died(forge: Forge, settings: Settings, death: str) -> None:
    async with Moot(settings.model_copy(update={"worker": False})) as desk:
        begun = await desk.jobs.batches().start(ASKED)
        await desk.jobs._keeper().tend(begun.id)
        await die_at(forge, settings, death, str(begun.id))
        left = await desk.batch(begun.id)
        assert (left.status, left.ended_at, left.progress.states) == (
            "cancelled",
            None,
            {"cancelled": 2, "waiting": 2},
        )
        crew = Crew(forge, settings)
        await crew.hire()
        gone = await until_ended(desk, begun)
        assert (gone.status, gone.progress.states) == ("cancelled", {"cancelled": 4})
        await crew.dismiss()

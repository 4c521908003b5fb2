"""Batches on both databases: what is looked through and judged, what is stopped, and what comes of it."""

import asyncio
import csv
import io
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import polars as pl
import pytest
from pydantic import SecretStr
from sqlalchemy import text

from moot.desk import Moot
from moot.modules.coordinator.application.session_history import SessionFilter
from moot.modules.jobs.application.batch_report import render
from moot.modules.jobs.application.batches import BatchResults, BatchService, BatchView
from moot.modules.jobs.domain.batches import Answer
from moot.modules.jobs.domain.ranking import compare, rank
from moot.modules.jobs.infrastructure.batch_desk import DeskPanel
from moot.modules.llm_platform.infrastructure import spending_store
from moot.shared.domain.errors import Conflict, InvalidInput, NotFound, Unavailable
from moot.shared.domain.universe import Screened, Screening
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.settings import Settings
from tests.fakes.careful_model import careful
from tests.fakes.clock import PATIENCE
from tests.fakes.llm_server import LLMServer
from tests.fakes.tushare_server import TOKEN, TushareServer

SHARES = ["900001.DEMO", "900002.DEMO", "900003.DEMO", "900004.DEMO"]
ASKED: dict[str, Any] = {
    "universe": SHARES,
    "name": "nightly",
    "top": 2,
    "experts": ["technical_analyst", "macro_intelligence"],
    "as_of": "2026-03-31",
    "locale": "en-US",
}


@pytest.fixture
def settings(home: Path, database: Database) -> Settings:
    return Settings(home=home, database_url=database.safe_url, log_level="error", lease_seconds=2)


@pytest.fixture
async def desk(settings: Settings) -> AsyncIterator[Moot]:
    """Which takes nothing from the queue itself."""
    async with Moot(settings) as desk:
        yield desk


def working(settings: Settings) -> Moot:
    return Moot(settings.model_copy(update={"worker": True}))


async def until_batch(
    batches: BatchService,
    batch_id: UUID,
    come: Callable[[BatchView], bool] = lambda one: one.ended_at is not None,
) -> BatchView:
    async with asyncio.timeout(3 * PATIENCE):
        while not come(batch := await batches.find(batch_id)):
            await asyncio.sleep(0.05)
    return batch


async def sessions_of(desk: Moot) -> Counter[str]:
    found = await desk.coordinator.session_history().sessions(
        SessionFilter(workspace_id="default", page_size=200)
    )
    return Counter(session.symbol for session in found.items)


async def test_all_are_screened_and_those_that_lead_are_judged(settings: Settings, desk: Moot) -> None:
    batches = desk.jobs.batches()
    begun = await batches.start(ASKED)
    assert (begun.status, begun.shares, begun.screened, begun.progress.chosen) == ("running", 4, None, 0)
    async with working(settings) as worker:
        worker.work()
        done = await until_batch(batches, begun.id)
    assert (done.status, done.screened, done.progress.states) == ("done", 4, {"judged": 2})
    results = await batches.results(begun.id)
    judged = [row for row in results.rows if row.basis == "verdict"]
    assert [row.rank for row in results.rows] == [1, 2, 3, 4]
    assert results.rows[:2] == judged
    assert sorted(row.screen_rank or 0 for row in judged) == [1, 2], "the leading ones of the screen"
    assert judged == sorted(judged, key=lambda row: -(row.lean or 0))
    assert [row.screen_rank for row in results.rows[2:]] == [3, 4]
    assert results.left_out == ["macro_intelligence"]
    for row in judged:
        assert row.session_id is not None
        session = await desk.session(row.session_id)
        assert (session.trigger_source, session.batch_id) == ("batch", begun.id)
        assert session.as_of == done.as_of
        assert (await desk.verify(session.id)).intact


async def test_whoever_goes_on_after_a_fan_out_that_broke_off_asks_nobody_twice(
    settings: Settings, desk: Moot, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, screen = DeskPanel.ask, DeskPanel.screen
    asked: list[str] = []
    screens: list[int] = []

    async def break_off(self: DeskPanel, batch: Any, symbol: str) -> None:
        await ask(self, batch, symbol)
        asked.append(symbol)
        if len(asked) == 1:
            raise Unavailable("the store is gone for a moment")

    async def count(self: DeskPanel, *about: Any) -> Any:
        screens.append(1)
        return await screen(self, *about)

    monkeypatch.setattr(DeskPanel, "ask", break_off)
    monkeypatch.setattr(DeskPanel, "screen", count)
    batches = desk.jobs.batches()
    begun = await batches.start({**ASKED, "top": 3})
    for _ in range(3):
        await desk.jobs._keeper().tend(begun.id)
    assert set((await sessions_of(desk)).values()) == {1}
    assert ((await batches.find(begun.id)).progress.states, len(screens)) == ({"waiting": 3}, 1)


async def test_a_batch_that_is_asked_for_twice_under_one_id_is_one(desk: Moot) -> None:
    batches, known = desk.jobs.batches(), UUID(int=7)
    first = await batches.start(ASKED, batch_id=known)
    again = await batches.start({**ASKED, "top": 4}, batch_id=known)
    assert first == again
    assert (await batches.find_all()).total == 1


async def test_a_paused_batch_begins_nothing_and_goes_on_when_it_is_resumed(
    settings: Settings, desk: Moot
) -> None:
    batches = desk.jobs.batches()
    begun = await batches.start({**ASKED, "top": 3})
    await desk.jobs._keeper().tend(begun.id)
    assert (await batches.pause(begun.id)).status == "paused"
    with pytest.raises(Conflict, match="only a batch that runs can be paused"):
        await batches.pause(begun.id)
    async with working(settings) as worker:
        worker.work()
        await until_no_job(desk)
        assert (await batches.find(begun.id)).progress.states == {"waiting": 3}
        await batches.resume(begun.id)
        done = await until_batch(batches, begun.id)
    assert (done.status, done.progress.states) == ("done", {"judged": 3})


async def until_no_job(desk: Moot) -> None:
    """Every job had its turn."""
    await desk.jobs.engine.open()
    client = desk.jobs.engine._client
    assert client is not None
    async with asyncio.timeout(2 * PATIENCE):
        while any(job.status != "SUCCESS" for job in await client.list_workflows_async()):
            await asyncio.sleep(0.1)


async def test_what_is_cancelled_ends_without_anybody_who_works(desk: Moot) -> None:
    batches = desk.jobs.batches()
    begun = await batches.start({**ASKED, "top": 3})
    await desk.jobs._keeper().tend(begun.id)
    gone = await batches.cancel(begun.id)
    assert (gone.status, gone.progress.states) == ("cancelled", {"cancelled": 3})
    assert gone.ended_at is not None
    for turn in (batches.cancel, batches.resume, batches.pause):
        with pytest.raises(Conflict, match="cancelled"):
            await turn(begun.id)


async def test_a_batch_that_is_cancelled_before_its_screen_asks_nobody(desk: Moot) -> None:
    batches = desk.jobs.batches()
    begun = await batches.start(ASKED)
    gone = await batches.cancel(begun.id)
    assert (gone.screened, gone.progress.chosen, gone.ended_at is None) == (None, 0, False)
    await desk.jobs._keeper().tend(begun.id)
    assert await sessions_of(desk) == {}


async def test_a_cancel_that_broke_off_is_carried_on_by_whoever_works(
    settings: Settings, desk: Moot, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancel, cancelled = DeskPanel.cancel, []

    async def break_off(self: DeskPanel, session_id: UUID, workspace: str) -> None:
        await cancel(self, session_id, workspace)
        cancelled.append(session_id)
        if len(cancelled) == 1:
            raise Unavailable("the store is gone for a moment")

    monkeypatch.setattr(DeskPanel, "cancel", break_off)
    batches = desk.jobs.batches()
    begun = await batches.start({**ASKED, "top": 3})
    await desk.jobs._keeper().tend(begun.id)
    stuck = await batches.cancel(begun.id)
    assert (stuck.status, stuck.ended_at, stuck.progress.states["waiting"]) == ("cancelled", None, 2)
    async with working(settings) as worker:
        worker.work()
        gone = await until_batch(batches, begun.id)
    assert (gone.status, gone.progress.states) == ("cancelled", {"cancelled": 3})


async def test_a_screen_that_cannot_be_made_fails_the_batch_and_says_why(
    desk: Moot, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_about: Any) -> None:
        raise InvalidInput("nobody can be screened by this")

    monkeypatch.setattr(DeskPanel, "screen", refuse)
    batches = desk.jobs.batches()
    begun = await batches.start(ASKED)
    await desk.jobs._keeper().tend(begun.id)
    failed = await batches.find(begun.id)
    assert (failed.status, failed.reason) == ("failed", "nobody can be screened by this")
    assert failed.ended_at is not None


async def test_an_interactive_question_is_answered_while_a_batch_has_the_other_places(
    settings: Settings, desk: Moot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two places, a batch has one: what somebody waits for runs while it stands still."""
    begun, hold = asyncio.Event(), asyncio.Event()
    batches = desk.jobs.batches()
    batch = await batches.start({**ASKED, "top": 3})
    async with working(settings.model_copy(update={"worker_sessions": 2})) as worker:
        engine = await worker.coordinator.engine()
        run = engine.run

        async def wait(request: Any) -> Any:
            if request.trigger_source == "batch":
                begun.set()
                await hold.wait()
            return await run(request)

        monkeypatch.setattr(engine, "run", wait)
        worker.work()
        await asyncio.wait_for(begun.wait(), 2 * PATIENCE)
        asked = {"experts": ["macro_intelligence"], "skip_debate": True}
        session = await desk.start("900005.DEMO", **asked)
        async with asyncio.timeout(2 * PATIENCE):
            async for _ in desk.events(session.id):
                pass
        assert (await desk.session(session.id)).status == "completed"
        assert (await batches.find(batch.id)).progress.states["running"] == 1
        hold.set()
        assert (await until_batch(batches, batch.id)).status == "done"


PRICES = {"llm_price_in": 1000.0, "llm_price_out": 1000.0}
"""For a million tokens."""


def priced(settings: Settings, server: LLMServer, **more: Any) -> Settings:
    model = {"llm_base_url": server.url, "llm_model": "careful", "llm_concurrency": 16}
    return settings.model_copy(update=model | PRICES | more)


async def test_a_batch_costs_no_more_than_it_may_and_says_what_was_left(
    settings: Settings, llm_server: LLMServer
) -> None:
    llm_server.default = lambda body: replace(careful(body), usage=(8000, 2000))
    settings = priced(settings, llm_server, worker=True, worker_sessions=2)
    async with Moot(settings) as desk:
        batches = desk.jobs.batches()
        limit = 100.0
        begun = await batches.start({**ASKED, "top": 4, "max_cost": limit})
        desk.work()
        done = await until_batch(batches, begun.id)
        assert (done.status, done.over_limit) == ("done", True)
        assert done.progress.cost is not None
        assert 0 < done.progress.cost <= limit
        assert done.progress.states["unpaid"] > 0
        assert done.reason is not None
        assert done.reason.startswith("Stopped at the cost limit of 100")
        left = [row for row in (await batches.results(begun.id)).rows if row.state == "unpaid"]
        assert len(left) == done.progress.states["unpaid"]
        spent = "SELECT cost_spent + cost_reserved FROM llm_spending WHERE key = :key"
        found: list[int] = []
        key = {"key": f"batch:{begun.id}"}
        assert desk.database is not None
        await desk.database.write(lambda db: found.append(db.execute(text(spent), key).scalar_one()))
        assert found[-1] <= limit * 10**9


async def test_money_that_others_only_set_aside_is_waited_for(
    settings: Settings, llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What two sessions could use at once is far more than what they use: nothing is left because of that."""
    monkeypatch.setattr(spending_store, "LOOK_AGAIN", 0.1)
    llm_server.default = lambda body: replace(careful(body), delay=0.2)
    settings = priced(settings, llm_server, worker=True, worker_sessions=4)
    async with Moot(settings) as desk:
        batches = desk.jobs.batches()
        begun = await batches.start({**ASKED, "top": 3, "max_cost": 28.0, "skip_debate": True})
        desk.work()
        done = await until_batch(batches, begun.id)
    assert (done.status, done.over_limit, done.progress.states) == ("done", False, {"unjudged": 3})


async def test_the_last_batch_of_the_same_name_is_what_it_is_compared_with(settings: Settings) -> None:
    async with Moot(settings.model_copy(update={"worker": True})) as desk:
        batches = desk.jobs.batches()
        desk.work()
        first = await batches.start({**ASKED, "as_of": "2025-12-31"})
        await until_batch(batches, first.id)
        assert (await batches.results(first.id)).previous is None
        other = await batches.start({**ASKED, "name": "another", "top": 0})
        await until_batch(batches, other.id)
        assert (await batches.results(other.id)).previous is None
        second = await batches.start({**ASKED, "universe": SHARES[1:]})
        await until_batch(batches, second.id)
        results = await batches.results(second.id)
    assert results.previous is not None
    assert (results.previous.id, results.gone) == (first.id, [SHARES[0]])
    assert [row.before is not None for row in results.rows] == [True] * 3


class TestUniverse:
    async def test_what_means_no_share_is_named_and_nothing_is_begun(self, desk: Moot) -> None:
        batches = desk.jobs.batches()
        asked = {**ASKED, "universe": ["900001", "Mirage Hil Distilers", "999999.DEMO"]}
        with pytest.raises(InvalidInput, match="2 of what was given") as refused:
            await batches.start(asked)
        unknown = refused.value.details["unknown"]
        assert [one["given"] for one in unknown] == ["Mirage Hil Distilers", "999999.DEMO"]
        assert (await batches.find_all()).total == 0
        begun = await batches.start({**asked, "skip_unknown": True})
        assert (begun.shares, [one.given for one in begun.left_out]) == (
            1,
            ["Mirage Hil Distilers", "999999.DEMO"],
        )
        with pytest.raises(InvalidInput, match="nothing in it means a share"):
            await batches.start({**ASKED, "universe": ["999999.DEMO"], "skip_unknown": True})

    async def test_a_watch_list_everybody_and_each_once(self, desk: Moot) -> None:
        await desk.add_to_watchlist("900001.DEMO", "900002.DEMO", list_name="mine")
        batches = desk.jobs.batches()
        assert (await batches.start({**ASKED, "universe": ["watch:mine", "900002"]})).shares == 2
        assert (await batches.start({**ASKED, "universe": ["all", "900002"]})).shares == 33
        with pytest.raises(InvalidInput, match="There is no watch-list yours"):
            await batches.start({**ASKED, "universe": ["watch:yours"]})

    async def test_a_share_is_in_it_from_the_day_of_its_exchange_on_which_it_was_listed(
        self, desk: Moot
    ) -> None:
        batches, asked = desk.jobs.batches(), {**ASKED, "universe": ["900006.DEMO"]}
        with pytest.raises(InvalidInput, match="means no share that was listed then"):
            await batches.start(asked | {"as_of": "2023-03-14"})
        assert (await batches.start(asked | {"as_of": "2023-03-15"})).shares == 1

    async def test_an_index_needs_a_source_that_tells_its_members(self, desk: Moot) -> None:
        with pytest.raises(Unavailable, match="Set MOOT_TUSHARE_TOKEN, or name the shares in a file"):
            await desk.jobs.batches().start({**ASKED, "universe": ["csi300"]})

    async def test_an_index_has_the_members_of_the_moment(self, settings: Settings) -> None:
        member = {"index_code": "399300.SZ", "trade_date": "20260227"}
        members = [member | {"con_code": code} for code in ("600001.SH", "600002.SH")]
        with TushareServer({"index_weight": members}) as server:
            told = {"tushare_token": SecretStr(TOKEN), "tushare_url": server.url}
            async with Moot(settings.model_copy(update=told)) as desk:
                begun = await desk.jobs.batches().start({**ASKED, "universe": ["csi300"], "name": None})
        asked = [request["params"] for request in server.requests if request["api_name"] == "index_weight"]
        assert (begun.shares, begun.name, asked[0]["end_date"]) == (2, "csi300", "20260331")

    @pytest.mark.parametrize(
        ("wrong", "field"),
        [
            ({"universe": []}, "universe"),
            ({"top": -1}, "top"),
            ({"max_cost": 0}, "max_cost"),
            ({"experts": ["nobody"]}, "experts"),
            ({"options": {"financial_auditor": {"limit": 5}}}, "options"),
            ({"as_of": "2999-01-01"}, "as_of"),
            ({"tops": 3}, "tops"),
            ({"name": ""}, "name"),
        ],
    )
    async def test_what_cannot_be_asked_is_refused_by_its_field(
        self, desk: Moot, wrong: dict[str, Any], field: str
    ) -> None:
        with pytest.raises(InvalidInput, match=field):
            await desk.jobs.batches().start(ASKED | wrong)
        assert (await desk.jobs.batches().find_all()).total == 0


async def test_a_batch_of_another_workspace_is_not_there(desk: Moot) -> None:
    begun = await desk.jobs.batches().start(ASKED)
    others = desk.jobs.batches("another")
    with pytest.raises(NotFound):
        await others.find(begun.id)
    with pytest.raises(NotFound):
        await others.cancel(begun.id)
    assert (await others.find_all()).items == []
    assert await desk.jobs.batches().find_id("last") == begun.id


NASTY = ('=HYPERLINK("http://x","y")', "<script>alert(1)</script>", "＝1+1", "\t=1+1", "-2+3")


def made_up(names: tuple[str, ...] = NASTY) -> BatchResults:
    shares = tuple(
        Screened(
            symbol=f"90000{n}.DEMO",
            name=name,
            rank=n,
            lean=-0.1 * n,
            scores={"technical.trend": 0.5},
            notes=(name,),
        )
        for n, name in enumerate(names, 1)
    )
    asked = {"universe": ["<b>"], "name": "<b>nightly</b>"}
    view = BatchView.model_validate(
        {
            "id": UUID(int=1),
            "workspace_id": "default",
            "name": asked["name"],
            "status": "done",
            "as_of": "2026-03-31T00:00:00Z",
            "request": asked,
            "created_at": "2026-03-31T00:00:00Z",
            "shares": len(shares),
            "screened": len(shares),
            "progress": {},
        }
    )
    answer = Answer(
        session_id=UUID(int=2), symbol="900002.DEMO", state="judged", action="BUY", lean=0.4, confidence=0.7
    )
    return BatchResults(batch=view, rows=rank(Screening(shares=shares), [answer], view))


class TestExports:
    def test_no_cell_of_a_csv_is_a_formula_and_numbers_stay_numbers(self) -> None:
        results = made_up()
        data = render(results, "csv", "en-US")
        rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))
        assert {row["name"] for row in rows} == {
            '\'=HYPERLINK("http://x","y")',
            "<script>alert(1)</script>",
            "'＝1+1",
            "' =1+1",
            "'-2+3",
        }
        assert [float(row["screen_lean"]) for row in rows if row["symbol"] == "900001.DEMO"] == [-0.1]
        assert pl.read_csv(data)["rank"].to_list() == [1, 2, 3, 4, 5]

    def test_a_parquet_file_has_what_the_results_have(self) -> None:
        results = made_up()
        read = pl.read_parquet(io.BytesIO(render(results, "parquet", "en-US")))
        assert read["name"].to_list() == [row.name for row in results.rows]
        assert read["lean"].to_list() == [0.4, None, None, None, None]
        assert read["technical.trend"].to_list() == [0.5] * 5
        assert read["session_id"].to_list() == [str(UUID(int=2)), *[None] * 4]

    def test_outside_text_on_a_page_is_no_tag(self) -> None:
        page = render(made_up(), "html", "zh-CN").decode()
        assert "<script" not in page
        assert "<b>" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert '<html lang="zh-CN">' in page
        assert "买入" in page

    def test_json_is_what_the_results_are(self) -> None:
        assert BatchResults.model_validate_json(render(made_up(), "json", "en-US")) == made_up()


def test_the_judged_come_first_and_what_was_before_stands_beside() -> None:
    results = made_up()
    assert [(row.symbol, row.basis) for row in results.rows[:2]] == [
        ("900002.DEMO", "verdict"),
        ("900001.DEMO", "screen"),
    ]
    compared, gone = compare(results.rows[1:], results.rows)
    assert gone == ["900002.DEMO"]
    assert compared[0].before is not None
    assert compared[0].before.rank == 2

"""Schedules: when they are due, who begins them, and what is made up for. On both databases, by hand-set clocks."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from pydantic import SecretStr

from moot.modules.jobs.application.delivery import DeliveryService
from moot.modules.jobs.application.destinations import DestinationBody, DestinationService
from moot.modules.jobs.application.schedules import AGAIN_AFTER, MOST_TRIES, Scheduler, ScheduleService
from moot.modules.jobs.domain.batches import Batch, BatchRequest
from moot.modules.jobs.domain.destinations import Destination
from moot.modules.jobs.domain.notices import Notice
from moot.modules.jobs.domain.schedules import (
    FIGURES_OUT,
    ScheduleBody,
    ScheduleRun,
    Synced,
    find_next,
    is_outdated,
)
from moot.modules.jobs.infrastructure.notify_store import SqlNotifications
from moot.modules.jobs.infrastructure.schedule_store import SqlSchedules
from moot.modules.llm_platform.infrastructure.config_repository import Cipher
from moot.modules.market_data.application.sync import PUBLISHED_AT_HOUR
from moot.modules.market_data.domain.trading_rules import trading_calendar
from moot.shared.domain.errors import AppError, Conflict, InvalidInput, NotFound, Unavailable
from moot.shared.domain.leases import LeaseHolder
from moot.shared.domain.symbol import Market
from moot.shared.infrastructure.database import Database
from tests.fakes.clock import HandClock

SHANGHAI, NEW_YORK = ZoneInfo("Asia/Shanghai"), ZoneInfo("America/New_York")
NOW = datetime(2026, 9, 28, 12, 0, tzinfo=SHANGHAI)
"""A Monday, in the week before the exchanges of China close for the first week of October."""
LEASE = 15.0


def at(day: str, clock: str = "18:10", zone: ZoneInfo = SHANGHAI) -> datetime:
    return datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=zone)


def body(name: str = "nightly", *, universe: Sequence[str] = ("600519.SH",), **more: Any) -> ScheduleBody:
    return ScheduleBody(name=name, request=BatchRequest(universe=list(universe), locale="en-US"), **more)


@dataclass
class Batches:
    """What a desk would begin, and what its data are brought up to date for, in the order in which it happens."""

    began: dict[UUID, BatchRequest] = field(default_factory=dict)
    happened: list[str] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    hold: asyncio.Event | None = None
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    synced: Synced | None = None

    async def list_shares(self, request: BatchRequest) -> list[str]:
        if "nonsense" in request.universe:
            raise InvalidInput("nonsense means no share")
        return list(request.universe)

    async def sync(self, shares: Sequence[str], locale: str) -> Synced | None:
        self.reached.set()
        if self.hold is not None:
            await self.hold.wait()
        if self.errors:
            raise self.errors.pop(0)
        self.happened.append("synced")
        return self.synced

    async def start(
        self, request: BatchRequest, *, requested_by: str | None = None, batch_id: UUID | None = None
    ) -> Batch:
        assert batch_id is not None
        assert isinstance(request.as_of, datetime)
        if batch_id not in self.began:
            self.happened.append("began")
        self.began.setdefault(batch_id, request)
        given = {"id": batch_id, "workspace_id": "default", "name": request.name, "status": "running"}
        return Batch(
            **given,
            as_of=request.as_of,
            request=request,
            created_at=request.as_of,
            shares=1,
            requested_by=requested_by,
        )

    async def find(self, batch_id: UUID) -> Batch:
        return await self.start(self.began[batch_id], batch_id=batch_id)

    @property
    def moments(self) -> list[datetime]:
        return [request.as_of for request in self.began.values()]  # type: ignore[misc]


@dataclass
class Scene:
    database: Database
    clock: HandClock = field(default_factory=lambda: HandClock(NOW.astimezone(UTC)))
    batches: Batches = field(default_factory=Batches)

    def __post_init__(self) -> None:
        self.store = SqlSchedules(self.database)

    def service(self, workspace: str = "default", caller: str | None = None) -> ScheduleService:
        return ScheduleService(
            self.store,
            lambda _: self.batches,
            trading_calendar,
            self.clock,
            workspace=workspace,
            caller=caller,
        )

    def worker(self, own: HandClock | None = None) -> Scheduler:
        async def tell_time() -> datetime:
            return min(self.clock.now(), (own or self.clock).now())

        held = LeaseHolder(self.store, self.clock, LEASE)
        return Scheduler(
            self.store, held, lambda _: self.batches, self.batches.sync, trading_calendar, tell_time
        )

    def go_to(self, moment: datetime) -> None:
        self.clock.move((moment - self.clock.now()).total_seconds())

    async def look(self, *workers: Scheduler) -> None:
        looking = workers or (self.worker(),)
        await asyncio.gather(*(worker.look() for worker in looking))
        await asyncio.gather(*(worker.wait() for worker in looking))

    async def runs(self, name: str = "nightly") -> list[ScheduleRun]:
        return (await self.service().find(name)).runs


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


@pytest.mark.parametrize(
    ("every", "after", "due"),
    [
        ("day", at("2026-09-28", "12:00"), at("2026-09-28")),
        ("day", at("2026-09-28"), at("2026-09-29")),
        ("day", at("2026-09-30"), at("2026-10-08")),
        ("day", at("2026-11-20"), at("2026-11-23")),
        ("week", at("2026-09-21", "12:00"), at("2026-09-24")),  # 25 September 2026 is a holiday
        ("week", at("2026-09-28", "12:00"), at("2026-09-30")),
        ("week", at("2026-09-30"), at("2026-10-09")),
        ("day", at("2027-01-01"), at("2027-01-04")),  # beyond the table, weekdays
    ],
)
def test_it_is_due_on_trading_days_in_the_exchanges_time(every, after, due):
    for zone in (UTC, SHANGHAI, NEW_YORK):  # wherever the machine stands
        assert find_next(body(every=every), trading_calendar(Market.CN), after.astimezone(zone)) == due


def test_new_york_keeps_its_own_days_and_its_own_summer():
    calendar, asked = trading_calendar(Market.US), body()
    friday = find_next(asked, calendar, at("2026-10-30", "09:00", NEW_YORK))
    monday = find_next(asked, calendar, friday)
    assert (friday.hour, monday.hour, monday - friday) == (22, 23, timedelta(days=3, hours=1))
    thanksgiving = find_next(asked, calendar, at("2026-11-25", zone=NEW_YORK))
    assert thanksgiving == at("2026-11-27", zone=NEW_YORK)


def test_by_default_the_figures_of_the_day_are_out():
    assert f"{PUBLISHED_AT_HOUR}:00" == FIGURES_OUT < body().at


@pytest.mark.parametrize(
    ("due", "now", "outdated"),
    [
        (at("2026-09-28"), at("2026-09-29", "14:59"), False),
        (at("2026-09-28"), at("2026-09-29", "15:00"), True),
        (at("2026-09-30"), at("2026-10-08", "10:00"), False),  # nothing was traded in between
        (at("2026-09-30"), at("2026-10-08", "15:00"), True),
        (at("2026-09-28", "09:00"), at("2026-09-28", "15:00"), True),
    ],
)
def test_a_moment_is_made_up_for_until_there_is_newer_to_know(due, now, outdated):
    assert is_outdated(due, now, trading_calendar(Market.CN)) is outdated


async def test_it_begins_once_with_the_data_first_and_as_of_the_due_moment(scene):
    view = await scene.service().add(body())
    assert (view.market, view.next_due, view.runs) == (Market.CN, at("2026-09-28"), [])
    scene.go_to(at("2026-09-28", "18:09"))
    await scene.look()
    assert scene.batches.happened == []
    scene.go_to(at("2026-09-28", "18:10") + timedelta(seconds=3))
    for _ in range(3):
        await scene.look(scene.worker(), scene.worker(), scene.worker())
    assert scene.batches.happened == ["synced", "began"]
    ((batch_id, request),) = scene.batches.began.items()
    assert (request.as_of, request.name, request.universe) == (at("2026-09-28"), "nightly", ["600519.SH"])
    (run,) = await scene.runs()
    assert (run.status, run.due_at, run.batch_id, run.missed) == ("begun", at("2026-09-28"), batch_id, 0)
    assert run.batch_status == "running"
    assert run.begun_at == run.ended_at == scene.clock.now()
    assert (await scene.service().find("nightly")).next_due == at("2026-09-29")


async def test_a_holiday_has_no_run(scene):
    await scene.service().add(body())
    for day in range(40):
        scene.go_to(at("2026-09-28") + timedelta(days=day, seconds=1))
        await scene.look()
    days = [moment.astimezone(SHANGHAI).date() for moment in scene.batches.moments]
    assert days == trading_calendar(Market.CN).within(date(2026, 9, 28), date(2026, 11, 6))
    assert date(2026, 10, 1) not in days
    assert len(days) == 25


async def test_three_days_away_are_made_up_for_once(scene):
    await scene.service().add(body())
    scene.go_to(at("2026-09-30", "21:00"))  # Monday, Tuesday and Wednesday were missed
    await scene.look(scene.worker(), scene.worker())
    assert scene.batches.moments == [at("2026-09-30")]
    (run,) = await scene.runs()
    assert (run.status, run.missed) == ("begun", 2)
    await scene.look()
    assert len(scene.batches.began) == 1


async def test_what_is_too_old_is_not_made_up_for_and_says_so(scene):
    await scene.service().add(body())
    scene.go_to(at("2026-09-29", "16:00"))
    await scene.look()
    assert scene.batches.happened == []
    (run,) = await scene.runs()
    assert (run.status, run.due_at) == ("missed", at("2026-09-28"))
    scene.go_to(at("2026-09-29"))
    await scene.look()
    assert scene.batches.moments == [at("2026-09-29")]


async def test_what_fell_due_and_was_not_begun_in_time_is_not_begun_later(scene):
    """As when every worker died between the two, and came back days later."""
    await scene.service().add(body())
    scene.go_to(at("2026-09-28"))
    scene.batches.hold = asyncio.Event()
    dying = scene.worker()
    await dying.look()
    await scene.batches.reached.wait()
    for task in dying._under_way.values():  # killed: it releases nothing
        task.cancel()
    scene.batches.hold = None
    scene.go_to(at("2026-10-09", "09:00"))
    await scene.look()
    newest, oldest = await scene.runs()
    assert (newest.due_at, newest.status, newest.missed) == (at("2026-10-08"), "begun", 2)
    assert (oldest.due_at, oldest.status) == (at("2026-09-28"), "missed")
    assert scene.batches.moments == [at("2026-10-08")]


@pytest.mark.parametrize("after", ["synced", "began"])
async def test_who_dies_at_the_moment_of_beginning_is_followed_by_another(scene, monkeypatch, after):
    await scene.service().add(body())
    scene.go_to(at("2026-09-28"))
    dying, died = scene.worker(), asyncio.Event()
    keep = scene.store.keep

    async def die(run: ScheduleRun, token: int, until: datetime | None = None) -> bool:
        if after in scene.batches.happened:
            died.set()
            await asyncio.Event().wait()
        return await keep(run, token, until)

    monkeypatch.setattr(scene.store, "keep", die)
    await dying.look()
    await died.wait()
    monkeypatch.undo()
    other = scene.worker()
    await scene.look(other)
    assert scene.batches.happened.count("synced") == 1, "until its lease has run out it may be alive"
    scene.clock.move(LEASE)
    await scene.look(other)
    (run,) = await scene.runs()
    assert (run.status, list(scene.batches.began)) == ("begun", [run.batch_id])
    for task in dying._under_way.values():
        task.cancel()


async def test_who_was_taken_for_dead_begins_nothing_any_more(scene):
    await scene.service().add(body())
    scene.go_to(at("2026-09-28"))
    scene.batches.hold = asyncio.Event()
    slow = scene.worker()
    await slow.look()
    await scene.batches.reached.wait()
    hold, scene.batches.hold = scene.batches.hold, None
    scene.clock.move(LEASE)
    await scene.look()
    assert scene.batches.happened == ["synced", "began"]
    hold.set()
    await slow.wait()
    assert scene.batches.happened == ["synced", "began", "synced"]


async def test_a_stopping_worker_leaves_the_rest_to_another_at_once(scene):
    await scene.service().add(body())
    scene.go_to(at("2026-09-28"))
    scene.batches.hold = asyncio.Event()
    stopping = scene.worker()
    await stopping.look()
    await scene.batches.reached.wait()
    await stopping.close()
    scene.batches.hold = None
    await scene.look()
    assert scene.batches.happened == ["synced", "began"]


@pytest.mark.parametrize("off", [-3600, 3600])
async def test_a_clock_that_is_off_by_an_hour_begins_nothing_early_and_nothing_twice(scene, off):
    """Ahead it waits for the store's; behind, others go first, and it finds nothing left."""
    await scene.service().add(body())
    scene.go_to(at("2026-09-28", "18:00"))
    own = HandClock(scene.clock.now())
    own.move(off)
    wrong = scene.worker(own)
    await scene.look(wrong)
    assert scene.batches.happened == []
    for clock in (own, scene.clock):
        clock.move(601)
    await scene.look(wrong)
    assert scene.batches.moments == ([at("2026-09-28")] if off > 0 else [])
    await scene.look()
    for clock in (own, scene.clock):
        clock.move(3600)
    await scene.look(wrong)
    assert scene.batches.moments == [at("2026-09-28")]
    assert all(moment <= own.now() for moment in scene.batches.moments)


async def test_paused_it_is_not_due_and_nothing_is_made_up_for(scene):
    await scene.service().add(body())
    assert (await scene.service().pause("nightly")).paused
    scene.go_to(at("2026-09-29", "19:00"))
    await scene.look()
    resumed = await scene.service().resume("nightly")
    assert (resumed.paused, resumed.next_due) == (False, at("2026-09-30"))
    await scene.look()
    assert (scene.batches.happened, resumed.runs) == ([], [])
    assert (await scene.service().resume("nightly")).next_due == at("2026-09-30")


async def test_paused_between_a_look_and_its_deed_it_does_not_begin(scene):
    view = await scene.service().add(body())
    await scene.service().pause("nightly")
    run = ScheduleRun(id=UUID(int=1), schedule_id=view.id, due_at=view.next_due)
    await scene.store.fire(view, run, view.next_due + timedelta(days=1))
    assert await scene.runs() == []


async def test_who_comes_late_with_what_was_due_once_changes_nothing(scene):
    late = await scene.service().add(body())
    scene.go_to(at("2026-09-28"))
    await scene.look()
    run = ScheduleRun(id=UUID(int=1), schedule_id=late.id, due_at=late.next_due)
    await scene.store.fire(late, run, late.next_due)
    assert ((await scene.service().find("nightly")).next_due, len(await scene.runs())) == (
        at("2026-09-29"),
        1,
    )


async def test_removed_while_it_runs_it_does_not_begin(scene):
    await scene.service().add(body())
    scene.go_to(at("2026-09-28"))
    scene.batches.hold = asyncio.Event()
    worker = scene.worker()
    await worker.look()
    await scene.batches.reached.wait()
    await scene.service().remove("nightly")
    scene.batches.hold.set()
    await worker.wait()
    await scene.look()
    assert scene.batches.happened == ["synced"]
    with pytest.raises(NotFound):
        await scene.service().find("nightly")


async def test_run_now_is_as_of_now_and_changes_nothing_about_the_rest(scene):
    await scene.service().add(body())
    asked = await scene.service(caller="ada").run_now("nightly")
    assert (asked.runs[0].status, asked.runs[0].requested_by, asked.next_due) == (
        "waiting",
        "ada",
        at("2026-09-28"),
    )
    scene.go_to(at("2026-09-28", "16:00"))  # nobody worked until the session was over: who asked meant it
    await scene.look()
    assert scene.batches.moments == [NOW]
    await scene.service().pause("nightly")
    await scene.service().run_now("nightly")
    await scene.look()
    assert scene.batches.moments == [NOW, at("2026-09-28", "16:00")]


async def test_what_became_of_the_data_is_told_and_stops_nothing(scene):
    scene.batches.synced = Synced(fetched=3, failed=1, errors=["600519.SH bars: tushare: down"])
    await scene.service().add(body())
    scene.go_to(at("2026-09-28"))
    await scene.look()
    (run,) = await scene.runs()
    assert (run.status, run.synced) == ("begun", scene.batches.synced)


async def test_what_may_pass_is_tried_again_and_then_given_up(scene):
    await scene.service().add(body())
    scene.go_to(at("2026-09-28"))
    scene.batches.errors = [Unavailable("no index members today") for _ in range(MOST_TRIES)]
    worker = scene.worker()
    for tries in range(1, MOST_TRIES + 1):
        await scene.look(worker)
        await scene.look(worker)
        assert len(scene.batches.errors) == MOST_TRIES - tries
        (run,) = await scene.runs()
        assert run.error == "no index members today"
        scene.clock.move(AGAIN_AFTER.total_seconds())
    assert run.status == "failed"
    await scene.look(worker)
    assert scene.batches.happened == []


@pytest.mark.parametrize("error", [InvalidInput("nobody knows it any more"), KeyError("a defect")])
async def test_what_cannot_pass_fails_at_once_and_keeps_nothing_else_from_its_time(scene, error):
    await scene.service().add(body("bad"))
    await scene.service().add(body("good"))
    scene.go_to(at("2026-09-28"))
    scene.batches.errors = [error]
    await scene.look()
    assert sorted([(await scene.runs("bad"))[0].status, (await scene.runs("good"))[0].status]) == [
        "begun",
        "failed",
    ]


async def test_a_run_that_fails_is_told(scene):
    told: list[tuple[str, str]] = []

    async def send(to: Destination, notice: Notice) -> None:
        told.append((to.name, notice.text))

    notifications = SqlNotifications(scene.database, Cipher("of the test"))
    for locale in ("en-US", "zh-CN"):
        place = {"kind": "wecom", "url": SecretStr("https://chat.example/x"), "locale": locale}
        service = DestinationService(notifications, send, scene.clock, "default")
        await service.add(DestinationBody(name=locale, **place, occasions=("failure",)))
    await scene.service().add(body())
    scene.go_to(at("2026-09-28"))
    scene.batches.errors = [InvalidInput("nobody knows it any more")]
    await scene.look()
    delivery = DeliveryService(notifications, None, send, scene.clock)
    assert (await delivery.deliver_due(), await delivery.deliver_due()) == (
        2,
        0,
    )
    assert dict(told) == {
        "en-US": "Schedule nightly: what was due at 2026-09-28 10:10 UTC could not begin\n"
        "Why: nobody knows it any more\nAll of its runs: moot schedule show nightly",
        "zh-CN": "定时任务 nightly：2026-09-28 10:10 UTC 到期的运行未能开始\n"
        "原因（英文原文）：nobody knows it any more\n全部运行：moot schedule show nightly",
    }


async def test_a_schedule_has_a_name_in_its_workspace(scene):
    await scene.service().add(body())
    with pytest.raises(Conflict, match="moot schedule remove nightly"):
        await scene.service().add(body())
    await scene.service("theirs").add(body())
    assert [one.name for one in (await scene.service("theirs").list()).items] == ["nightly"]
    with pytest.raises(NotFound, match="Did you mean nightly"):
        await scene.service().run_now("nightli")
    await scene.service("theirs").remove("nightly")
    assert len((await scene.service().list()).items) == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"at": "25:00"}, "at"),
        ({"at": "9:30"}, "at"),
        ({"name": "two words"}, "name"),
        ({"name": ""}, "name"),
        ({"every": "month"}, "every.*day, week"),
        ({"market": "HK"}, "market"),
        ({"when": "later"}, "when"),
        ({"request": {"universe": ["600519.SH"], "as_of": "2026-09-01"}}, "request.as_of: leave it out"),
        ({"request": {"universe": ["nonsense"]}}, "nonsense means no share"),
        ({"request": {"universe": ["600519.SH", "AAPL"]}}, "market.*CN, US"),
        ({"request": {}}, "request.universe"),
    ],
)
async def test_what_cannot_be_is_refused_by_name(scene, given, said):
    asked = {"name": "nightly", "request": {"universe": ["600519.SH"]}} | given
    with pytest.raises(AppError, match=said) as refused:
        await scene.service().add(asked)
    assert isinstance(refused.value, InvalidInput)
    assert (await scene.service().list()).items == []


async def test_of_several_exchanges_one_is_named(scene):
    view = await scene.service().add(body(universe=["600519.SH", "AAPL"], market="US"))
    assert view.next_due == at("2026-09-28", zone=NEW_YORK)


async def test_there_is_an_end_to_how_many(scene, monkeypatch):
    monkeypatch.setattr("moot.modules.jobs.application.schedules.MOST_SCHEDULES", 1)
    await scene.service().add(body())
    with pytest.raises(InvalidInput, match="1 schedules at most"):
        await scene.service().add(body("another"))
    await scene.service("theirs").add(body("another"))

"""What is researched without being asked again: when it is due, what came of it, and what is made up for."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal, NamedTuple, Protocol
from uuid import UUID, uuid4, uuid5

from pydantic import AwareDatetime, BaseModel, Field

from moot.modules.jobs.domain.batches import BatchRequest
from moot.modules.jobs.domain.texts import SAY
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.symbol import TIME_ZONES, Market
from moot.shared.domain.validation import Strict

Every = Literal["day", "week"]
RunStatus = Literal["waiting", "running", "begun", "failed", "missed"]
"""`begun`: its batch is, and tells the rest. `missed`: nobody was there until there was newer to know."""

MOST_SCHEDULES = 50
"""In a workspace."""
FIGURES_OUT = "18:00"
"""Of the exchange: before that, sources of daily figures have not those of the day."""
LOOKED_AHEAD = 31
"""Days; no exchange is closed for longer."""


class ScheduleBody(Strict):
    """What is researched, as a batch would be asked; each run is as of its due moment, and its batch has this name.

    `market` is whose days and hours count; without one, that of the shares.
    """

    name: str = Field(pattern=r"^[^\s/?#%]{1,64}$", description="1 to 64 characters, no spaces or / ? # %")
    request: BatchRequest
    at: str = Field(
        default="18:10",
        pattern=r"^([01]\d|2[0-3]):[0-5]\d$",
        description="HH:MM on the exchange",
    )
    every: Every = Field(default="day", description="trading day; or week: the last trading day of each week")
    market: Market | None = None

    def check(self) -> None:
        if self.request.as_of is not None:
            raise InvalidInput(SAY("schedule.as_of"), field="request.as_of")


class Schedule(ScheduleBody):
    """`next_due` stands still while it is paused."""

    id: UUID = Field(default_factory=uuid4)
    workspace_id: str
    market: Market
    paused: bool = False
    next_due: AwareDatetime
    created_at: AwareDatetime
    created_by: str | None = None


class Synced(BaseModel, frozen=True):
    """What became of the data before the research: datasets of shares, and some of what was wrong with them."""

    fetched: int = 0
    up_to_date: int = 0
    failed: int = 0
    errors: list[str] = []


class ScheduleRun(BaseModel, frozen=True):
    """`missed`: so many due moments before this one nobody was there for. `requested_by`: who did not wait for the
    clock. `synced` None: nothing was to be fetched, or not yet."""

    id: UUID
    schedule_id: UUID
    due_at: AwareDatetime
    status: RunStatus = "waiting"
    begun_at: AwareDatetime | None = None
    ended_at: AwareDatetime | None = None
    missed: int = 0
    requested_by: str | None = None
    synced: Synced | None = None
    batch_id: UUID | None = None
    error: str | None = None


class ScheduleView(Schedule):
    """`runs` are the latest, the newest first."""

    runs: list[ScheduleRun] = Field(default_factory=list)


class ScheduleList(BaseModel, frozen=True):
    items: list[ScheduleView]


class Calendar(Protocol):
    """Of an exchange."""

    @property
    def market(self) -> Market: ...
    @property
    def last(self) -> date:
        """The last day of which it is known whether there is trading."""

    def within(self, start: date, end: date) -> list[date]: ...
    def close_of(self, day: date) -> datetime: ...


CalendarOf = Callable[[Market], Calendar]


def find_next(body: ScheduleBody, calendar: Calendar, after: datetime) -> datetime:
    """The first moment after that one at which it is due."""
    zone, at = TIME_ZONES[calendar.market], time.fromisoformat(body.at)
    sessions = _list_sessions(calendar, after.astimezone(zone).date(), LOOKED_AHEAD)
    weeks = [day.isocalendar()[:2] for day in sessions]
    for n, day in enumerate(sessions):
        due = datetime.combine(day, at, zone)
        if due > after and (body.every == "day" or weeks[n] not in weeks[n + 1 :]):
            return due.astimezone(UTC)
    raise AssertionError(f"{calendar.market} has no session within {LOOKED_AHEAD} days of {after}")


class Due(NamedTuple):
    """`missed`: how many moments had come and gone before this one."""

    at: datetime
    missed: int
    next: datetime


def catch_up(schedule: Schedule, calendar: Calendar, now: datetime) -> Due:
    """Of all due moments that have come, the last."""
    due, missed = schedule.next_due, 0
    while (following := find_next(schedule, calendar, due)) <= now:
        due, missed = following, missed + 1
    return Due(due, missed, following)


def is_outdated(due: datetime, now: datetime, calendar: Calendar) -> bool:
    """Whether a session has ended since: there is newer to know, which the next run will."""
    first = due.astimezone(TIME_ZONES[calendar.market]).date()
    days = _list_sessions(calendar, first, (now - due).days + 2)
    return any(due < calendar.close_of(day) <= now for day in days)


def fall_due(schedule: Schedule, due: Due) -> ScheduleRun:
    """The run of that moment: whoever makes it, it is the same one."""
    run_id = uuid5(schedule.id, due.at.isoformat())
    return ScheduleRun(id=run_id, schedule_id=schedule.id, due_at=due.at, missed=due.missed)


def _list_sessions(calendar: Calendar, start: date, days: int) -> list[date]:
    """Beyond what the calendar knows every weekday is taken for one: a run too many is better than none."""
    end = start + timedelta(days=days)
    known = set(calendar.within(start, end))
    every = (start + timedelta(days=n) for n in range(days + 1))
    return [day for day in every if day in known or (day > calendar.last and day.weekday() < 5)]


class ScheduleStore(Protocol):
    """Of all workspaces."""

    async def add(self, schedule: Schedule, at_most: int) -> Literal["added", "taken", "full"]:
        """`taken`: the workspace has one of that name; `full`: it has as many as it may."""

    async def list(self, workspace: str, runs: int, name: str | None = None) -> Sequence[ScheduleView]:
        """By name, each with so many runs; that one only where a name is given."""

    async def remove(self, schedule: Schedule) -> None:
        """With its runs: what has not begun never will."""

    async def pause(self, schedule: Schedule, next_due: datetime | None) -> None:
        """Until it is resumed, with the moment at which it is due next; None: from now on."""

    async def add_run(self, run: ScheduleRun) -> None: ...

    async def find_due(self, now: datetime) -> Sequence[Schedule]: ...

    async def fire(self, schedule: Schedule, run: ScheduleRun, next_due: datetime) -> None:
        """Store the run and when it is due next, unless somebody has done so, or it was paused or removed."""

    async def find_waiting(self, now: datetime) -> Sequence[ScheduleRun]:
        """Those that have not ended and that nobody works on."""

    async def find(self, schedule_id: UUID) -> Schedule | None: ...

    async def keep(self, run: ScheduleRun, token: int, until: datetime | None = None) -> bool:
        """What has become of a run, as whoever holds it tells; `until`: nobody takes it up before. False where it is
        theirs no more, or the schedule was removed."""

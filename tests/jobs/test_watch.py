"""Watch-lists: what may be on them, and what they tell. On both databases."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from moot.desk import Moot
from moot.modules.jobs.application import watch
from moot.modules.jobs.application.watch import WatchlistService
from moot.modules.jobs.domain.watch import Ruling, find_before, newest
from moot.modules.jobs.infrastructure.watch_store import SqlWatchStore
from moot.modules.market_data.application.market_data import MarketData
from moot.shared.domain.errors import InvalidInput, NotFound, Unavailable
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.settings import Settings
from tests.fakes.clock import FixedClock

NOW = datetime(2026, 6, 30, 10, 0, tzinfo=UTC)


class Record:
    def __init__(self) -> None:
        self.rulings: list[Ruling] = []

    async def on(self, symbol: str, workspace: str) -> list[Ruling]:
        return self.rulings if (symbol, workspace) == ("900001.DEMO", "default") else []


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> MarketData:
    settings = Settings(persistence=False, home=tmp_path_factory.mktemp("home"), log_level="error")
    return Moot(settings, clock=FixedClock(NOW)).market_data.market_data()


@pytest.fixture
def record() -> Record:
    return Record()


@pytest.fixture
def lists(database: Database, market, record):
    def of(workspace: str = "default") -> WatchlistService:
        store, clock = SqlWatchStore(database), FixedClock(NOW)
        return WatchlistService(store, market, record, clock, workspace)

    return of


def ruling(
    number: int, action: str | None, day: int, *, horizon: int = 20, reached: int | None = None
) -> Ruling:
    moments = {
        "as_of": NOW + timedelta(days=day),
        "completed_at": NOW + timedelta(days=reached or day, hours=1),
    }
    return Ruling(session_id=UUID(int=number), action=action, horizon=horizon, **moments)  # type: ignore[arg-type]


def symbols(found: watch.Watchlist) -> list[tuple[str, str]]:
    return [(one.list_name, one.symbol) for one in found.items]


async def test_a_share_is_written_as_people_write_it_and_is_on_the_list_once(lists):
    await lists().add(["900002", "幻山酒业"])
    again = await lists().add(["900001.demo", "900001.DEMO"])
    assert symbols(again) == [("default", "900001.DEMO"), ("default", "900002.DEMO")]
    assert (again.items[0].name, again.items[0].name_en) == ("幻山酒业", "Mirage Hill Distillers")


async def test_lists_have_names_and_workspaces_do_not_see_each_other(lists):
    await lists().add(["900001.DEMO"])
    assert symbols(await lists().add(["900001.DEMO"], "banks")) == [("banks", "900001.DEMO")]
    assert symbols(await lists().list()) == [("banks", "900001.DEMO"), ("default", "900001.DEMO")]
    assert symbols(await lists().list("default")) == [("default", "900001.DEMO")]
    assert symbols(await lists("theirs").list()) == []
    with pytest.raises(NotFound):
        await lists("theirs").remove(["900001.DEMO"])


async def test_what_nobody_knows_is_refused_with_what_is_near_and_nothing_is_added(lists):
    with pytest.raises(InvalidInput) as refused:
        await lists().add(["900002.DEMO", "Mirage Hil Distilers"])
    assert refused.value.code == "SYMBOL_UNKNOWN"
    assert "900001.DEMO" in str(refused.value)
    with pytest.raises(InvalidInput, match=r"900999\.DEMO"):
        await lists().add(["900999.DEMO"])
    assert symbols(await lists().list()) == []


async def test_too_many_are_refused_and_the_list_stays_as_it_was(lists, monkeypatch):
    monkeypatch.setattr(watch, "MOST_WATCHED", 2)
    await lists().add(["900001.DEMO", "900002.DEMO"])
    await lists().add(["900001.DEMO"])
    with pytest.raises(InvalidInput, match="2 symbols at most") as refused:
        await lists().add(["900003.DEMO"], "another")
    assert refused.value.code == "WATCHLIST_FULL"
    assert len((await lists().list()).items) == 2


async def test_what_is_taken_off_must_be_on_it(lists):
    await lists().add(["900001.DEMO", "900002.DEMO"])
    assert symbols(await lists().remove(["幻山酒业"])) == [("default", "900002.DEMO")]
    with pytest.raises(
        NotFound, match=r"900001\.DEMO is not on the list default\. Did you mean 900002\.DEMO"
    ):
        await lists().remove(["900001.DEMO"])


@pytest.mark.parametrize("name", ["", " padded", "x" * 65])
async def test_a_list_has_a_name(lists, name):
    with pytest.raises(InvalidInput, match="list_name"):
        await lists().add(["900001.DEMO"], name)


async def test_the_last_verdict_is_that_of_the_latest_moment_and_the_one_before_of_its_horizon(lists, record):
    record.rulings = [
        ruling(1, "HOLD", 1),
        ruling(2, "BUY", 2),
        ruling(3, "SELL", 2, horizon=60),
        ruling(4, None, 4),
        ruling(5, "SELL", -300, reached=5),
    ]
    await lists().add(["900001.DEMO", "900002.DEMO"])
    first, second = (await lists().list()).items
    assert (first.last.session_id.int, first.last.action) == (4, None)
    assert (first.before.session_id.int, first.before.action) == (2, "BUY")
    assert (second.last, second.before) == (None, None)


def test_what_held_before_is_what_was_known_by_then():
    rulings = [ruling(1, "HOLD", 1), ruling(2, "BUY", 3), ruling(3, "SELL", 2, reached=4)]
    assert newest(rulings) == rulings[1]
    assert find_before(rulings[1], rulings) == rulings[0]
    assert find_before(rulings[2], rulings) == rulings[1]
    assert find_before(rulings[0], rulings) is None


@pytest.mark.parametrize("kind", ["watchlists", "schedules", "destinations", "batches"])
def test_a_desk_that_stores_nothing_says_so(kind, tmp_path):
    desk = Moot(Settings(persistence=False, home=tmp_path, log_level="error"))
    with pytest.raises(Unavailable, match="MOOT_PERSISTENCE=off"):
        getattr(desk.jobs, kind)()

"""A walk: what is asked when, what is counted where, and what is said about it."""

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from moot.desk import Moot
from moot.modules.evaluation.application.figures import Figures, Row, list_fading
from moot.modules.evaluation.application.page import Page
from moot.modules.evaluation.application.walk import Walk, WalkService
from moot.modules.evaluation.domain.observation import Deliberation, NothingToWalk, Said, View
from moot.modules.evaluation.infrastructure.past_desk import RubricPanel
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.facts import DailyBar
from moot.shared.domain.messages import LOCALES
from moot.shared.domain.symbol import Market, Symbol
from moot.shared.infrastructure.settings import Settings
from tests.fakes.clock import FixedClock
from tests.fakes.llm_server import LLMServer
from tests.fakes.market_data import a_bar

NAMES = [f"9000{n:02d}.DEMO" for n in range(1, 7)]
START, END = date(2021, 1, 1), date(2022, 12, 1)
NEW_YEAR = date(2022, 1, 1)
NOW = datetime(2023, 6, 30, tzinfo=UTC)


class FakePanel:
    """Bullish on the first half of the companies, bearish on the others, the surer the higher their number."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, datetime]] = []

    async def deliberate(self, symbol: Symbol, as_of: datetime) -> Deliberation:
        self.asked.append((symbol.text, as_of))
        number = NAMES.index(symbol.text) + 1
        side = 1 if number <= 3 else -1
        claim = Said(
            id="technical.x", kind="technical.x.up", pull=0.25, settled=0.2, horizon=5, value=float(number)
        )
        return Deliberation(
            views={
                "technical_analyst": View(
                    signal="BULLISH" if side > 0 else "BEARISH", stance=0.7 * side, confidence=number / 10
                ),
                "judge": View(signal="HOLD", stance=0.0, confidence=0.5),
            },
            failures={"macro_intelligence": "NO_DATA"},
            claims=[claim],
            leans={"all": side * number / 10, "only technical_analyst": 0.1, "unargued": 0.7 * side},
        )


class FakePrices:
    """Weekdays at 10; `rises` says which company rises by how much a session, on which days."""

    def __init__(self, panel: FakePanel, rises: dict[str, float], after: date | None = None) -> None:
        self.panel, self.rises, self.after = panel, rises, after
        self.read_after: list[int] = []

    async def list_symbols(self, start: date, end: date) -> list[Symbol]:
        return [Symbol.parse(name) for name in NAMES]

    def list_sessions(self, market: Market, start: date, end: date) -> list[date]:
        every = (start + timedelta(days=n) for n in range((end - start).days + 1))
        return [day for day in every if day.weekday() < 5]

    async def read_bars(self, symbol: Symbol, start: date, end: date) -> Sequence[DailyBar]:
        self.read_after.append(len(self.panel.asked))
        price, bars = 10.0, []
        for day in self.list_sessions(Market.DEMO, start, min(end, NOW.date())):
            by = 1 + self.rises.get(symbol.text, 0.0) * (self.after is None or day >= self.after)
            bars.append(
                a_bar(day, open=price, high=price * 2, low=price / 2, close=price * by, amount=100 * price)
            )
            price *= by
        return bars


async def walk(rises: dict[str, float] | None = None, after: date | None = None) -> tuple[Walk, FakePrices]:
    panel = FakePanel()
    prices = FakePrices(panel, rises or {NAMES[0]: 0.001}, after)
    service = WalkService(panel, prices, NOW)
    return await service.walk(await service.plan([], START, END, NEW_YEAR)), prices


def row(figures: Figures, table: str, name: str) -> Row:
    return next(row for row in figures.tables[table] if row.name == name)


async def test_everybody_is_asked_on_the_evening_of_each_last_session_and_prices_are_read_afterwards() -> (
    None
):
    done, prices = await walk()
    asked = prices.panel.asked
    assert len(asked) == 6 * 24 == len(done.observations)
    assert {name for name, _ in asked} == set(NAMES)
    evenings = sorted({moment.isoformat() for _, moment in asked})
    assert (evenings[0], evenings[-1]) == ("2021-01-29T20:00:00+08:00", "2022-12-30T20:00:00+08:00")
    assert set(prices.read_after) == {len(asked)}


async def test_what_was_bought_is_bought_after_the_moment() -> None:
    done, _ = await walk()
    assert all(came.bought > seen.day for seen in done.observations for came in seen.came.values())


async def test_a_side_that_is_right_hits_and_gains() -> None:
    done, _ = await walk(dict.fromkeys(NAMES[:3], 0.001))
    technical = row(done.reporting, "voices", "technical_analyst")
    assert {horizon: hits.mean for horizon, hits in technical.hits.items()} == {5: 1, 20: 1, 60: 1}
    assert technical.coin == {5: 0.5, 20: 0.5, 60: 0.5}
    gain = technical.gain[20]
    assert gain.mean == pytest.approx((1.001**21 - 1) / 2)
    assert gain.side == 1
    assert technical.n == 72 and technical.share == 1
    assert row(done.reporting, "signals", "technical_analyst BULLISH").share == 0.5
    assert technical.brier == pytest.approx(sum((n / 10 - 1) ** 2 for n in range(1, 7)) / 6)
    argued = row(done.reporting, "hearings", "all").ranks[20]
    assert argued.mean > 0.5
    assert [row.name for row in done.reporting.tables["deciles"]] == [str(n) for n in range(1, 11)]


async def test_tuning_and_reporting_are_never_mixed() -> None:
    """What happens from the new year on changes nothing for tuning, not even what was bought in December."""
    before, _ = await walk(dict.fromkeys(NAMES[:3], 0.001))
    one, _ = await walk(dict.fromkeys(NAMES[:3], 0.001), after=NEW_YEAR)
    other, _ = await walk(dict.fromkeys(NAMES[3:], 0.002), after=NEW_YEAR)
    assert one.tuning == other.tuning
    assert one.tuning != before.tuning
    assert one.reporting != other.reporting
    assert (one.tuning.dates, one.reporting.dates) == (12, 12)
    signal = row(before.tuning, "signals", "technical_analyst BULLISH")
    assert {horizon: known.dates for horizon, known in signal.excess.items()} == {5: 11, 20: 11, 60: 9}


@pytest.mark.parametrize("fades", [True, False])
async def test_a_kind_whose_stronger_half_did_worse_is_named(fades: bool) -> None:
    """All claims are equally strong: the stronger are those whose figure is further from its median of 3.5."""
    ends = {NAMES[0]: -0.001, NAMES[5]: -0.001, NAMES[2]: 0.001, NAMES[3]: 0.001}
    done, _ = await walk(ends if fades else {name: -by for name, by in ends.items()})
    assert [kind.name for kind in list_fading(done.tuning)] == (["technical.x.up"] if fades else [])
    halves = row(done.tuning, "kinds", "technical.x.up").halves
    by = [came.excess for one in done.observations[:6] for came in [one.came[5]]]  # alike on every date
    assert halves and halves.stronger == pytest.approx(sum(by[n] for n in (0, 1, 4, 5)) / 4)
    assert halves.weaker == pytest.approx((by[2] + by[3]) / 2)
    assert json.loads(done.to_json())["fading"] == (["technical.x.up"] if fades else [])


async def test_the_page_says_what_the_figures_say() -> None:
    good, _ = await walk(dict.fromkeys(NAMES[:3], 0.001))
    flat, _ = await walk({NAMES[0]: 0.0})
    better, nothing = (list(Page(done, "en-US").read()) for done in (good, flat))
    assert any("Technical analyst better at 20 sessions" in said for said in better)
    assert any("better or worse than a coin: all 3 intervals" in said for said in nothing)
    assert any("the same answer every time" in said and "Judge" in said for said in better)


@pytest.mark.parametrize(
    ("tune_until", "said"),
    [(date(2023, 1, 1), "nothing is reported"), (date(2022, 11, 1), "too few dates for an interval")],
)
async def test_what_cannot_be_told_is_not_told(tune_until: date, said: str) -> None:
    done, _ = await walk()
    told = list(Page(done.model_copy(update={"tune_until": tune_until}), "en-US").read())
    assert any(said in line for line in told)
    assert not any("contain zero" in line for line in told)


async def test_the_same_again_is_the_same_in_every_byte() -> None:
    (one, _), (other, _) = await walk(), await walk()
    assert one.to_json() == other.to_json()
    for locale in LOCALES:
        assert Page(one, locale).write() == Page(other, locale).write()


@pytest.mark.parametrize(
    ("symbols", "start", "end"),
    [([], date(2024, 1, 1), date(2024, 2, 1)), (["600519.SH", "900001.DEMO"], START, END)],
)
async def test_what_cannot_be_walked_is_refused(symbols: list[str], start: date, end: date) -> None:
    service = WalkService(panel := FakePanel(), FakePrices(panel, {}), NOW)
    with pytest.raises(NothingToWalk):
        await service.plan([Symbol.parse(name) for name in symbols], start, end, NEW_YEAR)


async def test_nothing_from_the_future_reaches_anybody_who_deliberates(tmp_path: Path) -> None:
    """A desk of the day after the last moment has nothing later to show: one that lives years on says the same."""
    symbols, said = [Symbol.parse("900001.DEMO"), Symbol.parse("900004.DEMO")], []
    for now in (datetime(2024, 3, 30, tzinfo=UTC), datetime(2026, 6, 30, tzinfo=UTC)):
        async with Moot(Settings(home=tmp_path, persistence=False), clock=FixedClock(now)) as desk:
            service = desk.evaluation.walk_service()
            done = await service.walk(
                await service.plan(symbols, date(2024, 2, 1), date(2024, 3, 1), NEW_YEAR)
            )
            said.append([seen.said for seen in done.observations])
    assert said[0] == said[1]
    assert all(len(one.views) > 3 and one.claims for one in said[0])


async def test_before_a_company_is_listed_nobody_has_a_view_and_everybody_says_why(tmp_path: Path) -> None:
    symbol = Symbol.parse("900001.DEMO")
    async with Moot(Settings(home=tmp_path, persistence=False), clock=FixedClock(NOW)) as desk:
        listed = (await desk.market_data.market_data().company(symbol, as_of=NOW)).list_date
        early = datetime(listed.year - 1, 6, 1, tzinfo=UTC)
        said = await RubricPanel(desk.coordinator).deliberate(symbol, early)
    assert (said.views, said.claims, said.leans) == ({}, [], {})
    assert said.failures == dict.fromkeys(ExpertType, "SYMBOL_NOT_LISTED")


async def test_no_model_is_asked_even_where_there_is_one(tmp_path: Path, llm_server: LLMServer) -> None:
    settings = Settings(
        home=tmp_path, persistence=False, llm_base_url=llm_server.url, llm_model="m", analyst="llm"
    )
    async with Moot(settings, clock=FixedClock(NOW)) as desk:
        panel = RubricPanel(desk.coordinator)
        said = await panel.deliberate(Symbol.parse("900001.DEMO"), NOW - timedelta(days=30))
    assert set(said.views) == {*ExpertType, "judge"}
    assert llm_server.requests == []

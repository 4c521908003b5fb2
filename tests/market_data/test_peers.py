"""A company among its industry: a lake in one read and any other source say the same, and nothing too early."""

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import BaseModel

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.application.peers import find_place
from moot.modules.market_data.application.sync import SyncedSource, SyncService
from moot.modules.market_data.domain.facts import BARS, COMPANIES, REPORTS, VALUATIONS, Dataset
from moot.modules.market_data.domain.provider import Sight
from moot.modules.market_data.infrastructure.cross_section import MeasuringLake
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.peers import CrossSection, Peer, Place
from moot.shared.domain.symbol import Market, Symbol
from tests.fakes.clock import FixedClock
from tests.fakes.market_data import FakeMarketDataProvider, a_bar, a_company, a_report, a_valuation
from tests.market_data.demo import NOW, demo_market

SYMBOL = Symbol.parse("900001.DEMO")
AS_OF = datetime(2024, 6, 28, 12, tzinfo=UTC)
TODAY = SYMBOL.local_date(AS_OF)
QUARTERS = [date(2023, 3, 31), date(2023, 6, 30), date(2023, 12, 31), date(2024, 3, 31)]


def code(n: int) -> str:
    return f"{900000 + n}.DEMO"


def a_market(chance: random.Random, companies: int = 12) -> FakeMarketDataProvider:
    """Companies with holes: some lack days, reports or values, some came late or left, some facts are not out yet."""
    market = FakeMarketDataProvider()
    for n in range(1, companies + 1):
        dates: dict[str, Any] = (
            {"list_date": TODAY + timedelta(chance.choice([-4000, -200, 0, 30]))} if n > 1 else {}
        )
        if n > 1 and chance.random() < 0.3:
            dates["delist_date"] = max(dates["list_date"], TODAY) + timedelta(chance.choice([0, 1, 300]))
        market.directory.append(
            a_company(code(n), industry=chance.choice(["白酒", "白酒", "银行"]) if n > 1 else "白酒", **dates)
        )
        begins, ends, price, factor = (
            chance.choice([0, 100, 420]),
            chance.choice([0, 0, 0, 10, 40, -9]),
            10.0,
            1.0,
        )
        for ago in range(begins, ends, -1):
            day, price = TODAY - timedelta(ago), round(price * chance.uniform(0.96, 1.05), 2)
            factor *= 1.1 if chance.random() < 0.01 else 1
            late = datetime(day.year, day.month, day.day, 8, tzinfo=UTC) + timedelta(
                chance.choice([0, 0, 0, 60])
            )
            market.bars.append(a_bar(day, late, symbol=code(n), price=price, adj_factor=factor))
            value = {
                key: chance.choice([None, chance.uniform(-5, 50)])
                for key in ("pe_ttm", "pb", "ps_ttm", "dv_ratio")
            }
            market.valuations.append(a_valuation(day, late, symbol=code(n), total_mv=price * 1e8, **value))
        for period in QUARTERS:
            for version in range(chance.choice([0, 1, 1, 2, 2])):
                told = datetime(period.year, period.month, period.day, tzinfo=UTC) + timedelta(
                    30 + version * 90
                )
                figures = {
                    key: chance.choice([None, *(chance.uniform(-1e8, 1e9) for _ in range(4))])
                    for key in ("total_revenue", "net_profit")
                }
                report = a_report(period, told, **figures)
                market.reports.append(report.model_copy(update={"symbol": code(n)}))
    return market


def lake_of(market: FakeMarketDataProvider, folder: Path) -> MeasuringLake:
    lake = MeasuringLake(folder)
    keep(lake, COMPANIES, market.directory, "DEMO")
    for dataset, facts in ((BARS, market.bars), (VALUATIONS, market.valuations), (REPORTS, market.reports)):
        for symbol in {fact.symbol for fact in facts}:
            keep(lake, dataset, [fact for fact in facts if fact.symbol == symbol], symbol)
    return lake


def keep(lake: MeasuringLake, dataset: Dataset[Any], facts: Sequence[BaseModel], subject: str) -> None:
    lake.store(dataset, subject, facts, covered=None, at=AS_OF + timedelta(days=400))


async def section(source: Any, as_of: datetime = AS_OF) -> CrossSection:
    return await MarketData({Market.DEMO: source}).peers(SYMBOL, as_of=as_of)


async def test_a_lake_and_any_other_source_measure_alike(tmp_path: Path) -> None:
    seen: dict[str, int] = {}
    for seed in range(5):
        market = a_market(random.Random(seed))
        lake = lake_of(market, tmp_path / str(seed))
        for as_of in (AS_OF, AS_OF - timedelta(45), AS_OF + timedelta(2)):
            plain = await section(market, as_of)
            assert await section(lake, as_of) == plain
            for name, place in plain.places.items():
                seen[name] = seen.get(name, 0) + place.count
    assert min(seen.values()) > 5, f"nothing to compare in {seen}"


def a_share(symbol: str, closes: dict[date, float], factors: dict[date, float] | None = None) -> list[Any]:
    return [
        a_bar(d, symbol=symbol, price=p, adj_factor=(factors or {}).get(d, 1.0)) for d, p in closes.items()
    ]


async def test_measures_are_what_they_say(tmp_path: Path) -> None:
    told = datetime(2024, 4, 25, tzinfo=UTC)
    before = a_report(
        date(2023, 3, 31), datetime(2023, 4, 25, tzinfo=UTC), total_revenue=100.0, net_profit=-5.0
    )
    market = FakeMarketDataProvider(
        directory=[a_company(), a_company(code(2))],
        bars=a_share(
            SYMBOL.text,
            {date(2023, 6, 28): 20.0, date(2023, 12, 27): 24.0, date(2024, 3, 28): 10.0, TODAY: 11.0},
            {date(2024, 3, 28): 2.0, TODAY: 2.0},
        ),
        valuations=[a_valuation(TODAY - timedelta(2), pe_ttm=9.0), a_valuation(TODAY - timedelta(1), pb=1.5)],
        reports=[before, a_report(date(2024, 3, 31), told, total_revenue=125.0, net_profit=4.0)],
    )
    for source in (market, lake_of(market, tmp_path)):
        own = (await section(source)).own
        assert (own.pe_ttm, own.pb, own.total_mv) == (None, 1.5, 1e9), "the newest row holds, as it is"
        assert (own.revenue_yoy, own.profit_yoy) == (25.0, None), "from a loss there is no growth"
        assert own.return_1m is None, "nothing was traded near that day"
        assert [own.return_3m, own.return_6m, own.return_12m] == pytest.approx([10.0, -100 / 12, 10.0])


async def test_what_is_too_old_is_no_value(tmp_path: Path) -> None:
    old = TODAY - timedelta(16)
    market = FakeMarketDataProvider(
        directory=[a_company(), a_company(code(2))],
        bars=a_share(code(2), {old - timedelta(20): 10.0, old: 11.0}),
        valuations=[a_valuation(old, symbol=code(2), pb=1.5)],
        reports=[
            a_report(p, AS_OF - timedelta(1), total_revenue=1e8).model_copy(update={"symbol": code(2)})
            for p in (date(2022, 9, 30), date(2023, 9, 30))
        ],
    )
    for source in (market, lake_of(market, tmp_path)):
        found = await section(source)
        assert found.peers == (Peer(symbol=code(2), name=found.peers[0].name),)
        assert set(found.places.values()) == {Place(count=0)}


async def test_peers_are_those_listed_then(tmp_path: Path) -> None:
    market = FakeMarketDataProvider(
        directory=[
            a_company(),
            a_company(code(2), industry="银行"),
            a_company(code(3), list_date=TODAY),
            a_company(code(4), list_date=TODAY + timedelta(1)),
            a_company(code(5), name="幻五(退)", delist_date=TODAY + timedelta(1)),
            a_company(code(6), delist_date=TODAY),
        ]
    )
    for source in (market, lake_of(market, tmp_path)):
        found = await section(source)
        assert [(peer.symbol, peer.name) for peer in found.peers] == [
            (code(3), "幻山酒业"),
            (code(5), "幻五"),
        ]


def test_a_place_is_the_share_of_peers_below() -> None:
    others = [Peer(symbol=code(n), name="", pb=pb) for n, pb in enumerate([1.0, 2.0, 2.0, None, 5.0])]

    def place(pb: float | None) -> Place:
        return find_place("pb", Peer(symbol=code(9), name="", pb=pb), others)

    assert place(2.0) == Place(count=4, median=2.0, percentile=50.0)
    assert [place(pb).percentile for pb in (0.5, 4.0, 9.0, None)] == [0.0, 75.0, 100.0, None]


async def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    market = a_market(random.Random(1))
    lake = lake_of(market, tmp_path)
    peer = (await section(lake)).peers[0].symbol
    keep(lake, VALUATIONS, [a_valuation(TODAY, symbol=peer)], peer)
    (tmp_path / "valuations" / f"{peer}.parquet").write_bytes(b"PAR1 no longer PAR1")
    with pytest.raises(Unavailable, match=peer):
        await section(lake)


async def test_windows_stay_where_they_were_when_a_session_runs_again(tmp_path: Path) -> None:
    """It first ran before the day's figures were out; a month back counts from that day all the same."""
    market, morning = FakeMarketDataProvider(), datetime(2024, 1, 19, 2, tzinfo=UTC)
    market.directory.append(a_company(SYMBOL.text))
    for ago in range(60):
        day = morning.date() - timedelta(ago)
        closed = datetime(day.year, day.month, day.day, 8, tzinfo=UTC)
        market.bars.append(a_bar(day, closed, symbol=SYMBOL.text, price=100.0 - ago))
    lake = lake_of(market, tmp_path)
    later = cast("SyncService", SimpleNamespace(clock=FixedClock(AS_OF)))
    again = SyncedSource(lake, later, Market.DEMO, moment=lambda now: morning)
    sight = Sight(morning, morning.date(), date(2023, 1, 1))
    measured = await lake.measure([SYMBOL.text], sight)
    assert await again.measure([SYMBOL.text], sight) == measured
    assert measured[SYMBOL.text]["return_1m"] == pytest.approx((99 / 69 - 1) * 100)


async def test_the_demo_market_has_peers() -> None:
    found = await section(demo_market(), NOW - timedelta(days=30))
    assert found.own.pb and found.own.return_12m
    assert found.places["return_12m"].count == len(found.peers)

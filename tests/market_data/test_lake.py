"""The lake gives back what was stored, knows what it covers, and says clearly when a file is not its own."""

import asyncio
import os
import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from moot.modules.market_data.domain.facts import (
    BARS,
    COMPANIES,
    DATASETS,
    DIVIDENDS,
    MACRO,
    NEWS,
    REPORTS,
    VALUATIONS,
    Dataset,
)
from moot.modules.market_data.domain.provider import FactStore, MarketDataProvider
from moot.modules.market_data.infrastructure import lake as lake_files
from moot.modules.market_data.infrastructure.lake import Lake
from moot.modules.market_data.infrastructure.lake_sql import Children, LakeDatabase
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.facts import DailyBar, Dividend, NameSince, SpecialTreatment
from moot.shared.domain.symbol import Market
from tests.fakes.market_data import (
    SYMBOL,
    a_bar,
    a_company,
    a_news_item,
    a_report,
    a_valuation,
    an_observation,
)
from tests.market_data.demo import demo_market

AT = datetime(2024, 7, 1, 12, tzinfo=UTC)
EVER = (date.min, date.max)
MONDAY = date(2024, 6, 3)
TUESDAY, WEDNESDAY = MONDAY + timedelta(1), MONDAY + timedelta(2)
NOON = datetime(2024, 6, 3, 12, tzinfo=UTC)
PRICES = ("open", "high", "low", "close", "pre_close")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def keep(lake: Lake, dataset: Dataset[Any], *facts: BaseModel, subject: str = SYMBOL) -> None:
    lake.store(dataset, subject, facts, covered=None, at=AT)


def a_dividend(day: date, **changes: object) -> Dividend:
    bar = a_bar(day)
    fields = {"symbol": SYMBOL, "period_end": day, "announced_on": day, "cash_per_share": 0.25} | changes
    return Dividend(event_time=bar.event_time, available_at=bar.available_at, source="fake", **fields)


EXAMPLES: dict[Dataset[Any], list[BaseModel]] = {
    COMPANIES: [
        a_company(),
        a_company(
            "900002.DEMO",
            delist_date=TUESDAY,
            aliases=("旧名", "Old Name"),
            st_history=(
                SpecialTreatment(start=date(2020, 1, 2), end=MONDAY),
                SpecialTreatment(start=TUESDAY),
            ),
            names=(NameSince(name="旧名", start=date(2004, 6, 18)), NameSince(name="新名", start=MONDAY)),
        ),
    ],
    BARS: [a_bar(MONDAY), a_bar(TUESDAY, suspended=True, volume=0, is_st=True)],
    VALUATIONS: [a_valuation(MONDAY), a_valuation(TUESDAY, pe=-3.5, pb=1.25, circ_mv=5e8)],
    REPORTS: [a_report(MONDAY, NOON), a_report(TUESDAY, NOON, eps=1.5, roic=-2.0)],
    DIVIDENDS: [a_dividend(MONDAY), a_dividend(TUESDAY, ex_date=WEDNESDAY, bonus_per_share=0.1)],
    MACRO: [
        an_observation(MONDAY, NOON),
        an_observation(MONDAY, NOON, industry="白酒"),
        an_observation(TUESDAY, NOON),
    ],
    NEWS: [
        a_news_item(MONDAY, NOON, url="demo://1"),
        a_news_item(MONDAY, NOON, url="demo://2", symbol=None, kind="policy", title_en="A notice"),
        a_news_item(MONDAY, NOON, url="demo://3", kind="announcement"),
    ],
}


async def give_examples(dataset: Dataset[Any]) -> list[BaseModel]:
    """Those above, or the newest of the demo market."""
    subject = SYMBOL if dataset.by_symbol else Market.DEMO
    return EXAMPLES.get(dataset) or list(await demo_market().read(dataset, subject))[-20:]


def test_the_lake_is_a_provider_and_a_store(lake: Lake) -> None:
    provider: MarketDataProvider = lake
    store: FactStore = lake
    assert (provider.name, store.inventory()) == ("lake", [])


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=str)
async def test_every_dataset_comes_back_as_it_was_stored(lake: Lake, dataset: Dataset[Any]) -> None:
    examples = await give_examples(dataset)
    assert len(examples) > 1
    lake.store(dataset, SYMBOL, examples, covered=None, at=AT)
    found = list(await lake.read(dataset, SYMBOL))
    assert found == examples
    assert [fact.model_dump_json() for fact in found] == [fact.model_dump_json() for fact in examples]
    assert [type(value) for fact in found for value in fact.__dict__.values()] == [
        type(value) for fact in examples for value in fact.__dict__.values()
    ]


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=str)
async def test_the_day_of_the_newest_row_is_noted(lake: Lake, dataset: Dataset[Any]) -> None:
    examples = await give_examples(dataset)
    keep(lake, dataset, *examples)
    coverage = lake.coverage(dataset, SYMBOL)
    newest = max(getattr(fact, dataset.day) for fact in examples)
    assert coverage is not None
    assert coverage.newest == {COMPANIES: None, NEWS: MONDAY}.get(dataset, newest)


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=str)
async def test_an_empty_lake_answers_with_nothing(lake: Lake, dataset: Dataset[Any]) -> None:
    assert await lake.read(dataset, SYMBOL) == []
    assert lake.coverage(dataset, SYMBOL) is None


numbers = st.floats(1e-6, 1e12)
microseconds = st.integers(0, 10**15 * 3)


@st.composite
def bars(draw: st.DrawFn) -> DailyBar:
    low, a, b, high = sorted(draw(st.lists(numbers, min_size=4, max_size=4)))
    zone = draw(st.sampled_from([UTC, ZoneInfo("Asia/Shanghai"), ZoneInfo("America/New_York")]))
    volume = draw(st.integers(0, 10**15))
    moment = datetime(1990, 1, 1, tzinfo=UTC) + timedelta(microseconds=draw(microseconds))
    return a_bar(
        draw(st.dates(date(1990, 1, 1), date(2100, 1, 1))),
        moment.astimezone(zone),
        open=a,
        close=b,
        high=high,
        low=low,
        pre_close=draw(numbers),
        volume=volume,
        amount=volume * draw(st.sampled_from([0.0, low, high])),
        adj_factor=draw(numbers),
        suspended=draw(st.booleans()),
    )


@given(facts=st.lists(bars(), max_size=8, unique_by=lambda bar: bar.trade_date))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
async def test_any_bars_come_back_whatever_the_zone_of_their_times(
    tmp_path_factory: pytest.TempPathFactory, facts: list[DailyBar]
) -> None:
    lake = Lake(tmp_path_factory.mktemp("lake"))
    keep(lake, BARS, *facts)
    assert list(await lake.read(BARS, SYMBOL, *EVER)) == sorted(facts, key=lambda bar: bar.trade_date)


async def test_what_is_stored_later_holds_and_the_rest_stays(lake: Lake) -> None:
    keep(lake, BARS, a_bar(TUESDAY, price=10.0), a_bar(MONDAY, price=9.0))
    keep(lake, BARS, a_bar(WEDNESDAY, price=12.0), a_bar(TUESDAY, price=11.0))
    found = await lake.read(BARS, SYMBOL, *EVER)
    assert [(bar.trade_date, bar.close) for bar in found] == [
        (MONDAY, 9.0),
        (TUESDAY, 11.0),
        (WEDNESDAY, 12.0),
    ]
    assert [bar.close for bar in await lake.read(BARS, SYMBOL, TUESDAY, TUESDAY)] == [11.0]


async def test_a_restated_report_is_another_version_and_the_same_one_again_is_not(lake: Lake) -> None:
    later = NOON + timedelta(days=90)
    keep(lake, REPORTS, a_report(MONDAY, NOON, eps=1.0))
    keep(lake, REPORTS, a_report(MONDAY, later, eps=0.8))
    keep(lake, REPORTS, a_report(MONDAY, NOON, eps=1.1))
    assert [(r.available_at, r.eps) for r in await lake.read(REPORTS, SYMBOL)] == [
        (NOON, 1.1),
        (later, 0.8),
    ]


async def test_a_macro_figure_of_an_industry_is_not_that_of_another_nor_of_the_country(lake: Lake) -> None:
    figures = [an_observation(MONDAY, NOON, industry=name) for name in (None, "银行", "白酒")]
    keep(lake, MACRO, *figures, subject="DEMO")
    keep(lake, MACRO, an_observation(MONDAY, NOON, value=9.0), subject="DEMO")
    found = {figure.industry: figure.value for figure in await lake.read(MACRO, "DEMO", *EVER)}
    assert found == {None: 9.0, "银行": 1.5, "白酒": 1.5}


async def test_news_goes_by_the_exchanges_day_and_stays_with_the_symbol_it_came_with(lake: Lake) -> None:
    late = datetime(2024, 6, 3, 15, 59, tzinfo=UTC)  # 23:59 in Shanghai
    keep(
        lake,
        NEWS,
        a_news_item(MONDAY, late, title="own", url="1"),
        a_news_item(MONDAY, late, title="policy", symbol=None, url="2"),
        a_news_item(MONDAY, late + timedelta(minutes=1), title="tomorrow", url="3"),
    )
    other = a_news_item(MONDAY, late, symbol="900002.DEMO", title="other", url="4")
    keep(lake, NEWS, other, subject="900002.DEMO")

    async def titles(symbol: str, day: date) -> list[str]:
        return [item.title for item in await lake.read(NEWS, symbol, day, day)]

    assert await titles(SYMBOL, MONDAY) == ["own", "policy"]
    assert await titles(SYMBOL, TUESDAY) == ["tomorrow"]
    assert await titles("900002.DEMO", MONDAY) == ["other"]
    assert await titles("600519.SH", MONDAY) == []


async def test_a_market_has_its_own_companies_and_figures(lake: Lake) -> None:
    keep(lake, COMPANIES, a_company("AAPL"), subject="US")
    keep(lake, COMPANIES, a_company("600519.SH"), subject="CN")
    keep(lake, MACRO, an_observation(MONDAY, NOON, series="us_cpi"), subject="AAPL")
    assert [company.symbol for company in await lake.read(COMPANIES, "CN")] == ["600519.SH"]
    assert await lake.read(MACRO, "CN", *EVER) == []
    assert [company.symbol for company in await lake.read(COMPANIES, "US")] == ["AAPL"]
    assert [figure.series for figure in await lake.read(MACRO, "US", *EVER)] == ["us_cpi"]


JUNE = (date(2024, 6, 1), date(2024, 6, 30))


@pytest.mark.parametrize(
    ("second", "ranges"),
    [
        ((date(2024, 7, 1), date(2024, 7, 31)), ((date(2024, 6, 1), date(2024, 7, 31)),)),
        ((date(2024, 6, 15), date(2024, 7, 15)), ((date(2024, 6, 1), date(2024, 7, 15)),)),
        ((date(2024, 6, 10), date(2024, 6, 12)), (JUNE,)),
        ((date(2024, 1, 1), date(2024, 12, 31)), ((date(2024, 1, 1), date(2024, 12, 31)),)),
        ((date(2024, 4, 1), date(2024, 4, 30)), ((date(2024, 4, 1), date(2024, 4, 30)), JUNE)),
        (None, (JUNE,)),
    ],
    ids=["adjacent", "overlapping", "within", "around", "disjoint", "none"],
)
def test_covered_days_are_joined_and_never_claimed_in_between(
    lake: Lake, second: tuple[date, date] | None, ranges: tuple[tuple[date, date], ...]
) -> None:
    lake.store(BARS, SYMBOL, [a_bar(MONDAY)], covered=JUNE, at=AT)
    lake.store(BARS, SYMBOL, [], covered=second, at=AT)
    coverage = lake.coverage(BARS, SYMBOL)
    assert coverage is not None
    assert coverage.ranges == ranges


def test_coverage_tells_rows_sources_and_age(lake: Lake) -> None:
    keep(lake, BARS, a_bar(MONDAY), a_bar(TUESDAY))
    later = AT + timedelta(hours=1)
    second = a_bar(TUESDAY).model_copy(update={"source": "another"})
    lake.store(BARS, SYMBOL, [second], covered=(MONDAY, TUESDAY), at=later)
    coverage = lake.coverage(BARS, SYMBOL)
    assert coverage is not None
    assert (coverage.dataset, coverage.subject) == ("bars", SYMBOL)
    assert (coverage.rows, coverage.sources, coverage.stored_at) == (2, ("another", "fake"), later)
    assert lake.inventory() == [coverage]


def test_days_without_any_fact_are_covered_too(lake: Lake) -> None:
    lake.store(BARS, SYMBOL, [], covered=JUNE, at=AT)
    coverage = lake.coverage(BARS, SYMBOL)
    assert coverage is not None
    assert (coverage.rows, coverage.ranges) == (0, (JUNE,))


@pytest.mark.parametrize("subject", ["../../etc/passwd", "a/b", "", "900001.DEMO\0", ".", "~"])
async def test_what_is_not_a_symbol_names_no_file(lake: Lake, tmp_path: Path, subject: str) -> None:
    with pytest.raises(InvalidInput):
        keep(lake, BARS, subject=subject)
    with pytest.raises(InvalidInput):
        await lake.read(BARS, subject, *EVER)
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("subject", ["900002.DEMO", Market.DEMO])
def test_a_fact_of_another_symbol_is_refused_and_nothing_stored(lake: Lake, subject: str) -> None:
    with pytest.raises(InvalidInput, match=r"900001\.DEMO came with those of"):
        keep(lake, BARS, a_bar(MONDAY), subject=subject)
    assert lake.inventory() == []


def test_a_fact_of_another_kind_is_a_defect(lake: Lake) -> None:
    with pytest.raises(TypeError, match="DailyValuation is not a DailyBar"):
        keep(lake, BARS, a_valuation(MONDAY))


def spoil(path: Path, how: str) -> None:
    whole = path.read_bytes()
    if how == "foreign":
        pl.DataFrame({"a": [1]}).write_parquet(path)
    else:
        path.write_bytes({"text": b"a,b\n1,2\n", "empty": b"", "half": whole[: len(whole) // 2]}[how])


@pytest.mark.parametrize("how", ["text", "empty", "half", "foreign"])
async def test_a_file_that_is_not_the_lakes_is_named_with_what_to_do(
    lake: Lake, tmp_path: Path, how: str
) -> None:
    keep(lake, BARS, a_bar(MONDAY))
    keep(lake, VALUATIONS, a_valuation(MONDAY))
    path = tmp_path / "lake" / "bars" / f"{SYMBOL}.parquet"
    assert len(await lake.read(BARS, SYMBOL, *EVER)) == 1
    spoil(path, how)
    advice = rf"{path} cannot be read \(.+\)\. Delete it and run `moot data sync`"
    with pytest.raises(Unavailable, match=advice) as raised:
        await lake.read(BARS, SYMBOL, *EVER)
    assert raised.value.details == {"file": str(path)}
    with pytest.raises(Unavailable, match=advice):
        lake.coverage(BARS, SYMBOL)
    with pytest.raises(Unavailable, match=advice):
        keep(lake, BARS, a_bar(TUESDAY))
    children = Children(seconds=120.0)
    database = LakeDatabase(tmp_path / "lake", children)
    with pytest.raises(Unavailable, match=advice):
        await database.answer(
            "SELECT * FROM bars", lambda _: asyncio.sleep(0, []), as_of=AT, most=1, workspace="default"
        )
    await children.close()
    assert [(row.dataset, row.rows, row.damaged) for row in lake.inventory()] == [
        ("bars", 0, True),
        ("valuations", 1, False),
    ]
    assert len(await lake.read(VALUATIONS, SYMBOL, *EVER)) == 1
    path.unlink()
    keep(lake, BARS, a_bar(MONDAY))
    assert len(await lake.read(BARS, SYMBOL, *EVER)) == 1


async def test_what_a_killed_writer_left_is_not_read_and_gone_after_the_next_store(
    lake: Lake, tmp_path: Path
) -> None:
    folder = tmp_path / "lake" / "bars"
    folder.mkdir(parents=True)
    stray = folder / f".{SYMBOL}.parquet.tmp"
    stray.write_bytes(b"half a file")
    assert await lake.read(BARS, SYMBOL, *EVER) == []
    assert lake.inventory() == []
    keep(lake, BARS, a_bar(MONDAY))
    assert not stray.exists()
    assert len(await lake.read(BARS, SYMBOL, *EVER)) == 1


def test_file_and_folder_are_on_the_disk_before_a_store_returns(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda number: synced.append(str(Path(f"/proc/self/fd/{number}").readlink()))
    )
    keep(lake, BARS, a_bar(MONDAY))
    folder = tmp_path / "lake" / "bars"
    assert synced == [str(folder / f".{SYMBOL}.parquet.tmp"), str(folder)]


async def test_a_file_from_before_the_model_got_a_column_is_read(lake: Lake, tmp_path: Path) -> None:
    keep(lake, VALUATIONS, a_valuation(MONDAY, pe=12.0, turnover_rate=1.0))
    path = tmp_path / "lake" / "valuations" / f"{SYMBOL}.parquet"
    note = {"moot.coverage": pl.read_parquet_metadata(path)["moot.coverage"]}
    pl.read_parquet(path).drop("turnover_rate").write_parquet(path, metadata=note)
    assert list(await lake.read(VALUATIONS, SYMBOL, *EVER)) == [a_valuation(MONDAY, pe=12.0)]


async def test_a_file_is_opened_once_for_all_its_parts_and_again_when_it_has_changed(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    scan = pl.scan_parquet
    monkeypatch.setattr(
        pl, "scan_parquet", lambda paths, **how: [opened.extend(paths), scan(paths, **how)][1]
    )
    other, path = Lake(tmp_path / "lake"), tmp_path / "lake" / "bars" / f"{SYMBOL}.parquet"
    other.store(BARS, SYMBOL, [a_bar(MONDAY)], covered=(MONDAY, MONDAY), at=AT)
    before = path.read_bytes()
    assert [len(await lake.read(BARS, SYMBOL, day, day)) for day in (MONDAY, TUESDAY)] == [1, 0]
    assert opened == [path]
    other.store(BARS, SYMBOL, [a_bar(TUESDAY)], covered=(TUESDAY, TUESDAY), at=AT)
    assert [len(await lake.read(BARS, SYMBOL, day, day)) for day in (MONDAY, TUESDAY)] == [1, 1]
    coverage = lake.coverage(BARS, SYMBOL)
    assert coverage and coverage.rows == 2 and coverage.ranges == ((MONDAY, TUESDAY),)
    path.write_bytes(before)
    assert [len(await lake.read(BARS, SYMBOL, day, day)) for day in (MONDAY, TUESDAY)] == [1, 0]


DAYS = [MONDAY + timedelta(n) for n in range(12)]
MANY: dict[Dataset[Any], list[BaseModel]] = {
    BARS: [a_bar(day) for day in DAYS],
    NEWS: [a_news_item(MONDAY, NOON + timedelta(hours=7 * n), url=f"demo://{n}") for n in range(36)],
    REPORTS: [a_report(day, AT) for day in DAYS],
}


@pytest.mark.parametrize("few", [1000, 0], ids=["at once", "in a thread"])
@pytest.mark.parametrize("dataset", MANY, ids=str)
async def test_parts_are_what_they_are_in_whatever_order_they_are_asked_for(
    lake: Lake, dataset: Dataset[Any], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_files, "FEW", few)
    keep(lake, dataset, *MANY[dataset])
    chance = random.Random(7)
    for _ in range(40):
        start, end = chance.choice(DAYS), chance.choice(DAYS)
        days = [(getattr(fact, dataset.day), fact) for fact in MANY[dataset]]
        inside = [fact for day, fact in days if dataset.covers(day, start, end, Market.DEMO)]
        assert list(await lake.read(dataset, SYMBOL, start, end)) == inside

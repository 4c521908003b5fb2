"""Every real row becomes a fact: suspended days, losses and blanks included. Bad rows go alone."""

import gzip
from collections.abc import Callable
from datetime import date
from pathlib import Path
from shutil import copyfile

import polars as pl
import pytest

from moot.modules.market_data.domain.facts import BARS, REPORTS, VALUATIONS
from moot.modules.market_data.domain.provider import Batch
from moot.modules.market_data.infrastructure.providers.files import FilesProvider
from moot.modules.research.container import ResearchContainer
from moot.shared.domain.facts import DailyBar
from tests.measured.real_market import EVER, HERE, RealMarket, at

Edit = Callable[[pl.DataFrame], pl.DataFrame]
MAOTAI = "600519.SH"
DAY = date(2021, 6, 25)


async def reread(rows: pl.DataFrame, folder: Path) -> Batch[DailyBar]:
    (folder / "daily.csv.gz").write_bytes(gzip.compress(rows.write_csv().encode()))
    mapping = Path(copyfile(HERE / "moot-data.yaml", folder / "moot-data.yaml"))
    return await FilesProvider(mapping).read(BARS, rows["ts_code"][0], *EVER)


def on_the_day(**changes: pl.Expr) -> Edit:
    def edit(rows: pl.DataFrame) -> pl.DataFrame:
        chosen = pl.col("date") == DAY
        return rows.with_columns(
            **{name: pl.when(chosen).then(to).otherwise(name) for name, to in changes.items()}
        )

    return edit


def test_no_row_is_lost(market: RealMarket) -> None:
    for symbol, source in market.sources.items():
        rows = market.rows(symbol)
        assert [bar.trade_date for bar in source.bars] == rows["date"].to_list()
        assert [day.trade_date for day in source.valuations] == rows["date"].to_list()
        assert [bar.close for bar in source.bars] == rows["close"].to_list()
        assert [day.pe_ttm for day in source.valuations] == rows["peTTM"].to_list()
    assert sum(len(source.bars) for source in market.sources.values()) == market.daily.height == 28_992
    assert sum(len(source.reports) for source in market.sources.values()) == market.reports.height == 1_316


async def test_no_row_is_refused(market: RealMarket) -> None:
    for symbol in market.sources:
        bars = await market.files.read(BARS, symbol, *EVER)
        valuations = await market.files.read(VALUATIONS, symbol, *EVER)
        reports = await market.files.read(REPORTS, symbol)
        assert (bars.refused, valuations.refused, reports.refused) == ((), (), ())


def test_a_day_without_trading_is_a_suspended_bar(market: RealMarket) -> None:
    theirs = market.daily.filter(pl.col("tradestatus") == 0).select("ts_code", "date").rows()
    ours = [bar for source in market.sources.values() for bar in source.bars if bar.suspended]
    assert sorted((bar.symbol, bar.trade_date) for bar in ours) == sorted(theirs)
    assert len(ours) == 43
    assert {(bar.volume, bar.amount, bar.close == bar.pre_close) for bar in ours} == {(0, 0.0, True)}


def test_negative_pe_is_kept(market: RealMarket) -> None:
    days = [day for source in market.sources.values() for day in source.valuations]
    assert sum(day.pe_ttm is not None and day.pe_ttm < 0 for day in days) == 689


async def test_an_st_day_is_marked(market: RealMarket, tmp_path: Path) -> None:
    assert not any(bar.is_st for source in market.sources.values() for bar in source.bars)
    bars = await reread(on_the_day(isST=pl.lit(1))(market.rows(MAOTAI)), tmp_path)
    assert [bar.trade_date for bar in bars if bar.is_st] == [DAY]


@pytest.mark.parametrize(
    "spoil",
    [
        on_the_day(close=pl.lit(float("nan"))),
        on_the_day(low=-pl.col("low")),
        on_the_day(high=pl.col("low") / 2),
        on_the_day(volume=pl.col("volume") / 100),
        lambda rows: pl.concat([rows, rows.filter(pl.col("date") == DAY)]),
    ],
    ids=["nan", "negative price", "high below low", "lots for shares", "twice"],
)
async def test_a_bad_row_is_refused_by_name_and_takes_no_good_one_with_it(
    market: RealMarket, tmp_path: Path, spoil: Edit
) -> None:
    rows = market.rows(MAOTAI)
    bars = await reread(spoil(rows), tmp_path)
    (refusal,) = bars.refused
    assert "2021-06-25" in refusal.row
    assert {bar.trade_date for bar in bars} | {DAY} == set(rows["date"])
    assert len(bars) >= rows.height - 1


@pytest.mark.parametrize(
    ("symbol", "day", "last_traded"),
    [
        ("600900.SH", date(2021, 12, 10), date(2021, 11, 26)),
        ("000425.SZ", date(2022, 8, 10), date(2022, 7, 29)),
    ],
)
async def test_the_technical_analyst_sees_traded_days_only(
    market: RealMarket, symbol: str, day: date, last_traded: date
) -> None:
    analyst = ResearchContainer(market.reading(symbol)).service("technical_analyst")
    seen = (await analyst.run(symbol, day, as_of=at(day, 20), locale="zh-CN"))["technical_indicators"]
    year = market.rows(symbol).filter(pl.col("date").is_between(day.replace(year=day.year - 1), day))
    assert seen["bars"] == year.filter(pl.col("tradestatus") == 1).height < year.height
    assert seen["last_trade_date"] == last_traded.isoformat()
    assert seen["days_since_last_trade"] == (day - last_traded).days

"""Series that meet in the lake are brought to one base of factors, whatever their order; or refused by name."""

import os
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.application.upkeep import MarketDataUpkeep
from moot.modules.market_data.container import MarketDataContainer, Sources
from moot.modules.market_data.domain.facts import BARS
from moot.modules.market_data.domain.provider import Range
from moot.modules.market_data.domain.trading_rules import trading_calendar
from moot.modules.market_data.infrastructure.lake import Lake
from moot.modules.market_data.infrastructure.providers.files import read_import
from moot.shared.domain.errors import Conflict
from moot.shared.domain.facts import DailyBar
from moot.shared.domain.messages import LOCALES
from moot.shared.domain.symbol import Market, Symbol
from tests.fakes.call_record import Record
from tests.fakes.clock import FixedClock
from tests.fakes.market_data import a_bar

DATA = Path(os.environ.get("MOOT_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
GOLDEN = DATA / "indicator_golden" / "stk_factor_2024.csv.gz"
PRICES = DATA / "ashare_daily" / "daily_valuation_40.csv.gz"
CODE = "600519.SH"
LATER = datetime(2026, 6, 30, 12, tzinfo=UTC)
DAYS = trading_calendar(Market.CN).sessions(date(2024, 1, 2), date(2024, 1, 31))
EX = {DAYS[5]: 0.5, DAYS[12]: 0.98}
"""On these days the reference price is that part of the close before."""


def a_series(source: str = "files", days: list[date] = DAYS) -> list[DailyBar]:
    """A share that rises by one cent a day; its factors follow from its reference prices and start at 1."""
    bars, close, factor = [], 20.0, 1.0
    for day in days:
        reference = round(close * EX.get(day, 1.0), 2)
        factor *= close / reference
        close = round(reference + 0.01, 2)
        prices = dict.fromkeys(("open", "high", "low", "close"), close)
        told = {"pre_close": reference, "adj_factor": factor, "amount": 100 * close}
        bars.append(a_bar(day, symbol=CODE, **prices, **told).model_copy(update={"source": source}))
    return bars


def rebase(bars: list[DailyBar], by: float, source: str | None = None) -> list[DailyBar]:
    return [
        bar.model_copy(update={"adj_factor": bar.adj_factor * by, "source": source or bar.source})
        for bar in bars
    ]


def keep(lake: Lake, bars: list[DailyBar], covered: Range | None = None) -> None:
    lake.store(BARS, CODE, bars, covered=covered, at=LATER)


async def read_adjusted(lake: Lake, symbol: str = CODE) -> list[float]:
    data = MarketData({Market.CN: lake})
    ever = (date(1991, 1, 1), date(2026, 1, 1))
    return [bar.close for bar in await data.daily_bars(Symbol.parse(symbol), *ever, as_of=LATER)]


async def adjusted(tmp_path: Path, *pieces: list[DailyBar]) -> list[float]:
    lake = Lake(tmp_path)
    for piece in pieces:
        keep(lake, piece)
    return await read_adjusted(lake)


@st.composite
def cuts(draw: st.DrawFn) -> list[tuple[int, int, float]]:
    """Two or three pieces, each from a day to another, which may overlap, and the base of each; in any order."""
    edges = sorted(draw(st.sets(st.integers(1, len(DAYS) - 1), min_size=1, max_size=2)))
    pieces = []
    for start, end in zip([0, *edges], [*edges, len(DAYS)], strict=True):
        longer = draw(st.integers(0, 4))
        pieces.append((start, min(end + longer, len(DAYS)), draw(st.floats(0.01, 100.0))))
    return draw(st.permutations(pieces))


@given(pieces=cuts())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
async def test_pieces_on_any_base_in_any_order_make_the_whole(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[tuple[int, int, float]]
) -> None:
    whole, lake = a_series(), Lake(tmp_path_factory.mktemp("lake"))
    waiting = [rebase(whole[start:end], by) for start, end, by in pieces]
    while waiting:  # one that is refused for a gap comes again when the days between are there
        refused = []
        for piece in waiting:
            try:
                keep(lake, piece)
            except Conflict:
                refused.append(piece)
        assert len(refused) < len(waiting)
        waiting = refused
    last = whole[-1].adj_factor
    expected = [bar.close * bar.adj_factor / last for bar in whole]
    assert await read_adjusted(lake) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("order", ["WI", "IW", "WTI", "TW", "TWI", "WIWT"])
async def test_a_piece_inside_another_and_one_told_twice_change_nothing(tmp_path: Path, order: str) -> None:
    whole = a_series()
    pieces = {"W": whole, "I": rebase(whole[3:9], 7.5), "T": rebase(whole[12:], 0.3, "tushare")}
    mixed = await adjusted(tmp_path / "mixed", *(pieces[name] for name in order))
    assert mixed == pytest.approx(await adjusted(tmp_path / "once", whole), rel=1e-12)


async def test_the_same_file_again_leaves_every_byte_of_the_facts(tmp_path: Path) -> None:
    lake, whole = Lake(tmp_path), a_series()
    keep(lake, whole[:10])
    keep(lake, rebase(whole[10:], 3.0))
    before = list(await lake.read(BARS, CODE))
    keep(lake, rebase(whole[10:], 3.0))
    again = list(await lake.read(BARS, CODE))
    assert [bar.close for bar in again] == [bar.close for bar in before]
    assert [bar.adj_factor for bar in again] == pytest.approx([bar.adj_factor for bar in before], rel=1e-15)


async def test_a_source_that_counts_from_the_listing_keeps_its_own_factors(tmp_path: Path) -> None:
    """Its factors are finer than the rounded reference prices: a day appended on an ex-right day is not moved."""
    lake, finer = Lake(tmp_path), rebase(a_series("tushare"), 8.125)
    exact = [bar.adj_factor * (1.0001 if bar.trade_date >= DAYS[5] else 1.0) for bar in finer]
    told = [bar.model_copy(update={"adj_factor": f}) for bar, f in zip(finer, exact, strict=True)]
    for bar in told:
        keep(lake, [bar], covered=(bar.trade_date, bar.trade_date))
    assert [bar.adj_factor for bar in await lake.read(BARS, CODE)] == exact


async def test_a_source_asked_for_days_far_apart_stays_on_its_base(tmp_path: Path) -> None:
    lake, told = Lake(tmp_path), a_series("tushare")
    keep(lake, told[:4])
    keep(lake, told[9:])
    assert [bar.adj_factor for bar in await lake.read(BARS, CODE)] == [
        bar.adj_factor for bar in (*told[:4], *told[9:])
    ]


async def test_a_file_with_the_same_factor_on_both_sides_of_a_gap_has_one_base(tmp_path: Path) -> None:
    """As a table with factors and no reference prices, whose first row each year cannot be read."""
    lake, told = Lake(tmp_path), rebase(a_series()[6:12], 8.125)
    keep(lake, told[:2])
    keep(lake, told[3:])
    assert {bar.adj_factor for bar in await lake.read(BARS, CODE)} == {told[0].adj_factor}


async def test_a_suspension_that_is_known_is_no_gap(tmp_path: Path) -> None:
    """The share did not trade from the fifth to the seventh day, and went ex when it came back."""
    lake = Lake(tmp_path)
    traded = a_series(days=[*DAYS[:4], *DAYS[7:]])
    keep(lake, traded[:4], covered=(DAYS[0], DAYS[6]))
    keep(lake, rebase(traded[4:], 2.0), covered=(DAYS[7], DAYS[-1]))
    assert [b.adj_factor for b in await lake.read(BARS, CODE)] == pytest.approx(
        [b.adj_factor for b in traded]
    )


REFUSED = {
    "gap": lambda: (a_series()[:5], a_series("tushare")[8:], [DAYS[4], DAYS[8]]),
    "gap between files": lambda: (a_series()[:5], rebase(a_series()[8:], 0.4), [DAYS[4], DAYS[8]]),
    "closes": lambda: (
        a_series()[:8],
        [bar.model_copy(update={"close": bar.close * 1.02}) for bar in a_series("tushare")[6:]],
        [DAYS[6], "10.25"],
    ),
    "steps": lambda: (
        a_series()[:8],
        [bar.model_copy(update={"adj_factor": 1.0}) for bar in a_series("tushare")[3:]],
        [DAYS[5], "1.9990"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_cannot_be_brought_to_one_base_is_refused_by_name_and_costs_nothing(
    tmp_path: Path, case: str
) -> None:
    lake = Lake(tmp_path)
    kept, told, words = REFUSED[case]()
    keep(lake, kept)
    with pytest.raises(Conflict) as caught:
        keep(lake, told)
    for locale in LOCALES:
        said = caught.value.in_locale(locale)
        assert all(str(word) in said for word in (CODE, "files", *words)), said
        assert "bars/600519.SH.parquet" in said
    assert len(await lake.read(BARS, CODE)) == len(kept)


async def test_what_replaces_all_that_is_kept_may_correct_it(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    keep(lake, [bar.model_copy(update={"close": bar.close * 1.1}) for bar in a_series()[2:5]])
    keep(lake, a_series())
    assert list(await lake.read(BARS, CODE)) == a_series()


def importing(home: Path) -> MarketDataUpkeep:
    nowhere = Sources(SecretStr(""), "")
    return MarketDataContainer(
        FixedClock(LATER), demo_seed=1, lake=home, sources=nowhere, calls=Record()
    ).imports()


HEADER = "ts_code,trade_date,open,high,low,close,pre_close,vol,amount\n"


def write(path: Path, *lines: tuple[str, date, float, float]) -> Path:
    rows = [f"{code},{day},{c},{c},{c},{c},{pre},100,{100 * c}" for code, day, pre, c in lines]
    path.write_text(HEADER + "\n".join(rows))
    return path


async def test_an_import_refuses_the_share_that_does_not_meet_and_takes_the_others(tmp_path: Path) -> None:
    desk, other = importing(tmp_path / "lake"), "000001.SZ"
    one = write(tmp_path / "1.csv", (CODE, DAYS[0], 10, 10), (other, DAYS[0], 5, 5))
    two = write(
        tmp_path / "2.csv", (CODE, DAYS[0], 10, 11), (CODE, DAYS[1], 11, 11), (other, DAYS[1], 2.5, 2.5)
    )
    tail = write(tmp_path / "3.csv", (CODE, DAYS[5], 11, 11), (other, DAYS[2], 2.5, 2.5))
    await desk.bring_in(write(tmp_path / "0.csv", (CODE, date(2023, 12, 29), 10, 10)), None)
    for file, refused in ((one, 0), (two, 1), (tail, 1)):
        (done,) = (await desk.bring_in(file, None)).done
        assert (done.rows, len(done.refused)) == ((1, 1) if refused else (2, 0))
    found = await Lake(tmp_path / "lake").read(BARS, other)
    assert [(bar.trade_date, bar.adj_factor) for bar in found] == [(DAYS[0], 1), (DAYS[1], 2), (DAYS[2], 2)]


async def test_a_share_suspended_over_new_year_is_no_gap_between_files_of_several(tmp_path: Path) -> None:
    """The other shares of a file tell how far it reaches; for a month, a silent one is taken to be suspended."""
    desk, other = importing(tmp_path / "lake"), "000001.SZ"
    days = trading_calendar(Market.CN).sessions(date(2023, 12, 1), date(2024, 1, 31))
    old, new = ([day for day in days if day.year == year] for year in (2023, 2024))
    for name, own, all_days, pre in (("old", old[:-4], old, 10), ("new", new[3:], new, 5)):
        lines = [
            (CODE, day, pre if day == own[0] else 5 if pre == 5 else 10, 5 if pre == 5 else 10) for day in own
        ]
        await desk.bring_in(
            write(tmp_path / f"{name}.csv", *lines, *((other, d, 3, 3) for d in all_days)), None
        )
    bars = await MarketData({Market.CN: Lake(tmp_path / "lake")}).daily_bars(
        Symbol.parse(CODE), days[0], days[-1], as_of=LATER
    )
    assert [bar.trade_date for bar in bars] == days
    assert [bar.trade_date for bar in bars if bar.suspended] == [*old[-4:], *new[:3]]
    assert {bar.close for bar in bars} == {5.0}


async def test_a_share_that_is_silent_for_long_at_the_end_of_a_file_is_not_taken_for_suspended(
    tmp_path: Path,
) -> None:
    days = trading_calendar(Market.CN).sessions(date(2023, 1, 3), date(2024, 1, 31))
    file = write(tmp_path / "bars.csv", (CODE, days[0], 10, 10), *(("000001.SZ", day, 3, 3) for day in days))
    await importing(tmp_path / "lake").bring_in(file, None)
    kept = Lake(tmp_path / "lake").coverage(BARS, CODE)
    assert kept and kept.ranges == ((days[0], date(2023, 2, 2)),)


@pytest.mark.skipif(not PRICES.exists(), reason="real prices are in ../shared/data only")
async def test_yearly_files_of_real_shares_equal_one_file_to_the_cent(tmp_path: Path) -> None:
    symbols = ["600519.SH", "000002.SZ", "000425.SZ", "300059.SZ", "688981.SH"]
    real = pl.read_csv(PRICES, infer_schema=False).filter(pl.col("ts_code").is_in(symbols))
    years = ("2020", "2021", "2022")
    files = {"whole": real} | {y: real.filter(pl.col("date").str.starts_with(y)) for y in years}
    for name, frame in files.items():
        frame.write_csv(tmp_path / f"{name}.csv")
    found = []
    for number, order in enumerate([("whole",), years, years[::-1]]):
        desk = importing(tmp_path / str(number))
        for name in order:
            await desk.bring_in(tmp_path / f"{name}.csv", None)
        found.append(
            {symbol: await read_adjusted(Lake(tmp_path / str(number)), symbol) for symbol in symbols}
        )
    for symbol in symbols:
        assert len(found[0][symbol]) >= 600
        assert found[1][symbol] == pytest.approx(found[0][symbol], abs=1e-9)
        assert found[2][symbol] == pytest.approx(found[0][symbol], abs=1e-9)


@pytest.mark.skipif(not GOLDEN.exists(), reason="Tushare's real factors are in ../shared/data only")
async def test_a_file_and_tushare_equal_the_file_alone_to_the_cent(tmp_path: Path) -> None:
    """Every real ex-right day of a year, whether one, the other or the seam between them tells it."""
    real = pl.read_csv(GOLDEN, infer_schema=False)
    theirs = {
        (s, date.fromisoformat(d)): float(f) for s, d, f in real["ts_code", "trade_date", "adj_factor"].rows()
    }
    real.select(HEADER.strip().split(",")).write_csv(tmp_path / "year.csv")
    bars = read_import(tmp_path / "year.csv")[0][BARS]
    for symbol in ("000001.SZ", "000333.SZ", "000425.SZ", "000568.SZ"):
        own = [bar for bar in bars if bar.symbol == symbol]
        told = [
            bar.model_copy(update={"adj_factor": theirs[symbol, bar.trade_date], "source": "tushare"})
            for bar in own
        ]
        ex = next(n for n in range(1, len(own)) if own[n].pre_close != own[n - 1].close)
        expected = [bar.close * bar.adj_factor / own[-1].adj_factor for bar in own]
        for number, pieces in enumerate(
            [(own[:ex], told[ex:]), (told[ex:], own[:ex]), (told[: ex + 9], own[ex - 9 :]), (own[:50], told)]
        ):
            lake = Lake(tmp_path / f"{number}")
            for piece in pieces:
                lake.store(BARS, symbol, piece, covered=None, at=LATER)
            assert await read_adjusted(lake, symbol) == pytest.approx(expected, abs=0.01)

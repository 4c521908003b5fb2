"""Price limits, lots and settlement, each on the days on which they changed."""

import csv
import gzip
import os
from collections import Counter
from datetime import date, datetime
from pathlib import Path

import pytest

from moot.modules.market_data.domain.trading_rules import (
    LOTS,
    SETTLEMENT,
    Board,
    LimitBand,
    board_of,
    is_limit_down,
    is_limit_up,
    price_limit,
    trading_calendar,
)
from moot.shared.domain.symbol import Market, Symbol
from tests.fakes.market_data import a_bar
from tests.market_data.demo import Snapshot

DATA = Path(os.environ.get("MOOT_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
CN = trading_calendar(Market.CN)
LONG_AGO = date(2012, 1, 4)
BAND_10, BAND_5, BAND_20, FIRST_DAY = LimitBand(10, 10), LimitBand(5, 5), LimitBand(20, 20), LimitBand(44, 36)
BAND_30 = LimitBand(30, 30, inward=True)


def band(symbol: str, day: date, listed_on: date = LONG_AGO, *, is_st: bool = False) -> LimitBand | None:
    return price_limit(a_bar(day, symbol=symbol, is_st=is_st), listed_on, CN)


@pytest.mark.parametrize(
    ("symbol", "board"),
    [
        ("600519.SH", Board.MAIN),
        ("000001.SZ", Board.MAIN),
        ("002594.SZ", Board.MAIN),
        ("300750.SZ", Board.CHINEXT),
        ("301001.SZ", Board.CHINEXT),
        ("302132.SZ", Board.CHINEXT),
        ("688981.SH", Board.STAR),
        ("689009.SH", Board.STAR),
        ("430047.BJ", Board.BSE),
        ("830799.BJ", Board.BSE),
        ("920002.BJ", Board.BSE),
        ("900001.DEMO", Board.DEMO),
        ("AAPL", None),
        ("900901.SH", None),
        ("510300.SH", None),
    ],
)
def test_a_code_tells_its_board(symbol: str, board: Board | None) -> None:
    assert board_of(Symbol.parse(symbol)) == board


@pytest.mark.parametrize(
    ("symbol", "day", "is_st", "expected"),
    [
        ("600519.SH", date(2024, 6, 3), False, BAND_10),
        ("300750.SZ", date(2020, 8, 21), False, BAND_10),
        ("300750.SZ", date(2020, 8, 24), False, BAND_20),
        ("688981.SH", date(2024, 6, 3), False, BAND_20),
        ("430047.BJ", date(2021, 11, 15), False, BAND_30),
        ("600518.SH", date(2026, 7, 3), True, BAND_5),
        ("600518.SH", date(2026, 7, 6), True, BAND_10),
        ("000711.SZ", date(2026, 7, 3), True, BAND_5),
        ("000711.SZ", date(2026, 7, 6), True, BAND_10),
        ("300117.SZ", date(2024, 6, 3), True, BAND_20),
        ("688086.SH", date(2024, 6, 3), True, BAND_20),
        ("920002.BJ", date(2024, 6, 3), True, BAND_30),
        ("AAPL", date(2024, 6, 3), False, None),
    ],
)
def test_the_band_of_a_day(symbol: str, day: date, is_st: bool, expected: LimitBand | None) -> None:
    assert band(symbol, day, is_st=is_st) == expected


def test_prices_were_free_before_the_limits_came() -> None:
    assert band("600601.SH", date(1996, 12, 13), date(1990, 12, 19)) is None
    assert band("600601.SH", date(1996, 12, 16), date(1990, 12, 19)) == BAND_10


@pytest.mark.parametrize(
    ("symbol", "listed_on", "by_session"),
    [
        ("601009.SH", date(2007, 7, 19), [None, BAND_10]),
        ("600025.SH", date(2017, 12, 15), [FIRST_DAY, BAND_10]),
        ("001367.SZ", date(2023, 4, 7), [FIRST_DAY, BAND_10]),
        ("601061.SH", date(2023, 4, 10), [None] * 5 + [BAND_10]),
        ("300860.SZ", date(2020, 8, 21), [FIRST_DAY, BAND_20]),
        ("300861.SZ", date(2020, 8, 24), [None] * 5 + [BAND_20]),
        ("688981.SH", date(2020, 7, 16), [None] * 5 + [BAND_20]),
        ("301613.SZ", date(2024, 9, 27), [None] * 5 + [BAND_20]),  # the week of National Day lies between
        ("920002.BJ", date(2024, 10, 8), [None, BAND_30]),
    ],
)
def test_the_first_sessions_after_listing(
    symbol: str, listed_on: date, by_session: list[LimitBand | None]
) -> None:
    days = [listed_on]
    while len(days) < len(by_session):
        days.append(CN.next_session(days[-1]))
    assert [band(symbol, day, listed_on) for day in days] == by_session


@pytest.mark.parametrize(
    ("limit", "pre_close", "low", "high"),
    [
        (BAND_10, 10.0, 9.0, 11.0),
        (BAND_10, 10.05, 9.05, 11.06),  # 9.045 and 11.055: half goes up
        (BAND_10, 4.35, 3.92, 4.79),
        (BAND_5, 1.11, 1.05, 1.17),
        (BAND_5, 1.1, 1.05, 1.16),  # 1.045 and 1.155
        (BAND_20, 33.33, 26.66, 40.0),
        (FIRST_DAY, 7.19, 4.6, 10.35),
        (BAND_30, 84.63, 59.25, 110.01),  # 59.241 and 110.019, cut inward
        (BAND_30, 0.7, 0.49, 0.91),
        (BAND_5, 0.09, 0.08, 0.1),  # at least a tick
        (BAND_10, 0.01, 0.01, 0.02),
    ],
)
def test_limit_prices_are_exact_to_the_fen(
    limit: LimitBand, pre_close: float, low: float, high: float
) -> None:
    assert limit.prices(pre_close) == (low, high)


@pytest.mark.parametrize(
    ("close", "up", "down"),
    [(11.06, True, False), (11.05, False, False), (9.05, False, True), (9.06, False, False)],
)
def test_a_close_at_the_limit_is_told(close: float, up: bool, down: bool) -> None:
    bar = a_bar(date(2024, 6, 3), open=10.0, high=11.06, low=9.05, close=close, pre_close=10.05)
    assert (is_limit_up(bar, BAND_10), is_limit_down(bar, BAND_10)) == (up, down)
    assert not is_limit_up(bar, None)
    assert not is_limit_down(bar, None)


def test_a_suspended_day_reaches_no_limit() -> None:
    bar = a_bar(date(2024, 6, 3), price=11.0, pre_close=10.0, volume=0, suspended=True)
    assert not is_limit_up(bar, BAND_10)


def test_lots_and_settlement() -> None:
    assert LOTS == {Board.MAIN: 100, Board.CHINEXT: 100, Board.STAR: 200, Board.BSE: 100, Board.DEMO: 100}
    assert SETTLEMENT == {Market.CN: 1, Market.DEMO: 1, Market.US: 0}


def test_the_demo_market_keeps_its_limits(demo: Snapshot) -> None:
    for listing in demo.listings.values():
        for bar in listing.traded:
            limit = price_limit(bar, listing.company.list_date, trading_calendar(Market.DEMO))
            assert limit is not None
            low, high = limit.prices(bar.pre_close)
            assert low <= bar.low <= bar.high <= high


def test_real_prices_stay_within_their_bands() -> None:
    prices = DATA / "ashare_daily" / "daily_valuation_40.csv.gz"
    if not prices.exists():
        pytest.skip(f"no real prices at {prices}")
    listed_on = real_list_dates()
    seen: Counter[str] = Counter()
    with gzip.open(prices, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["tradestatus"] == "1":
                seen[verdict(row, listed_on[row["ts_code"]])] += 1
    assert seen == {"within": 28_944, "free": 5}  # the five first days of a STAR share


def verdict(row: dict[str, str], listed_on: date) -> str:
    day = date.fromisoformat(row["date"])
    limit = band(row["ts_code"], day, listed_on, is_st=row["isST"] == "1")
    if limit is None:
        return "free"
    low, high = limit.prices(float(row["preclose"]))
    return "within" if low <= float(row["low"]) <= float(row["high"]) <= high else f"beyond {row}"


def real_list_dates() -> dict[str, date]:
    with (DATA / "ashare_stock_basic" / "stock_basic.csv").open(encoding="utf-8") as file:
        return {
            row["ts_code"]: datetime.strptime(row["list_date"], "%Y%m%d").date()  # noqa: DTZ007
            for row in csv.DictReader(file)
        }

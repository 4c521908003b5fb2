"""A user's own files: read by a mapping or by their headers, refused row by row, and errors that say where."""

import os
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from moot.modules.market_data.domain.facts import COMPANIES, DATASETS, DIVIDENDS, REPORTS, VALUATIONS
from moot.modules.market_data.domain.provider import NotOffered
from moot.modules.market_data.infrastructure.providers.files import FilesProvider, read_import
from moot.modules.market_data.infrastructure.providers.rows import statutory_deadline
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.symbol import Market

DATA = Path(os.environ.get("MOOT_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
ALL_DAYS = (date(2000, 1, 1), date(2030, 1, 1))

MAPPING = """\
bars:
  path: my_bars.csv
  symbol: code
  columns: {trade_date: day, open: o, high: h, low: l, close: c, pre_close: pc, volume: vol, amount: amt}
  units: {volume: lots, amount: thousand}
  date_format: "%Y%m%d"
"""
BARS = """\
code,day,o,h,l,c,pc,vol,amt
600519,20240102,10,11,9.5,10,9.9,1000,1000
600519,20240103,10,10.5,9.8,10.2,10,500,505
600519,20240104,5.1,5.3,5.0,5.2,5.1,2000,1030
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "moot-data.yaml").write_text(MAPPING, "utf-8")
    (tmp_path / "my_bars.csv").write_text(BARS, "utf-8")
    return tmp_path


async def bars_of(folder: Path, symbol: str = "600519.SH"):
    return await FilesProvider(folder).read(DATASETS["bars"], symbol, *ALL_DAYS)


def refusal(folder: Path, mapping: str) -> str:
    (folder / "moot-data.yaml").write_text(mapping, "utf-8")
    with pytest.raises(InvalidInput) as caught:
        FilesProvider(folder)
    assert caught.value.in_locale("zh-CN") != caught.value.in_locale("en-US")
    return caught.value.in_locale("en-US")


async def test_bars_come_out_in_our_units_and_spelling_with_their_two_times(folder):
    bars = await bars_of(folder)
    first = bars[0]
    assert (first.symbol, first.source, first.trade_date) == ("600519.SH", "files", date(2024, 1, 2))
    assert (first.volume, first.amount, first.pre_close) == (100_000, 1_000_000.0, 9.9)
    assert first.event_time == datetime(2024, 1, 2, 7, tzinfo=UTC)
    assert first.available_at == datetime(2024, 1, 2, 8, tzinfo=UTC)


async def test_factors_follow_from_reference_prices(folder):
    assert [bar.adj_factor for bar in await bars_of(folder)] == [1.0, 1.0, 2.0]


async def test_the_range_includes_both_ends_and_an_unknown_symbol_has_nothing(folder):
    files = FilesProvider(folder / "moot-data.yaml")
    two = await files.read(DATASETS["bars"], "600519.SH", date(2024, 1, 3), date(2024, 1, 4))
    assert [bar.trade_date.day for bar in two] == [3, 4]
    assert [bar.adj_factor for bar in two] == [1.0, 2.0]
    assert await files.read(DATASETS["bars"], "000001.SZ", *ALL_DAYS) == []


async def test_bad_rows_are_refused_by_name_and_cost_no_good_one(folder):
    (folder / "my_bars.csv").write_text(
        BARS
        + "600519,20240105,5.2,5.3,5.4,5.2,5.2,2000,1030\n"  # low above high
        + "600519,20240108,-5.2,5.3,5.0,5.2,5.2,2000,1030\n"
        + "600519,20240109,n/a,5.3,5.0,5.2,5.2,2000,1030\n"
        + "600519,20240110,5.2,5.3,5.0,5.3,5.2,2000,103000\n"  # amount in 10 CNY
        + "600519,20240111,5.2,5.3,5.0,5.2,5.3,2000,1030\n"
        + "600519,20240111,5.2,5.3,5.0,5.2,5.3,2000,1030\n"
        + "600519,2024-01-12,5.2,5.3,5.0,5.2,5.2,2000,1030\n",
        "utf-8",
    )
    bars = await bars_of(folder)
    assert [bar.trade_date.day for bar in bars] == [2, 3, 4, 11]
    assert bars[-1].adj_factor == 2.0  # a gap moves no factor
    refused = {refusal.row.split("=")[-1]: refusal.why for refusal in bars.refused}
    assert list(refused) == [
        "2024-01-05",
        "2024-01-08",
        "2024-01-09",
        "2024-01-10",
        "2024-01-11",
        "not a day: 2024-01-12",
    ]
    assert refused["2024-01-10"].endswith("not in the same units as the prices")
    assert refused["2024-01-08"].startswith("open: ")
    assert refused["2024-01-11"] == "a row with this key came before"
    assert all(refusal.row.startswith("symbol=600519.SH, trade_date=") for refusal in bars.refused)


async def test_a_row_that_repeats_a_day_does_not_move_the_factor(folder):
    again = BARS.splitlines()[2]
    (folder / "my_bars.csv").write_text(BARS.replace(again, f"{again}\n{again}"), "utf-8")
    assert [bar.adj_factor for bar in await bars_of(folder)] == [1.0, 1.0, 2.0]


async def test_a_changed_file_is_read_again(folder):
    files = FilesProvider(folder)
    assert len(await files.read(DATASETS["bars"], "600519.SH", *ALL_DAYS)) == 3
    (folder / "my_bars.csv").write_text("\n".join(BARS.splitlines()[:2]), "utf-8")
    os.utime(folder / "my_bars.csv", ns=(1, 1))
    assert len(await files.read(DATASETS["bars"], "600519.SH", *ALL_DAYS)) == 1


async def test_one_symbol_without_a_column_and_several_files_of_parquet(tmp_path):
    day = {"open": 10.0, "high": 10.5, "low": 9.9, "close": 10.0, "volume": 100, "amount": 1000.0}
    for month in (1, 2):
        pl.DataFrame([{"date": date(2024, month, 5), **day}]).write_parquet(tmp_path / f"{month}.parquet")
    (tmp_path / "moot-data.yaml").write_text(
        "bars:\n  path: '*.parquet'\n  symbol: AAPL\n  adjusted: none\n  columns: {trade_date: date, open: open,"
        " high: high, low: low, close: close, volume: volume, amount: amount}\n"
    )
    bars = await bars_of(tmp_path, "AAPL")
    assert [(b.trade_date.month, b.pre_close, b.adj_factor) for b in bars] == [(2, 10.0, 1.0)]
    assert bars[0].event_time == datetime(2024, 2, 5, 21, tzinfo=UTC)
    assert bars[0].available_at == datetime(2024, 2, 5, 22, tzinfo=UTC)
    assert [(r.row, r.why) for r in bars.refused] == [
        ("symbol=AAPL, trade_date=2024-01-05", "pre_close: Field required")
    ]


async def test_a_report_without_an_announcement_date_counts_from_the_statutory_deadline(tmp_path):
    (tmp_path / "r.csv").write_text(
        "code,end,ann,roe\nsz.000001,2023-12-31,2024-03-15,0.10\nsz.000001,2024-03-31,,0.03\n"
    )
    (tmp_path / "moot-data.yaml").write_text(
        "reports:\n  path: r.csv\n  symbol: code\n"
        "  columns: {period_end: end, announced_on: ann, roe_waa: roe}\n  units: {roe_waa: fraction}\n"
    )
    annual, quarter = await FilesProvider(tmp_path).read(REPORTS, "000001.SZ")
    assert (annual.roe_waa, annual.available_at) == (10.0, datetime(2024, 3, 15, 10, tzinfo=UTC))
    assert (quarter.announced_on, quarter.event_time) == (
        date(2024, 4, 30),
        datetime(2024, 3, 31, 7, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("market", "end", "deadline"),
    [
        (Market.CN, date(2024, 3, 31), date(2024, 4, 30)),
        (Market.CN, date(2024, 6, 30), date(2024, 8, 31)),
        (Market.CN, date(2024, 9, 30), date(2024, 10, 31)),
        (Market.CN, date(2024, 12, 31), date(2025, 4, 30)),
        (Market.US, date(2024, 3, 31), date(2024, 5, 10)),
        (Market.US, date(2024, 12, 31), date(2025, 3, 1)),
    ],
)
def test_each_period_has_its_deadline(market, end, deadline):
    assert statutory_deadline(end, market, annual=end.month == 12) == deadline


async def test_valuations_in_ten_thousands_and_a_list_of_companies(tmp_path):
    (tmp_path / "v.csv").write_text("ts_code,d,c,mv,pe\n600519.SH,20240102,10,1256,-8.5\n")
    (tmp_path / "c.csv").write_text("ts_code,name,list_date,delist_date\n600001.SH,甲,19980122,20091229\n")
    (tmp_path / "moot-data.yaml").write_text(
        "valuations:\n  path: v.csv\n  symbol: ts_code\n  units: {total_mv: ten_thousand}\n"
        "  columns: {trade_date: d, close: c, total_mv: mv, pe_ttm: pe}\n"
        "companies:\n  path: c.csv\n  symbol: ts_code\n"
        "  columns: {name: name, list_date: list_date, delist_date: delist_date}\n"
    )
    files = FilesProvider(tmp_path)
    [valuation] = await files.read(VALUATIONS, "600519.SH", *ALL_DAYS)
    assert (valuation.total_mv, valuation.pe_ttm, valuation.pb) == (12_560_000.0, -8.5, None)
    [company] = await files.read(COMPANIES, "CN")
    assert (company.symbol, company.name, company.delist_date) == ("600001.SH", "甲", date(2009, 12, 29))
    assert company.source == "files"


async def test_what_the_files_do_not_have_is_not_offered(folder):
    files = FilesProvider(folder)
    with pytest.raises(NotOffered, match="Your files have no dividends"):
        await files.read(DIVIDENDS, "600519.SH")
    with pytest.raises(NotOffered, match="no financial reports"):
        await files.read(REPORTS, "600519.SH")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "bars:",
            "prices:",
            "moot-data.yaml, line 1: there is no table prices. Known tables: companies, bars,",
        ),
        (
            "volume: lots",
            "volume: boxes",
            "line 5: the unit boxes of volume is not known. Known units: shares,",
        ),
        ("close: c,", "closing: c,", "line 4: bars have no field closing. Known fields: adj_factor, amount,"),
        ("close: c, ", "", "line 4: bars need close."),
        ("amount: amt", "is_st: st", "line 4: the traded amount is missing."),
        ("pre_close: pc, ", "", "line 4: adjustment factors cannot be worked out."),
        ("date_format", "date_fmt", "line 6: bars.date_fmt is wrong: Extra inputs are not permitted"),
        ("{volume: lots", "{volume: [lots", "is not valid YAML"),
    ],
)
def test_a_wrong_mapping_says_what_and_on_which_line(folder, old, new, said):
    assert said in refusal(folder, MAPPING.replace(old, new))


def test_an_empty_or_absent_mapping_says_so(folder):
    assert "describes no table" in refusal(folder, "# nothing\n")
    with pytest.raises(InvalidInput, match=r"absent.yaml: cannot be read"):
        FilesProvider(folder / "absent.yaml")


async def test_a_missing_column_and_a_missing_file_are_named(folder):
    (folder / "my_bars.csv").write_text(BARS.replace("amt", "turnover"), "utf-8")
    with pytest.raises(InvalidInput, match=r"my_bars.csv has no column amt\. Its columns: code, day,"):
        await bars_of(folder)
    (folder / "my_bars.csv").unlink()
    with pytest.raises(InvalidInput, match=r"No file in .* matches my_bars.csv"):
        await bars_of(folder)


def imported(tmp_path: Path, text: str, encoding: str = "utf-8", name: str = "mine.csv"):
    (tmp_path / name).write_bytes(text.encode(encoding))
    facts, _ = read_import(tmp_path / name)
    return facts


def test_tushare_headers_are_known_and_its_units_are_measured(tmp_path):
    (tmp_path / "mine.csv").write_text(
        "ts_code,trade_date,open,high,low,close,pre_close,change,pct_chg,vol,amount\n"
        "000001.SZ,20240102,9.39,9.42,9.21,9.21,9.39,-0.18,-1.9169,1158366.45,1075742.25\n",
    )
    got, guessed = read_import(tmp_path / "mine.csv")
    [bar] = got[DATASETS["bars"]]
    assert (bar.volume, bar.amount) == (115_836_645, 1_075_742_250.0)
    said = [note.in_locale("en-US") for note in guessed]
    assert said[0].startswith("Read as daily bars: symbol = ts_code, trade_date = trade_date, open = open")
    assert said[1] == "Assumed units: volume: lots, amount: thousand."


def test_baostock_headers_keep_suspended_and_st_days(tmp_path):
    got = imported(
        tmp_path,
        "date,code,open,high,low,close,preclose,volume,amount,adjustflag,turn,tradestatus,pctChg,isST\n"
        "2020-01-02,sh.600519,10,10.2,9.9,10.1,10,1000,10100,3,0.1,1,1.0,1\n"
        "2020-01-03,sh.600519,10.1,10.1,10.1,10.1,10.1,,,3,,0,0,0\n",
    )
    traded, still = got[DATASETS["bars"]]
    assert (traded.symbol, traded.volume, traded.is_st, traded.suspended) == ("600519.SH", 1000, True, False)
    assert (still.volume, still.amount, still.suspended, still.is_st) == (0, 0.0, True, False)


def test_chinese_headers_in_gbk_with_bare_codes(tmp_path):
    got = imported(
        tmp_path,
        '日期,股票代码,开盘,收盘,最高,最低,昨收,成交量,成交额\n2024/01/02,000001,9.39,9.21,9.42,9.21,9.39,"1,158,366",1075742250\n',
        encoding="gb18030",
    )
    [bar] = got[DATASETS["bars"]]
    assert (bar.symbol, bar.close, bar.volume) == ("000001.SZ", 9.21, 115_836_600)


def test_valuations_reports_and_companies_are_told_apart(tmp_path):
    basic = imported(
        tmp_path, "ts_code,trade_date,close,pe,pe_ttm,pb,total_mv\n000001.SZ,20240102,9,5,,0.5,178000\n"
    )
    [valuation] = basic[VALUATIONS]
    assert (valuation.total_mv, valuation.pe, valuation.pe_ttm) == (1_780_000_000.0, 5.0, None)
    listed = imported(
        tmp_path, "ts_code,symbol,name,industry,list_date\n000001.SZ,000001,平安银行,银行,19910403\n"
    )
    assert [c.symbol for c in listed[COMPANIES]] == ["000001.SZ"]
    figures = imported(
        tmp_path, "ts_code,ann_date,end_date,eps,roe_waa\n000001.SZ,20240315,20231231,2.25,11.38\n"
    )
    assert [(r.eps, r.roe_waa) for r in figures[REPORTS]] == [(2.25, 11.38)]


def test_baostocks_profit_is_all_of_it_and_not_the_shareholders_own(tmp_path):
    got = imported(
        tmp_path,
        "code,pubDate,statDate,roeAvg,npMargin,netProfit,epsTTM,MBRevenue,totalShare,liqaShare\n"
        "sh.601318,2022-04-30,2022-03-31,0.0251,0.0891,27316000000.0,5.2,,18280241410.0,10832664498.0\n",
    )
    [report], [statement] = got[REPORTS], got[DATASETS["statements"]]
    assert (report.net_profit, report.roe_waa) == (None, 2.51)
    assert (statement.net_profit, statement.net_profit_parent) == (27_316_000_000.0, None)


def test_a_mapping_may_describe_the_imported_file(folder):
    got, guessed = read_import(folder / "my_bars.csv", folder / "moot-data.yaml")
    assert (len(got[DATASETS["bars"]]), guessed) == (3, [])
    (folder / "other.csv").write_text(BARS)
    with pytest.raises(InvalidInput, match=r"moot-data.yaml does not describe other.csv"):
        read_import(folder / "other.csv", folder / "moot-data.yaml")


def test_what_cannot_be_guessed_asks_for_a_mapping(tmp_path):
    with pytest.raises(InvalidInput, match=r"do not tell what it holds \(columns: a, b\).*--mapping"):
        imported(tmp_path, "a,b\n1,2\n")
    with pytest.raises(InvalidInput, match=r"adjustment factors cannot be worked out.*--mapping"):
        imported(tmp_path, "date,code,open,high,low,close,volume\n2024-01-02,000001,1,1,1,1,1\n")
    with pytest.raises(InvalidInput, match=r"mine.xls is of an unknown type. Known types: .csv"):
        imported(tmp_path, "a", name="mine.xls")
    with pytest.raises(InvalidInput, match=r"mine.parquet cannot be read"):
        imported(tmp_path, "not parquet", name="mine.parquet")


@pytest.mark.skipif(not (DATA / "ashare_daily").exists(), reason=f"no real market data in {DATA}")
async def test_three_real_years_of_forty_shares_through_a_mapping(tmp_path):
    source = DATA / "ashare_daily" / "daily_valuation_40.csv.gz"
    (tmp_path / source.name).symlink_to(source)
    (tmp_path / "moot-data.yaml").write_text(
        f"bars:\n  path: {source.name}\n  symbol: ts_code\n"
        "  columns: {trade_date: date, open: open, high: high, low: low, close: close, pre_close: preclose,"
        " volume: volume, amount: amount, trading: tradestatus, is_st: isST}\n"
    )
    files = FilesProvider(tmp_path)
    raw = pl.read_csv(source)
    symbols = raw["ts_code"].unique().to_list()
    batches = [await files.read(DATASETS["bars"], symbol, *ALL_DAYS) for symbol in symbols]
    assert sum(len(batch) for batch in batches) == raw.height
    assert not any(batch.refused for batch in batches)
    assert sum(bar.suspended for batch in batches for bar in batch) == (raw["tradestatus"] == 0).sum()
    for batch in batches:
        for before, bar in pairwise(batch):
            adjusted = bar.close * bar.adj_factor / (before.close * before.adj_factor)
            assert adjusted == pytest.approx(bar.close / bar.pre_close, rel=1e-9)

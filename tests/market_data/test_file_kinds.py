"""Every kind of file people have is known by its headers, a bad row costs no good one, and units are checked."""

import os
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from moot.modules.market_data.domain import facts
from moot.modules.market_data.infrastructure.providers.files import FilesProvider, read_import
from moot.shared.domain.errors import InvalidInput

DATA = Path(os.environ.get("MOOT_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))


def read(tmp_path: Path, text: str, encoding: str = "utf-8", name: str = "mine.csv"):
    (tmp_path / name).write_bytes(text.encode(encoding))
    return read_import(tmp_path / name)


def test_one_odd_code_costs_one_company_and_is_named_by_its_line(tmp_path):
    listed = [f"{n:06}.SZ,甲,19910403" for n in range(1, 51)]
    listed[40] = "TS0018.SH,上港集箱,20000719"
    found, _ = read(tmp_path, "\n".join(["ts_code,name,list_date", *listed]))
    companies = found[facts.COMPANIES]
    assert (len(companies), len(companies.refused)) == (49, 1)
    said = companies.refused[0]
    assert said.in_locale("en-US").startswith(
        "mine.csv, line 42: the code 'TS0018.SH' is not one of a listed"
    )
    assert said.in_locale("zh-CN").startswith("mine.csv 第 42 行：代码“TS0018.SH”不是上市股票的代码")
    assert "Refusal(" not in repr(companies.refused)


def test_lines_are_counted_over_blank_lines_and_quoted_breaks_and_extra_cells(tmp_path):
    found, _ = read(
        tmp_path,
        "ts_code,name,list_date\n\n"
        '000001.SZ,"平安\n银行",19910403\n'
        "000002.SZ,万科,1991,0129\n"
        "000004.SZ,国华,1990-12-01,\n"
        "000006.SZ,振业,19920230\n",
    )
    companies = found[facts.COMPANIES]
    assert [company.symbol for company in companies] == ["000001.SZ", "000004.SZ"]
    assert [str(refusal) for refusal in companies.refused] == [
        "mine.csv, line 5: 4 cells for 3 headers; a number with a comma in it needs quotation marks.",
        "mine.csv, line 7, 000006.SZ: list_date is '19920230'; allowed: a day, for example 2024-01-02 or 20240102.",
    ]


BASIC = "ts_code,trade_date,close,total_mv,total_share\n"


def test_a_market_value_that_is_not_price_times_shares_is_refused_with_a_hint(tmp_path):
    rows = "600519.SH,20240102,1685,211670000,125619.78\n600519.SH,20240103,1694,2128,125619.78\n"
    days = read(tmp_path, BASIC + rows)[0][facts.VALUATIONS]
    assert [(day.trade_date.day, day.shares) for day in days] == [(2, 1_256_197_800.0)]
    (refusal,) = days.refused
    assert "600519.SH 2024-01-03: total_mv 2.128e+07 is 1e-05 times price" in str(refusal)
    yuan = "证券代码,交易日期,收盘价,总市值,总股本\n600519.SH,2024-01-02,1685,211670000,1256197800\n"
    (refusal,) = read(tmp_path, yuan)[0][facts.VALUATIONS].refused
    assert "it looks like ten_thousand. Set units: {total_mv: ten_thousand}" in str(refusal)
    assert "单位像是 ten_thousand：请在 mapping 中设置" in refusal.in_locale("zh-CN")


def test_useful_columns_of_tushare_and_akshare_are_read_and_the_rest_is_listed(tmp_path):
    found, notes = read(
        tmp_path,
        "ts_code,ann_date,end_date,eps,invturn_days,arturn_days,assets_turn,fcff,netdebt,interestdebt,"
        "total_revenue_ps,q_dtprofit\n600519.SH,20240403,20231231,59.5,1500,3,0.6,7e10,-6e10,0,119.9,1\n",
    )
    (report,) = found[facts.REPORTS]
    assert (report.invturn_days, report.arturn_days, report.assets_turn) == (1500, 3, 0.6)
    assert (report.fcff, report.netdebt, report.interestdebt, report.total_revenue_ps) == (
        7e10,
        -6e10,
        0,
        119.9,
    )
    assert str(notes[-1]) == "Not read: q_dtprofit."
    (report,) = read(
        tmp_path,
        "SECUCODE,REPORT_DATE,REPORT_TYPE,NOTICE_DATE,PER_TOI,FCFF_BACK\n"
        "600519.SH,2023-12-31 00:00:00,年报,2024-04-03 00:00:00,119.9,7e10\n",
    )[0][facts.REPORTS]
    assert (report.total_revenue_ps, report.fcff, report.announced_on) == (119.9, 7e10, date(2024, 4, 3))


def test_statements_are_the_consolidated_ones_and_a_correction_adds_to_its_row(tmp_path):
    found, notes = read(
        tmp_path,
        "ts_code,ann_date,f_ann_date,end_date,report_type,oper_cost,n_income,rd_exp\n"
        "600519.SH,20240403,20240403,20231231,1,1.1e10,7.7e10,\n"
        "600519.SH,20240403,20240403,20231231,6,9,9,9\n"
        "600519.SH,20240403,,20231231,1,1.2e10,7.7e10,1.5e8\n",
    )
    (statement,) = found[facts.STATEMENTS]
    assert (statement.cost_of_sales, statement.net_profit, statement.research_expense) == (
        1.2e10,
        7.7e10,
        1.5e8,
    )
    assert statement.event_time == datetime(2023, 12, 31, 7, tzinfo=UTC)
    assert statement.available_at == datetime(2024, 4, 3, 10, tzinfo=UTC)
    assert "Only rows with report_type 1 are read." in map(str, notes)
    assert found[facts.STATEMENTS].refused == ()


def test_a_corrected_row_holds_wherever_it_stands(tmp_path):
    header, row = "ts_code,ann_date,end_date,update_flag,eps", "600519.SH,20240403,20231231"
    found, _ = read(tmp_path, f"{header}\n{row},1,59.5\n{row},0,58\n")
    assert [report.eps for report in found[facts.REPORTS]] == [59.5]


KINDS = {
    "dividends": (
        "ts_code,end_date,ann_date,div_proc,stk_div,cash_div_tax,record_date,ex_date,imp_ann_date\n"
        "600519.SH,20231231,20240403,预案,0,30.876,,,\n600519.SH,20231231,20240403,实施,0,30.876,20240618,20240619,20240613\n",
        {"cash_per_share": 30.876, "announced_on": date(2024, 6, 13), "ex_date": date(2024, 6, 19)},
    ),
    "news": (
        "代码,公告标题,公告时间,公告链接\n600519,2023年年度报告,2024-04-02 19:30:00,https://a.example/1\n",
        {
            "symbol": "600519.SH",
            "kind": "announcement",
            "available_at": datetime(2024, 4, 2, 11, 30, tzinfo=UTC),
        },
    ),
    "index_bars": (
        "ts_code,trade_date,close,open,high,low,pre_close,vol,amount\n"
        "000300.SH,20240102,3386,3426,3426,3386,3431,117,235\n",
        {"index": "000300.SH", "close": 3386.0, "volume": 11_700.0, "amount": 235_000.0},
    ),
    "notices": (
        "ts_code,ann_date,end_date,type,p_change_min,p_change_max,net_profit_min,net_profit_max\n"
        "600519.SH,20240110,20231231,预增,17,18,7300000,7400000\n",
        {
            "kind": "forecast",
            "net_profit_low": 7.3e10,
            "available_at": datetime(2024, 1, 10, 10, tzinfo=UTC),
            "event_time": datetime(2024, 1, 10, 10, tzinfo=UTC),
        },
    ),
    "unlocks": (
        "ts_code,ann_date,float_date,float_share,float_ratio,holder_name\n600519.SH,20240110,20240301,1e6,0.1,甲\n",
        {
            "unlock_date": date(2024, 3, 1),
            "holder": "甲",
            "available_at": datetime(2024, 1, 10, 10, tzinfo=UTC),
            "event_time": datetime(2024, 1, 10, 10, tzinfo=UTC),
        },
    ),
    "holders": (
        "ts_code,ann_date,end_date,holder_num\n600519.SH,20240403,20231231,149300\n",
        {"holders": 149300, "announced_on": date(2024, 4, 3)},
    ),
    "holder_trades": (
        "ts_code,ann_date,holder_name,holder_type,in_de,change_vol\n600519.SH,20240403,乙,G,DE,1000\n",
        {"kind": "executive", "direction": "sell", "shares": 1000.0},
    ),
    "pledges": (
        "股票代码,交易日期,质押比例,质押股数\n600519,2024-01-05,0.5,600\n",
        {
            "pledged_shares": 6e6,
            "pledged_percent": 0.5,
            "available_at": datetime(2024, 1, 8, 10, tzinfo=UTC),
        },
    ),
    "margin": (
        "trade_date,ts_code,rzye,rqye,rzmre\n20240102,600519.SH,1.5e10,3e8,2e8\n",
        {
            "financing_balance": 1.5e10,
            "short_balance": 3e8,
            "event_time": datetime(2024, 1, 2, 7, tzinfo=UTC),
            "available_at": datetime(2024, 1, 3, 1, tzinfo=UTC),
        },
    ),
    "flows": (
        "code,trade_date,ts_code,name,vol,ratio,exchange\n90000,20240102,600519.SH,贵州茅台,8e7,6.9,SH\n",
        {
            "northbound_shares": 8e7,
            "northbound_percent": 6.9,
            "available_at": datetime(2024, 1, 3, 1, tzinfo=UTC),
        },
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "gb18030"])
def test_a_kind_is_known_by_the_headers_of_those_who_export_it(tmp_path, kind, encoding):
    text, told = KINDS[kind]
    found, _ = read(tmp_path, text, encoding)
    (fact,) = found[facts.DATASETS[kind]]
    assert list(found) == [facts.DATASETS[kind]]
    assert {name: getattr(fact, name) for name in told} == told
    assert fact.source == "files"


def test_news_without_an_address_or_a_time_is_known_at_the_end_of_its_day_and_read_once(tmp_path):
    text = "ts_code,date,title\n600519.SH,20240403,年报\n600519.SH,20240404,\n"
    (item,), (again,) = (read(tmp_path, text)[0][facts.NEWS] for _ in range(2))
    assert item == again
    assert item.available_at == datetime(2024, 4, 3, 15, 59, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "month,pmi010000,pmi010100\n202401,49.2,51.3\n",
            ("pmi_manufacturing", date(2024, 1, 1), 49.2, "index", datetime(2024, 2, 1, 1, 30, tzinfo=UTC)),
        ),
        (
            "月份,全国-当月,全国-同比增长\n2024年01月份,99.2,-0.8\n2024年02月份,,\n",
            ("cpi_yoy", date(2024, 1, 1), -0.8, "%", datetime(2024, 2, 18, 1, 30, tzinfo=UTC)),
        ),
        (
            "date,1y,5y\n20240122,3.45,4.2\n",
            ("lpr_1y", date(2024, 1, 22), 3.45, "%", datetime(2024, 1, 22, 3, 30, tzinfo=UTC)),
        ),
        (
            "series,period,value,unit,released\nhog_price,2024-01-31,14.1,CNY/kg,2024-02-05\n",
            ("hog_price", date(2024, 1, 31), 14.1, "CNY/kg", datetime(2024, 2, 5, 10, tzinfo=UTC)),
        ),
    ],
)
def test_macro_series_come_by_column_or_by_row_and_are_known_from_their_release(tmp_path, text, told):
    found, _ = read(tmp_path, text)
    (figure,) = found[facts.MACRO]
    assert (figure.series, figure.period, figure.value, figure.unit, figure.available_at) == told


def test_a_series_nobody_knows_needs_its_release(tmp_path):
    figures = read(tmp_path, "series,period,value\nhog_price,2024-01-31,14.1\n")[0][facts.MACRO]
    assert list(figures) == []
    assert [str(refusal) for refusal in figures.refused] == [
        "mine.csv, line 2, hog_price 2024-01-31: the day on which it became known is missing"
        " (published, announced_on, released)."
    ]


async def test_a_mapping_says_what_headers_do_not(tmp_path):
    (tmp_path / "hs300.csv").write_text(
        "d,o,h,l,c\n2024-01-02,3,4,2,3\n2024-01-03,3,4,2,3.5\n2024-01-04,x,4,2,3\n"
    )
    (tmp_path / "moot-data.yaml").write_text(
        "index_bars:\n  path: hs300.csv\n  symbol: 000300.SH\n"
        "  columns: {trade_date: d, open: o, high: h, low: l, close: c}\n  given: {name: 沪深300}\n",
        "utf-8",
    )
    bars = await FilesProvider(tmp_path).read(facts.INDEX_BARS, "CN", date(2024, 1, 3), date(2024, 1, 31))
    assert [(bar.name, bar.pre_close, bar.close) for bar in bars] == [("沪深300", 3.0, 3.5)]
    assert [str(refusal) for refusal in bars.refused] == [
        "hs300.csv, line 2, 000300.SH 2024-01-02: pre_close is missing.",
        "hs300.csv, line 4, 000300.SH 2024-01-04: open is 'x'; allowed: a number.",
    ]


def test_a_mapping_without_a_symbol_says_so(tmp_path):
    (tmp_path / "m.yaml").write_text("holders:\n  columns: {period_end: a, announced_on: b, holders: c}\n")
    (tmp_path / "mine.csv").write_text("a,b,c\n1,2,3\n")
    with pytest.raises(InvalidInput, match="holders need symbol"):
        read_import(tmp_path / "mine.csv", tmp_path / "m.yaml")


@pytest.mark.skipif(not (DATA / "ashare_stock_basic").exists(), reason=f"no real market data in {DATA}")
def test_real_files_are_imported_but_for_their_bad_rows():
    (found, _), (news, _) = (
        read_import(DATA / "ashare_stock_basic" / "stock_basic.csv"),
        read_import(DATA / "ashare_news" / "announcements_2018_2020.csv.gz"),
    )
    assert len(found[facts.COMPANIES]) == 5805
    assert [str(refusal)[:55] for refusal in found[facts.COMPANIES].refused] == [
        "stock_basic.csv, line 5582: the code 'TS0018.SH' is not"
    ]
    assert (len(news[facts.NEWS]), len(news[facts.NEWS].refused)) == (1425, 52)
    assert {str(refusal).rpartition(": ")[2] for refusal in news[facts.NEWS].refused} == {"title is missing."}


@pytest.mark.skipif(not (DATA / "china_macro").exists(), reason=f"no real market data in {DATA}")
@pytest.mark.parametrize(
    ("name", "series"),
    [
        ("choice_pmi.csv", {"pmi_manufacturing": 243}),
        ("choice_cpi_ppi.csv", {"cpi_mom": 370, "ppi_mom": 188}),
        ("choice_gdp.csv", {"gdp_yoy": 133}),
        ("cgb_yield_curve.csv.gz", {"cgb_10y": 5004}),
    ],
)
def test_real_macro_series_are_known_by_their_columns(name, series):
    found, _ = read_import(DATA / "china_macro" / name)
    assert Counter(figure.series for figure in found[facts.MACRO]) == series
    assert found[facts.MACRO].refused == ()

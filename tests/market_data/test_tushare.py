"""Tushare's rows as facts: units, times, versions, and what is refused on the way."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pytest

from moot.modules.market_data.domain.facts import BARS, COMPANIES, DIVIDENDS, MACRO, NEWS, REPORTS, VALUATIONS
from moot.modules.market_data.domain.provider import NotOffered
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.facts import SpecialTreatment
from tests.fakes import tushare_server as wire
from tests.fakes.tushare_server import Fault, TushareServer, provider

SYMBOL = "600519.SH"
YEAR = (date(2024, 1, 1), date(2024, 12, 31))


@pytest.fixture
def server() -> Iterator[TushareServer]:
    with TushareServer() as server:
        yield server


def a_quote(day: str, **changes: Any) -> dict[str, Any]:
    prices = {"open": 10.0, "high": 10.5, "low": 9.9, "close": 10.2, "pre_close": 10.1}
    return {"ts_code": SYMBOL, "trade_date": day, **prices, "vol": 307660.03, "amount": 313813.24, **changes}


def a_factor(day: str, factor: float | None = 5.347) -> dict[str, Any]:
    return {"ts_code": SYMBOL, "trade_date": day, "adj_factor": factor}


def quoted(server: TushareServer, *quotes: dict[str, Any]) -> None:
    server.tables["daily"] = list(quotes)
    server.tables["adj_factor"] = [a_factor(day) for day in {quote["trade_date"] for quote in quotes}]


class TestBars:
    async def test_lots_become_shares_and_thousands_become_yuan(self, server: TushareServer) -> None:
        quoted(server, a_quote("20241231"))
        async with provider(server) as tushare:
            [bar] = await tushare.read(BARS, SYMBOL, *YEAR)
        assert bar.model_dump() == {
            "symbol": SYMBOL,
            "trade_date": date(2024, 12, 31),
            "event_time": datetime(2024, 12, 31, 7, tzinfo=UTC),
            "available_at": datetime(2024, 12, 31, 8, tzinfo=UTC),
            "source": "tushare",
            "open": 10.0,
            "high": 10.5,
            "low": 9.9,
            "close": 10.2,
            "pre_close": 10.1,
            "volume": 30_766_003,
            "amount": 313_813_240.0,
            "adj_factor": 5.347,
            "suspended": False,
            "is_st": False,
        }

    async def test_days_come_oldest_first_and_within_the_range_only(self, server: TushareServer) -> None:
        quoted(server, *(a_quote(day) for day in ("20250102", "20241231", "20241230", "20231229")))
        async with provider(server) as tushare:
            bars = await tushare.read(BARS, SYMBOL, *YEAR)
        assert [bar.trade_date for bar in bars] == [date(2024, 12, 30), date(2024, 12, 31)]

    async def test_a_day_without_a_factor_is_refused_by_name_and_not_given_its_neighbours(
        self, server: TushareServer
    ) -> None:
        server.tables["daily"] = [a_quote("20240103"), a_quote("20240102")]
        server.tables["adj_factor"] = [a_factor("20240102")]
        async with provider(server) as tushare:
            bars = await tushare.read(BARS, SYMBOL, *YEAR)
        assert [bar.trade_date for bar in bars] == [date(2024, 1, 2)]
        assert [refusal.row for refusal in bars.refused] == ["trade_date=2024-01-03"]
        assert bars.refused[0].why.startswith("adj_factor: ")

    @pytest.mark.parametrize(
        ("wrong", "why"),
        [
            ({"high": 9.0}, "low <= open, close <= high does not hold"),
            ({"close": float("nan")}, "close: "),
            ({"open": -1.0}, "open: "),
            ({"close": None}, "close: "),
            ({"close": "n/a"}, "close: "),
            ({"vol": None}, "volume: "),
            ({"vol": -3.0}, "volume: "),
            ({"vol": float("inf")}, "volume: "),
            ({"amount": float("nan")}, "amount: "),
        ],
    )
    async def test_a_bad_row_is_refused_by_name_and_costs_no_good_one(
        self, server: TushareServer, wrong: dict[str, Any], why: str
    ) -> None:
        quoted(server, a_quote("20240104"), a_quote("20240103", **wrong), a_quote("20240102"))
        async with provider(server) as tushare:
            bars = await tushare.read(BARS, SYMBOL, *YEAR)
        assert [bar.trade_date.day for bar in bars] == [2, 4]
        [refusal] = bars.refused
        assert refusal.row == "trade_date=2024-01-03"
        assert why in refusal.why

    async def test_numbers_sent_as_text_are_converted_like_numbers(self, server: TushareServer) -> None:
        quoted(server, a_quote("20240102", vol="307660", close="10.2"))
        async with provider(server) as tushare:
            [bar] = await tushare.read(BARS, SYMBOL, *YEAR)
        assert (bar.volume, bar.close) == (30_766_000, 10.2)

    async def test_a_day_that_comes_twice_is_kept_once_and_counted(self, server: TushareServer) -> None:
        quoted(server, a_quote("20240102"), a_quote("20240102", close=10.3))
        async with provider(server) as tushare:
            bars = await tushare.read(BARS, SYMBOL, *YEAR)
        assert [bar.close for bar in bars] == [10.2]
        assert [r.row for r in bars.refused] == ["trade_date=2024-01-02"]

    async def test_a_day_that_is_none_never_becomes_another_day(self, server: TushareServer) -> None:
        server.tables["daily"] = [a_quote("20240230")]
        async with provider(server) as tushare:
            bars = await tushare.read(BARS, SYMBOL, *YEAR)
        assert list(bars) == []
        assert bars.refused[0].row == "trade_date=not a day: 20240230"

    async def test_days_under_special_treatment_are_marked(self, server: TushareServer) -> None:
        quoted(server, *(a_quote(day) for day in ("20240104", "20240103", "20240102")))
        server.tables["namechange"] = [
            {"ts_code": SYMBOL, "name": "*ST甲", "start_date": "20240103", "end_date": "20240103"},
        ]
        async with provider(server) as tushare:
            bars = await tushare.read(BARS, SYMBOL, *YEAR)
        assert [bar.is_st for bar in bars] == [False, True, False]

    async def test_names_are_read_once_for_all_symbols(self, server: TushareServer) -> None:
        quoted(server, a_quote("20240102"))
        async with provider(server) as tushare:
            await asyncio.gather(*(tushare.read(BARS, SYMBOL, *YEAR) for _ in range(5)))
        assert server.calls()["namechange"] == 1

    async def test_an_unknown_symbol_gives_an_empty_batch(self, server: TushareServer) -> None:
        quoted(server, a_quote("20240102"))
        async with provider(server) as tushare:
            assert await tushare.read(BARS, "600000.SH", *YEAR) == []

    @pytest.mark.parametrize("symbol", ["AAPL", "900001.DEMO"])
    async def test_another_market_is_not_offered_and_not_asked_for(
        self, server: TushareServer, symbol: str
    ) -> None:
        async with provider(server) as tushare:
            with pytest.raises(NotOffered, match="shares of CN only"):
                await tushare.read(BARS, symbol, *YEAR)
        assert server.requests == []


class TestValuations:
    async def test_ten_thousands_become_yuan_and_a_loss_has_no_pe(self, server: TushareServer) -> None:
        ratios = {"pe": None, "pe_ttm": None, "pb": 5.2537, "ps_ttm": 4.3356, "dv_ratio": 1.2}
        values = {"total_mv": 212448.0363, "circ_mv": 212448.0363, "turnover_rate": 0.5417}
        row = {"ts_code": SYMBOL, "trade_date": "20240102", "close": 4.13, **ratios, **values}
        server.tables["daily_basic"] = [row]
        async with provider(server) as tushare:
            [valuation] = await tushare.read(VALUATIONS, SYMBOL, *YEAR)
        assert valuation.total_mv == 2_124_480_363.0
        assert valuation.circ_mv == 2_124_480_363.0
        assert (valuation.pe_ttm, valuation.pb, valuation.dv_ratio) == (None, 5.2537, 1.2)
        assert valuation.turnover_rate == 0.5417
        assert valuation.available_at == datetime(2024, 1, 2, 8, tzinfo=UTC)

    async def test_a_column_the_service_does_not_have_is_absent_not_zero(self, server: TushareServer) -> None:
        row = {"ts_code": SYMBOL, "trade_date": "20240102", "close": 4.13, "total_mv": 1.0}
        server.tables["daily_basic"] = [row]
        async with provider(server) as tushare:
            [valuation] = await tushare.read(VALUATIONS, SYMBOL, *YEAR)
        assert (valuation.dv_ratio, valuation.circ_mv) == (None, None)

    async def test_columns_are_read_by_name_whatever_their_order(self, server: TushareServer) -> None:
        fields, item = ["TOTAL_MV", "close", "trade_date", "ts_code"], [2.0, 4.13, "20240102", SYMBOL]
        body = {"code": 0, "msg": None, "data": {"fields": fields, "items": [item]}}
        server.script("daily_basic", Fault(json.dumps(body)))
        async with provider(server) as tushare:
            [valuation] = await tushare.read(VALUATIONS, SYMBOL, *YEAR)
        assert (valuation.close, valuation.total_mv) == (4.13, 20_000.0)


def an_indicator(end: str, announced: str | None, **figures: Any) -> dict[str, Any]:
    return {"ts_code": SYMBOL, "end_date": end, "ann_date": announced, "update_flag": "0", **figures}


def a_statement(end: str, announced: str | None, actual: str | None, **figures: Any) -> dict[str, Any]:
    return an_indicator(end, announced, **{"f_ann_date": actual, "report_type": "1"} | figures)


class TestReports:
    async def test_four_interfaces_make_one_report(self, server: TushareServer) -> None:
        keys = ("20231231", "20240330", "20240331")
        ratios = {"grossprofit_margin": 91.9, "gross_margin": 1.3e11, "roe_waa": 34.2, "eps": 59.5}
        server.tables |= {
            "fina_indicator": [an_indicator(*keys[:2], **ratios)],
            "income": [a_statement(*keys, total_revenue=1.5e11, operate_profit=1e11, n_income_attr_p=7.4e10)],
            "balancesheet": [a_statement(*keys, total_assets=2.7e11, total_liab=4.9e10)],
            "cashflow": [a_statement(*keys, n_cashflow_act=6.6e10, c_pay_acq_const_fiolta=2.6e9)],
        }
        async with provider(server) as tushare:
            [report] = await tushare.read(REPORTS, SYMBOL)
        assert report.gross_margin == 91.9
        assert (report.roe_waa, report.eps) == (34.2, 59.5)
        assert (report.total_revenue, report.operate_profit, report.net_profit) == (1.5e11, 1e11, 7.4e10)
        assert (report.total_assets, report.total_liab, report.equity) == (2.7e11, 4.9e10, None)
        assert (report.n_cashflow_act, report.capex) == (6.6e10, 2.6e9)
        assert report.period_end == date(2023, 12, 31)
        assert report.announced_on == date(2024, 3, 31)
        assert report.event_time == datetime(2023, 12, 31, 7, tzinfo=UTC)
        assert report.available_at == datetime(2024, 3, 31, 10, tzinfo=UTC)

    async def test_a_restatement_is_a_second_version_and_the_first_one_stays(
        self, server: TushareServer
    ) -> None:
        server.tables["income"] = [
            a_statement("20230331", "20240420", "20240420", update_flag="1", n_income_attr_p=70.0),
            a_statement("20230331", "20230420", "20230420", n_income_attr_p=100.0),
        ]
        server.tables["fina_indicator"] = [an_indicator("20230331", "20230420", eps=1.0)]
        async with provider(server) as tushare:
            first, second = await tushare.read(REPORTS, SYMBOL)
        assert (first.announced_on, first.net_profit, first.eps) == (date(2023, 4, 20), 100.0, 1.0)
        assert (second.announced_on, second.net_profit, second.eps) == (date(2024, 4, 20), 70.0, 1.0)

    async def test_a_correction_is_known_when_it_really_came_out_not_on_the_day_it_bears(
        self, server: TushareServer
    ) -> None:
        server.tables["income"] = [
            a_statement("20230331", "20230420", "20230915", update_flag="1", n_income_attr_p=70.0),
            a_statement("20230331", "20230420", "20230420", n_income_attr_p=100.0),
        ]
        server.tables["fina_indicator"] = [
            an_indicator("20230331", "20230420", update_flag="1", eps=0.7),
            an_indicator("20230331", "20230420", update_flag="0", eps=1.0),
        ]
        async with provider(server) as tushare:
            reports = await tushare.read(REPORTS, SYMBOL)
        assert [(report.announced_on, report.net_profit, report.eps) for report in reports] == [
            (date(2023, 4, 20), 100.0, 1.0),
            (date(2023, 9, 15), 70.0, 0.7),
        ]

    async def test_a_correction_takes_the_later_day_another_table_tells_of_one(
        self, server: TushareServer
    ) -> None:
        server.tables["income"] = [
            a_statement("20230331", "20230918", "20230918", update_flag="1", n_income_attr_p=70.0),
        ]
        server.tables["fina_indicator"] = [
            an_indicator("20230331", "20230420", update_flag="1", eps=0.7),
            an_indicator("20230331", "20230420", update_flag="0", eps=1.0),
        ]
        async with provider(server) as tushare:
            reports = await tushare.read(REPORTS, SYMBOL)
        assert [(report.announced_on, report.net_profit, report.eps) for report in reports] == [
            (date(2023, 4, 20), None, 1.0),
            (date(2023, 9, 18), 70.0, 0.7),
        ]

    async def test_a_correction_whose_day_nobody_tells_is_left_out(self, server: TushareServer) -> None:
        server.tables["fina_indicator"] = [
            an_indicator("20230331", "20230420", update_flag="1", eps=2.0),
            an_indicator("20230331", "20230420", update_flag="0", eps=1.0),
            an_indicator("20221231", "20230320", update_flag="1", eps=4.0),
        ]
        async with provider(server) as tushare:
            reports = await tushare.read(REPORTS, SYMBOL)
        assert [report.eps for report in reports] == [4.0, 1.0]
        assert reports.refused == ()

    async def test_statements_of_the_parent_company_alone_are_left_out(self, server: TushareServer) -> None:
        server.tables["income"] = [
            a_statement("20230331", "20230420", "20230420", n_income_attr_p=100.0),
            a_statement("20230331", "20230420", "20230420", report_type="6", n_income_attr_p=1.0),
        ]
        async with provider(server) as tushare:
            reports = await tushare.read(REPORTS, SYMBOL)
        assert [report.net_profit for report in reports] == [100.0]

    @pytest.mark.parametrize(
        ("end", "deadline"),
        [
            ("20230331", date(2023, 4, 30)),
            ("20230630", date(2023, 8, 31)),
            ("20230930", date(2023, 10, 31)),
            ("20231231", date(2024, 4, 30)),
        ],
    )
    async def test_an_unknown_announcement_counts_from_the_statutory_deadline(
        self, server: TushareServer, end: str, deadline: date
    ) -> None:
        server.tables["fina_indicator"] = [an_indicator(end, None, eps=1.0)]
        async with provider(server) as tushare:
            [report] = await tushare.read(REPORTS, SYMBOL)
        assert report.announced_on == deadline

    async def test_an_interface_without_permission_leaves_its_figures_out_and_says_so(
        self, server: TushareServer
    ) -> None:
        server.tables["fina_indicator"] = [an_indicator("20230331", "20230420", eps=1.0)]
        server.always["cashflow"] = wire.NO_PERMISSION
        async with provider(server) as tushare:
            reports = await tushare.read(REPORTS, SYMBOL)
        assert [(report.eps, report.capex) for report in reports] == [(1.0, None)]
        assert [refusal.row for refusal in reports.refused] == ["cashflow"]

    async def test_a_bad_period_is_refused_by_name(self, server: TushareServer) -> None:
        server.tables["fina_indicator"] = [
            an_indicator("2023Q1", "20230420", eps=9.0),
            an_indicator("20230630", "20230820", eps=float("nan")),
            an_indicator("20230331", "20230420", eps=1.0),
        ]
        async with provider(server) as tushare:
            reports = await tushare.read(REPORTS, SYMBOL)
        assert [report.eps for report in reports] == [1.0]
        assert [refusal.row.split(",")[0] for refusal in reports.refused] == [
            "period_end=not a day: 2023Q1",
            "period_end=2023-06-30",
        ]


class TestDividends:
    async def test_only_dividends_carried_out_are_dividends(self, server: TushareServer) -> None:
        paid = {"ts_code": SYMBOL, "end_date": "20231231", "ann_date": "20240403", "cash_div_tax": 30.876}
        days = {"record_date": "20240618", "ex_date": "20240619", "imp_ann_date": "20240613"}
        server.tables["dividend"] = [
            paid | days | {"div_proc": "实施", "stk_div": None},
            paid | {"div_proc": "股东大会通过"},
            paid | {"div_proc": "预案"},
        ]
        async with provider(server) as tushare:
            [dividend] = await tushare.read(DIVIDENDS, SYMBOL)
        assert (dividend.cash_per_share, dividend.bonus_per_share) == (30.876, 0.0)
        assert dividend.period_end == date(2023, 12, 31)
        assert (dividend.ex_date, dividend.record_date) == (date(2024, 6, 19), date(2024, 6, 18))
        assert dividend.announced_on == date(2024, 6, 13)
        assert dividend.available_at == datetime(2024, 6, 13, 10, tzinfo=UTC)

    async def test_a_dividend_without_an_amount_is_refused(self, server: TushareServer) -> None:
        row = {"ts_code": SYMBOL, "end_date": "20231231", "div_proc": "实施", "imp_ann_date": "20240613"}
        server.tables["dividend"] = [row]
        async with provider(server) as tushare:
            dividends = await tushare.read(DIVIDENDS, SYMBOL)
        assert (list(dividends), len(dividends.refused)) == ([], 1)

    async def test_without_its_announcement_a_dividend_is_known_from_the_record_day(
        self, server: TushareServer
    ) -> None:
        row = {"ts_code": SYMBOL, "end_date": "20231231", "ann_date": "20240403", "div_proc": "实施"}
        server.tables["dividend"] = [row | {"record_date": "20240618", "stk_div": 0.3}]
        async with provider(server) as tushare:
            [dividend] = await tushare.read(DIVIDENDS, SYMBOL)
        assert (dividend.announced_on, dividend.bonus_per_share) == (date(2024, 6, 18), 0.3)


def a_company(symbol: str, name: str, status: str = "L", **changes: Any) -> dict[str, Any]:
    fields = {"industry": "白酒", "market": "主板", "cnspell": "gzmt", "list_date": "20010827"}
    return {"ts_code": symbol, "name": name, "list_status": status, **fields, "delist_date": None, **changes}


async def test_the_members_of_an_index_are_those_of_the_newest_list(server: TushareServer) -> None:
    server.tables["index_weight"] = [
        {"index_code": "399300.SZ", "con_code": code, "trade_date": day}
        for code, day in (("600519.SH", "20240531"), ("000001.SZ", "20240531"), ("600000.SH", "20240430"))
    ]
    async with provider(server) as tushare:
        assert await tushare.constituents("399300.SZ", date(2024, 6, 10)) == ["000001.SZ", "600519.SH"]


class TestCompanies:
    async def test_listed_delisted_and_paused_companies_are_all_there(self, server: TushareServer) -> None:
        server.tables["stock_basic"] = [
            a_company(SYMBOL, "贵州茅台", enname="Kweichow Moutai", fullname="贵州茅台酒股份有限公司"),
            a_company("600001.SH", "邯郸钢铁", "D", delist_date="20091229"),
            a_company("600002.SH", "齐鲁石化", "P"),
        ]
        async with provider(server) as tushare:
            gone, paused, moutai = await tushare.read(COMPANIES, "CN")
        assert (gone.symbol, gone.delist_date) == ("600001.SH", date(2009, 12, 29))
        assert (paused.name, paused.name_en) == ("齐鲁石化", "")
        assert (moutai.name, moutai.name_en, moutai.pinyin) == ("贵州茅台", "Kweichow Moutai", "gzmt")
        assert (moutai.industry, moutai.board, moutai.list_date) == ("白酒", "主板", date(2001, 8, 27))
        assert moutai.aliases == ("贵州茅台酒股份有限公司",)
        assert moutai.source == "tushare"

    async def test_former_names_are_aliases_and_tell_the_spells_under_st(self, server: TushareServer) -> None:
        server.tables["stock_basic"] = [a_company("600848.SH", "上海临港")]
        spells = [
            ("上海临港", "20151118", None),
            ("自仪股份", "20070514", "20151117"),
            ("ST自仪", "20061026", "20070513"),
            ("SST自仪", "20061009", "20061025"),
            ("ST自仪", "20010508", "20061008"),
            ("自仪股份", "19940324", "20010507"),
        ]
        server.tables["namechange"] = [
            {"ts_code": "600848.SH", "name": name, "start_date": start, "end_date": end}
            for name, start, end in spells
        ]
        async with provider(server) as tushare:
            [company] = await tushare.read(COMPANIES, "CN")
        assert company.aliases == ("自仪股份", "ST自仪", "SST自仪")
        assert company.st_history == (SpecialTreatment(start=date(2001, 5, 8), end=date(2007, 5, 14)),)

    async def test_a_company_under_st_today_has_a_spell_without_end(self, server: TushareServer) -> None:
        server.tables["stock_basic"] = [a_company("600848.SH", "*ST甲")]
        name = {"ts_code": "600848.SH", "name": "*ST甲", "start_date": "20240102", "end_date": None}
        server.tables["namechange"] = [name, name]
        async with provider(server) as tushare:
            [company] = await tushare.read(COMPANIES, "CN")
        assert company.st_history == (SpecialTreatment(start=date(2024, 1, 2)),)

    async def test_without_permission_for_names_the_companies_come_without_them(
        self, server: TushareServer
    ) -> None:
        server.tables["stock_basic"] = [a_company(SYMBOL, "贵州茅台")]
        server.always["namechange"] = wire.NO_PERMISSION
        async with provider(server) as tushare:
            [company] = await tushare.read(COMPANIES, "CN")
        assert (company.aliases, company.st_history) == ((), ())

    async def test_a_failure_to_read_names_is_not_taken_for_no_names(self, server: TushareServer) -> None:
        server.tables["stock_basic"] = [a_company(SYMBOL, "贵州茅台")]
        server.script("namechange", wire.FORBIDDEN)
        server.tables["namechange"] = [{"ts_code": SYMBOL, "name": "茅台", "start_date": "20010827"}]
        async with provider(server) as tushare:
            with pytest.raises(Unavailable, match="HTTP 403"):
                await tushare.read(COMPANIES, "CN")
            [company] = await tushare.read(COMPANIES, "CN")
        assert company.aliases == ("茅台",)


class TestMacro:
    TABLES = {  # noqa: RUF012
        "cn_pmi": [{"MONTH": "202402", "PMI010000": 49.1}],
        "cn_cpi": [{"month": "202402", "nt_yoy": 0.7}, {"month": "202401", "nt_yoy": -0.8}],
        "cn_ppi": [{"month": "202402", "ppi_yoy": -2.7}],
        "cn_m": [{"month": "202402", "m2_yoy": 8.7}],
        "shibor_lpr": [{"date": "20240220", "1y": 3.45, "5y": 3.95}],
        "yc_cb": [{"trade_date": "20240221", "curve_term": 10.0, "yield": 2.42}],
    }

    async def test_each_figure_has_its_period_and_is_out_no_earlier_than_its_release(
        self, server: TushareServer
    ) -> None:
        server.tables |= self.TABLES
        async with provider(server) as tushare:
            figures = await tushare.read(MACRO, "CN", *YEAR)
        assert figures.refused == ()
        assert {(f.series, f.period): (f.value, f.unit, f.available_at) for f in figures} == {
            ("pmi_manufacturing", date(2024, 2, 1)): (49.1, "index", datetime(2024, 3, 1, 1, 30, tzinfo=UTC)),
            ("cpi_yoy", date(2024, 1, 1)): (-0.8, "%", datetime(2024, 2, 18, 1, 30, tzinfo=UTC)),
            ("cpi_yoy", date(2024, 2, 1)): (0.7, "%", datetime(2024, 3, 12, 1, 30, tzinfo=UTC)),
            ("ppi_yoy", date(2024, 2, 1)): (-2.7, "%", datetime(2024, 3, 12, 1, 30, tzinfo=UTC)),
            ("m2_yoy", date(2024, 2, 1)): (8.7, "%", datetime(2024, 3, 16, 9, tzinfo=UTC)),
            ("lpr_1y", date(2024, 2, 20)): (3.45, "%", datetime(2024, 2, 20, 3, 30, tzinfo=UTC)),
            ("cgb_10y", date(2024, 2, 21)): (2.42, "%", datetime(2024, 2, 21, 10, tzinfo=UTC)),
        }
        assert all(figure.event_time <= figure.available_at for figure in figures)

    async def test_the_range_goes_by_reference_period(self, server: TushareServer) -> None:
        server.tables |= self.TABLES
        async with provider(server) as tushare:
            figures = await tushare.read(MACRO, "CN", date(2024, 1, 1), date(2024, 1, 31))
        assert [figure.series for figure in figures] == ["cpi_yoy"]

    async def test_a_series_without_permission_is_named_and_the_others_come(
        self, server: TushareServer
    ) -> None:
        server.tables |= self.TABLES
        server.always["yc_cb"] = wire.NO_PERMISSION
        async with provider(server) as tushare:
            figures = await tushare.read(MACRO, "CN", *YEAR)
        assert "cgb_10y" not in {figure.series for figure in figures}
        assert len(figures) == 6
        assert [refusal.row for refusal in figures.refused] == ["yc_cb"]

    async def test_no_permission_for_any_series_is_not_offered(self, server: TushareServer) -> None:
        server.always = dict.fromkeys(self.TABLES, wire.NO_PERMISSION)
        async with provider(server) as tushare:
            with pytest.raises(NotOffered, match="cn_pmi, cn_cpi, cn_ppi, cn_m, shibor_lpr, yc_cb"):
                await tushare.read(MACRO, "CN", *YEAR)


def an_announcement(printed: str, seen: str | None, url: str) -> dict[str, Any]:
    return {"ts_code": SYMBOL, "ann_date": printed, "title": "年度报告", "url": url, "rec_time": seen}


class TestAnnouncements:
    async def test_an_announcement_counts_from_when_it_became_visible(self, server: TushareServer) -> None:
        server.tables["anns_d"] = [
            an_announcement("20240102", "2023-12-29 18:31:10", "u1"),
            an_announcement("20240103", "2024-01-02 19:05:00", "u2"),
        ]
        async with provider(server) as tushare:
            new_year = await tushare.read(NEWS, SYMBOL, date(2024, 1, 1), date(2024, 1, 31))
            year_end = await tushare.read(NEWS, SYMBOL, date(2023, 12, 1), date(2023, 12, 31))
        assert [(item.url, item.available_at) for item in new_year] == [
            ("u2", datetime(2024, 1, 2, 11, 5, tzinfo=UTC))
        ]
        assert [(item.url, item.kind, item.symbol) for item in year_end] == [("u1", "announcement", SYMBOL)]

    @pytest.mark.parametrize("seen", [None, "", "2024-01-03 00:00:00"])
    async def test_without_a_time_it_counts_from_the_end_of_its_day(
        self, server: TushareServer, seen: str | None
    ) -> None:
        server.tables["anns_d"] = [an_announcement("20240103", seen, "u")]
        async with provider(server) as tushare:
            [item] = await tushare.read(NEWS, SYMBOL, *YEAR)
        assert item.available_at == datetime(2024, 1, 3, 15, 59, 59, tzinfo=UTC)

    async def test_without_permission_announcements_are_not_offered(self, server: TushareServer) -> None:
        server.always["anns_d"] = wire.NO_PERMISSION
        async with provider(server) as tushare:
            with pytest.raises(NotOffered) as told:
                await tushare.read(NEWS, SYMBOL, *YEAR)
        assert told.value.code == "NOT_OFFERED"
        assert "anns_d" in told.value.in_locale("zh-CN")
        assert "anns_d" in told.value.in_locale("en-US")

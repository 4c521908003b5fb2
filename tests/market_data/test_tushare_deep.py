"""Tushare's deeper tables as facts: units, the moment each was known, pages, permissions."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from moot.modules.market_data.domain.facts import (
    BARS,
    COMPANIES,
    DEEP,
    FLOWS,
    HOLDER_TRADES,
    HOLDERS,
    INDEX_BARS,
    MARGIN,
    NOTICES,
    PLEDGES,
    STATEMENTS,
    UNLOCKS,
    Dataset,
)
from moot.modules.market_data.domain.provider import Missing, NotOffered
from moot.modules.market_data.domain.trading_rules import trading_calendar
from moot.shared.domain.facts import NameSince
from moot.shared.domain.symbol import Market
from tests.fakes import tushare_server as wire
from tests.fakes.tushare_server import TushareServer, provider

SYMBOL = "600519.SH"
YEAR = (date(2024, 1, 1), date(2024, 12, 31))
KEY = {"ts_code": SYMBOL}
BAR = {"trade_date": "20240102", "open": 10.0, "high": 11.0, "low": 9.0, "close": 10.5}
QUOTE = {**KEY, "open": 10.0, "high": 10.5, "low": 9.9, "close": 10.2, "pre_close": 10.1}


@pytest.fixture(params=[False, True], ids=["as asked", "backwards"])
def server(request: pytest.FixtureRequest) -> Iterator[TushareServer]:
    with TushareServer(backwards=request.param) as server:
        yield server


def known(*moment: int) -> datetime:
    """In Shanghai."""
    return datetime(*moment, tzinfo=UTC) - timedelta(hours=8)  # type: ignore[misc]


def filed(end: str, announced: str, actual: str, **figures: Any) -> dict[str, Any]:
    keys = {"end_date": end, "ann_date": announced, "f_ann_date": actual, "report_type": "1"}
    return {**KEY, **keys, "update_flag": "0", **figures}


class TestStatements:
    async def test_three_tables_make_one_statement_known_when_it_was_really_announced(
        self, server: TushareServer
    ) -> None:
        days = ("20231231", "20240330", "20240402")
        server.tables |= {
            "income": [filed(*days, revenue=1.5e11, oper_cost=1.2e10, rd_exp=None, n_income=7.7e10)],
            "balancesheet": [
                filed(*days, accounts_receiv=6e7, undistr_porfit=1.8e11, total_share=1256197800)
            ],
            "cashflow": [filed(*days, n_cashflow_act=6.7e10, depr_fa_coga_dpba=1.9e9)],
        }
        async with provider(server) as tushare:
            [stated] = await tushare.read(STATEMENTS, SYMBOL)
        assert (stated.revenue, stated.cost_of_sales, stated.research_expense) == (1.5e11, 1.2e10, None)
        assert (stated.net_profit, stated.receivables, stated.retained_earnings) == (7.7e10, 6e7, 1.8e11)
        assert (stated.shares, stated.operating_cash, stated.depreciation) == (1256197800, 6.7e10, 1.9e9)
        assert (stated.period_end, stated.announced_on) == (date(2023, 12, 31), date(2024, 4, 2))
        assert stated.available_at == known(2024, 4, 2, 18)

    async def test_a_restatement_is_known_from_its_own_day(self, server: TushareServer) -> None:
        server.tables["income"] = [
            filed("20221231", "20230330", "20240829", update_flag="1", n_income=60.0),
            filed("20221231", "20230330", "20230330", n_income=100.0),
        ]
        async with provider(server) as tushare:
            stated = await tushare.read(STATEMENTS, SYMBOL)
        assert [(s.announced_on, s.net_profit) for s in stated] == [
            (date(2023, 3, 30), 100.0),
            (date(2024, 8, 29), 60.0),
        ]

    async def test_only_what_is_consolidated_is_read_and_a_table_not_permitted_is_named(
        self, server: TushareServer
    ) -> None:
        days = ("20231231", "20240330", "20240330")
        server.tables["income"] = [filed(*days, n_income=7.0), filed(*days, report_type="6", n_income=1.0)]
        server.always["cashflow"] = wire.OLD_NO_PERMISSION
        async with provider(server) as tushare:
            stated = await tushare.read(STATEMENTS, SYMBOL)
        assert [s.net_profit for s in stated] == [7.0]
        [gap] = stated.refused
        assert isinstance(gap, Missing)
        assert gap.said is not None
        assert "没有接口 cashflow 的权限" in gap.said.in_locale("zh-CN")

    async def test_every_figure_of_ours_is_asked_for(self, server: TushareServer) -> None:
        async with provider(server) as tushare:
            await tushare.read(STATEMENTS, SYMBOL)
        asked = {name for request in server.requests for name in request["fields"].split(",")}
        assert asked >= {"fin_exp_int_exp", "goodwill", "bond_payable", "n_cash_flows_fnc_act", "f_ann_date"}


class TestNotices:
    async def test_forecasts_and_express_reports_count_from_their_announcement(
        self, server: TushareServer
    ) -> None:
        forecast = {"type": "预增", "p_change_min": 50.0, "p_change_max": 80.0, "summary": "预计增长"}
        amounts = {"net_profit_min": 7020.5, "net_profit_max": None}
        before = {**KEY, "ann_date": "20240115", "end_date": "20231231", **forecast, **amounts}
        express = {"revenue": 1.4e9, "n_income": 7.5e7, "diluted_eps": 0.6, "yoy_dedu_np": 61.5}
        server.tables["forecast"] = [before, before]
        server.tables["express"] = [
            {**KEY, "ann_date": "20240227", "end_date": "20231231", **express, "perf_summary": None}
        ]
        async with provider(server) as tushare:
            notices = await tushare.read(NOTICES, SYMBOL)
        assert notices.refused == ()
        told = {notice.kind: notice for notice in notices}
        assert (told["forecast"].net_profit_low, told["forecast"].net_profit_high) == (7.0205e7, None)
        assert (told["forecast"].change_high, told["forecast"].says) == (80.0, "预增 预计增长")
        assert told["forecast"].available_at == known(2024, 1, 15, 18)
        assert (told["express"].net_profit_low, told["express"].change_low) == (7.5e7, 61.5)
        assert (told["express"].revenue, told["express"].eps, told["express"].says) == (1.4e9, 0.6, "")


class TestOwners:
    async def test_pledges_are_known_in_the_session_after_the_week(self, server: TushareServer) -> None:
        row = {
            **KEY,
            "end_date": "20240927",
            "unrest_pledge": 63.16,
            "rest_pledge": None,
            "pledge_ratio": 0.31,
        }
        server.tables["pledge_stat"] = [row]
        async with provider(server) as tushare:
            [pledge] = await tushare.read(PLEDGES, SYMBOL)
        assert (pledge.day, pledge.pledged_shares, pledge.pledged_percent) == (
            date(2024, 9, 27),
            631_600,
            0.31,
        )
        assert pledge.available_at == known(2024, 9, 30, 18)

    async def test_an_expiry_is_known_from_its_announcement(self, server: TushareServer) -> None:
        row = {**KEY, "float_date": "20271221", "float_share": 25076106.0, "float_ratio": 1.9041}
        server.tables["share_float"] = [
            {**row, "ann_date": "20241220", "holder_name": "甲"},
            {**row, "ann_date": None, "holder_name": "乙"},
        ]
        async with provider(server) as tushare:
            unlocks = await tushare.read(UNLOCKS, SYMBOL)
        assert {(u.holder, u.available_at) for u in unlocks} == {
            ("甲", known(2024, 12, 20, 18)),
            ("乙", known(2027, 12, 21, 18)),
        }
        assert {(u.shares, u.percent) for u in unlocks} == {(25_076_106, 1.9041)}

    async def test_a_count_of_holders_that_comes_twice_is_one_and_a_blank_one_is_refused(
        self, server: TushareServer
    ) -> None:
        row = {**KEY, "ann_date": "20240427", "end_date": "20240331", "holder_num": 187_302}
        server.tables["stk_holdernumber"] = [row, row, {**row, "end_date": "20231231", "holder_num": None}]
        async with provider(server) as tushare:
            counts = await tushare.read(HOLDERS, SYMBOL)
        assert [(count.holders, count.available_at) for count in counts] == [
            (187_302, known(2024, 4, 27, 18))
        ]
        assert [refusal.row.split(",")[0] for refusal in counts.refused] == ["period_end=2023-12-31"]

    async def test_trades_of_holders_have_a_side_and_no_share_of_the_float(
        self, server: TushareServer
    ) -> None:
        row = {**KEY, "ann_date": "20240426", "change_vol": 1.2e6, "change_ratio": 0.4, "avg_price": None}
        server.tables["stk_holdertrade"] = [
            {**row, "holder_name": "刘燕", "holder_type": "G", "in_de": "DE"},
            {**row, "holder_name": "某投资", "holder_type": "C", "in_de": "IN"},
            {**row, "holder_name": "谁", "holder_type": "X", "in_de": "IN"},
        ]
        async with provider(server) as tushare:
            trades = await tushare.read(HOLDER_TRADES, SYMBOL)
        assert {(t.holder, t.kind, t.direction, t.shares, t.percent) for t in trades} == {
            ("刘燕", "executive", "sell", 1.2e6, None),
            ("某投资", "company", "buy", 1.2e6, None),
        }
        assert ["kind: " in refusal.why for refusal in trades.refused] == [True]
        assert trades[0].available_at == known(2024, 4, 26, 18)


class TestPressure:
    async def test_margin_is_known_in_the_morning_of_the_next_session(self, server: TushareServer) -> None:
        row = {**KEY, "trade_date": "20240930", "rzye": 1.6e10, "rzmre": 3.1e8, "rqye": None}
        server.tables["margin_detail"] = [row]
        async with provider(server) as tushare:
            [day] = await tushare.read(MARGIN, SYMBOL, *YEAR)
        assert (day.financing_balance, day.financing_bought, day.short_balance) == (1.6e10, 3.1e8, None)
        assert day.available_at == known(2024, 10, 8, 9)

    async def test_beyond_the_calendar_the_next_weekday_stands_for_the_next_session(
        self, server: TushareServer
    ) -> None:
        ended = trading_calendar(Market.CN).last
        friday = ended + timedelta(days=11 - ended.weekday())
        monday = friday + timedelta(days=3)
        server.tables["margin_detail"] = [{**KEY, "trade_date": f"{friday:%Y%m%d}", "rzye": 1.0}]
        async with provider(server) as tushare:
            [day] = await tushare.read(MARGIN, SYMBOL, ended, friday)
        assert day.available_at == known(monday.year, monday.month, monday.day, 9)

    async def test_large_orders_are_known_that_day_and_what_hong_kong_holds_the_next(
        self, server: TushareServer
    ) -> None:
        orders = {"buy_lg_amount": 300.0, "buy_elg_amount": 200.5, "sell_lg_amount": 100.0}
        server.tables["moneyflow"] = [
            {**KEY, "trade_date": day, **orders, "sell_elg_amount": sold}
            for day, sold in (("20240103", 900.0), ("20240102", None))
        ]
        server.tables["hk_hold"] = [{**KEY, "trade_date": "20240102", "vol": 8.6e7, "ratio": 6.84}]
        async with provider(server) as tushare:
            first, second = await tushare.read(FLOWS, SYMBOL, *YEAR)
        assert (first.net_inflow, first.northbound_shares, first.northbound_percent) == (4.005e6, 8.6e7, 6.84)
        assert (second.net_inflow, second.northbound_shares) == (-4.995e6, None)
        assert (first.available_at, second.available_at) == (known(2024, 1, 3, 9), known(2024, 1, 3, 16))

    async def test_flows_are_read_page_by_page_beyond_six_thousand_rows(self, server: TushareServer) -> None:
        days = [date(2000, 1, 1) + timedelta(days=n) for n in range(6_500)]
        rows = [{**KEY, "trade_date": f"{day:%Y%m%d}", "buy_lg_amount": 1.0} for day in days]
        server.tables["moneyflow"] = rows[::-1]
        async with provider(server) as tushare:
            flows = await tushare.read(FLOWS, SYMBOL, date(2000, 1, 1), date(2024, 12, 31))
        assert [flow.trade_date for flow in flows] == days
        assert server.calls()["moneyflow"] == 4


class TestIndexes:
    async def test_those_of_the_market_and_of_industries_by_the_names_of_companies(
        self, server: TushareServer
    ) -> None:
        server.tables["stock_basic"] = [{"ts_code": SYMBOL, "industry": "白酒", "list_status": "L"}]
        server.tables["index_classify"] = [
            {"index_code": "851251.SI", "industry_name": "白酒Ⅲ", "level": "L3", "is_pub": "1"},
            {"index_code": "801125.SI", "industry_name": "白酒Ⅱ", "level": "L2", "is_pub": "1"},
            {"index_code": "801780.SI", "industry_name": "银行", "level": "L1", "is_pub": "1"},
        ]
        server.tables["index_daily"] = [
            {"ts_code": "000300.SH", **BAR, "pre_close": 10.2, "vol": 5.0, "amount": 7.0}
        ]
        server.tables["sw_daily"] = [
            {"ts_code": code, **BAR, "change": 0.25, "vol": 5.0, "amount": 7.0}
            for code in ("801125.SI", "851251.SI", "801780.SI")
        ]
        async with provider(server) as tushare:
            bars = {bar.index: bar for bar in await tushare.read(INDEX_BARS, "CN", *YEAR)}
        assert {(bar.index, bar.name, bar.industry) for bar in bars.values()} == {
            ("000300.SH", "沪深300", None),
            ("801125.SI", "白酒", "白酒"),
        }
        market, liquor = bars["000300.SH"], bars["801125.SI"]
        assert (market.pre_close, market.volume, market.amount) == (10.2, 500, 7_000)
        assert (liquor.pre_close, liquor.volume, liquor.amount) == (10.25, 50_000, 70_000)
        assert market.available_at == known(2024, 1, 2, 16)

    async def test_industries_that_are_not_permitted_leave_the_market(self, server: TushareServer) -> None:
        server.tables["index_daily"] = [{"ts_code": "000001.SH", **BAR, "pre_close": 10.2}]
        server.always["index_classify"] = wire.NO_PERMISSION
        async with provider(server) as tushare:
            bars = await tushare.read(INDEX_BARS, "CN", *YEAR)
        assert [bar.index for bar in bars] == ["000001.SH"]
        assert [gap.row for gap in bars.refused] == ["index_classify"]


class TestNamesAndSuspensions:
    async def test_a_company_has_the_names_it_had_and_since_when(self, server: TushareServer) -> None:
        server.tables["stock_basic"] = [
            {**KEY, "name": "丙", "industry": "白酒", "list_date": "20010827", "list_status": "L"}
        ]
        spells = [("丙", "20200601", None), ("*ST乙", "20190501", "20200531"), ("甲", "20010827", "20190430")]
        rows = [{**KEY, "name": n, "start_date": a, "end_date": b} for n, a, b in spells]
        again = {**KEY, "name": "丙", "start_date": "20220101", "end_date": None}
        server.tables["namechange"] = [again, *rows, rows[0]]
        async with provider(server) as tushare:
            [company] = await tushare.read(COMPANIES, "CN")
        assert company.names == (
            NameSince(name="甲", start=date(2001, 8, 27)),
            NameSince(name="*ST乙", start=date(2019, 5, 1)),
            NameSince(name="丙", start=date(2020, 6, 1)),
        )

    async def test_a_whole_day_without_trading_repeats_the_last_close(self, server: TushareServer) -> None:
        days = ("20240105", "20240102")
        server.tables["daily"] = [{**QUOTE, "trade_date": d, "vol": 1e3, "amount": 1020.0} for d in days]
        server.tables["adj_factor"] = [{**KEY, "trade_date": d, "adj_factor": 2.0} for d in days]
        halts = [
            ("20240102", "09:30-10:00"),
            ("20240103", None),
            ("20240104", "09:30-15:00"),
            ("20231229", None),
        ]
        server.tables["suspend_d"] = [
            {**KEY, "trade_date": day, "suspend_timing": timing, "suspend_type": "S"} for day, timing in halts
        ] + [{**KEY, "trade_date": "20240105", "suspend_timing": None, "suspend_type": "R"}]
        async with provider(server) as tushare:
            bars = await tushare.read(BARS, SYMBOL, *YEAR)
        assert [(bar.trade_date.day, bar.suspended) for bar in bars] == [(2, False), (3, True), (5, False)]
        still = bars[1]
        assert {still.open, still.high, still.low, still.close, still.pre_close} == {10.2}
        assert (still.volume, still.amount, still.adj_factor) == (0, 0, 2.0)

    async def test_without_permission_there_are_bars_all_the_same(self, server: TushareServer) -> None:
        server.tables["daily"] = [{**QUOTE, "trade_date": "20240102", "vol": 1e3, "amount": 1020.0}]
        server.tables["adj_factor"] = [{**KEY, "trade_date": "20240102", "adj_factor": 2.0}]
        server.always = dict.fromkeys(("suspend_d", "namechange"), wire.NO_PERMISSION)
        async with provider(server) as tushare:
            bars = [await tushare.read(BARS, SYMBOL, *YEAR) for _ in range(3)]
        assert [len(found) for found in bars] == [1, 1, 1]
        assert server.calls()["suspend_d"] == server.calls()["namechange"] == 1, "asked once an hour"


APIS = {
    STATEMENTS: ("income", "balancesheet", "cashflow"),
    NOTICES: ("forecast", "express"),
    INDEX_BARS: ("index_classify", "stock_basic", "index_daily"),
    PLEDGES: ("pledge_stat",),
    UNLOCKS: ("share_float",),
    HOLDERS: ("stk_holdernumber",),
    HOLDER_TRADES: ("stk_holdertrade",),
    MARGIN: ("margin_detail",),
    FLOWS: ("moneyflow", "hk_hold"),
}


@pytest.mark.parametrize("dataset", DEEP, ids=str)
@pytest.mark.parametrize("fault", [wire.NO_PERMISSION, wire.OLD_NO_PERMISSION], ids=["40203", "2002"])
async def test_what_the_token_may_not_read_at_all_is_not_offered_and_asked_for_once(
    dataset: Dataset[Any], fault: wire.Fault
) -> None:
    with TushareServer() as server:
        server.always = dict.fromkeys(APIS[dataset], fault)
        async with provider(server) as tushare:
            for _ in range(3):
                with pytest.raises(NotOffered, match="points on"):
                    await tushare.read(dataset, SYMBOL if dataset.by_symbol else "CN", *YEAR)
        assert set(server.calls().values()) == {1}


@pytest.mark.parametrize("dataset", DEEP, ids=str)
async def test_a_rate_limit_is_waited_out_and_nothing_is_an_empty_batch(dataset: Dataset[Any]) -> None:
    with TushareServer() as server:
        server.script(APIS[dataset][-1], wire.RATE, wire.RATE)
        async with provider(server) as tushare:
            found = await tushare.read(dataset, SYMBOL if dataset.by_symbol else "CN", *YEAR)
        assert (list(found), found.refused) == ([], ())
        assert server.calls()[APIS[dataset][-1]] >= 3

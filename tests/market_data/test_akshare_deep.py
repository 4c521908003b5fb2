"""AKShare's deeper pages: the figures, in our units, and the moment from which each was known."""

from datetime import UTC, date, datetime
from types import SimpleNamespace

import pytest

from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.provider import NotOffered
from moot.modules.market_data.infrastructure.providers.akshare import AkshareProvider
from moot.modules.market_data.infrastructure.providers.outside import Pace
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.messages import LOCALES
from tests.fakes.eastmoney_server import EastmoneyServer, eastmoney_server

pytest.importorskip("akshare", reason="the akshare extra is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pandas, in the library

KNOWN, BANK, UNKNOWN = "600519.SH", "601398.SH", "600999.SH"
JUNE = (date(2024, 6, 17), date(2024, 6, 21))
AFTER_THE_HOLIDAY = date(2024, 6, 11)  # 10 June 2024 was one


@pytest.fixture(scope="module")
def running():
    with eastmoney_server() as stub:
        yield stub


@pytest.fixture
def stub(running: EastmoneyServer, monkeypatch: pytest.MonkeyPatch) -> EastmoneyServer:
    running.asked.clear()
    running.down = set()
    running.redirect(monkeypatch)
    monkeypatch.setattr("akshare.utils.request.time", SimpleNamespace(sleep=lambda _: None))
    return running


@pytest.fixture
def provider() -> AkshareProvider:
    fast = Pace(calls=100, per_seconds=0.01, concurrency=4)
    return AkshareProvider(pace=fast, pauses=())


def evening(*day: int) -> datetime:
    return datetime(*day, 10, tzinfo=UTC)


async def test_statements_of_a_period_stand_together(stub, provider):
    annual, quarter = await provider.read(facts.STATEMENTS, KNOWN)
    assert (annual.symbol, annual.period_end, annual.announced_on) == (
        KNOWN,
        date(2023, 12, 31),
        date(2024, 4, 3),
    )
    assert (annual.revenue, annual.cost_of_sales, annual.selling_expense) == (1.5e9, 1.2e8, 4.0e7)
    assert (annual.interest_expense, annual.net_profit, annual.net_profit_parent) == (1.2e5, 7.7e8, 7.4e8)
    assert (annual.inventory, annual.retained_earnings, annual.equity, annual.shares) == (
        4.6e8,
        1.7e9,
        2.1e9,
        1.25e9,
    )
    assert (annual.operating_cash, annual.capex, annual.depreciation) == (6.6e8, 2.6e7, 1.8e7)
    assert (annual.short_debt, annual.goodwill) == (None, None)
    assert (quarter.total_assets, quarter.depreciation) == (2.8e9, None)


async def test_a_statement_that_was_put_right_is_known_from_then_on(stub, provider):
    annual, quarter = await provider.read(facts.STATEMENTS, KNOWN)
    assert annual.available_at == evening(
        2024, 8, 9
    )  # its balance sheet was, four months after all were announced
    assert (quarter.event_time, quarter.available_at) == (
        datetime(2024, 3, 31, 7, tzinfo=UTC),
        evening(2024, 4, 27),
    )


async def test_a_bank_has_statements_of_its_own_kind(stub, provider):
    [annual] = await provider.read(facts.STATEMENTS, BANK)
    assert (annual.revenue, annual.net_profit_parent, annual.inventory) == (8.4e11, 3.6e11, None)


async def test_forecasts_and_express_reports_are_known_before_the_report(stub, provider):
    notices = await provider.read(facts.NOTICES, KNOWN)
    express, first, second = notices
    assert notices.refused == ()
    assert (express.kind, express.net_profit_low, express.net_profit_high) == ("express", 7.35e8, 7.35e8)
    assert (express.change_low, express.revenue, express.eps) == (17.2, 1.49e9, 0.59)
    assert (express.announced_on, express.available_at) == (date(2024, 1, 20), evening(2024, 2, 2))
    assert (first.kind, first.net_profit_low, first.net_profit_high) == ("forecast", 4.0e8, 4.3e8)
    assert (first.change_low, first.change_high) == (12.5, 15.0)
    assert first.says == "略增 预计2024年1-6月归属于上市公司股东的净利润增长"
    assert [notice.available_at for notice in (first, second)] == [evening(2024, 6, 5), evening(2024, 7, 10)]


async def test_numbers_of_holders_count_from_their_announcement(stub, provider):
    counts = await provider.read(facts.HOLDERS, KNOWN)
    assert [(count.period_end, count.holders, count.available_at) for count in counts] == [
        (date(2023, 12, 31), 161_000, evening(2024, 4, 3)),
        (date(2024, 3, 31), 171_000, evening(2024, 4, 27)),
    ]
    assert [refusal.row.split(",")[0] for refusal in counts.refused] == ["period_end=2023-09-30"]


async def test_pledges_are_known_in_the_session_after_all_pages_of_them(stub, provider):
    pledges = await provider.read(facts.PLEDGES, KNOWN)
    assert len(pledges) == 600
    last = pledges[-1]
    assert (last.day, last.pledged_shares, last.pledged_percent) == (date(2024, 6, 7), 736_600.0, 0.06)
    assert last.available_at == evening(2024, 6, 11)
    pages = [query["pageNumber"] for place, query in stub.asked if query.get("reportName") == "RPT_CSDC_LIST"]
    assert pages == ["1", "2"]


async def test_trades_of_holders_go_one_way_or_the_other(stub, provider):
    sold, bought = await provider.read(facts.HOLDER_TRADES, KNOWN)
    assert (sold.direction, sold.kind, sold.shares, sold.average_price) == ("sell", "person", 32_000.0, None)
    assert (bought.direction, bought.kind, bought.shares) == ("buy", "company", 107_500.0)
    assert (bought.percent, bought.average_price) == (0.0086, 20.1)
    assert bought.available_at == evening(2024, 6, 3)


async def test_unlocks_are_known_before_they_come(stub, provider):
    old, coming = await provider.read(facts.UNLOCKS, KNOWN)
    assert (coming.unlock_date, coming.shares) == (date(2024, 7, 22), 12_005_000.0)
    assert (old.available_at, coming.available_at) == (evening(2016, 7, 20), evening(2024, 7, 16))


async def test_a_day_of_flows_waits_for_what_is_told_last(stub, provider):
    flows = {
        day.trade_date.day: day for day in await provider.read(facts.FLOWS, KNOWN, date(2024, 6, 14), JUNE[1])
    }
    assert [(day, flow.net_inflow, flow.northbound_shares) for day, flow in flows.items()] == [
        (14, None, 8.5e7),
        (17, -1.5e7, None),
        (18, 2.5e7, 8.6e7),
        (19, 0.0, None),
    ]
    assert flows[17].available_at == datetime(2024, 6, 17, 8, tzinfo=UTC)
    assert flows[18].available_at == datetime(2024, 6, 19, 1, tzinfo=UTC)  # before the next session opens


async def test_indexes_of_the_market_and_of_an_industry_that_is_asked_for(stub, provider):
    market = await provider.read(facts.INDEX_BARS, "CN", *JUNE)
    bars = [*market, *await provider.industry_bars("酿酒行业", *JUNE)]
    assert await provider.industry_bars("炼金行业", *JUNE) == []
    of_day = {bar.index: bar for bar in bars if bar.trade_date == date(2024, 6, 18)}
    assert {bar.name: bar.industry for bar in of_day.values()} == {
        "上证指数": None,
        "沪深300": None,
        "中证500": None,
        "深证成指": None,
        "创业板指": None,
        "酿酒行业": "酿酒行业",
    }
    for index in ("000300.SH", "BK0477"):
        bar = of_day[index]
        assert (bar.close, bar.pre_close, bar.volume, bar.amount) == (20.5, 20.4, 900_000, 18_400_000)
    assert of_day["000300.SH"].available_at == datetime(2024, 6, 18, 8, tzinfo=UTC)


async def test_where_eastmoney_refuses_indexes_of_the_market_come_from_sina(stub, provider):
    stub.down = {"eastmoney"}
    bars = await provider.read(facts.INDEX_BARS, "CN", *JUNE)
    assert {bar.name for bar in bars} == {"上证指数", "沪深300", "中证500", "深证成指", "创业板指"}
    assert {bar.volume for bar in bars if bar.trade_date == date(2024, 6, 18)} == {900_000}
    assert (bars.refused, bars.partial) == ((), False)
    with pytest.raises(Unavailable):
        await provider.industry_bars("酿酒行业", *JUNE)


async def test_a_symbol_nobody_has_gives_empty_batches(stub, provider):
    offered = [dataset for dataset in facts.DEEP if dataset.by_symbol and dataset is not facts.MARGIN]
    for dataset in offered:
        assert (await provider.read(dataset, UNKNOWN, *JUNE), dataset) == ([], dataset)


async def test_what_comes_for_a_whole_exchange_only_is_said_with_what_to_do(provider):
    with pytest.raises(NotOffered) as caught:
        await provider.read(facts.MARGIN, KNOWN)
    for locale in LOCALES:
        assert "MOOT_TUSHARE_TOKEN" in caught.value.in_locale(locale)


@pytest.mark.parametrize("dataset", [facts.STATEMENTS, facts.PLEDGES, facts.FLOWS], ids=str)
async def test_a_refusal_is_not_taken_for_nothing(stub, provider, dataset):
    stub.down = {"eastmoney"}
    with pytest.raises(Unavailable, match="HTTP 403"):
        await provider.read(dataset, KNOWN, *JUNE)

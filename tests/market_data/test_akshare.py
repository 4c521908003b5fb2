"""AKShare against pages that answer as Eastmoney, Sina and the exchanges do; the requests are AKShare's own."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from itertools import pairwise
from types import SimpleNamespace

import pytest

from moot.modules.market_data.application.sync import SyncService
from moot.modules.market_data.domain.facts import BARS, COMPANIES, DIVIDENDS, MACRO, NEWS, REPORTS, VALUATIONS
from moot.modules.market_data.domain.provider import NotOffered
from moot.modules.market_data.infrastructure.lake import Lake
from moot.modules.market_data.infrastructure.providers import akshare
from moot.modules.market_data.infrastructure.providers.akshare import AkshareProvider
from moot.modules.market_data.infrastructure.providers.outside import Pace
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.guard import Dependency, LeftAlone
from moot.shared.domain.symbol import Market
from tests.fakes import eastmoney_server
from tests.fakes.call_record import Record
from tests.fakes.clock import FixedClock
from tests.fakes.eastmoney_server import EastmoneyServer

pytest.importorskip("akshare", reason="the akshare extra is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pandas, in the library

KNOWN, UNKNOWN = "600519.SH", "600999.SH"
FAST = Pace(calls=100, per_seconds=0.01, concurrency=4)
NOW = datetime(2024, 6, 24, 1, tzinfo=UTC)
JUNE = (date(2024, 6, 17), date(2024, 6, 21))


@pytest.fixture(scope="module")
def running():
    with eastmoney_server.eastmoney_server() as stub:
        yield stub


@pytest.fixture
def stub(running: EastmoneyServer, monkeypatch: pytest.MonkeyPatch) -> EastmoneyServer:
    running.asked.clear()
    running.times.clear()
    running.down = set()
    running.broken, running.broken_for, running.slow = None, 1_000_000, 0.0
    running.redirect(monkeypatch)
    monkeypatch.setattr(akshare, "NEWS_URL", f"{running.url}/search-api-web.eastmoney.com/search/jsonp")
    monkeypatch.setattr("akshare.request.time", SimpleNamespace(sleep=lambda _: None))
    return running


@pytest.fixture
def provider() -> AkshareProvider:
    return AkshareProvider(pace=FAST, pauses=(0.0,))


async def test_bars_are_raw_prices_shares_and_yuan_with_their_two_times(stub, provider):
    bars = await provider.read(BARS, KNOWN, *JUNE)
    first = bars[0]
    assert (first.symbol, first.source, first.trade_date) == (KNOWN, "akshare", date(2024, 6, 17))
    assert (first.open, first.close, first.high, first.low) == (20.0, 20.4, 20.8, 19.9)
    assert (first.volume, first.amount) == (1_000_000, 20_300_000.0)
    assert first.event_time == datetime(2024, 6, 17, 7, tzinfo=UTC)
    assert first.available_at == datetime(2024, 6, 17, 8, tzinfo=UTC)
    place, query = stub.asked[0]
    assert place == "push2his.eastmoney.com/api/qt/stock/kline/get"
    assert (query["secid"], query["fqt"], query["beg"], query["end"]) == (
        "1.600519",
        "0",
        "20240508",
        "20240621",
    )


async def test_an_ex_right_day_moves_the_factor_and_the_reference_price(stub, provider):
    bars = {bar.trade_date.day: bar for bar in await provider.read(BARS, KNOWN, *JUNE)}
    assert [(day, bar.adj_factor) for day, bar in bars.items()] == [
        (17, 1.0),
        (18, 1.0),
        (19, 1.025),
        (21, 1.025),
    ]
    assert [bars[day].pre_close for day in (17, 18, 19)] == [20.0, 20.4, 20.0]


async def test_the_very_first_day_has_its_reference_price_from_its_own_change(stub, provider):
    [first, *_] = await provider.read(BARS, KNOWN, date(2024, 1, 1), JUNE[1])
    assert (first.trade_date, first.pre_close) == (date(2024, 6, 14), 19.9)


async def test_a_dash_for_a_price_refuses_that_day_by_name_and_no_other(stub, provider):
    bars = await provider.read(BARS, KNOWN, *JUNE)
    assert [bar.trade_date.day for bar in bars] == [17, 18, 19, 21]
    assert [(r.row, r.why) for r in bars.refused] == [("trade_date=2024-06-20", "open: Field required")]
    assert bars[-1].pre_close == 20.3  # its close was there


EASTMONEY_QUOTES, SINA_QUOTES, TENCENT_QUOTES = "push2his", "klc_kl", "finance.qq"


@pytest.mark.parametrize(
    ("refusing", "host"),
    [({EASTMONEY_QUOTES}, "finance.sina.com.cn"), ({EASTMONEY_QUOTES, SINA_QUOTES}, "proxy.finance.qq.com")],
)
async def test_where_eastmoney_refuses_the_same_days_come_from_another_host(stub, provider, refusing, host):
    usual = {bar.trade_date: bar for bar in await provider.read(BARS, KNOWN, *JUNE)}
    stub.down, stub.asked[:] = refusing, []
    bars = await provider.read(BARS, KNOWN, *JUNE)
    assert host in stub.hosts()
    assert [bar.trade_date.day for bar in bars] == [17, 18, 19, 20, 21]
    assert bars.refused == ()
    for bar in bars:
        if other := usual.get(bar.trade_date):
            assert bar == other.model_copy(update={"amount": pytest.approx(other.amount, abs=100)})


async def test_a_share_that_akshare_takes_for_an_index_is_in_shares_as_well(stub, provider):
    stub.down = {EASTMONEY_QUOTES, SINA_QUOTES}
    [first, *_] = await provider.read(BARS, "000012.SZ", *JUNE)
    assert (first.volume, first.amount) == (1_000_000, 20_300_000.0)


async def test_where_all_hosts_refuse_it_is_what_the_first_one_said(stub, provider):
    stub.down = {EASTMONEY_QUOTES, SINA_QUOTES, TENCENT_QUOTES}
    with pytest.raises(Unavailable, match="stock_zh_a_hist:"):
        await provider.read(BARS, KNOWN, *JUNE)


async def test_a_host_that_is_left_alone_takes_no_other_down(stub):
    @asynccontextmanager
    async def leave_eastmoney_alone(called: Dependency) -> AsyncIterator[None]:
        if called.name == "data:akshare":
            raise LeftAlone("not now", retry_after=60)
        yield

    provider = AkshareProvider(pace=FAST, pauses=(), guard=leave_eastmoney_alone)
    assert len(await provider.read(BARS, KNOWN, *JUNE)) == 5
    assert "push2his.eastmoney.com" not in stub.hosts()


async def test_valuations_keep_a_negative_pe_and_leave_out_what_is_missing(stub, provider):
    valuations = await provider.read(VALUATIONS, KNOWN, *JUNE)
    loss, profit = valuations
    assert (loss.trade_date.day, loss.pe_ttm, loss.pe, loss.ps_ttm) == (18, -8.5, None, None)
    assert (profit.total_mv, profit.circ_mv, profit.pe, profit.pb) == (2.52e10, 2.5e10, 13.1, 3.2)
    assert [r.row for r in valuations.refused] == ["trade_date=2024-06-17"]
    assert await provider.read(VALUATIONS, KNOWN, date(2020, 1, 1), date(2020, 2, 1)) == []


async def test_reports_are_known_from_their_announcement_or_the_deadline(stub, provider):
    annual, quarter = await provider.read(REPORTS, KNOWN)
    assert (annual.eps, annual.roe_waa, annual.gross_margin, annual.net_profit) == (1.61, 30.2, 71.5, 2.0e8)
    assert (annual.event_time, annual.available_at) == (
        datetime(2023, 12, 31, 7, tzinfo=UTC),
        datetime(2024, 4, 3, 10, tzinfo=UTC),
    )
    assert (quarter.announced_on, quarter.gross_margin, quarter.roic) == (date(2024, 4, 30), None, None)


async def test_a_report_that_was_corrected_is_known_from_then_on(stub, provider, monkeypatch):
    corrected = {"UPDATE_DATE": "2025-04-03 00:00:00", "PER_TOI": 8.8, "FCFF_BACK": 1.5e8}
    monkeypatch.setattr(eastmoney_server, "INDICATORS", [eastmoney_server.INDICATORS[1] | corrected])
    [annual] = await provider.read(REPORTS, KNOWN)
    assert (annual.announced_on, annual.available_at) == (
        date(2024, 4, 3),
        datetime(2025, 4, 3, 10, tzinfo=UTC),
    )
    assert (annual.total_revenue_ps, annual.fcff) == (8.8, 1.5e8)


async def test_a_dividend_is_known_when_its_dates_are_and_a_plan_is_none(stub, provider):
    shares, cash = await provider.read(DIVIDENDS, KNOWN)
    assert (cash.cash_per_share, cash.bonus_per_share, cash.ex_date) == (0.5, 0.0, date(2024, 6, 19))
    assert cash.available_at == datetime(2024, 6, 12, 10, tzinfo=UTC)
    assert (shares.cash_per_share, shares.bonus_per_share) == (0.0, 0.3)
    assert shares.available_at == datetime(
        2023, 6, 15, 10, tzinfo=UTC
    )  # only its plan has an announcement date


async def test_macro_figures_have_a_period_and_a_release_after_it(stub, provider):
    figures = await provider.read(MACRO, "CN", date(2024, 1, 1), date(2024, 12, 31))
    by_name = {(o.series, o.period): o for o in figures}
    assert {series for series, _ in by_name} == {
        "pmi_manufacturing",
        "cpi_yoy",
        "ppi_yoy",
        "m2_yoy",
        "lpr_1y",
    }
    cpi = by_name["cpi_yoy", date(2024, 2, 1)]
    assert (cpi.value, cpi.unit, cpi.event_time) == (0.7, "%", datetime(2024, 2, 29, 7, tzinfo=UTC))
    assert by_name["m2_yoy", date(2024, 2, 1)].value == 0.7
    assert by_name["ppi_yoy", date(2024, 1, 1)].value == -0.8
    assert by_name["lpr_1y", date(2024, 2, 20)].value == 3.45
    assert all(o.available_at > datetime(2024, 1, 31, tzinfo=UTC) for o in figures)
    assert (figures.refused, len(figures)) == ((), 9)


async def test_announcements_count_from_the_moment_they_could_be_seen(stub, provider):
    items = await provider.read(NEWS, KNOWN, date(2024, 6, 16), date(2024, 6, 19))
    notices = [item for item in items if item.kind == "announcement"]
    assert len(notices) == 151  # two pages
    latest = notices[-1]
    assert latest.available_at == datetime(2024, 6, 19, 10, 2, 31, 656000, tzinfo=UTC)  # printed: 20 June
    assert latest.url == "https://data.eastmoney.com/notices/detail/600519/AN000000000000000900.html"
    [article] = [item for item in items if item.kind == "news"]
    assert (article.title, article.event_time) == (
        "600519除息日成交平稳",
        datetime(2024, 6, 19, 12, 15, tzinfo=UTC),
    )
    earlier = await provider.read(NEWS, KNOWN, date(2024, 6, 16), date(2024, 6, 18))
    assert latest.url not in {item.url for item in earlier}


async def test_without_articles_the_announcements_are_still_there(stub, provider):
    stub.down = {"search-api"}
    items = await provider.read(NEWS, KNOWN, date(2024, 6, 16), date(2024, 6, 19))
    assert {item.kind for item in items} == {"announcement"}
    assert ([refusal.row for refusal in items.refused], items.partial) == (["articles"], True)


async def test_companies_come_from_every_exchange_and_the_delisted_with_them(stub, provider):
    companies = {company.symbol: company for company in await provider.read(COMPANIES, "CN")}
    assert companies["600519.SH"].list_date == date(2001, 8, 27)
    assert (companies["600519.SH"].pinyin, companies["688001.SH"].board) == ("gzmt", "star")
    assert (companies["000012.SZ"].name, companies["000012.SZ"].industry) == ("第12", "J 金融业")
    assert companies["430047.BJ"].industry == "软件"
    assert companies["600001.SH"].delist_date == date(2009, 12, 29)
    assert companies["000003.SZ"].delist_date == date(2002, 6, 14)
    assert not [symbol for symbol in companies if symbol.startswith("9009")]


@pytest.mark.parametrize(("end", "industry"), [(date(2024, 5, 1), "酿酒行业"), (date(2024, 4, 30), "")])
async def test_the_industry_is_that_of_the_last_year_everybody_has_reported(stub, provider, end, industry):
    companies = {company.symbol: company for company in await provider.read(COMPANIES, "CN", end=end)}
    assert companies["600519.SH"].industry == industry
    assert companies["000012.SZ"].industry == "J 金融业"  # of its exchange, where nobody else tells


async def test_a_company_of_shenzhen_has_the_names_of_its_days(stub, provider):
    companies = {company.symbol: company for company in await provider.read(COMPANIES, "CN")}
    renamed = companies["000012.SZ"]
    assert [(each.name, each.start) for each in renamed.names] == [
        ("老名", date(1991, 4, 3)),
        ("*ST旧", date(2019, 4, 30)),
        ("第12", date(2021, 5, 6)),
    ]
    assert renamed.aliases == ("老名", "*ST旧")
    assert companies["000013.SZ"].names == ()


async def test_a_list_that_does_not_come_is_named_and_the_next_attempt_completes_it(stub, provider, tmp_path):
    stub.down = {"www.szse.cn"}
    sync = SyncService(Lake(tmp_path), {Market.CN: {"akshare": provider}}, FixedClock(NOW))
    event = await sync.bring(COMPANIES, "CN", Market.CN, *JUNE)
    assert (event.outcome, event.rows) == ("fetched", 4)
    assert [refusal.row for refusal in event.refused] == [
        "stock_info_sz_change_name 简称变更",
        "stock_info_sz_name_code A股列表",
        "stock_info_sz_delist",
    ]
    stub.down = set()
    event = await sync.bring(COMPANIES, "CN", Market.CN, *JUNE)
    assert (event.outcome, event.rows, event.refused) == ("fetched", 17, ())
    assert (await sync.bring(COMPANIES, "CN", Market.CN, *JUNE)).outcome == "up_to_date"


async def test_no_list_at_all_is_no_empty_market(stub, provider):
    stub.down = {"sse.com.cn", "szse.cn", "bse.cn"}
    with pytest.raises(Unavailable):
        await provider.read(COMPANIES, "CN")


async def test_the_list_is_read_again_every_time(stub, provider):
    await provider.read(COMPANIES, "CN")
    await provider.read(COMPANIES, "CN")
    assert stub.hosts().count("query.sse.com.cn") == 2 * 3
    assert stub.hosts().count("www.szse.cn") == 2 * 3


async def test_a_symbol_nobody_has_gives_empty_batches(stub, provider):
    assert await provider.read(BARS, UNKNOWN, *JUNE) == []
    assert await provider.read(VALUATIONS, UNKNOWN, *JUNE) == []
    assert await provider.read(REPORTS, UNKNOWN) == []
    assert await provider.read(DIVIDENDS, UNKNOWN) == []
    assert await provider.read(NEWS, UNKNOWN, *JUNE) == []


@pytest.mark.parametrize(
    "answer",
    [
        '{"version":null,"result":null,"success":false,"message":"系统繁忙","code":9500}',
        '{"result":null}',
        "[]",
    ],
)
async def test_an_answer_without_data_is_not_taken_for_an_empty_one(stub, provider, answer):
    stub.broken = (200, answer)
    with pytest.raises(Unavailable, match="cannot read the answer of RPT_SHAREBONUS_DET"):
        await provider.read(DIVIDENDS, KNOWN)


@pytest.mark.parametrize(
    "broken", [(502, "<html>Bad Gateway</html>"), (429, "slow down"), (200, "<html>验证码</html>"), (200, "")]
)
async def test_a_page_that_fails_is_unavailable_after_another_attempt(stub, provider, broken):
    stub.broken = broken
    for ask in (
        provider.read(BARS, KNOWN, *JUNE),
        provider.read(VALUATIONS, KNOWN, *JUNE),
        provider.read(NEWS, KNOWN, *JUNE),
    ):
        with pytest.raises(Unavailable) as caught:
            await ask
        assert not isinstance(caught.value, NotOffered)
    assert stub.hosts().count("push2his.eastmoney.com") == 2


async def test_a_passing_failure_costs_an_attempt_and_nothing_else(stub, provider):
    stub.broken, stub.broken_for = (502, "<html>"), 1
    assert len(await provider.read(BARS, KNOWN, *JUNE)) == 4


async def test_a_service_that_does_not_answer_is_unavailable_in_time(stub):
    stub.slow = 2.0
    impatient = AkshareProvider(pace=FAST, deadline=0.2, pauses=())
    with pytest.raises(Unavailable, match=r"akshare did not answer within 0\.2 s"):
        await impatient.read(REPORTS, KNOWN)


async def test_each_host_is_asked_at_its_own_pace(stub):
    paced = AkshareProvider(pace=Pace(calls=1, per_seconds=0.1, concurrency=1), pauses=())
    await paced.read(BARS, KNOWN, *JUNE)
    await paced.read(BARS, KNOWN, *JUNE)
    by_host = {
        host: [at for at, of in zip(stub.times, stub.hosts(), strict=True) if of == host]
        for host in stub.hosts()
    }
    assert [len(times) for times in by_host.values()] == [2, 2]
    for times in by_host.values():
        assert min(later - sooner for sooner, later in pairwise(times)) >= 0.1
    assert Pace(calls=1, per_seconds=0.3, concurrency=1) == AkshareProvider.pace


async def test_every_call_is_recorded(stub):
    record = Record()
    await AkshareProvider(recorder=record, pace=FAST).read(BARS, KNOWN, *JUNE)
    assert [(c.service_name, c.operation, c.status) for c in record.calls] == [
        ("akshare", "stock_zh_a_hist", "success"),
        ("akshare", "hfq.js", "success"),
    ]
    assert record.calls[0].request_params["symbol"] == "600519"


async def test_other_markets_are_not_offered(provider):
    with pytest.raises(NotOffered, match="shares of CN only, not AAPL"):
        await provider.read(BARS, "AAPL", *JUNE)


async def test_without_the_extra_the_message_says_how_to_get_it(provider, monkeypatch):
    monkeypatch.setitem(sys.modules, "akshare", None)
    with pytest.raises(NotOffered) as caught:
        await provider.read(BARS, KNOWN, *JUNE)
    assert "pip install 'moot[akshare]'" in caught.value.in_locale("zh-CN")
    assert "pip install 'moot[akshare]'" in caught.value.in_locale("en-US")

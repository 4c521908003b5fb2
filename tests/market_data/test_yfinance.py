"""yfinance against a local Yahoo; requests, cookies and parsing are yfinance's own."""

import sys
from datetime import UTC, date, datetime

import pytest

from moot.modules.market_data.domain.facts import (
    BARS,
    COMPANIES,
    DEEP,
    DIVIDENDS,
    MACRO,
    NEWS,
    REPORTS,
    VALUATIONS,
)
from moot.modules.market_data.domain.provider import NotOffered
from moot.modules.market_data.infrastructure.providers.outside import Pace
from moot.modules.market_data.infrastructure.providers.yfinance import YfinanceProvider
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.messages import LOCALES
from tests.fakes.call_record import Record
from tests.fakes.yahoo_server import YahooServer, yahoo_server

yf = pytest.importorskip("yfinance", reason="the yfinance extra is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pandas, in the library

KNOWN, UNKNOWN = "BRK.B", "NOPE"
FAST = Pace(calls=100, per_seconds=0.01, concurrency=2)
JUNE = (date(2024, 6, 1), date(2024, 6, 30))


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    yf.set_tz_cache_location(str(tmp_path_factory.mktemp("yfinance")))
    with yahoo_server() as stub:
        yield stub


@pytest.fixture
def stub(running: YahooServer, monkeypatch: pytest.MonkeyPatch) -> YahooServer:
    running.asked.clear()
    running.broken, running.broken_for, running.slow = None, 1_000_000, 0.0
    running.redirect(monkeypatch)
    return running


@pytest.fixture
def provider() -> YfinanceProvider:
    return YfinanceProvider(pace=FAST, pauses=(0.0,))


async def test_bars_are_raw_again_before_a_split(stub, provider):
    bars = {bar.trade_date.day: bar for bar in await provider.read(BARS, KNOWN, *JUNE)}
    before, on = bars[7], bars[10]
    assert (before.symbol, before.source) == (KNOWN, "yfinance")
    assert (before.open, before.high, before.low, before.close) == (1205.0, 1220.0, 1200.0, 1210.0)
    assert (before.volume, before.pre_close) == (600, 1200.0)
    assert before.amount == pytest.approx(600 * (1220 + 1200 + 1210) / 3)
    assert (on.close, on.volume, on.pre_close) == (122.0, 7000, 121.0)
    assert on.event_time == datetime(2024, 6, 10, 20, tzinfo=UTC)
    assert on.available_at == datetime(2024, 6, 10, 21, tzinfo=UTC)


async def test_splits_and_dividends_add_up_to_a_factor_that_starts_at_one(stub, provider):
    bars = await provider.read(BARS, KNOWN, *JUNE)
    paid = 122 / (122 - 0.61)
    assert [bar.adj_factor for bar in bars] == pytest.approx([1.0, 10.0, 10 * paid, 10 * paid])
    assert bars[2].pre_close == 121.39
    later = await provider.read(BARS, KNOWN, date(2024, 6, 11), JUNE[1])
    assert later[0].adj_factor == pytest.approx(10 * paid)


async def test_a_day_with_a_hole_and_the_very_first_day_are_refused_by_name(stub, provider):
    bars = await provider.read(BARS, KNOWN, *JUNE)
    assert [bar.trade_date.day for bar in bars] == [7, 10, 11, 13]
    assert [refusal.row for refusal in bars.refused] == ["trade_date=2024-06-06", "trade_date=2024-06-12"]
    assert bars.refused[0].why == "pre_close: Input should be a valid number"


async def test_dividends_and_splits_are_known_on_their_ex_date(stub, provider):
    split, cash = await provider.read(DIVIDENDS, KNOWN)
    assert (split.ex_date, split.bonus_per_share, split.cash_per_share) == (date(2024, 6, 10), 9.0, 0.0)
    assert (cash.ex_date, cash.bonus_per_share, cash.cash_per_share) == (date(2024, 6, 11), 0.0, 0.61)
    assert cash.available_at == datetime(2024, 6, 11, 13, 30, tzinfo=UTC)


async def test_flows_are_summed_up_from_the_start_of_the_year(stub, provider):
    reports = {report.period_end: report for report in await provider.read(REPORTS, KNOWN)}
    half = reports[date(2024, 6, 30)]
    assert (half.total_revenue, half.net_profit, half.eps, half.capex) == (220.0, 24.0, 2.4, 11.0)
    assert half.gross_margin == pytest.approx(100 * 90 / 220)
    assert half.roe_waa == pytest.approx(100 * 24 / 210)
    assert (half.bps, half.current_ratio, half.quick_ratio) == (23.0, 1.5, 1.0)
    year = reports[date(2023, 12, 31)]
    assert (year.total_revenue, year.net_profit) == (380.0, 38.0)
    assert reports[date(2022, 12, 31)].total_revenue == 350.0


async def test_flows_of_a_year_whose_first_quarters_are_gone_are_absent(stub, provider):
    reports = {report.period_end: report for report in await provider.read(REPORTS, KNOWN)}
    autumn = reports[date(2023, 9, 30)]
    assert (autumn.total_revenue, autumn.net_profit, autumn.total_assets) == (None, None, 470.0)


async def test_a_report_is_known_from_its_filing_deadline(stub, provider):
    reports = {report.period_end: report for report in await provider.read(REPORTS, KNOWN)}
    assert reports[date(2024, 6, 30)].announced_on == date(2024, 8, 9)  # 40 days
    assert reports[date(2023, 12, 31)].announced_on == date(2024, 2, 29)  # 60 days
    assert reports[date(2024, 6, 30)].available_at == datetime(2024, 8, 9, 22, tzinfo=UTC)


async def test_news_counts_by_the_day_in_new_york_it_was_published(stub, provider):
    batch = await provider.read(NEWS, KNOWN, date(2024, 6, 12), date(2024, 6, 12))
    assert [(item.title, item.available_at) for item in batch] == [
        ("Earnings beat", datetime(2024, 6, 12, 12, 30, tzinfo=UTC)),
        ("Late night", datetime(2024, 6, 13, 2, 30, tzinfo=UTC)),
    ]
    assert [refusal.row for refusal in batch.refused] == ["url=https://example.com/3"]
    assert await provider.read(NEWS, KNOWN, date(2024, 6, 13), date(2024, 6, 13)) == []


async def test_a_company_is_found_by_its_symbol(stub, provider):
    company = await provider.company(KNOWN)
    assert company is not None
    assert (company.symbol, company.name_en, company.list_date) == (
        KNOWN,
        "Acme Holdings Inc.",
        date(1996, 5, 8),
    )
    assert (company.industry_en, company.source) == ("Insurance—Diversified", "yfinance")
    assert await provider.company(UNKNOWN) is None


async def test_a_symbol_nobody_has_gives_empty_batches(stub, provider):
    assert await provider.read(BARS, UNKNOWN, *JUNE) == []
    assert await provider.read(DIVIDENDS, UNKNOWN) == []
    assert await provider.read(REPORTS, UNKNOWN) == []
    assert await provider.read(NEWS, UNKNOWN, *JUNE) == []


@pytest.mark.parametrize("dataset", [COMPANIES, VALUATIONS, MACRO, *DEEP], ids=str)
async def test_what_yahoo_does_not_have_is_said_with_what_to_do(provider, dataset):
    with pytest.raises(NotOffered) as caught:
        await provider.read(dataset, "AAPL" if dataset.by_symbol else "US")
    for locale in LOCALES:
        assert dataset.label.in_locale(locale) in caught.value.in_locale(locale)
        assert "moot data import" in caught.value.in_locale(locale) or dataset is COMPANIES


async def test_other_markets_are_not_offered(provider):
    with pytest.raises(NotOffered, match=r"shares of US only, not 600519\.SH"):
        await provider.read(BARS, "600519.SH", *JUNE)


@pytest.mark.parametrize(
    "broken",
    [(500, "{}"), (503, "<html>Will be right back</html>"), (429, "Too Many Requests"), (200, "<html>")],
)
async def test_an_answer_that_is_none_is_unavailable_not_empty(stub, provider, broken):
    stub.broken = broken
    for dataset in (BARS, NEWS):
        with pytest.raises(Unavailable) as caught:
            await provider.read(dataset, KNOWN, *JUNE)
        assert not isinstance(caught.value, NotOffered)
    with pytest.raises(Unavailable):
        await provider.read(REPORTS, KNOWN)


async def test_a_known_symbol_without_prices_is_unavailable_not_empty(stub, provider):
    stub.broken = (200, '{"chart": {"result": null, "error": null}}')
    with pytest.raises(Unavailable, match="yfinance cannot read the answer of history"):
        await provider.read(BARS, KNOWN, *JUNE)


async def test_a_passing_failure_costs_an_attempt_and_nothing_else(stub, provider):
    stub.broken, stub.broken_for = (500, "{}"), 1
    assert len(await provider.read(BARS, KNOWN, *JUNE)) == 4


async def test_yahoo_not_answering_is_unavailable_in_time(stub):
    stub.slow = 1.0
    impatient = YfinanceProvider(pace=FAST, deadline=0.2, pauses=())
    with pytest.raises(Unavailable, match=r"yfinance did not answer within 0\.2 s"):
        await impatient.read(BARS, KNOWN, *JUNE)


async def test_every_call_is_recorded(stub):
    record = Record()
    await YfinanceProvider(recorder=record, pace=FAST).read(DIVIDENDS, KNOWN)
    assert [(c.service_name, c.operation, c.status, c.request_params) for c in record.calls] == [
        ("yfinance", "history", "success", {"symbol": "BRK-B"})
    ]


async def test_without_the_extra_the_message_says_how_to_get_it(provider, monkeypatch):
    monkeypatch.setitem(sys.modules, "yfinance", None)
    with pytest.raises(NotOffered) as caught:
        await provider.read(BARS, KNOWN, *JUNE)
    assert "pip install 'moot[yfinance]'" in caught.value.in_locale("zh-CN")
    assert "pip install 'moot[yfinance]'" in caught.value.in_locale("en-US")

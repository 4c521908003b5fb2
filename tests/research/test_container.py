"""The experts through their container, on market data held in memory."""

from datetime import UTC, date, datetime, timedelta

import pytest

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.research.container import ResearchContainer
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.facts import DailyBar
from moot.shared.domain.symbol import Market
from tests.fakes.market_data import (
    SYMBOL,
    FakeMarketDataProvider,
    a_bar,
    a_company,
    a_news_item,
    a_report,
    a_valuation,
    an_observation,
)

TODAY = date(2026, 6, 30)
AS_OF = datetime(2026, 6, 30, 10, tzinfo=UTC)


def known(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 9, tzinfo=UTC)


def bar(n: int, **changes: object) -> DailyBar:
    """The n-th of 80 days up to today, one share for two before the 40th."""
    price = 10 + n / 10
    fields = {"open": price, "high": price + 0.2, "low": price - 0.2, "close": price, "adj_factor": 2.0}
    if n < 40:
        fields = {name: value * 2 for name, value in fields.items()} | {"adj_factor": 1.0}
    return a_bar(TODAY - timedelta(days=79 - n), **fields | changes)


@pytest.fixture
def container() -> ResearchContainer:
    report_days = [(date(2026, 3, 31), 1.3), (date(2025, 12, 31), 4.4), (date(2025, 3, 31), 1.0)]
    provider = FakeMarketDataProvider(
        directory=[a_company()],
        bars=[*(bar(n) for n in range(70)), *(bar(n, suspended=True, volume=0) for n in range(70, 80))],
        valuations=[
            a_valuation(TODAY - timedelta(days=99 - n), close=16.9, pe_ttm=3.0 + n / 100, pb=1.0, ps_ttm=1.0)
            for n in range(100)
        ],
        reports=[
            a_report(
                end, known(end + timedelta(days=25)), eps=eps, bps=9.0, profit_dedt=eps * 1e8, roe_waa=4.0
            )
            for end, eps in reversed(report_days)
        ],
        observations=[
            an_observation(
                date(2026, 5, 31), known(date(2026, 6, 10)), series="pmi_manufacturing", value=50.6
            ),
            an_observation(
                date(2026, 5, 31),
                known(date(2026, 6, 14)),
                series="industry_prosperity",
                industry="银行",
                value=30.0,
                url="demo://other-industry",
            ),
        ],
        items=[
            a_news_item(
                date(2026, 6, 20),
                known(date(2026, 6, 20)),
                kind="announcement",
                title="中标项目",
                title_en="Wins contract",
            ),
            a_news_item(date(2026, 6, 21), known(date(2026, 7, 2)), title="被立案调查", url="demo://news/2"),
        ],
    )
    return ResearchContainer(MarketData({Market.DEMO: provider}))


async def test_technical_analyst_reads_adjusted_prices_of_traded_days(container: ResearchContainer) -> None:
    report = await container.service("technical_analyst").run(SYMBOL, TODAY, as_of=AS_OF, locale="en-US")
    seen = report["technical_indicators"]
    assert seen["bars"] == 70
    assert seen["last_trade_date"] == "2026-06-20"
    assert seen["current_price"] == 16.9
    assert seen["ma60"] == pytest.approx(13.95)
    assert seen["days_since_last_trade"] == 10


async def test_financial_auditor(container: ResearchContainer) -> None:
    report = await container.service("financial_auditor").run(SYMBOL, as_of=AS_OF, locale="en-US")
    assert report["financial_indicators"]["profit_growth"] == 30.0
    assert report["financial_indicators"]["eps_ttm"] == 4.7


async def test_valuation_modeler(container: ResearchContainer) -> None:
    report = await container.service("valuation_modeler").run(SYMBOL, as_of=AS_OF, locale="en-US")
    assert report["valuation_indicators"]["pe_percentile"] == 100
    assert report["valuation_indicators"]["stock_name"] == "Mirage Hill Distillers"


async def test_macro_intelligence_sees_its_own_industry_only(container: ResearchContainer) -> None:
    report = await container.service("macro_intelligence").run(SYMBOL, as_of=AS_OF, locale="en-US")
    assert report["macro_indicators"]["pmi_manufacturing"] == 50.6
    assert report["macro_indicators"]["industry_prosperity"] is None
    assert "demo://other-industry" not in report["information_sources"]


async def test_catalyst_detective_reads_titles_in_the_readers_language(container: ResearchContainer) -> None:
    found = await container.service("catalyst_detective").run(SYMBOL, as_of=AS_OF, locale="en-US")
    titles = [event.title for event in found.catalyst_context.events]
    assert titles == ["Wins contract", "report for the first quarter of 2026 is out"]
    assert found.catalyst_context.events[0].published == date(2026, 6, 20)


async def test_a_title_without_a_translation_is_kept(container: ResearchContainer) -> None:
    later = datetime(2026, 7, 3, tzinfo=UTC)
    found = await container.service("catalyst_detective").run(SYMBOL, as_of=later, locale="en-US")
    assert found.catalyst_context.events[0].title == "被立案调查"


async def test_an_unknown_symbol_is_the_market_datas_refusal(container: ResearchContainer) -> None:
    with pytest.raises(InvalidInput) as refused:
        await container.service("valuation_modeler").run("900009.DEMO", as_of=AS_OF, locale="en-US")
    assert refused.value.code == "SYMBOL_UNKNOWN"


@pytest.mark.parametrize("expert", ["financial_auditor", "valuation_modeler", "macro_intelligence"])
async def test_a_blank_symbol_is_refused(container: ResearchContainer, expert: str) -> None:
    with pytest.raises(InvalidInput, match="symbol: a symbol is needed"):
        await container.service(expert).run(" ", as_of=AS_OF, locale="en-US")

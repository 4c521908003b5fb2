"""The experts at work on real companies, on a day when one is suspended, one makes losses and two have no reports."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from moot.modules.market_data.application.fresh_data import StaleData
from moot.modules.market_data.application.market_data import MarketData
from moot.modules.research.application.valuation_modeler import HISTORY_DAYS
from moot.modules.research.container import ResearchContainer
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import LOCALES
from moot.shared.domain.symbol import Market
from tests.fakes.market_data import FakeMarketDataProvider
from tests.measured.real_market import RealMarket, at
from tests.measured.test_valuation_ranks import MULTIPLES, recomputed

TODAY = date(2022, 8, 10)
AS_OF = at(TODAY, 20)
SUSPENDED, LOSS_MAKING, BANK, NEWLY_LISTED = "000425.SZ", "600029.SH", "601398.SH", "688981.SH"
WITHOUT_REPORTS = ["300059.SZ", NEWLY_LISTED]
WITH_REPORTS = [
    *(SUSPENDED, LOSS_MAKING, BANK, "601318.SH", "600519.SH"),
    *("000002.SZ", "601857.SH", "600900.SH"),
]
Ask = Callable[..., Awaitable[dict[str, Any]]]
EXPERTS: dict[str, Callable[[ResearchContainer], Ask]] = {
    "technical": lambda desk: desk.service("technical_analyst").run,
    "financial": lambda desk: desk.service("financial_auditor").run,
    "valuation": lambda desk: desk.service("valuation_modeler").run,
}


async def ask(
    expert: str, source: FakeMarketDataProvider, symbol: str, as_of: datetime = AS_OF, locale: str = "zh-CN"
) -> dict[str, Any]:
    run = EXPERTS[expert](ResearchContainer(MarketData({Market.CN: source})))
    day = (as_of.date(),) if expert == "technical" else ()
    return await run(symbol, *day, as_of=as_of, locale=locale)


def with_what_was_known(source: FakeMarketDataProvider, as_of: datetime) -> FakeMarketDataProvider:
    return replace(
        source,
        bars=[bar for bar in source.bars if bar.available_at <= as_of],
        valuations=[day for day in source.valuations if day.available_at <= as_of],
        reports=[report for report in source.reports if report.available_at <= as_of],
    )


@pytest.mark.parametrize("expert", EXPERTS)
@pytest.mark.parametrize("symbol", WITH_REPORTS)
async def test_an_expert_reads_a_real_company(market: RealMarket, symbol: str, expert: str) -> None:
    for locale in LOCALES:
        said = await ask(expert, market.sources[symbol], symbol, locale=locale)
        assert json.loads(json.dumps(said, allow_nan=False)) == said
        assert said["narrative_report"]
        assert said["evidence"]
        assert max(datetime.fromisoformat(item["as_of"]) for item in said["evidence"]) <= AS_OF


@pytest.mark.parametrize("expert", EXPERTS)
@pytest.mark.parametrize("symbol", WITH_REPORTS)
async def test_an_expert_says_the_same_when_the_future_has_not_been_recorded_yet(
    market: RealMarket, symbol: str, expert: str
) -> None:
    source = market.sources[symbol]
    then = with_what_was_known(source, AS_OF)
    assert (len(then.bars), len(then.valuations)) < (len(source.bars), len(source.valuations))
    assert await ask(expert, then, symbol) == await ask(expert, source, symbol)


@pytest.mark.parametrize("expert", ["financial", "valuation"])
@pytest.mark.parametrize("symbol", WITHOUT_REPORTS)
async def test_without_reports_the_expert_says_so(market: RealMarket, symbol: str, expert: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await ask(expert, market.sources[symbol], symbol)
    assert refused.value.in_locale("en-US") == (
        f"No financial report of {symbol} was public by 2022-08-10. Sync financial data first."
    )
    assert symbol in refused.value.in_locale("zh-CN")


@pytest.mark.parametrize("expert", EXPERTS)
@pytest.mark.parametrize("symbol", ["600519.SH", BANK])
async def test_19_months_after_its_last_row_a_company_has_no_data(
    market: RealMarket, symbol: str, expert: str
) -> None:
    source = market.sources[symbol]
    last = source.reports[-1].period_end if expert == "financial" else source.bars[-1].trade_date
    with pytest.raises(StaleData, match=f"of {symbol} are of {last}, "):
        await ask(expert, source, symbol, as_of=at(last + timedelta(days=580), 20))


@pytest.mark.parametrize("symbol", WITHOUT_REPORTS)
async def test_prices_alone_are_enough_for_the_technical_analyst(market: RealMarket, symbol: str) -> None:
    said = await ask("technical", market.sources[symbol], symbol)
    assert said["signal"] in {"BULLISH", "BEARISH", "NEUTRAL"}


async def test_a_share_of_a_fortnight_is_too_young_for_the_technical_analyst(market: RealMarket) -> None:
    with pytest.raises(InvalidInput, match="only 12 traded daily bars; technical analysis needs at least 30"):
        await ask("technical", market.sources[NEWLY_LISTED], NEWLY_LISTED, as_of=at(date(2020, 7, 31), 20))


@pytest.mark.parametrize("symbol", WITH_REPORTS)
async def test_the_multiples_in_the_valuation_are_those_of_the_raw_table(
    market: RealMarket, symbol: str
) -> None:
    seen = (await ask("valuation", market.sources[symbol], symbol))["valuation_indicators"]
    past = market.rows(symbol).filter(pl.col("date").is_between(TODAY - timedelta(days=HISTORY_DAYS), TODAY))
    for field, column in MULTIPLES.items():
        assert seen[field] == past[column][-1]
        assert seen[f"{field.removesuffix('_ttm')}_percentile"] == recomputed(past, column)[0]


async def test_a_loss_has_no_pe_rank_and_no_peg(market: RealMarket) -> None:
    seen = (await ask("valuation", market.sources[LOSS_MAKING], LOSS_MAKING))["valuation_indicators"]
    assert seen["pe_ttm"] < 0
    assert (seen["pe_percentile"], seen["peg_ratio"], seen["graham_intrinsic_val"]) == (None, None, None)


@pytest.mark.parametrize("symbol", WITH_REPORTS)
async def test_the_report_is_the_newest_announced_one_in_per_cent(market: RealMarket, symbol: str) -> None:
    seen = (await ask("financial", market.sources[symbol], symbol))["financial_indicators"]
    table = market.reports.filter((pl.col("ts_code") == symbol) & (pl.col("ann_date") <= TODAY))
    newest = table.sort("end_date").row(-1, named=True)
    assert seen["announced_on"] == newest["ann_date"].isoformat()
    assert seen["roe_waa"] == pytest.approx(100 * newest["roeAvg"])
    assert seen["debt_to_assets"] == pytest.approx(100 * newest["liabilityToAsset"])

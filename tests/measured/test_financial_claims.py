"""The auditor on forty real companies at ten moments: sentences that their numbers carry, and a view that varies."""

import asyncio
from collections import Counter
from datetime import date

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.research.container import ResearchContainer
from moot.shared.domain.symbol import Market
from tests.fakes.market_data import FakeMarketDataProvider
from tests.measured.real_market import RealMarket, at
from tests.research.test_financial_claims import ask, check_report

DAYS = [
    *(date(2020, 3, 31), date(2020, 6, 30), date(2020, 9, 30), date(2020, 12, 31), date(2021, 3, 31)),
    *(date(2021, 6, 30), date(2021, 9, 30), date(2021, 12, 31), date(2022, 6, 30), date(2022, 12, 30)),
]
BANK_ONLY = {"bank_equity", "bank_margin", "bank_roa"}
NOT_FOR_BANKS = {"turnover", "leverage", "cash_backing", "operating_leverage"}


def test_no_sentence_on_a_real_company_is_refuted_and_no_view_is_everybodys(market: RealMarket) -> None:
    def desk(source: FakeMarketDataProvider) -> ResearchContainer:
        return ResearchContainer(MarketData({Market.CN: source}))

    moments = [at(day, 20) for day in DAYS]
    told = [
        report
        for symbol, source in market.sources.items()
        for report in asyncio.run(ask(desk(source), [symbol], moments))
    ]
    assert len(told) >= 370
    for report in told:
        check_report(report)
        rules = {claim["id"].partition(".")[2] for claim in report["claims"]}
        bank = report["financial_indicators"]["trade"] == "bank"
        assert rules.isdisjoint(NOT_FOR_BANKS if bank else BANK_ONLY)
    signals = Counter(report["signal"] for report in told)
    assert len(signals) == 5
    assert max(signals.values()) < 0.75 * len(told)
    scores = sorted(report["financial_score"] for report in told)
    twentieth = len(scores) // 20
    assert scores[twentieth] < 40
    assert scores[-twentieth] > 75

"""Facts that hang together, for tests that look at a whole expert."""

import math
from datetime import date
from typing import Any

from moot.modules.research.application.catalyst_detective import CatalystDetectiveService
from moot.modules.research.application.expert_service import Sources
from moot.modules.research.application.financial_auditor import FinancialAuditorService
from moot.modules.research.application.macro_intelligence import MacroIntelligenceService
from moot.modules.research.application.technical_analyst import TechnicalAnalystService
from moot.modules.research.application.valuation_modeler import ValuationModelerService
from moot.modules.research.infrastructure.indicators import compute_indicators
from moot.shared.domain.facts import FinancialReport, MacroObservation, NewsItem
from moot.shared.domain.messages import Locale
from tests.fakes.research import (
    AS_OF,
    SYMBOL,
    TODAY,
    FakeMarketFacts,
    a_figure,
    a_news,
    a_report,
    bars_of,
    valuations_of,
)

QUARTERS = [(2026, 1), (2025, 4), (2025, 3), (2025, 2), (2025, 1), (2024, 4), (2024, 3), (2024, 2), (2024, 1)]
PART_OF_YEAR = {1: 0.25, 2: 0.5, 3: 0.75, 4: 1.0}


def waves(days: int, drift: float) -> list[float]:
    """A price that drifts by `drift` a day and swings around that."""
    return [round(20 * math.exp(drift * n) * (1 + 0.03 * math.sin(n / 4)), 2) for n in range(days)]


def healthy_reports(growth: float = 1.2, **changes: Any) -> list[FinancialReport]:
    """Nine quarters, newest first, of a company whose flows grow by `growth` a year."""
    return [_healthy(year, quarter, growth, **changes) for year, quarter in QUARTERS]


def _healthy(year: int, quarter: int, growth: float, **changes: Any) -> FinancialReport:
    flow = PART_OF_YEAR[quarter] * growth ** (year - 2024)
    figures = {
        "gross_margin": 45.0 + (year - 2024),
        "netprofit_margin": 20.0,
        "roe_waa": 16.0 * PART_OF_YEAR[quarter],
        "roic": 14.0 * PART_OF_YEAR[quarter],
        "eps": round(1.0 * flow, 4),
        "bps": 8.0,
        "profit_dedt": 0.95e8 * flow,
        "ocfps": round(1.2 * flow, 4),
        "fcff_ps": round(0.8 * flow, 4),
        "fcff": round(0.8 * flow, 4) * 1e8,
        "current_ratio": 1.8,
        "quick_ratio": 1.3,
        "debt_to_assets": 35.0,
        "interestdebt": 1e8,
        "netdebt": -2e8,
        "invturn_days": 90.0 - 8 * (year - 2024),
        "arturn_days": 40.0,
        "assets_turn": 0.8 * PART_OF_YEAR[quarter],
        "total_revenue_ps": round(5.0 * flow, 4),
    }
    return a_report(year, quarter, **figures | changes)


def friendly_figures() -> list[MacroObservation]:
    months = [date(2026, 2, 28), date(2026, 5, 31)]
    values = {
        "m2_yoy": (8.5, 9.4),
        "lpr_1y": (3.1, 3.0),
        "cgb_10y": (1.9, 1.7),
        "pmi_manufacturing": (50.2, 51.3),
        "cpi_yoy": (0.8, 1.1),
        "ppi_yoy": (-0.4, 0.6),
        "industry_prosperity": (55.0, 59.5),
    }
    return [a_figure(name, v, m) for name, pair in values.items() for m, v in zip(months, pair, strict=True)]


def policy(title: str, title_en: str, **changes: Any) -> NewsItem:
    return a_news(title, title_en, **{"kind": "policy", "symbol": None, "industry": "白酒"} | changes)


SUPPORT = policy("主管部门出台白酒行业支持措施", "Measures to support liquor", days_ago=5)
TIGHTER = policy("收紧白酒行业广告管理", "Tighter rules for liquor advertising", days_ago=9)

MIXED_NEWS = [
    a_news("中标3.2亿元项目", "Wins contract of CNY 320 million", days_ago=3),
    a_news("股东拟减持2.0%股份", "Holder to sell shares, a share reduction of 2.0%", days_ago=10),
    a_news("一季度净利润同比增长18.5%", "First-quarter profit up 18.5%", days_ago=40),
    a_news("白酒需求回升", "Liquor demand recovers", days_ago=7, kind="news", symbol=None, industry="白酒"),
]

RISING = FakeMarketFacts(
    daily=bars_of(waves(240, 0.003)),
    history=valuations_of([20 + n % 30 for n in range(300)] + [16.67]),
    filed=healthy_reports(),
    figures=friendly_figures(),
    published=[*MIXED_NEWS, SUPPORT],
)


def sources(facts: FakeMarketFacts) -> Sources:
    return Sources(facts, compute_indicators)


def technical_service(facts: FakeMarketFacts) -> TechnicalAnalystService:
    return TechnicalAnalystService(sources(facts))


async def technical(facts: FakeMarketFacts, locale: Locale = "zh-CN", on: date = TODAY) -> dict[str, Any]:
    return await technical_service(facts).run(SYMBOL, on, as_of=AS_OF, locale=locale)


async def financial(facts: FakeMarketFacts, locale: Locale = "zh-CN", limit: int = 5) -> dict[str, Any]:
    return await FinancialAuditorService(sources(facts)).run(SYMBOL, limit, as_of=AS_OF, locale=locale)


async def valuation(facts: FakeMarketFacts, locale: Locale = "zh-CN") -> dict[str, Any]:
    return await ValuationModelerService(sources(facts)).run(SYMBOL, as_of=AS_OF, locale=locale)


async def macro(facts: FakeMarketFacts, locale: Locale = "zh-CN") -> dict[str, Any]:
    return await MacroIntelligenceService(sources(facts)).run(SYMBOL, as_of=AS_OF, locale=locale)


async def catalyst(facts: FakeMarketFacts, locale: Locale = "zh-CN") -> dict[str, Any]:
    service = CatalystDetectiveService(sources(facts))
    return (await service.run(SYMBOL, as_of=AS_OF, locale=locale)).model_dump(mode="json")


EXPERTS = {
    "technical": technical,
    "financial": financial,
    "valuation": valuation,
    "macro": macro,
    "catalyst": catalyst,
}

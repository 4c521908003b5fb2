"""What each of the five experts is asked."""

from typing import Final

from moot.modules.research.domain.catalyst import CatalystContext, CatalystDimension, CatalystResult
from moot.modules.research.domain.financial import FinancialDimension, FinancialResult, FinancialSnapshot
from moot.modules.research.domain.macro import MacroDimension, MacroResult, MacroSnapshot
from moot.modules.research.domain.technical import TechnicalResult, TechnicalSnapshot
from moot.modules.research.domain.valuation import ValuationResult, ValuationSnapshot
from moot.modules.research.infrastructure.llm.analyst import Remit
from moot.modules.research.infrastructure.llm.answers import (
    judging_each,
    levels_were_given,
    named_by_score,
    sources_were_given,
    without_gloss,
)

TECHNICAL: Final = Remit[TechnicalSnapshot, TechnicalResult](
    "technical_analyst",
    TechnicalResult,
    shows=(
        *("stock_name", "ticker", "analysis_date", "last_trade_date"),
        *("obv_trend", "price_vs_vwap_status", "detected_patterns"),
    ),
    checks=levels_were_given,
)
FINANCIAL: Final = Remit[FinancialSnapshot, FinancialResult](
    "financial_auditor",
    judging_each(FinancialDimension, FinancialResult),
    shows=("stock_name", "symbol", "industry", "report_period", "announced_on", "quarter_list"),
    settles=named_by_score,
)
VALUATION: Final = Remit[ValuationSnapshot, ValuationResult](
    "valuation_modeler",
    ValuationResult,
    shows=(
        *("stock_name", "stock_code", "industry", "current_date", "report_period"),
        *("gross_margin_trend", "rebased", "implausible"),
    ),
    checks=without_gloss,
)
MACRO: Final = Remit[MacroSnapshot, MacroResult](
    "macro_intelligence",
    judging_each(MacroDimension, MacroResult),
    shows=("stock_name", "third_code", "industry", "current_date", "all_source_urls"),
    quotes=("monetary_context", "policy_context", "economic_context", "industry_context"),
    checks=sources_were_given,
)
CATALYST: Final = Remit[CatalystContext, CatalystResult](
    "catalyst_detective",
    judging_each(CatalystDimension, CatalystResult),
    shows=("stock_name", "third_code", "industry", "current_date", "all_source_urls"),
    quotes=(
        *("company_events_context", "industry_catalyst_context"),
        *("market_sentiment_context", "earnings_context"),
    ),
    checks=sources_were_given,
)

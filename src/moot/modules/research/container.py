"""Wires the five experts to market data and to their analysts."""

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.research.application.experts import (
    CatalystDetectiveService,
    FinancialAuditorService,
    MacroIntelligenceService,
    TechnicalAnalystService,
    ValuationModelerService,
)
from moot.modules.research.infrastructure.indicators import TalibIndicators
from moot.modules.research.infrastructure.market_facts import MarketDataFacts
from moot.modules.research.infrastructure.rubrics.catalyst import CATALYST_RUBRIC
from moot.modules.research.infrastructure.rubrics.financial import FINANCIAL_RUBRIC
from moot.modules.research.infrastructure.rubrics.macro import MACRO_RUBRIC
from moot.modules.research.infrastructure.rubrics.technical import TECHNICAL_RUBRIC
from moot.modules.research.infrastructure.rubrics.valuation import VALUATION_RUBRIC


class ResearchContainer:
    def __init__(self, market_data: MarketData) -> None:
        self._facts = MarketDataFacts(market_data)

    def technical_analyst_service(self) -> TechnicalAnalystService:
        return TechnicalAnalystService(self._facts, TalibIndicators(), TECHNICAL_RUBRIC)

    def financial_auditor_service(self) -> FinancialAuditorService:
        return FinancialAuditorService(self._facts, FINANCIAL_RUBRIC)

    def valuation_modeler_service(self) -> ValuationModelerService:
        return ValuationModelerService(self._facts, VALUATION_RUBRIC)

    def macro_intelligence_service(self) -> MacroIntelligenceService:
        return MacroIntelligenceService(self._facts, MACRO_RUBRIC)

    def catalyst_detective_service(self) -> CatalystDetectiveService:
        return CatalystDetectiveService(self._facts, CATALYST_RUBRIC)

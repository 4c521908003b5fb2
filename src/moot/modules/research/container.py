"""Wires the five experts to market data and to their analysts."""

from typing import TypeVar

from moot.modules.llm_platform.application.engine_choice import EngineChoice
from moot.modules.llm_platform.application.speaker import Speaker
from moot.modules.llm_platform.application.web_search import WebSearchService
from moot.modules.market_data.application.market_data import MarketData
from moot.modules.research.application.experts import (
    CatalystDetectiveService,
    FinancialAuditorService,
    MacroIntelligenceService,
    TechnicalAnalystService,
    ValuationModelerService,
)
from moot.modules.research.domain.analyst import Analyst, ExpertResult
from moot.modules.research.domain.evidence import Snapshot
from moot.modules.research.domain.web_context import Web
from moot.modules.research.infrastructure.indicators import TalibIndicators
from moot.modules.research.infrastructure.llm import remits
from moot.modules.research.infrastructure.llm.analyst import ChosenAnalyst, LLMAnalyst, Remit
from moot.modules.research.infrastructure.market_facts import MarketDataFacts
from moot.modules.research.infrastructure.rubrics.catalyst import CATALYST_RUBRIC
from moot.modules.research.infrastructure.rubrics.financial import FINANCIAL_RUBRIC
from moot.modules.research.infrastructure.rubrics.macro import MACRO_RUBRIC
from moot.modules.research.infrastructure.rubrics.technical import TECHNICAL_RUBRIC
from moot.modules.research.infrastructure.rubrics.valuation import VALUATION_RUBRIC
from moot.modules.research.infrastructure.web_context import SearchedWeb, WithoutTheWeb

S = TypeVar("S", bound=Snapshot)
R = TypeVar("R", bound=ExpertResult)


class ResearchContainer:
    """Without `choice` and `speaker` every judgement is made by rule; `web` is searched for a model only."""

    def __init__(
        self,
        market_data: MarketData,
        choice: EngineChoice | None = None,
        speaker: Speaker | None = None,
        web: WebSearchService | None = None,
    ) -> None:
        self._facts = MarketDataFacts(market_data)
        self._choice, self._speaker, self._web = choice, speaker, web

    def technical_analyst_service(self) -> TechnicalAnalystService:
        return TechnicalAnalystService(
            self._facts, TalibIndicators(), self._chosen(TECHNICAL_RUBRIC, remits.TECHNICAL)
        )

    def financial_auditor_service(self) -> FinancialAuditorService:
        return FinancialAuditorService(self._facts, self._chosen(FINANCIAL_RUBRIC, remits.FINANCIAL))

    def valuation_modeler_service(self) -> ValuationModelerService:
        return ValuationModelerService(self._facts, self._chosen(VALUATION_RUBRIC, remits.VALUATION))

    def macro_intelligence_service(self) -> MacroIntelligenceService:
        analyst = self._chosen(WithoutTheWeb(MACRO_RUBRIC), remits.MACRO)
        return MacroIntelligenceService(self._facts, analyst, self._web_to_read())

    def catalyst_detective_service(self) -> CatalystDetectiveService:
        analyst = self._chosen(WithoutTheWeb(CATALYST_RUBRIC), remits.CATALYST)
        return CatalystDetectiveService(self._facts, analyst, self._web_to_read())

    def _chosen(self, rubric: Analyst[S, R], remit: Remit[S, R]) -> Analyst[S, R]:
        if self._choice is None or self._speaker is None:
            return rubric
        return ChosenAnalyst(rubric, LLMAnalyst(remit, self._speaker), self._choice)

    def _web_to_read(self) -> Web | None:
        """A service is made for one run, so whoever judges that run is known by now."""
        model_reads = self._choice is not None and self._speaker is not None and self._choice.by_model
        return SearchedWeb(self._web) if self._web is not None and model_reads else None

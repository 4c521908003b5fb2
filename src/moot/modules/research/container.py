"""Wires the experts to market data and to their analysts."""

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from moot.modules.llm_platform.application.speaker import EngineChoice, Speaker
from moot.modules.llm_platform.application.web_search import WebSearchService
from moot.modules.market_data.application.fresh_data import FreshData
from moot.modules.market_data.application.market_data import MarketData
from moot.modules.research.application import expert_service
from moot.modules.research.application.expert_service import ExpertService, Sources
from moot.modules.research.infrastructure.indicators import compute_indicators
from moot.modules.research.infrastructure.llm_analyst import LLMAnalyst
from moot.modules.research.infrastructure.sources import find_on_web
from moot.shared.domain.claims import Horizon

if TYPE_CHECKING:
    from moot.modules.research.application.screening import ScreenService


class ResearchContainer:
    """Without `choice` and `speaker` every judgement is made by rule; `web` is searched for a model only."""

    def __init__(
        self,
        market_data: MarketData,
        choice: EngineChoice | None = None,
        speaker: Speaker | None = None,
        web: WebSearchService | None = None,
    ) -> None:
        self._market_data = market_data
        self._choice, self._speaker, self._web = choice, speaker, web

    def screen(self, horizon: Horizon = 20) -> "ScreenService":
        """Rules over many shares at once; made for one screen."""
        from moot.modules.debate.application.leaning import Leaning
        from moot.modules.market_data.application.universe import Universe
        from moot.modules.research.application import financial_auditor, technical_analyst, valuation_modeler
        from moot.modules.research.application.financial_auditor.screening import audit_many
        from moot.modules.research.application.scope import Screener
        from moot.modules.research.application.screening import ScreenService
        from moot.modules.research.application.technical_analyst.screening import chart_beside
        from moot.modules.research.application.valuation_modeler.screening import value_many
        from moot.modules.research.infrastructure.panel import Prices, measure

        facts = FreshData(self._market_data)
        chart = partial(chart_beside, facts, lambda *series: measure(Prices(*series)))
        screeners = [
            Screener(technical_analyst.SERVICE, chart),
            Screener(valuation_modeler.SERVICE, partial(value_many, facts)),
            Screener(financial_auditor.SERVICE, audit_many),
        ]
        return ScreenService(Universe(self._market_data), screeners, Leaning(horizon))

    def service(self, expert: str) -> ExpertService[Any, Any]:
        """The service in the folder of that name, made for one run: whoever judges that run is known by now."""
        folder = import_module(f"{expert_service.__package__}.{expert}")
        kind: type[ExpertService[Any, Any]] = folder.SERVICE
        choice, speaker = self._choice, self._speaker
        analyst = LLMAnalyst(speaker, choice) if speaker and choice else None
        web = partial(find_on_web, self._web) if self._web and choice and choice.by_model else None
        return kind(Sources(FreshData(self._market_data), compute_indicators, web, analyst))

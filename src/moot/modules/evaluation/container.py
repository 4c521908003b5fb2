"""Wires the evaluation to the desk's own panel and to past prices."""

from moot.modules.debate.container import DebateContainer
from moot.modules.evaluation.application.walk import WalkService
from moot.modules.evaluation.infrastructure.past_prices import PastPrices
from moot.modules.evaluation.infrastructure.rubric_panel import RubricPanel
from moot.modules.judge.container import JudgeContainer
from moot.modules.llm_platform.application.speaker import EngineChoice
from moot.modules.llm_platform.container import LLMPlatformContainer
from moot.modules.market_data.container import MarketDataContainer
from moot.modules.research.container import ResearchContainer
from moot.shared.domain.clock import Clock


class EvaluationContainer:
    """Every judgement is made by rule, whatever models the desk has."""

    def __init__(
        self, market_data: MarketDataContainer, llm_platform: LLMPlatformContainer, quorum: int, clock: Clock
    ) -> None:
        self._market, self._models, self._quorum, self._clock = market_data, llm_platform, quorum, clock

    def walk_service(self) -> WalkService:
        voice = EngineChoice(self._models.llm_service(), "rubric"), self._models.speaker()
        data, now = self._market.market_data(), self._clock.now()
        panel = RubricPanel(
            ResearchContainer(data), DebateContainer(*voice), JudgeContainer(self._quorum, *voice)
        )
        return WalkService(panel, PastPrices(data, self._market.upkeep(), now), now)

"""Wires the evaluation to the desk's own panel and to past prices."""

from moot.modules.coordinator.container import CoordinatorContainer
from moot.modules.evaluation.application.walk import WalkService
from moot.modules.evaluation.infrastructure.past_desk import PastPrices, RubricPanel
from moot.modules.market_data.container import MarketDataContainer
from moot.shared.domain.clock import Clock


class EvaluationContainer:
    def __init__(self, market: MarketDataContainer, coordinator: CoordinatorContainer, clock: Clock) -> None:
        self._market, self._coordinator, self._clock = market, coordinator, clock

    def walk_service(self) -> WalkService:
        now = self._clock.now()
        prices = PastPrices(self._market.market_data(), self._market.upkeep(), now)
        return WalkService(RubricPanel(self._coordinator), prices, now)

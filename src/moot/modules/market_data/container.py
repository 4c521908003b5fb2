"""Wires the providers of each market behind the one point-in-time door."""

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.infrastructure.demo.provider import DemoMarket
from moot.shared.domain.clock import Clock
from moot.shared.domain.symbol import Market


class MarketDataContainer:
    def __init__(self, clock: Clock, demo_seed: int) -> None:
        self._market_data = MarketData({Market.DEMO: DemoMarket(seed=demo_seed, clock=clock)})

    def market_data(self) -> MarketData:
        return self._market_data

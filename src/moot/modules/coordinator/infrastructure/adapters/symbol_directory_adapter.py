"""Asks market data whether a symbol can be researched."""

from datetime import datetime

from moot.modules.coordinator.domain.ports.symbol_directory import SymbolDirectory
from moot.modules.market_data.application.market_data import MarketData
from moot.shared.domain.symbol import Symbol


class MarketDataSymbolDirectory(SymbolDirectory):
    def __init__(self, market_data: MarketData) -> None:
        self._market_data = market_data

    async def require(self, symbol: Symbol, as_of: datetime) -> None:
        await self._market_data.company(symbol, as_of=as_of)

"""Market data's directory, as the coordinator sees it."""

from abc import ABC, abstractmethod
from datetime import datetime

from moot.shared.domain.symbol import Symbol


class SymbolDirectory(ABC):
    @abstractmethod
    async def require(self, symbol: Symbol, as_of: datetime) -> None:
        """Return when `symbol` can be researched as of that moment; raise `InvalidInput` that helps otherwise."""

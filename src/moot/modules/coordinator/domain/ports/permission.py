"""What the coordinator asks before it acts: may this be researched, may this node run?"""

from abc import ABC, abstractmethod
from datetime import datetime
from typing import Any, Protocol

from moot.shared.domain.symbol import Symbol


class SymbolDirectory(Protocol):
    """Market data's directory, as the coordinator sees it."""

    async def company(self, symbol: Symbol, *, as_of: datetime) -> object:
        """Return when `symbol` can be researched as of that moment; raise `InvalidInput` that helps otherwise."""


class NodePolicy(ABC):
    """The rules, as a node meets them."""

    @abstractmethod
    async def authorise(self, node_type: str, symbol: str, options: dict[str, Any]) -> None:
        """Return to let the node run; raise `AppError` to stop it. The refusal is recorded as its failure."""


class AllowAll(NodePolicy):
    """A desk without rules."""

    async def authorise(self, node_type: str, symbol: str, options: dict[str, Any]) -> None:
        return None

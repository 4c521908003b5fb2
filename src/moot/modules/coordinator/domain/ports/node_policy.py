"""May a node run, with these inputs? Asked before every node."""

from abc import ABC, abstractmethod
from typing import Any


class NodePolicy(ABC):
    @abstractmethod
    async def authorise(self, node_type: str, symbol: str, options: dict[str, Any]) -> None:
        """Return to let the node run; raise `AppError` to stop it. The refusal is recorded as its failure."""


class AllowAll(NodePolicy):
    """A desk without rules."""

    async def authorise(self, node_type: str, symbol: str, options: dict[str, Any]) -> None:
        return None

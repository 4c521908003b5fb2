"""Judge, as the coordinator sees it."""

from abc import ABC, abstractmethod
from typing import Any


class IJudgeGateway(ABC):
    @abstractmethod
    async def run_verdict(self, symbol: str, debate_outcome: dict[str, Any]) -> dict[str, Any]:
        """Return the verdict; raise `AppError` if none can be given."""

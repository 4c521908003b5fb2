"""Debate, as the coordinator sees it."""

from abc import ABC, abstractmethod
from typing import Any


class IDebateGateway(ABC):
    @abstractmethod
    async def run_debate(self, symbol: str, expert_results: dict[str, Any]) -> dict[str, Any]:
        """Return the outcome of bull against bear over the successful experts' results, by expert name."""

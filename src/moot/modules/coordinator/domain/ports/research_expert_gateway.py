"""Research, as the coordinator sees it."""

from abc import ABC, abstractmethod
from typing import Any

from moot.modules.coordinator.domain.model.enums import ExpertType


class IResearchExpertGateway(ABC):
    @abstractmethod
    async def run_expert(
        self, expert_type: ExpertType, symbol: str, options: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the expert's result; `options` are that expert's own. Raise when it has none to give."""

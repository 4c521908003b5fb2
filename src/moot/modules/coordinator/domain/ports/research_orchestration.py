"""The engine that runs a research request, as the application sees it."""

from abc import ABC, abstractmethod

from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest, ResearchResult


class IResearchOrchestrationPort(ABC):
    @abstractmethod
    async def run(self, request: ResearchRequest) -> ResearchResult:
        """Run the selected experts together, then debate and judge; failures are part of the result."""

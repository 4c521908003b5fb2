"""Calls the debate with what it may know of the experts: four fields each and the evidence, no raw dumps."""

from collections.abc import Callable
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from moot.modules.coordinator.application.expert_summary import summarise
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.ports.debate_gateway import IDebateGateway
from moot.modules.coordinator.infrastructure.adapters.session_factory import SessionFactory, current_setting
from moot.modules.debate.application.debate_service import DebateInput, ExpertSummary
from moot.modules.debate.container import DebateContainer
from moot.shared.domain.evidence import Evidence


class DebateGatewayAdapter(IDebateGateway):
    def __init__(
        self,
        session_factory: SessionFactory,
        container_factory: Callable[[AsyncSession | None], DebateContainer],
    ) -> None:
        self._session_factory = session_factory
        self._container_factory = container_factory

    async def run_debate(self, symbol: str, expert_results: dict[str, Any]) -> dict[str, Any]:
        async with self._session_factory() as session:
            service = self._container_factory(session).debate_service()
            outcome = await service.run(to_debate_input(symbol, expert_results))
            return outcome.model_dump(mode="json")


def to_debate_input(symbol: str, expert_results: dict[str, Any]) -> DebateInput:
    """Successful experts only; one that failed has no result."""
    succeeded = {name: result for name, result in expert_results.items() if result}
    return DebateInput(
        symbol=symbol,
        expert_summaries={
            name: ExpertSummary(**summarise(ExpertType(name), result)._asdict())
            for name, result in succeeded.items()
        },
        evidence=[
            Evidence.model_validate(item)
            for result in succeeded.values()
            for item in result.get("evidence", [])
        ],
        locale=current_setting().locale,
    )

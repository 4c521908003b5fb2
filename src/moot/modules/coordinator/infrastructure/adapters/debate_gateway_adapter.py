"""Calls the debate with what it may know of the experts: four fields each and the evidence, no raw dumps."""

from typing import Any

from moot.modules.coordinator.application.expert_summary import summarise
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.ports.debate_gateway import IDebateGateway
from moot.modules.coordinator.infrastructure.adapters.session_factory import Gateway, current_setting
from moot.modules.debate.application.debate_service import DebateInput, ExpertSummary
from moot.modules.debate.container import DebateContainer
from moot.shared.domain.evidence import Evidence


class DebateGatewayAdapter(Gateway[DebateContainer], IDebateGateway):
    async def run_debate(self, symbol: str, expert_results: dict[str, Any]) -> dict[str, Any]:
        outcome = await self._container().debate_service().run(_debate_input(symbol, expert_results))
        return outcome.model_dump(mode="json")


def _debate_input(symbol: str, expert_results: dict[str, Any]) -> DebateInput:
    """Successful experts only; one that failed has no result."""
    succeeded = {name: result for name, result in expert_results.items() if result}
    setting = current_setting()
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
        locale=setting.locale,
        as_of=setting.as_of,
    )

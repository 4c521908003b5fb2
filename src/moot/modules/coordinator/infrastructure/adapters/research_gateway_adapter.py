"""Calls the experts, each by its name and with its own options."""

from typing import Any

from moot.modules.coordinator.application.dtos.research_dtos import options_of
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.ports.research_expert_gateway import IResearchExpertGateway
from moot.modules.coordinator.infrastructure.adapters.session_factory import Gateway, current_setting
from moot.modules.research.container import ResearchContainer
from moot.shared.domain.validation import checked


class ResearchGatewayAdapter(Gateway[ResearchContainer], IResearchExpertGateway):
    async def run_expert(
        self, expert_type: ExpertType, symbol: str, options: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """The catalyst detective answers with an object; the coordinator knows dicts only."""
        setting = current_setting()
        asked = checked(options_of(expert_type), options or {})
        result = (
            await self._container()
            .service(expert_type)
            .run(**asked.arguments(symbol, setting.as_of), as_of=setting.as_of, locale=setting.locale)
        )
        return result if isinstance(result, dict) else result.model_dump(mode="json")

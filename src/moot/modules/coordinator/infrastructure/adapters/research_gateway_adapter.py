"""Calls the five experts. Each call has a database session of its own: parallel nodes cannot share one."""

from collections.abc import Callable
from datetime import date
from typing import Any

from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession

from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.ports.research_expert_gateway import IResearchExpertGateway
from moot.modules.coordinator.infrastructure.adapters.session_factory import (
    SessionFactory,
    Setting,
    current_setting,
)
from moot.modules.research.container import ResearchContainer
from moot.shared.domain.symbol import Symbol

DEFAULT_PERIODS = 5


class ResearchGatewayAdapter(IResearchExpertGateway):
    def __init__(
        self,
        session_factory: SessionFactory,
        container_factory: Callable[[AsyncSession | None], ResearchContainer],
    ) -> None:
        self._session_factory = session_factory
        self._container_factory = container_factory

    async def run_expert(
        self, expert_type: ExpertType, symbol: str, options: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        async with self._session_factory() as session:
            research = self._container_factory(session)
            return _as_dict(await _dispatch(research, expert_type, symbol, options or {}, current_setting()))


async def _dispatch(
    research: ResearchContainer, expert: ExpertType, symbol: str, options: dict[str, Any], setting: Setting
) -> dict[str, Any] | BaseModel:
    as_of, locale = setting.as_of, setting.locale
    match expert:
        case ExpertType.TECHNICAL_ANALYST:
            day = _analysis_date(options.get("analysis_date"), symbol, setting)
            technical = research.technical_analyst_service()
            return await technical.run(ticker=symbol, analysis_date=day, as_of=as_of, locale=locale)
        case ExpertType.FINANCIAL_AUDITOR:
            limit = options.get("limit", DEFAULT_PERIODS)
            auditor = research.financial_auditor_service()
            return await auditor.run(symbol=symbol, limit=limit, as_of=as_of, locale=locale)
        case ExpertType.VALUATION_MODELER:
            return await research.valuation_modeler_service().run(symbol=symbol, as_of=as_of, locale=locale)
        case ExpertType.MACRO_INTELLIGENCE:
            return await research.macro_intelligence_service().run(symbol=symbol, as_of=as_of, locale=locale)
        case ExpertType.CATALYST_DETECTIVE:
            return await research.catalyst_detective_service().run(symbol=symbol, as_of=as_of, locale=locale)


def _analysis_date(option: str | date | None, symbol: str, setting: Setting) -> date:
    """The day asked for, else the exchange's date at the session's moment."""
    if option is None:
        return Symbol.parse(symbol).local_date(setting.as_of)
    return option if isinstance(option, date) else date.fromisoformat(option)


def _as_dict(result: dict[str, Any] | BaseModel) -> dict[str, Any]:
    """The catalyst detective answers with an object; the coordinator knows dicts only."""
    return result.model_dump(mode="json") if isinstance(result, BaseModel) else result

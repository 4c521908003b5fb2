"""How the coordinator gets at another context: through its container, with the moment and language of the session."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Generic, Self, TypeVar

from sqlalchemy.ext.asyncio import AsyncSession

from moot.modules.coordinator.application.dtos.research_dtos import OPTIONS
from moot.modules.coordinator.application.results import summarise
from moot.modules.coordinator.domain.exceptions import Abstention
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.ports.debate_gateway import IDebateGateway
from moot.modules.coordinator.domain.ports.judge_gateway import IJudgeGateway
from moot.modules.coordinator.domain.ports.research_expert_gateway import IResearchExpertGateway
from moot.modules.coordinator.infrastructure.adapters.share_facts import read_trading
from moot.modules.debate.application.debate_service import DebateInput, ExpertSummary
from moot.modules.debate.container import DebateContainer
from moot.modules.judge.application.judge_service import JudgeInput, VerdictAbstained
from moot.modules.judge.container import JudgeContainer
from moot.modules.market_data.application.market_data import MarketData
from moot.modules.research.container import ResearchContainer
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.validation import validate
from moot.shared.infrastructure.execution_context import current_context

SessionFactory = Callable[[], AbstractAsyncContextManager[AsyncSession | None]]
C = TypeVar("C")

CONCLUSIONS = ("direction", "confidence", "key_disagreements", "conflict_resolution")
"""What the judge is told of a debate as it is."""
EXCHANGE_RULES = {"lot_size", "limit_percent"}


class Gateway(Generic[C]):
    """Its container is made for each call. Whoever in it needs the database opens a session of its own."""

    def __init__(
        self, session_factory: SessionFactory, container_factory: Callable[[SessionFactory], C]
    ) -> None:
        self._container: Callable[[], C] = partial(container_factory, session_factory)


def _setting() -> dict[str, Any]:
    """What the session under way says about the moment and the language; outside of one, now and the default."""
    context = current_context()
    return {"as_of": context.as_of or SystemClock().now(), "locale": context.locale}


class ResearchGatewayAdapter(Gateway[ResearchContainer], IResearchExpertGateway):
    """Each expert is called by its name and with its own options."""

    async def run_expert(
        self, expert_type: ExpertType, symbol: str, options: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """The catalyst detective answers with an object; the coordinator knows dicts only."""
        setting, asked = _setting(), validate(OPTIONS[expert_type], options or {})
        service = self._container().service(expert_type)
        result = await service.run(**asked.arguments(symbol, setting["as_of"]), **setting)
        return result if isinstance(result, dict) else result.model_dump(mode="json")


class DebateGatewayAdapter(Gateway[DebateContainer], IDebateGateway):
    """The debate may know four fields of each expert and the evidence, no raw dumps."""

    async def run_debate(self, symbol: str, expert_results: dict[str, Any]) -> dict[str, Any]:
        found = {ExpertType(name): result for name, result in expert_results.items() if result}
        debate = DebateInput(
            symbol=symbol,
            expert_summaries={
                e: ExpertSummary(**summarise(e, result)._asdict()) for e, result in found.items()
            },
            evidence=[item for result in found.values() for item in result.get("evidence", [])],
            claims=[claim for result in found.values() for claim in result.get("claims", [])],
            rounds=getattr(current_context().asked, "rounds", 1),
            horizon=getattr(current_context().asked, "horizon", 20),
            **_setting(),
        )
        return (await self._container().debate_service().run(debate)).model_dump(mode="json")


class JudgeGatewayAdapter(Gateway[JudgeContainer], IJudgeGateway):
    """The judge gets the conclusions, and what the exchange allows; the advocates' arguments and the risks' details
    stay behind.
    """

    _market: MarketData | None = None

    def on_exchange(self, market: MarketData) -> Self:
        self._market = market
        return self

    async def run_verdict(self, symbol: str, debate_outcome: dict[str, Any]) -> dict[str, Any]:
        state = await read_trading(self._market, Symbol.parse(symbol))
        debate = JudgeInput(
            symbol=symbol,
            **{name: debate_outcome[name] for name in CONCLUSIONS},
            bull_thesis=debate_outcome["bull_case"]["core_thesis"],
            bear_thesis=debate_outcome["bear_case"]["core_thesis"],
            risk_factors=[row["risk"] for row in debate_outcome["risk_matrix"]],
            evidence=debate_outcome.get("evidence", []),
            argument=debate_outcome.get("argument"),
            previous=getattr(current_context().asked, "previous", None),
            holder=getattr(current_context().asked, "holder", None),
            **(state.model_dump(include=EXCHANGE_RULES) if state else {}),
            experts_asked=len(current_context().experts),
            experts_heard=len(debate_outcome.get("experts", [])),
            **_setting(),
        )
        try:
            verdict = await self._container().judge_service().run(debate)
        except VerdictAbstained as e:
            raise Abstention(e.message) from e
        return verdict.model_dump(mode="json")

"""Assembles intake: understanding, planner, team, reporter, the graph they stand in, and the service before it."""

import asyncio
from contextlib import AsyncExitStack
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.governance.application.coordinator_agent import CoordinatorAgent, ToolCalls
from moot.modules.intake.application.intake_service import IntakeService
from moot.modules.intake.application.intake_state import IntakeGraph
from moot.modules.intake.application.metrics import IntakeMetrics
from moot.modules.intake.application.understanding import Understander
from moot.modules.intake.domain.conversation import Conversations
from moot.modules.intake.infrastructure.adapters.equity_desk import ResearchGraphDesk
from moot.modules.intake.infrastructure.adapters.plan_review import GovernedPlanReview
from moot.modules.intake.infrastructure.adapters.toolbox import GovernedToolbox, find_mentions, find_near
from moot.modules.intake.infrastructure.agents.planner import Planner
from moot.modules.intake.infrastructure.agents.processing import Processor
from moot.modules.intake.infrastructure.agents.reporter import Reporter
from moot.modules.intake.infrastructure.agents.researcher import Researcher
from moot.modules.intake.infrastructure.agents.team import StepWatch, Team
from moot.modules.intake.infrastructure.conversations import SqlConversations
from moot.modules.intake.infrastructure.prompt_templates import PromptTemplates
from moot.modules.llm_platform.container import LLMPlatformContainer
from moot.modules.market_data.container import MarketDataContainer
from moot.shared.domain.clock import Clock
from moot.shared.domain.leases import LeaseHolder
from moot.shared.infrastructure.audit_trail import AuditTrail

if TYPE_CHECKING:
    from moot.modules.intake.infrastructure.graph.main_graph import Parts


class IntakeContainer:
    """`url` is where a conversation is kept while its plan waits; None: as long as this process lives."""

    def __init__(
        self,
        *,
        trail: AuditTrail | None,
        url: str | None,
        home: Path,
        clock: Clock,
        lease_clock: Clock,
        lease_seconds: float,
        llm_platform: LLMPlatformContainer,
        market_data: MarketDataContainer,
        governance: CoordinatorAgent,
        research: ResearchOrchestrationService,
        default_locale: str,
        plan_repairs: int,
    ) -> None:
        self._url, self._home, self._clock, self._default_locale = url, home, clock, default_locale
        self._llm_platform, self._market_data, self._plan_repairs = llm_platform, market_data, plan_repairs
        self._governance, self._research = governance, research
        self._open = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._opened: IntakeGraph | None = None
        self.metrics = IntakeMetrics()
        self.model_calls = llm_platform.llm_call_logs()
        self.other_calls = llm_platform.external_call_logs()
        self.conversations = SqlConversations(trail.database) if trail else Conversations()
        self.service = IntakeService(
            self._graph,
            self.conversations,
            clock,
            LeaseHolder(self.conversations, lease_clock, lease_seconds),
            investigates=llm_platform.web_to_search() is not None,
            on_record=trail.finish if trail else None,
        )

    async def close(self) -> None:
        await self.service.close()
        await self._open.aclose()

    @cached_property
    def parts(self) -> "Parts":
        from moot.modules.intake.infrastructure.graph.coordinator_graph import Coordinator
        from moot.modules.intake.infrastructure.graph.main_graph import Parts

        llm, clock = self._llm_platform.llm_service(), self._clock
        prompts = PromptTemplates(metrics=self.metrics, clock=clock)
        directory = self._market_data.directory()
        mentions = partial(find_mentions, directory, clock)
        review = GovernedPlanReview(self._governance, clock, mentions)
        toolbox = GovernedToolbox(
            ToolCalls(self._governance, clock),
            search=self._llm_platform.web_to_search(),
            pages=self._llm_platform.web_page_service(),
            database=self._market_data.database,
            directory=directory,
            clock=clock,
        )
        return Parts(
            coordinator=Coordinator(
                llm,
                prompts,
                Understander(mentions, partial(find_near, directory)),
                self.metrics,
                default_locale=self._default_locale,
            ),
            toolbox=toolbox,
            planner=Planner(
                llm,
                prompts,
                review,
                directory,
                repairs=self._plan_repairs,
                can_search=self._llm_platform.web_to_search() is not None,
                choice=self._llm_platform.engine_choice(),
            ),
            team=Team(
                Researcher(llm, toolbox, prompts),
                Processor(llm, prompts),
                ResearchGraphDesk(self._research),
                StepWatch(self._governance),
                review.find_symbols,
            ),
            reporter=Reporter(llm, prompts),
        )

    async def _graph(self) -> IntakeGraph:
        """Made, and its engine loaded, when the first question comes."""
        from moot.modules.intake.infrastructure.graph.main_graph import LangGraphIntake, checkpointer

        async with self._opening:
            if self._opened is None:
                saver = await self._open.enter_async_context(checkpointer(self._url, self._home))
                self._opened = LangGraphIntake(self.parts, saver)
            return self._opened

"""A desk on demo data with a scripted model and a small web, for the tests of research steps."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from moot.desk import Moot
from moot.modules.governance.application.coordinator_agent import DecisionRecord, ToolCalls
from moot.modules.intake.application.intake_state import Errand, Task
from moot.modules.intake.domain.question import Step
from moot.modules.intake.infrastructure.adapters.toolbox import GovernedToolbox
from moot.modules.intake.infrastructure.agents.processing import Processor
from moot.modules.intake.infrastructure.agents.researcher import Researcher
from moot.modules.intake.infrastructure.prompt_templates import PromptTemplates
from moot.modules.llm_platform.application.web_search import WebPageService
from moot.modules.llm_platform.infrastructure.public_web import PageFetcher
from moot.shared.domain.clock import Clock
from moot.shared.infrastructure.settings import Settings
from tests.fakes.clock import FixedClock, TickingClock
from tests.fakes.llm_server import LLMServer, Say
from tests.fakes.search_server import FakeSearchAudit, LocalWeb, Reply

GOAL = "What are the latest AI trends?"
HTML = {"Content-Type": "text/html; charset=utf-8"}
SEARCH = "/search"


class StepsDesk:
    """`web` serves both the search service and the pages."""

    def __init__(self, desk: Moot, pages: PageFetcher, clock: Clock) -> None:
        self.desk, self._pages, self._clock = desk, pages, clock
        self.llm = desk.llm_platform.llm_service()

    def toolbox(self, rules: ToolCalls | None = None) -> GovernedToolbox:
        return GovernedToolbox(
            rules or ToolCalls(self.desk.governance.agent, self._clock),
            search=self.desk.llm_platform.web_to_search(),
            pages=WebPageService(self._pages.text, FakeSearchAudit()),
            database=lambda: self.desk.database_tool,
            directory=self.desk.market_data.directory(),
            clock=self._clock,
        )

    def researcher(self) -> Researcher:
        return Researcher(self.llm, self.toolbox(), PromptTemplates(clock=self._clock))

    def processor(self) -> Processor:
        return Processor(self.llm, PromptTemplates())

    async def decisions(self) -> list[DecisionRecord]:
        """In the order in which they were put on the record."""
        return [each async for each in self.desk.governance.decisions.history("default", self._clock.now())]


@asynccontextmanager
async def steps_desk(
    home: Path, clock: FixedClock, web: LocalWeb, model: LLMServer | None = None, *, search: bool = True
) -> AsyncIterator[StepsDesk]:
    asking = {"llm_base_url": model.url, "llm_model": "fake-1"} if model else {}
    finding = {"searxng_url": web.url} if search else {}
    settings = Settings(home=home, log_level="error", **asking, **finding)
    pages = PageFetcher(ports=frozenset({web.port}), allows=lambda _, port: port == web.port)
    async with Moot(settings, clock=TickingClock(clock.now())) as desk:
        try:
            yield StepsDesk(desk, pages, clock)
        finally:
            await pages.aclose()


def a_task(goal: str = GOAL, locale: str = "en-US", **more: Any) -> Task:
    return Task(goal, locale, **({"errand": Errand()} | more))


def finds(web: LocalWeb, *results: dict[str, Any]) -> None:
    """What the search service answers from now on."""
    web.replies[SEARCH] = Reply(json.dumps({"query": "q", "number_of_results": 0, "results": list(results)}))


def page(web: LocalWeb, path: str, text: str) -> str:
    """The URL of a page that says `text`."""
    html = f"<html><head><title>A page</title></head><body><main><p>{text}</p></main></body></html>"
    web.replies[path] = Reply(html, headers=HTML)
    return f"{web.url}{path}"


def hit(title: str, url: str, content: str = "what it says") -> dict[str, Any]:
    return {"title": title, "url": url, "content": content}


def calls(*asked: tuple[str, Any]) -> Say:
    """A model's turn that calls tools: name and arguments, those that are no text as JSON."""
    made = [
        (f"call-{place}", name, given if isinstance(given, str) else json.dumps(given))
        for place, (name, given) in enumerate(asked, 1)
    ]
    return Say(content="", tool_calls=made, finish_reason="tool_calls")


def research_step(**changes: Any) -> Step:
    return Step.model_validate(
        {"id": "s1", "type": "research", "title": "AI trends", "need_web_search": True} | changes
    )

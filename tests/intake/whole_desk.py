"""A whole desk to ask: its settings, what it tells on the way, and a model that plays every part over HTTP."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from moot.desk import Moot
from moot.modules.governance.application.coordinator_agent import DecisionRecord
from moot.modules.governance.domain.rules import EnhancedRule
from moot.modules.intake.application.intake_service import Conversation, Feedback, IntakeService, Question
from moot.shared.domain.clock import Clock
from moot.shared.domain.validation import validate
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE
from moot.shared.infrastructure.settings import Settings
from tests.fakes.clock import TickingClock
from tests.fakes.llm_server import Fixed, LLMServer, Reply, Say, Status
from tests.governance.factories import NOON, rule

ACCEPTED, REJECTED = Feedback(decision="accepted"), Feedback(decision="rejected")


class Heard:
    """A listener that writes down what it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, what: str, about: dict[str, Any]) -> None:
        self.events.append((what, about))

    @property
    def names(self) -> list[str]:
        return [what for what, _ in self.events]

    def of(self, name: str) -> list[dict[str, Any]]:
        return [about for what, about in self.events if what == name]


class Asking:
    """A desk as somebody sees it who asks questions."""

    def __init__(self, desk: Moot, workspace: str = DEFAULT_WORKSPACE) -> None:
        self.desk, self.workspace = desk, workspace

    @property
    def service(self) -> IntakeService:
        return self.desk.intake.service

    async def ask(self, question: str, listener: Heard | None = None, **more: Any) -> Conversation:
        asked = validate(Question, {"question": question} | more)
        return await self.service.ask(asked, workspace=self.workspace, listener=listener)

    async def say(
        self, conversation: Conversation, said: Feedback, listener: Heard | None = None
    ) -> Conversation:
        return await self.service.feedback(conversation.id, said, workspace=self.workspace, listener=listener)

    async def resume(self, conversation: Conversation, listener: Heard | None = None) -> Conversation:
        return await self.service.resume(conversation.id, workspace=self.workspace, listener=listener)

    async def sessions(self) -> int:
        """How many sessions of research there have been."""
        return (await self.desk.sessions()).total

    async def decisions(self, *types: str) -> list[DecisionRecord]:
        """In the order in which they were put on the record: all of them, or those of some types."""
        kept, trail = self.desk.governance.decisions, self.desk.trail
        assert trail is not None
        await trail.finish()
        told = [each async for each in kept.history(self.workspace, NOON)]
        return [each for each in told if not types or each.decision_type in types]

    def forbid(self, *rules: EnhancedRule) -> None:
        """Under the shipped rules, and these."""
        rulesets = self.desk.governance.rulesets
        rulesets._shipped = (*self.desk.governance.book.read_shipped(), *rules)  # type: ignore[misc]


def about_plans(condition: str, **more: Any) -> EnhancedRule:
    return rule(condition, id="test.plan", decision_types=("plan",), category="behavior", **more)


def settings_of(home: Path, database: Database | str | None = None, **more: Any) -> dict[str, Any]:
    """Of a desk on demo data, in that database. A clock that ticks with every look runs through short leases."""
    url = database._url.render_as_string(hide_password=False) if isinstance(database, Database) else database
    return {"home": str(home), "database_url": url or "", "log_level": "error", "lease_seconds": 30.0} | more


@asynccontextmanager
async def asking(settings: dict[str, Any], *, clock: Clock | None = None) -> AsyncIterator[Asking]:
    async with Moot(Settings(**settings), clock=clock or TickingClock(NOON)) as desk:
        yield Asking(desk)


class Parts:
    """Answers for each agent in its turn, whoever asks first; an agent without an answer left gets an error."""

    def __init__(self, server: LLMServer) -> None:
        self._left: dict[str, list[Reply]] = defaultdict(list)
        self.asked: dict[str, list[dict[str, Any]]] = defaultdict(list)
        server.default = self._answer

    def play(self, agent: str, *replies: Reply) -> None:
        self._left[agent].extend(replies)

    def told(self, agent: str) -> str:
        """All that an agent was told, the last time."""
        return json.dumps(self.asked[agent][-1]["messages"], ensure_ascii=False)

    def _answer(self, body: dict[str, Any]) -> Fixed:
        agent = _agent(body)
        self.asked[agent].append(body)
        if not self._left[agent]:
            return Status(400, f"nobody plays {agent}")
        reply = self._left[agent].pop(0)
        return reply(body) if callable(reply) else reply


def _agent(body: dict[str, Any]) -> str:
    tools = {tool["function"]["name"] for tool in body.get("tools", [])}
    if "hand_to_planner" in tools:
        return "coordinator"
    schema = (body.get("response_format") or {}).get("json_schema", {}).get("name")
    return {"Plan": "planner", "Draft": "reporter"}.get(schema, "researcher")


def hands_over(title: str, locale: str) -> Say:
    arguments = json.dumps({"task_title": title, "locale": locale})
    return Say(content="", tool_calls=[("c1", "hand_to_planner", arguments)], finish_reason="tool_calls")


def plans(*steps: dict[str, Any], title: str, locale: str) -> Say:
    return Say(json.dumps({"locale": locale, "title": title, "thought": "", "steps": steps}))


def researching(name: str, title: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "type": "research", "title": title, "need_web_search": False} | more


def writes(title: str, overview: str, points: Sequence[str] = ()) -> Say:
    return Say(
        json.dumps(
            {
                "title": title,
                "key_points": list(points) or [overview],
                "overview": overview,
                "analysis": overview,
                "risks": [overview],
            },
            ensure_ascii=False,
        )
    )

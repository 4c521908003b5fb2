"""Every fact that a shipped rule reads is there where a desk asks the rule."""

import re
from typing import Any

from moot.modules.governance.application.facts import facts_of
from moot.modules.governance.domain.rules import EnhancedRule
from tests.fakes.llm_server import LLMServer, Say
from tests.fakes.search_server import local_web
from tests.intake.steps_desk import calls, finds, hit
from tests.intake.whole_desk import (
    Asking,
    Parts,
    asking,
    hands_over,
    plans,
    researching,
    settings_of,
    writes,
)

MIRAGE = "900001.DEMO"
ABOUT = {"title": "Latest AI trends", "locale": "en-US"}
EQUITY = {"id": "b", "type": "equity", "title": f"Research {MIRAGE}", "symbol": MIRAGE}
FACT = re.compile(r"context\.([a-z_]+)")


async def decide_on_everything(desk: Asking, server: LLMServer) -> None:
    """A question that is looked up on the web and in a session of research; and a query of the market data."""
    parts = Parts(server)
    parts.play("coordinator", hands_over(**ABOUT))
    parts.play("planner", plans(researching("a", "Latest AI trends"), EQUITY, **ABOUT))
    parts.play("researcher", calls(("web_search", {"query": "latest AI trends"})), Say("Small models."))
    parts.play("reporter", writes("AI trends", "Small models [1]."))
    ended = await desk.ask(f"What are the latest AI trends, and {MIRAGE}?", auto_accepted_plan=True)
    assert [finding.status for finding in ended.last.findings] == ["completed", "completed"]
    await desk.desk.query("SELECT close FROM bars LIMIT 1")


async def facts_at_every_place(home: Any, server: LLMServer) -> tuple[list[EnhancedRule], list[Any]]:
    async with local_web() as web:
        finds(web, hit("Models get smaller", "https://ai.example/small", "Small models run on phones."))
        modelled = {"llm_base_url": server.url, "llm_model": "fake-1", "searxng_url": web.url}
        async with asking(settings_of(home, analyst="rubric", **modelled)) as desk:
            await decide_on_everything(desk, server)
            book = desk.desk.governance.book
            made = [
                (each.decision_type, facts_of(each.request, each.payload, book.tools).values)
                for each in await desk.decisions()
            ]
            return book.read_shipped(), made


async def test_every_shipped_rule_has_its_facts_at_every_place_where_a_desk_asks_it(home, llm_server) -> None:
    rules, made = await facts_at_every_place(home, llm_server)
    assert {kind for kind, _ in made} == {"research_request", "node", "verdict", "plan", "tool_call"}
    missing = {
        (rule.id, kind, fact)
        for rule in rules
        for kind, values in made
        if not rule.decision_types or kind in rule.decision_types
        for fact in FACT.findall(rule.condition if isinstance(rule.condition, str) else "")
        if f"context.{fact}" not in values
    }
    # how well an action serves a goal can be told where it is described, which plans are
    assert {(kind, fact) for _, kind, fact in missing} == {
        (kind, "alignment_score") for kind in ("research_request", "node", "verdict", "tool_call")
    }
    read = {fact for rule in rules for fact in FACT.findall(str(rule.condition))}
    assert {"token_used", "running", "consecutive_failures", "suspended", "open_breakers"} <= read

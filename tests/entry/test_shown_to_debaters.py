"""Bull, bear, narrator and judge of a whole session: what is in their prompts, and what is in none of them."""

import json
import re
from typing import Any
from uuid import UUID

import pytest

from moot.desk import Moot
from moot.modules.coordinator.infrastructure.adapters.research_gateway_adapter import ResearchGatewayAdapter
from moot.modules.market_data.infrastructure.demo import news
from moot.shared.domain.messages import LOCALES
from moot.shared.infrastructure.settings import Settings
from tests.fakes.careful_model import careful
from tests.fakes.llm_server import LLMServer, Say

SYMBOL = "900001.DEMO"
TITLE, RAW = "PLANTED-TITLE 618.61", "PLANTED-DUMP 543.21"
SPEAKERS = {"bull_advocate", "bear_advocate", "resolution", "verdict"}
OURS = {"claims", "evidence", "engine"}
"""What of an expert's result the debate is made of."""


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every title of the market says so, and so does every word of a result that is no claim and no evidence."""
    say, run = news._item, ResearchGatewayAdapter.run_expert

    def item(*given: Any, **about: Any) -> Any:
        told = say(*given, **about)
        titles = {"title": f"{told.title} {TITLE}", "title_en": f"{told.title_en} {TITLE}"}
        return told.model_copy(update=titles)

    async def run_expert(*given: Any, **also: Any) -> dict[str, Any]:
        return _mark(await run(*given, **also)) | {"raw_snapshot": {"text": RAW, "bars": [RAW]}}

    monkeypatch.setattr(news, "_item", item)
    monkeypatch.setattr(ResearchGatewayAdapter, "run_expert", run_expert)


def _mark(result: Any) -> Any:
    """Sentences only: a signal is a literal."""
    if isinstance(result, dict):
        return {name: part if name in OURS else _mark(part) for name, part in result.items()}
    if isinstance(result, list):
        return [_mark(part) for part in result]
    is_prose = isinstance(result, str) and len(re.findall(r"[。.]", result)) > 0
    return f"{result} {RAW}" if is_prose else result


def repeat(body: dict[str, Any]) -> Say:
    """A model that passes on what it reads: each text it writes begins with a title, if it was shown one."""
    answer = careful(body)
    if "PLANTED-TITLE" not in body["messages"][1]["content"]:
        return answer
    said = json.loads(str(answer.content))
    return Say(json.dumps(_begin(said), ensure_ascii=False))


def _begin(said: Any) -> Any:
    if isinstance(said, dict):
        return {name: _begin(part) for name, part in said.items()}
    if isinstance(said, list):
        return [_begin(part) for part in said]
    return f"PLANTED-TITLE {said}" if isinstance(said, str) and len(said) > 30 else said


def leave_experts_to_rules(body: dict[str, Any]) -> Say:
    answer = careful(body)
    speaks = any(
        field in str(answer.content) for field in ('"core_thesis"', '"bull_case_summary"', '"action"')
    )
    return answer if speaks else Say("no JSON at all")


@pytest.mark.parametrize("model", [repeat, leave_experts_to_rules], ids=lambda model: model.__name__)
@pytest.mark.parametrize("locale", LOCALES)
async def test_no_words_from_outside_and_no_raw_data_reach_debaters_or_judge(
    planted, llm_server: LLMServer, home, clock, locale, model
):
    llm_server.default = model
    given = {
        "demo_seed": 618,
        "llm_base_url": llm_server.url,
        "llm_model": "careful-1",
        "analyst_fallback": "rubric",
    }
    async with Moot(Settings(home=home, log_level="error", **given), clock=clock) as desk:
        result = await desk.research(SYMBOL, locale=locale)
        history = desk.coordinator.session_history()
        calls = await history.calls(UUID(result.session_id), "default", "models")
    assert (result.verdict or {}).get("engine") == "llm", result.reason
    prompts = {
        call["caller_agent"]: call["prompt_text"] for call in calls if call["caller_agent"] in SPEAKERS
    }
    assert set(prompts) == SPEAKERS
    marks = ("PLANTED", "618.61", "543.21")
    assert [agent for agent, prompt in prompts.items() if any(mark in prompt for mark in marks)] == []
    assert all("technical.current_price | " in prompt for prompt in prompts.values())
    read = str(result.debate_outcome["evidence"]) + str(result.expert_results)
    assert [mark for mark in marks if mark not in read] == [], "they were there to be shown"

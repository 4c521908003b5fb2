"""A real language model, small, on this machine: `make test-llm`. It talks nonsense, and all of it is on record."""

import os
import sys
from pathlib import Path
from typing import Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field

from moot.desk import Moot
from moot.modules.llm_platform.application.llm_service import ChatMessage, ResponseSchema
from moot.modules.llm_platform.domain.parsing import parse_llm_json_output
from moot.shared.infrastructure.settings import Settings

pytestmark = pytest.mark.skipif(
    not os.environ.get("MOOT_TEST_LLM"), reason="runs a real language model: make test-llm"
)

PATIENT = {"llm_deadline": 900, "node_timeout": 3600, "llm_max_tokens": 300, "log_level": "error"}
HELLO = [ChatMessage(role="user", content="Is a rising share price good news for a holder? Answer briefly.")]


@pytest.fixture
def desk(base_url: str, home: Path) -> Moot:
    model = {"llm_base_url": base_url, "llm_model": "smollm2-135m", "llm_price_in": 1, "llm_price_out": 2}
    return Moot(Settings(home=home, **model, **PATIENT, min_grounding=0, analyst_fallback="rubric"))


class View(BaseModel):
    model_config = ConfigDict(extra="forbid")

    signal: Literal["BULLISH", "BEARISH", "NEUTRAL"]
    reasons: list[str] = Field(min_length=1, max_length=3)


async def test_it_answers_and_says_what_it_used(desk):
    async with desk:
        result = await desk.llm_platform.llm_service().chat(HELLO, max_tokens=60)
    assert result.content.strip()
    assert (result.usage.prompt_tokens or 0) > 5
    assert result.cost is not None and result.cost > 0


async def test_it_is_held_to_a_schema(desk):
    schema = ResponseSchema(name="view", json_schema=View.model_json_schema())
    async with desk:
        result = await desk.llm_platform.llm_service().chat(
            HELLO, response_schema=schema, max_tokens=300, temperature=0.0
        )
    assert parse_llm_json_output(result.content, View).signal in ("BULLISH", "BEARISH", "NEUTRAL")


@pytest.mark.accepts("A3-53")
async def test_a_whole_session_has_every_call_on_the_record(desk):
    async with desk:
        result = await desk.research("900001.DEMO", locale="en-US")
        session_id = UUID(result.session_id)
        calls = await desk.coordinator.session_history().calls(session_id, "default", "models")
        verified = await desk.verify(session_id)
        nodes = (await desk.session(session_id)).nodes
    assert result.overall_status == "completed", "where the model failed, the rules judged"
    assert len(calls) == result.usage.requests >= 5
    assert {call["status"] for call in calls} <= {"success", "failed"}
    assert all(call["prompt_text"] and call["latency_ms"] is not None for call in calls)
    assert any(call["completion_text"] for call in calls)
    assert {node.status for node in nodes} == {"success"}
    assert verified.intact
    sys.stdout.write(f"\n{len(calls)} calls, {result.usage.tokens} tokens, {_engines(result)}\n")


def _engines(result) -> dict[str, str]:
    return {
        item.expert_type.value: item.data["engine"] for item in result.expert_results.values() if item.data
    }

"""A sixth expert is a folder, its texts and a line: on a copy of the package, it goes all the way."""

import json
from typing import Any

import pytest

from tests.walks import copy_with, run_each

SIXTH = "liquidity_watcher"
OVER_REST = """
import asyncio, json, sys
import httpx
from moot.desk import Moot
from moot.main import create_app
from moot.shared.infrastructure.settings import Settings

ROUTE = "/api/v1/coordinator/research"

async def main():
    app = create_app(Moot(Settings(log_level="error")))
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
            asked = {"symbol": "900001.DEMO", "experts": sys.argv[1:], "locale": "en-US"}
            result = (await client.post(ROUTE, json=asked)).raise_for_status().json()
            refused = await client.post(ROUTE, json=asked | {"options": {sys.argv[1]: {"limit": 3}}})
            report = await client.get(f"{ROUTE}/sessions/{result['session_id']}/report")
    print(json.dumps({
        "result": result, "report": report.text, "openapi": app.openapi(), "refused": refused.status_code
    }))

asyncio.run(main())
"""


COMMAND = (
    "from moot.cli import main; main()",
    "research",
    "900001.DEMO",
    "--experts",
    SIXTH,
    "--locale",
    "zh-CN",
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Over REST, and twice by the command line: a copy of the package has one expert more, as the page tells."""
    package, home = copy_with(tmp_path_factory.mktemp("sixth"), "An expert"), tmp_path_factory.mktemp("home")
    return run_each(package, home, [OVER_REST, SIXTH, "valuation_modeler"], [*COMMAND, "--json"], COMMAND)


@pytest.fixture(scope="module")
def served(told: list[str]) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads(told[0])
    return answers


def test_it_is_asked_over_rest_and_answers_with_its_evidence(served: dict[str, Any]) -> None:
    result = served["result"]
    assert (result["overall_status"], result["verdict_status"]) == ("completed", "judged")
    found = result["expert_results"][SIXTH]["data"]
    assert found["signal"] in ("Liquid", "Illiquid")
    assert {item["id"] for item in found["evidence"]} == {
        "liquidity.traded_days",
        "liquidity.average_volume",
    }
    assert found["liquidity_indicators"]["average_volume"] > 0


def test_what_it_finds_is_a_claim_like_any_other(served: dict[str, Any]) -> None:
    (claim,) = served["result"]["expert_results"][SIXTH]["data"]["claims"]
    assert (claim["id"], claim["dimension"]) == ("liquidity.volume", "trading")
    assert claim["evidence"] == ["liquidity.average_volume"]
    assert claim["says"].keys() == {"zh-CN", "en-US"}


def test_it_has_nothing_to_set_and_says_so(served: dict[str, Any]) -> None:
    assert served["refused"] == 400


def test_the_debate_weighs_it_by_name_and_knows_what_to_do_about_its_risk(served: dict[str, Any]) -> None:
    outcome = served["result"]["debate_outcome"]
    assert outcome["experts"] == [SIXTH, "valuation_modeler"]
    assert "liquidity.trading" in outcome["argument"]["dimensions"]
    assert "liquidity.volume" in outcome["argument"]["strengths"]
    mitigations = [row["mitigation"] for row in outcome["risk_matrix"] if "shares were traded" in row["risk"]]
    assert mitigations == ["Trade in small lots."]


def test_the_verdict_rests_on_it(served: dict[str, Any]) -> None:
    verdict = served["result"]["verdict"]
    assert any("shares were traded a day" in warning for warning in verdict["risk_warnings"])


def test_the_report_tells_of_it_in_words(served: dict[str, Any]) -> None:
    signal = served["result"]["expert_results"][SIXTH]["data"]["signal"]
    assert f"**Liquidity watcher** | {signal.lower()}, " in served["report"]
    assert "shares were traded a day." in served["report"]


def test_openapi_names_it_among_experts_and_options(served: dict[str, Any]) -> None:
    schemas = served["openapi"]["components"]["schemas"]
    assert SIXTH in schemas["ExpertType"]["enum"]
    assert SIXTH in schemas["ExpertOptions"]["properties"]


def test_the_command_line_asks_it_too(told: list[str]) -> None:
    _, as_json, shown = told
    assert json.loads(as_json)["expert_results"][SIXTH]["status"] == "success"
    assert "流动性观察员" in shown

"""A sixth expert is a folder, its texts and a line: on a copy of the package, it goes all the way."""

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import pytest

import moot

SIXTH = "liquidity_watcher"
LINE = f'''
    LIQUIDITY_WATCHER = "{SIXTH}", "liquidity", PLAIN, {{"Liquid": 0.7, "Illiquid": -0.7}}
'''
TEXTS = {
    "en-US": ("Liquidity watcher", "Trade in small lots.", "liquid", "illiquid"),
    "zh-CN": ("流动性观察员", "分批小额交易。", "流动性好", "流动性差"),
}
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


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package that has one expert more."""
    folder = tmp_path_factory.mktemp("sixth")
    copy = copytree(Path(moot.__file__).parent, folder / "moot", ignore=ignore_patterns("__pycache__"))
    table = copy / "shared/domain/experts"
    module = (table / "__init__.py").read_text("utf-8")
    assert module.count("\n\n\nSTANCES") == 1
    (table / "__init__.py").write_text(module.replace("\n\n\nSTANCES", f"{LINE}\n\nSTANCES"), "utf-8")
    for locale, (name, advice, liquid, illiquid) in TEXTS.items():
        named = {"node": name, "mitigation": advice}
        lines = [f'{key}.{SIXTH} = "{text}"' for key, text in named.items()]
        lines += [f'literal.Liquid = "{liquid}"', f'literal.Illiquid = "{illiquid}"']
        _add_texts(table / f"{locale}.toml", lines)
    copytree(
        Path(__file__).parent / SIXTH,
        copy / "modules/research/application" / SIXTH,
        ignore=ignore_patterns("__pycache__"),
    )
    return folder


def _add_texts(catalogue: Path, lines: list[str]) -> None:
    """Each into its table."""
    text = catalogue.read_text("utf-8")
    for line in lines:
        table, _, entry = line.partition(".")
        assert f"[{table}]\n" in text
        text = text.replace(f"[{table}]\n", f"[{table}]\n{entry}\n")
    catalogue.write_text(text, "utf-8")


def run(package: Path, home: Path, *arguments: str) -> str:
    env = os.environ | {"PYTHONPATH": str(package), "MOOT_HOME": str(home), "LANG": "en_US.UTF-8"}
    seen = subprocess.run(
        [sys.executable, *arguments],
        env=env,
        cwd=package,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert seen.returncode == 0, seen.stdout + seen.stderr
    return seen.stdout


@pytest.fixture(scope="module")
def served(package: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("home")
    told: dict[str, Any] = json.loads(run(package, home, "-c", OVER_REST, SIXTH, "valuation_modeler"))
    return told


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


def test_it_has_nothing_to_set_and_says_so(served: dict[str, Any]) -> None:
    assert served["refused"] == 400


def test_the_debate_weighs_it_by_name_and_knows_what_to_do_about_its_risk(served: dict[str, Any]) -> None:
    outcome = served["result"]["debate_outcome"]
    assert outcome["experts"] == [SIXTH, "valuation_modeler"]
    assert "Liquidity watcher" in outcome["conflict_resolution"]
    risks = {row["risk"]: row["mitigation"] for row in outcome["risk_matrix"]}
    assert risks["Liquidity watcher: Volume dries up when it is needed most."] == "Trade in small lots."


def test_the_verdict_rests_on_it(served: dict[str, Any]) -> None:
    verdict = served["result"]["verdict"]
    assert "Liquidity watcher: Volume dries up when it is needed most." in verdict["risk_warnings"]


def test_the_report_has_a_section_of_it_in_words(served: dict[str, Any]) -> None:
    section = served["report"].partition("### Liquidity watcher")[2].partition("### ")[0]
    signal = served["result"]["expert_results"][SIXTH]["data"]["signal"]
    assert f"**{signal.lower()}** · " in section
    assert "shares were traded a day." in section


def test_openapi_names_it_among_experts_and_options(served: dict[str, Any]) -> None:
    schemas = served["openapi"]["components"]["schemas"]
    assert SIXTH in schemas["ExpertType"]["enum"]
    assert SIXTH in schemas["ExpertOptions"]["properties"]


def test_the_command_line_asks_it_too(package: Path, tmp_path: Path) -> None:
    command = "from moot.cli import main; main()"
    asked = ("research", "900001.DEMO", "--experts", SIXTH, "--locale", "zh-CN")
    result = json.loads(run(package, tmp_path, "-c", command, *asked, "--json"))
    assert result["expert_results"][SIXTH]["status"] == "success"
    assert "流动性观察员" in run(package, tmp_path, "-c", command, *asked)

"""What `docs/extending.md` says is all there is to do: each of its walks is taken, and prints what the page shows."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.walks import ROOT, copy_with, read_walks, run_each

WALKS = read_walks()
FIELD = "the command line offers the new field"
CONSOLE = """
from fastapi.testclient import TestClient
from moot.main import create_app

with TestClient(create_app(), base_url="http://127.0.0.1:8000", client=("127.0.0.1", 1)) as browser:
    page = browser.get("/research?symbol=900001.DEMO", headers={"accept": "text/html", "accept-language": "de"})
print(page.headers["content-language"], [line.strip() for line in page.text.splitlines() if "Deutsch" in line])
"""
ASKED = (
    "research",
    "900001.DEMO",
    "--experts",
    "technical_analyst",
    "--skip-debate",
    "--purpose",
    "a review",
)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One copy for all of them: they do not get into each other's way."""
    return copy_with(tmp_path_factory.mktemp("extended"), *WALKS)


def test_the_page_tells_how_to_add_what_people_add() -> None:
    assert list(WALKS) == [
        "An expert",
        "A data source",
        "A corrector for rules",
        "A locale",
        "A vendor's quirk",
        "A request field",
    ]


@pytest.fixture(scope="module")
def told(package: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each walk prints in the end, by its heading; and the command line."""
    orders = {heading: [walk.tried[0]] for heading, walk in WALKS.items()}
    orders[CONSOLE] = [CONSOLE]
    orders[FIELD] = ["from moot.cli import main; main()", *ASKED, "--json"]
    printed = run_each(package, tmp_path_factory.mktemp("home"), *orders.values())
    return dict(zip(orders, printed, strict=True))


@pytest.mark.parametrize("heading", WALKS)
def test_a_walk_leads_where_the_page_says(heading: str, told: dict[str, str]) -> None:
    assert told[heading] == WALKS[heading].tried[1]


def test_the_console_speaks_the_new_language(told: dict[str, str]) -> None:
    language, offered = told[CONSOLE].split(" ", 1)
    assert language == "de-DE"
    assert offered.count('<option value="de-DE" selected>Deutsch</option>') == 1


def test_the_command_line_offers_the_new_field(told: dict[str, str]) -> None:
    assert '"technical_analyst"' in told[FIELD]


@pytest.mark.parametrize("how", [["check"], ["format", "--check"]], ids=" ".join)
def test_what_the_page_writes_is_in_the_house_style(how: list[str], package: Path) -> None:
    ruff = [sys.executable, "-m", "ruff", *how, "--no-cache", "--config", str(ROOT / "pyproject.toml"), "src"]
    seen = subprocess.run(ruff, cwd=package.parent, capture_output=True, text=True, check=False)
    assert seen.returncode == 0, seen.stdout + seen.stderr

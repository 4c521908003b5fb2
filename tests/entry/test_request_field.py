"""A new field of the question is declared once, and goes with it everywhere: shown on a copy of the package."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import moot

DECLARED = {
    "modules/coordinator/domain/model/question.py": (
        "    skip_debate: StrictBool = False\n",
        '    skip_debate: StrictBool = False\n    horizon: str | None = Field(default=None, description="how far")\n',
    ),
    "modules/coordinator/application/dtos/research_dtos.py": (
        "    skip_debate: bool\n",
        "    skip_debate: bool\n    horizon: str | None\n",
    ),
}
"""What the model says, and what Python may write; the command line adds an option and its two texts."""

WALK = """
import asyncio, sys
from pathlib import Path
from uuid import UUID

import httpx
import moot
from moot.desk import Moot
from moot.main import create_app
from moot.modules.coordinator.domain.exceptions import KeyReused
from moot.shared.infrastructure.logging import configure_logging
from moot.shared.infrastructure.settings import Settings

configure_logging("critical")
RESEARCH = "/api/v1/coordinator/research"
ASKED = {"symbol": "900001.DEMO", "experts": ["technical_analyst", "macro_intelligence"], "as_of": "2018-01-04"}


async def walk():
    async with Moot(Settings(home=Path(sys.argv[1]), log_level="error")) as desk:
        first = await desk.research(**ASKED, horizon="months")
        parent = await desk.session(UUID(first.session_id))
        again = await desk.retry(UUID(first.session_id))
        child = await desk.session(UUID(again.session_id))
        print(parent.horizon, child.horizon, (await desk.verify(child.id)).intact)
        await desk.start(**ASKED, horizon="months", idempotency_key="order")
        try:
            await desk.start(**ASKED, horizon="years", idempotency_key="order")
        except KeyReused:
            print("another question")
        app = create_app(desk)
        print("horizon" in app.openapi()["components"]["schemas"]["ResearchOrder"]["properties"])
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
            answer = (await client.post(RESEARCH, json={**ASKED, "horizon": "weeks"})).json()
            session = (await client.get(f"{RESEARCH}/sessions/{answer['session_id']}")).json()
        print(session["horizon"], moot.__file__)


asyncio.run(walk())
"""


def test_it_reaches_rest_python_the_row_the_retry_the_key_and_the_record(tmp_path: Path) -> None:
    copy = tmp_path / "src" / "moot"
    shutil.copytree(Path(moot.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, (before, after) in DECLARED.items():
        text = (copy / name).read_text("utf-8")
        assert text.count(before) == 1, f"{name} declares it once"
        (copy / name).write_text(text.replace(before, after), "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(copy.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", WALK, str(tmp_path / "home")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == [
        "months months True",
        "another question",
        "True",
        f"weeks {copy / '__init__.py'}",
        "",
    ]

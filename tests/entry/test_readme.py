"""What the READMEs show is what happens: their commands run, their transcript is a real one."""

import asyncio
import json
import re
import shlex
import subprocess
from collections.abc import Callable
from datetime import date
from pathlib import Path

import httpx
import pytest

from moot.desk import Moot
from moot.main import create_app
from moot.shared.domain.clock import SystemClock
from moot.shared.infrastructure.settings import Settings
from tests.access.desk import new_key
from tests.entry.forked import Forge
from tests.entry.test_cli import TOO_LATE
from tests.entry.test_remote_desk import serving
from tests.fakes.careful_model import careful
from tests.fakes.tushare_server import TOKEN, TushareServer
from tests.fakes.tushare_tables import tushare_tables

ROOT = Path(__file__).parents[2]
READMES = {"README.md": "en_US.UTF-8", "README.zh-CN.md": "zh_CN.UTF-8"}


def blocks(readme: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / readme).read_text(encoding="utf-8"), re.S)


def first_question(readme: str) -> str:
    """What the transcript begins with; what follows in the README is about its answer."""
    return blocks(readme, "console")[0].splitlines()[0].removeprefix("$ ")


@pytest.fixture
def moot(home: Path, lang: str, forge: Forge) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Whoever types a line that a README shows, in its folder and its language."""

    def moot(line: str, **more: str) -> subprocess.CompletedProcess[str]:
        return forge.run(*shlex.split(line)[1:], home=home, LANG=lang, **more)

    return moot


@pytest.mark.parametrize(("readme", "lang"), READMES.items())
def test_every_moot_command_shown_works(readme, moot):
    lines = [
        line for block in blocks(readme, "sh") for line in block.splitlines() if line.startswith("moot ")
    ]
    elsewhere = (
        "moot serve",
        "moot data",
        "moot llm",
        "moot ask",
        "moot sessions",
        "moot report",
        "moot batch",
        "moot contest",
        "moot evaluate",
        "moot rules",
    )  # have tests of their own
    shown = [line for line in lines if not line.startswith(elsewhere) and "--max-cost" not in line]
    assert len(shown) == 10
    for line in shown:
        seen = moot(shlex.join(shlex.split(line, comments=True)))
        assert seen.returncode == 0, f"{line}: {seen.stderr}"


@pytest.mark.parametrize(("readme", "lang"), READMES.items())
def test_every_question_shown_is_answered(readme, moot):
    (shown,) = [block.splitlines() for block in blocks(readme, "sh") if block.startswith("moot ask")]
    thread = ""
    for line in shown:
        typed = shlex.join(shlex.split(line, comments=True))
        seen = moot(typed.replace("ID", thread))
        assert seen.returncode == 0, f"{line}: {seen.stdout}{seen.stderr}"
        thread = (re.findall(r"--thread ([0-9a-f-]{36})", seen.stdout) or [thread])[-1]
    assert seen.stdout.count("900001.DEMO") == 2, "of both conversations"


@pytest.mark.parametrize(("readme", "lang"), READMES.items())
def test_every_session_command_shown_works(readme, moot):
    (shown,) = [block.splitlines() for block in blocks(readme, "sh") if block.startswith("moot sessions")]
    question = "moot research 900001.DEMO --experts technical_analyst,macro_intelligence --json"
    judged = json.loads(moot(question).stdout)["session_id"]
    nobody_in_time = moot(question, **TOO_LATE).stdout
    failed = json.loads(nobody_in_time)["details"]["session_id"]
    for line in shown:
        typed = shlex.join(shlex.split(line, comments=True))
        seen = moot(typed.replace("ID", failed if "retry" in typed else judged))
        assert seen.returncode == 0, f"{line}: {seen.stdout}{seen.stderr}"
        assert seen.stdout or "report.html" in seen.stderr


@pytest.mark.parametrize(("readme", "lang"), READMES.items())
def test_every_batch_command_shown_works(readme, home, moot):
    (shown,) = [block.splitlines() for block in blocks(readme, "sh") if block.startswith("moot batch")]
    for line in shown:
        seen = moot(line, MOOT_WORKER="on")
        assert seen.returncode == 0, f"{line}: {seen.stdout}{seen.stderr}"
        assert seen.stdout
    assert (home / "batch.csv").read_text("utf-8-sig").startswith("rank,symbol,")


@pytest.mark.parametrize(("readme", "lang"), READMES.items())
def test_every_contest_shown_moves_the_verdict_it_shows(readme, moot):
    (shown,) = [block.splitlines() for block in blocks(readme, "sh") if block.startswith("moot contest")]
    judged = json.loads(moot(f"{first_question(readme)} --json").stdout)["session_id"]
    for line in shown:
        seen = moot(shlex.join(shlex.split(line, comments=True)).replace("last", judged))
        assert seen.returncode == 0, f"{line}: {seen.stdout}{seen.stderr}"
        named = re.findall(r"[a-z]+\.[a-z]+", line)
        assert [claim for claim in named if claim not in seen.stdout] == []


@pytest.fixture(scope="module")
def tushare_rows():
    tables = asyncio.run(tushare_tables(SystemClock(), ["600519.SH", "000001.SZ"], date(2023, 1, 1)))
    tables["stock_basic"][0]["name"] = "贵州茅台"
    return tables


@pytest.mark.parametrize(("readme", "lang"), READMES.items())
def test_every_data_command_shown_works(readme, home, tushare_rows, moot):
    (shown,) = [block.splitlines() for block in blocks(readme, "sh") if block.startswith("moot data")]
    bars = "ts_code,trade_date,open,high,low,close,pre_close,volume,amount,adj_factor\n"
    (home / "my_bars.csv").write_text(bars + "600009.SH,2026-06-01,10,10.5,9.5,10,10,1000,10000,1.0\n")
    with TushareServer(tushare_rows) as server:
        source = {"MOOT_TUSHARE_TOKEN": TOKEN, "MOOT_TUSHARE_URL": server.url}
        for line in shown:
            seen = moot(line, **source)
            assert seen.returncode == 0, f"{line}: {seen.stdout}{seen.stderr}"
            assert seen.stdout


@pytest.mark.parametrize(("readme", "lang"), READMES.items())
async def test_every_model_command_shown_works(readme, llm_server, moot):
    llm_server.default = careful
    (shown,) = [block.splitlines() for block in blocks(readme, "sh") if block.startswith("moot llm")]
    for line in shown:
        here = line.replace("https://api.deepseek.com/v1", llm_server.url)
        seen = await asyncio.to_thread(moot, here, LLM_KEY="sk-readme-canary-1")
        assert seen.returncode == 0, f"{line}: {seen.stdout}{seen.stderr}"
        assert seen.stdout
        assert "readme-canary" not in seen.stdout + seen.stderr


@pytest.mark.parametrize(("readme", "lang"), READMES.items())
def test_the_transcript_is_a_real_one(readme, moot):
    transcript, _ = blocks(readme, "console")
    command, *shown = transcript.splitlines()
    printed = moot(command.removeprefix("$ ")).stdout
    stable = [line for line in shown if line.startswith(("┃", "│", "╭", "╰")) and "[…]" not in line]
    assert len(stable) > 20
    for line in stable:
        assert line in printed


@pytest.mark.parametrize(("readme", "lang"), READMES.items())
def test_the_rules_shown_do_what_is_shown(readme, home, moot):
    """The file is checked, tried and put in force; the sentence is that of a session it changed."""
    (rules,) = [block for block in blocks(readme, "yaml") if block.startswith("rules:")]
    (home / "fund.yaml").write_text(rules, encoding="utf-8")
    (shown,) = [block.splitlines() for block in blocks(readme, "sh") if block.startswith("moot rules")]
    for line in shown:
        seen = moot(shlex.join(shlex.split(line, comments=True)))
        assert seen.returncode == 0, f"{line}: {seen.stdout}{seen.stderr}"
    _, transcript = blocks(readme, "console")
    command, *told = [line for line in transcript.splitlines() if line]
    session = json.loads(moot(f"{first_question(readme)} --json").stdout)["session_id"]
    typed = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|ID", session, command.removeprefix("$ "))
    printed = " ".join(moot(typed).stdout.split())
    sentences = [line for line in told if "→" in line]
    assert sentences
    for line in sentences:
        assert re.split("[(（]", line.split(None, 2)[-1])[0].strip() in printed


@pytest.mark.parametrize(("readme", "lang"), READMES.items())
def test_the_python_example_runs(readme, lang, home, forge):
    example, _ = blocks(readme, "python")
    seen = forge.run("-c", example, home=home, LANG=lang)
    assert re.fullmatch(r"judged (BUY|SELL|HOLD)\n", seen.stdout), seen.stderr


@pytest.mark.parametrize(("readme", "lang"), READMES.items())
async def test_the_python_example_for_a_desk_elsewhere_runs(readme, lang, home, forge):
    _, example = blocks(readme, "python")
    app = create_app(Moot(Settings(home=home / "desk", log_level="error", worker=True)))
    async with serving(app) as url:
        app.state.open_to_loopback = False
        key = await new_key(app, "read", "research")
        here = example.replace("https://desk.example", url).replace("moot_…", key)
        seen = await asyncio.to_thread(forge.run, "-c", here, home=home, LANG=lang)
    first, *_, last = seen.stdout.splitlines()
    assert first.startswith("1 session"), seen.stderr
    assert " done " in last


@pytest.mark.parametrize("readme", READMES)
async def test_the_requests_shown_are_answered(readme, home, clock):
    (shown,) = [block for block in blocks(readme, "sh") if block.startswith("curl")]
    app = create_app(Moot(Settings(home=home, log_level="error"), clock=clock))
    transport = httpx.ASGITransport(app=app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport) as client:
        for curl in re.split(r"^(?=curl )", shown, flags=re.M)[1:]:
            words = shlex.split(curl)
            url = next(word for word in words if word.startswith("http"))
            answer = await client.post(url, json=json.loads(words[words.index("-d") + 1]))
            assert (answer.status_code, answer.json()["overall_status"]) == (200, "completed")


@pytest.mark.parametrize("readme", READMES)
def test_the_two_commands_come_first(readme):
    assert blocks(readme, "sh")[0] == "make demo\nmake test\n"

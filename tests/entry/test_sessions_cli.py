"""`moot sessions list` and `show`, as a user runs them."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest
from rich.cells import cell_len

from tests.entry.inside import Run
from tests.entry.test_cli import TOO_LATE
from tests.fakes.clock import PATIENCE

NOBODY = "7d3c8a52-0c3e-4f0e-9d0a-5b1f6a1c2e3d"


async def researched(moot: Run, symbol: str, *more: str) -> dict:
    answer = await moot("research", symbol, "--json", *more)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def fits(text: str, width: int = 100) -> bool:
    return max(map(cell_len, text.splitlines())) <= width


@pytest.mark.accepts("A2-28")
async def test_sessions_are_listed_newest_first_and_filtered(moot):
    first = await researched(moot, "900001.DEMO")
    second = await researched(moot, "900002.DEMO", "--skip-debate")
    action = first["verdict"]["action"]

    seen = await moot("sessions", "list")
    assert (seen.returncode, seen.stderr) == (0, "")
    head, newest, oldest, count = seen.stdout.splitlines()
    assert head.split() == ["Created", "(UTC)", "Symbol", "State", "Verdict", "Time", "Id"]
    assert newest.endswith(second["session_id"])
    assert "900002.DEMO  completed  skipped" in newest
    assert oldest.endswith(first["session_id"])
    assert f"900001.DEMO  completed  {action}" in oldest
    assert count == "Page 1 of 1; sessions: 2."
    assert fits(seen.stdout)

    chinese = await moot("sessions", "list", LANG="zh_CN.UTF-8")
    assert "全部完成" in chinese.stdout
    assert "第 1 页，共 1 页；会话共 2 个。" in chinese.stdout
    assert fits(chinese.stdout)

    by_action = await moot("sessions", "list", "--action", action.lower(), "--json")
    assert [item["id"] for item in json.loads(by_action.stdout)["items"]] == [first["session_id"]]
    by_symbol = await moot("sessions", "list", "--symbol", "900002.demo", "--status", "completed", "--json")
    assert [item["id"] for item in json.loads(by_symbol.stdout)["items"]] == [second["session_id"]]
    none = await moot("sessions", "list", "--until", "2020-01-01")
    assert none.stdout == "No session matches.\n"
    beyond = await moot("sessions", "list", "--page", "2")
    assert beyond.stdout == "Page 2 of 1; sessions: 2.\n"


async def test_an_id_is_whole_in_a_narrow_terminal(moot):
    session = (await researched(moot, "900001.DEMO", "--skip-debate"))["session_id"]
    assert session in (await moot("sessions", "list", COLUMNS="80")).stdout


@pytest.mark.accepts("A2-29")
async def test_a_session_is_shown_with_its_nodes_verdict_and_usage(moot):
    answer = await researched(moot, "900001.DEMO")
    seen = await moot("sessions", "show", answer["session_id"])
    assert (seen.returncode, seen.stderr) == (0, "")
    assert seen.stdout.startswith("900001.DEMO · as of ")
    for name in ("Technical analyst", "Financial auditor", "Catalyst detective", "Debate", "Judge"):
        assert f"\n{name} " in seen.stdout
    verdict = answer["verdict"]
    assert f"{verdict['action']} · new position {verdict['position_percent']:.0%}" in seen.stdout
    assert "Model calls: none. Cost: 0." in seen.stdout
    assert fits(seen.stdout)
    chinese = await moot("sessions", "show", answer["session_id"], LANG="zh_CN.UTF-8")
    assert "技术分析师  完成" in chinese.stdout
    assert fits(chinese.stdout)

    brief = (await moot("sessions", "report", answer["session_id"], "--style", "brief")).stdout
    assert brief.startswith("# Research report: Mirage Hill Distillers (900001.DEMO)")
    full = (await moot("sessions", "report", answer["session_id"])).stdout
    assert full.startswith(brief)
    assert "## On the record" in full
    assert "<svg" in (await moot("report", answer["session_id"], "--format", "html")).stdout

    as_json = json.loads((await moot("sessions", "show", answer["session_id"], "--json")).stdout)
    assert UUID(as_json["id"]) == UUID(answer["session_id"])
    assert len(as_json["nodes"]) == 7


@pytest.mark.accepts("A2-40")
async def test_a_failed_session_and_one_that_runs_are_shown_too(moot, home):
    failed = await moot("research", "900001.DEMO", "--experts", "macro_intelligence", **TOO_LATE)
    assert failed.returncode == 1
    (session,) = json.loads((await moot("sessions", "list", "--status", "failed", "--json")).stdout)["items"]
    seen = await moot("sessions", "show", session["id"])
    assert "NODE_TIMEOUT: Macro intelligence gave no answer within 0.0001 s." in " ".join(seen.stdout.split())
    assert "No verdict (failed). No expert succeeded" in seen.stdout
    assert fits(seen.stdout)

    with sqlite3.connect(home / "moot.db") as db:
        db.execute("UPDATE research_sessions SET status = 'running', audit_gaps = 3")
    db.close()
    running = await moot("sessions", "show", session["id"])
    assert "Still running: there is no verdict yet." in running.stdout
    assert "Warning: 3 records of this session could not be stored." in running.stdout
    assert running.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (
            ("list", "--status", "done"),
            2,
            "Error: status: 'done' is not known. Allowed: queued, running, waiting, completed,",
        ),
        (
            ("list", "--action", "up"),
            2,
            "Error: verdict_action: 'UP' is not known. Allowed: BUY, SELL, HOLD.",
        ),
        (("list", "--since", "soon"), 2, "Error: --since: soon is not a date; write YYYY-MM-DD."),
        (("list", "--page", "0"), 2, "Error: page: 0 is out of range. Allowed: >= 1."),
        (("show", "x"), 2, "Error: session_id: 'x' is not an id;"),
        (("show", NOBODY), 1, f"Error: There is no session {NOBODY} in this workspace."),
    ],
)
async def test_what_cannot_be_looked_for_is_said(moot, arguments, code, sentence):
    seen = await moot("sessions", *arguments)
    assert (seen.returncode, seen.stdout) == (code, "")
    assert seen.stderr.startswith(sentence)


def test_a_reader_who_has_seen_enough_is_no_defect(home):
    """As with `moot sessions list | head -1`."""
    script = str(Path(sys.executable).with_name("moot"))
    reading, writing = os.pipe()
    os.close(reading)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MOOT_")}
    seen = subprocess.run(
        [script, "sessions", "list"],
        stdout=writing,
        stderr=subprocess.PIPE,
        env={**kept, "MOOT_HOME": str(home), "LANG": "en_US.UTF-8"},
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    os.close(writing)
    assert (seen.returncode, seen.stderr) == (1, "")

"""`moot sessions replay`, as a user runs it."""

import json
import re
import sqlite3
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.entry.inside import Run
from tests.fakes.careful_model import careful
from tests.fakes.llm_server import running_llm_server

NOBODY = "7d3c8a52-0c3e-4f0e-9d0a-5b1f6a1c2e3d"


async def researched(moot: Run, *more: str, **environment: str) -> str:
    answer = await moot("research", "900001.DEMO", "--json", *more, **environment)
    assert answer.returncode == 0, answer.stderr
    return str(json.loads(answer.stdout)["session_id"])


def tamper(home: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(home / "moot.db") as db:
        db.execute(statement, values)
    db.close()


def fits(text: str, width: int = 100) -> bool:
    return max(map(cell_len, text.splitlines())) <= width


async def test_an_equal_replay_says_so_and_ends_well(moot):
    session = await researched(moot)
    seen = await moot("sessions", "replay", session)
    assert (seen.returncode, seen.stderr) == (0, "")
    lines = [line.rstrip() for line in seen.stdout.splitlines()]
    assert lines[0].startswith("900001.DEMO · as of ")
    assert lines[0].endswith("replayed from the record, network off")
    assert "Technical analyst   same" in lines
    assert lines[-1] == "All 7 steps came out as they are on record."
    assert fits(seen.stdout)

    chinese = await moot("sessions", "replay", session, LANG="zh_CN.UTF-8")
    assert "全部 7 个步骤都与记录一致。" in chinese.stdout
    assert fits(chinese.stdout)

    as_json = await moot("sessions", "replay", session, "--json")
    replay = json.loads(as_json.stdout)
    assert (as_json.returncode, replay["equal"], replay["session_id"]) == (0, True, session)
    assert {node["outcome"] for node in replay["nodes"]} == {"same"}


async def test_a_difference_is_shown_with_both_values_and_ends_badly(moot, home):
    session = await researched(moot)
    tamper(
        home,
        "UPDATE node_executions SET result_data = json_set(result_data, '$.confidence', 0.125)"
        " WHERE node_type = 'judge'",
    )
    seen = await moot("sessions", "replay", session)
    assert (seen.returncode, seen.stderr) == (1, "")
    assert "Judge               differs  confidence: 0.125 → " in seen.stdout
    assert seen.stdout.rstrip().endswith("Not as on record: 1 of 7 steps.")
    assert fits(seen.stdout)
    as_json = await moot("sessions", "replay", session, "--json")
    assert (as_json.returncode, json.loads(as_json.stdout)["equal"]) == (1, False)

    tamper(home, "UPDATE node_executions SET narrative_report = 'x' WHERE node_type = 'debate'")
    both = await moot("sessions", "replay", session, LANG="zh_CN.UTF-8")
    assert 'narrative_report: "x" → ' in both.stdout
    assert "与记录不一致：7 个步骤中有 2 个。" in both.stdout
    assert fits(both.stdout)


async def test_a_session_that_ended_otherwise_is_shown(moot, home):
    session = await researched(moot, "--skip-debate")
    tamper(home, "UPDATE research_sessions SET status = 'partial'")
    seen = await moot("sessions", "replay", session)
    assert seen.returncode == 1
    assert 'Session             differs  status: "partial" → "completed"' in seen.stdout
    assert "but the session does not end as it did." in seen.stdout


async def test_a_changed_prompt_is_shown_line_by_line(moot):
    async with running_llm_server() as server:
        server.default = careful
        model = {"MOOT_LLM_BASE_URL": server.url, "MOOT_LLM_MODEL": "careful-1"}
        session = await researched(moot, "--experts", "technical_analyst", "--skip-debate", **model)
    equal = await moot("sessions", "replay", session)
    assert equal.returncode == 0, equal.stdout
    seen = await moot("sessions", "replay", session, MOOT_DEMO_SEED="9")
    assert seen.returncode == 1
    assert 'status: "success" → "failed"' in seen.stdout
    assert "The prompt is not the recorded one (- then, + now):" in " ".join(seen.stdout.split())
    assert re.search(r"(?m)^ *-technical\.", seen.stdout)
    assert fits(seen.stdout[seen.stdout.index("900001.DEMO · ") :]), "the log before it is no part of it"


@pytest.mark.parametrize(
    ("session_id", "code", "sentence"),
    [
        ("x", 2, "Error: session_id: 'x' is not an id;"),
        (NOBODY, 1, f"Error: There is no session {NOBODY} in this workspace."),
    ],
)
async def test_what_is_not_there_is_said(moot, session_id, code, sentence):
    seen = await moot("sessions", "replay", session_id)
    assert (seen.returncode, seen.stdout) == (code, "")
    assert seen.stderr.startswith(sentence)


async def test_a_session_that_runs_is_said_to(moot, home):
    session = await researched(moot, "--skip-debate")
    tamper(home, "UPDATE research_sessions SET status = 'running'")
    seen = await moot("sessions", "replay", session)
    assert (seen.returncode, seen.stdout) == (1, "")
    assert seen.stderr == f"Error: Session {session} is still running; this can be done once it has ended.\n"
    as_json = await moot("sessions", "replay", session, "--json")
    assert (as_json.returncode, json.loads(as_json.stdout)["code"]) == (1, "SESSION_RUNNING")

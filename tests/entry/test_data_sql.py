"""`moot data sql`, as a user runs it."""

import csv
import json
import sqlite3
from pathlib import Path

import pytest

from moot.cli.data import show_rows
from moot.modules.market_data.application.sql import TABLES, QueryResult
from moot.shared.domain.clock import SystemClock
from tests.entry.inside import Run, inside
from tests.entry.test_rules_cli import written

NAMES = "SELECT symbol, name, list_date FROM companies ORDER BY symbol LIMIT 2"
ASKS = """
rules:
  - id: my.ask
    name: Ask about queries
    category: tool
    condition: payload.tool == 'database'
    action: reject
    requires_human: true
    decision_types: [tool_call]
    examples:
      - {violates: true, payload: {tool: database}}
      - {violates: false, payload: {tool: web_search}}
"""


@pytest.fixture
def moot(home: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(home)
    return inside(home, monkeypatch)


async def test_rows_are_shown_as_a_table_and_the_decision_is_kept(moot, home):
    seen = await moot("data", "sql", NAMES)
    assert (seen.returncode, seen.stderr) == (0, "")
    lines = [line.split() for line in seen.stdout.splitlines()]
    assert lines == [
        ["symbol", "name", "list_date"],
        ["900001.DEMO", "幻山酒业", "2004-06-18"],
        ["900002.DEMO", "雾港银行", "2007-09-25"],
    ]
    with sqlite3.connect(home / "moot.db") as db:
        kept = db.execute("SELECT decision_type, requester, status FROM decisions").fetchall()
    assert kept == [("tool_call", "desk", "approved")]


async def test_json_is_what_rest_gives(moot):
    seen = await moot("data", "sql", NAMES, "--json", "--as-of", "2024-07-01")
    body = json.loads(seen.stdout)
    assert body["rows"][0] == ["900001.DEMO", "幻山酒业", "2004-06-18"]
    assert (body["as_of"], body["sql"]) == ("2024-07-01T15:59:59.999999Z", NAMES)


async def test_csv_has_a_header_and_nothing_but_rows(moot):
    seen = await moot("data", "sql", "SELECT * FROM companies ORDER BY symbol LIMIT 2", "--csv")
    header, *rows = csv.reader(seen.stdout.splitlines())
    assert (header, len(rows)) == (TABLES["companies"], 2)
    assert "SELECT * on a table" in seen.stderr
    assert "What ran: SELECT companies.symbol," in seen.stderr


async def test_what_the_rules_changed_is_said_below_the_rows(moot):
    seen = await moot("data", "sql", "SELECT * FROM macro WHERE 1 = 2")
    assert seen.stdout.startswith("No rows.\nNote: args.sql → SELECT macro.event_time")
    assert "(tools.sql_guard@1: SELECT * on a table hands out every column." in seen.stdout
    assert "What ran: SELECT macro.event_time, macro.available_at," in seen.stdout


@pytest.mark.parametrize(
    ("language", "sentence", "rule"),
    [
        ("en_US.UTF-8", "Error: The rules do not allow this.", "SQL that only reads (tools.sql_guard@1"),
        ("zh_CN.UTF-8", "错误：规则不允许：拒绝：", "只读 SQL（tools.sql_guard@1"),
    ],
)
async def test_a_refusal_names_the_rule_and_what_to_do(moot, language, sentence, rule):
    seen = await moot("data", "sql", "DROP TABLE bars", LANG=language)
    assert (seen.returncode, seen.stdout) == (1, "")
    assert seen.stderr.startswith(sentence)
    assert rule in seen.stderr
    told = await moot("data", "sql", "DROP TABLE bars", "--json", LANG=language)
    body = json.loads(told.stdout)
    assert (told.returncode, body["code"]) == (1, "DECISION_REJECTED")
    assert body["details"]["suggestions"][0] in seen.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("SELECT nothing FROM bars",), 'column "nothing" not found'),
        ((" ",), "sql: must not be blank."),
        ((NAMES, "--as-of", "soon"), "as_of: 'soon' is not a date"),
        ((NAMES, "--as-of", "2999-01-01"), "as_of: '2999-01-01' lies in the future."),
        ((NAMES, "--json", "--csv"), "Choose either --json or --csv."),
    ],
)
async def test_what_cannot_be_asked_is_a_sentence(moot, arguments, sentence):
    seen = await moot("data", "sql", *arguments)
    assert seen.returncode == 2
    assert sentence in seen.stdout + seen.stderr


async def test_what_needs_a_person_says_which_escalation_and_goes_on_once_it_is_approved(moot, home):
    await moot("rules", "activate", "--yes", written(home, ASKS))
    asked = await moot("data", "sql", NAMES, "--json")
    waiting = json.loads(asked.stdout)["details"]["escalation_id"]
    again = await moot("data", "sql", NAMES)
    assert (asked.returncode, again.returncode, again.stdout) == (1, 1, "")
    assert f"Waiting: escalation {waiting}." in again.stderr
    await moot("escalations", "approve", waiting, "--reason", "looked at it")
    done = await moot("data", "sql", NAMES)
    assert (done.returncode, "900001.DEMO" in done.stdout) == (0, True)
    assert "Note: approved by a person: Ask about queries" in done.stdout


def test_rows_that_were_cut_are_said_to_be(capsys, monkeypatch):
    monkeypatch.setenv("MOOT_LOCALE", "en-US")
    facts = {"sql": "SELECT 1", "as_of": SystemClock().now(), "took_ms": 1.0}
    show_rows(
        QueryResult(columns=("[red]n[/]", "t"), rows=((1, None), (20, "[b]x")), truncated=True, **facts)
    )
    assert capsys.readouterr().out.splitlines() == [
        "[red]n[/]  t   ",
        "        1  —   ",
        "       20  [b]x",
        "Only the first 2 rows are shown; there are more. Add a LIMIT, or aggregate.",
    ]


async def test_the_help_names_every_table(moot):
    seen = await moot("data", "sql", "--help", COLUMNS="300")
    assert [name for name in TABLES if name not in seen.stdout] == []

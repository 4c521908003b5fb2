"""What hands have learnt elsewhere: names, loose codes, beginnings of ids, pipes, several at once, their language."""

import asyncio
import importlib.util
import json
import re
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moot.cli import app
from tests.entry.inside import Run
from tests.entry.test_cli import environment
from tests.fakes.clock import PATIENCE

QUICK = ("--experts", "macro_intelligence", "--skip-debate")


async def researched(moot: Run, symbol: str = "900001.DEMO") -> str:
    session: str = json.loads((await moot("research", symbol, *QUICK, "--json")).stdout)["session_id"]
    return session


@pytest.mark.parametrize(
    ("named", "chinese"),
    [
        ({"LANG": ""}, False),
        ({"LANG": "C"}, False),
        ({"LANG": "de_DE.UTF-8"}, False),
        ({"LANG": "ja_JP.UTF-8"}, False),
        ({"LANG": "zh_TW.UTF-8"}, True),
        ({"LANG": "zh"}, True),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "de_DE.UTF-8"}, False),
        ({"LANG": "de_DE.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, True),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8", "LC_ALL": "C.UTF-8"}, False),
        ({"LANG": "C", "MOOT_LOCALE": "zh-CN"}, True),
        ({"LC_ALL": "zh_CN.UTF-8", "MOOT_LOCALE": "en-US"}, False),
    ],
)
async def test_a_terminal_is_answered_in_chinese_or_else_in_english(moot, named, chinese):
    seen = await moot("research", "900001.DEMO", "--experts", "macro_intelligence", "--skip-debate", **named)
    assert ("宏观情报员 · 完成" in seen.stderr) == chinese
    assert ("按请求跳过了辩论。" in seen.stdout) == chinese
    assert ("合成数据" in seen.stdout) == chinese
    assert ("没有会话" in (await moot("sessions", "show", "abc", **named)).stderr) == chinese


class TestIds:
    async def test_the_beginning_of_an_id_or_last_will_do(self, moot):
        first, second = await researched(moot), await researched(moot, "900002.DEMO")
        for typed, meant in (
            (first, first),
            (first[:12], first),
            (first[:12].upper(), first),
            (first.replace("-", ""), first),
            ("last", second),
        ):
            shown = json.loads((await moot("sessions", "show", typed, "--json")).stdout)
            assert shown["id"] == meant, typed
        assert (await moot("sessions", "verify", "last")).returncode == 0
        assert f"Session {second} has ended" in (await moot("sessions", "cancel", second[:12])).stderr

    async def test_a_beginning_of_several_names_them(self, moot, home):
        ids = [await researched(moot) for _ in range(17)]  # two of seventeen begin with the same digit
        digit = next(a[0] for a in ids if sum(b.startswith(a[0]) for b in ids) > 1)
        seen = await moot("sessions", "show", digit)
        assert seen.returncode == 2
        assert any(one in seen.stderr for one in ids if one.startswith(digit))

    async def test_a_miss_names_what_is_near(self, moot):
        session = await researched(moot)
        missed = session[:-1] + ("0" if session[-1] != "0" else "1")
        for lang, near in (("en_US", f"Did you mean {session}?"), ("zh_CN", f"是否想写 {session}？")):
            seen = await moot("sessions", "show", missed, LANG=lang)
            assert (seen.returncode, near in seen.stderr) == (1, True)

    async def test_there_may_be_no_last_one_yet(self, moot):
        seen = await moot("sessions", "show", "last")
        assert (seen.returncode, seen.stderr) == (1, "Error: There is no session last in this workspace.\n")


class TestSymbols:
    @pytest.mark.parametrize(
        "typed",
        [
            "900001",
            "900001.demo",
            "demo900001",
            "９００００１",
            "幻山酒业",
            "Mirage Hill Distillers",
            "mirage",
            "hsjy",
        ],
    )
    async def test_are_understood_as_people_write_them(self, moot, typed):
        seen = await moot("research", typed, *QUICK, "--json")
        assert json.loads(seen.stdout).get("symbol") == "900001.DEMO", seen.stdout

    async def test_also_where_sessions_are_looked_for(self, moot):
        session = await researched(moot)
        seen = await moot("sessions", "list", "--symbol", "幻山酒业")
        assert session in seen.stdout

    async def test_a_miss_names_the_nearest(self, moot):
        for typed, near in (
            ("Mirage Hil Distilers", "900001.DEMO"),
            ("幻山酒夜", "900001.DEMO"),
            ("900021.DEMO", "9000"),
        ):
            seen = await moot("research", typed)
            assert seen.returncode == 2
            assert re.search(rf"Did you mean .*{near}", seen.stderr), seen.stderr

    async def test_a_text_of_any_length_is_cut_in_the_answer(self, moot):
        seen = await moot("research", "x" * 5000)
        assert (seen.returncode, len(seen.stderr) < 500) == (2, True)

    async def test_so_does_a_rule(self, moot):
        seen = await moot("rules", "show", "risk.position_cup")
        assert (seen.returncode, "Did you mean risk.position_cap" in seen.stderr) == (1, True)

    async def test_so_does_a_model(self, moot):
        here = {"MOOT_LLM_BASE_URL": "http://127.0.0.1:9/v1", "MOOT_LLM_MODEL": "nobody"}
        seen = await moot("llm", "remove", "defualt", "--yes", **here)
        assert (seen.returncode, "Did you mean default?" in seen.stderr) == (1, True), seen.stderr

    async def test_so_does_a_misspelt_expert(self, moot):
        seen = await moot("research", "900001.DEMO", "--experts", "macro_inteligence")
        assert "Did you mean macro_intelligence?" in seen.stderr
        chinese = await moot("research", "900001.DEMO", "--experts", "macro_inteligence", LANG="zh_CN")
        assert "是否想写：macro_intelligence？" in chinese.stderr


class TestSeveralAtOnce:
    async def test_each_has_its_session_and_a_table_tells_of_all(self, moot, home):
        seen = await moot("research", "900001", "幻山酒业", "900002.DEMO", "900003.DEMO", "--skip-debate")
        assert seen.returncode == 0, seen.stderr
        rows = [line.split() for line in seen.stdout.splitlines() if ".DEMO" in line]
        assert [row[0] for row in rows] == ["900001.DEMO", "900002.DEMO", "900003.DEMO"], "each once"
        for row in rows:
            shown = await moot("sessions", "show", row[-1])
            assert row[0] in shown.stdout, "the short id is enough to look it up by"
        assert len(list((home / "reports").glob("*.md"))) == 3
        assert "900002.DEMO · Macro intelligence · done" in seen.stderr

    async def test_one_that_fails_is_told_and_does_not_stop_the_others(self, moot):
        asked = ("research", "900001.DEMO", "900007.DEMO", *QUICK)  # the second was delisted
        seen = await moot(*asked)
        assert seen.returncode == 1
        assert re.search(r"900007.DEMO +symbol: ", seen.stdout)
        assert "2022-07-15" in seen.stdout
        as_json = await moot(*asked, "--json")
        fine, gone = json.loads(as_json.stdout)
        assert (as_json.returncode, as_json.stderr) == (1, "")
        assert (fine["symbol"], fine["overall_status"]) == ("900001.DEMO", "completed")
        assert (gone["symbol"], gone["code"]) == ("900007.DEMO", "SYMBOL_NOT_LISTED")

    async def test_what_is_not_understood_stops_all_before_the_first(self, moot):
        seen = await moot("research", "900001.DEMO", "nobody at all")
        assert (seen.returncode, "nobody at all" in seen.stderr) == (2, True)
        assert (await moot("sessions", "list")).stdout == "No session matches.\n"
        wrong = await moot("research", "900001", "900002", "--experts", "wizard")
        assert (wrong.returncode, "'wizard' is not known" in wrong.stderr) == (2, True)

    async def test_they_can_be_piped_in(self, moot):
        seen = await moot("research", "-", *QUICK, "--json", typed="900001.DEMO\n\n 雾港银行\n900001\n")
        assert [body["symbol"] for body in json.loads(seen.stdout)] == ["900001.DEMO", "900002.DEMO"]
        nothing = await moot("research", "-", typed="\n")
        assert (nothing.returncode, "at least one symbol" in nothing.stderr) == (2, True)


class TestHelp:
    @pytest.mark.parametrize("lang", ["zh_CN.UTF-8", "en_US.UTF-8"])
    def test_every_command_explains_itself_in_the_readers_language(self, home, lang):
        """In a process of its own: help is worded when the commands are made."""
        code = (
            "import sys, typer\n"
            "from typer.testing import CliRunner\n"
            "from moot.cli import app, COMMANDS, Late\n"
            "def walk(command, *path):\n"
            "    seen = CliRunner().invoke(app, [*path, '-h'])\n"
            "    assert seen.exit_code == 0, (path, seen.output)\n"
            "    print('@@', *path); print(seen.output)\n"
            "    command = command.load() if isinstance(command, Late) else command\n"
            "    for name, below in getattr(command, 'commands', {}).items(): walk(below, *path, name)\n"
            "walk(typer.main.get_command(app))\n"
        )
        seen = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=environment(home, LANG=lang, COLUMNS="80"),
            timeout=PATIENCE,
            check=True,
        ).stdout
        assert seen.count("@@") > 40
        wide = re.compile("[\u4e00-\u9fff]")
        for page in seen.split("@@")[1:]:
            text = page.split("\n", 1)[1].replace("茅台", "")  # an example
            assert bool(wide.search(text)) == lang.startswith("zh"), page
            if lang.startswith("zh"):
                assert "Show this" not in text
                assert "Options" not in text
            assert "<bool>" not in text
            assert "list[" not in text
            assert "… │\n" not in text, "nothing is cut"

    @pytest.mark.parametrize(
        ("typed", "english", "chinese"),
        [
            (
                ("resarch",),
                "No such command 'resarch'. Did you mean 'research'?",
                "没有命令 resarch。是否想用 research？",
            ),
            (("sessions", "lst"), "Did you mean 'list'?", "没有命令 lst。是否想用 list？"),
            (("sessions", "show", "--jsn"), "No such option: --jsn", "没有选项 --jsn。是否想用 --json？"),
            (("sessions", "show"), "Missing argument 'ID'.", "缺少 ID。"),
            (("sessions", "list", "x"), "unexpected extra argument", "命令写法有误"),
            (("sessions", "list", "--page", "x"), "Invalid value for '--page'", "--page："),
        ],
    )
    async def test_a_line_that_cannot_be_read_is_told_in_it_too(self, moot, typed, english, chinese):
        for lang, sentence in (("en_US", english), ("zh_CN", chinese)):
            seen = await moot(*typed, LANG=lang)
            assert (seen.returncode, seen.stdout) == (2, "")
            assert sentence in seen.stderr


def test_python_can_run_the_package(home):
    seen = subprocess.run(
        [sys.executable, "-m", "moot", "-h"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment(home),
        timeout=PATIENCE,
        check=True,
    )
    assert "Usage: moot [OPTIONS] COMMAND" in seen.stdout


class TestCompletion:
    def complete(self, home: Path, line: str) -> list[str]:
        asked = {
            "_MOOT_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split(" ")) - 1),
        }
        seen = CliRunner().invoke(app, [], prog_name="moot", env={**environment(home), **asked})
        return seen.stdout.split()

    async def test_knows_commands_experts_and_sessions(self, moot, home, monkeypatch):
        monkeypatch.setattr("moot.cli.sessions.configure_logging", lambda level, file: None)
        session = await researched(moot)
        complete = partial(asyncio.to_thread, self.complete, home)
        assert await complete("moot res") == ["research"]
        assert await complete("moot sessions ex") == ["export"]
        assert await complete("moot research 900001 --experts macro_intelligence,val") == [
            "macro_intelligence,valuation_modeler"
        ]
        assert await complete(f"moot sessions show {session[:3]}") == [session]

    async def test_can_be_installed(self, moot):
        seen = await moot("--show-completion", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="")
        assert "install-completion" in (await moot("-h")).stdout
        assert seen.returncode in (0, 1), "a shell it knows, or not"


async def test_the_database_goes_back_only_when_somebody_says_so(moot, monkeypatch):
    session = await researched(moot)
    unsure = await moot("db", "downgrade", "base")
    assert (unsure.returncode, "--yes" in unsure.stderr) == (2, True)
    assert session in (await moot("sessions", "list")).stdout
    monkeypatch.setattr("moot.cli.options.somebody_is_there", lambda: True)
    no = await moot("db", "downgrade", "base", typed="n\n")
    assert (no.returncode, "All sessions" in no.stdout, "Nothing was changed." in no.stdout) == (
        0,
        True,
        True,
    )
    chinese = await moot("db", "downgrade", "base", typed="n\n", LANG="zh_CN")
    assert "全部丢失" in chinese.stdout
    unknown = await moot("db", "downgrade", "9999", "--yes")
    assert (unknown.returncode, "There is no revision 9999" in unknown.stderr) == (2, True)
    assert session in (await moot("sessions", "list")).stdout
    assert (await moot("db", "downgrade", "base", "--yes")).stdout == "The database is at revision base.\n"
    assert "revision none" in (await moot("db", "current")).stdout
    assert (await moot("db", "upgrade")).returncode == 0
    assert (await moot("sessions", "list")).stdout == "No session matches.\n"


async def test_a_list_stays_a_list_in_eighty_columns(moot):
    session = await researched(moot)
    for lang in ("en_US", "zh_CN"):
        seen = await moot("sessions", "list", COLUMNS="80", LANG=lang)
        (row,) = [line for line in seen.stdout.splitlines() if session in line]
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d +900001.DEMO", row), "nothing of it is folded"


async def test_rows_that_an_import_refuses_are_told_in_words(moot, home):
    (home / "bars.csv").write_text(
        "symbol,trade_date,open,high,low,close,pre_close,volume,amount\n"
        "600519.SH,2026-01-05,10,11,9,10.5,10,1000,10200\n"
        "600519.SH,2026-01-06,10,11,9,-3,10.5,1000,10200\n"
        "600519.SH,2026-01-07,,11,9,10,10,1000,10200\n"
    )
    seen = await moot("data", "import", str(home / "bars.csv"))
    told = seen.stdout + seen.stderr
    assert "Refusal(" not in told
    assert "None" not in told
    assert "bars.csv, line 3, 600519.SH 2026-01-06: close is '-3.0'; allowed: a number above 0." in told
    assert "bars.csv, line 4, 600519.SH 2026-01-07: open is missing." in told
    chinese = await moot("data", "import", str(home / "bars.csv"), LANG="zh_CN.UTF-8")
    assert "bars.csv 第 3 行、600519.SH 2026-01-06：close 为“-3.0”，应为大于 0 的数字。" in chinese.stdout


async def test_a_defect_ends_in_a_sentence_without_what_the_program_held(moot, home, monkeypatch):
    def explode(*_arguments: object) -> None:
        secret = "hunter2"  # noqa: F841
        raise RuntimeError("broken")

    monkeypatch.setattr("moot.desk.Moot.__init__", explode)
    seen = await moot("sessions", "list")
    assert seen.returncode == 1
    assert seen.stderr.count("\n") == 1
    assert "hunter2" not in seen.stdout + seen.stderr
    assert app.pretty_exceptions_show_locals is False


SHOWN = re.compile(r"[:：] ?((?:moot|pip) [^,;()（），；。\n]+)")
STATES = {
    "at first": {},
    "without a model that is wanted": {"MOOT_ANALYST": "llm"},
    "without the source that is wanted": {"MOOT_DATA_SOURCES": "akshare"},
    "with a source that nobody knows": {"MOOT_DATA_SOURCES": "nosuchsource"},
}


@pytest.mark.parametrize("lang", ["en_US", "zh_CN"])
@pytest.mark.parametrize("settings", STATES.values(), ids=STATES)
async def test_what_doctor_says_to_run_can_be_run(moot, monkeypatch, lang, settings):
    there = importlib.util.find_spec
    extras = {"akshare", "asyncpg"}  # as on a fresh machine
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *at: None if name in extras else there(name, *at)
    )
    told = (await moot("doctor", LANG=lang, COLUMNS="400", **settings)).stdout
    commands = {line.strip() for line in SHOWN.findall(told)}
    assert any(command.startswith("moot ") for command in commands)
    assert told.count("moot ") == sum("moot " in line for line in SHOWN.findall(told)), "none is hidden"
    for program, name, *arguments in map(shlex.split, commands):
        if program == "pip":
            assert (name, arguments[0] in ("moot[akshare]", "moot[postgres]")) == ("install", True)
            continue
        seen = await moot(name, *arguments, typed="\n" * 9)
        assert seen.returncode == 0, (name, arguments, seen.stderr)

"""`moot rules`, as a user runs it."""

import json
import re
import sqlite3
from pathlib import Path

import pytest

from moot.desk import Moot
from moot.modules.governance.application.coordinator_agent import DecisionRequest
from moot.modules.governance.container import RuleBook
from moot.shared.infrastructure.settings import Settings
from tests.entry.inside import Run, inside

CAP = """
rules:
  - id: my.cap
    name: My cap
    category: behavior
    condition: payload.position_percent > 0.1
    action: suggest
    decision_types: [verdict]
    corrector: {kind: clamp, path: payload.position_percent, at_most: 0.1}
    examples:
      - {violates: true, payload: {position_percent: 0.2}}
      - {violates: false, payload: {position_percent: 0.1}}
"""
DRAFT = """
  - id: my.draft
    name: A draft
    category: tool
    condition: payload.tool == 'rm'
    action: reject
    decision_types: [tool_call]
"""
WRONG = """rules:
  - id: my.inline
    name: Typo
    category: behaviour
    condition: payload.confidence > 0.5
    action: reject
  - {id: my.flow, name: Typo, category: data, condition: 'payload.confidnce > 0.5', action: reject,
     decision_types: [verdict]}
  - id: my.block
    name: Typo
    category: data
    condition: |
      payload.action == 'BUY' &&
        payload.confidnce > 0.5
    action: reject
    decision_types: [verdict]
  - id: my.folded
    name: Typo
    category: data
    condition: >-
      payload.action == 'BUY' &&
      payload.confidnce > 0.5
    action: reject
    decision_types: [verdict]
  - id: my.example
    name: Proves nothing
    category: data
    condition: payload.confidence > 0.5
    action: reject
    decision_types: [verdict]
    examples:
      - {violates: true, payload: {confidence: 0.2}}
"""
VERDICT = {
    "symbol": "900001.DEMO",
    "action": "BUY",
    "position_percent": 0.15,
    "confidence": 0.9,
    "stop_loss": "below 9",
    "take_profit": "12",
    "entry_strategy": "in parts",
    "time_horizon": "months",
    "risk_warnings": [],
    "reasoning": "because",
    "engine": "rubric",
}


@pytest.fixture
def moot(home: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(home)
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    return inside(home, monkeypatch)


def written(home: Path, text: str, name: str = "my.yaml") -> str:
    (home / name).write_text(text, encoding="utf-8")
    return name


async def decided(home: Path, **changes: object) -> None:
    async with Moot(Settings(home=home)) as desk:
        await desk.governance.agent.decide(DecisionRequest("v-1", "verdict", VERDICT | changes, {}, "judge"))


class TestCheck:
    async def test_a_sound_file_passes_without_a_database(self, moot, bare_home):
        seen = await moot("rules", "check", written(bare_home, CAP))
        assert (seen.returncode, seen.stdout) == (0, "my.yaml: 1 rule, nothing to complain about.\n")
        assert not (bare_home / "moot.db").exists()

    async def test_every_complaint_names_file_and_line(self, moot, home):
        seen = await moot("rules", "check", written(home, WRONG, "wrong.yaml"), written(home, CAP))
        assert seen.returncode == 1
        places = re.findall(r"(?m)^(\S+): rule (\S+?)[,:]", seen.stdout)
        assert places == [
            ("wrong.yaml:4", "my.inline"),
            ("wrong.yaml:7", "my.flow"),
            ("wrong.yaml:14", "my.block"),
            ("wrong.yaml:20", "my.folded"),
            ("wrong.yaml:32", "my.example"),
        ]
        assert "did you mean payload.confidence?" in seen.stdout
        assert seen.stdout.endswith("wrong.yaml: 5 errors.\nmy.yaml: 1 rule, nothing to complain about.\n")

    async def test_complaints_are_in_the_readers_language(self, moot, home):
        seen = await moot("rules", "check", written(home, WRONG), LANG="zh_CN.UTF-8")
        told = "规则 my.block、condition：没有字段 payload.confidnce。建议：是否想写 payload.confidence？"
        assert f"my.yaml:14: {told}\n" in seen.stdout

    async def test_drafts_are_named_and_no_error(self, moot, home):
        seen = await moot("rules", "check", written(home, CAP + DRAFT))
        assert seen.returncode == 0
        assert "my.yaml:14: rule my.draft, examples: a draft, and switched off" in seen.stdout
        assert "my.yaml: 2 rules, 1 of them drafts" in seen.stdout

    async def test_what_cannot_be_read_is_said(self, moot, home):
        gone = await moot("rules", "check", "gone.yaml")
        assert (gone.returncode, gone.stderr) == (
            2,
            "Error: gone.yaml cannot be read: No such file or directory\n",
        )
        (home / "binary.yaml").write_bytes(b"\xff\xfe\x00")
        binary = await moot("rules", "check", "binary.yaml", LANG="zh_CN.UTF-8")
        assert (binary.returncode, binary.stderr) == (2, "错误：无法读取 binary.yaml：不是 UTF-8 文本\n")


class TestTest:
    async def test_requests_end_as_expected_or_the_exit_code_is_1(self, moot, home):
        lines = [
            {"decision_type": "verdict", "payload": {"position_percent": 0.3}, "expected": "modified"},
            {"decision_id": "free", "decision_type": "tool_call", "payload": {"tool": "ls", "args": {}}},
        ]
        written(home, "\n".join(map(json.dumps, lines)), "requests.jsonl")
        seen = await moot("rules", "test", written(home, CAP), "requests.jsonl")
        assert (seen.returncode, seen.stderr) == (0, "")
        assert seen.stdout.startswith("Examples: 2, all as they say.\n")
        assert re.search(r"1 +verdict +modified +✓ modified +position 30% → 10%: My cap", seen.stdout)
        assert re.search(r"free +tool_call +approved +— ", seen.stdout)
        assert seen.stdout.endswith("2 requests, 1 with an expectation: all as expected.\n")

        lines[0]["expected"] = "rejected"
        written(home, "\n".join(map(json.dumps, lines)), "requests.jsonl")
        other = await moot("rules", "test", "my.yaml", "requests.jsonl")
        assert (other.returncode, other.stderr) == (1, "1 of 2 requests did not end as expected.\n")
        assert "✗ rejected" in other.stdout

    async def test_why_is_told_in_the_readers_language(self, moot, home):
        sql = {"tool": "database", "args": {"sql": "DROP TABLE bars"}}
        written(home, json.dumps({"decision_type": "tool_call", "payload": sql}), "requests.jsonl")
        asked = ("rules", "test", written(home, CAP), "requests.jsonl", "--profile", "default")
        chinese = await moot(*asked, LANG="zh_CN.UTF-8", COLUMNS="200")
        assert "只读 SQL（tools.sql_guard@1：这里只允许执行单条 SELECT。" in chinese.stdout
        assert "Only a single SELECT may run here." in (await moot(*asked, COLUMNS="200")).stdout

    async def test_a_failing_example_ends_it(self, moot, home):
        seen = await moot("rules", "test", written(home, WRONG))
        assert (seen.returncode, seen.stdout) == (1, "")
        assert (
            "my.yaml:32: rule my.example, examples.0: the example should break the rule, and does not."
            in (seen.stderr)
        )

    async def test_shipped_rules_are_tried_too_when_asked_for(self, moot, home):
        line = {"decision_type": "verdict", "payload": {"position_percent": 0.05}, "expected": "rejected"}
        written(home, json.dumps(line), "requests.jsonl")
        alone = await moot("rules", "test", written(home, CAP), "requests.jsonl")
        beside = await moot("rules", "test", "my.yaml", "requests.jsonl", "--profile", "default")
        assert (alone.returncode, beside.returncode) == (1, 0)


class TestRulesInForce:
    async def test_a_file_is_put_in_force_beside_the_shipped_rules_and_taken_back(self, moot, home):
        shipped = json.loads((await moot("rules", "list", "--json")).stdout)
        assert shipped["ruleset"] == 0
        count = len(shipped["rules"])

        done = await moot("rules", "activate", "--yes", written(home, CAP + DRAFT), "--note", "smaller steps")
        assert (done.returncode, done.stderr) == (
            0,
            "Drafts, switched off until they have examples: my.draft.\n",
        )
        changes, cap, draft, stored, in_force, how_back = done.stdout.splitlines()
        assert changes == "What changes: 0 rules go (-), 2 come (+), 0 are changed (~)."
        assert (cap, draft) == ("+ my.cap  My cap", "+ my.draft  A draft")
        assert stored == f"Stored as ruleset 1: 2 rules of my.yaml, {count} that come with Moot."
        assert re.fullmatch(rf"Ruleset 1 \([0-9a-f]{{12}}\) is in force: {count + 2} rules\.", in_force)
        assert how_back.endswith("Back: moot rules rollback")
        own = json.loads((await moot("rules", "list", "--source", "user", "--json")).stdout)
        assert [rule["id"] for rule in own["rules"]] == ["my.cap", "my.draft"]

        listed = json.loads((await moot("rules", "history", "--json")).stdout)
        assert [(r["number"], r["active"], r["created_by"], r["note"]) for r in listed] == [
            (1, True, "ada", "smaller steps"),
            (0, False, "moot", "The rules that come with Moot."),
        ]
        table = (await moot("rules", "history")).stdout
        assert re.search(rf"1 +in force +[0-9a-f]{{12}} +{count + 2} +20\S+ \S+ +ada +smaller steps", table)

        assert "Ruleset 0 (" in (await moot("rules", "rollback", "--yes")).stdout
        assert "my.cap" not in (await moot("rules", "list")).stdout
        assert "Ruleset 1 (" in (await moot("rules", "activate", "--yes", "1")).stdout

    async def test_a_file_alone_is_in_force_only_when_that_is_said(self, moot, home):
        done = await moot("rules", "activate", "--yes", written(home, CAP), "--profile", "none")
        assert "\nStored as ruleset 1: 1 rule of my.yaml, 0 that come with Moot.\n" in done.stdout
        assert re.search(r"(?m)^- risk\.position_cap  Position cap$", done.stdout)
        assert "1 rule. In force is ruleset 1" in (await moot("rules", "list")).stdout

    async def test_only_a_rule_of_the_system_stands_in_the_place_of_a_shipped_one(self, moot, home):
        replacing = CAP + "    metadata: {replaces: risk.position_cap}\n"
        await moot("rules", "activate", "--yes", written(home, replacing))
        assert (await moot("rules", "show", "risk.position_cap")).returncode == 0
        await moot("rules", "activate", "--yes", written(home, replacing + "    source: system\n"))
        gone = await moot("rules", "show", "risk.position_cap")
        assert (gone.returncode, gone.stderr) == (1, "Error: There is no rule risk.position_cap.\n")

    async def test_several_files_and_folders_are_put_in_force_together(self, moot, home):
        (home / "more").mkdir()
        written(home, CAP.replace("my.cap", "my.other"), "more/b.yml")
        written(home, CAP.replace("my.cap", "my.third"), "more/a.yaml")
        written(home, "no rules", "more/README.md")
        done = await moot("rules", "activate", "--yes", written(home, CAP), "more", "--profile", "none")
        assert "Stored as ruleset 1: 3 rules of my.yaml, more, 0 that come with Moot." in done.stdout
        listed = json.loads((await moot("rules", "list", "--json")).stdout)["rules"]
        assert sorted(rule["id"] for rule in listed) == ["my.cap", "my.other", "my.third"]
        [newest, _] = json.loads((await moot("rules", "history", "--json")).stdout)
        assert newest["note"] == "my.yaml, more"
        simulated = await moot("rules", "simulate", "my.yaml", "more", "--since", "2026-01-01")
        assert simulated.returncode == 0

    async def test_an_id_that_stands_in_two_files_is_refused_with_the_place_of_the_second(self, moot, home):
        files = written(home, CAP), written(home, CAP, "twin.yaml")
        checked = await moot("rules", "check", *files)
        refused = await moot("rules", "activate", "--yes", *files)
        complaint = "twin.yaml:3: rule my.cap, id: There is a rule my.cap already."
        assert (checked.returncode, complaint in checked.stdout) == (1, True)
        assert (refused.returncode, complaint in refused.stderr) == (1, True)
        assert checked.stdout.startswith("my.yaml: 1 rule, nothing to complain about.\n")

    async def test_a_folder_without_rules_is_refused(self, moot, home):
        (home / "empty").mkdir()
        seen = await moot("rules", "activate", "--yes", "empty")
        assert (seen.returncode, seen.stderr) == (2, "Error: empty holds no file of rules (.yaml, .yml).\n")

    async def test_what_goes_and_what_comes_is_shown_and_without_a_yes_nothing_is_done(self, moot, home):
        await moot("rules", "activate", "--yes", written(home, CAP))
        changed = CAP.replace("0.1", "0.05") + DRAFT
        refused = await moot("rules", "activate", written(home, changed))
        assert (refused.returncode, "say it with --yes" in refused.stderr) == (2, True)
        assert "What changes: 0 rules go (-), 1 come (+), 1 are changed (~)." in refused.stdout
        assert "~ my.cap  condition, corrector, examples" in refused.stdout
        back = await moot("rules", "rollback")
        assert (back.returncode, "- my.cap  My cap" in back.stdout) == (2, True)
        zero = await moot("rules", "activate", "0")
        assert (zero.returncode, "- my.cap  My cap" in zero.stdout) == (2, True)
        chinese = await moot("rules", "activate", "0", LANG="zh_CN.UTF-8")
        assert "未使任何规则生效" in chinese.stderr
        assert [r["number"] for r in json.loads((await moot("rules", "history", "--json")).stdout)] == [1, 0]
        same = await moot("rules", "activate", "1")  # nobody has to be asked about nothing
        assert (same.returncode, "The same rules are in force already." in same.stdout) == (0, True)

    @pytest.mark.parametrize(("typed", "status", "number"), [("y\n", 0, 1), ("n\n", 1, 0), ("", 1, 0)])
    async def test_somebody_at_a_terminal_is_asked(self, moot, home, monkeypatch, typed, status, number):
        monkeypatch.setattr("moot.cli.options.somebody_is_there", lambda: True)
        seen = await moot("rules", "activate", written(home, CAP), typed=typed)
        assert (seen.returncode, "Put this in force? [y/N]" in seen.stdout) == (status, True)
        assert json.loads((await moot("rules", "list", "--json")).stdout)["ruleset"] == number

    async def test_what_cannot_be_put_in_force_changes_nothing(self, moot, home):
        wrong = await moot("rules", "activate", "--yes", written(home, WRONG))
        assert (wrong.returncode, wrong.stdout) == (1, "")
        assert "my.yaml:14: rule my.block" in wrong.stderr
        same_id = CAP.replace("my.cap", "risk.position_cap")
        twin = await moot("rules", "activate", "--yes", written(home, same_id))
        assert (twin.returncode, "There is a rule risk.position_cap already" in twin.stderr) == (1, True)
        unknown = await moot("rules", "activate", "--yes", "7")
        assert (unknown.returncode, unknown.stderr) == (1, "Error: There is no ruleset 7.\n")
        assert [r["number"] for r in json.loads((await moot("rules", "history", "--json")).stdout)] == [0]

    async def test_that_were_altered_in_the_database_are_told_by_every_command(self, moot, home):
        await moot("rules", "activate", "--yes", written(home, CAP), "--profile", "none")
        with sqlite3.connect(home / "moot.db") as database:
            database.execute("UPDATE rulesets SET rules = replace(rules, '0.1', '0.9') WHERE number = 1")
        for arguments in (("rules", "list"), ("rules", "show", "my.cap")):
            seen = await moot(*arguments)
            assert (seen.returncode, "Ruleset 1 is in force and cannot decide" in seen.stderr) == (1, True)
        doctor = await moot("doctor", COLUMNS="1000")
        assert (doctor.returncode, "ruleset 1 has another digest now" in doctor.stdout) == (1, True)
        chinese = await moot("doctor", COLUMNS="1000", LANG="zh_CN.UTF-8")
        assert "规则集 1 的内容与存入时不同" in chinese.stdout
        assert re.search(r"1 +in force +ALTERED ", (await moot("rules", "history")).stdout)
        assert (await moot("rules", "activate", "--yes", "0")).returncode == 0
        assert (await moot("rules", "list")).returncode == 0
        assert "digest" not in (await moot("doctor", COLUMNS="1000")).stdout

    async def test_are_listed_by_category_in_full_ids_even_in_a_narrow_terminal(self, moot):
        seen = await moot("rules", "list", "--category", "behavior", COLUMNS="80")
        assert re.search(r"(?m)^risk\.position_without_purchase +behavior +suggest +verdict", seen.stdout)
        assert "tools.sql_guard" not in seen.stdout
        none = await moot("rules", "list", "--category", "goal", "--source", "user")
        assert (none.returncode, none.stdout) == (0, "No rule matches.\n")

    async def test_one_is_shown_with_its_condition_and_examples(self, moot):
        seen = (await moot("rules", "show", "risk.position_cap")).stdout
        assert seen.startswith("risk.position_cap@1 · Position cap\n")
        assert re.search(r"Broken when +payload\.position_percent > 0\.2", seen)
        assert re.search(r'Examples +breaks it: \{"payload": \{"position_percent": 0\.25\}\}', seen)
        chinese = (await moot("rules", "show", "risk.position_cap", LANG="zh_CN.UTF-8")).stdout
        assert chinese.startswith("risk.position_cap@1 · 单票仓位上限\n")
        data = json.loads((await moot("rules", "show", "risk.position_cap", "--json")).stdout)
        assert data["condition"] == "payload.position_percent > 0.2"

    async def test_without_a_database_the_shipped_rules_are_in_force_and_none_can_be_stored(self, moot, home):
        listed = await moot("rules", "list", MOOT_PERSISTENCE="off")
        assert (listed.returncode, "those that come with Moot" in listed.stdout) == (0, True)
        for arguments in (("activate", "--yes", written(home, CAP)), ("rollback", "--yes"), ("history",)):
            seen = await moot("rules", *arguments, MOOT_PERSISTENCE="off")
            assert (seen.returncode, "MOOT_PERSISTENCE=off" in seen.stderr) == (1, True)


class TestSimulate:
    async def test_shows_how_many_would_differ_and_why(self, moot, home):
        await decided(home)
        await decided(home, position_percent=0.05)
        seen = await moot("rules", "simulate", written(home, CAP), "--since", "2026-01-01")
        assert (seen.returncode, seen.stderr) == (0, "")
        assert seen.stdout.startswith("2 decisions since 2026-01-01, decided again by my.yaml and ")
        assert "1 would end as they did, 1 would differ." in seen.stdout
        assert re.search(r"approved +modified +1\n", seen.stdout)
        assert re.search(r"verdict v-1  approved → modified", seen.stdout)
        assert "position 15% → 10%: My cap (my.cap@1: payload.position_percent > 0.1)" in seen.stdout
        assert "my.cap" not in (await moot("rules", "list")).stdout

    async def test_says_when_nothing_would_differ_and_when_there_was_nothing(self, moot, home):
        nothing = await moot("rules", "simulate", written(home, CAP), "--since", "2026-01-01")
        assert nothing.stdout == "No decision was made since 2026-01-01.\n"
        await decided(home, position_percent=0.05)
        same = await moot("rules", "simulate", "my.yaml", "--since", "2026-01-01", LANG="zh_CN.UTF-8")
        assert same.stdout.endswith("条规则重新决定。\n结果全部相同。\n")
        bad = await moot("rules", "simulate", "my.yaml", "--since", "yesterday")
        assert (bad.returncode, "--since: yesterday is not a date" in bad.stderr) == (2, True)

    async def test_of_many_the_first_20_are_told(self, moot, home):
        async with Moot(Settings(home=home)) as desk:
            for place in range(23):
                request = DecisionRequest(f"v-{place}", "verdict", VERDICT, {}, "judge")
                await desk.governance.agent.decide(request)
        seen = await moot("rules", "simulate", written(home, CAP), "--since", "2026-01-01")
        assert re.search(r"approved +modified +23\n", seen.stdout)
        assert seen.stdout.count("→ modified") == 20
        assert seen.stdout.endswith("… and 3 more\n")


class TestGenerate:
    async def test_prints_yaml_in_shadow_that_can_be_checked(self, moot, bare_home):
        made = await moot(
            "rules",
            "generate",
            *("--start", "用户表", "--goal", "分析本月销售数据", "--description", "不要泄露手机号"),
            *("--constraint", "max_rows=100", "--constraint", "allowed_tools=database, export"),
        )
        assert made.returncode == 0
        assert "in shadow" in made.stderr
        book = RuleBook()
        rules = book.read(made.stdout)
        assert {rule.mode for rule in rules} == {"shadow"}
        assert {"max_rows", "privacy", "tool_whitelist"} <= {rule.metadata["kind"] for rule in rules}
        (whitelist,) = (rule for rule in rules if rule.metadata["kind"] == "tool_whitelist")
        assert "database" in str(whitelist.condition)
        assert "export" in str(whitelist.condition)
        assert (await moot("rules", "check", written(bare_home, made.stdout))).returncode == 0
        assert not (bare_home / "moot.db").exists()

    async def test_accepted_ones_are_enforced(self, moot):
        made = await moot("rules", "generate", "--goal", "Summarise sales", "--accept")
        assert "mode: shadow" not in made.stdout
        assert "enforced" in made.stderr

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("--constraint", "max_rows"), "max_rows is not NAME=VALUE. Known are max_tokens,"),
            (
                ("--constraint", "max_row=1"),
                "constraints: has no field named max_row. Did you mean max_rows? Allowed: max_tokens,",
            ),
            (("--constraint", "max_rows=many"), "constraints.max_rows: "),
        ],
    )
    async def test_what_cannot_be_laid_down_is_said(self, moot, arguments, said):
        seen = await moot("rules", "generate", "--goal", "Summarise sales", *arguments)
        assert (seen.returncode, seen.stdout) == (2, "")
        assert said in seen.stderr

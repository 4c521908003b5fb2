"""`moot decide` and `moot sessions decisions`, as a user runs them."""

import json
import re
from pathlib import Path

import pytest

from tests.entry.inside import Run, inside
from tests.entry.test_rules_cli import CAP, VERDICT, written

ASKS = """
rules:
  - id: my.ask
    name: Ask about large ones
    category: behavior
    condition: payload.position_percent > 0.3
    action: reject
    requires_human: true
    decision_types: [verdict]
    examples:
      - {violates: true, payload: {position_percent: 0.4}}
      - {violates: false, payload: {position_percent: 0.3}}
"""


@pytest.fixture
def moot(home: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(home)
    return inside(home, monkeypatch)


def asked(position: float, **more: object) -> str:
    payload = {**VERDICT, "position_percent": position}
    return json.dumps({"decision_type": "verdict", "payload": payload, **more})


async def test_the_shipped_rules_decide_what_comes_on_stdin(moot, bare_home):
    seen = await moot("decide", typed=asked(0.35, decision_id="d-7", requester="judge"))
    assert (seen.returncode, seen.stderr) == (0, "")
    result = json.loads(seen.stdout)
    assert (result["status"], result["modified_payload"]["position_percent"]) == ("modified", 0.2)
    assert result["original_request"]["decision_id"] == "d-7"
    assert result["original_request"]["requester"] == "judge"
    (change,) = result["changes"]
    assert change == {
        "op": "replace",
        "path": "/position_percent",
        "rule": "risk.position_cap@1",
        "value": 0.2,
        "was": 0.35,
    }
    assert [v["rule_name"] for v in result["violations"]] == ["Position cap"]
    assert not (bare_home / "moot.db").exists()


@pytest.mark.parametrize(
    ("position", "status", "code"),
    [(0.05, "approved", 0), (0.2, "modified", 0), (0.35, "escalated", 3), ("much", "rejected", 1)],
)
async def test_the_exit_code_tells_how_it_ended(moot, home, position, status, code):
    written(home, CAP, "cap.yaml")
    written(home, ASKS, "asks.yaml")
    seen = await moot("decide", "--rules", "cap.yaml", "--rules", "asks.yaml", typed=asked(position))
    assert (json.loads(seen.stdout)["status"], seen.returncode) == (status, code)


async def test_of_several_the_worst_counts_and_each_has_a_line(moot, home):
    written(home, ASKS, "asks.yaml")
    written(home, "\n".join([asked(0.35), "", asked(0.1), asked(0.2)]), "requests.jsonl")
    seen = await moot("decide", "--rules", "asks.yaml", "requests.jsonl")
    results = [json.loads(line) for line in seen.stdout.splitlines()]
    assert [result["status"] for result in results] == ["escalated", "approved", "approved"]
    assert [result["original_request"]["decision_id"] for result in results] == ["1", "2", "3"]
    assert seen.returncode == 3
    both = ("--rules", "asks.yaml", "--rules", written(home, CAP))
    rejected = await moot("decide", *both, typed=asked(0.35) + asked("much"))
    assert rejected.returncode == 1


async def test_files_decide_alone_unless_a_profile_is_named_too(moot, home):
    written(home, ASKS, "asks.yaml")
    alone = await moot("decide", "--rules", "asks.yaml", typed=asked(0.25))
    beside = await moot("decide", "--rules", "asks.yaml", "--profile", "default", typed=asked(0.25))
    assert json.loads(alone.stdout)["status"] == "approved"
    assert json.loads(beside.stdout)["status"] == "modified"
    presets = await moot("decide", "--profile", "presets", typed=asked(0.25))
    assert json.loads(presets.stdout)["status"] == "approved"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", "There is no request to decide."),
        ("[1]", "stdin line 1: a request is a JSON object"),
        ('{"decision_type": "verdict"}', "stdin line 1: payload: is required."),
        (
            '{"payload": {}, "decision_type": 3}',
            "stdin line 1: decision_type: must be text, not 3.",
        ),
        ('{"payload": 3, "decision_type": "verdict"}', "payload: must be an object, not 3."),
        ('{"payload": {}, "decision_type": "node", "contxt": {}}', "has no field named contxt."),
        ('{"payload": {}, "decision_type": "node"}\n{"payload": ', "stdin line 2 column 13: not valid JSON"),
        ('{"payload": {"a": NaN}, "decision_type": "node"}', "NaN is not a number in JSON"),
        ("[" * 200_000, "not valid JSON"),
    ],
)
async def test_what_cannot_be_read_is_said_and_nothing_decided(moot, typed, said):
    seen = await moot("decide", typed=typed)
    assert (seen.returncode, seen.stdout) == (2, "")
    assert said in seen.stderr


async def test_the_same_in_chinese(moot):
    seen = await moot("decide", typed='{"decision_type": "verdict"}', LANG="zh_CN.UTF-8")
    assert (seen.returncode, seen.stderr) == (2, "错误：stdin 第 1 行：payload：必填。\n")
    result = json.loads((await moot("decide", typed=asked(0.35), LANG="zh_CN.UTF-8")).stdout)
    assert [violation["rule_name"] for violation in result["violations"]] == ["单票仓位上限"]


async def test_the_help_tells_the_exit_codes(moot):
    seen = await moot("decide", "--help")
    assert "Exit code 0: approved or modified, 1: rejected" in " ".join(seen.stdout.split())


async def test_the_decisions_of_a_session_are_told_a_sentence_each(moot, home):
    """No purchase is made below a confidence of 0.55, by a rule that ships."""
    modest = CAP.replace("position_percent", "confidence").replace("0.1", "0.56").replace("0.2", "0.6")
    await moot("rules", "activate", "--yes", written(home, modest))
    result = json.loads((await moot("research", "900012.DEMO", "--as-of", "2026-06-30", "--json")).stdout)
    assert result["verdict"]["confidence"] == 0.56
    seen = await moot("sessions", "decisions", result["session_id"], COLUMNS="200")
    assert re.search(r"(?m)^research_request +approved +approved: no rule is broken", seen.stdout)
    assert re.search(r"(?m)^node:judge +approved", seen.stdout)
    capped = r"confidence \S+ → \S+: My cap \(my\.cap@1: payload\.confidence > 0\.56\)"
    assert re.search(rf"(?m)^verdict +modified +{capped}", seen.stdout)
    unknown = await moot("sessions", "decisions", "7d3c8a52-0c3e-4f0e-9d0a-5b1f6a1c2e3d")
    assert (unknown.returncode, "There is no session" in unknown.stderr) == (1, True)

"""`moot escalations`, as a user runs it."""

import json
import re
from pathlib import Path
from uuid import UUID

import pytest

from moot.desk import Moot
from moot.modules.governance.application.coordinator_agent import Decision, DecisionRequest
from moot.shared.infrastructure.settings import Settings
from tests.entry.inside import Run, inside
from tests.entry.test_decide_cli import ASKS
from tests.entry.test_rules_cli import CAP, VERDICT, written

NOBODY = "7d3c8a52-0c3e-4f0e-9d0a-5b1f6a1c2e3d"
LARGE = VERDICT | {"position_percent": 0.4}
EVERY_VERDICT = (
    ASKS.replace("payload.position_percent > 0.3", "payload.action in ['BUY', 'SELL', 'HOLD']")
    .replace("position_percent: 0.4", "action: BUY")
    .replace("position_percent: 0.3", "action: NONE")
)


@pytest.fixture
def moot(home: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(home)
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    return inside(home, monkeypatch)


async def decide(home: Path, payload: object = LARGE) -> Decision:
    request = DecisionRequest("v-1", "verdict", payload, {"locale": "en-US"}, "trader")
    async with Moot(Settings(home=home)) as desk:
        return await desk.governance.agent.decide(request)


async def waiting(moot: Run, home: Path) -> str:
    """Something that waits, and the rule that wants a person in force."""
    both = ASKS + CAP.removeprefix("\nrules:\n").replace("0.1", "0.35").replace("0.2", "0.9")
    assert (
        await moot("rules", "activate", "--yes", written(home, both), "--profile", "none")
    ).returncode == 0
    decision = await decide(home, LARGE | {"position_percent": 0.34})
    assert decision.escalation is not None
    return str(decision.escalation.id)


async def test_what_waits_is_listed_and_shown(moot, home):
    nothing = await moot("escalations", "list")
    assert (nothing.returncode, nothing.stdout) == (0, "Nothing waits for a person.\n")
    escalation = await waiting(moot, home)
    listed = (await moot("escalations", "list")).stdout
    assert listed.startswith(f"{escalation}\n  verdict, asked by trader on 20")
    assert "Ask about large ones: payload.position_percent > 0.3" in listed
    assert "Page 1 of 1; waiting: 1.\n" in listed
    shown = (await moot("escalations", "show", escalation)).stdout
    assert (await moot("escalations", "show", escalation[:6])).stdout == shown
    assert (await moot("escalations", "show", "last")).stdout == shown
    assert re.search(r"State +waiting", shown)
    assert re.search(r"(?m)^ +position_percent: 0\.34", shown)
    assert json.loads((await moot("escalations", "show", escalation, "--json")).stdout)["status"] == "pending"
    page = json.loads((await moot("escalations", "list", "--json")).stdout)
    assert [item["id"] for item in page["items"]] == [escalation]


async def test_what_was_decided_is_listed_with_who_and_why(moot, home):
    assert (await moot("escalations", "list", "--decided")).stdout == "There is none.\n"
    escalation = await waiting(moot, home)
    await moot("escalations", "reject", escalation, "--reason", "not this quarter")
    assert (await moot("escalations", "list")).stdout == "Nothing waits for a person.\n"
    for flag, counted in (("--decided", "decided: 1."), ("--all", "1 in all.")):
        listed = (await moot("escalations", "list", flag)).stdout
        assert re.search(r"(?m)^  rejected: ada on 20\S+ \S+ UTC: not this quarter *$", listed)
        assert listed.endswith(f"Page 1 of 1; {counted}\n")
    chinese = (await moot("escalations", "list", "--decided", LANG="zh_CN.UTF-8")).stdout
    assert "决定：not this quarter" in chinese
    page = json.loads((await moot("escalations", "list", "--decided", "--json")).stdout)
    assert [item["reason"] for item in page["items"]] == ["not this quarter"]


async def test_an_approval_is_on_record_and_lets_the_same_through_once(moot, home):
    escalation = await waiting(moot, home)
    done = await moot("escalations", "approve", escalation, "--reason", "looked at it")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"Approved by ada: {escalation}.\nThe agent may now ask for the same once more, and goes on.\n"
    )
    assert (await decide(home, LARGE | {"position_percent": 0.34})).result.status == "approved"
    shown = (await moot("escalations", "show", escalation)).stdout
    assert re.search(r"State +approved and used", shown)
    assert re.search(r"Decided +ada · 20", shown)
    assert re.search(r"Reason +looked at it", shown)
    again = await moot("escalations", "reject", escalation, "--reason", "too late")
    assert (again.returncode, "is used already: ada decided" in again.stderr) == (1, True)


async def test_a_rejection_names_who_said_so(moot, home):
    escalation = await waiting(moot, home)
    done = await moot("escalations", "reject", escalation, "--reason", "too large", "--by", "grace")
    assert (done.returncode, done.stdout) == (0, f"Rejected by grace: {escalation}.\n")
    assert (await decide(home, LARGE | {"position_percent": 0.34})).result.status == "rejected"
    chinese = await moot("escalations", "list", LANG="zh_CN.UTF-8")
    assert chinese.stdout == "没有等待人工决定的事项。\n"


async def test_an_edit_is_what_the_rules_make_of_it(moot, home):
    escalation = await waiting(moot, home)
    written(home, json.dumps(LARGE | {"position_percent": 0.5}), "payload.json")
    done = await moot(
        "escalations", "edit", escalation, "--payload", "payload.json", "--reason", "let us be bold"
    )
    assert (done.returncode, done.stderr) == (0, "")
    said, corrected, _ = done.stdout.splitlines()
    assert said == f"Approved as changed by ada: {escalation}."
    assert corrected == "The rules changed what was given: position_percent: 0.35"
    assert re.search(
        r"Approved +position_percent: 0\.35", (await moot("escalations", "show", escalation)).stdout
    )
    went_on = await decide(home, LARGE | {"position_percent": 0.34})
    assert (went_on.result.status, went_on.result.payload["position_percent"]) == ("modified", 0.35)


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (None, "--payload: payload.json cannot be read: No such file or directory"),
        ("[1]", "--payload: payload.json has to hold one JSON object"),
        ("{\n 1}", "--payload: payload.json line 2 column 2: not valid JSON"),
    ],
)
async def test_a_payload_that_cannot_be_read_is_said(moot, home, payload, said):
    if payload is not None:
        written(home, payload, "payload.json")
    seen = await moot("escalations", "edit", NOBODY, "--payload", "payload.json", "--reason", "x")
    assert (seen.returncode, said in seen.stderr) == (2, True)


async def test_who_asked_cannot_answer_and_nobody_answers_without_a_reason(moot, home):
    escalation = await waiting(moot, home)
    own = await moot("escalations", "approve", escalation, "--reason", "sure", "--by", "trader")
    assert (own.returncode, "trader made the request and cannot decide about it" in own.stderr) == (1, True)
    blank = await moot("escalations", "approve", escalation, "--reason", " ")
    assert (blank.returncode, "needs a name and a reason" in blank.stderr) == (2, True)
    assert (await moot("escalations", "approve", escalation)).returncode == 2
    assert "waiting: 1." in (await moot("escalations", "list")).stdout


async def test_what_is_not_there_is_said(moot):
    unknown = await moot("escalations", "approve", NOBODY, "--reason", "x")
    assert (unknown.returncode, unknown.stderr) == (1, f"Error: There is no escalation {NOBODY}.\n")
    malformed = await moot("escalations", "show", "x")
    assert (malformed.returncode, "escalation_id: 'x' is not an id" in malformed.stderr) == (2, True)
    off = await moot("escalations", "list", MOOT_PERSISTENCE="off")
    assert (off.returncode, "MOOT_PERSISTENCE=off" in off.stderr) == (1, True)


async def test_a_session_that_waits_goes_on_as_the_answer_says(moot, home):
    await moot("rules", "activate", "--yes", written(home, EVERY_VERDICT))
    stopped = await moot("research", "900002.DEMO", "--as-of", "2026-06-30")
    assert stopped.returncode == 1
    assert "waits for a person to decide. What it asks: moot escalations list." in stopped.stderr
    (item,) = json.loads((await moot("escalations", "list", "--json")).stdout)["items"]
    assert f"moot escalations approve {item['id']} --reason TEXT" in stopped.stderr
    shown = await moot("sessions", "show", item["session_id"])
    assert shown.returncode == 0 and "· waiting for a person\n" in shown.stdout
    assert re.search(r"(?m)^Debate +done", shown.stdout), "what was done until then"
    assert f"To look: moot escalations show {item['id']}." in " ".join(shown.stdout.split())
    waits = await moot("sessions", "resume", item["session_id"], "--json")
    details = json.loads(waits.stdout)["details"]
    assert (details["escalation_id"], details["reason"]) == (item["id"], item["why"][0])
    done = await moot("escalations", "approve", item["id"], "--reason", "looked at it")
    session = UUID(item["session_id"])
    assert f"otherwise run moot sessions resume {session}." in done.stdout
    resumed = json.loads((await moot("sessions", "resume", str(session), "--json")).stdout)
    assert resumed["verdict_status"] == "judged"
    assert resumed["verdict"]["warnings"][-1] == "ada said: looked at it"

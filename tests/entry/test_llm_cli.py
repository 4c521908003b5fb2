"""`moot llm`, `moot sessions verify` and the estimate before a paid run, as a user runs them."""

import asyncio
import json
import os
import pty
import re
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.entry.forked import Forge
from tests.entry.inside import Run
from tests.fakes.llm_server import LLMServer, Say, Status

KEY = "canary-8d41f60b27ac"
Result = subprocess.CompletedProcess[str]


@pytest.fixture
def process(home: Path, forge: Forge) -> Run:
    """`moot` in a process of its own, beside the test, whose model server has to answer meanwhile."""

    async def run(*arguments: str, **more: str) -> Result:
        return await asyncio.to_thread(forge.run, *arguments, home=home, **more)

    return run


def files_with(secret: str, home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def obliging(body: dict[str, Any]) -> Say:
    """A model that can do everything that it is asked to."""
    if body.get("tools"):
        return Say(None, tool_calls=[("call_1", "add", '{"a": 2, "b": 3}')], finish_reason="tool_calls")
    return Say('{"sum": 5}' if body.get("response_format") else "ready")


async def add(moot: Run, server: LLMServer, alias: str = "main", *more: str) -> Result:
    arguments = ("llm", "add", alias, "--base-url", server.url, "--model", "fake-1", "--key-stdin", *more)
    return await moot(*arguments, typed=f"{KEY}\n")


async def test_a_model_is_added_listed_tested_and_removed_and_its_key_is_nowhere(process, home, llm_server):
    llm_server.default = obliging
    added = await add(process, llm_server, "main", "--price-in", "2", "--price-out", "8", "--tag", "cheap")
    assert (added.returncode, added.stderr) == (0, "")
    assert added.stdout == f"Added main: fake-1 at {llm_server.url}. Test it: moot llm test main\n"

    listed = await process("llm", "list")
    for word in ("main", "fake-1", "custom", llm_server.url, "cheap", "can...27ac", "stored", "active"):
        assert word in listed.stdout
    assert max(map(len, listed.stdout.splitlines())) <= 100

    tested = await process("llm", "test", "main")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert re.search(r"✓ answers: \d+ ms, 100 \+ 50 tokens, 0\.0006 CNY", tested.stdout)
    assert re.search(r"✓ JSON schema: .*\n  ✓ tools: ", tested.stdout)
    assert [request.headers["Authorization"] for request in llm_server.requests] == [f"Bearer {KEY}"] * 3

    removed = await process("llm", "remove", "main", "--yes")
    assert removed.stdout == "Removed main.\n"
    assert (await process("llm", "list")).stdout.startswith("No language model is configured")
    output = "".join(seen.stdout + seen.stderr for seen in (added, listed, tested, removed))
    assert KEY not in output
    assert files_with(KEY, home) == []


async def test_the_test_of_a_model_says_what_it_cannot_do(moot, llm_server):
    def limited(body: dict[str, Any]) -> Say | Status:
        if body.get("response_format"):
            return Status(400, '{"error": {"message": "response_format json_schema is not supported"}}')
        return Say("certainly", usage=None)

    llm_server.default = limited
    await add(moot, llm_server)
    seen = await moot("llm", "test")
    assert seen.returncode == 0, seen.stdout + seen.stderr
    assert re.search(
        r"main \(fake-1\)\n  ✓ answers: \d+ ms, \? \+ \? tokens, cost unknown, the vendor sent", seen.stdout
    )
    assert "✗ JSON schema: the endpoint does not take one" in seen.stdout
    assert "✗ tools: the tool was not used" in seen.stdout


async def test_an_endpoint_that_takes_a_schema_and_ignores_it_is_found_out(moot, llm_server):
    llm_server.default = Say('{"answer": 5}')
    await add(moot, llm_server)
    assert "✗ JSON schema: the answer did not keep to the schema" in (await moot("llm", "test")).stdout


async def test_a_model_that_does_not_answer_fails_the_test_without_showing_its_key(process, home, llm_server):
    llm_server.default = Status(401, json.dumps({"error": {"message": f"Incorrect API key: {KEY}"}}))
    await add(process, llm_server)
    seen = await process("llm", "test", "main")
    assert seen.returncode == 1
    assert "✗ answers: The model main gave no answer:" in seen.stdout
    assert "401" in seen.stdout
    assert len(llm_server.requests) == 1
    assert KEY not in seen.stdout + seen.stderr
    assert files_with(KEY, home) == []


@pytest.mark.accepts("A2-37")
async def test_calls_of_a_test_are_on_the_record_with_who_made_them(moot, home, llm_server):
    llm_server.default = obliging
    await add(moot, llm_server)
    await moot("llm", "test")
    with sqlite3.connect(home / "moot.db") as db:
        rows = db.execute("SELECT caller_module, caller_agent, session_id, status FROM llm_call_logs")
        assert rows.fetchall() == [("cli", "model_trial", None, "success")] * 3


async def test_usage_adds_up_and_says_what_is_unknown(moot, llm_server):
    llm_server.default = obliging
    await add(moot, llm_server, "priced", "--price-in", "2", "--price-out", "8")
    await moot("llm", "test", "priced")
    await add(moot, llm_server, "free")
    await moot("llm", "test", "free")
    seen = await moot("llm", "usage")
    assert re.search(r"Total +6 +0 +600 +300 +900 +0\.0018 CNY +3", seen.stdout), seen.stdout
    assert "The cost of 3 calls is unknown" in seen.stdout
    by_agent = await moot("llm", "usage", "--by", "agent", "--since", "2020-01-01")
    assert "model_trial" in by_agent.stdout
    assert (await moot("llm", "usage", "--since", "2999-01-01")).stdout == "No model calls are on record.\n"


BAD = {
    "no endpoint": (("add", "m", "--model", "x"), "base_url: is required, unless a preset is chosen"),
    "no key": (("add", "m", "--preset", "deepseek"), "deepseek needs a key: name the environment variable"),
    "unset variable": (
        ("add", "m", "--preset", "deepseek", "--key-env", "NOT_SET"),
        "--key-env: the environment variable NOT_SET is not set",
    ),
    "two keys": (("add", "m", "--preset", "openai", "--key-stdin", "--key-env", "K"), "not both"),
    "empty stdin": (("add", "m", "--preset", "openai", "--key-stdin"), "there is no key on the standard"),
    "unknown preset": (("add", "m", "--preset", "wizard", "--model", "x"), "preset: 'wizard' is not known."),
    "half a price": (("add", "m", "--preset", "ollama", "--model", "x", "--price-in", "1"), "Give both"),
    "bad day": (("usage", "--since", "soon"), "--since: soon is not a date"),
}


@pytest.mark.parametrize(("arguments", "sentence"), BAD.values(), ids=BAD)
async def test_what_makes_no_sense_is_refused(moot, arguments, sentence):
    seen = await moot("llm", *arguments)
    assert (seen.returncode, seen.stdout) == (2, "")
    assert sentence in seen.stderr


async def test_an_unknown_or_taken_alias_is_said(moot, llm_server):
    await add(moot, llm_server)
    again = await add(moot, llm_server)
    assert (again.returncode, "already a model named main" in again.stderr) == (1, True)
    for command in ("test", "remove"):
        unknown = await moot("llm", command, "nobody")
        assert (unknown.returncode, "nobody" in unknown.stderr) == (1, True)


async def test_removal_asks_and_no_answer_is_no(moot, llm_server):
    await add(moot, llm_server)
    said_no = await moot("llm", "remove", "main", typed="n\n")
    assert "main stays." in said_no.stdout
    said_nothing = await moot("llm", "remove", "main")
    assert (said_nothing.returncode, "Interrupted." in said_nothing.stderr) == (1, True)
    assert "main" in (await moot("llm", "list")).stdout
    assert "Removed main." in (await moot("llm", "remove", "main", typed="y\n")).stdout


async def test_a_preset_brings_endpoint_and_model_and_the_key_comes_from_the_environment(moot):
    seen = await moot("llm", "add", "ds", "--preset", "deepseek", "--key-env", "DS_KEY", DS_KEY=KEY)
    assert "deepseek-chat at https://api.deepseek.com/v1" in seen.stdout, seen.stderr
    assert "It has no price" in seen.stdout


async def test_the_table_of_models_fits_a_hundred_columns_in_both_languages(moot):
    for preset in ("qwen", "openai"):
        await moot("llm", "add", preset, "--preset", preset, "--key-env", "K", K=KEY)
    for language, words in {"en_US": ["Priority", "active"], "zh_CN": ["优先级", "启用"]}.items():
        seen = await moot("llm", "list", LANG=f"{language}.UTF-8")
        assert all(word in seen.stdout for word in words)
        assert "dashscope.aliyuncs.com/compatible-mode/v1" in seen.stdout, "on one line"


async def test_a_model_has_the_limits_it_was_given_or_those_of_its_kind(moot):
    await moot("llm", "add", "near", "--preset", "ollama", "--model", "llama3")
    limits = ("--timeout", "90", "--concurrency", "4", "--requests-per-minute", "60")
    await moot("llm", "add", "far", "--base-url", "https://m.example/v1", "--model", "m", *limits)
    shown = " ".join((await moot("llm", "list")).stdout.split())
    assert re.search("near .* active .* 600 s ×1", shown)
    assert re.search("far .* active .* 90 s ×4 .*60 requests/min", shown)
    wrong = await moot("llm", "add", "no", "--preset", "ollama", "--model", "m", "--timeout", "0")
    assert (wrong.returncode, "timeout: 0.0 is out of range" in wrong.stderr) == (2, True)


def test_in_a_terminal_the_key_is_asked_for_and_not_shown(home, forge):
    ours, theirs = pty.openpty()
    here = {"MOOT_HOME": str(home), "LANG": "en_US.UTF-8"}
    command = ("llm", "add", "ds", "--preset", "deepseek")
    pid = forge.fork(command, here, home, *[Path(os.ttyname(theirs))] * 3)
    shown = answer_at(ours, theirs, "API key (not shown; Enter: none): ", KEY)
    assert forge.wait(pid) == 0, shown
    assert "Added ds: deepseek-chat" in shown
    assert KEY not in shown


def answer_at(terminal: int, theirs: int, question: str, answer: str) -> str:
    """All that the terminal shows; the answer is typed when the question stands there."""
    shown = ""
    try:
        while piece := os.read(terminal, 4096).decode(errors="replace"):
            shown += piece
            if question in shown and answer:
                os.close(theirs)  # the other side holds it open now, until it ends
                os.write(terminal, f"{answer}\n".encode())
                answer = ""
    except OSError:  # the other side is gone
        pass
    finally:
        os.close(terminal)
    return shown


def by_environment(server: LLMServer, **more: str) -> dict[str, str]:
    return {"MOOT_LLM_BASE_URL": server.url, "MOOT_LLM_MODEL": "fake-1", **more}


PRICED = {"MOOT_LLM_PRICE_IN": "2", "MOOT_LLM_PRICE_OUT": "8"}
RESEARCH = ("research", "900001.DEMO", "--experts", "technical_analyst,macro_intelligence")


async def test_a_run_by_models_is_announced_with_what_it_will_take(moot, llm_server):
    llm_server.default = Status(400, "{}")
    seen = await moot(*RESEARCH, **by_environment(llm_server, **PRICED))
    first = seen.stderr.splitlines()[0]
    assert first.startswith("Estimate: 6 model calls, about 28,200 tokens, 0.0996 CNY, 80 s (typical values")


async def test_for_json_the_estimate_goes_to_stderr_and_an_unknown_price_is_said(process, llm_server):
    llm_server.default = Status(400, "{}")
    seen = await process(*RESEARCH, "--skip-debate", "--json", **by_environment(llm_server))
    assert seen.stderr.startswith("Estimate: 2 model calls, about 9,400 tokens, price unknown, 20 s")
    assert json.loads(seen.stdout)["code"] == "ALL_EXPERTS_FAILED"


async def test_a_run_that_would_cost_too_much_is_not_started(moot, home, llm_server):
    seen = await moot(*RESEARCH, "--max-cost", "0.05", **by_environment(llm_server, **PRICED))
    assert seen.returncode == 2
    assert "likely to cost 0.0996 CNY, more than the 0.05 CNY of --max-cost" in seen.stderr
    assert llm_server.requests == []
    with sqlite3.connect(home / "moot.db") as db:
        assert db.execute("SELECT count(*) FROM research_sessions").fetchone() == (0,)


async def test_a_limit_without_a_price_is_refused_by_the_budget(moot, llm_server):
    seen = await moot(*RESEARCH, "--max-cost", "5", **by_environment(llm_server))
    assert seen.returncode == 1
    assert "the model has no price" in seen.stderr
    assert llm_server.requests == []


@pytest.mark.parametrize("wrong", ["much", "-1", "nan"])
async def test_a_limit_that_is_no_amount_is_refused(moot, wrong):
    seen = await moot("research", "900001.DEMO", "--max-cost", wrong)
    assert (seen.returncode, "max_cost" in seen.stderr) == (2, True)


async def test_rules_cost_nothing_and_are_not_announced(moot, llm_server):
    seen = await moot(*RESEARCH, **by_environment(llm_server, MOOT_ANALYST="rubric"))
    assert (seen.returncode, "Estimate" in seen.stdout) == (0, False)


async def test_a_record_is_verified_and_tampering_is_told(moot, home):
    run = await moot("research", "900001.DEMO", "--experts", "macro_intelligence", "--skip-debate", "--json")
    session = json.loads(run.stdout)["session_id"]
    intact = await moot("sessions", "verify", session)
    assert intact.returncode == 0, intact.stderr
    assert re.match(r"The record is intact: all \d+ entries", intact.stdout)
    with sqlite3.connect(home / "moot.db") as db:
        db.execute("UPDATE node_executions SET status = 'failed'")
    tampered = await moot("sessions", "verify", session, LANG="zh_CN.UTF-8")
    assert tampered.returncode == 1
    assert "被" in tampered.stdout


@pytest.mark.parametrize(
    ("session", "code", "sentence"),
    [
        ("soon", 2, "session_id: 'soon' is not an id"),
        ("7d3c8a52-0c3e-4f0e-9d0a-5b1f6a1c2e3d", 1, "7d3c8a52-0c3e-4f0e-9d0a-5b1f6a1c2e3d"),
    ],
)
async def test_a_session_nobody_knows_is_said(moot, session, code, sentence):
    seen = await moot("sessions", "verify", session)
    assert (seen.returncode, sentence in seen.stderr) == (code, True), seen.stderr


async def test_doctor_names_models_and_web_search(moot, llm_server):
    await add(moot, llm_server)
    seen = await moot("doctor", MOOT_SEARXNG_URL="http://127.0.0.1:1")
    assert "Language models: main (fake-1)" in seen.stdout
    assert "Web search: SearXNG" in seen.stdout
    locked = await moot("doctor", MOOT_SECRET_KEY="another secret altogether")
    assert (locked.returncode, "key of main cannot be decrypted" in locked.stdout) == (1, True)
    missing = await moot("doctor", MOOT_ANALYST="llm", MOOT_PERSISTENCE="off")
    assert (missing.returncode, "no language model can be called" in missing.stdout) == (1, True)

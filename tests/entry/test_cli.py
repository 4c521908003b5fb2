"""`moot` as a user runs it: a process, its output, its exit code."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from signal import SIGTERM

import pytest
import uvicorn

from moot import __version__
from moot.cli.server import DrainingServer
from moot.modules.coordinator.domain.model.enums import ExpertType
from tests.entry.forked import server
from tests.entry.serving import IN_TIME, RESEARCH, SESSIONS, free_port
from tests.fakes.clock import PATIENCE

ALL = [expert.value for expert in ExpertType]
MOOT = str(Path(sys.executable).with_name("moot"))
Run = Callable[..., subprocess.CompletedProcess[str]]


TOO_LATE = {
    "MOOT_LLM_BASE_URL": "http://127.0.0.1:9/v1",
    "MOOT_LLM_MODEL": "nobody",
    "MOOT_NODE_TIMEOUT": "0.0001",
}
"""Settings under which no expert has an answer in time."""


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("MOOT_", "LC_", "LANG"))
    }
    return {**kept, "MOOT_HOME": str(home), "LANG": "en_US.UTF-8", "COLUMNS": "100", **more}


@pytest.fixture
def moot(home, forge) -> Run:
    return partial(forge.run, home=home)


@pytest.fixture
def installed_moot(bare_home) -> Run:
    """The command that was installed, from its first import to its first database."""

    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [MOOT, *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=environment(bare_home, **more),
            timeout=PATIENCE,
            check=False,
        )

    return run


def test_version(installed_moot):
    assert installed_moot("--version").stdout == f"moot {__version__}\n"


def test_research_shows_progress_verdict_debate_and_report(moot, home):
    seen = moot("research", "900001.DEMO")
    assert seen.returncode == 0, seen.stderr
    for name in ("Technical analyst", "Financial auditor", "Valuation modeler", "Debate", "Judge"):
        assert f"{name} · working…" in seen.stderr, "what is piped is the answer alone"
        assert re.search(rf"{name} · done · .* \d+%", seen.stderr)
    assert re.search(r"(BUY|SELL|HOLD) · new position \d+%", seen.stdout)
    assert re.search(r"│ Why +│\n│ 1\. (for|against) [█▌░]{5} 0\.\d\d · ", seen.stdout)
    assert re.search(r"[▁▂▃▄▅▆▇█]{40}", seen.stdout)
    assert "Synthetic data" in seen.stdout
    assert "not investment advice" in seen.stdout
    (report,) = (home / "reports").glob("900001.DEMO-*.md")
    assert f"Report: {report}" in seen.stdout
    text = report.read_text(encoding="utf-8")
    assert text.startswith("# Research report: Mirage Hill Distillers (900001.DEMO)\n\n**")
    for heading in ("## The argument", "## Experts", "## Risks", "## Sources", "## On the record"):
        assert heading in text
    assert "Cost: 0." in text


def test_json_is_the_rest_body_and_nothing_else(installed_moot):
    seen = installed_moot(
        "research", "900002.DEMO", "--experts", "macro_intelligence,valuation_modeler", "--json"
    )
    body = json.loads(seen.stdout)
    assert (seen.returncode, seen.stderr) == (0, "")
    assert set(body["expert_results"]) == {"macro_intelligence", "valuation_modeler"}
    assert list(body) == [
        "symbol",
        "overall_status",
        "expert_results",
        "debate_outcome",
        "verdict",
        "verdict_status",
        "reason",
        "session_id",
        "retry_count",
        "as_of",
        "locale",
        "audit_gaps",
        "usage",
        "notices",
        "data_until",
    ]


def test_the_locale_option_wins_over_the_environment(moot):
    seen = moot("research", "900001.DEMO", "--locale", "zh-CN", "--json")
    assert json.loads(seen.stdout)["locale"] == "zh-CN"


def test_as_of_looks_from_the_past(moot):
    then = json.loads(moot("research", "900001.DEMO", "--as-of", "2024-03-29", "--json").stdout)
    facts = [fact for item in then["expert_results"].values() for fact in item["data"]["evidence"]]
    assert then["as_of"].startswith("2024-03-29T15:59:59")
    assert max(fact["as_of"] for fact in facts) <= then["as_of"]
    assert max(fact["as_of"] for fact in facts) >= "2024-03-29"


BAD = {
    "unknown symbol": (("900099.DEMO",), "symbol: nobody lists 900099.DEMO."),
    "unsupported market": (
        ("600519.SH",),
        "symbol: 600519.SH belongs to a market without a data source yet (CN).",
    ),
    "unknown expert": (
        ("900001.DEMO", "--experts", "technical_analyst,wizard"),
        f"experts.1: 'wizard' is not known. Allowed: {', '.join(ALL)}.",
    ),
    "no experts": (("900001.DEMO", "--experts", ","), "experts: choose at least one."),
    "limit out of range": (
        ("900001.DEMO", "--limit", "99"),
        "options.financial_auditor.limit: 99 is out of range. Allowed: <= 20.",
    ),
    "limit of a wrong type": (
        ("900001.DEMO", "--limit", "many"),
        "options.financial_auditor.limit: must be a whole number, not 'many'.",
    ),
    "malformed date": (("900001.DEMO", "--as-of", "29.03.2024"), "as_of: '29.03.2024' is not a date;"),
    "future date": (("900001.DEMO", "--as-of", "2999-01-01"), "as_of: '2999-01-01' lies in the future."),
    "unknown locale": (
        ("900001.DEMO", "--locale", "fr-FR"),
        "locale: 'fr-FR' is not known. Allowed: zh-CN, en-US.",
    ),
}


@pytest.mark.parametrize(("arguments", "sentence"), BAD.values(), ids=BAD)
def test_bad_usage_says_the_same_as_rest_and_exits_2(moot, arguments, sentence):
    seen = moot("research", *arguments)
    assert seen.returncode == 2
    assert f"Error: {sentence}" in seen.stderr
    assert seen.stdout == ""


def test_bad_usage_in_json_is_the_error_body(moot):
    seen = moot("research", "900099.DEMO", "--json")
    body = json.loads(seen.stdout)
    assert (seen.returncode, body["success"], body["code"]) == (2, False, "SYMBOL_UNKNOWN")
    assert body["details"]["field"] == "symbol"


def test_an_unknown_option_exits_2(moot):
    seen = moot("research", "900001.DEMO", "--colour", "blue")
    assert seen.returncode == 2
    assert "No such option" in seen.stderr


def test_all_failed_exits_1(moot):
    seen = moot("research", "900001.DEMO", "--as-of", "2018-01-03", "--experts", "technical_analyst")
    assert seen.returncode == 1
    assert "\nError: No expert could say anything about 900001.DEMO. Technical analyst: " in seen.stderr
    assert re.search(r"To run again what failed: moot sessions retry [0-9a-f-]{36}$", seen.stderr.strip())


def test_a_wrong_setting_is_named(moot):
    seen = moot("research", "900001.DEMO", MOOT_NODE_TIMEOUT="soon")
    assert (seen.returncode, "MOOT_NODE_TIMEOUT" in seen.stderr) == (2, True)


@pytest.mark.accepts("A1N-08")
def test_without_persistence_nothing_but_the_report_is_written(moot, bare_home):
    seen = moot("research", "900001.DEMO", "--json", MOOT_PERSISTENCE="off")
    assert json.loads(seen.stdout)["session_id"] == ""
    assert not list(bare_home.glob("moot.db*"))


def test_a_home_that_cannot_be_written_is_a_sentence_not_a_traceback(moot, home):
    (home / "file").write_text("in the way")
    seen = moot("research", "900001.DEMO", MOOT_HOME=str(home / "file" / "below"))
    assert seen.returncode == 1
    assert "Traceback" not in seen.stderr
    assert str(home / "file") in seen.stderr


@pytest.mark.usefixtures("bare_home")
def test_the_database_is_upgraded_and_shown(moot):
    before = moot("db", "current")
    assert (before.returncode, "revision none" in before.stdout) == (0, True)
    assert "Run: moot db upgrade" in before.stdout
    assert moot("db", "upgrade").stdout == "The database is at revision 0001.\n"
    assert moot("db", "current").stdout == "Database: revision 0001; this version needs 0001.\n"


def test_doctor_says_what_is_there_and_what_to_try(moot, home):
    seen = moot("doctor")
    assert seen.returncode == 0, seen.stdout
    assert f"Home {home} is writable" in seen.stdout.replace("\n", "")
    assert "900001.DEMO" in seen.stdout
    assert "Everything needed is there." in seen.stdout


def test_doctor_names_a_problem_without_its_password_and_exits_1(moot):
    seen = moot("doctor", MOOT_DATABASE_URL="postgresql://moot:hunter2@127.0.0.1:1/moot")
    assert seen.returncode == 1
    assert "problem" in seen.stdout
    assert "hunter2" not in seen.stdout + seen.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.10", "::", "example.org"])
def test_serve_refuses_to_be_seen_from_outside(moot, host):
    seen = moot("serve", "--host", host)
    assert seen.returncode == 2
    assert f"host: {host} is not a loopback address" in seen.stderr


def test_serve_refuses_a_port_in_use(moot):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        seen = moot("serve", "--port", str(taken.getsockname()[1]))
    assert (seen.returncode, "Choose another with --port" in seen.stderr) == (2, True)


@pytest.mark.parametrize(("options", "env"), [(["--open"], {}), ([], {"MOOT_OPEN": "on"}), ([], {})])
async def test_serve_asks_this_machine_for_a_key_once_there_are_some_unless_it_is_open(
    moot, forge, home, options, env
):
    assert moot("keys", "create", "first").returncode == 0
    async with server(forge, home, *options, **env) as serving:
        is_open = bool(options or env)
        assert (await serving.http.get(SESSIONS)).status_code == (200 if is_open else 401)
        serving.signal(SIGTERM)
        assert await serving.exit_code() == 0
    (log,) = home.glob("serve-*.txt")
    assert ("Open: whoever is on this machine needs no key" in log.read_text("utf-8")) == is_open


def test_serve_is_open_on_this_machine_alone(moot):
    seen = moot("serve", "--open", "--host", "0.0.0.0")
    assert (seen.returncode, "--open is for this machine alone" in seen.stderr) == (2, True)


async def test_serve_answers_over_http_what_the_command_line_prints(moot, forge, home):
    async with server(forge, home) as serving:
        port = serving.http.base_url.port
        asked = {"symbol": "900003.DEMO", "experts": ALL, "as_of": "2026-06-30", "locale": "en-US"}
        over_http = (await serving.http.post(RESEARCH, json=asked)).json()
        command = ("research", "900003.DEMO", "--as-of", "2026-06-30", "--json")
        printed = json.loads((await asyncio.to_thread(moot, *command)).stdout)
        assert over_http.pop("session_id") != printed.pop("session_id")
        assert over_http == printed
        serving.signal(SIGTERM)
        assert await serving.exit_code() == 0
    (log,) = home.glob("serve-*.txt")
    (told,) = log.read_text(encoding="utf-8").splitlines()
    assert f"http://127.0.0.1:{port}/docs" in told


async def test_an_ipv6_address_is_told_as_a_browser_takes_it(monkeypatch, capsys):
    async def listen(self, sockets=None):
        return None

    monkeypatch.setattr(uvicorn.Server, "startup", listen)
    await DrainingServer(
        uvicorn.Config("moot.main:create_app", host="::1", port=8000), worker=False
    ).startup()
    assert "http://[::1]:8000/docs" in capsys.readouterr().out


async def test_serve_says_that_it_listens_once_it_does(forge, home):
    port, log = free_port(), home / "serve.txt"
    log.touch()
    env = {"MOOT_HOME": str(home), "LANG": "en_US.UTF-8"}
    pid = await forge.start("serve", "--port", str(port), log=log, **env)
    async with asyncio.timeout(IN_TIME):
        while f"Moot listens on http://127.0.0.1:{port}" not in log.read_text(encoding="utf-8"):
            await asyncio.sleep(0.001)
    socket.create_connection(("127.0.0.1", port)).close()
    os.kill(pid, SIGTERM)
    assert await forge.ended(pid, within=IN_TIME) == 0

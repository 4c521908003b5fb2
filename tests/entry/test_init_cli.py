"""`moot init`: a desk is set up by answers or options, wholly or not at all."""

import json
import os
import signal
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest

from moot.shared.infrastructure.home import NotSimple, change_settings
from tests.entry.test_cli import MOOT, environment
from tests.fakes.clock import PATIENCE
from tests.fakes.llm_server import LLMServer, Status

KEY = "canary-init-51c0de77"
TOKEN = "token-init-90ab12ef"
OTHER = "9"
"""The last of the models to choose from: any endpoint."""


def answers(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def settings_in(home: Path) -> dict[str, object]:
    file = home / "settings.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def with_model(server: LLMServer) -> tuple[str, ...]:
    return ("init", "--yes", "--base-url", server.url, "--model", "fake-1", "--key-env", "K")


async def test_every_question_can_be_skipped(moot, home):
    seen = await moot("init", typed=answers("", "", "", ""))
    assert seen.returncode == 0, seen.stderr
    assert "Now: language en-US; models: none; market data: none; web search: none." in seen.stdout
    assert "Nothing was changed." in seen.stdout
    assert "Next: moot research 900001.DEMO" in seen.stdout
    assert not (home / "settings.toml").exists()


async def test_answers_set_up_the_desk_in_the_language_chosen_first(moot, home, llm_server):
    typed = answers(
        "1", OTHER, llm_server.url, "fake-1", KEY, "tushare", TOKEN, "searxng", "http://127.0.0.1:8888"
    )
    seen = await moot("init", typed=typed)
    assert seen.returncode == 0, seen.stdout + seen.stderr
    assert "✓ 回答：" in seen.stdout
    assert "此处不测试 token" in seen.stdout
    assert settings_in(home) == {
        "locale": "zh-CN",
        "tushare_token": TOKEN,
        "searxng_url": "http://127.0.0.1:8888",
    }
    assert stat.S_IMODE((home / "settings.toml").stat().st_mode) == 0o600
    assert [request.headers["Authorization"] for request in llm_server.requests] == [f"Bearer {KEY}"]

    listed = await moot("llm", "list")
    assert "custom" in listed.stdout
    assert "启用" in listed.stdout, "the language of the settings wins over the terminal's"
    holding = [path.name for path in home.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert holding == []


async def test_options_answer_and_nothing_is_asked(moot, home, llm_server):
    options = ("--locale", "en-US", "--tushare-token-env", "T", "--search", "bocha", "--search-key-env", "B")
    seen = await moot(*with_model(llm_server), *options, K=KEY, T=TOKEN, B="bocha-key-123")
    assert seen.returncode == 0, seen.stderr
    assert settings_in(home) == {"locale": "en-US", "tushare_token": TOKEN, "bocha_api_key": "bocha-key-123"}
    assert "Written to" in seen.stdout
    assert "The model custom is stored in sqlite" in seen.stdout
    assert KEY not in seen.stdout + seen.stderr
    assert TOKEN not in seen.stdout + seen.stderr


async def test_again_it_shows_what_is_set_and_changes_only_what_is_answered(moot, home, llm_server):
    await moot(*with_model(llm_server), "--tushare-token-env", "T", K=KEY, T=TOKEN)
    typed = answers("", OTHER, llm_server.url, "fake-2", "", "", "")
    seen = await moot("init", typed=typed)
    assert "models: custom (fake-1); market data: tushare" in seen.stdout
    assert "Enter: keep the stored one" in seen.stdout
    assert settings_in(home) == {"tushare_token": TOKEN}
    listed = (await moot("llm", "list")).stdout
    assert ("fake-2" in listed, "fake-1" in listed, "can...de77" in listed) == (True, False, True)
    assert llm_server.requests[-1].headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(("answer", "kept"), [("y", True), ("n", False), ("", False)])
async def test_a_model_that_does_not_work_is_kept_only_if_wanted(moot, llm_server, answer, kept):
    llm_server.default = Status(401, json.dumps({"error": {"message": f"bad key {KEY}"}}))
    seen = await moot("init", typed=answers("", OTHER, llm_server.url, "fake-1", KEY, answer, "", ""))
    assert "✗ answers: " in seen.stdout
    assert seen.returncode == (0 if kept else 1)
    assert ("fake-1" in (await moot("llm", "list")).stdout) == kept


async def test_without_questions_a_model_that_does_not_work_is_dropped_and_the_rest_is_set(
    moot, home, llm_server
):
    llm_server.default = Status(400, "{}")
    seen = await moot(*with_model(llm_server), "--locale", "en-US", K=KEY)
    assert (seen.returncode, "was not stored" in seen.stdout) == (1, True)
    assert settings_in(home) == {"locale": "en-US"}


async def test_the_trial_is_on_the_record_but_the_model_is_not_stored_before_the_end(moot, llm_server):
    seen = await moot("init", typed=answers("", OTHER, llm_server.url, "fake-1", KEY))
    assert (seen.returncode, "Interrupted." in seen.stderr) == (1, True)
    assert "fake-1" in (await moot("llm", "usage")).stdout
    assert "No language model is configured" in (await moot("llm", "list")).stdout


async def test_a_person_who_enters_something_impossible_is_asked_again(moot, llm_server):
    typed = answers(
        "", "77", OTHER, "nowhere", "fake-1", "", OTHER, llm_server.url, "fake-1", "", "", "2", "soon", ""
    )
    seen = await moot("init", typed=typed)
    assert "77 is not one of these." in seen.stdout
    assert "base_url: write a full address" in seen.stdout
    assert "soon is not an address" in seen.stdout
    assert seen.returncode == 0, seen.stdout + seen.stderr
    assert "fake-1" in (await moot("llm", "list")).stdout


BAD = {
    "unknown preset": (("--preset", "wizard"), "--preset: wizard is not known. Allowed: openai, deepseek"),
    "unknown search": (
        ("--search", "altavista"),
        "--search: altavista is not known. Allowed: bocha, searxng.",
    ),
    "search without key": (("--search", "bocha"), "--search-key-env is missing."),
    "search without address": (("--search", "searxng"), "--search-url is missing."),
    "variable not set": (("--tushare-token-env", "NOT_SET"), "NOT_SET is not set"),
    "preset without key": (("--preset", "deepseek"), "'deepseek' needs a key"),
    "model without endpoint": (("--model", "x"), "base_url: is required"),
}


@pytest.mark.parametrize(("options", "sentence"), BAD.values(), ids=BAD)
async def test_options_that_make_no_sense_change_nothing(moot, home, options, sentence):
    seen = await moot("init", "--yes", "--locale", "en-US", *options)
    assert (seen.returncode, sentence in seen.stderr) == (2, True), seen.stderr
    assert settings_in(home) == {}


async def test_another_web_search_takes_the_place_of_the_first(moot, home):
    bocha = ("--search", "bocha", "--search-key-env", "B")
    await moot("init", "--yes", *bocha, B="bocha-key-123")
    await moot("init", "--yes", "--search", "searxng", "--search-url", "http://127.0.0.1:8888")
    assert settings_in(home) == {"searxng_url": "http://127.0.0.1:8888"}
    assert "web search: SearXNG" in (await moot("init", "--yes")).stdout


async def test_the_environment_wins_over_the_file_and_init_says_so(moot):
    seen = await moot("init", "--yes", "--locale", "en-US", MOOT_LOCALE="zh-CN")
    assert "MOOT_LOCALE" in seen.stdout
    assert "language zh-CN" not in seen.stdout


async def test_where_nothing_is_stored_no_model_can_be_set_up(moot):
    seen = await moot("init", typed=answers("", "", ""), MOOT_PERSISTENCE="off")
    assert (seen.returncode, "set MOOT_LLM_BASE_URL" in seen.stdout) == (0, True)
    refused = await moot("init", "--yes", "--preset", "ollama", MOOT_PERSISTENCE="off")
    assert (refused.returncode, "set MOOT_LLM_BASE_URL" in refused.stderr) == (1, True)


def test_ctrl_c_leaves_nothing_half_written(home):
    process = subprocess.Popen(
        [MOOT, "init", "--locale", "en-US"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home, PYTHONUNBUFFERED="1"),
    )
    assert process.stdin
    assert process.stdout
    shown = b""
    while b"Enter: skip" not in shown:
        shown += os.read(process.stdout.fileno(), 4096)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, b"Interrupted." in err, b"Traceback" in err) == (1, True, False)
    assert not list(home.glob("*settings.toml*"))


def written(home: Path, before: str, changes: dict[str, str | None]) -> str:
    file = home / "settings.toml"
    file.write_text(before, encoding="utf-8")
    change_settings(file, changes)
    return file.read_text(encoding="utf-8")


def test_other_keys_comments_and_tables_stay(home):
    before = '# mine\nlog_level = "debug"  # loud\nlocale = "zh-CN"\nold = "x"\n\n[data_order]\nbars = ["akshare"]\n'
    after = written(home, before, {"locale": "en-US", "old": None, "searxng_url": 'http://x/"\\n'})
    assert after.splitlines()[:3] == ["# mine", 'log_level = "debug"  # loud', 'locale = "en-US"']
    assert tomllib.loads(after) == {
        "log_level": "debug",
        "locale": "en-US",
        "searxng_url": 'http://x/"\\n',
        "data_order": {"bars": ["akshare"]},
    }


@pytest.mark.parametrize(
    "odd", ['"locale" = "zh-CN"\n', 'locale = """\nzh-CN"""\n', 'x = [\n["locale"],\n]\n']
)
def test_a_file_written_in_a_way_nobody_foresaw_is_left_alone(bare_home, odd):
    with pytest.raises(NotSimple):
        written(bare_home, odd, {"locale": "en-US"})
    assert (bare_home / "settings.toml").read_text() == odd
    assert [path.name for path in bare_home.iterdir()] == ["settings.toml"]


def test_a_linked_file_stays_linked_and_becomes_private(home):
    real = home / "elsewhere.toml"
    real.write_text("")
    real.chmod(0o644)
    (home / "settings.toml").symlink_to(real)
    change_settings(home / "settings.toml", {"locale": "en-US"})
    assert (home / "settings.toml").is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert tomllib.loads(real.read_text()) == {"locale": "en-US"}

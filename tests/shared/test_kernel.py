"""Symbol, settings, logs and the weight of an import."""

import json
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
import structlog

from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import nearest, shorten
from moot.shared.domain.symbol import Market, Symbol
from moot.shared.domain.validation import invalid_input, quote
from moot.shared.infrastructure.execution_context import ExecutionContext, current_execution_ctx
from moot.shared.infrastructure.logging import Unfailing, configure_logging
from moot.shared.infrastructure.settings import load_settings


@pytest.mark.parametrize(
    ("text", "canonical", "market"),
    [
        ("600519.SH", "600519.SH", Market.CN),
        (" 000001.sz ", "000001.SZ", Market.CN),
        ("830799.BJ", "830799.BJ", Market.CN),
        ("AAPL", "AAPL", Market.US),
        ("brk.b", "BRK.B", Market.US),
        ("900001.DEMO", "900001.DEMO", Market.DEMO),
    ],
)
def test_symbols_are_read_in_the_spelling_of_their_market(text, canonical, market):
    assert (Symbol.parse(text).text, Symbol.parse(text).market) == (canonical, market)


@pytest.mark.parametrize("text", ["", "60051", "600519", "600519.XX", "900001.DEMO.SH", "茅台", "A" * 300])
def test_what_is_no_symbol_says_how_one_is_written(text):
    with pytest.raises(InvalidInput, match=r"Write 600519\.SH, AAPL"):
        Symbol.parse(text)


def test_a_date_is_the_exchanges_own():
    evening_in_london = datetime(2026, 6, 30, 20, 0, tzinfo=UTC)
    assert Symbol.parse("600519.SH").local_date(evening_in_london) == date(2026, 7, 1)
    assert Symbol.parse("AAPL").local_date(evening_in_london) == date(2026, 6, 30)


def test_only_the_demo_market_is_synthetic():
    assert [Symbol.parse(s).synthetic for s in ("900001.DEMO", "600519.SH", "AAPL")] == [True, False, False]


def test_settings_work_without_any_environment(monkeypatch):
    for name in ("MOOT_HOME", "MOOT_DATABASE_URL", "MOOT_PERSISTENCE"):
        monkeypatch.delenv(name, raising=False)
    settings = load_settings()
    assert settings.home == Path.home() / ".moot"
    assert settings.resolved_database_url == f"sqlite:///{Path.home() / '.moot' / 'moot.db'}"
    assert settings.persistence is True


def test_settings_come_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("MOOT_HOME", str(tmp_path))
    monkeypatch.setenv("MOOT_PERSISTENCE", "off")
    monkeypatch.setenv("MOOT_DATABASE_URL", "postgresql://u@h/d")
    settings = load_settings()
    assert (settings.home, settings.persistence) == (tmp_path, False)
    assert settings.resolved_database_url == "postgresql://u@h/d"


def test_a_wrong_setting_is_named(monkeypatch):
    monkeypatch.setenv("MOOT_NODE_TIMEOUT", "soon")
    with pytest.raises(InvalidInput, match=r"MOOT_NODE_TIMEOUT: .*number"):
        load_settings()


@pytest.mark.parametrize(
    ("name", "value", "english", "chinese"),
    [
        ("MOOT_PERSISTENCE", "perhaps", "must be true or false, not 'perhaps'", "应为 true 或 false"),
        ("MOOT_NODE_TIMEOUT", "soon", "must be a number, not 'soon'", "应为数字"),
        ("MOOT_MIN_GROUNDING", "7", "'7' is out of range. Allowed: <= 1.0", "超出范围"),
        ("MOOT_ANALYST", "rubrik", "'rubrik' is not known. Did you mean rubric?", "rubric"),
        ("MOOT_DATA_ORDER", "akshare", "is not valid JSON", "JSON"),
    ],
)
def test_what_is_wrong_with_a_setting_is_said_in_both_languages(monkeypatch, name, value, english, chinese):
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInput) as wrong:
        load_settings()
    assert wrong.value.code == "SETTINGS_INVALID"
    assert wrong.value.in_locale("en-US").startswith(f"{name}: {english}")
    said = wrong.value.in_locale("zh-CN")
    assert said.startswith(f"{name}：")
    assert chinese in said


@pytest.mark.parametrize(
    ("file", "english"),
    [
        ("max_sessions = []", "MOOT_MAX_SESSIONS: must be a whole number, not []"),
        ("llm_api_key = 12345678", "MOOT_LLM_API_KEY: must be text, not number."),
        ("locale =", "settings.toml: is not valid TOML"),
    ],
)
def test_so_is_what_is_wrong_in_the_file_of_settings_but_not_a_secret(monkeypatch, tmp_path, file, english):
    monkeypatch.setenv("MOOT_HOME", str(tmp_path))
    (tmp_path / "settings.toml").write_text(file)
    with pytest.raises(InvalidInput) as wrong:
        load_settings()
    assert wrong.value.in_locale("en-US").startswith(english)
    assert "Input should" not in wrong.value.in_locale("zh-CN")


@pytest.mark.accepts("A2-07")
def test_outside_of_a_session_there_is_no_execution_context():
    assert current_execution_ctx.get() is None
    context = ExecutionContext(session_id="x")
    assert (context.session_id, context.locale, context.workspace) == ("x", "zh-CN", "default")


def test_a_log_line_says_which_session_it_belongs_to(tmp_path):
    log = tmp_path / "logs" / "moot.log"
    before = structlog.get_config()
    try:
        configure_logging("info", log)
        with ExecutionContext(session_id="the-session").active():
            structlog.get_logger("x").info("happened", name="青禾")
            structlog.get_logger("x").debug("too fine")
    finally:
        structlog.get_config()["logger_factory"]._file._stream.close()
        structlog.configure(**before)
    (line,) = log.read_text(encoding="utf-8").splitlines()
    entry = json.loads(line)
    assert (entry["event"], entry["name"], entry["session_id"]) == ("happened", "青禾", "the-session")
    assert entry["timestamp"].endswith("Z")
    assert "青禾" in line


def test_a_log_that_cannot_be_written_is_lost_and_nothing_else():
    full = Path("/dev/full").open("w", buffering=1)  # noqa: SIM115 (closing it fails too)
    log = Unfailing(full)
    log.write("nobody will read this\n")
    log.flush()
    with pytest.raises(OSError, match="No space"):
        full.close()
    log.write("nor this\n")


@pytest.mark.parametrize("statement", ["import moot", "import moot.cli"])
def test_importing_moot_or_its_command_line_loads_nothing_heavy(statement):
    heavy = ("langgraph", "pandas", "numpy", "fastapi", "sqlalchemy", "pydantic", "talib", "rich.live")
    probe = f"import sys; {statement}; print([m for m in {heavy!r} if m in sys.modules])"
    seen = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "[]"


def test_the_sdk_is_one_import_away():
    probe = "from moot import Moot; print(Moot.__module__)"
    seen = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "moot"


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (("body", "query"), "query"),
        (("query", "page"), "page"),
        (("body", "steps", 0, "query"), "steps.0.query"),
        (("steps", "path"), "steps.path"),
        (("query",), "query"),
        (("body",), "body"),
        ((), "body"),
    ],
)
def test_a_field_may_have_the_name_of_a_part_of_the_request(path, field):
    refused = invalid_input([{"type": "missing", "loc": path, "msg": "Field required", "input": {}}])
    assert refused.details["errors"][0]["field"] == field


@pytest.mark.parametrize(
    ("text", "most", "cut"),
    [
        ("short", 10, "short"),
        ("the price is 1234.56 yuan", 18, "the price is …"),
        ("the price is 1234.56 yuan", 21, "the price is 1234.56…"),
        ("一共 12,345.6% 的", 9, "一共 …"),
        ("1234567890", 5, "…"),
    ],
)
def test_a_text_is_cut_but_never_a_number_in_it(text, most, cut):
    assert shorten(text, most) == cut
    assert len(cut) <= max(most, 1)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        ("x" * 500, 82),
    ],
)
def test_what_somebody_sent_is_shown_without_pythons_words(value, shown):
    told = quote(value)
    assert told == shown if isinstance(shown, str) else len(told) <= shown


def test_the_nearest_names_are_found_whatever_the_case():
    assert nearest("Macro_Inteligence", ["macro_intelligence", "valuation_modeler"]) == ["macro_intelligence"]
    assert nearest("x" * 10**6, ["y"]) == []

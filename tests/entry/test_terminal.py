"""What a terminal shows: lines that fit, in any script, and a live table."""

import io
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from moot.cli.printing import Prose, flow
from moot.cli.research_view import progress_for
from moot.modules.coordinator.application.session_history import SessionEvent

SENTENCE = "估值建模师［Undervalued，0.67］：现价 21.06 元，估值偏低，更像机会而非价值陷阱。"


def wrap(text: str, width: int) -> list[str]:
    return [line.plain for line in flow(Text(text), width)]


@pytest.mark.parametrize("width", range(16, 40))
def test_chinese_breaks_between_characters_but_not_from_its_punctuation(width):
    lines = wrap(SENTENCE, width)
    assert "".join(lines).replace(" ", "") == SENTENCE.replace(" ", "")
    assert all(cell_len(line) <= width for line in lines)
    assert not any(line.startswith(tuple("，。：；］")) or line.endswith("［") for line in lines)


def test_english_breaks_between_words():
    assert wrap("the quick brown fox", 10) == ["the quick", "brown fox"]


@given(st.text(alphabet="ab 中文，。1", max_size=60), st.integers(4, 30))
def test_wrapping_loses_nothing_but_spaces_at_the_ends_of_lines(text, width):
    lines = wrap(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())


def rendered(what, width=40) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)
    console.print(what)
    return console.file.getvalue()


def test_a_point_is_cut_to_what_a_screen_can_hold():
    assert rendered(Prose("x" * 10 + " " + "y" * 300, most=20)).strip() == "xxxxxxxxxx yyyyyyyy…"


def test_of_a_point_that_is_cut_the_end_is_kept():
    assert (
        rendered(Prose("x" * 10 + " " + "y" * 300, most=24, end=" a.b")).strip() == "xxxxxxxxxx yyyyyyyy… a.b"
    )
    assert rendered(Prose("short", most=24, end=" a.b")).strip() == "short a.b"


def test_a_number_is_never_cut_in_two():
    assert rendered(Prose("价格为 1234.56 元" * 9, most=12)).strip() == "价格为 …"


def told(kind: str, **data) -> SessionEvent:
    return SessionEvent(seq=1, type=kind, at=datetime(2026, 6, 30, tzinfo=UTC), data=data)


@pytest.mark.parametrize("locale", ["zh-CN", "en-US"])
def test_the_live_table_follows_the_run(locale):
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    asked = {"experts": ["macro_intelligence", "valuation_modeler"], "skip_debate": False, "locale": locale}
    with progress_for(console, asked, quiet=False) as watch:
        watch(told("session", status="running"))
        watch(told("node_started", node="macro_intelligence"))
        seen = {"status": "success", "signal": "Neutral (中性)", "confidence": 0.41, "reused": False}
        watch(told("node_finished", node="macro_intelligence", duration_ms=12, **seen))
        watch(told("node_failed", node="valuation_modeler", duration_ms=3, error="no reports [red]"))
        watch(told("node_finished", node="judge", duration_ms=1, status="skipped", reused=False))
    last = console.file.getvalue().splitlines()[-5:]
    words = {
        "zh-CN": ["宏观情报员", "完成", "中性 41%", "12 毫秒", "失败", "no reports [red]", "等待", "跳过"],
        "en-US": [
            "Macro intelligence",
            "done",
            "neutral 41%",
            "12 ms",
            "failed",
            "no reports [red]",
            "waiting",
            "skipped",
        ],
    }[locale]
    for word in words:
        assert word in "\n".join(last)


def test_a_question_that_is_refused_leaves_no_table_behind():
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    asked = {"experts": ["macro_intelligence"], "skip_debate": True, "locale": "en-US"}
    with progress_for(console, asked, quiet=False):
        pass
    assert "Macro" not in console.file.getvalue()

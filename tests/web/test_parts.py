"""What pages are made of: figures by language, charts without styles, what is packed and under which licence."""

import re
import subprocess
import sys
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest

import moot.web
from moot.web.charts import Bar, Range, Span, bar_chart, football_field, gantt_chart, line_chart
from moot.web.formats import filters
from moot.web.page import market_of

WEB = Path(moot.web.__path__[0])
ROOT = WEB.parents[2]
NOW = datetime(2026, 6, 30, 10, 0, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>\"'&"


@pytest.mark.parametrize(
    ("name", "value", "arguments", "chinese", "english"),
    [
        ("number", 1234.5, (), "1,234.50", "1,234.50"),
        ("number", 12, (), "12", "12"),
        ("number", -3.14159, (1,), "−3.1", "−3.1"),
        ("number", None, (), "—", "—"),
        ("number", float("nan"), (), "—", "—"),
        ("number", -0.25, (2,), "−0.25", "−0.25"),
        ("percent", 0.1234, (), "12.3%", "12.3%"),
        ("money", 1.5e9, ("CNY",), "¥15.00亿", "¥1.50 bn"),
        ("money", 25_000, ("USD",), "$2.50万", "$25,000.00"),
        ("money", 3, ("HKD",), "HKD 3.00", "HKD 3.00"),
        ("seconds", 12, (), "12毫秒", "12 ms"),
        ("seconds", 1500, (), "1.5秒", "1.5 s"),
        ("seconds", 125_000, (), "2分5秒", "2 min 5 s"),
        ("seconds", 3_700_000, (), "1小时1分", "1 h 1 min "),
        ("day", "2026-06-30T10:00:00Z", (), "2026-06-30", "2026-06-30"),
    ],
)
def test_figures_are_told_as_a_language_tells_them(name, value, arguments, chinese, english):
    assert [filters(locale)[name](value, *arguments) for locale in ("zh-CN", "en-US")] == [chinese, english]


def test_a_moment_is_in_utc_until_a_browser_knows_better():
    told = '<time datetime="2026-06-30T10:00+00:00" class="moment">2026-06-30 10:00 UTC</time>'
    assert filters("zh-CN")["moment"](NOW.astimezone()) == told


@pytest.mark.parametrize(
    ("symbol", "market"), [("600519.SH", "cn"), ("900001.DEMO", "cn"), ("AAPL", "other"), (HOSTILE, "other")]
)
def test_a_rise_is_coloured_by_its_market(symbol, market):
    assert market_of(symbol) == market


CHARTS = {
    "line": line_chart([3, 1, 2], label=HOSTILE),
    "flat": line_chart([2, 2], label=HOSTILE),
    "bars": bar_chart([Bar(HOSTILE, 0.5, "for"), Bar("b", -0.2, "against")], label=HOSTILE),
    "gantt": gantt_chart(
        [Span(HOSTILE, NOW, NOW, "success"), Span("b", NOW, NOW + timedelta(seconds=3), note=HOSTILE)],
        label=HOSTILE,
    ),
    "football": football_field([Range(HOSTILE, 1, 3, 2), Range("b", 2, 5)], label=HOSTILE, price=2.5),
}


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_sound_says_what_it_shows_and_needs_no_style(name):
    drawn = ElementTree.fromstring(CHARTS[name])
    assert (drawn.get("role"), drawn[0].tag, drawn[0].text) == ("img", "title", HOSTILE)
    assert [one.tag for one in drawn.iter() if "style" in one.attrib or one.tag == "script"] == []
    assert "nan" not in CHARTS[name]


def test_a_chart_of_nothing_is_nothing():
    assert line_chart([1], label="") == bar_chart([], label="") == gantt_chart([], label="") == ""


def test_higher_is_drawn_higher():
    path = ElementTree.fromstring(line_chart([1, 5], label=""))[-1].get("d", "")
    first, last = (float(y) for _, y in re.findall(r"([\d.]+),([\d.]+)", path))
    assert last < first


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        folder,
        ROOT,
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_all_that_pages_need_is_packed_in_less_than_a_megabyte(wheel):
    packed = {
        one.filename: one.compress_size for one in wheel.infolist() if one.filename.startswith("moot/web/")
    }
    files = {f"moot/web/{file.relative_to(WEB)}" for file in WEB.rglob("*") if file.is_file()}
    assert {name for name in files if "__pycache__" not in name} == set(packed)
    assert sum(packed.values()) < 1_000_000
    assert sum(wheel.getinfo(name).file_size for name in packed if "/static/" in name) < 1_000_000


def test_what_others_wrote_has_its_licence_beside_it():
    for folder in (WEB / "static").iterdir():
        if folder.is_dir():
            assert "WARRANT" in (folder / "LICENSE").read_text("utf-8").upper()


def test_pages_load_nothing_from_elsewhere_and_run_nothing_inline():
    for template in (WEB / "templates").glob("*.html"):
        text = template.read_text("utf-8")
        assert not re.search(r'(?:src|href)="(?:https?:)?//(?!www\.tradingview\.com/")', text), template.name
        assert not re.search(r"<script>|<style|\sstyle=|\son[a-z]+=|\|\s*safe", text), template.name


def test_every_text_of_a_template_exists():
    from moot.web.page import SAY

    known = SAY.texts("en-US")
    for template in (WEB / "templates").glob("*.html"):
        for key in re.findall(r"""say\(["']([\w.]+)["'][,)]""", template.read_text("utf-8")):
            assert key in known, f"{template.name}: {key}"

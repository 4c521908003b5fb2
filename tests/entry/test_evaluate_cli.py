"""`moot evaluate walk` as a user runs it, on the demo market."""

import json
from pathlib import Path

import pytest

from tests.entry.inside import Run

SHARES = ("900001.DEMO", "900002.DEMO")
MONTHS = ("--from", "2025-11", "--to", "2026-01", "--tune-until", "2025-12-01")


async def test_a_walk_is_told_in_both_languages_and_written_the_same_again(moot: Run, tmp_path: Path) -> None:
    (tmp_path / "shares").write_text("\n".join(SHARES), encoding="utf-8")
    one, two, chinese = (tmp_path / name for name in ("one", "two", "chinese"))
    for to, which in ((one, SHARES), (two, ("--symbols", str(tmp_path / "shares")))):
        ran = await moot("evaluate", "walk", *which, *MONTHS, "--out", f"{to}.md", "--json", f"{to}.json")
        assert ran.returncode == 0, ran.stderr
        assert "sides drawn by lot" in ran.stdout
    for kind in ("md", "json"):
        written = [to.with_suffix(f".{kind}").read_bytes() for to in (one, two)]
        assert written[0] == written[1]
    found = json.loads(one.with_suffix(".json").read_text(encoding="utf-8"))
    assert [len(found["observations"]), len(found["days"])] == [6, 3]
    assert (found["figures"]["tuning"]["dates"], found["figures"]["reporting"]["dates"]) == (1, 2)
    page = one.with_suffix(".md").read_text(encoding="utf-8")
    assert "## Reported" in page and "## Tuning" in page and "| Technical analyst |" in page
    ran = await moot("evaluate", "walk", *SHARES, *MONTHS, "--out", str(chinese), LANG="zh_CN.UTF-8")
    assert "随机抽取立场" in ran.stdout
    assert "| 技术分析师 |" in chinese.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "english", "chinese"),
    [
        (("--from", "July"), "--from: July is no month", "--from：July 不是月份"),
        ((), "There are no bars of any company", "没有任何公司的日线"),
        (("600519.SH", "900001.DEMO"), "A walk keeps to one market", "一次只能评估一个市场"),
        (("900001.DEMO", "--from", "2040-01", "--to", "2040-02"), "has ended by now", "没有已结束的月份"),
        ((*SHARES, *MONTHS, "--out", "/no/such/folder/page.md"), "cannot be written", "无法写入"),
    ],
)
async def test_what_cannot_be_done_is_a_sentence(
    moot: Run, arguments: tuple[str, ...], english: str, chinese: str
) -> None:
    for language, said in (("en_US.UTF-8", english), ("zh_CN.UTF-8", chinese)):
        ran = await moot("evaluate", "walk", *arguments, LANG=language)
        assert (ran.returncode, said in ran.stderr) == (2, True), ran.stdout + ran.stderr

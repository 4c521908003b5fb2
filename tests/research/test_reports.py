"""What holds for all five experts: JSON, both languages, the same answer twice, and no number from nowhere."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moot.modules import research
from moot.shared.domain.messages import LOCALES, Catalogue, Locale
from tests.fakes.research import FakeMarketFacts, bars_of
from tests.research.cases import EXPERTS, RISING, healthy_reports, waves

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
SCALES = (1.0, 1e8, 1e9)


def body(report: dict[str, Any]) -> dict[str, Any]:
    """The result's own fields: nested for the catalyst detective, at the top for the others."""
    nested: dict[str, Any] = report.get("result", report)
    return nested


def numbers_in(value: Any) -> Iterator[float]:
    """Every number in a structure, those inside its texts too."""
    if isinstance(value, dict):
        for member in value.values():
            yield from numbers_in(member)
    elif isinstance(value, list):
        for member in value:
            yield from numbers_in(member)
    elif isinstance(value, str):
        yield from (float(n.replace(",", "")) for n in NUMBER.findall(value))
    elif isinstance(value, int | float):
        yield abs(float(value))


def templates(locale: Locale) -> Iterator[str]:
    for path in Path(research.__file__).parent.rglob(f"{locale}.toml"):
        yield from Catalogue(path.parent).texts(locale).values()


def ungrounded(report: dict[str, Any], locale: Locale) -> list[str]:
    """Numbers of the narrative that are neither evidence, nor a field of the result, nor part of a template."""
    result = body(report)
    fields = {k: v for k, v in result.items() if k not in PROSE}
    snapshots = [v for k, v in report.items() if k.endswith(("_indicators", "_context"))]
    given = set(numbers_in([report["evidence"], snapshots, fields]))
    given |= {n for text in templates(locale) for n in numbers_in(re.sub(r"{.*?}", "", text))}
    return [n for n in NUMBER.findall(report["narrative_report"]) if not _is_one_of(n, given)]


PROSE = {"narrative_report", "input", "output", "summary_reasoning", "reasoning_summary", "macro_summary"}


def _is_one_of(quoted: str, given: set[float]) -> bool:
    digits = len(quoted.partition(".")[2])
    value = float(quoted.replace(",", ""))
    return any(abs(value - g / scale) <= 0.5 * 10**-digits + 1e-9 for g in given for scale in SCALES)


@pytest.mark.accepts("A2-15")
@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("expert", EXPERTS)
async def test_every_number_in_the_narrative_was_given(expert: str, locale: Locale) -> None:
    assert ungrounded(await EXPERTS[expert](RISING, locale), locale) == []


async def test_the_check_sees_a_number_that_was_not_given() -> None:
    report = await EXPERTS["technical"](RISING, "zh-CN")
    report["narrative_report"] += "目标价 98765.43 元。"
    assert ungrounded(report, "zh-CN") == ["98765.43"]


@pytest.mark.accepts("A2-14", "A2-15")
@pytest.mark.parametrize("expert", EXPERTS)
async def test_the_narrative_has_conclusion_evidence_risks_and_confidence(expert: str) -> None:
    report = await EXPERTS[expert](RISING, "zh-CN")
    text = report["narrative_report"]
    assert 300 <= len(text) <= 800
    titles = ("核心结论：", "有利因素：", "不利因素：", "风险提示：", "置信度：")
    assert [title for title in titles if text.count(title) != 1] == []
    parts = re.split("|".join(titles), text)[1:]
    assert [titles[i] for i, part in enumerate(parts[:-1]) if len(CHINESE.findall(part)) < 8] == []
    confidence = body(report).get("confidence", body(report).get("confidence_score"))
    assert f"{confidence:.0%}" in parts[-1] or f"{confidence:.2f}" in parts[-1]


@pytest.mark.parametrize("expert", EXPERTS)
async def test_in_english_nothing_but_literals_is_chinese(expert: str) -> None:
    report = await EXPERTS[expert](RISING, "en-US")
    assert not re.search(r"[\u4e00-\u9fff]", report["narrative_report"])
    assert 120 <= len(report["narrative_report"].split()) <= 400
    assert "Mirage Hill Distillers" in report["narrative_report"]


@pytest.mark.parametrize("expert", EXPERTS)
async def test_enum_literals_and_numbers_do_not_depend_on_the_language(expert: str) -> None:
    chinese, english = [await EXPERTS[expert](RISING, locale) for locale in LOCALES]
    judged = [k for k, v in body(chinese).items() if k in JUDGED or isinstance(v, int | float)]
    assert {k: body(chinese)[k] for k in judged} == {k: body(english)[k] for k in judged}
    assert len(judged) >= 2


JUDGED = {"signal", "valuation_verdict", "macro_environment", "catalyst_assessment"}


@pytest.mark.parametrize("expert", EXPERTS)
async def test_the_same_facts_give_the_same_answer(expert: str) -> None:
    assert await EXPERTS[expert](RISING, "zh-CN") == await EXPERTS[expert](RISING, "zh-CN")


@pytest.mark.parametrize("expert", EXPERTS)
async def test_the_answer_is_plain_json_and_says_who_gave_it(expert: str) -> None:
    report = await EXPERTS[expert](RISING, "zh-CN")
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert report["engine"] == "rubric"
    assert {"id", "value", "unit", "source", "as_of"} == set(report["evidence"][0])
    assert all(item["id"].startswith(f"{expert}.") for item in report["evidence"])


@pytest.mark.parametrize("expert", ["technical", "financial", "valuation", "macro"])
async def test_the_record_shows_what_was_read_and_how_it_was_scored(expert: str) -> None:
    report = await EXPERTS[expert](RISING, "zh-CN")
    first = report["evidence"][0]
    assert f"{first['id']} = {first['value']}" in report["input"]
    assert report["output"].splitlines()[-1].startswith("合计 ")
    assert f"{expert}_indicators" in report


async def test_other_facts_give_another_text() -> None:
    falling = FakeMarketFacts(daily=bars_of(waves(240, -0.003)), filed=healthy_reports(growth=0.8))
    for expert in ("technical", "financial"):
        one, other = [await EXPERTS[expert](facts, "zh-CN") for facts in (RISING, falling)]
        assert one["narrative_report"] != other["narrative_report"]
        assert one["summary_reasoning"] != other["summary_reasoning"]

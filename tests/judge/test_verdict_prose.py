"""A verdict as it is read: its first line, and that no sentence stands twice in it, over synthetic cases and the demo
market, in both languages.
"""

import re
from datetime import date
from itertools import chain

import pytest

from moot import Moot
from moot.modules.judge.application.judge_service import VerdictDTO
from moot.modules.judge.container import JudgeContainer
from moot.shared.domain.claims import Holder
from moot.shared.infrastructure.settings import Settings
from tests.fakes.debate import BY_RULE
from tests.fakes.judge import a_debate, argued, claim, evidence, last_time

LOCALES = ["zh-CN", "en-US"]
PRICED = evidence(current_price=10.0, atr_value=0.2, turnover_20d=1e9)
RSI, M2 = claim("technical.rsi", 0.5), claim("macro.m2", -0.25, "monetary")
PROSE = ("reasoning", "entry_strategy", "stop_loss", "take_profit", "narrative_report", "headline", "advice")
LENGTHS = {"zh-CN": (300, 800, len), "en-US": (150, 400, lambda text: len(text.split()))}
LISTED = ("risk_warnings", "would_change")
LITERALS = re.compile(r"\b(BUY|SELL|HOLD|BULLISH|BEARISH|NEUTRAL|probability|confidence)\b")


async def rule(**changes) -> VerdictDTO:
    debate = a_debate(**{"evidence": PRICED, "as_of": "2026-01-09T10:00:00Z"} | changes)
    return await JudgeContainer(2, *BY_RULE).judge_service().run(debate)


def sentences(verdict: dict) -> list[str]:
    texts = chain((verdict[name] or "" for name in PROSE), *(verdict[name] for name in LISTED))
    parts = chain.from_iterable(re.split(r"[。！？\n]|(?<=[.!?]) ", text) for text in texts)
    return [part.strip(" -") for part in parts if part.strip(" -")]


@pytest.mark.parametrize(
    ("locale", "line"),
    [
        ("en-US", "Buy: weight of the argument 0.70, at CNY 10.00 (close of 2026-01-09)."),
        ("zh-CN", "买入：论证分量 0.70，价格 10.00 元（2026-01-09 收盘）。"),
    ],
)
async def test_the_first_line_is_action_weight_price_and_day(locale, line):
    verdict = await rule(locale=locale, experts_asked=5, experts_heard=5, **argued(RSI, M2))
    assert verdict.headline == line
    assert (verdict.price.value, verdict.price.day) == (10.0, date(2026, 1, 9))


@pytest.mark.parametrize(
    ("locale", "said"),
    [
        ("en-US", ", on 2 of 5 experts only (Technical analyst, Macro intelligence)."),
        ("zh-CN", "，仅依据 5 位专家中的 2 位（技术分析师、宏观情报员）。"),
    ],
)
async def test_a_verdict_on_two_experts_says_so_in_its_first_line(locale, said):
    heard = ["technical_analyst", "macro_intelligence"]
    verdict = await rule(locale=locale, experts_asked=2, experts_heard=2, **argued(RSI, M2, heard=heard))
    assert verdict.headline.endswith(said)
    more = await rule(locale=locale, experts_asked=3, experts_heard=3, **argued(RSI, M2))
    assert "5" not in more.headline


@pytest.mark.parametrize(
    ("locale", "said"),
    [
        ("en-US", "Grave facts: “The claim catalyst.event.1 holds”. Buy"),
        ("zh-CN", "重大负面事项：“论点 catalyst.event.1 成立”。买入"),
    ],
)
async def test_grave_facts_come_first(locale, said):
    event = claim("catalyst.event.1", -0.5, "company", "catalyst.default")
    verdict = await rule(locale=locale, **argued(RSI, event))
    assert verdict.headline.startswith(said)
    assert verdict.grave == [event.text(locale)]
    assert (await rule(locale=locale, **argued(RSI, M2))).grave == []


@pytest.mark.parametrize(
    ("locale", "mark"), [("en-US", "as reported, not checked"), ("zh-CN", "据公开消息，未经核实")]
)
async def test_what_only_others_say_is_marked_wherever_it_is_quoted(locale, mark):
    event = claim("catalyst.event.1", 0.5, "company", "catalyst.default").model_copy(
        update={"reported": True}
    )
    case = argued(event, M2, decisive=[event.id])
    verdict = await rule(locale=locale, previous=last_time("HOLD"), **case)
    for text in (verdict.headline, verdict.reasoning):
        assert text.count(mark) == 1
    named = await rule(locale=locale, **argued(event, M2))
    assert named.narrative_report.count(mark) == 1


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("lean", [1, -1])
@pytest.mark.parametrize("conviction", [0.05, 0.16, 0.4])
async def test_no_sentence_stands_twice_and_no_word_is_of_the_other_language(lean, conviction, locale):
    case = argued(RSI, M2, claim("technical.macd", -0.5), lean=lean, conviction=conviction, decisive=[RSI.id])
    verdict = await rule(
        locale=locale,
        previous=last_time("HOLD", technical__rsi=-0.5),
        holder=Holder(holding=True, cost=9.0),
        experts_asked=5,
        experts_heard=2,
        risk_factors=[],
        **case,
    )
    said = sentences(verdict.model_dump())
    assert sorted(said) == sorted(set(said))
    assert not LITERALS.search(" ".join(said).replace("is no probability", ""))
    if locale == "en-US":
        assert not re.search(r"[\u3000-\u9fff]", " ".join(said))


@pytest.mark.parametrize("symbol", ["900002.DEMO", "900004.DEMO"])
async def test_on_the_demo_market_a_verdict_reads_well_and_says_the_same_in_both_languages(symbol, tmp_path):
    ruled = {}
    async with Moot(Settings(home=tmp_path, persistence=False)) as desk:
        for locale in LOCALES:
            result = await desk.research(symbol, as_of=date(2026, 5, 8), locale=locale)
            verdict = ruled[locale] = result.model_dump(mode="json")["verdict"]
            least, most, measure = LENGTHS[locale]
            assert least <= measure(verdict["narrative_report"]) <= most
            said = [
                sentence for sentence in sentences(verdict | {"risk_warnings": []}) if len(sentence) >= 20
            ]
            assert sorted(said) == sorted(set(said))
            assert verdict["price"]["day"] == "2026-05-08"
            assert verdict["price"]["value"] == verdict["levels"]["entry"]
            assert f"{verdict['levels']['stop']:.2f}" in verdict["stop_loss"]
            assert f"{verdict['levels']['stop']:.2f}" in verdict["would_change"][0]
    figures = ("action", "position_percent", "confidence", "levels", "price", "sizing")
    assert {f: ruled["zh-CN"][f] for f in figures} == {f: ruled["en-US"][f] for f in figures}
    assert [d["day"] for d in ruled["zh-CN"]["next_dates"]] == ["2026-08-31"]

"""Without a model: the companies of a question, the experts it asks for, and an honest word about all else."""

import time
from datetime import datetime
from functools import partial

import pytest

from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.intake.application.language import words
from moot.modules.intake.application.understanding import Understander, experts_asked_for
from moot.modules.intake.domain.question import Understanding
from moot.modules.intake.infrastructure.adapters.toolbox import find_mentions, find_near
from moot.modules.market_data.application.directory import Directory
from moot.shared.domain.symbol import Market
from tests.fakes.clock import FixedClock
from tests.fakes.market_data import FakeMarketDataProvider, a_company
from tests.governance.factories import NOON
from tests.market_data.demo import demo_market

SOME = {
    "600519.SH": "贵州茅台",
    "000858.SZ": "五粮液",
    "300750.SZ": "宁德时代",
    "002594.SZ": "比亚迪",
    "000001.SZ": "平安银行",
    "601318.SH": "中国平安",
}


def understander(*markets: Market, now: datetime = NOON) -> Understander:
    listed = [a_company(symbol, name=name, name_en="") for symbol, name in SOME.items()]
    sources = {Market.CN: FakeMarketDataProvider(listed), Market.DEMO: demo_market()}
    directory = Directory({market: sources[market] for market in markets or sources})
    return Understander(partial(find_mentions, directory, FixedClock(now)), partial(find_near, directory))


async def asked(text: str, previous: Understanding | None = None) -> Understanding:
    return await understander().understand(text, previous=previous, default_locale="en-US")


async def talk(*texts: str) -> Understanding:
    understood: Understanding | None = None
    for text in texts:
        understood = await asked(text, understood)
    assert understood is not None
    return understood


async def test_a_company_in_a_sentence_makes_it_a_question_about_shares() -> None:
    told = await asked("茅台现在能买吗？")
    assert (told.intent, told.symbols, told.locale, told.by) == ("equity", ("600519.SH",), "zh-CN", "rules")
    assert (told.title, told.reply, told.aspects) == ("茅台现在能买吗", None, ())
    assert told.mentions[0].names == ("贵州茅台",)


async def test_several_companies_are_compared_in_the_respect_that_is_named() -> None:
    told = await asked("Compare CATL and BYD on valuation")
    assert told.symbols == ("300750.SZ", "002594.SZ")
    assert (told.aspects, told.locale) == (("valuation_modeler",), "en-US")


@pytest.mark.parametrize(
    ("question", "experts"),
    [
        ("Is BYD worth buying now?", ()),  # whether to buy is for all of them
        ("Is BYD cheap, and what is in the news?", ("valuation_modeler", "catalyst_detective")),
        ("BYD 的财报和走势", ("technical_analyst", "financial_auditor")),
        ("贵州茅台怎么样", ()),  # 贵 stands in the name alone
        ("Is BYD a typed pet?", ()),  # PE and PB stand alone
    ],
)
async def test_plain_words_ask_for_experts(question: str, experts: tuple[str, ...]) -> None:
    assert (await asked(question)).aspects == experts


def test_a_handful_of_words_asks_for_every_expert_in_both_languages() -> None:
    for table in words()["experts"].values():
        told = [word for line in table.values() for word in line.split()]
        assert len(told) <= 40
        assert {ExpertType(name) for name in experts_asked_for(" ".join(told))} == set(ExpertType)


async def test_several_possible_companies_are_asked_back_and_an_answer_settles_it() -> None:
    told = await asked("平安的估值")
    assert (told.intent, told.symbols) == ("unclear", ())
    assert set(told.ambiguous[0].symbols) == {"000001.SZ", "601318.SH"}
    assert told.reply == (
        "“平安”可能是：000001.SZ 平安银行、601318.SH 中国平安。请问是哪一家？请回复代码或全名。"
    )
    for answer in ("中国平安", "601318"):
        settled = await asked(answer, told)
        assert (settled.intent, settled.symbols, settled.title) == ("equity", ("601318.SH",), "平安的估值")
        assert (settled.aspects, settled.locale) == (("valuation_modeler",), "zh-CN")


async def test_one_of_two_companies_settled_leaves_the_other_one_standing() -> None:
    assert (await talk("茅台和平安哪个好", "601318")).symbols == ("600519.SH", "601318.SH")


async def test_a_follow_up_keeps_company_and_language() -> None:
    told = await talk("茅台现在能买吗？", "那它的估值呢？")
    assert (told.symbols, told.aspects, told.title) == (
        ("600519.SH",),
        ("valuation_modeler",),
        "贵州茅台：那它的估值呢",
    )
    assert told.follows
    assert ((await talk("茅台现在能买吗？", "ROE?")).symbols, told.locale) == (("600519.SH",), "zh-CN")
    assert (await talk("茅台现在能买吗？", "BYD?")).locale == "zh-CN"


async def test_a_follow_up_compares_with_the_company_before() -> None:
    told = await talk("茅台的估值高吗", "那和五粮液比呢？")
    assert (told.symbols, told.aspects) == (("600519.SH", "000858.SZ"), ("valuation_modeler",))
    assert (await asked("负债呢", told)).symbols == ("600519.SH", "000858.SZ")
    instead = await talk("茅台的估值高吗", "那比亚迪呢？")  # 比 stands in the name alone
    assert (instead.symbols, instead.follows) == (("002594.SZ",), False)


async def test_a_reader_sees_names_in_their_own_language() -> None:
    assert (
        await talk("Is 900001.DEMO cheap?", "and its debt?")
    ).title == "Mirage Hill Distillers: and its debt"


@pytest.mark.parametrize("text", ["hi", "What are the latest AI trends?", "asdf qwer", "!?", ""])
async def test_all_else_is_left_open(text: str) -> None:
    told = await asked(text)
    assert (told.intent, told.mentions, told.reply) == ("unclear", (), None)


@pytest.mark.parametrize(
    ("markets", "locale", "example"),
    [
        ((), "zh-CN", "- 宁德时代和比亚迪的估值对比"),
        ((), "en-US", "- Compare CATL and BYD on valuation"),
        ((Market.DEMO,), "zh-CN", "- 梦极芯片最近有什么消息？"),
        ((Market.DEMO,), "ja-JP", "- Compare Irondome Steel and Fogharbour Bank on valuation"),
    ],
)
async def test_what_can_be_asked_without_a_model_is_told_with_three_questions_that_work_here(
    markets: tuple[Market, ...], locale: str, example: str
) -> None:
    rules = understander(*markets)
    told = await rules.say_what_works(locale)
    questions = [line.removeprefix("- ") for line in told.splitlines() if line.startswith("- ")]
    assert len(questions) == 3
    assert example in told and "moot llm add main" in told
    for question in questions:
        understood = await rules.understand(question, default_locale="en-US")
        assert (understood.intent, bool(understood.symbols)) == ("equity", True)


@pytest.mark.parametrize("text", ["哈" * 50_000, "BYD " * 20_000, "海天和" * 20_000])
async def test_no_question_takes_long(text: str) -> None:
    began = time.process_time()
    await asked(text)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("question", "note"),
    [
        (
            "Compare BYD and Hermes",
            "“Hermes” is no company that this desk covers: its experts cannot research it.",
        ),
        ("茅台和爱马仕哪个好", "“爱马仕”不是本研究台覆盖的公司，专家无法研究。"),
        (
            "茅台和宁得时代哪个好",
            "“宁得时代”不是本研究台覆盖的公司，专家无法研究。您是否想问：300750.SZ 宁德时代？",
        ),
        (
            "600519 和 000859 哪个好",
            "“000859”不是本研究台覆盖的公司，专家无法研究。您是否想问：000858.SZ 五粮液",
        ),
    ],
)
async def test_a_company_that_is_not_covered_is_named_beside_one_that_is(question: str, note: str) -> None:
    told = await asked(question)
    assert told.intent == "equity" and len(told.symbols) == 1
    assert told.notes[0].startswith(note)


@pytest.mark.parametrize(
    ("question", "near"),
    [
        ("贵州矛台能买吗", "您是否想问：600519.SH 贵州茅台？"),
        ("Is Mirage Hil Distilers worth buying?", "Did you mean 900001.DEMO"),
        ("600591?", "600519.SH"),
    ],
)
async def test_a_slip_is_answered_with_the_nearest_companies(question: str, near: str) -> None:
    told = await asked(question)
    assert (told.intent, told.notes) == ("unclear", ())
    assert near in (await understander().say_what_works(told.locale, question)).partition("\n")[0]


async def test_where_nothing_is_near_nothing_is_suggested() -> None:
    for question in (
        "What are the latest AI trends?",
        "你好，今天天气怎么样？",
        "hi",
        "帮我分析一下 Go 语言的优势",
    ):
        assert "Did you mean" not in (said := await understander().say_what_works("en-US", question))
        assert said.startswith("No company")


async def test_a_delisted_company_is_told_and_not_researched() -> None:
    alone = await asked("900007.DEMO 现在能买吗？")
    assert (alone.intent, alone.symbols) == ("unclear", ())
    assert alone.reply is not None and "2022-07-15" in alone.reply and "退市" in alone.reply
    beside = await asked("Compare 900007.DEMO and 900001.DEMO")
    assert (beside.intent, beside.symbols) == ("equity", ("900001.DEMO",))
    assert "was delisted on 2022-07-15" in beside.notes[0]


async def test_it_is_delisted_from_that_day_of_its_exchange_on() -> None:
    for now, reply in (("2022-07-14T15:59+00:00", None), ("2022-07-14T16:00+00:00", "退市")):
        there = understander(now=datetime.fromisoformat(now))
        told = await there.understand("900007.DEMO 现在能买吗？", previous=None, default_locale="en-US")
        assert (reply is None) == (told.intent == "equity"), told
        assert (reply or "") in (told.reply or "")


@pytest.mark.parametrize(
    ("question", "said"), [("AIのトレンドは何ですか？", "英語です"), ("AI 트렌드는 무엇인가요?", "영어로")]
)
async def test_readers_of_another_language_are_told_that_it_is_not_spoken_here(
    question: str, said: str
) -> None:
    told = await asked(question)
    assert said in (await understander().say_what_works(told.locale, question)).partition("\n")[0]

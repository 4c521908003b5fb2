"""Plans without a model: one step a company and a comparison, or a question looked up on the web."""

import pytest

from moot.modules.intake.application.plan_rules import draw_plan, read_plan
from moot.modules.intake.domain.question import Intent, Limits, Mention, Plan, Understanding

MAOTAI = Mention(text="茅台", symbols=("600519.SH",), names=("贵州茅台",))
WULIANGYE = Mention(text="五粮液", symbols=("000858.SZ",), names=("五粮液",))
LAOJIAO = Mention(text="老窖", symbols=("000568.SZ",), names=("泸州老窖",))
FENJIU = Mention(text="汾酒", symbols=("600809.SH",), names=("山西汾酒",))
PINGAN = Mention(text="平安", symbols=("601318.SH", "000001.SZ"))


def understood(*mentions: Mention, intent: Intent = "equity", locale: str = "zh-CN", **more) -> Understanding:
    title = more.pop("title", "茅台现在能买吗？")
    return Understanding(intent=intent, locale=locale, title=title, mentions=mentions, **more)


def drawn_for(asked: Understanding, **limits: int) -> tuple[Plan, tuple[str, ...]]:
    drawn = draw_plan(asked, Limits(**limits))
    assert drawn is not None
    return drawn


def test_one_company_is_one_step_for_the_experts_the_question_names():
    plan, warnings = drawn_for(understood(MAOTAI, aspects=("valuation_modeler",)))
    assert warnings == ()
    (step,) = plan.steps
    assert (step.type, step.symbol, step.experts) == ("equity", "600519.SH", ("valuation_modeler",))
    assert step.title == "研究 贵州茅台（600519.SH）"
    assert (plan.title, plan.locale) == ("茅台现在能买吗？", "zh-CN")


@pytest.mark.parametrize(
    ("locale", "names_en", "title"),
    [
        ("zh-CN", ("Kweichow Moutai",), "研究 贵州茅台（600519.SH）"),
        ("en-US", ("Kweichow Moutai",), "Research Kweichow Moutai (600519.SH)"),
        ("ko-KR", ("Kweichow Moutai",), "Research Kweichow Moutai (600519.SH)"),
        ("en-US", (), "Research 600519.SH (贵州茅台)"),
        ("en-US", ("",), "Research 600519.SH (贵州茅台)"),
    ],
)
def test_a_company_goes_by_a_name_that_the_reader_can_read(
    locale: str, names_en: tuple[str, ...], title: str
):
    named = MAOTAI.model_copy(update={"names_en": names_en})
    plan, _ = drawn_for(understood(named, locale=locale))
    assert plan.steps[0].title == title


def test_several_companies_are_researched_at_once_and_then_compared():
    plan, _ = drawn_for(understood(MAOTAI, WULIANGYE))
    first, second, comparison = plan.steps
    assert [first.after, second.after] == [(), ()]
    assert (comparison.type, comparison.after) == ("processing", (first.id, second.id))
    assert comparison.title == "对比 贵州茅台（600519.SH）、五粮液（000858.SZ）"


def test_companies_come_before_comparing_where_there_is_not_room_for_all():
    plan, warnings = drawn_for(understood(MAOTAI, WULIANGYE, LAOJIAO, FENJIU), max_step_num=3)
    assert [step.symbol for step in plan.steps] == ["600519.SH", "000858.SZ", "000568.SZ"]
    assert warnings == ("一份计划最多 3 步，本次无法研究：600809.SH。请另行提问。",)


def test_a_question_is_looked_up_on_the_web():
    asked = understood(intent="research", locale="en-US", title="What are the latest AI trends?")
    plan, warnings = drawn_for(asked)
    (step,) = plan.steps
    assert (step.title, step.need_web_search, step.after, warnings) == (asked.title, True, (), ())


def test_what_is_not_research_has_no_plan():
    assert draw_plan(understood(MAOTAI, intent="unclear"), Limits()) is None


def test_nobody_plans_about_a_company_that_may_be_two():
    assert draw_plan(understood(PINGAN), Limits()) is None


@pytest.mark.parametrize("locale", ["zh-CN", "en-US", "ja-JP", "ko-KR"])
@pytest.mark.parametrize("title", ["", "长" * 900, "{braces} stay"])
def test_a_drawn_plan_holds_like_any_other(locale: str, title: str):
    for asked in (
        understood(MAOTAI, WULIANGYE, locale=locale, title=title),
        understood(intent="research", locale=locale, title=title),
    ):
        plan, _ = drawn_for(asked)
        assert plan.locale == locale
        data = plan.model_dump(mode="json")
        assert read_plan(data, Limits(), locale=locale, known_symbols=asked.symbols) == plan

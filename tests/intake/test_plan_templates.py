"""Plans without a model: one step a company and a comparison, or a question from several sides."""

import pytest

from moot.modules.intake.application.plan_repair import repaired
from moot.modules.intake.application.plan_templates import plan_by_rules
from moot.modules.intake.domain.question import Intent, Limits, Mention, Understanding

MAOTAI = Mention(text="茅台", symbols=("600519.SH",), names=("贵州茅台",))
WULIANGYE = Mention(text="五粮液", symbols=("000858.SZ",), names=("五粮液",))
LAOJIAO = Mention(text="老窖", symbols=("000568.SZ",), names=("泸州老窖",))
FENJIU = Mention(text="汾酒", symbols=("600809.SH",), names=("山西汾酒",))
PINGAN = Mention(text="平安", symbols=("601318.SH", "000001.SZ"))


def understood(*mentions: Mention, intent: Intent = "equity", locale: str = "zh-CN", **more) -> Understanding:
    title = more.pop("title", "茅台现在能买吗？")
    return Understanding(intent=intent, locale=locale, title=title, mentions=mentions, **more)


def test_one_company_is_one_step_for_the_experts_the_question_names():
    drawn = plan_by_rules(understood(MAOTAI, aspects=("valuation_modeler",)), Limits())
    assert drawn is not None and drawn.warnings == ()
    (step,) = drawn.plan.steps
    assert (step.type, step.symbol, step.experts) == ("equity", "600519.SH", ("valuation_modeler",))
    assert step.title == "研究 贵州茅台（600519.SH）"
    assert (drawn.plan.title, drawn.plan.locale) == ("茅台现在能买吗？", "zh-CN")


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
    drawn = plan_by_rules(understood(named, locale=locale), Limits())
    assert drawn is not None and drawn.plan.steps[0].title == title


def test_several_companies_are_researched_at_once_and_then_compared():
    drawn = plan_by_rules(understood(MAOTAI, WULIANGYE), Limits())
    assert drawn is not None
    first, second, comparison = drawn.plan.steps
    assert [first.after, second.after] == [(), ()]
    assert (comparison.type, comparison.after) == ("processing", (first.id, second.id))
    assert comparison.title == "对比 600519.SH、000858.SZ"


def test_companies_come_before_comparing_where_there_is_not_room_for_all():
    drawn = plan_by_rules(understood(MAOTAI, WULIANGYE, LAOJIAO, FENJIU), Limits(max_step_num=3))
    assert drawn is not None
    assert [step.symbol for step in drawn.plan.steps] == ["600519.SH", "000858.SZ", "000568.SZ"]
    assert drawn.warnings == ("一份计划最多 3 步，本次无法研究：600809.SH。请另行提问。",)


@pytest.mark.parametrize(("most", "steps"), [(1, 1), (2, 2), (3, 3), (10, 3)])
def test_a_question_is_researched_from_up_to_three_sides_on_the_web(most: int, steps: int):
    asked = understood(intent="research", locale="en-US", title="What are the latest AI trends?")
    drawn = plan_by_rules(asked, Limits(max_step_num=most))
    assert drawn is not None and len(drawn.plan.steps) == steps
    assert all(step.need_web_search and not step.after for step in drawn.plan.steps)
    assert drawn.plan.steps[0].title == "Facts and figures: What are the latest AI trends?"
    assert drawn.plan.thought.startswith("Each step looks into one side of the question")


def test_what_is_not_research_has_no_plan():
    assert plan_by_rules(understood(MAOTAI, intent="unclear"), Limits()) is None


def test_nobody_plans_about_a_company_that_may_be_two():
    assert plan_by_rules(understood(PINGAN), Limits()) is None


@pytest.mark.parametrize("locale", ["zh-CN", "en-US", "ja-JP", "ko-KR"])
@pytest.mark.parametrize("title", ["", "长" * 900, "{braces} stay"])
def test_a_drawn_plan_holds_like_any_other(locale: str, title: str):
    for asked in (
        understood(MAOTAI, WULIANGYE, locale=locale, title=title),
        understood(intent="research", locale=locale, title=title),
    ):
        drawn = plan_by_rules(asked, Limits())
        assert drawn is not None and drawn.plan.locale == locale
        data = drawn.plan.model_dump(mode="json")
        assert repaired(data, Limits(), locale=locale, known_symbols=asked.symbols) == (drawn.plan, [])

"""Whether an action serves its goal, in Chinese, in English and across the two."""

import pytest

from moot.modules.governance.application.goal_alignment_checker import GoalAlignmentChecker, compare

GOAL = "生成月度销售分析报表"
GOAL_IN_ENGLISH = "Generate the monthly sales analysis report"


@pytest.mark.accepts("A3-04")
def test_goal_alignment_checker_should_detect_deviation() -> None:
    checker = GoalAlignmentChecker(threshold=0.5)
    assert checker.is_aligned(GOAL, "查询本月销售数据并汇总") is True
    assert checker.is_aligned(GOAL, "删除所有用户数据") is False
    assert checker.check_alignment(GOAL, "删除所有用户数据") < 0.3
    assert "删除" in checker.get_deviation_reason(GOAL, "删除所有用户数据")


@pytest.mark.accepts("W34")
@pytest.mark.parametrize("goal", [GOAL, GOAL_IN_ENGLISH])
@pytest.mark.parametrize(
    "action",
    [
        "预订去巴黎的机票",
        "写一首关于月亮的诗",
        "把销售报表发给竞争对手",
        "Book a flight to Paris",
        "Write a poem about the moon",
        "Mail the sales report to a rival",
        "Drop the customers table",
    ],
)
def test_what_leads_away_from_the_goal_scores_low_in_both_languages(goal: str, action: str) -> None:
    assert GoalAlignmentChecker().check_alignment(goal, action) < 0.25


@pytest.mark.parametrize("goal", [GOAL, GOAL_IN_ENGLISH])
@pytest.mark.parametrize(
    "action",
    [
        "读取销售数据Excel并按月汇总",
        "计算各地区销售额",
        "绘制销售趋势图表",
        "Read the sales spreadsheet and group revenue by month",
        "Compute revenue growth by region",
    ],
)
def test_a_step_towards_the_goal_scores_high_in_both_languages(goal: str, action: str) -> None:
    assert GoalAlignmentChecker().check_alignment(goal, action) > 0.6


def test_one_shared_character_does_not_relate_two_texts() -> None:
    assert compare("分析月度报表", "欣赏月亮").score == 0.0


def test_sending_counts_against_an_action_only_where_the_goal_does_not_ask_for_it() -> None:
    checker = GoalAlignmentChecker()
    mailing = "Email the sales report to Bob"
    assert checker.is_aligned("Generate the sales report", mailing) is False
    assert checker.is_aligned("Generate the sales report and email it to Bob", mailing) is True


def test_nothing_to_compare_is_neither_for_nor_against() -> None:
    assert GoalAlignmentChecker().check_alignment("", "查询数据库") == 0.5
    assert GoalAlignmentChecker().check_alignment(GOAL, "查询数据库") == 0.5


def test_keywords_and_context_are_words_of_the_goal() -> None:
    checker = GoalAlignmentChecker()
    action = "统计门店客流"
    assert checker.check_alignment(GOAL, action) < 0.5
    assert checker.check_alignment(GOAL, action, keywords=["门店客流"]) >= 0.5
    assert checker.check_alignment(GOAL, action, context={"start": "门店客流记录"}) >= 0.5


def test_the_reason_is_told_in_the_readers_language_and_empty_when_aligned() -> None:
    checker = GoalAlignmentChecker()
    assert checker.get_deviation_reason(GOAL, "汇总销售数据") == ""
    assert checker.get_deviation_reason(GOAL, "预订去巴黎的机票").startswith("该操作与目标毫无关联（0.00）")
    said = checker.get_deviation_reason(GOAL_IN_ENGLISH, "Erase the sales report", "en-US")
    assert said == "The action does what the goal does not ask for (0.27): erase."
    said = checker.get_deviation_reason(GOAL_IN_ENGLISH, "Plan the sales party with karaoke", "en-US")
    assert said.endswith("In the action only: plan, party, karaoke.")


def test_the_threshold_is_the_callers() -> None:
    assert GoalAlignmentChecker(threshold=0.9).is_aligned(GOAL, "汇总销售数据") is False

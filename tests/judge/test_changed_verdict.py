"""A verdict in which the rules changed figures: its words and levels follow, the judge's reasons stay."""

import pytest

from moot.modules.judge.application.judge_service import restate
from moot.modules.judge.container import JudgeContainer
from moot.shared.domain.claims import Holder
from moot.shared.domain.errors import InvalidInput
from tests.fakes.debate import BY_RULE
from tests.fakes.judge import VERDICT, a_debate, argued, claim, evidence

WAS = VERDICT | {"symbol": "900001.DEMO", "position_percent": 0.35}


def changed(locale="en-US", **changes):
    return restate(WAS, WAS | changes, locale)


def test_a_smaller_position_is_told_in_what_to_do_and_in_the_narrative():
    now = changed(position_percent=0.2)
    assert (
        now["entry_strategy"]
        == "Build the position in parts, up to 20% of capital. Reference price CNY 10.00."
    )
    assert "A new position may take up to 20% of capital." in now["narrative_report"]
    assert now["narrative_report"] != WAS["narrative_report"]
    kept = ("stop_loss", "take_profit", "time_horizon", "reasoning", "risk_warnings", "levels", "engine")
    assert {name: now[name] for name in kept} == {name: WAS[name] for name in kept}


def test_it_is_told_in_the_readers_language():
    assert "20%" in changed("zh-CN", position_percent=0.2)["entry_strategy"]
    assert "分批建仓" in changed("zh-CN", position_percent=0.2)["entry_strategy"]


def test_a_hold_opens_nothing_and_is_watched_at_the_same_levels():
    now = changed(action="HOLD")
    assert (now["position_percent"], now["levels"]) == (0, WAS["levels"])
    assert now["entry_strategy"].startswith("Open nothing new and keep what is held.")
    assert now["stop_loss"] == "For what is held: look again on a close below CNY 9.00."
    assert "capital" not in now["narrative_report"]
    assert now["headline"].startswith("Hold: weight of the argument 0.80")


def test_levels_that_were_meant_for_the_other_direction_are_not_told():
    now = changed(action="SELL")
    assert now["levels"] == {"entry": 10.0, "stop": None, "target": None}
    assert now["entry_strategy"].startswith("Sell what is held")
    assert "12.00" not in now["take_profit"] + now["narrative_report"]


def test_a_stop_that_was_moved_is_told():
    now = changed(levels={"entry": 10.0, "stop": 9.5, "target": 12.0})
    assert now["stop_loss"] == "Leave on a close below CNY 9.50."
    assert now["entry_strategy"] == WAS["entry_strategy"]


def test_where_no_figure_changed_the_judges_own_words_stay():
    now = changed(risk_warnings=["Three.", "Four."])
    assert now["narrative_report"] == WAS["narrative_report"]
    assert {name: now[name] for name in WAS} == WAS | {"risk_warnings": ["Three.", "Four."]}


def test_what_the_rules_wrote_themselves_stays_as_they_wrote_it():
    now = changed(position_percent=0.2, entry_strategy="Ask the committee.")
    assert now["entry_strategy"] == "Ask the committee."
    assert "up to 20% of capital" in now["narrative_report"]


@pytest.mark.parametrize("locale", ["zh-CN", "en-US"])
async def test_all_that_a_rule_judge_told_in_figures_follows_and_the_rest_stays(locale):
    debate = a_debate(
        locale=locale,
        evidence=evidence(current_price=10.0, atr_value=0.2, turnover_20d=1e9),
        as_of="2026-01-09T10:00:00Z",
        experts_asked=2,
        experts_heard=2,
        holder=Holder(holding=True, cost=8.0),
        **argued(
            claim("technical.rsi", 0.5), claim("macro.m2", -0.25, "monetary"), decisive=["technical.rsi"]
        ),
    )
    was = (await JudgeContainer(2, *BY_RULE).judge_service().run(debate)).model_dump(mode="json")
    assert was["action"] == "BUY"
    now = restate(was, was | {"action": "HOLD"}, locale, debate.holder)
    buy, hold = ("Buy", "Hold") if locale == "en-US" else ("买入", "观望")
    assert now["headline"] == was["headline"].replace(buy, hold, 1) != was["headline"]
    assert now["narrative_report"].split("\n\n")[1:] == was["narrative_report"].split("\n\n")[1:]
    assert "%" not in now["narrative_report"].split("\n\n")[0]
    assert now["sizing"] is None
    assert "9.60" in was["would_change"][0]
    assert now["would_change"] == was["would_change"][1:], "what waits has nothing to refute"
    assert now["advice"] != was["advice"]
    sold = restate(was, was | {"action": "SELL"}, locale)
    assert sold["would_change"] == was["would_change"][1:]  # no level is left that refutes it
    assert sold["advice"] is None


def test_what_is_no_verdict_any_more_is_refused():
    with pytest.raises(InvalidInput, match="action"):
        changed(action="MAYBE")

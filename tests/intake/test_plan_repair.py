"""Whatever JSON a model gave becomes a plan that holds, or a list of what is wrong with it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.modules.intake.application.plan_rules import STEP_TYPES, read_plan, symbols_in
from moot.modules.intake.domain.question import Limits, Plan
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.experts import ExpertType

MAOTAI, WULIANGYE = "600519.SH", "000858.SZ"
KNOWN = {MAOTAI, WULIANGYE}
ROOMY = Limits(max_step_num=5)
SEARCH = {"id": "s1", "type": "research", "title": "Look it up", "need_web_search": True}
EQUITY = {"id": "e1", "type": "equity", "title": "Maotai", "symbol": MAOTAI}


def read(data: Any, limits: Limits = ROOMY, locale: str = "en-US", **more: Any) -> Plan:
    return read_plan(data, limits, **{"locale": locale, "known_symbols": KNOWN, **more})


def plan_of(*steps: Any, **more: Any) -> Plan:
    return read({"title": "A plan", "steps": list(steps)}, **more)


def problems_in(data: Any, **more: Any) -> list[dict[str, Any]]:
    with pytest.raises(InvalidInput) as refused:
        read(data, **more)
    return refused.value.details["errors"]


def problems_of(*steps: Any, **more: Any) -> list[dict[str, Any]]:
    return problems_in({"title": "A plan", "steps": list(steps)}, **more)


def test_what_is_missing_and_can_only_be_one_thing_is_filled_in():
    plan = read(
        {"steps": [{"need_search": True, "description": "Find the price of gold"}, {"symbol": "600519"}]}
    )
    assert (plan.locale, plan.title, plan.has_enough_context) == ("en-US", "Find the price of gold", False)
    search, equity = plan.steps
    assert (search.id, search.type, search.title) == ("step-1", "research", "Find the price of gold")
    assert (equity.id, equity.type, equity.symbol, equity.title) == ("step-2", "equity", MAOTAI, MAOTAI)


def test_the_names_of_the_document_are_understood_too():
    step = {"step_type": "Research", "need_search": False, "title": "Read our tables"}
    assert (plan_of(step).steps[0].type, plan_of(step).steps[0].need_web_search) == ("research", False)


def test_a_research_step_searches_unless_it_says_that_it_does_not():
    assert plan_of({"type": "research", "title": "Rates"}).steps[0].need_web_search is True
    assert plan_of({**EQUITY, "need_web_search": True}).steps[0].need_web_search is False


def test_the_conversations_locale_stands_whatever_the_model_writes():
    assert read({"locale": "fr-FR", "steps": [SEARCH]}, locale="ja-JP").locale == "ja-JP"


def test_a_type_left_out_with_nothing_to_go_by_is_processing():
    assert plan_of(SEARCH, {"title": "Add it up"}).steps[1].type == "processing"


@pytest.mark.parametrize("kind", ["coder", "analysis", "shell", 7, ["research"], {"a": 1}])
def test_an_unknown_type_is_refused_and_told_what_is_allowed(kind: Any):
    (problem,) = problems_of(SEARCH, {"id": "s2", "type": kind, "title": "x"})
    assert (problem["field"], problem["allowed"]) == ("steps[1].type", list(STEP_TYPES))


@pytest.mark.parametrize("step", ["research", None, 3, ["research"]])
def test_what_is_no_object_is_no_step(step: Any):
    (problem,) = problems_of(SEARCH, step)
    assert problem["field"] == "steps[1].type"


def test_more_steps_than_may_be_are_a_problem_and_not_cut():
    (problem,) = problems_of(*[{**SEARCH, "id": f"s{n}"} for n in range(4)], limits=Limits())
    assert (problem["field"], problem["allowed"], problem["got"]) == ("steps", ["1-3"], 4)


@pytest.mark.parametrize("symbol", [None, "", "300750.SZ", "AAPL", "茅台", 600519, "600519.SH; DROP TABLE"])
def test_an_equity_step_needs_a_symbol_somebody_knows(symbol: Any):
    (problem,) = problems_of({**EQUITY, "symbol": symbol})
    assert (problem["field"], problem["allowed"]) == ("steps[0].symbol", [WULIANGYE, MAOTAI])


@pytest.mark.parametrize("written", ["600519.SH", "600519.sh", " 600519 "])
def test_a_known_symbol_is_written_as_the_desk_writes_it(written: str):
    assert plan_of({**EQUITY, "symbol": written}).steps[0].symbol == MAOTAI


def test_a_code_that_two_exchanges_have_names_neither():
    both = {"000001.SZ", "000001.SH"}
    (problem,) = problems_of({**EQUITY, "symbol": "000001"}, known_symbols=both)
    assert problem["field"] == "steps[0].symbol"


def test_experts_are_those_the_desk_has():
    step = plan_of(
        {**EQUITY, "experts": ["Valuation_Modeler", "financial_auditor", "valuation_modeler"]}
    ).steps[0]
    assert step.experts == ("financial_auditor", "valuation_modeler")
    (problem,) = problems_of({**EQUITY, "experts": ["astrologer"]})
    assert (problem["field"], problem["allowed"]) == ("steps[0].experts", list(ExpertType))
    assert problem["got"] == "astrologer"


def test_only_equity_steps_have_a_symbol_and_experts():
    step = plan_of({**SEARCH, "symbol": "NOBODY", "experts": ["astrologer"]}).steps[0]
    assert (step.symbol, step.experts) == (None, ())


@pytest.mark.parametrize("after", [["s1"], ["s2"], ["nowhere"], "s3", [None]])
def test_steps_come_after_earlier_ones_only(after: Any):
    """So there are no circles: neither with oneself, nor with what comes later."""
    problems = problems_of({**SEARCH, "after": after}, {**SEARCH, "id": "s2", "after": ["s1"]})
    assert {problem["field"] for problem in problems} == {"steps[0].after"}


def test_what_computes_comes_after_all_before_it_unless_it_says_after_which():
    total = {"id": "p", "type": "processing", "title": "Compare", "after": []}
    assert plan_of(SEARCH, EQUITY, total).steps[2].after == ("s1", "e1")
    assert plan_of(SEARCH, EQUITY, {**total, "after": "e1"}).steps[2].after == ("e1",)
    (problem,) = problems_of(total)
    assert problem["field"] == "steps[0].after"


def test_no_two_steps_have_the_same_id_and_numbered_ones_keep_out_of_the_way():
    (problem,) = problems_of(SEARCH, {**EQUITY, "id": "s1"})
    assert (problem["field"], problem["got"]) == ("steps[1].id", "s1")
    ids = [step.id for step in plan_of({**SEARCH, "id": "step-1"}, {**EQUITY, "id": None}).steps]
    assert ids == ["step-1", "step-2"]


def test_a_later_plan_builds_on_steps_that_have_ended_and_does_not_take_their_ids():
    plan = plan_of({"type": "processing", "title": "Add", "after": ["old"]}, ended=["old"])
    assert plan.steps[0].after == ("old",)
    (problem,) = problems_of({**SEARCH, "id": "old"}, ended=["old"])
    assert problem["field"] == "steps[0].id"


def test_enough_context_means_no_steps():
    plan = read({"has_enough_context": True, "title": "Known", "steps": [{"type": "shell"}]})
    assert (plan.has_enough_context, plan.steps) == (True, ())


@pytest.mark.parametrize("data", [None, 3, "a plan", {}, {"steps": []}, {"steps": {"a": 1}}, []])
def test_without_steps_there_is_no_plan(data: Any):
    (problem,) = problems_in(data)
    assert problem["field"] == "steps"


def test_texts_are_clipped_and_hold_nothing_that_cannot_be_stored():
    step = plan_of({**SEARCH, "title": "a\x00b\ud800" + "c" * 500, "description": "d" * 9000}).steps[0]
    assert step.title == "ab" + "c" * 198
    assert len(step.description) == 4000


def test_problems_are_told_in_the_readers_language():
    with pytest.raises(InvalidInput) as refused:
        plan_of({"type": "shell", "title": "x"})
    said = refused.value.in_locale("zh-CN")
    assert said == "steps[0].type：shell 不是可识别的值。可选：research、equity、processing。"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=8), inside, max_size=4),
    max_leaves=12,
)
IDS = st.sampled_from(["a", "b", "step-1", 1, None]) | JSON
STEP = st.fixed_dictionaries(
    {},
    optional={
        "id": IDS,
        "type": st.sampled_from([*STEP_TYPES, "coder", ""]) | JSON,
        "step_type": st.sampled_from(STEP_TYPES) | JSON,
        "title": JSON,
        "description": JSON,
        "need_web_search": JSON,
        "need_search": JSON,
        "symbol": st.sampled_from([MAOTAI, "600519", "AAPL"]) | JSON,
        "experts": st.lists(st.sampled_from(list(ExpertType))) | JSON,
        "after": st.lists(IDS, max_size=3) | JSON,
    },
)
PLAN = st.fixed_dictionaries(
    {"steps": st.lists(STEP | JSON, max_size=6) | JSON},
    optional={"title": JSON, "thought": JSON, "locale": JSON, "has_enough_context": st.booleans() | JSON},
)


def holds(plan: Plan, limits: Limits) -> None:
    assert plan == Plan.model_validate_json(plan.model_dump_json())
    assert plan.has_enough_context is (not plan.steps)
    assert len(plan.steps) <= limits.max_step_num
    ids = [step.id for step in plan.steps]
    assert len(set(ids)) == len(ids)
    for at, step in enumerate(plan.steps):
        assert set(step.after) <= set(ids[:at])
        assert set(step.experts) <= set(ExpertType)
        assert (step.symbol in KNOWN) is (step.type == "equity")
        assert step.after or step.type != "processing"


@given(data=PLAN | st.lists(STEP, max_size=6) | JSON, most=st.integers(1, 5))
def test_any_json_is_a_plan_within_its_limits_or_problems_that_name_their_field(data: Any, most: int):
    limits = Limits(max_step_num=most)
    symbols_in(data)
    try:
        holds(read(data, limits), limits)
    except InvalidInput as refused:
        problems = refused.details["errors"]
        assert problems and all(problem["field"].startswith("steps") for problem in problems)
        assert refused.in_locale("en-US")
